"""PyTorch's yardstick beside a runtime's own: timed in turn, kept, and left out where there is none."""

from dataclasses import replace
from pathlib import Path

import pytest

import ampere
from ampere.core import Meter, TrainingSetup
from ampere.core.errors import RuntimeMissingError
from ampere.devices import Device, Yardstick
from ampere.profiling import common_yardstick, running
from ampere.profiling.common_yardstick import ROUNDS, with_common_yardstick
from ampere.runtimes import description_of, installed
from ampere.storage import Header, Profile, header_from, journal_path

KNOWN = Profile.load(Path(__file__).parents[1] / "fixtures" / "profile-format-2.json")
SECONDS = {"mnn": 5, "jax": 10}  # which compiles
OTHER = next((runtime for runtime in SECONDS if runtime in installed()), None)
WITH_TORCH = replace(Device("simulated:xavier").described, runtimes=("torch", "jax"), identity={"torch": "2.13.0"})
HEADER = replace(Header.of(KNOWN), setup=TrainingSetup("jax"), yardstick_seconds=1e-3)


class Steps:
    """Yardsticks of such costs, one after the other."""

    def __init__(self, *costs, joules=None):
        self.costs, self.joules, self.asked, self.counted = list(costs), joules, [], []

    def yardstick(self, seconds, threads, runtime, power=False, count=True):
        self.asked.append(runtime)
        self.counted.append(count)
        cost = self.costs.pop(0)
        return Yardstick(cost, cost, 20, self.joules if count else None)


class Broken(Steps):
    def yardstick(self, seconds, threads, runtime, power=False, count=True):
        self.asked.append(runtime)
        raise RuntimeMissingError("PyTorch is not installed where the worker runs")


@pytest.fixture(name="beside")
def a_device_with_pytorch(monkeypatch):
    """Its yardsticks are those given, and it is closed when they are over."""
    monkeypatch.setattr(common_yardstick, "_failed", set())
    closed = []

    def timed(header, own, torch, on="local", runtime="jax", there=WITH_TORCH):
        device = Device(on)
        device.described = there
        device.start = lambda watts: {"tuned": torch}
        torch.close = lambda: closed.append(on)
        return with_common_yardstick(header, own, device, 5.0, description_of(runtime))

    timed.closed = closed
    return timed


def test_it_is_reported_in_the_condition_that_the_profile_refers_to(beside):
    """Which is twice as quick as the machine is while both are timed, and once it is slower still."""
    own, torch = Steps(*[2e-3, 2e-3, 6e-3, 2e-3] * 2), Steps(5e-3, *[3e-3, 3e-3, 9e-3, 3e-3] * 2)
    timed = beside(HEADER, own, torch)
    assert timed.common_yardstick_seconds == pytest.approx(1.5e-3)
    assert timed.common_yardstick_joules is None
    assert (own.asked, torch.asked) == (["jax"] * ROUNDS, ["torch"] * (1 + ROUNDS))
    assert beside.closed == ["local"]


def test_neighbours_that_come_and_go_do_not_make_one_of_them_more_expensive(beside):
    own, torch = (3, 2, 3, 3, 2, 3, 3, 3), (2, 3, 2, 2, 3, 2, 2, 3)
    timed = beside(HEADER, Steps(*[1e-3 * ms for ms in own]), Steps(5e-3, *[1e-3 * ms for ms in torch]))
    assert timed.common_yardstick_seconds == pytest.approx(1e-3)


def test_joules_where_a_counter_reads_them(beside):
    own, torch = Steps(*[1e-3] * ROUNDS, joules=0.02), Steps(*[1e-3] * (1 + ROUNDS), joules=0.03)
    timed = beside(replace(HEADER, yardstick_joules=0.01), own, torch)
    assert timed.common_yardstick_joules == pytest.approx(0.015)
    assert torch.counted == [False] + [True] * ROUNDS  # nobody asks what starting it costs


