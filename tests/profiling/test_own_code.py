"""A user's own code as the truth: its own inputs, its own sizes, plain processes."""

import importlib.util
import io
import json
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest
import torch

from ampere.core import Layer, Network, TrainingSetup
from ampere.devices import VariantFailed, Yardstick
from ampere.models.loading import load_model
from ampere.profiling import plain_processes
from ampere.profiling.experiment import Experiment
from ampere.profiling.plain_processes import TRAINING_SHARE, Effort, PlainProcess, bare_task, plain_rounds
from ampere.profiling.sources import by_own_code, source_of
from ampere.runtimes import plain_script
from ampere.runtimes.plain_loop import build, main, train

SCRIPTED = """
import torch
from torch import nn
from neighbour import CLASSES

def scores(batch=2):
    torch.manual_seed(1)
    return nn.Linear(8, CLASSES)

def whole_step():
    model = scores()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

    def step(inputs):
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    return step, torch.ones(2, 8)
"""
ACCUMULATED = """
import torch

model, calls = torch.nn.Linear(2, 2), []
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def step():
    calls.append(1)
    model(torch.ones(1, 2)).sum().backward()
    if len(calls) % 3 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""
ALONE = """
import sys
import torch

def build():
    with_ampere = "ampere" in sys.modules
    assert with_ampere or not {refuses}
    return torch.nn.Linear(2 if with_ampere else 1, 1, bias=False), torch.ones(1, 2 if with_ampere else 1)
"""
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MODEL = """
import torch
from torch import nn

class Table(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(100, width), nn.Embedding(3, width)])
        self.head = nn.Linear(2 * width, 4)

    def forward(self, categories):  # the second column may not exceed 2, though the first has larger indices
        return self.head(torch.cat([table(categories[:, i]) for i, table in enumerate(self.tables)], 1))

def build(width=32, heads=4):
    if width % 16 == 8:
        raise ValueError("no such width")
    return Table(width), torch.tensor([[90, 2], [99, 0]])

def fixed():
    return build()
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "table.py").write_text(MODEL)
    return str(tmp_path / "table.py")


def test_the_models_own_inputs_are_trained_with(model):
    workload = source_of(load_model(f"{model}:build")).original().workload
    assert "inputs" not in workload
    found = train(dict(workload), TrainingSetup(), 0.0)  # indices drawn below 100 would not fit the second table
    assert len(found["windows"]) == 3
    assert all(wall > 0 and busy > 0 and joules is None for _, wall, busy, joules, _ in found["windows"])


def test_long_steps_are_trained_twice_however_short_the_time_is(model):
    workload = source_of(load_model(f"{model}:build")).original().workload
    found = train(dict(workload), TrainingSetup(), 0.8, at_most=0.0)
    assert len(found["windows"]) == 1
    assert found["elapsed_seconds"] > 0


def test_the_word_of_a_process_that_is_ready_is_one():
    assert plain_processes.READY.decode() == plain_script.READY


@pytest.mark.parametrize("optimizer", ["momentum", "lion"])
@pytest.mark.parametrize("asked", ["scores(batch=6)", "whole_step()"])
def test_a_bare_script_trains_what_ampere_trains(tmp_path, monkeypatch, asked, optimizer):
    (tmp_path / "neighbour.py").write_text("CLASSES = 5")
    (tmp_path / "bare_model.py").write_text(SCRIPTED)
    monkeypatch.setattr("sys.path", list(sys.path))
    name, arguments = asked.rstrip(")").split("(")
    workload = {"factory": f"{tmp_path / 'bare_model.py'}:{name}", "arguments": eval(f"dict({arguments})")}
    workload.update({"step": True} if name == "whole_step" else {"inputs": [{"shape": [6, 8], "dtype": "float32"}]})
    setup = TrainingSetup(optimizer=optimizer, threads=1)
    task: Any = bare_task(workload, setup)
    torch.manual_seed(0)
    made = (plain_script.whole_step if task["step"] else plain_script.plain_step)(
        task, plain_script.loaded(task["factory"])
    )
    ours, theirs = (plain_script.trained(training, 0.0, 0.0) for training in (made, build(workload, setup)))
    assert ours["parameters"] == theirs["parameters"] == 45
    assert ours["loss"][0] == pytest.approx(theirs["loss"][0])


def test_an_accumulated_step_is_all_its_calls(tmp_path, monkeypatch):
    (tmp_path / "accumulating.py").write_text(ACCUMULATED)
    monkeypatch.setattr("sys.path", list(sys.path))
    task = {"factory": f"{tmp_path / 'accumulating.py'}:step", "arguments": {}, "calls": 3}
    function = plain_script.loaded(task["factory"])
    training = plain_script.whole_step(task, function)
    before = len(function.__globals__["calls"])
    training.step()
    assert len(function.__globals__["calls"]) - before == 3


