"""The command as users run it: a process, with profiles in a place of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from tests.processes import Done, run_command

ONE_AFTER_ANOTHER = """
import contextlib, io, json, sys
from ampere.cli import main
ran = []
for words in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(words.split())
    ran.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(ran))
"""
SUBJECTS = Path(__file__).with_name("subjects.py")


class Ran(Done):
    @property
    def record(self) -> Any:
        return json.loads(self.out)


def hear_ctrl_c() -> None:
    """Whoever runs the tests in the background of a shell has told all their children to ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Ampere:
    """`ampere(...)` runs it to its end; `ampere.start(...)` leaves it running."""

    def __init__(
        self, home: Path, folder: Path, python: tuple[str, ...] = (sys.executable,), **environment: str
    ) -> None:
        self.home, self.folder, self.python, self.environment = home, folder, python, environment

    def __call__(self, *words: object, seconds: float = 180.0) -> Ran:
        if self.python == (sys.executable,):
            return Ran(*run_command([*map(str, words)], self.folder, self._environment(), seconds))
        process = self.start(*words)
        out, err = process.communicate(timeout=seconds)
        return Ran(process.returncode, out, err)

    def each(self, *commands: str) -> list[Ran]:
        """Runs several, one after another, in one process: for refusals, where starting takes longest."""
        command = [*self.python, "-c", ONE_AFTER_ANOTHER, *commands]
        done = subprocess.run(
            command, cwd=self.folder, env=self._environment(), capture_output=True, text=True, check=True
        )
        return [Ran(*ran) for ran in json.loads(done.stdout)]

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "AMPERE_HOME": str(self.home), "COLUMNS": "100", **self.environment}

    def start(self, *words: object) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*self.python, "-m", "ampere", *map(str, words)],
            cwd=self.folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_ctrl_c if os.name == "posix" else None,
        )

    @property
    def profile_path(self) -> Path:
        return next((self.home / "profiles").glob("*.json"))


@pytest.fixture(scope="session")
def profiled_home(tmp_path_factory):
    """A home with a profile of lenet5, made by the command itself, once for all processes that run tests."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "profiled"
    with FileLock(f"{place}.lock"):
        if not place.exists():
            place.mkdir()
            ran = Ampere(place / "home", place)("profile", "lenet5", "--seconds", 5)
            assert ran.code == 0, ran.err
            (place / "said.txt").write_text(ran.out)
    return place / "home"


@pytest.fixture(scope="session")
def refused():
    """Asserts that a run ended with this code and one line that holds these words."""

    def check(ran, code, *words):
        assert "Traceback" not in ran.err
        assert ran.out == ""
        [line] = [line for line in ran.err.splitlines() if line.startswith("ampere: ")]
        assert ran.err.splitlines()[-1] == line
        assert all(word in line for word in words), line
        assert ran.code == code, line

    return check


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """The command in this process, for the many cases in which a process of its own would only take longer."""
    from ampere.cli import main

    monkeypatch.setenv("AMPERE_HOME", str(tmp_path / "home"))
    for name in ("AMPERE_METER", "AMPERE_COMPILE_LIMIT"):  # so that what options leave there is gone after the test
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*words):
        code = main([str(word) for word in words])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def ampere(tmp_path):
    """On a device that was never profiled."""
    return Ampere(tmp_path / "home", tmp_path)


@pytest.fixture
def profiled(tmp_path, profiled_home):
    """On a device whose profile knows lenet5; a copy, free to be spoilt."""
    shutil.copytree(profiled_home, tmp_path / "home")
    return Ampere(tmp_path / "home", tmp_path)


@pytest.fixture(scope="session")
def subject():
    return lambda name: f"{SUBJECTS}:{name}"


@pytest.fixture(scope="session")
def torchless_python(tmp_path_factory):
    """A Python in which PyTorch is not installed, though everything else that Ampere needs is."""
    import numpy

    folder, packages = tmp_path_factory.mktemp("torchless"), Path(numpy.__file__).parents[1]
    venv.create(folder, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    for name in (
        "numpy",
        "numpy.libs",
        "scipy",
        "scipy.libs",
        "rich",
        "pygments",
        "markdown_it",
        "mdurl",
        "platformdirs",
        "threadpoolctl.py",
    ):
        if (packages / name).exists():
            (site / name).symlink_to(packages / name)
    (site / "ampere").symlink_to(Path(__file__).parents[2] / "src" / "ampere")
    return (str(folder / "bin" / "python"),), {}


@pytest.fixture(scope="session")
def python_without_extras(tmp_path_factory):
    """A Python that has all that is installed here but the libraries of JAX and MNN."""
    import numpy

    folder, packages = tmp_path_factory.mktemp("lean"), Path(numpy.__file__).parents[1]
    venv.create(folder, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    for entry in packages.iterdir():
        if not entry.name.lower().lstrip("_").startswith(("jax", "flax", "optax", "mnn", "ampere", "editable")):
            (site / entry.name).symlink_to(entry)
    (site / "ampere").symlink_to(Path(__file__).parents[2] / "src" / "ampere")
    return str(folder / "bin" / "python")


@pytest.fixture
def torchless(profiled, torchless_python):
    python, environment = torchless_python
    return Ampere(profiled.home, profiled.folder, python, **environment)
