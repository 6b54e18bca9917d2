"""What README and docs show is run: Python as it stands, commands through the command line's own parser."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.plugins import bring_runtime

from ampere.cli.parsing import parse
from ampere.runtimes.table import description_of, installed

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("ampere ")]


def test_the_readmes_python_runs_as_it_stands(tmp_path):
    model, api = blocks(ROOT / "README.md", "python")
    (tmp_path / "model.py").write_text(model)
    run = [sys.executable, "-c", api]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, env={"AMPERE_HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert "J an iteration" in done.stdout
    assert "conv" in done.stdout


def test_the_readmes_model_can_be_traced_from_the_command_line(tmp_path):
    (tmp_path / "model.py").write_text(blocks(ROOT / "README.md", "python")[0])
    run = [sys.executable, "-m", "ampere", "trace", "model.py:build", "--out", "net.json"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "net.json").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_understood(page):
    for command in commands(page):
        assert parse(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text()):
        assert "://" in target or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_reports_first_example_runs_as_it_stands(tmp_path):
    first = blocks(ROOT / "docs" / "REPORT.md", "sh")[0]
    for line in first.splitlines():
        run = [sys.executable, "-m", "ampere", *shlex.split(line)[1:]]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert "simulated joules" in (tmp_path / "phone.html").read_text()


def test_the_pruning_page_runs_as_it_stands(tmp_path):
    for line in blocks(ROOT / "docs" / "PRUNING.md", "sh")[0].splitlines():
        run = [sys.executable, "-m", "ampere", *shlex.split(line)[1:]]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "pruned.safetensors").exists()
    assert "simulated, not measured" in done.stdout
    [example] = blocks(ROOT / "docs" / "PRUNING.md", "python")
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "of the joules are left" in done.stdout


def test_the_comparison_of_two_devices_runs_as_it_stands(tmp_path):
    for line in blocks(ROOT / "docs" / "COMPARING.md", "sh")[0].splitlines():
        run = [sys.executable, "-m", "ampere", *shlex.split(line)[1:]]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert "lenet5 is cheaper" in done.stdout
    assert "simulated, not measured" in done.stdout


@pytest.mark.skipif("mnn" not in installed(), reason=description_of("mnn").install)
def test_the_comparison_of_two_runtimes_runs_as_it_stands(tmp_path):
    environment = {**os.environ, "AMPERE_HOME": str(tmp_path)}
    [line] = blocks(ROOT / "docs" / "COMPARING.md", "sh")[2].splitlines()
    run = [sys.executable, "-m", "ampere", *shlex.split(line)[1:]]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "no profile of mnn on this device yet" in done.stderr
    assert "profiling lenet5 in mnn" in done.stderr
    assert "beside one yardstick, PyTorch's" in done.stdout
    assert "modelled, not measured" in done.stdout or "measured by" in done.stdout


@pytest.mark.parametrize(("page", "says"), [("COMPARING.md", "lenet5 costs 0."), ("RUNNING-JOBS.md", "steps spent")])
def test_python_of_these_pages_runs_as_it_stands(tmp_path, page, says):
    [code] = blocks(ROOT / "docs" / page, "python")
    environment = {**os.environ, "AMPERE_HOME": str(tmp_path)}
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


def test_the_tests_of_a_runtime_of_ones_own_run_as_they_stand(tmp_path, monkeypatch):
    described = 'Description("ampere.runtimes.torch_runtime", ("tiny",), "pip install tiny", frozenset({"linear"}))'
    code = f"from ampere.runtimes import Description\n\nRUNTIME = {described}\n"
    bring_runtime(monkeypatch, tmp_path / "site", "tiny", code)
    (tmp_path / "test_tiny.py").write_text(blocks(ROOT / "docs" / "RUNTIMES.md", "python")[-1])
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "really or linear or yardstick"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout


def test_the_search_page_runs_as_it_stands(tmp_path):
    environment = {**os.environ, "AMPERE_HOME": str(tmp_path)}
    page = ROOT / "docs" / "SEARCH.md"
    for line in blocks(page, "sh")[0].splitlines():
        run = [sys.executable, "-m", "ampere", *shlex.split(line)[1:]]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
    assert "1,000,000 candidates" in done.stdout
    assert "simulated, not measured" in done.stdout
    with_optuna, plain = blocks(page, "python")
    for code in [plain, *([with_optuna] if importlib.util.find_spec("optuna") else [])]:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment
        )
        assert done.returncode == 0, done.stderr
        assert "right with" in done.stdout
