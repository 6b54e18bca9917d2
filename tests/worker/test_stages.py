"""The stages of a step: together they are the step, and each can be timed alone."""

import math

import pytest
import torch
from tests.worker.conftest import measurement

from ampere.core import KINDS, Layer, TrainingSetup
from ampere.core.kinds.convolution import usual_config
from ampere.core.windows import plan_steps
from ampere.meters import choose_meter
from ampere.runtimes import find_runtime
from ampere.worker.measuring import Target, measure

STAGES = ("forward", "backward", "update")
LARGE = Layer("conv", usual_config(8, 24), 32, 32)


@pytest.fixture
def runtime():
    yield find_runtime("torch")
    torch.set_flush_denormal(False)


def losses(runtime, workload, in_parts):
    runtime.prepare(1)
    training = runtime.build(workload, TrainingSetup(optimizer="momentum"))
    seen = []
    for _ in range(3):
        if in_parts:
            for _, part in training.parts:
                part()
        else:
            training.step()
        seen.append(training.last_loss())
    return seen


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"opaque"}))
def test_the_parts_of_a_step_train_as_the_step_does(runtime, examples, layers_workload, kind):
    for layer in examples[kind]:
        if layer.config.get("dropout"):
            continue  # random numbers are drawn in another order
        workload = layers_workload(layer)
        assert losses(runtime, workload, in_parts=True) == pytest.approx(losses(runtime, workload, in_parts=False))


def test_a_layer_that_nothing_comes_back_to_has_stages_too(runtime, layers_workload):
    frozen = Layer("linear", {"lead": (3,), "bias": True}, 8, 4, trainable=False, input_grad=False)
    assert len(set(losses(runtime, layers_workload(frozen), in_parts=True))) == 1


def test_only_the_stage_is_timed_and_the_rest_of_the_step_runs():
    order = []
    target = Target(lambda: order.append("B"), (lambda: order.append("f"),), (lambda: order.append("u"),))
    targets, _ = measure(plan_steps(2), target, lambda: order.append("y"), choose_meter(5.0), math.inf)
    assert "".join(order) == "yfBuyfBuy"
    assert [w.iterations for w in targets] == [1, 1]


@pytest.mark.measured
def test_the_stages_of_a_layer_are_about_its_step(worker, layers_workload):
    """A physical bound, not a speed: the loss and the bookkeeping of a step are small beside a large convolution."""
    workload = layers_workload(LARGE)
    cost = {
        stage: measurement(worker.block(workload, iterations=9, warmup=3, stage=stage)["result"]).ratio()
        for stage in ("step", *STAGES)
    }
    assert all(cost[stage] > 0 for stage in STAGES)
    assert cost["update"] < cost["forward"] < cost["backward"]
    assert 0.4 < sum(cost[stage] for stage in STAGES) / cost["step"] < 2.5


@pytest.mark.parametrize(
    "fields", [{"stage": "breakfast"}, {"stage": 3}, {"stage": "forward", "pairing": "window"}, {"stage": ["update"]}]
)
def test_stages_that_make_no_sense_are_refused(worker, layers_workload, fields):
    assert worker.block(layers_workload(LARGE), **fields)["error"]["type"] == "bad_request"


def test_only_described_layers_have_stages(worker, workload_of):
    answer = worker.block(workload_of("mlp"), stage="forward")
    assert answer["error"]["type"] == "bad_request"
    assert "layers" in answer["error"]["message"]
