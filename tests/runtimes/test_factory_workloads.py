"""A user's own models, whole and in parts."""

import pytest
from tests.worker.conftest import measurement

FLOATS = {"shape": [5, 6], "dtype": "float32", "high": None}


@pytest.mark.parametrize("isolation", ["inline", "fork"])
@pytest.mark.parametrize("pairing", ["step", "window"])
def test_a_model_with_arguments(worker, workload_of, isolation, pairing):
    answer = worker.block(workload_of("mlp", arguments={"width": 32}), isolation=isolation, pairing=pairing)
    assert answer["result"]["parameters"] == 8 * 32 + 32 + 32 * 4 + 4
    assert "not_isolated" not in answer["result"]["flags"]


def test_given_inputs_replace_the_example(worker, workload_of):
    wrong = workload_of("mlp", inputs=[{"shape": [5, 9], "dtype": "float32", "high": None}])
    assert worker.block(wrong)["error"]["type"] == "variant_failed"


@pytest.mark.parametrize("named", [False, True])
def test_inputs_by_place_or_by_name(worker, workload_of, named):
    tokens, gates = {"shape": [5, 7], "dtype": "int64", "high": 11}, {"shape": [5, 3], "dtype": "float32", "high": None}
    inputs = {"gates": gates, "tokens": tokens} if named else [tokens, gates]
    assert worker.block(workload_of("two_inputs", inputs=inputs))["result"]["parameters"] == 66 + 24


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("input_grad", [False, True])
def test_a_part_is_trained_alone(worker, workload_of, dtype, input_grad):
    workload = workload_of("with_part", path="1", inputs=[FLOATS], input_grad=input_grad)
    assert worker.block(workload, setup={"dtype": dtype})["result"]["parameters"] == 6


def test_a_whole_step(worker, workload_of, layers_workload, examples):
    result = worker.block(workload_of("whole_step", step=True))["result"]
    assert result["parameters"] == 4 * 3 + 3
    assert result["loss"][1] < result["loss"][0]
    refused = worker.block({**layers_workload(examples["linear"][0]), "step": True})["error"]
    assert refused["type"] == "bad_request"
    assert "a step is code" in refused["message"]


def test_a_part_that_is_not_there(worker, workload_of):
    answer = worker.block(workload_of("with_part", path="nowhere", inputs=[FLOATS]))
    assert answer["error"]["type"] == "variant_failed"


@pytest.mark.measured
def test_the_yardstick_measured_by_the_yardstick_is_about_one(worker, workload_of):
    for pairing in ("step", "window"):
        workload = workload_of("yardstick_itself")
        result = worker.block(workload, iterations=12, warmup=4, pairing=pairing)["result"]
        assert 0.5 < measurement(result).ratio() < 2.0
