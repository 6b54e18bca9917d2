"""Steps of the user's own, in all the ways that people train: what is computed is counted, once each time it runs."""

import ast
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from ampere.core import work
from ampere.core.allocations import GRADIENTS, OPTIMIZER, peak
from ampere.runtimes.torch_network import build_chain
from ampere.runtimes.torch_step import run_once
from ampere.tracing.memory import STEPS as MEMORY_STEPS
from ampere.tracing.memory import allocations_of, allocations_of_step
from ampere.tracing.steps import trace_step
from ampere.tracing.trace import trace

from .counting import convolution_backward

FILE = Path(__file__).parents[2] / "benchmarks" / "street" / "ways.py"
spec = spec_from_file_location("ways", FILE)
ways = module_from_spec(spec)
spec.loader.exec_module(ways)
STEPS = (
    "accumulation",
    "clipping",
    "mixed_precision",
    "several_losses",
    "gan",
    "teacher_and_student",
    "schedule_and_average",
    "two_lengths",
)
NO_ATTENTION = [name for name in STEPS if name not in ("clipping", "two_lengths")]  # which PyTorch counts by itself


@pytest.fixture(scope="module")
def step_of():
    made = {}

    def find(name):
        if name not in made:
            torch.manual_seed(0)
            made[name] = run_once(getattr(ways, name), {})[1]
        return made[name]

    return find


@pytest.fixture(scope="module")
def network_of(step_of):
    made = {}

    def find(name):
        if name not in made:
            made[name] = trace_step(step_of(name), name)
        return made[name]

    return find


def parameters(network):
    return sum(work(layer).parameters for layer in network.layers)


def test_each_way_of_the_benchmark_is_a_step_or_a_model():
    functions = [node.name for node in ast.parse(FILE.read_text()).body if isinstance(node, ast.FunctionDef)]
    models = {"checkpointed", "tied", "adapters_by_hand", "adapters_by_peft", "sparse_embeddings", "language"}
    assert {name for name in functions if not name.startswith("_")} == {*STEPS, *models}


@pytest.mark.parametrize("name", NO_ATTENTION)
def test_all_products_are_counted(name, step_of, network_of):
    step, mapping = step_of(name), {torch.ops.aten.convolution_backward: convolution_backward}
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        step()
    counted = sum(work(layer).flops for layer in network_of(name).layers)
    assert counted == pytest.approx(counter.get_total_flops(), rel=1e-3)


@pytest.mark.parametrize("name", STEPS)
def test_an_update_visits_each_weight_once(name, step_of, network_of):
    assert parameters(network_of(name)) == sum(p.numel() for p in step_of(name).updated)


@pytest.mark.parametrize("name", STEPS)
def test_it_is_said_what_it_was_taken_for(name, step_of, network_of):
    first, *others = network_of(name).notes
    assert first.startswith(f"{name} was taken for a whole training step of {', '.join(step_of(name).models)}")
    assert not [note for note in others if "no known kind" in note or "left out" in note]


def test_a_step_of_one_model_is_traced_as_the_model_is():
    model, x = ways._convolutional(), ways._images()[0]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), torch.zeros(len(x), dtype=torch.long)).backward()
        optimizer.step()

    def of(network):
        return [(x.name, x.kind, x.channels_in, x.channels_out, x.trainable, x.input_grad) for x in network.layers]

    traced = trace_step(run_once(lambda: step, {})[1])
    assert of(traced) == of(trace(model, x))
    assert traced.batch == len(x)


def test_models_have_the_names_that_the_code_gives_them(network_of):
    names = [layer.name for layer in network_of("gan").layers if layer.kind != "nonparametric"]  # drawing the noise
    assert {name.partition(".")[0] for name in names} == {"generator", "discriminator"}


def test_a_model_that_runs_three_times_has_its_layers_three_times(network_of):
    names = [layer.name for layer in network_of("gan").layers]
    assert (names.count("discriminator.0"), names.count("generator.0")) == (3, 1)


def test_a_teacher_has_no_backward(network_of):
    taught = {layer.name.partition(".")[0]: set() for layer in network_of("teacher_and_student").layers}
    for layer in network_of("teacher_and_student").layers:
        taught[layer.name.partition(".")[0]].add(layer.trainable or layer.input_grad)
    assert taught == {"teacher": {False}, "student": {True}}


