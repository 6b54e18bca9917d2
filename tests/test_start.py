"""start.py installs once, and again only when there is a reason."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def load(folder):
    spec = importlib.util.spec_from_file_location("start", folder / "start.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def start(tmp_path, monkeypatch):
    """start.py as if cloned into an empty folder, with the installing itself written down instead of done."""
    for name in ("start.py", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    module = load(tmp_path)
    module.commands = []
    monkeypatch.setattr(module, "make_venv", lambda: _pretend_venv(module))
    monkeypatch.setattr(module, "has_pip", module.PYTHON.exists)
    monkeypatch.setattr(module, "follow", lambda command, what: module.commands.append(command) or 0)
    monkeypatch.setattr(module, "pip_settings", lambda: [("find-links", "/wheels /more"), ("no-index", "1")])
    return module


def _pretend_venv(module):
    module.PROGRAMS.mkdir(parents=True)
    module.PYTHON.touch()


def installs(start):
    return sum("-e" in command for command in start.commands)


def test_it_installs_once(start):
    start.install(start.RUN_EXTRAS)
    start.install(start.RUN_EXTRAS)
    assert installs(start) == 1


def test_a_changed_file_installs_again(start):
    start.install(start.RUN_EXTRAS)
    (start.ROOT / "constraints.txt").write_text("torch==2.12.0")
    start.install(start.RUN_EXTRAS)
    assert installs(start) == 2


def test_tests_add_to_what_a_run_has_and_a_run_is_content_with_what_tests_have(start):
    start.install(start.RUN_EXTRAS)
    start.install(start.TEST_EXTRAS)
    start.install(start.RUN_EXTRAS)
    assert installs(start) == 2


def test_docs_are_added_to_what_is_there_and_nothing_is_taken_away(start):
    start.install(start.RUN_EXTRAS)
    start.install(start.DOCS_EXTRAS)
    start.install(start.RUN_EXTRAS)
    start.install(start.DOCS_EXTRAS)
    assert installs(start) == 2
    assert start.installed_extras() == {"torch", "plot", "prune", "docs"}


def test_tests_have_what_docs_need(start):
    start.install(start.TEST_EXTRAS)
    start.install(start.DOCS_EXTRAS)
    assert installs(start) == 1


def test_an_install_that_failed_is_tried_again(start, monkeypatch):
    monkeypatch.setattr(start, "follow", lambda command, what: start.LOG.write_text("no space left"))
    for _ in range(2):
        with pytest.raises(SystemExit, match="installing failed"):
            start.install(start.RUN_EXTRAS)
    assert not start.STAMP.exists()


@pytest.mark.fault(31)
def test_a_package_that_pip_was_interrupted_in_is_installed_again(start):
    start.install(start.RUN_EXTRAS)
    packages = start.VENV / "lib" / "python3" / "site-packages"
    for name in ("whole-1.dist-info", "torn-1.dist-info"):
        (packages / name).mkdir(parents=True)
        (packages / name / "METADATA").touch()
    (packages / "whole-1.dist-info" / "RECORD").touch()
    start.install(start.TEST_EXTRAS)
    assert [package.name for package in packages.iterdir()] == ["whole-1.dist-info"]


def test_uv_looks_for_packages_where_pip_does(start):
    start.install(start.RUN_EXTRAS)
    (pip, uv) = start.commands
    assert pip[:2] == ["pip", "install"]
    assert pip[-1] == "uv"
    assert uv[0] == "uv"
    assert "--find-links /wheels --find-links /more --no-index" in " ".join(uv)


@pytest.mark.parametrize("broken", [("pip", "uv"), ("uv", "constraints.txt")])
def test_where_uv_cannot_pip_installs(start, monkeypatch, broken):
    def follow(command, what):
        start.commands.append(command)
        return int((command[0], Path(command[-1]).name) == broken)

    monkeypatch.setattr(start, "follow", follow)
    start.install(start.RUN_EXTRAS)
    assert start.commands[-1][:2] == ["pip", "install"]
    assert "-e" in start.commands[-1]
    assert start.STAMP.exists()


def test_a_failure_shows_the_end_of_its_log(tmp_path, monkeypatch, capsys):
    module = load(ROOT)
    monkeypatch.setattr(module, "LOG", tmp_path / "log")
    monkeypatch.setattr(module, "PYTHON", sys.executable)
    assert module.follow(["no_such_module"], "installing") == 1
    assert "installing ..." in capsys.readouterr().err
    assert re.search(r"No module named no_such_module(.|\n)*the whole log is", module.why_it_failed())


@pytest.mark.parametrize(
    ("platform", "settings", "expected"),
    [("linux", "", "--find-links"), ("linux", ":env:.find-links='/wheels'", None), ("darwin", "", None)],
)
def test_the_cpu_build_is_looked_for_where_pip_was_reported_nothing(monkeypatch, platform, settings, expected):
    module = load(ROOT)
    monkeypatch.setattr(module.sys, "platform", platform)
    monkeypatch.setattr(module.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, stdout=settings))
    assert (module.cpu_wheels() or [None])[0] == expected


@pytest.fixture
def ran(start, monkeypatch):
    """Modules that were run, with their arguments; those whose words are in `ran.broken` fail."""

    class Ran(list):
        broken = ()

        def __call__(self, command, folder=None):
            self.append(command[2:])
            return int(" ".join(command[2:]).startswith(tuple(self.broken)))

    ran = Ran()
    monkeypatch.setattr(start, "run", ran)
    monkeypatch.setattr(start, "run_quietly", ran)
    return ran


def test_checks_stop_at_the_first_failure(start, ran):
    ran.broken = ("ruff check",)
    assert start.main(["test"]) == 1
    assert [command[:2] for command in ran] == [["ruff", "format"], ["ruff", "check"]]


@pytest.mark.parametrize("broken", ["mypy", "pytest -rs -m not alone"])
def test_types_are_checked_beside_the_tests_and_both_must_pass(start, ran, broken, capsys):
    ran.broken = (broken,)
    assert start.main(["test"]) == 1
    assert ["mypy"] in ran
    assert not [command for command in ran if command[3:4] == ["alone"]]
    assert "all checks passed" not in capsys.readouterr().err


def test_what_is_run_quietly_is_heard_when_it_fails(start, capfd):
    assert start.run_quietly([sys.executable, "-c", "print('fine')"], start.ROOT) == 0
    assert start.run_quietly([sys.executable, "-c", "print('broken'); raise SystemExit(3)"], start.ROOT) == 3
    assert capfd.readouterr().err == "broken\n\n"


def test_tests_that_were_chosen_replace_all_others(start, ran):
    assert start.main(["test", "tests/models", "-k", "loading"]) == 0
    assert [command for command in ran if command[0] == "pytest"] == [
        ["pytest", "-rs", "tests/models", "-k", "loading"]
    ]
    ran.clear()
    assert start.main(["test"]) == 0
    tests = [command[:4] for command in ran if command[:2] == ["pytest", "-rs"]]
    assert tests == [["pytest", "-rs", "-m", mark] for mark in ("not alone", "alone")]


@pytest.mark.parametrize("words", [["test"], ["estimate", "lenet5"]])
def test_what_is_compiled_is_kept_for_the_next_process(start, ran, monkeypatch, words):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    start.main(words)
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ


def test_the_device_is_learnt_once_and_arguments_replace_the_first_estimate(start, monkeypatch):
    ran, code = [], 0
    monkeypatch.setattr(start, "run", lambda command, folder=None: ran.append(command[1:]) or code)
    assert start.main([]) == 0
    start.main(["estimate", "resnet"])
    first = ["estimate", f"{start.ROOT / 'examples' / 'first_model.py'}:build"]
    assert ran == [start.LEARN, first, ["estimate", "resnet"]]
    assert "--once" in start.LEARN
    assert (ROOT / "examples" / "first_model.py").exists()
    ran.clear()
    code = 4
    assert (start.main([]), ran) == (4, [start.LEARN])  # what failed is not followed by another failure


@pytest.mark.parametrize("code", [0, 1])
def test_docs_are_built_strictly_and_a_failure_is_reported(start, monkeypatch, capsys, code):
    ran = []
    monkeypatch.setattr(start, "run", lambda command, folder=None: ran.append(command[2:]) or code)
    assert start.main(["docs"]) == code
    assert ran == [["mkdocs", "build", "--strict", "--quiet"]]
    assert ("failed" in capsys.readouterr().err) == bool(code)
