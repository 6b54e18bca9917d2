"""In which order to train what was sampled: what lies beyond everything that was measured comes early.

A surface that was never seen near its edge is only continued there, and its doubt is too small for the planner to
notice. So networks with the narrowest layer of a kind take turns with those that just came, as the paper starts at
the bounds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import zip_longest

from ampere.network import Network
from ampere.profiles.profile import Observation

from .experiment import Experiment

BEYOND = 2.0  # times narrower than all that was measured is news

Place = tuple[Hashable, str]  # a function of channels, and which of its two


def edges_in_turn(pool: Sequence[Experiment], seen: Iterable[Observation]) -> list[Experiment]:
    """The narrowest of each kind where that is news, in turn with the latest ones."""
    edges = _edges(pool, seen)
    others = [e for e in reversed(pool) if all(e is not edge for edge in edges)]
    return [e for pair in zip_longest(edges, others) for e in pair if e is not None]


def _edges(pool: Sequence[Experiment], seen: Iterable[Observation]) -> list[Experiment]:
    measured = _narrowest(observation.network for observation in seen)
    wanted = {
        place: width
        for place, width in _narrowest(e.network for e in pool).items()
        if BEYOND * width <= measured.get(place, float("inf"))
    }
    edges = []
    for experiment in pool:
        here = {place for place, width in _widths(experiment.network) if wanted.get(place) == width}
        if here:
            edges.append(experiment)
            wanted = {place: width for place, width in wanted.items() if place not in here}
    return edges


def _widths(network: Network) -> Iterator[tuple[Place, int]]:
    for layer in network.layers:
        function = layer.kind, tuple(sorted(layer.config.items()))
        yield (function, "in"), layer.channels_in
        yield (function, "out"), layer.channels_out


def _narrowest(networks: Iterable[Network]) -> dict[Place, int]:
    found: dict[Place, int] = {}
    for network in networks:
        for place, width in _widths(network):
            found[place] = min(width, found.get(place, width))
    return found
