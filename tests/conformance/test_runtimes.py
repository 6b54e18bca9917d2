"""What every runtime promises, ours and those of other packages. A new one counts when it passes."""

import math
import time

import numpy as np
import pytest
from tests.layer_examples import EXAMPLES, conv

from ampere.network import KINDS, Layer, Network, TailOp, TrainingSetup, work
from ampere.worker.errors import WorkerError
from ampere.worker.runtimes import description_of, find_runtime
from ampere.worker.runtimes.table import installed, names

OPAQUE = dict.fromkeys(("launches", "flops", "values", "parameters", "parameter_tensors"), 1)
COMPILED_ALONE = {"conv", "linear", "lstm", "norm_layer"}  # of torch-compile, whose layers are torch's own
WITH_PARAMETERS = sorted({*EXAMPLES} - {"matmul", "attention", "glue"})


@pytest.fixture(params=names(), name="name", scope="module")
def a_name(request):
    if request.param not in installed():
        pytest.skip(description_of(request.param).install)
    return request.param


@pytest.fixture(name="runtime")
def a_runtime(name):
    found = find_runtime(name)
    found.prepare(1)
    yield found
    if name.startswith("torch"):  # other tests in this process count on denormal numbers
        __import__("torch").set_flush_denormal(False)


def subject(*layers):
    return {"layers": Network(tuple(layers), 3).to_json()}


def setup_of(name, **more):
    return TrainingSetup(runtime=name, **more)


def possible(name, kind):
    """Examples of a kind that this runtime says it can build; only the first where each would be compiled."""
    if name == "torch-compile" and kind not in COMPILED_ALONE:
        pytest.skip("alone each takes seconds to be compiled: it is in the network of all that can be built")
    found = [layer for layer in EXAMPLES[kind] if not description_of(name).lacks(layer)]
    return found[:1] if description_of(name).compiles else found


def trained(training, steps):
    training.step()
    first = training.last_loss()
    for _ in range(steps):
        training.step()
    return first, training.last_loss()


def weights_of(training):
    return [np.array(weight.tolist()) for weight in training.weights()]


def separable():
    """Twelve points in four dimensions and three classes, which thirty-two hidden units part."""
    relu = (TailOp("elementwise", 12 * 32, 12 * 32),)
    hidden = Layer("linear", {"lead": (12,), "bias": True}, 4, 32, relu, input_grad=False)
    return subject(hidden, Layer("linear", {"lead": (12,), "bias": True}, 32, 3))


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw"])
def test_it_really_learns(name, runtime, optimizer):
    if optimizer not in description_of(name).optimizers:
        pytest.skip(f"{name} has no {optimizer}")
    training = runtime.build(separable(), setup_of(name, optimizer=optimizer))
    before = weights_of(training)
    first, last = trained(training, 300)
    assert last < 0.99 * first
    assert all(not np.array_equal(a, b) for a, b in zip(before, weights_of(training), strict=True))


@pytest.mark.parametrize("kind", WITH_PARAMETERS)
def test_layers_learn_and_their_parameters_change(name, runtime, kind):
    for layer in possible(name, kind):
        training = runtime.build(subject(layer), setup_of(name, optimizer="adam"))
        before = weights_of(training)
        first, last = trained(training, 60)
        assert last < first
        assert any(not np.array_equal(a, b) for a, b in zip(before, weights_of(training), strict=True))


@pytest.mark.parametrize("kind", sorted(EXAMPLES))
def test_it_has_the_parameters_of_the_table(name, runtime, kind):
    for layer in possible(name, kind):
        assert runtime.build(subject(layer), setup_of(name, optimizer="adam")).parameters == work(layer).parameters


@pytest.mark.parametrize("kind", sorted(EXAMPLES))
def test_parameters_have_the_shapes_of_torch(name, runtime, kind):
    """In whichever order a library keeps a tensor's dimensions."""
    torch_runtime = find_runtime("torch")
    for layer in possible(name, kind):
        ours = runtime.build(subject(layer), setup_of(name, optimizer="adam")).weights()
        theirs = torch_runtime.build(subject(layer), TrainingSetup()).weights()
        assert sorted(sorted(w.shape) for w in ours) == sorted(sorted(w.shape) for w in theirs)


def test_all_that_it_can_build_trains_in_one_network(name, runtime):
    every = [layer for kind in EXAMPLES for layer in EXAMPLES[kind] if not description_of(name).lacks(layer)]
    training = runtime.build(subject(*every), setup_of(name, optimizer="adam"))
    assert training.parameters == sum(work(layer).parameters for layer in every)
    first, last = trained(training, 5)
    assert last < first


def test_it_trains_in_every_type_that_it_lists(name, runtime):
    for dtype in description_of(name).dtypes:
        _, last = trained(runtime.build(separable(), setup_of(name, dtype=dtype)), 3)
        assert math.isfinite(last)


def test_the_same_block_starts_from_the_same_weights(name, runtime):
    losses = []
    for _ in range(2):
        runtime.prepare(1)
        losses.append(trained(runtime.build(separable(), setup_of(name)), 2))
    assert losses[0] == losses[1]


def test_nothing_is_left_running_when_a_step_returns(name, runtime):
    """A step that returned early would go on to use the processor while we sleep."""
    training = runtime.build(subject(conv(size=(48, 48), channels=(32, 64))), setup_of(name))
    trained(training, 2)
    began = time.process_time()
    for _ in range(3):
        training.step()
    busy = time.process_time() - began
    began = time.process_time()
    time.sleep(0.3 * busy + 0.02)
    assert time.process_time() - began < 0.2 * busy


def test_the_yardstick_learns_and_stays_finite(runtime):
    first, last = trained(runtime.yardstick(), 50)
    assert math.isfinite(last)
    assert last < first


def test_an_impossible_layer_is_refused_by_name(name, runtime):
    opaque = Layer("opaque", {**OPAQUE, "shape_in": (3, 4), "shape_out": (3, 4)}, 4, 4, name="body.swish")
    others = {*KINDS} - description_of(name).kinds - {"opaque"}
    lacking = [layer for kind in others for layer in EXAMPLES[kind]]
    for layer in (opaque, *lacking):
        with pytest.raises(WorkerError, match=layer.name or layer.kind) as refused:
            runtime.build(subject(conv(), layer), setup_of(name))
        assert refused.value.type == "variant_failed"


def test_a_factory_that_is_not_there_is_refused(name, runtime):
    with pytest.raises(WorkerError):
        runtime.build({"factory": "nothing"}, setup_of(name))
