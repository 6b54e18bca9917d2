"""The scripts and the notebook under examples/ run as they stand."""

import importlib.util
import json
import os
from pathlib import Path

import pytest
from tests.processes import run_script

from ampere.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
ELSEWHERE = {"fine_tune_transformer.py", "lightning_budget.py"}  # run where their libraries are: tests/integrations
FIRST = "first_model.py"  # what `start.py` estimates
BY_HAND = {"federated.py"}  # Flower wants older packages than the checks use
SCRIPTS = {
    "optuna_search.py": (("optuna",), "too expensive to be trained"),
    "prune_and_save.py": (("torch_pruning", "safetensors"), "trained"),
    "compare_devices.py": ((), "lenet5 is"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Profiles that one example makes, the next one uses."""
    return tmp_path_factory.mktemp("home")


def printed(code, folder, home):
    environment = {**os.environ, "AMPERE_HOME": str(home), "MPLBACKEND": "agg", "HF_HUB_OFFLINE": "1"}
    ran = run_script(code, folder, environment)
    assert ran.code == 0, ran.err
    return ran.out + ran.err


def test_each_script_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {FIRST, *SCRIPTS} | ELSEWHERE | BY_HAND
    assert [path.name for path in EXAMPLES.glob("*.ipynb")] == ["energy.ipynb"]


def test_the_first_model_is_estimated(home, monkeypatch, capsys):
    monkeypatch.setenv("AMPERE_HOME", str(home))
    assert main(["estimate", f"{EXAMPLES / FIRST}:build", "--device", "simulated:desktop", "--seconds", "3"]) == 0
    assert "first_model:build: " in capsys.readouterr().out


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_runs_as_it_stands(name, tmp_path, home):
    packages, says = SCRIPTS[name]
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    assert says in printed((EXAMPLES / name).read_text(encoding="utf-8"), tmp_path, home)


def test_the_notebook_runs_as_it_stands(tmp_path, home):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    cells = json.loads((EXAMPLES / "energy.ipynb").read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert "60,000 iterations" in printed(code, tmp_path, home)
