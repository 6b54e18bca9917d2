"""One profile a device: made without a model, used for any; and extending it makes no other model's estimate worse."""

from random import Random
from statistics import median

import pytest

import ampere
from ampere.api import Options, ensure_profile, profiles, resolve
from ampere.devices.simulated import SimulatedWorker
from ampere.profiling.observing import block_seconds, iterations_of

SERVER, QUICK = "simulated:server", "simulated:xavier"
FAMILIES = ("lenet5", "har", "lstm")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path / "home"))


def off(estimator: ampere.Estimator, name: str) -> tuple[float, float]:
    """The relative error of a family's original, and the relative standard deviation that the estimate has."""
    network = resolve(name).network
    found, truth = estimator.estimate(network), SimulatedWorker("server").truth(network).total.joules
    return found.joules / truth - 1, found.stddev / found.joules


def test_a_profile_without_a_model_answers_for_any_model(tmp_path):
    made = ampere.profile(device=SERVER)  # for as long as its slow counter needs
    assert made.profile.spaces == ("device",)
    assert not made.refused
    others = [ampere.profile(device=SERVER, seed=seed, out=tmp_path / f"{seed}.json") for seed in (1, 2, 3)]
    estimators = [ampere.Estimator(one.profile) for one in (made, *others)]  # one or two may have luck, or none
    names = ("cnn5", "resnet", "transformer", *FAMILIES)
    assert median(abs(off(estimator, name)[0]) for estimator in estimators for name in names) < 0.25
    known = ensure_profile("transformer", Options(device=SERVER, extend=False))
    assert known.profile.spaces == ("device",)
    again = ampere.profile(device=SERVER, once=True)
    assert again.seconds == 0, "the device is known already"
    assert again.measurements == made.measurements


def test_without_a_model_it_takes_two_minutes_unless_said_otherwise(monkeypatch):
    asked = []

    def run_profiling(device, subject, options, **more):
        asked.append((subject.name, options.seconds))

    monkeypatch.setattr("ampere.api.estimating.run_profiling", run_profiling)
    ampere.profile(device="local")
    ampere.profile(device="local", seconds=30)
    assert asked == [("device", 120.0), ("device", 30)]


def test_a_step_of_a_second_fits_into_a_profile():
    for allocator in ("tuned", "system"):
        assert iterations_of(allocator, 0.1)[0] >= 4
        assert sum(iterations_of(allocator, 1.0)) <= 4
        assert block_seconds(allocator, 1.0, 0.002) < 5.0


@pytest.mark.parametrize("seed", [1, 2])
def test_extending_a_profile_makes_no_other_model_worse(seed, tmp_path):
    """A model that was estimated within its interval stays there, and one that was not comes no further from it."""
    order, before = Random(seed).sample(FAMILIES, len(FAMILIES)), dict[str, float]()
    for number, name in enumerate(order):
        made = ampere.profile(name, device=SERVER, seconds=60, out=tmp_path / "profile.json", seed=seed)
        estimator = ampere.Estimator(made.profile)
        for known in order[: number + 1]:
            error, stddev = off(estimator, known)
            allowed = max(2.6 * stddev, before.get(known, 0.15))
            assert abs(error) <= allowed, f"{known} after {', '.join(order[: number + 1])}"
            assert abs(error) < 0.15
            before[known] = abs(error)


def test_a_second_setup_starts_from_the_first_and_takes_ten_seconds(monkeypatch):
    """Another optimizer or precision: what they share is learnt once."""
    first = ampere.profile("lenet5", device=QUICK, seconds=30)
    said, sources = [], []
    run = profiles.run_profiling

    def noted(device, subject, options, **more):
        sources.extend(more.get("sources", ()))
        return run(device, subject, options, **more)

    monkeypatch.setattr(profiles, "run_profiling", noted)
    monkeypatch.setattr(profiles, "profiling_seconds", lambda *_: profiles.USUAL_SECONDS)  # as with a quick counter
    known = ensure_profile("lenet5", Options(device=QUICK, optimizer="adam", notice=said.append))
    assert said == ["no profile of this device with Adam yet: making one in 10 s, once"]
    assert [source.observations for source in sources] == [first.profile.observations]
    assert known.profile.setup.optimizer == "adam"
    assert known.estimate.stddev < 0.3 * known.estimate.joules
