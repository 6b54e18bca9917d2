"""How a profiling run spends its time: on whole networks, on pieces of them, on repeats."""

from __future__ import annotations

from typing import NamedTuple


class Manner(NamedTuple):
    repeated: float  # share of what is trained that is trained twice
    drawn: float  # share of a batch for whole networks as they come, instead of planned experiments
    networks: int  # sampled before each batch, at most
    sampling: float  # share of the budget that this may take, each time
    plain: float = 0.0  # share of a batch for some of them as a user's own loop would train them
    pieces: float = 0.0  # share of a batch for pieces of these networks, so that their layers are told apart
    plans: bool = True  # else all is drawn


# One more network teaches more than one more round; only as many repeats are needed as tell the noise. In a whole
# space networks differ more, so that there are hardly enough of them.
FAMILY = Manner(repeated=0.25, drawn=0.5, networks=32, sampling=0.012, plain=0.2)
SPACE = Manner(repeated=0.1, drawn=0.7, networks=200, sampling=0.01, plain=0.1)
SPACE_FROM_SECONDS = 40.0
# A slow counter makes every block dear, so hardly anything is trained twice.
FEW_BLOCKS = Manner(repeated=0.3, drawn=0.3, networks=16, sampling=0.01, pieces=0.4)
# Compiling makes every new shape dear and every further round cheap. A piece compiled by itself is not what it is in
# a network: pieces serve only where so few whole networks could be compiled that nothing could be told from them.
# A planner would spend its time on what is compiled already, which is cheap and teaches little.
COMPILED = Manner(repeated=1.0, drawn=0.85, networks=32, sampling=0.01, plain=0.15, plans=False)
COMPILED_DEARLY = Manner(repeated=1.0, drawn=0.6, networks=16, sampling=0.01, plain=0.1, pieces=0.2)
ENOUGH_NETWORKS = 6


def manner_of(seconds: float, window_seconds: float, compile_seconds: float | None = None) -> Manner:
    """`compile_seconds` are those of a whole network; None where nothing is compiled."""
    if window_seconds:
        return FEW_BLOCKS
    if compile_seconds is not None:
        return COMPILED if ENOUGH_NETWORKS * compile_seconds < seconds else COMPILED_DEARLY
    return FAMILY if seconds < SPACE_FROM_SECONDS else SPACE
