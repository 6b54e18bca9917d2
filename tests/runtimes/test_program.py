"""A model that is built from its program does the operations of its own code, on tensors of the same shapes."""

import json
import logging
from collections import Counter

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from ampere.core import TrainingSetup
from ampere.core.errors import WorkerError
from ampere.models.loading import load_model
from ampere.profiling.sources import source_of
from ampere.runtimes.plain_script import training_loss
from ampere.runtimes.torch_program import Program, replayable
from ampere.runtimes.torch_runtime import TorchRuntime, training
from ampere.tracing.program import program_of
from ampere.tracing.trace import undisturbed


class Runs(nn.Module):
    """A model of a few modules and one function."""

    def __init__(self, forward, **modules):
        super().__init__()
        self.parts, self.run = nn.ModuleDict(modules), forward

    def forward(self, *inputs):
        return self.run(self.parts, *inputs)


def images():
    layers = (nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Dropout(0.2), nn.Flatten())
    return nn.Sequential(*layers, nn.Linear(72, 5)), torch.randn(4, 3, 8, 8)


def encoder():
    return nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu"), torch.randn(3, 5, 16)


def enlarging():
    def forward(m, x):
        small = m["conv"](x)
        return F.interpolate(small, scale_factor=2, mode="bilinear") + x.permute(0, 1, 3, 2).contiguous()

    return Runs(forward, conv=nn.Conv2d(3, 3, 2, 2)), torch.randn(2, 3, 8, 8)


def tagger():
    def forward(m, words, tags):
        scores = m["out"](m["lstm"](m["embed"](words))[0])
        return {"loss": F.cross_entropy(scores.flatten(0, 1), tags.flatten())}

    modules = {"embed": nn.Embedding(30, 8), "lstm": nn.LSTM(8, 8, 2, bidirectional=True), "out": nn.Linear(16, 40)}
    return Runs(forward, **modules), (torch.randint(0, 30, (4, 6)), torch.randint(0, 40, (4, 6)))


def scan():
    def forward(m, x):
        state, out, gates = x.new_zeros(x.shape[0], 8), [], torch.sigmoid(m["in"](x))
        for step in range(x.shape[1]):
            state = gates[:, step] * state + x[:, step]
            out.append(state)
        return torch.stack(out, 1)

    return Runs(forward, **{"in": nn.Linear(8, 8)}), torch.randn(2, 7, 8)


def graph():
    def forward(m, x, edges):
        source, target = edges
        summed = torch.zeros(len(x), x.shape[1]).index_add_(0, target, x[source])
        return m["own"](x) + m["others"](summed)

    modules = {"own": nn.Linear(4, 6), "others": nn.Linear(4, 6)}
    return Runs(forward, **modules), (torch.randn(20, 4), torch.randint(0, 20, (2, 50)))


def tied():
    def forward(m, ids):
        x = m["norm"](m["table"](ids) + m["place"](torch.arange(ids.shape[1])))
        mask = torch.full((ids.shape[1], ids.shape[1]), float("-inf")).triu(1)
        x = x + (x @ x.transpose(1, 2) + mask).softmax(-1) @ x
        logits = F.linear(x, m["table"].weight)
        return {"loss": F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())}

    modules = {"table": nn.Embedding(50, 8), "place": nn.Embedding(9, 8), "norm": nn.LayerNorm(8)}
    return Runs(forward, **modules), torch.randint(0, 50, (3, 9))


def bags():
    offsets = torch.arange(20) * 3
    return Runs(lambda m, ids, offsets: m["bag"](ids, offsets), bag=nn.EmbeddingBag(11, 4)), (
        torch.randint(0, 11, (60,)),
        offsets,
    )


def spectrum():
    def forward(m, waves):
        return m["out"](torch.log1p(torch.stft(waves, 16, 8, return_complex=True, window=torch.ones(16)).abs()).mean(2))

    return Runs(forward, out=nn.Linear(9, 3)), torch.randn(3, 64)


def deciding():
    def forward(m, x):
        return m["often"](x) if float(x.sum()) < 1e9 else x

    return Runs(forward, often=nn.Linear(4, 3)), torch.randn(2, 4)


def clicks():
    """Functions whose defaults in Python are not those of the operations that they call, and several overloads."""

    def forward(m, x, clicked):
        pairs = (
            torch.bmm(x, x.transpose(1, 2))[:, 0] / 3 + x.amax((1, 2), keepdim=True)[:, 0] - 2 * x.mean((1, 2))[:, None]
        )
        kept = F.normalize(pairs.cumsum(1).clamp(min=-1), eps=1e-3) ** 2 + F.softplus(pairs, 2.0)
        return {"loss": F.binary_cross_entropy_with_logits(m["out"](kept).squeeze(1), clicked)}

    return Runs(forward, out=nn.Linear(5, 1)), (torch.randn(6, 5, 4), torch.rand(6).round())


