"""An average over shapes of batches: parts add up to the whole, whatever the shapes have in common."""

from dataclasses import replace

import pytest

from ampere.core import Meter
from ampere.estimation.estimate import Estimate, LayerShare, Touch
from ampere.estimation.mixture import mixed


def of(joules: float, *names: str) -> Estimate:
    share = joules / (len(names) + 1)
    layers = [LayerShare(name, "linear", share, share / 5) for name in names]
    return Estimate(
        network="net",
        joules=joules,
        stddev=joules / 10,
        seconds=joules / 5,
        layers=(*layers, LayerShare("(step)", "step", share, 0)),
        unprofiled=names[:1],
        extrapolated=(),
        meter=Meter("cpu-time", False, "5 W per busy core"),
        allocator="system",
        follow_memory=lambda: None,
    )


def test_it_is_the_weighted_mean():
    found = mixed([of(1.0, "a"), of(5.0, "a")], [0.75, 0.25])
    assert (found.joules, found.stddev, found.seconds) == pytest.approx((2.0, 0.2, 0.4))
    assert [(layer.name, layer.joules) for layer in found.layers] == [("a", 1.0), ("(step)", 1.0)]
    assert found.unprofiled == ("a",)


def test_layers_of_different_shapes_are_side_by_side():
    found = mixed([of(2.0, "a"), of(3.0, "a", "b")], [0.5, 0.5])
    assert [layer.name for layer in found.layers] == ["a", "a", "b", "(step)"]
    assert sum(layer.joules for layer in found.layers) == pytest.approx(found.joules)


def test_own_code_is_shown_where_all_shapes_were_trained():
    touch = Touch(1.0, 0.1, 1.2, 0.1, 3)
    trained = replace(of(1.0, "a"), touch=touch)
    assert mixed([trained, of(5.0, "a")], [0.5, 0.5]).touch is None
    both = mixed([trained, replace(of(5.0, "a"), touch=Touch(3.0, 0.3, 3.6, 0.3, 2))], [0.5, 0.5]).touch
    assert both is not None
    assert (both.layers_joules, both.code_joules, both.processes) == (2.0, pytest.approx(2.4), 2)


def test_memory_is_that_of_the_most_expensive_shape():
    cheap, expensive = of(1.0, "a"), of(5.0, "a")
    assert mixed([cheap, expensive], [0.9, 0.1]).follow_memory is expensive.follow_memory
