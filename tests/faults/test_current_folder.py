"""Code of the current folder is not imported; a model's neighbours are, by the model and by nothing else."""

import sys

import pytest

from ampere.devices import LocalWorker

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.fault(32)

# Names of modules that Python, PyTorch or Ampere import, some of them late.
HIDING = ("queue", "heapq", "types", "token", "statistics", "calendar", "secrets", "cProfile", "numpy", "sympy")
QUICK = {"iterations": 2, "warmup": 1}

NET = """
import rich  # which is installed; a folder of that name is here too
import torch
import beside

class Net(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(4, width)
    def forward(self, x):
        import importlib
        import much_later
        assert rich.__file__
        assert importlib.import_module("by_name").THERE
        return self.layer(x) * much_later.ONE

def build():
    from later import WIDTH
    return Net(WIDTH + beside.WIDTH), torch.ones(2, 4)
"""


def project(folder, width):
    folder.mkdir()
    for name in HIDING:
        (folder / f"{name}.py").write_text(f"raise SystemExit('{name} of the current folder was imported')")
    (folder / "net.py").write_text(NET)
    (folder / "rich").mkdir()
    (folder / "beside.py").write_text(f"WIDTH = {width}")
    (folder / "later.py").write_text("import beside\nWIDTH = beside.WIDTH")
    (folder / "much_later.py").write_text("ONE = 1.0")
    (folder / "by_name.py").write_text("THERE = True")
    return folder


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    return [project(tmp_path_factory.mktemp("projects") / f"with {width}", width) for width in (3, 5)]


def test_models_find_their_own_neighbours_and_nothing_else_does(projects, monkeypatch, record_property):
    monkeypatch.chdir(projects[0])
    with LocalWorker() as device:
        device.hello()
        for _ in range(2):
            for folder, width in zip(projects, (3, 5), strict=True):
                block = device.block({"factory": f"{folder / 'net.py'}:build"}, **QUICK)
                assert block.parameters == 5 * 2 * width, "a neighbour of the other folder was taken"
        assert device.block({"factory": "net:build"}, **QUICK).parameters == 5 * 6
        assert device.restarts == 0
    record_property("figure", f"{len(HIDING)} modules of the current folder hide others, 0 imported")


@pytest.mark.parametrize("how", ["file", "module"])
def test_the_host_finds_them_too(projects, monkeypatch, how):
    from ampere.models import load_model
    from ampere.tracing.trace import trace

    monkeypatch.chdir(projects[1])
    before = list(sys.path)
    loaded = load_model(f"{projects[1] / 'net.py'}:build" if how == "file" else "net:build")
    assert trace(loaded.model, loaded.inputs).layers
    assert sys.path == before
