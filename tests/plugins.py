"""Packages of others as they are installed: a module, and an entry point that leads to it."""

import os
import sys

COUNTING = """
import time

from ampere.runtimes import Description
from ampere.runtimes.runtime import Training

RUNTIME = Description("counting_runtime", ("counting",), "pip install counting", frozenset({"conv"}))
COUNT = Training(lambda: (sum(range(3_000)), time.sleep(3e-4)), lambda: 0.5, 1)


class Counting:
    def prepare(self, threads):
        pass

    def build(self, workload, setup):
        return COUNT

    def yardstick(self):
        return COUNT

    def ready_to_fork(self, workload, threads):
        return True


create = Counting
"""  # a runtime that is loaded at once and has no library, for tests of what is around it


def install_runtime(folder, name, code):
    """`code` is to define RUNTIME; the package has the runtime's name and version 1.0."""
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[ampere.runtimes]\n{name} = {name}_runtime:RUNTIME\n")
    (folder / f"{name}_runtime.py").write_text(code)


def bring_runtime(monkeypatch, folder, name, code):
    """As `install_runtime`, for this process and its workers."""
    install_runtime(folder, name, code)
    monkeypatch.delitem(sys.modules, f"{name}_runtime", raising=False)  # another test's
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]))
