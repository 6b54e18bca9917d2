"""PyTorch's yardstick beside a runtime's own: timed in turn, kept, and left out where there is none."""

from dataclasses import replace
from pathlib import Path

import pytest

import ampere
from ampere.devices import Yardstick, describe
from ampere.errors import RuntimeMissingError
from ampere.network import TrainingSetup
from ampere.profiles import Header, Profile, header_from, journal_path
from ampere.profiling.common_yardstick import ROUNDS, timed_in_turn, torch_beside
from ampere.worker.runtimes import description_of, installed

KNOWN = Profile.load(Path(__file__).parents[1] / "fixtures" / "profile-format-1.json")
SECONDS = {"mnn": 6, "jax": 12}  # which compiles
OTHER = next((runtime for runtime in SECONDS if runtime in installed()), None)
WITH_TORCH = replace(describe("simulated:xavier", 5.0), runtimes=("torch", "jax"))
HEADER = replace(Header.of(KNOWN), setup=TrainingSetup("jax"), yardstick_seconds=1e-3)


class Steps:
    """Yardsticks of such costs, one after the other."""

    def __init__(self, *costs, joules=None):
        self.costs, self.joules, self.closed, self.asked = list(costs), joules, False, []

    def yardstick(self, seconds, threads, runtime, power=False):
        self.asked.append(runtime)
        cost = self.costs.pop(0)
        return Yardstick(cost, cost, cost, cost, 20, self.joules)

    def close(self):
        self.closed = True


def test_it_is_told_in_the_condition_that_the_profile_refers_to():
    """Which is twice as quick as the machine is while both are timed, and once it is slower still."""
    own, torch = Steps(2e-3, 2e-3, 6e-3, 2e-3), Steps(5e-3, 3e-3, 3e-3, 9e-3, 3e-3)
    timed = timed_in_turn(HEADER, own, torch)
    assert timed.common_yardstick_seconds == pytest.approx(1.5e-3)
    assert timed.common_yardstick_joules is None
    assert (own.asked, torch.asked) == (["jax"] * ROUNDS, ["torch"] * (1 + ROUNDS))
    assert torch.closed
    assert not own.closed


def test_joules_where_a_counter_reads_them():
    own, torch = Steps(*[1e-3] * ROUNDS, joules=0.02), Steps(*[1e-3] * (1 + ROUNDS), joules=0.03)
    timed = timed_in_turn(replace(HEADER, yardstick_joules=0.01), own, torch)
    assert timed.common_yardstick_joules == pytest.approx(0.015)


def test_what_is_known_is_not_timed_again():
    known = replace(KNOWN, common_yardstick_seconds=2e-3)
    with torch_beside("local", 5.0, WITH_TORCH, description_of("jax"), known) as torch:
        assert torch is None


def test_a_broken_pytorch_ends_nothing():
    class Broken(Steps):
        def yardstick(self, *how):
            raise RuntimeMissingError("PyTorch is not installed where the worker runs")

    torch = Broken()
    assert timed_in_turn(HEADER, Steps(*[1e-3] * ROUNDS), torch) == HEADER
    assert torch.closed


@pytest.mark.parametrize(
    ("on", "runtime", "there"),
    [
        ("local", "torch", ("torch", "jax")),
        ("local", "torch-compile", ("torch", "jax")),
        ("local", "jax", ("jax",)),
        ("simulated:xavier", "jax", ("torch", "jax")),
        ("tcp://localhost:1", "jax", ("torch", "jax")),
    ],
)
def test_where_it_is_not_timed(on, runtime, there):
    described = replace(WITH_TORCH, runtimes=there)
    with torch_beside(on, 5.0, described, description_of(runtime), None) as torch:
        assert torch is None


@pytest.fixture(name="made", scope="module")
def a_real_profile_of_another_runtime(tmp_path_factory):
    if OTHER is None:
        pytest.skip("neither MNN nor JAX is installed: pip install 'ampere-energy[mnn]'")
    out = tmp_path_factory.mktemp("profiles") / "other.json"
    return ampere.profile("lenet5", seconds=SECONDS[OTHER], out=out, setup=TrainingSetup(OTHER))


def test_a_real_profile_keeps_it_and_is_ranked_beside_pytorchs(made, tmp_path):
    common, own = made.profile.common_yardstick_seconds, made.profile.yardstick_seconds
    assert 0.1 < common / own < 10
    assert header_from(journal_path(made.path)).common_yardstick_seconds == common
    assert Profile.load(made.path).common_yardstick_seconds == common
    torch = ampere.profile("lenet5", seconds=4, out=tmp_path / "torch.json").profile
    assert torch.common_yardstick_seconds is None
    moved = {place.name: place.moved for place in ampere.compare("lenet5", torch, made.profile).places}[OTHER]
    assert moved.factor == pytest.approx(torch.yardstick_seconds / common)
    assert 0.2 < moved.factor < 5
    assert not moved.doubt


def test_a_profile_from_before_gets_it_when_it_is_extended(made, tmp_path):
    """In its own condition, here one that was ten times as slow."""
    before = 10 * made.profile.yardstick_seconds
    replace(made.profile, common_yardstick_seconds=None, yardstick_seconds=before).save(tmp_path / "before.json")
    again = ampere.profile("lenet5", seconds=2, out=tmp_path / "before.json", setup=made.profile.setup).profile
    assert again.yardstick_seconds == before
    assert 5 < again.common_yardstick_seconds / made.profile.common_yardstick_seconds < 20
