"""The API does what the command line does: it finds, makes and extends profiles by itself."""

import inspect
from dataclasses import fields

import pytest
import torch
from tests.rounds import median_off
from torch import nn

import ampere
from ampere.api import Options, ensure_profile, resolve
from ampere.api.options import OptionKeywords
from ampere.core.errors import ModelError, ProfileError, UsageError
from ampere.devices.opening import DEVICE_TYPES
from ampere.devices.simulated import SimulatedWorker
from ampere.tracing import trace as tracing

XAVIER = "simulated:xavier"
IMAGES = torch.randn(10, 1, 28, 28)
OWN_CODE = """
import torch
from torch import nn

def build():
    model = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 24 * 24, 10))
    return model, torch.randn(10, 1, 28, 28)
"""


def small():
    return nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 24 * 24, 10))


class Doubled(nn.Module):
    """A layer that no table knows."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(6 * 24 * 24))

    def forward(self, x):
        return torch.fft.fft((x * self.weight).double()).real.float()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A profile of lenet5, in a file."""
    return ampere.profile("lenet5", device=XAVIER, out=tmp_path_factory.mktemp("made") / "lenet5.json")


@pytest.fixture
def counted(monkeypatch):
    """How often the device was opened and asked what it is, and how often a model was traced."""
    counts = {"opened": 0, "described": 0, "traced": 0}

    def count(name, function):
        def counting(*arguments, **named):
            counts[name] += 1
            return function(*arguments, **named)

        return counting

    monkeypatch.setitem(DEVICE_TYPES, "simulated", count("opened", DEVICE_TYPES["simulated"]))
    monkeypatch.setattr(SimulatedWorker, "hello", count("described", SimulatedWorker.hello))
    monkeypatch.setattr(tracing, "trace", count("traced", tracing.trace))
    return counts


# One way through.


def test_an_estimate_opens_and_describes_its_device_once_and_traces_the_model_once(counted):
    said = []
    estimate = ampere.estimate(small(), IMAGES, device=XAVIER, notice=said.append)
    assert "no profile of this device yet: making one" in said[0]
    assert counted == {"opened": 1, "described": 2, "traced": 1}  # the second hello is for its identity
    assert estimate.joules > 0


def test_a_model_in_a_file_is_traced_once_too(counted, tmp_path, monkeypatch):
    monkeypatch.setattr(SimulatedWorker, "block", None)  # it would trace what a real worker builds and trains
    (tmp_path / "net.py").write_text(OWN_CODE)
    model = resolve(f"{tmp_path}/net.py:build")
    assert model.source().original().network == model.network
    assert counted["traced"] == 1


def test_a_stored_profile_answers_without_profiling(made, counted, monkeypatch):
    monkeypatch.setattr("ampere.api.profiles.run_profiling", None)  # it must not be called
    estimate = ampere.estimate("lenet5", made.path, device=XAVIER)
    for profile in (made, made.profile, str(made.path)):
        assert estimate.joules == ampere.estimate("lenet5", profile=profile, device=XAVIER).joules
    assert counted["opened"] == 2, "a profile that is no file needs no device"


def test_a_device_is_opened_once_for_many_calls(counted):
    with ampere.device(XAVIER) as device:
        first = ampere.estimate("lenet5", device=device, seconds=60)
        again = ampere.estimate("lenet5", device=device, extend=False)
    assert first.joules == again.joules
    assert counted == {"opened": 1, "described": 2, "traced": 0}  # a family is traced when it is built


# What was profiled, and what is missing.


def test_the_profile_is_extended_for_another_model_and_the_notice_says_why():
    said = []
    options = Options(device=XAVIER, seconds=60, notice=said.append)
    first = ensure_profile("lenet5", options)
    assert first.path.exists()
    more = ensure_profile(small(), options, inputs=torch.randn(64, 1, 28, 28))
    assert said[1] == "profiling for 60 s more: batch 64 was not profiled"
    assert more.profile.spaces == ("lenet5", "Sequential")
    assert len(more.profile.observations) > len(first.profile.observations)


