"""JAX: on the processor only, for as many rows as there are, with the paper's families, and slow compilers flagged."""

import math
import os

import pytest

from ampere.core import Layer, TrainingSetup, work
from ampere.core.errors import WorkerError
from ampere.devices import Device
from ampere.models import FAMILIES
from ampere.profiling.capabilities import built_by
from ampere.profiling.sources import SpaceSource
from ampere.runtimes import description_of, find_runtime, installed
from ampere.runtimes.conformance import conv
from ampere.worker import guards as compiling
from ampere.worker.block import block

pytestmark = pytest.mark.skipif("jax" not in installed(), reason=description_of("jax").install)
JAX = TrainingSetup("jax")
SMALLEST: dict = {
    "lenet5": {},
    "cnn5": {"channels": [2, 2, 2, 2]},
    "har": {"channels": [2, 2, 2], "fc": 2},
    "lstm": {"hidden": [2, 2]},
    "transformer": {"layers": 1, "width": 16, "ff": 16, "sequence": 4},
    "resnet": {"blocks": [1, 1], "widths": [2, 4]},
}


@pytest.fixture(name="jax")
def a_jax():
    runtime = find_runtime("jax")
    runtime.prepare(1)
    return runtime


def test_it_trains_on_the_processor_whatever_else_it_is_reported(start_worker, layers_workload):
    worker = start_worker(**{**os.environ, "JAX_PLATFORMS": "cuda"})
    assert worker.block(layers_workload(conv()), setup={"runtime": "jax"})["result"]["parameters"] == 296


@pytest.mark.parametrize("family", SMALLEST)
def test_families_really_train(jax, family):
    space = FAMILIES[family]
    smallest = SpaceSource(space).of({**space.default, **SMALLEST[family], "batch": 2})
    described = {"layers": smallest.network.to_json()}
    training = jax.build(described, TrainingSetup("jax", optimizer="adam"))
    training.step()
    first = training.last_loss()
    for _ in range(20):
        training.step()
    assert training.last_loss() < first
    assert training.parameters == sum(work(layer).parameters for layer in smallest.network.layers)
    assert built_by(Device(), "jax", SpaceSource(space)).original().workload.keys() == described.keys()


def test_every_row_has_a_label(jax, layers_workload):
    rows = 70_000
    training = jax.build(layers_workload(Layer("linear", {"lead": (rows,), "bias": True}, 2, 2)), JAX)
    training.step()
    assert training.last_loss() > 0


@pytest.mark.parametrize(("limit", "flagged"), [(0.0, True), (600.0, False)])
def test_what_compiled_for_long_is_flagged(monkeypatch, layers_workload, limit, flagged):
    monkeypatch.setattr(compiling, "SLOW_SECONDS", limit)
    layers = layers_workload(conv(channels=(3, 7 if flagged else 9)))  # of its own, so that it is compiled
    reported = block({"workload": layers, "setup": JAX.to_json(), "iterations": 2, "warmup": 1})
    assert reported["compile_seconds"] > 0
    assert ("slow_compile" in reported["flags"]) == flagged


OWN = """
import jax
import jax.numpy as jnp
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.conv, self.norm = nnx.Conv(1, 4, (3, 3), rngs=rngs), nnx.BatchNorm(4, rngs=rngs)
        self.drop, self.head = nnx.Dropout(0.2, rngs=rngs), nnx.Linear(4, 3, rngs=rngs)

    def __call__(self, x, *, scale=1.0):
        x = nnx.relu(self.norm(self.conv(x))).mean(axis=(1, 2))
        x, _ = jax.lax.scan(lambda state, _: (state + 0.1 * jnp.tanh(state), None), x, None, length=3)
        return self.head(self.drop(x)) * scale


def build(batch=6):
    return Net(nnx.Rngs(0)), {"x": jax.random.normal(jax.random.key(0), (batch, 8, 8, 1)), "scale": 2.0}


def inputless():
    return Net(nnx.Rngs(0))


def number():
    return 42
"""


@pytest.fixture(name="own")
def a_model_of_the_users(tmp_path):
    (tmp_path / "net.py").write_text(OWN)
    return lambda name, **more: {"factory": f"{tmp_path}/net.py:{name}", **more}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_flax_model_trains_by_its_own_code(jax, own, dtype):
    """With its dropout, its running statistics, and a loop that no layer kind knows."""
    training = jax.build(own("build", arguments={"batch": 5}), TrainingSetup("jax", optimizer="adam", dtype=dtype))
    assert training.parameters == 40 + 8 + 15
    assert {str(weight.dtype) for weight in training.weights()} == {dtype}
    training.step()
    first = training.last_loss()
    for _ in range(300):
        training.step()
    assert math.isfinite(training.last_loss())
    assert training.last_loss() < first or dtype == "bfloat16"  # whose steps are too coarse for so small a rate


def test_a_flax_model_gets_its_input_by_shape(jax, own):
    given = [{"shape": [3, 8, 8, 1], "dtype": "float32", "high": None}]
    once, again = (jax.build(own("inputless", inputs=given), JAX) for _ in range(2))
    once.step()
    again.step()
    assert once.last_loss() == again.last_loss()
    assert again.compile_seconds == 0.0


@pytest.mark.parametrize(("name", "says"), [("number", "made no flax.nnx.Module"), ("inputless", "no example inputs")])
def test_what_is_no_flax_model_is_refused(jax, own, name, says):
    with pytest.raises(WorkerError, match=says):
        jax.build(own(name), JAX)


@pytest.mark.parametrize("how", ["layers", "factory"])
def test_parameters_are_given_away(jax, own, layers_workload, how):
    training = jax.build(layers_workload(conv()) if how == "layers" else own("build"), JAX)
    before = training.weights()
    training.step()
    assert all(weight.is_deleted() for weight in before)