def test_steps_for_the_peak_go_on_until_it_is_steady(monkeypatch):
    peaks = iter([100, 110, 120, 130, 131, 131, 131, 131])
    monkeypatch.setattr(plain_script, "peak_bytes", lambda: next(peaks))
    done: list[int] = []
    training = plain_script.Step(lambda: done.append(1), lambda: 0.0, 1)
    found = plain_script.trained(training, 0.0, 0.0, peak_steps=8)
    assert found["first_peak_bytes"] == 100
    assert found["peak_bytes"] == 131
    for_the_peak = 5  # of which the last two added nothing
    assert found["peak_steps"] == len(done) == 1 + sum(window[0] for window in found["windows"]) + for_the_peak


def test_steps_for_the_peak_are_windows_where_a_step_is_as_long_as_one(monkeypatch):
    monkeypatch.setattr(plain_script, "WINDOW_SECONDS", 0.0)
    peaks = iter([100, 110, 120, 130, 131, 131, 131, 131])
    monkeypatch.setattr(plain_script, "peak_bytes", lambda: next(peaks))
    found = plain_script.trained(plain_script.Step(lambda: None, lambda: 0.0, 1), 0.0, 0.0, peak_steps=8)
    assert [window[0] for window in found["windows"]] == [1] * 6
    assert found["peak_steps"] == 1 + 6


def test_the_last_output_lives_until_there_is_another_as_in_a_loop(tmp_path, monkeypatch):
    (tmp_path / "alone.py").write_text(ALONE.format(refuses=False))
    monkeypatch.setattr("sys.path", list(sys.path))
    seen: list[Any] = []
    monkeypatch.setattr(plain_script, "training_loss", lambda output: seen.append(ref(output)) or output.sum())
    task = {"arguments": {}, "inputs": None, "optimizer": ["torch.optim:SGD", {"lr": 0.1}]}
    training = plain_script.plain_step(task, plain_script.loaded(f"{tmp_path / 'alone.py'}:build"))
    training.step()
    assert seen[-1]() is not None
    training.step()
    assert [output() is not None for output in seen] == [False, True]


@pytest.mark.parametrize("refuses", [False, True])
def test_a_plain_process_has_nothing_of_ampere_unless_the_model_needs_it(tmp_path, refuses, monkeypatch):
    monkeypatch.setattr(plain_processes, "subprocess", subprocess)  # one that starts warm has imported all of it
    (tmp_path / "alone.py").write_text(ALONE.format(refuses=refuses))
    workload = {"factory": f"{tmp_path / 'alone.py'}:build"}
    experiment = Experiment(Network((), 1), workload, "network", "system")
    with ExitStack() as ending:
        process = PlainProcess(experiment, TrainingSetup(threads=1), Effort(0.1, 1, 1, ends_sharply=True), ending)
        process.wait()
        turns = sum(1 for _ in process.turns())
        assert process.answer["parameters"] == (2 if refuses else 1)
        assert turns == len(process.answer["windows"]) + 1  # others may have one before each, and one after the last


def test_the_yardstick_is_ready_before_the_first_process_trains(tmp_path, monkeypatch):
    (tmp_path / "alone.py").write_text(ALONE.format(refuses=False))
    order: list[str] = []
    turns = PlainProcess.turns
    monkeypatch.setattr(PlainProcess, "turns", lambda self: order.append("train") or turns(self))

    def yardstick(*how: Any, **more: Any) -> Yardstick:
        order.append("yardstick")
        return Yardstick(0.002, 0.002, 20)

    device: Any = SimpleNamespace(worker=lambda *how: SimpleNamespace(yardstick=yardstick))
    workload = {"factory": f"{tmp_path / 'alone.py'}:build"}
    experiment = Experiment(Network((), 1), workload, "network", "system")
    effort = Effort(0.5, 1, 1, ends_sharply=True)
    (seen,) = plain_rounds(experiment, TrainingSetup(threads=1), effort, device, 5.0, lambda spent, number: None)
    assert order[:3] == ["yardstick", "train", "yardstick"]
    assert len(seen.measurement.yardstick) == len(seen.measurement.target) + 1 == len(order) - 2


BUILT = """
from pathlib import Path
from torch import nn, ones

def build():
    Path(__file__).with_suffix(".built").touch()
    return nn.Linear(2, 2), ones(3, 2)
"""


@pytest.mark.parametrize(("width", "before_its_turn"), [(2, True), (20_000, False)])
def test_processes_build_small_models_while_they_wait_and_large_ones_one_by_one(tmp_path, width, before_its_turn):
    (tmp_path / "small.py").write_text(BUILT)
    network = Network((Layer("linear", {"lead": (3,), "bias": True}, width, width),), 3)
    experiment = Experiment(network, {"factory": f"{tmp_path / 'small.py'}:build"}, "network", "system")
    with ExitStack() as ending:
        process = PlainProcess(experiment, TrainingSetup(threads=1), Effort(0.1, 1, 1, ends_sharply=True), ending)
        process.wait()
        assert (tmp_path / "small.built").exists() is before_its_turn
        assert process.trained()["parameters"] == 6