def test_another_setup_is_named_in_the_notice():
    said = []
    ampere.estimate("lenet5", device=XAVIER, seconds=60)
    ampere.estimate("lenet5", device=XAVIER, seconds=60, optimizer="AdamW", threads=2, notice=said.append)
    assert said == ["no profile of this device with AdamW and 2 threads yet: making one in 60 s, once"]
    with pytest.raises(ProfileError, match=r"with bfloat16 yet: make one with `ampere profile MODEL --dtype bfloat16"):
        ampere.estimate("lenet5", device=XAVIER, dtype="bf16", extend=False)


def test_without_profiling_a_missing_profile_is_an_error():
    with pytest.raises(ProfileError, match="no profile of this device yet: make one with `ampere profile MODEL --dev"):
        ampere.estimate("lenet5", device=XAVIER, extend=False)


def test_a_profile_that_is_given_is_used_as_it_is_and_must_fit(made):
    with pytest.raises(UsageError, match="was made with optimizer sgd, not adamw"):
        ampere.estimate("lenet5", made.path, device=XAVIER, optimizer="AdamW")
    with pytest.raises(ProfileError, match="of another device"):
        ampere.estimate("lenet5", made.path, device="simulated:tx2")
    assert ampere.estimate("lenet5", made.path, device="simulated:tx2", allow_other_device=True).joules > 0


# Any model.


def test_a_live_module_is_estimated_profiled_and_measured():
    model = small()
    profiled = ampere.profile(model, IMAGES, device=XAVIER, seconds=60)
    assert profiled.profile.spaces == ("Sequential",)
    estimate = ampere.estimate(model, IMAGES, device=XAVIER, extend=False)
    measured = ampere.measure(model, IMAGES, device=XAVIER)
    assert not measured.own_code, "it was built from its layers, and says so"
    assert measured.joules == pytest.approx(estimate.joules, rel=0.15)
    assert measured.estimate.joules == pytest.approx(estimate.joules)
    assert model[0].weight.grad is None


def test_models_may_be_given_in_every_way(made, tmp_path):
    (tmp_path / "net.py").write_text(OWN_CODE)
    by_name = ampere.estimate(f"{tmp_path}/net.py:build", made.profile).joules
    network = ampere.trace(small(), IMAGES)
    for model, inputs in (
        (small(), IMAGES),
        ((small(), IMAGES), None),
        (small(), "10x1x28x28"),
        (lambda: (small(), IMAGES), None),
        (small, IMAGES),
        (network, None),
        (ampere.load_model(f"{tmp_path}/net.py:build"), None),
    ):
        assert ampere.estimate(model, inputs, profile=made.profile).joules == pytest.approx(by_name)


def test_batches_of_several_shapes_are_averaged(made):
    small, large = (ampere.estimate("lenet5", f"{batch}x1x28x28", profile=made).joules for batch in (10, 20))
    found = ampere.estimate("lenet5", "3*10x1x28x28 | 1*20x1x28x28", profile=made)
    assert found.joules == pytest.approx(0.75 * small + 0.25 * large)
    assert sum(layer.joules for layer in found.layers) == pytest.approx(found.joules)
    assert found == ampere.estimate("lenet5", [("10x1x28x28", 3), ("20x1x28x28", 1)], profile=made)


WHOLE_STEP = (
    OWN_CODE
    + """
model, x = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def train_step():
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), torch.arange(10))
    loss.backward()
    optimizer.step()
    return loss
"""
)