MODELS = (images, encoder, enlarging, tagger, scan, graph, tied, bags, spectrum, deciding, clicks)


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.operations = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        read = [t for value in args for t in (value if isinstance(value, (list, tuple)) else [value])]
        tensors = [t for t in read if isinstance(t, torch.Tensor)]
        self.operations.append((str(func), *((t.dtype, tuple(t.shape), t.stride()) for t in tensors)))
        return out


def operations_of(parameters, loss):
    step = training(parameters, loss, "sgd").step
    step()
    with Seen() as seen:
        step()
    return seen.operations


def computing(operations):
    """Without those that compute nothing: a look at a value, and what a dispatch mode alone sees of autograd."""
    idle = ("aten._local_scalar_dense.default", "aten.detach.default", "prim.device.default")
    return Counter(each for each in operations if each[0] not in idle)


def built(model, inputs):
    return Program(json.loads(json.dumps(program_of(model, inputs))))


def arguments(inputs):
    return inputs if isinstance(inputs, tuple) else (inputs,)


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_forward_backward_and_update_are_the_same_operations(make):
    model, inputs = make()
    program = built(model, inputs)
    own = operations_of(list(model.parameters()), lambda: training_loss(model(*arguments(inputs))))
    found = operations_of(program.trained, program.loss)
    assert computing(found) == computing(own)


@pytest.mark.parametrize("make", [enlarging, scan, tied, spectrum, clicks], ids=lambda make: make.__name__)
def test_the_loss_is_that_of_the_own_code(make):
    model, inputs = make()
    program = built(model, inputs)
    with torch.no_grad():
        for tensor in (*program.begins.values(), *model.parameters(), *arguments(inputs)):
            tensor.fill_(0.3 if tensor.is_floating_point() else 0)
    own = training_loss(model(*arguments(inputs)))
    assert program.loss().item() == pytest.approx(own.item(), rel=1e-5)


def test_what_has_a_backward_pass_of_its_own_has_no_program():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            return grad

    checkpoint = torch.utils.checkpoint.checkpoint
    x = torch.randn(2, 4)
    for run in (
        lambda m, x: Twice.apply(m["linear"](x)),
        lambda m, x: checkpoint(m["linear"], x, use_reentrant=False),
        lambda m, x: checkpoint(m["linear"], x.requires_grad_(), use_reentrant=True),
    ):
        assert program_of(Runs(run, linear=nn.Linear(4, 4)), x) is None


def test_a_live_model_is_trained_from_its_program_and_its_likes_from_layers():
    model, inputs = images()
    source = source_of(load_model(model, inputs))
    workload = source.original().workload
    runtime, count = TorchRuntime(), sum(p.numel() for p in model.parameters())
    made = runtime.build(workload, TrainingSetup())
    made.step()
    assert made.parts is None
    assert made.parameters == count
    layers = runtime.build(workload, TrainingSetup(dtype="bfloat16"))  # another precision is not in the program
    assert layers.parts is not None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"loss": None}, "malformed"),
        ({"calls": [["relu.default", [{"value": 99}], {}, [5], True]]}, "value 99 is read before it is made"),
        ({"calls": [["from_file.default", ["/etc/passwd"], {}, [5], True]]}, "from_file.default is no operation"),
        ({"calls": [["relu.nothing", [{"value": 0}], {}, [5], True]]}, "has no operation relu.nothing"),
        ({"values": [{"value": 0, "shape": [-1], "dtype": "float32"}]}, "absurd size"),
        ({"values": [{"value": 0, "shape": [1], "dtype": "nn"}]}, "nn is no constant"),
    ],
)
def test_a_malformed_program_is_refused_in_one_line(change, said):
    program = {"values": [{"value": 0, "shape": [2], "dtype": "float32", "grad": True}], "calls": [], "loss": 0}
    with pytest.raises(WorkerError, match=said) as refused:
        Program({**program, **change})
    assert "\n" not in str(refused.value)


def test_operations_that_reach_beyond_their_tensors_are_no_part_of_a_program():
    for name in ("set_.source_Tensor", "_unsafe_index.Tensor", "resize_.default", "relu", "relu.default;import os"):
        assert not replayable(name)
    assert not replayable("_index_put_impl_.default")  # it can be asked not to check its indices
    for name in ("add_.Tensor", "_unsafe_view.default", "as_strided.default", "native_batch_norm.default"):
        assert replayable(name)


def test_what_pytorch_logs_of_code_that_needs_values_is_not_shown(caplog):
    log = logging.getLogger(
        "torch._subclasses.fake_tensor"
    )  # its own tracebacks of what Ampere tries again with values
    with undisturbed():
        log.error("no values")
    assert not caplog.records
    log.error("shown again")
    assert caplog.records
