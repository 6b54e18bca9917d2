"""A whole run on the command line: its parts, kilowatt-hours, money and carbon."""

import json

import pytest
import torch
from torch import nn

from ampere.api import RunPlan
from ampere.api.run import parse_every
from ampere.cli import main
from ampere.core.errors import ModelError, UsageError
from ampere.profiling.overheads import InSteps
from ampere.profiling.overheads_process import TASKS, data, parts

DEVICE = ("--device", "simulated:server", "--seconds", "60")
RUN = ("--epochs", "3", "--samples", "1000")


@pytest.fixture(scope="module")
def server_home(tmp_path_factory):
    """A home with a profile of cnn5 on a simulated device."""
    home = tmp_path_factory.mktemp("server")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AMPERE_HOME", str(home))
        assert main(["profile", "cnn5", *DEVICE, "--quiet"]) == 0
    return home


@pytest.fixture
def estimate(server_home, monkeypatch, capsys):
    monkeypatch.setenv("AMPERE_HOME", str(server_home))

    def run(*words):
        capsys.readouterr()
        assert main(["estimate", "cnn5", *DEVICE, "--no-profiling", *words]) == 0
        return capsys.readouterr().out

    return run


def test_the_whole_run_by_its_parts_with_money_and_several_grids(estimate):
    words = (*RUN, "--evaluate-every", "1", "--evaluation-samples", "200", "--checkpoint-every", "1epoch")
    said = json.loads(estimate(*words, "--price", "0.30 /kWh", "--grid", "DE,FR", "--pue", "1.5", "--json"))["total"]
    parts = {part["name"]: part for part in said["parts"]}
    assert said["iterations"] == parts["training"]["count"] == 300
    assert parts["evaluation"]["count"] == 3 * 20
    assert parts["checkpoints"]["count"] == 3
    assert said["joules"] == pytest.approx(sum(part["joules"] for part in parts.values()))
    assert said["kwh"] == pytest.approx(1.5 * said["joules"] / 3.6e6)
    assert said["cost"]["money"] == pytest.approx(0.3 * said["kwh"])
    assert [carbon["region"] for carbon in said["carbon"]] == ["Germany", "France"]
    assert all(low < high for low, high in (said["kwh_interval90"], said["carbon"][0]["grams_interval90"]))


def test_each_figure_says_that_its_joules_are_not_measured_and_where_its_grid_comes_from(estimate):
    said = estimate(*RUN, "--price", "0.30/kWh", "--grid", "WORLD", "--battery", "50J", "--idle", "5W")
    [carbon] = said.split("CO2e")[1:]
    assert "simulated joules" in carbon
    assert "Ember" in carbon
    for word in ("kWh", "price"):
        assert "simulated joules" in said.split(word)[1].split("\n\n")[0]
    assert "charges" in said


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--price", "-0.30/kWh", *RUN), "negative"),
        (("--grid", "XX", *RUN), "there is no grid 'XX'"),
        (("--pue", "0.5", *RUN), "from 1"),
        (("--price", "0.30/kWh"), "whole run"),
        (("--evaluate-every", "1"), "whole run"),
        (("--evaluate-every", "often", *RUN), "does not say how often"),
        (("--evaluate-every", "500", "--iterations", "100"), "every 500 would never be"),
        (("--checkpoint-every", "1epoch", "--iterations", "100"), "has no epochs"),
        (("--evaluation-samples", "10", *RUN), "--evaluate-every"),
        (("--idle", "5W"), "--battery or a whole run"),
        (("--epochs", "3"), "--samples"),
    ],
)
def test_bad_input_is_one_line_before_anything_is_measured(here, refused, words, expected):
    refused(here("estimate", "cnn5", *words), 2, expected)


def test_how_often_is_in_the_unit_of_the_run_or_in_its_own():
    assert parse_every("1", by_epochs=True).times(300, 100) == 3
    assert parse_every("50", by_epochs=False).times(300, None) == 6
    assert parse_every("2 epochs", by_epochs=False).times(400, 100) == 2
    assert parse_every("60 iterations", by_epochs=True).times(300, 100) == 5
    with pytest.raises(UsageError, match="no epochs"):
        parse_every("epoch", by_epochs=False).times(300, None)
    with pytest.raises(UsageError, match="would never be"):
        parse_every("4 epochs", by_epochs=False).times(300, 100)


# What is timed, in this process.


def build():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10)), torch.randn(8, 1, 28, 28)


def test_evaluation_costs_less_than_a_step_and_accumulating_less_than_steps_with_updates():
    setup = {"runtime": "torch", "optimizer": "adam", "dtype": "float32", "threads": 1}
    workload = {"factory": f"{__name__}:build", "arguments": {}}
    asked = {"evaluation": 1, "accumulation": 8, "checkpoint": 1}
    found = parts({"name": "net", "workload": workload, "setup": setup, "parts": asked, "seconds": 0.1})["rounds"]
    cost = {name: InSteps.of(rounds) for name, rounds in found.items()}
    assert 0 < cost["evaluation"].joules < 0.9
    assert 1 < cost["accumulation"].joules < 8
    assert cost["checkpoint"].seconds > 0


