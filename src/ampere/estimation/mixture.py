"""An average iteration, where batches differ in shape: each shape is estimated as a network of its own.

w_i  share of the iterations      J_i, s_i  joules and standard deviation of one of them

joules  sum of w_i J_i
stddev  sum of w_i s_i: all come from one fit, so they are wrong together
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .estimate import Estimate, LayerShare, Touch

STEP = "step"  # the kind of what a step costs outside its layers


def mixed(estimates: Sequence[Estimate], shares: Sequence[float]) -> Estimate:
    """The estimate of an average iteration; `shares` add up to 1."""

    def mean(figure: Callable[[Estimate], float]) -> float:
        return sum(share * figure(estimate) for share, estimate in zip(shares, estimates, strict=True))

    commonest = estimates[max(range(len(shares)), key=lambda i: shares[i])]
    return replace(
        commonest,
        joules=mean(lambda e: e.joules),
        stddev=mean(lambda e: e.stddev),
        seconds=mean(lambda e: e.seconds),
        layers=_layers(estimates, shares),
        unprofiled=tuple(dict.fromkeys(name for e in estimates for name in e.unprofiled)),
        extrapolated=tuple(dict.fromkeys(name for e in estimates for name in e.extrapolated)),
        touch=_touch(estimates, shares),
        follow_memory=max(estimates, key=lambda e: e.joules).follow_memory,
    )


def _layers(estimates: Sequence[Estimate], shares: Sequence[float]) -> tuple[LayerShare, ...]:
    """Layer by layer where all shapes run through the same ones; else those of each shape, with their share."""
    weighted = [
        [replace(x, joules=share * x.joules, stddev=share * x.stddev) for x in estimate.layers]
        for share, estimate in zip(shares, estimates, strict=True)
    ]
    if len({tuple((x.name, x.kind) for x in layers) for layers in weighted}) > 1:
        return (*(x for layers in weighted for x in layers if x.kind != STEP), *_rest(weighted))
    return tuple(_sum(same) for same in zip(*weighted, strict=True))


def _rest(weighted: Sequence[Sequence[LayerShare]]) -> list[LayerShare]:
    """What is in no layer, which estimates name last."""
    rest = [x for layers in weighted for x in layers if x.kind == STEP]
    return [_sum(rest)] if rest else []


def _sum(shares: Sequence[LayerShare]) -> LayerShare:
    return replace(shares[0], joules=sum(x.joules for x in shares), stddev=sum(x.stddev for x in shares))


def _touch(estimates: Sequence[Estimate], shares: Sequence[float]) -> Touch | None:
    touches = [e.touch for e in estimates if e.touch is not None]
    if len(touches) < len(estimates):
        return None
    means = {
        name: sum(share * getattr(touch, name) for share, touch in zip(shares, touches, strict=True))
        for name in ("layers_joules", "layers_stddev", "code_joules", "code_stddev")
    }
    return Touch(**means, processes=min(touch.processes for touch in touches))
