"""Training setups: what people write is understood, what no runtime has is refused by name."""

import pytest

from ampere.core import TrainingSetup
from ampere.core.errors import WorkerError
from ampere.core.optimizers import OPTIMIZERS, find_optimizer, optimizers_of
from ampere.runtimes.table import OURS


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