def test_a_loader_says_its_batch_and_how_long_it_is(tmp_path):
    (tmp_path / "loaders.py").write_text(
        "import torch\n"
        "def listed(): return [(torch.zeros(4, 2), torch.zeros(4))] * 7\n"
        "def generated(): yield from listed()\n"
        "ONCE = iter([torch.zeros(4)] * 7)\n"
        "def once(): return ONCE\n"
    )
    task = {"batch": 4, "seconds": 0.05}
    found = data({**task, "loader": f"{tmp_path / 'loaders.py'}:listed"})
    assert (found["epoch_batches"], found["shape"], found["overlaps"]) == (7, [4, 2], False)
    assert data({**task, "loader": f"{tmp_path / 'loaders.py'}:generated"})["epoch_batches"] == 7  # made anew
    with pytest.raises(ModelError, match=r"ended after .* cannot start again"):
        data({**task, "loader": f"{tmp_path / 'loaders.py'}:once"})


def test_a_loader_that_ends_early_is_refused():
    from ampere.api.run import _epoch
    from ampere.core import Meter
    from ampere.profiling.overheads import Timed

    loaded = Timed("data", 1.0, 1.0, 1.0, 10, Meter("cpu-time", False), epoch_batches=7)
    plan = RunPlan(epochs=3, samples=1000, data="net.py:loader")
    with pytest.raises(UsageError, match=r"ends after 7 batches, but an epoch of 1,000 samples has 250"):
        _epoch(plan, 4, loaded)
    assert _epoch(RunPlan(epochs=3, data="net.py:loader"), 4, loaded) == 7


def test_parts_are_timed_where_the_models_own_code_runs(profiled, here, refused, tmp_path, monkeypatch):
    def in_this_process(task, environment):
        return TASKS[task["what"]]({**task, "seconds": 0.1})

    monkeypatch.setattr("ampere.profiling.overheads._in_a_process", in_this_process)
    (tmp_path / "data.py").write_text(
        "import torch\n"
        "def loader(): return [(torch.zeros(10, 1, 28, 28), torch.zeros(10))] * 20\n"
        "class Slow(list):\n"
        "    def __iter__(self):\n"
        "        for batch in list.__iter__(self):\n"
        "            torch.randn(300, 300).inverse()\n"
        "            yield batch\n"
        "def slow(): return Slow(loader())\n"
        "def other(): return [torch.zeros(7, 1, 28, 28)] * 20\n"
    )
    words = ("estimate", "lenet5", "--epochs", 2, "--evaluate-every", 1, "--accumulate", 4)
    ran = here(*words, "--data", "data.py:loader", "--json")
    assert ran.code == 0, ran.err
    total = ran.record["total"]
    parts = {part["name"]: part for part in total["parts"]}
    assert total["iterations"] == parts["loading"]["count"] == 40  # as long as the loader
    assert "timed" in parts["evaluation"]["source"]
    assert "an update every 4 batches" in parts["training"]["source"]
    assert total["not_covered"].startswith("checkpoints")
    slow = here(*words, "--data", "data.py:slow", "--json").record["total"]["parts"]
    assert "timed, between steps" in next(part["source"] for part in slow if part["name"] == "loading")
    refused(here(*words, "--data", "data.py:other", "--quiet"), 2, "batches of 7", "--batch 7")
    refused(here(*words, "--data", "data.py:loader", "--samples", 1000, "--quiet"), 2, "ends after 20 batches")


# Other formats, and the gate.


def test_the_same_estimate_in_each_format(estimate):
    record = json.loads(estimate(*RUN, "--format", "json"))
    assert record == json.loads(estimate(*RUN, "--json"))
    assert estimate("--format", "csv").splitlines()[0] == "name,kind,joules,stddev,share"
    assert estimate(*RUN, "--grid", "DE", "--format", "markdown").startswith("# cnn5: ")
    assert estimate("--format", "html").startswith("<!DOCTYPE html>")


def test_two_formats_are_refused(here, refused):
    refused(here("estimate", "cnn5", "--json", "--format", "csv"), 2, "--format csv")


def test_a_gate_passes_and_fails_with_its_own_exit_code(server_home, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("AMPERE_HOME", str(server_home))
    summary, baseline, cheaper = (tmp_path / name for name in ("summary.md", "energy.json", "cheaper.json"))
    exact = ["--max-increase", "0%"]
    words = ["check", "cnn5", *DEVICE, "--no-profiling", *exact, "--summary", str(summary), "--baseline"]
    assert main([*words, str(baseline), "--write"]) == 0
    once = summary.read_text()
    assert main([*words, str(baseline)]) == 0
    assert summary.read_text() == 2 * once  # each run appends
    capsys.readouterr()
    assert main(["estimate", "cnn5", *DEVICE, "--no-profiling", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    half = {name: record[name] / 2 for name in ("joules_per_iteration", "joules_stddev")}
    cheaper.write_text(json.dumps({**record, **half}))
    assert main([*words, str(cheaper)]) == 11
    said = capsys.readouterr()
    assert "Energy of training: FAILED" in said.out
    assert said.err.splitlines()[-1].startswith("ampere: cnn5 costs ")
    assert main([*words, str(tmp_path / "gone.json")]) == 2