def test_a_step_of_ones_own_is_estimated_and_measured(made, tmp_path):
    (tmp_path / "job.py").write_text(WHOLE_STEP)
    step, model = f"{tmp_path / 'job.py'}:train_step", f"{tmp_path / 'job.py'}:build"
    found = ampere.estimate(step, profile=made, device=XAVIER)
    assert found.joules == pytest.approx(ampere.estimate(model, profile=made, device=XAVIER).joules, rel=0.05)
    assert found.memory is not None
    measured = ampere.measure(step, profile=made, device=XAVIER, seconds=2)
    assert measured.own_code
    assert measured.difference == pytest.approx(0, abs=0.3)
    assert "taken for a whole training step of model, updated with SGD" in resolve(step).network.notes[0]


def test_what_a_step_does_itself_cannot_be_named(tmp_path):
    (tmp_path / "job.py").write_text(WHOLE_STEP)
    step = f"{tmp_path / 'job.py'}:train_step"
    for field, value in (("optimizer", "adam"), ("dtype", "bfloat16")):
        with pytest.raises(UsageError, match=f"in its own way: leave out --{field}"):
            ampere.estimate(step, device=XAVIER, **{field: value})
    with pytest.raises(ModelError, match="only a model can be pruned"):
        ampere.prune(step, budget="50%", device=XAVIER)
    with pytest.raises(UsageError, match="leave out --evaluation"):
        ampere.measure(step, device="local", evaluation=True)


def test_what_is_no_model_is_refused():
    with pytest.raises(UsageError, match="int is no model"):
        resolve(3)
    with pytest.raises(ModelError, match="Sequential"):
        resolve(small())  # without inputs


def test_a_layer_that_only_its_code_knows_is_estimated_and_named_but_not_measured():
    model = nn.Sequential(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.Flatten(), Doubled(), nn.Linear(6 * 24 * 24, 10))
    estimate = ampere.estimate(model, IMAGES, device=XAVIER, seconds=60)
    assert estimate.unprofiled == ("3",)
    with pytest.raises(ModelError, match=r"1 layer is known by its own code only.*file\.py:function"):
        ampere.measure(model, IMAGES, device=XAVIER)


# Results.


def test_the_setup_is_part_of_every_result(made):
    estimate = ampere.estimate("lenet5", made.profile)
    assert (estimate.setup, estimate.batch) == (ampere.TrainingSetup(), 10)
    record = estimate.to_json()
    assert record["setup"] == {"runtime": "torch", "optimizer": "sgd", "dtype": "float32", "threads": 1, "on": "cpu"}
    assert (record["batch"], record["device"]) == (10, "simulated Jetson AGX Xavier")
    assert made.to_json()["setup"] == record["setup"]
    measured = ampere.measure("lenet5", made.profile, device=XAVIER).to_json()
    assert {key: measured[key] for key in ("setup", "batch", "device")} == {
        key: record[key] for key in ("setup", "batch", "device")
    }


def test_results_are_shown_in_a_notebook(made):
    estimate = ampere.estimate("lenet5", made.profile)
    shown = estimate._repr_html_()
    assert "lenet5: " in shown
    assert "torch, sgd, float32, 1 thread, batch 10" in shown
    assert shown.count("<tr>") == 1 + len(estimate.layers)
    assert "measurements" in made._repr_html_()
    assert "measured" in ampere.measure("lenet5", made.profile, device=XAVIER)._repr_html_()


def test_results_are_data_frames(made):
    pytest.importorskip("pandas")
    estimate = ampere.estimate("lenet5", made.profile)
    assert estimate.to_frame().joules.sum() == pytest.approx(estimate.joules)
    assert len(made.to_frame()) == len(made.profile.observations)
    assert list(ampere.measure("lenet5", made.profile, device=XAVIER).to_frame().what) == ["measured", "estimated"]


def test_progress_is_one_record(tmp_path):
    seen = []
    ampere.profile("lenet5", device=XAVIER, seconds=60, progress=seen.append)
    assert {p.task for p in seen} == {"profiling lenet5"}
    assert all(0 <= p.done <= 1.5 * p.total for p in seen)
    assert "measurements" in seen[-1].text