def test_a_slow_meter_is_not_waited_for(beside):
    slow = replace(HEADER, yardstick_joules=0.01, meter=Meter("adb", True, "the whole phone", window_seconds=60.0))
    own, torch = Steps(*[2e-3] * ROUNDS, joules=0.02), Steps(*[3e-3] * (1 + ROUNDS), joules=0.03)
    timed = beside(slow, own, torch)
    assert not any(own.counted + torch.counted)
    assert timed.common_yardstick_seconds == pytest.approx(1.5e-3)
    assert timed.common_yardstick_joules is None


def test_the_version_that_it_was_timed_with_is_kept(beside):
    """Where a profile is extended, its device was described when there was another one."""
    before = {**HEADER.device, "torch": "2.12.0", "runtimes": {"torch": "2.12.0", "jax": "0.6"}}
    timed = beside(replace(HEADER, device=before), Steps(*[1e-3] * ROUNDS), Steps(*[1e-3] * (1 + ROUNDS)))
    assert timed.device == {**before, "torch": "2.13.0", "runtimes": {"torch": "2.13.0", "jax": "0.6"}}


def test_a_broken_pytorch_ends_nothing_and_is_not_asked_again(beside):
    torch = Broken()
    for _ in range(2):
        assert beside(HEADER, Steps(*[1e-3] * ROUNDS), torch) == HEADER
    assert torch.asked == ["torch"]


@pytest.mark.parametrize(
    ("on", "runtime", "there", "changed"),
    [
        ("local", "torch", ("torch", "jax"), {}),
        ("local", "torch-compile", ("torch", "jax"), {}),
        ("local", "jax", ("jax",), {}),
        ("simulated:xavier", "jax", ("torch", "jax"), {}),
        ("tcp://localhost:1", "jax", ("torch", "jax"), {}),
        ("local", "jax", ("torch", "jax"), {"common_yardstick_seconds": 2e-3}),
        ("local", "jax", ("torch", "jax"), {"timing": "wallclock"}),
    ],
)
def test_where_it_is_not_timed(beside, on, runtime, there, changed):
    own, torch, header = Steps(), Steps(), replace(HEADER, **changed)
    assert beside(header, own, torch, on, runtime, replace(WITH_TORCH, runtimes=there)) is header
    assert not torch.asked


@pytest.fixture(name="made", scope="module")
def a_real_profile_of_another_runtime(tmp_path_factory):
    if OTHER is None:
        pytest.skip("neither MNN nor JAX is installed: pip install 'ampere-energy[mnn]'")
    out = tmp_path_factory.mktemp("profiles") / "other.json"
    return ampere.profile("lenet5", seconds=SECONDS[OTHER], out=out, runtime=OTHER)


def test_a_real_profile_keeps_it_and_is_ranked_beside_pytorchs(made, tmp_path):
    common, own = made.profile.common_yardstick_seconds, made.profile.yardstick_seconds
    assert 0.1 < common / own < 10
    assert header_from(journal_path(made.path)).common_yardstick_seconds == common
    assert Profile.load(made.path).common_yardstick_seconds == common
    torch = ampere.profile("lenet5", seconds=3, out=tmp_path / "torch.json").profile
    assert torch.common_yardstick_seconds is None
    moved = ampere.compare("lenet5", torch, made.profile).entry(OTHER).normalized
    assert moved.factor == pytest.approx(torch.yardstick_seconds / common)
    assert 0.2 < moved.factor < 5
    assert not moved.caveat


def test_a_profile_from_before_gets_it_when_it_is_extended(made, tmp_path):
    """In its own condition, here one that was ten times as slow."""
    before = 10 * made.profile.yardstick_seconds
    replace(made.profile, common_yardstick_seconds=None, yardstick_seconds=before).save(tmp_path / "before.json")
    again = ampere.profile("lenet5", seconds=2, out=tmp_path / "before.json", runtime=OTHER).profile
    now, then = (p.common_yardstick_seconds / p.yardstick_seconds for p in (again, made.profile))
    assert 0.5 < now / then < 2


def test_a_header_that_did_not_change_is_not_written_again(made, monkeypatch, tmp_path):
    for step in ("with_common_yardstick", "at_typical_speed"):
        monkeypatch.setattr(running, step, lambda header, *_: header)
    again = ampere.profile("lenet5", seconds=2, out=tmp_path / "other.json", runtime=OTHER)
    assert journal_path(again.path).read_text().count('"header"') == 1
