"""Whatever was measured, a baseline's estimate is a finite cost that is not negative."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.synthetic import conv, linear, random_chains

from ampere.baselines import METHODS, Evidence
from ampere.core import Layer, Network
from ampere.profiling.isolated import alone, operations, stages_of

LSTM = Layer("lstm", {"batch": 4, "length": 6, "layers": 1, "directions": 1, "bias": True}, 8, 16)
FAR = Network((conv(2000, 3000), linear(7, 5000), LSTM, Layer("nonparametric", {"batch": 4}, 1, 1)), 10)
FROZEN = Network((linear(4, 4), Layer("linear", {"lead": (2,), "bias": False}, 4, 4, trainable=False)), 2)

costs = st.floats(1e-7, 1e2)


def evidence(method, networks, drawn):
    """Of the sort that the method asks for, with costs that need not make any sense."""
    sort = METHODS[method].learns_from
    if sort in ("networks", "all", "sequential"):
        return [(n, "step", drawn(costs)) for n in networks]
    single = dict.fromkeys(layer for n in networks for layer in n.layers)
    if sort == "kernels":
        single = dict.fromkeys(o for layer in single for o in operations(layer))
    purpose = {"stages": "stage", "kernels": "kernel"}[sort]
    return [(alone(x, s, purpose).network, s, drawn(costs)) for x in single for s in stages_of(x)]


@pytest.mark.parametrize("method", sorted(name for name, method in METHODS.items() if not method.slow))
def test_answers_are_costs(method):
    @settings(max_examples=4 if method == "kernels" else 12, deadline=None)  # a forest takes long to grow
    @given(data=st.data())
    def holds(data):
        networks = random_chains(data.draw(st.integers(0, 99)), data.draw(st.integers(1, 5)), depth=2)
        known, stages, seconds = zip(*evidence(method, networks, data.draw), strict=True)
        answers = METHODS[method].fit(Evidence(known, stages, np.array(seconds)))([*networks, FAR, FROZEN])
        assert answers.shape == (len(networks) + 2,)
        assert np.all(np.isfinite(answers))
        assert np.all(answers >= 0)

    holds()


def test_methods_are_found_by_the_name_that_they_have():
    names = {"flops", "flops_intercept", "parameters", "layers", "physics", "roofline", "neuralpower", "kernels"}
    assert set(METHODS) == {*names, "simulation", "simulation_edge"}
    assert all(METHODS[name].name == name and METHODS[name].title for name in METHODS)
