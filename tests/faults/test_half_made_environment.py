"""start.py for real, in a folder with spaces and letters beyond ASCII: it repairs what was left half-made.

The project that it installs is a small one that needs nothing, so that no network is used.
"""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.fault(31)

START = Path(__file__).parents[2] / "start.py"
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "ampere-energy"
version = "1"
dependencies = []
optional-dependencies = {torch = [], plot = [], prune = [], docs = ["no-such-package-anywhere"]}
scripts = {ampere = "ampere_stub:main"}
"""
BACKEND = """
import os, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    name, info = "ampere_energy-1-py3-none-any.whl", "ampere_energy-1.dist-info/"
    extras = "".join(f"Provides-Extra: {e}\\n" for e in ("torch", "plot", "prune", "docs"))
    needs = 'Requires-Dist: no-such-package-anywhere ; extra == "docs"\\n'
    files = {
        "here.pth": os.getcwd() + "\\n",
        info + "METADATA": "Metadata-Version: 2.1\\nName: ampere-energy\\nVersion: 1\\n" + extras + needs,
        info + "WHEEL": "Wheel-Version: 1.0\\nGenerator: backend\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        info + "entry_points.txt": "[console_scripts]\\nampere = ampere_stub:main\\n",
    }
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr(info + "RECORD", "".join(f"{path},,\\n" for path in (*files, info + "RECORD")))
    return name
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clone") / "mes modèles ü 模型"
    folder.mkdir()
    shutil.copy(START, folder)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "backend.py").write_text(BACKEND)
    (folder / "constraints.txt").write_text("")
    (folder / "ampere_stub.py").write_text("import sys\ndef main(): print('ran', *sys.argv[1:])")
    venv.create(folder / ".venv", with_pip=False, symlinks=os.name != "nt")  # as if interrupted here
    (folder / ".venv" / "ampere-installed").write_text("cut sho")
    return folder


def started(clone, *words):
    # Port 9 of this machine, where nobody answers, instead of the network.
    environment = {**os.environ, "PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "1", "PIP_FIND_LINKS": ""}
    environment["PIP_CONFIG_FILE"] = os.devnull
    return subprocess.run(
        [sys.executable, "start.py", *words], cwd=clone, env=environment, capture_output=True, encoding="utf-8"
    )


def test_it_is_made_anew_and_runs(clone, record_property):
    ran = started(clone, "estimate", "cnn5")
    assert (ran.returncode, ran.stdout) == (0, "ran estimate cnn5\n"), ran.stderr
    record_property("figure", "no pip and a cut stamp: repaired in one start")


def test_offline_is_one_line(clone):
    ran = started(clone, "docs")
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith("installing needs the network, and packages cannot be reached")
    assert len([line for line in ran.stderr.splitlines() if not line.endswith(" ...")]) == 1, ran.stderr
