"""Training setups: what people write is understood, what no runtime has is refused by name."""

import pytest

from ampere.core import TrainingSetup
from ampere.core.errors import WorkerError
from ampere.core.optimizers import OPTIMIZERS, find_optimizer, optimizers_of
from ampere.runtimes import find_runtime
from ampere.runtimes.table import OURS
from ampere.storage.places import default_path, stored_setups


@pytest.mark.parametrize(("written", "name"), [("AdamW", "adamw"), ("SGD", "sgd"), ("RMSprop", "rmsprop")])
def test_optimizers_are_known_in_any_case(written, name):
    assert TrainingSetup(optimizer=written) == TrainingSetup(optimizer=name)


@pytest.mark.parametrize(("written", "name"), [("bf16", "bfloat16"), ("FP32", "float32"), ("Float32", "float32")])
def test_types_are_known_by_their_short_names(written, name):
    assert TrainingSetup(dtype=written).name == TrainingSetup(dtype=name).name


def test_what_is_none_is_refused_with_what_there_is():
    with pytest.raises(ValueError, match="'magic' is none of sgd, momentum, adam"):
        TrainingSetup(optimizer="magic")
    with pytest.raises(ValueError, match="'int8' is none of float32, bfloat16"):
        TrainingSetup(dtype="int8")


def test_a_runtime_offers_the_optimizers_that_name_it():
    assert "adamw" in OURS["torch"].optimizers
    assert "adamw" not in OURS["mnn"].optimizers
    with pytest.raises(WorkerError, match="mnn has no adamw: choose one of sgd, momentum, adam"):
        find_optimizer("adamw").make("mnn", None)
    with pytest.raises(WorkerError, match="mnn has no rmsprop"):
        find_optimizer("rmsprop").make("mnn", None)
    assert optimizers_of("a runtime of somebody else") == ()


def test_a_state_is_read_and_written_once_a_step():
    assert {name: OPTIMIZERS[name].values_moved for name in ("sgd", "momentum", "adam")} == {
        "sgd": 3,
        "momentum": 5,
        "adam": 7,
    }


@pytest.mark.parametrize("name", optimizers_of("torch"))
def test_torch_keeps_as_much_state_as_the_table_says(name):
    torch = pytest.importorskip("torch", reason=OURS["torch"].install)
    weight = torch.nn.Parameter(torch.ones(64))
    optimizer = OPTIMIZERS[name].make("torch", [weight])
    weight.square().sum().backward()
    optimizer.step()
    kept = sum(value.numel() for value in optimizer.state[weight].values() if getattr(value, "numel", int)() == 64)
    assert kept == 64 * OPTIMIZERS[name].state
    assert not torch.equal(weight, torch.ones(64))


def test_a_setup_from_before_accelerators_is_of_the_cpu():
    written = TrainingSetup().to_json()
    assert written.pop("on") == "cpu"
    assert TrainingSetup.from_json(written) == TrainingSetup()
    assert TrainingSetup().family == "torch-sgd-float32"


def test_an_accelerator_is_part_of_the_setup():
    setup = TrainingSetup(on="CUDA:1")
    assert setup.on == "cuda:1"
    assert setup.family != TrainingSetup(on="cuda:0").family != TrainingSetup().family
    assert TrainingSetup.from_json(setup.to_json()) == setup


@pytest.mark.parametrize("on", ["auto", "", "cuda:", "../x", "meta", "cpu:0"])
def test_what_names_no_processor_is_refused(on):
    with pytest.raises(ValueError, match="cpu"):
        TrainingSetup(on=on)


def test_tf32_is_of_nvidia_cards():
    assert TrainingSetup(dtype="tf32", on="cuda:0").bytes_per_value == 4
    with pytest.raises(ValueError, match="of NVIDIA cards"):
        TrainingSetup(dtype="tf32")


@pytest.mark.parametrize("dtype", ["autocast_bfloat16", "autocast_float16"])
def test_autocast_trains_with_float32_weights(dtype):
    torch = pytest.importorskip("torch", reason=OURS["torch"].install)
    runtime = find_runtime("torch")
    runtime.prepare(1)
    seen = []
    model = torch.nn.Linear(8, 4)
    model.register_forward_hook(lambda layer, given, made: seen.append(made.dtype))
    batch = torch.randn(16, 8)
    setup = TrainingSetup(dtype=dtype)
    training = precise(list(model.parameters()), lambda: model(batch).float().square().mean(), setup)
    training.step()
    first = training.last_loss()
    for _ in range(20):
        training.step()
    assert training.last_loss() < first
    assert seen[0] == getattr(torch, dtype.partition("_")[2])
    assert {weight.dtype for weight in training.weights()} == {torch.float32}


def precise(*given):
    from ampere.runtimes.torch_runtime import precise_training

    return precise_training(*given)


def test_profiles_of_accelerators_are_found_by_their_names(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path))
    device = {"id": "4f1c", "machine_id": None}
    setups = [TrainingSetup(), TrainingSetup("torch-compile"), TrainingSetup(on="cuda:1"), TrainingSetup(on="mps")]
    for setup in setups:
        path = default_path(device, setup)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    assert set(stored_setups(device)) == set(setups)
