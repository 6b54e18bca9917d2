"""MNN: what it trains of the paper's families, what it must not do silently, and what happens when it crashes."""

import json
import subprocess
import sys

import pytest
from tests.worker.conftest import measurement

from ampere.core import Layer, Network, TrainingSetup, work
from ampere.core.errors import ModelError, UsageError, WorkerError
from ampere.devices import Device
from ampere.models import FAMILIES
from ampere.profiling.capabilities import built_by, check_setup
from ampere.profiling.sources import SpaceSource
from ampere.runtimes import description_of, find_runtime
from ampere.runtimes.conformance import EXAMPLES, conv
from ampere.worker.block import block

pytest.importorskip("MNN", reason=description_of("mnn").install)
MNN = TrainingSetup(runtime="mnn")


def workload(*layers):
    return {"layers": Network(tuple(layers), 3).to_json()}


@pytest.fixture(name="mnn")
def an_mnn():
    runtime = find_runtime("mnn")
    runtime.prepare(1)
    return runtime


@pytest.mark.parametrize("family", ["lenet5", "cnn5", "har", "resnet"])
def test_families_train_with_all_their_parameters(mnn, family):
    experiment = built_by(Device(), "mnn", SpaceSource(FAMILIES[family])).original()
    training = mnn.build(experiment.workload, MNN)
    training.step()
    first = training.last_loss()
    for _ in range(4):
        training.step()
    assert training.last_loss() < first
    assert training.parameters == sum(work(layer).parameters for layer in experiment.network.layers)


@pytest.mark.parametrize(("family", "lacks"), [("lstm", "no lstm"), ("transformer", "embedding .no embedding")])
def test_other_families_are_refused_layer_by_layer(family, lacks):
    with pytest.raises(ModelError, match=lacks):
        built_by(Device(), "mnn", SpaceSource(FAMILIES[family]))


@pytest.mark.parametrize("lacking", [{"dtype": "bfloat16"}, {"optimizer": "adamw"}])
def test_types_and_optimisers_that_it_lacks_are_refused(lacking):
    with pytest.raises(UsageError, match=f"mnn has no {next(iter(lacking.values()))}"):
        check_setup(Device(), TrainingSetup(runtime="mnn", **lacking))


@pytest.mark.parametrize(("layers", "order_at_the_end"), [(1, "yTyTy"), (20, "yyyTyyyTyyy")])
def test_its_yardstick_settles_after_steps_of_deep_networks(mnn, monkeypatch, layers, order_at_the_end):
    order, yardstick, build = [], mnn.yardstick(), mnn.build

    def noted(training, sign):
        return training._replace(step=lambda: (order.append(sign), training.step()))

    monkeypatch.setattr(mnn, "yardstick", lambda: noted(yardstick, "y"))
    monkeypatch.setattr(mnn, "build", lambda *asked: noted(build(*asked), "T"))
    block(
        {"workload": workload(*[conv(channels=(8, 8))] * layers), "setup": MNN.to_json(), "iterations": 2, "warmup": 1}
    )
    assert "".join(order).partition("T")[2].endswith(order_at_the_end)


def test_what_it_would_silently_not_train_is_refused_by_name(mnn):
    from ampere.runtimes.mnn_layers import F

    layer = Layer("linear", {"lead": (3,), "bias": True}, 8, 4, name="head")
    F.lazy_eval(False)  # as MNN is by default: its optimiser finds no gradient, and says nothing
    try:
        with pytest.raises(WorkerError, match="MNN would not train head"):
            mnn.build(workload(layer), MNN)
    finally:
        F.lazy_eval(True)


def test_a_gradient_goes_as_far_back_as_the_description_says(mnn):
    """A layer with a gradient for its input has one more number that changes, which counts as no parameter."""
    from ampere.runtimes.mnn_layers import array_of
    from ampere.runtimes.mnn_network import Chain
    from ampere.runtimes.mnn_runtime import training

    changed = {}
    for grad in (True, False):
        chain = Chain(Network((Layer("linear", {"lead": (3,), "bias": True}, 8, 4, input_grad=grad),), 3))
        trained = training(chain, "adam")
        assert trained.parameters == 36
        before = [array_of(tensor).copy() for tensor in chain.root.parameters]
        trained.step()
        changed[grad] = [float(abs(array_of(t) - b).max()) for t, b in zip(chain.root.parameters, before, strict=True)]
    assert [len(moved) for moved in changed.values()] == [3, 2]
    assert all(moved > 0 for moved in (*changed[True], *changed[False]))


@pytest.mark.parametrize(
    "layer",
    [
        conv("conv_grouped", groups=0, channels=(8, 8)),
        conv("conv_transposed", stride=(2, 2), output_padding=(0, 0)),
        conv(size=(9,), stride=(2,), channels=(3, 5)),
        conv(kernel=(3, 1), padding=(1, 0), stride=(2, 1)),
    ],
    ids=lambda layer: f"{layer.kind}-{len(layer.config['kernel'])}d",
)
def test_shapes_are_those_of_the_table(mnn, layer):
    """The next layer reads exactly what the table says: a wrong size would not fit."""
    from ampere.core.wiring import shape_out

    shape = shape_out(layer)
    reader = Layer("linear", {"lead": (shape[0],), "bias": True}, work_width(shape), 2)
    training = mnn.build(workload(layer, reader), MNN)
    assert training.parameters == work(layer).parameters + work(reader).parameters


def work_width(shape):
    width = 1
    for n in shape[1:]:
        width *= n
    return width


def test_sizes_that_do_not_fit_are_refused_by_name(mnn):
    wide = Layer(**{**vars_of(conv(size=(2, 2), kernel=(7, 7), padding=(0, 0))), "name": "too.wide"})
    with pytest.raises(WorkerError, match=r"too\.wide"):
        mnn.build(workload(wide), MNN)


def vars_of(layer):
    return {k: getattr(layer, k) for k in ("kind", "config", "channels_in", "channels_out")}


def test_a_crash_in_native_code_costs_one_variant_and_not_the_worker():
    """Depthwise convolutions with more channels out than in crash MNN: here one is let through."""
    unlimited = (
        "from ampere.runtimes import table;"
        "table.OURS['mnn'] = table.OURS['mnn']._replace(limits=lambda layer: '');"
        "from ampere.worker.serving import open_channel; from ampere.worker.serving import serve;"
        "serve(open_channel())"
    )
    asked = [workload(EXAMPLES["conv_grouped"][1]), workload(conv())]
    common = {"do": "block", "isolation": "fork", "iterations": 2, "warmup": 1, "setup": {"runtime": "mnn"}}
    lines = "".join(json.dumps({"id": n, "workload": s, **common}) + "\n" for n, s in enumerate(asked))
    ran = subprocess.run([sys.executable, "-c", unlimited], input=lines, capture_output=True, text=True, timeout=60)
    crashed, fine = map(json.loads, ran.stdout.splitlines())
    assert crashed["error"]["type"] == "variant_died"
    assert measurement(fine["result"]).ratio() > 0
