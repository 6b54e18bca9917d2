"""What README and docs show is run: Python as it stands, commands through the command line's own parser."""

import importlib.util
import os
import re
import shlex
from pathlib import Path

import pytest
from tests.plugins import bring_runtime
from tests.processes import Done, run_command, run_script

from ampere.cli.parsing import parse
from ampere.runtimes.table import description_of, installed

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

# Pages whose Python is run below. flax's page is run where flax is tested: tests/tracing/jax/test_other_runtimes.py;
# the protocol's in test_protocol.py; the explorer's against a server, in tests/web/test_serve.py.
RUN_BELOW = {
    "README.md",
    "docs/tutorial/own-model.md",
    "docs/tutorial/python.md",
    "docs/how-to/compare.md",
    "docs/how-to/extend.md",
    "docs/how-to/memory.md",
    "docs/how-to/prune.md",
    "docs/how-to/running-jobs.md",
    "docs/how-to/search.md",
    "docs/how-to/training-ways.md",
    "docs/how-to/whole-run.md",
    "docs/explanation/evaluation.md",
}
RUN_ELSEWHERE = {"docs/how-to/explorer.md", "docs/how-to/runtimes.md", "docs/reference/protocol.md"}


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("ampere ")]


def checked(done: Done) -> str:
    """What it printed."""
    assert done.code == 0, done.err
    return done.out + done.err


def environment(folder: Path) -> dict[str, str]:
    """Profiles have one place for all pages, as those of a reader: a model is profiled once."""
    return {**os.environ, "AMPERE_HOME": str(folder.parent / "home")}


def run(words: list[str], folder: Path) -> str:
    return checked(run_command(words, folder, environment(folder)))


def run_python(code: str, folder: Path) -> str:
    return checked(run_script(code, folder, environment(folder)))


def run_commands(block: str, folder: Path) -> str:
    """Run the lines of a block one after another; what the last one printed."""
    return [run([*shlex.split(line, comments=True)[1:]], folder) for line in block.splitlines()][-1]


def test_all_python_is_run():
    shown = {str(page.relative_to(ROOT)) for page in PAGES if blocks(page, "python")}
    assert shown == RUN_BELOW | RUN_ELSEWHERE


@EVERY_PAGE
def test_commands_are_understood(page):
    for command in commands(page):
        assert parse(command)


@EVERY_PAGE
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), f"{page.name} links to {target}"


def test_pages_that_messages_name_are_there():
    named = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"docs/[\w./-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert not [name for name in named if not (ROOT / name).exists()]


def test_the_readme_runs_as_it_stands(tmp_path):
    model, api = blocks(ROOT / "README.md", "python")
    (tmp_path / "model.py").write_text(model)
    run(["trace", "model.py:build", "--out", "net.json"], tmp_path)
    assert (tmp_path / "net.json").exists()
    printed = run_python(api, tmp_path)
    assert "J per iteration" in printed
    assert "conv" in printed


def test_the_tutorial_runs_as_it_stands(tmp_path):
    [model] = blocks(DOCS / "tutorial" / "own-model.md", "python")
    (tmp_path / "model.py").write_text(model)
    trace = next(command for command in commands(DOCS / "tutorial" / "own-model.md") if command[0] == "trace")
    assert "conv" in run(trace, tmp_path)
    [code] = blocks(DOCS / "tutorial" / "python.md", "python")
    assert "90 % interval" in run_python(code, tmp_path)


def test_the_report_page_runs_as_it_stands(tmp_path):
    run_commands(blocks(DOCS / "how-to" / "report.md", "sh")[0], tmp_path)
    assert "simulated joules" in (tmp_path / "phone.html").read_text(encoding="utf-8")


def test_the_pruning_page_runs_as_it_stands(tmp_path):
    page = DOCS / "how-to" / "prune.md"
    assert "simulated, not measured" in run_commands(blocks(page, "sh")[0], tmp_path)
    assert (tmp_path / "pruned.safetensors").exists()
    loading, pruning = blocks(page, "python")
    assert "trained" in run_python(loading, tmp_path)
    assert "of the joules are left" in run_python(pruning, tmp_path)


def test_the_page_of_plans_runs_as_it_stands(tmp_path):
    page = DOCS / "how-to" / "schedule.md"
    for name, text in zip(("fleet.toml", "jobs.toml"), blocks(page, "toml"), strict=True):
        (tmp_path / name).write_text(text)
    assert "2 of 2 jobs" in run_commands(blocks(page, "sh")[0], tmp_path)
    assert "digits" in (tmp_path / "plan.svg").read_text(encoding="utf-8")


def test_the_memory_page_runs_as_it_stands(tmp_path):
    [code] = blocks(DOCS / "how-to" / "memory.md", "python")
    assert "fits" in run_python(code, tmp_path)


def test_the_comparison_of_two_devices_runs_as_it_stands(tmp_path):
    printed = run_commands(blocks(DOCS / "how-to" / "compare.md", "sh")[1], tmp_path)
    assert "lenet5 is cheaper" in printed
    assert "simulated, not measured" in printed


@pytest.mark.skipif("mnn" not in installed(), reason=description_of("mnn").install)
def test_the_comparison_of_two_runtimes_runs_as_it_stands(tmp_path):
    (tmp_path / "new").mkdir()  # a reader who has profiled nothing
    printed = run_commands(blocks(DOCS / "how-to" / "compare.md", "sh")[2], tmp_path / "new")
    assert "no profile of this device in mnn yet" in printed
    assert "profiling lenet5 in mnn" in printed
    assert "PyTorch's yardstick" in " ".join(printed.split())
    assert "modelled, not measured" in printed or "measured by" in printed


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("compare.md", "lenet5"),
        ("running-jobs.md", "J spent"),
        ("training-ways.md", "discriminator.0"),
        ("whole-run.md", "kWh"),
    ],
)
def test_python_of_these_guides_runs_as_it_stands(tmp_path, page, says):
    [code] = blocks(DOCS / "how-to" / page, "python")
    assert says in run_python(code, tmp_path)


def test_records_of_an_evaluation_are_read_as_shown(tmp_path):
    [code] = blocks(DOCS / "explanation" / "evaluation.md", "python")
    (tmp_path / "drift.json").write_text('{"ampere": "x", "body": {"records": [{"off": 0.02}]}}')
    assert "0.02" in run_python(f"{code}\nprint(records(Path('drift.json')))", tmp_path)


def test_the_tests_of_a_runtime_of_ones_own_run_as_they_stand(tmp_path, monkeypatch):
    described = 'Description("ampere.runtimes.torch_runtime", ("tiny",), "pip install tiny", frozenset({"linear"}))'
    code = f"from ampere.runtimes import Description\n\nRUNTIME = {described}\n"
    bring_runtime(monkeypatch, tmp_path / "site", "tiny", code)
    [shown] = blocks(DOCS / "how-to" / "extend.md", "python")
    (tmp_path / "test_tiny.py").write_text(shown)
    chosen = ["-q", "-p", "no:cacheprovider", "-k", "really or linear or yardstick"]
    assert "5 passed" in run_python(f"import pytest\nraise SystemExit(pytest.main({chosen}))", tmp_path)


def test_the_search_page_runs_as_it_stands(tmp_path):
    page = DOCS / "how-to" / "search.md"
    printed = run_commands(blocks(page, "sh")[0], tmp_path)
    assert "1,000,000 candidates" in printed
    assert "simulated, not measured" in printed
    with_optuna, plain = blocks(page, "python")
    for code in [plain, *([with_optuna] if importlib.util.find_spec("optuna") else [])]:
        assert "correct with" in run_python(code, tmp_path)
