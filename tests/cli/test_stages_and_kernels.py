"""Stages and kernels through the command line: really measured here, and on a simulated device."""

from collections import Counter

import pytest

from ampere.estimation.kernel_forests import operation_kind
from ampere.storage.profile import Profile


@pytest.fixture
def profiled_by(here, tmp_path):
    def run(method, *more, seconds=6):
        place = tmp_path / f"{method}.json"
        ran = here("profile", "lenet5", "--method", method, "--seconds", seconds, "--out", place, "--json", *more)
        assert ran.code == 0, ran.err
        return ran.record, Profile.load(place)

    return run


def test_every_stage_of_lone_layers_is_measured(profiled_by):
    record, profile = profiled_by("stages")
    assert (record["method"], record["refused"]) == ("stages", [])
    assert {o.purpose for o in profile.observations} == {"stage"}
    assert all(len(o.network.layers) == 1 for o in profile.observations)
    stages = Counter(o.stage for o in profile.observations)
    assert stages.keys() == {"forward", "backward", "update"}
    assert max(stages.values()) - min(stages.values()) <= 1


def test_every_kind_of_operation_is_measured(profiled_by):
    record, profile = profiled_by("kernels", seconds=12)  # an operation after the other, each several times
    assert (record["method"], record["refused"]) == ("kernels", [])
    kinds = {operation_kind(o.network.layers[0]) for o in profile.observations}
    assert {"conv", "linear", "tail.elementwise", "tail.pool"} <= kinds


@pytest.mark.parametrize("method", ["stages", "kernels"])
def test_a_simulated_device_has_stages_too(profiled_by, method):
    record, profile = profiled_by(method, "--device", "simulated:xavier", seconds=20)
    assert record["refused"] == []
    assert {o.stage for o in profile.observations} == {"forward", "backward", "update"}


def test_stages_are_not_timed_by_the_clock(here, refused):
    ran = here("profile", "lenet5", "--method", "kernels", "--timing", "wallclock", "--seconds", 9)
    refused(ran, 2, "kernels", "--timing")
