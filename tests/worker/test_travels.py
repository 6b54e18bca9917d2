"""What travels to a device: old syntax, few imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ampere.worker

FOLDER = Path(ampere.worker.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))
LIBRARIES = {"torch", "jax", "flax", "optax", "MNN", "numpy", "zeus"}  # used where they are there
STANDARD = sys.stdlib_module_names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_it_parses_as_python_3_8(path):
    ast.parse(path.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_it_imports_only_what_travels_or_is_there(path):
    for name in imported(path):
        top = name.split(".")[0]
        assert top in STANDARD or top in LIBRARIES or name.startswith(("ampere.worker", "ampere.core")), name


def imported(path):
    package = ["ampere", "worker", *path.relative_to(FOLDER).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield ".".join([*base, *([node.module] if node.module else [])])


def test_a_worker_without_work_imports_neither_torch_nor_the_host():
    code = "import sys, ampere.worker.serving; print([m for m in sys.modules if m.split('.')[0] in ('torch', 'numpy')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
