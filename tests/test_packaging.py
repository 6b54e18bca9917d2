"""The wheel: it is built, installed into an environment of its own, and works from outside the clone."""

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import ampere

ROOT = Path(__file__).resolve().parents[1]
WINDOWS = os.name == "nt"

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("build", "hatchling", "pip")),
    reason="build, hatchling or pip is not installed here (pip install 'ampere-energy[check]')",
)


def run(command, folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AMPERE"))}
    environment["AMPERE_HOME"] = str(folder)
    return subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, env=environment)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    done = run(build, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    """An environment with the wheel. It sees the libraries installed here, but not this clone."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    programs = folder / ("Scripts" if WINDOWS else "bin")
    python = programs / ("python.exe" if WINDOWS else "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel]
    done = run(pip, folder)
    assert done.returncode == 0, done.stderr
    [packages] = folder.glob("Lib/site-packages" if WINDOWS else "lib/python*/site-packages")
    # A folder named in a .pth file is searched, but .pth files inside it, such as this clone's own, are not read.
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    return programs


def test_the_version_is_in_one_place(wheel):
    assert wheel.name.startswith(f"ampere_energy-{ampere.__version__}-")
    assert f'"{ampere.__version__}"' not in (ROOT / "pyproject.toml").read_text().split("[tool")[0]


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"ampere", "ampere_energy"}
    assert "ampere/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_installed_program_is_the_wheels(programs, tmp_path):
    done = run([programs / "python", "-c", "import ampere; print(ampere.__file__)"], tmp_path)
    assert Path(done.stdout.strip()).is_relative_to(programs.parent), done.stderr
    assert run([programs / "ampere", "--version"], tmp_path).stdout.strip() == f"ampere {ampere.__version__}"


def test_ruff_is_of_one_version():
    pinned = (ROOT / "constraints.txt").read_text().split("ruff==")[1].split()[0]
    assert f"rev: v{pinned}\n" in (ROOT / ".pre-commit-config.yaml").read_text()


@pytest.mark.skipif(not importlib.util.find_spec("torch"), reason="PyTorch is not installed here")
def test_it_estimates_from_outside_the_clone(programs, tmp_path):
    estimate = ["estimate", "lenet5", "--device", "simulated:xavier", "--seconds", 5, "--json"]
    done = run([programs / "ampere", *estimate], tmp_path)
    assert done.returncode == 0, done.stderr
    estimated = json.loads(done.stdout)
    assert estimated["joules_per_iteration"] > 0
    assert sum(layer["joules"] for layer in estimated["layers"]) == pytest.approx(estimated["joules_per_iteration"])