# What estimates are used for.


def test_two_models_are_compared_on_the_device():
    found = ampere.compare("lenet5", (small(), IMAGES), device=XAVIER, seconds=60)
    assert len(found.devices) == 1
    assert found.to_json()["models"] == ["lenet5", "Sequential"]
    with pytest.raises(UsageError, match="lenet5 alone is compared with nothing"):
        ampere.compare("lenet5", device=XAVIER)


def test_one_model_is_ranked_over_profiles(made):
    adam = ampere.profile("lenet5", device=XAVIER, seconds=60, optimizer="adam")
    ranking = ampere.compare("lenet5", made, adam.profile)
    assert ranking.to_json()["model"] == "lenet5"
    same = ampere.compare("lenet5", profiles=[made.path, adam.path])
    assert same.to_json()["cheapest"] == ranking.to_json()["cheapest"]


def test_a_report_is_about_the_devices_own_profile(tmp_path):
    made = ampere.report("lenet5", device=XAVIER, seconds=60, out=tmp_path / "r.html", iterations=1000)
    assert made.charts
    assert (tmp_path / "r.html").stat().st_size > 10_000


def test_a_model_is_pruned_checked_saved_and_loaded_again(tmp_path):
    pytest.importorskip("torch_pruning")
    pruned = ampere.prune("cnn5", budget="60%", device=XAVIER, seconds=60, out=tmp_path / "pruned.json")
    assert pruned.measured.share <= 0.62
    assert not pruned.unmeasured
    loaded = ampere.load_pruned(tmp_path / "pruned.json", ampere.load_model("cnn5").model)
    assert [p.shape for p in loaded.parameters()] == [p.shape for p in pruned.model.parameters()]


def test_a_budget_must_be_given():
    with pytest.raises(UsageError, match="a budget is missing"):
        ampere.prune("lenet5", device=XAVIER)


def test_a_search_makes_its_profile(home):
    found = ampere.search("lenet5", "97%", device=XAVIER, seconds=60, trials=0, candidates=1000)
    assert found.screened > 0
    assert len(list((home / "profiles").glob("simulated-xavier-*.json"))) == 1


def test_validation_makes_the_profiles_of_baselines(home):
    methods = ["additive", "sequential"]
    found = ampere.validate("lenet5", device=XAVIER, seconds=60, methods=methods, networks=3, rounds=1)
    assert set(found.mape) == set(methods)
    assert len(list((home / "profiles").glob("simulated-xavier-*.json"))) == 2


def test_options_and_keywords_are_the_same_names_with_the_same_defaults():
    names = {field.name: field.default for field in fields(Options)}
    assert set(OptionKeywords.__annotations__) == set(names)
    for function in (ampere.estimate, ampere.profile, ampere.measure):
        for name, parameter in inspect.signature(function).parameters.items():
            if name in names and (function, name) != (ampere.measure, "seconds"):
                assert parameter.default == names[name], f"{function.__name__}({name}=)"


def test_nonsense_is_refused_at_once():
    for wrong in ({"allocator": "sytem"}, {"timing": "sundial"}, {"seconds": 0}, {"watts_per_core": -1.0}):
        with pytest.raises(UsageError):
            Options(**wrong)
    with ampere.device(XAVIER) as device, pytest.raises(UsageError, match="belongs to a device that is open already"):
        ampere.estimate("lenet5", device=device, meter="cpu-time")


# For real.


@pytest.mark.measured
def test_a_live_module_on_this_machine():
    model = small()

    def measured(device):
        found = ampere.measure(model, IMAGES, device=device, seconds=1)
        assert found.meter == estimate.meter
        return found

    with ampere.device() as device:
        estimate = ampere.estimate(model, IMAGES, device=device, seconds=3)
        assert median_off(0.5, lambda: estimate.joules / measured(device).joules - 1, rounds=5) <= 0.5