@pytest.mark.parametrize(("name", "reads"), [("schedule_and_average", 2), ("clipping", 1)])
def test_what_is_done_with_weights_outside_of_models_is_seen_by_itself(name, reads, step_of, network_of):
    layers = network_of(name).layers
    assert "scale" not in {layer.kind for layer in layers}
    [weights] = [layer for layer in layers if layer.name == "weights"]
    assert (weights.kind, weights.trainable, weights.input_grad) == ("nonparametric", False, False)
    assert not any(op.backward for op in weights.trailing)
    read = sum(op.values_in for op in weights.trailing)
    assert read >= reads * sum(p.numel() for p in step_of(name).updated)


def test_a_step_with_all_its_layers_can_be_built_from_their_description(network_of):
    for name in ("gan", "schedule_and_average", "teacher_and_student"):
        chain = build_chain(network_of(name), torch.float32)
        chain.loss().backward()
        assert sum(p.numel() for p in chain.trained) == parameters(network_of(name))


def test_several_calls_are_one_step():
    model, x, calls = nn.Linear(4, 3), torch.ones(2, 4), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        calls.append(None)
        model(x).sum().backward()
        if len(calls) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()

    network = trace_step(run_once(lambda: step, {})[1], "step")
    weights, *layers = network.layers
    assert [layer.kind for layer in layers] == ["linear"] * 4
    assert [op.values_in for op in weights.trailing] == 3 * [2 * 3, 2 * 12]  # each gradient but the first is added
    assert parameters(network) == 15
    assert "4 calls make one update" in network.notes[0]
    assert network.batch == 4 * len(x)


def test_a_teacher_in_inference_mode_is_seen_layer_by_layer():
    teacher, student, x = ways._convolutional(8).eval(), nn.Linear(10, 10), ways._images()[0]
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

    def step():
        with torch.inference_mode():
            features = teacher(x)
        optimizer.zero_grad()
        student(features.clone()).square().mean().backward()
        optimizer.step()

    network = trace_step(run_once(lambda: step, {})[1], "step")
    kinds = [layer.kind for layer in network.layers]
    assert kinds == ["conv", "norm_batch", "conv", "norm_batch", "conv", "linear", "linear"]
    assert len(network.notes) == 1


def test_a_scaler_of_the_loss_and_a_loss_that_is_a_module_are_no_strangers():
    model, criterion, x = nn.Linear(4, 3), nn.CrossEntropyLoss(), torch.randn(6, 4)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = criterion(model(x), torch.arange(6) % 3)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    made = run_once(lambda: step, {})[1]
    network = trace_step(made, "step")
    assert list(made.models) == ["model"]
    assert [note.partition(" than")[0] for note in network.notes[1:]] == ["it computes in another precision"]
    assert parameters(network) == 15


def test_an_update_by_hand_is_counted_once():
    model, x = nn.Linear(4, 3), torch.ones(2, 4)

    def step():
        model(x).sum().backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad = None

    network = trace_step(run_once(lambda: step, {})[1], "step")
    assert [layer.kind for layer in network.layers] == ["linear"]
    assert "updated by hand" in network.notes[0]


def test_gradients_of_each_sample_are_seen_without_a_backward_pass():
    model, x = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)), torch.randn(5, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def loss(weights, sample):
        return torch.func.functional_call(model, weights, (sample[None],)).square().sum()

    def step():
        weights = {name: weight.detach() for name, weight in model.named_parameters()}
        gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, x)
        for name, weight in model.named_parameters():
            weight.grad = gradients[name].mean(0)
        optimizer.step()

    made = run_once(lambda: step, {})[1]
    network = trace_step(made, "step")
    with FlopCounterMode(display=False) as counter:
        made()
    assert sum(work(layer).flops for layer in network.layers) == pytest.approx(counter.get_total_flops(), rel=1e-3)
    assert network.batch == 5
    assert network.notes[1].startswith("no backward pass of autograd reaches its weights")
    held, weights = allocations_of_step(made), sum(p.numel() for p in model.parameters())
    assert peak(held)[0] > 4 * (2 + 5) * weights  # themselves, the gradients of each sample, and their mean


