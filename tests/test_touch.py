"""A touch: a user's own code is trained for a few seconds, stored with the profile, and combined with its layers."""

from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest
import torch
from torch import nn

import ampere
from ampere.api import Options, ensure_profile
from ampere.core.errors import UsageError
from ampere.devices import VariantFailed
from ampere.devices.simulated import SimulatedWorker
from ampere.storage import Journal, Profile, journal_path, profile_from

XAVIER = "simulated:xavier"
OWN_CODE = """
import torch
from torch import nn

def build(width=6):
    model = nn.Sequential(nn.Conv2d(1, width, 5), nn.ReLU(), nn.Flatten(), nn.Linear(width * 24 * 24, 10))
    return model, torch.randn(10, 1, 28, 28)
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def home_with_a_profile(tmp_path_factory):
    """Made once: each test gets a copy."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AMPERE_HOME", str(home))
        ampere.profile("lenet5", device=XAVIER, seconds=30)
    return home


@pytest.fixture
def made(home, home_with_a_profile) -> Path:
    """The file of a profile of LeNet-5, in its usual place."""
    copytree(home_with_a_profile, home)
    [path] = home.glob("profiles/*.json")
    return path


@pytest.fixture
def model(tmp_path) -> str:
    (tmp_path / "net.py").write_text(OWN_CODE)
    return f"{tmp_path / 'net.py'}:build"


@pytest.fixture
def more_expensive(monkeypatch):
    """A device on which a user's own code costs half as much again as its description."""
    block = SimulatedWorker.block

    def slower(self, workload, *arguments, **named):
        found = block(self, workload, *arguments, **named)
        if not str(workload.get("factory", "")).endswith("net.py:build"):
            return found
        more = [(1.5 * w.busy_seconds, w.joules and 1.5 * w.joules) for w in found.target]
        target = [w._replace(busy_seconds=b, joules=j) for w, (b, j) in zip(found.target, more, strict=True)]
        return replace(found, target=tuple(target))

    monkeypatch.setattr(SimulatedWorker, "block", slower)


def test_a_touch_is_stored_once_and_used_from_then_on(model, more_expensive, monkeypatch, made):
    options = Options(device=XAVIER)
    before = ensure_profile("lenet5", options).estimate
    found = ensure_profile(model, options, touch=2.0)
    assert found.estimate.touch is not None
    assert found.estimate.touch.factor == pytest.approx(1.5, rel=0.3)
    assert found.estimate.joules > found.estimate.touch.layers_joules
    assert found.path is not None
    stored = Profile.load(found.path)
    assert {o.purpose for o in stored.touches} == {"touch"}
    assert stored.touches == found.touches == profile_from(journal_path(found.path)).touches
    assert stored.observations == found.profile.observations
    assert ensure_profile("lenet5", options).estimate == before, "no other model's estimate has changed"
    monkeypatch.setattr("ampere.api.touching.rounds_of", None)  # it must not be called again
    again = ampere.estimate(model, device=XAVIER)
    assert again.joules == pytest.approx(found.estimate.joules)
    assert again.touch == found.estimate.touch


def test_profiling_more_keeps_what_was_touched(model, made):
    found = ensure_profile(model, Options(device=XAVIER), touch=1.0)
    more = ampere.profile("har", device=XAVIER, seconds=10).profile
    assert more.touches == found.profile.touches
    assert len(more.touches) > 0


def test_a_profile_that_is_given_is_used_but_not_changed(model, made):
    content = made.read_bytes()
    for profile in (made, Profile.load(made)):
        assert ampere.estimate(model, profile=profile, device=XAVIER, touch=1.0).touch is not None
        assert ampere.estimate(model, profile=profile, device=XAVIER).touch is None
    assert made.read_bytes() == content


def test_a_profile_that_another_process_writes_to_is_left_alone(model, made):
    said = []
    with Journal(journal_path(made)):
        found = ampere.estimate(model, device=XAVIER, touch=1.0, notice=said.append)
    assert found.touch is not None
    assert any("what its own code showed is not stored" in line for line in said)
    assert Profile.load(made).touches == ()


def test_what_has_no_code_that_runs_there_is_refused(model, made):
    live = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    for subject in (live, ampere.trace(live, torch.randn(10, 1, 28, 28))):
        inputs = torch.randn(10, 1, 28, 28) if subject is live else None
        with pytest.raises(UsageError, match=r"cannot be trained on simulated:xavier: leave out --touch"):
            ampere.estimate(subject, inputs, profile=made, device=XAVIER, touch=1.0)
    for seconds in (-1.0, 1e9, float("nan")):
        with pytest.raises(UsageError, match="must be between 0 and 600"):
            ampere.estimate(model, profile=made, touch=seconds)


def test_code_that_fails_leaves_the_layers_estimate_unless_it_was_asked_for(model, made, monkeypatch):
    def failing(*arguments, **named):
        raise VariantFailed("the model cannot be trained: its loss is on the moon")

    monkeypatch.setattr("ampere.api.touching.rounds_of", failing)
    monkeypatch.setattr("ampere.api.touching._usual_seconds", lambda *_: 5.0)  # as on the local device
    said = []
    assert ampere.estimate(model, device=XAVIER, notice=said.append).touch is None
    assert any("by its layers alone" in line and "on the moon" in line for line in said)
    with pytest.raises(VariantFailed, match="on the moon"):
        ampere.estimate(model, device=XAVIER, touch=1.0)


def test_without_being_asked_nothing_is_trained_elsewhere(model, made, monkeypatch):
    monkeypatch.setattr("ampere.api.touching.rounds_of", None)
    assert ampere.estimate(model, device=XAVIER).touch is None
    assert ampere.estimate("lenet5", Profile.load(made)).touch is None


@pytest.mark.measured
def test_own_code_on_this_machine(model, home):
    """For real: an estimate from a profile that never saw the model, and fresh processes that train its own code."""
    ampere.profile("lenet5", seconds=2)
    tasks = []
    found = ampere.estimate(model, touch=1.0, progress=lambda p: tasks.append(p.task))
    assert found.touch is not None
    assert 1 <= found.touch.processes <= 3
    assert 0 < found.touch.code_joules < 10
    assert "training net:build itself" in tasks
    if found.memory.seen:  # the system says what processes take
        assert found.memory.seen.processes == found.touch.processes
        assert found.memory.bytes == pytest.approx(found.memory.seen.bytes)
        assert 0.5 < found.memory.bytes / found.memory.traced_bytes < 2
        assert ampere.estimate(model).memory == found.memory, "it is stored with the touch"
    [path] = Path(home).glob("profiles/*.json")
    assert len(Profile.load(path).touches) == found.touch.processes
    live = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    with_operations = ampere.estimate(live, torch.randn(10, 1, 28, 28), touch=0.5)
    assert with_operations.touch is not None, "a model that exists in this process only is trained by its operations"
