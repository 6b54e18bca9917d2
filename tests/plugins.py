"""Packages of others as they are installed: a module, and an entry point that leads to it."""

import os
import sys


def bring_runtime(monkeypatch, folder, name, code):
    """`code` is to define RUNTIME; the package has the runtime's name and version 1.0. Workers find it as well."""
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[ampere.runtimes]\n{name} = {name}_runtime:RUNTIME\n")
    (folder / f"{name}_runtime.py").write_text(code)
    monkeypatch.delitem(sys.modules, f"{name}_runtime", raising=False)  # another test's
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]))