def test_a_gradient_penalty_is_counted_without_strangers():
    model, x = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(), nn.Linear(8, 1)), torch.randn(5, 6, requires_grad=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        slope = torch.autograd.grad(model(x).sum(), x, create_graph=True)[0]
        (slope[:, 0].square().mean() + slope.norm()).backward()
        optimizer.step()

    network = trace_step(run_once(lambda: step, {})[1], "step")
    assert {layer.kind for layer in network.layers} <= {"linear", "matmul", "nonparametric"}
    assert not [note for note in network.notes if "no known kind" in note]


def test_a_compiled_model_in_a_step_is_traced_as_it_was_written():
    model, x = nn.Linear(4, 3), torch.ones(2, 4)
    compiled = torch.compile(model, backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        compiled(x).sum().backward()
        optimizer.step()

    network = trace_step(run_once(lambda: step, {})[1], "step")
    assert [layer.kind for layer in network.layers] == ["linear"]
    assert "torch.compile" in network.notes[1]


def test_weights_of_no_model_are_seen():
    weight, x = nn.Parameter(torch.randn(4, 3)), torch.ones(2, 4)
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def step():
        optimizer.zero_grad()
        (x @ weight).square().mean().backward()
        optimizer.step()

    network = trace_step(run_once(lambda: step, {})[1])
    assert (network.layers[0].kind, parameters(network)) == ("linear", 12)


def test_the_users_models_are_left_without_hooks(step_of, network_of):
    network_of("gan")
    modules = list(step_of("gan").model.modules())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in modules)
    assert torch.autograd.backward.__module__ == "torch.autograd"


# Ways of a model, which need no step of one's own.


def test_recomputation_is_counted():
    model, ids = ways.checkpointed()
    recomputed = trace(model, ids)
    model.recomputing = False
    once = trace(model, ids)
    inner = [layer for layer in once.layers if layer.name.startswith("blocks.") and layer.kind == "linear"]
    extra = sum(work(layer).flops for layer in recomputed.layers) - sum(work(layer).flops for layer in once.layers)
    forward = sum(work(layer).flops for layer in inner) / 3
    attention = [work(layer).flops for layer in once.layers if layer.kind == "attention"]
    # The last product of a block is not run again: nothing needs its output.
    assert 0.6 * forward <= extra <= forward + sum(attention)
    assert parameters(recomputed) == parameters(once)


def test_frozen_weights_have_no_gradient_and_no_update():
    model, ids = ways.adapters_by_hand()
    layers = {layer.name: layer for layer in trace(model, ids).layers}
    frozen, adapter = layers["blocks.1.up.frozen"], layers["blocks.1.up.down"]
    assert (frozen.trainable, frozen.input_grad, adapter.trainable) == (False, True, True)
    assert parameters(trace(model, ids)) == sum(p.numel() for p in model.parameters() if p.requires_grad)


@pytest.mark.skipif(find_spec("peft") is None, reason="pip install peft")
def test_adapters_of_peft_are_trained_alone():
    model, inputs = ways.adapters_by_peft()
    assert parameters(trace(model, inputs)) == sum(p.numel() for p in model.parameters() if p.requires_grad)


def test_tied_weights_are_updated_once():
    model, ids = ways.tied()
    assert parameters(trace(model, ids)) == sum(p.numel() for p in model.parameters())


def test_a_sparse_table_is_visited_where_it_was_read():
    model, ids = ways.sparse_embeddings()
    table = trace(model, ids).layers[0]
    assert (table.kind, table.config["sparse"]) == ("embedding", True)
    assert work(table).parameters == ids.numel() * 64


# Memory.


def test_the_memory_of_a_step_is_that_of_its_model():
    model, x = ways._convolutional(), ways._images()[0]
    optimizer, labels = torch.optim.Adam(model.parameters(), lr=1e-4), torch.zeros(len(x), dtype=torch.long)

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()

    really = peak(allocations_of_step(run_once(lambda: step, {})[1]))[0]
    assert really == pytest.approx(peak(allocations_of(model, x, "adam"))[0], rel=0.05)


def test_frozen_weights_have_no_gradients_in_memory():
    model, ids = ways.adapters_by_hand()
    found = allocations_of(model, ids, "adam")
    gradients, states = (sum(x.bytes for x in found if x.part == part) for part in (GRADIENTS, OPTIMIZER))
    trained = 4 * sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert gradients == pytest.approx(MEMORY_STEPS * trained, rel=0.1)
    assert states == pytest.approx(2 * trained, rel=0.1)