def test_a_plain_process_ends_when_nobody_waits_for_it(tmp_path):
    (tmp_path / "alone.py").write_text(ALONE.format(refuses=False))
    experiment = Experiment(Network((), 1), {"factory": f"{tmp_path / 'alone.py'}:build"}, "network", "system")
    with ExitStack() as ending:
        process = PlainProcess(experiment, TrainingSetup(threads=1), Effort(60.0, 1, 1, ends_sharply=True), ending)
        next(process.turns())
        process._process.stdin.close()
        assert process._process.wait(30) == 0


@pytest.mark.parametrize(
    ("workload", "changed"),
    [({"path": "layer1"}, {}), ({}, {"dtype": "bfloat16"}), ({}, {"on": "cuda:0"})],
)
def test_what_a_bare_script_cannot_train_is_not_asked_of_it(workload, changed):
    assert bare_task({"factory": "m:f", **workload}, replace(TrainingSetup(), **changed)) is None
    assert bare_task({"factory": "m:f"}, TrainingSetup()) is not None


def test_a_touch_ends_within_its_seconds():
    assert Effort(10.0).each is None
    assert Effort(5.0, 1, 3, ends_sharply=True).each == pytest.approx(5 / 3 * TRAINING_SHARE)


def test_inputs_that_are_given_travel_as_shapes(model):
    assert source_of(load_model(f"{model}:build", batch=6)).original().workload["inputs"] == [
        {"shape": [6, 2], "dtype": "int64", "high": 100}
    ]


def test_sizes_are_those_that_the_own_function_can_build(model):
    loaded = load_model(f"{model}:build")
    found = by_own_code(loaded, source_of(loaded).original(), 3, Random(1))
    assert [e.workload["arguments"].get("width", 32) for e in found] == [32, 16]  # 24 fails, and there is no other
    assert all("factory" in e.workload for e in found)


def test_a_function_without_sizes_is_tested_as_it_is(model):
    loaded = load_model(f"{model}:fixed")
    original = source_of(loaded).original()
    assert by_own_code(loaded, original, 5, Random(1)) == [original]


def test_a_plain_process_answers_with_the_reason_of_a_failure(monkeypatch, capsys):
    task = {"workload": {"factory": "nowhere:build"}, "setup": TrainingSetup().to_json(), "seconds": 0.1}
    monkeypatch.setattr("sys.argv", ["plain_loop", json.dumps(task)])
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    main()
    assert "nowhere" in json.loads(capsys.readouterr().out.splitlines()[-1])["error"]


def test_a_model_that_ends_its_process_is_named(model, monkeypatch):
    monkeypatch.setattr("ampere.profiling.plain_processes.python_program", lambda module: ["false"])
    experiment: Any = Experiment(load(model), {"factory": f"{model}:build"}, "network", "system")
    with ExitStack() as ending, pytest.raises(VariantFailed, match="exit code 1"):
        PlainProcess(experiment, TrainingSetup(), Effort(1.0), ending, with_ampere=True).trained()


def load(model: str) -> Any:
    return source_of(load_model(f"{model}:build")).original().network


@pytest.fixture(scope="module")
def benchmark_code() -> Any:
    spec = importlib.util.spec_from_file_location("own_code", BENCHMARKS / "own_code.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_half_has_fourteen_models_that_differ(benchmark_code):
    halves = [benchmark_code.factories(place) for place in benchmark_code.HALVES.values()]
    assert [len(half) for half in halves] == [14, 14]
    assert not set(halves[0]) & set(halves[1])


@pytest.mark.parametrize("name", ["tabular_mlp", "graphsage"])
def test_models_of_users_are_traced(name):
    loaded = load_model(f"{BENCHMARKS / 'street' / 'development.py'}:{name}")
    assert source_of(loaded).original().network.layers


def test_errors_are_relative_to_the_truth_at_the_profiles_speed(benchmark_code, tmp_path):
    records = benchmark_code.Records(tmp_path / "records.jsonl")
    for process, (seconds, yardstick) in enumerate([(0.010, 0.002), (0.020, 0.004)]):  # the machine halved its speed
        row = {"busy_seconds": seconds, "yardstick_seconds": yardstick}
        records.ensure({"what": "truth", "model": "m:build", "process": process}, lambda row=row: row)
    estimated = {"seconds": 0.011, "low": 0.0105, "high": 0.012, "yardstick_seconds": 0.002, "drift_share": 1.0}
    records.ensure({"what": "device", "model": "m:build"}, lambda: estimated)
    again = benchmark_code.Records(tmp_path / "records.jsonl")  # nothing is measured twice
    again.ensure({"what": "device", "model": "m:build"}, pytest.fail)
    (row,) = benchmark_code.summarize(["/m.py:build"], again, threads=1)
    assert row["device"]["error"] == pytest.approx(0.1)
    assert row["spread"] == pytest.approx(0.0, abs=1e-9)
    assert row["device"]["within"] is False
