"""Finding a user's own code: `package.module:function` or `/folder/file.py:function`.

A model's file imports its neighbours, at its top or later inside its functions. So the folder is importable, but for
the code in it only: a `queue.py` there, or in the current folder, is never imported by a library or by Ampere.
"""

import ast
import importlib
import importlib.util
import os
import sys
import sysconfig
import threading
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Set

from ampere.core.errors import WorkerError

# Held while user code is imported, built or traced: modules, hooks, output and random numbers are the process's own,
# and a fleet does so in several threads.
ONE_AT_A_TIME = threading.RLock()
INSTALLED = ("site-packages", "dist-packages")
LIBRARIES = (*map(sysconfig.get_path, ("stdlib", "platstdlib")), str(Path(__file__).parents[1]))


def find_factory(reference: str) -> Callable[..., Any]:
    place, _, name = reference.rpartition(":")
    if not place:
        raise failed(f"{reference!r} is not of the form module:function or file.py:function")
    module = _from_file(place) if place.endswith(".py") else import_by_name(place)
    factory = getattr(module, name, None)
    if not callable(factory):
        raise failed(f"{place} has no function {name!r}")
    found: Callable[..., Any] = factory
    return found


def _from_file(place: str) -> ModuleType:
    """Imported once a worker: a user's file may import large libraries."""
    path = Path(place).resolve()
    name = f"ampere_workload_{path}"
    allow_neighbours(path.parent)
    if package := package_of(path):
        return import_by_name(package.module, package.folder)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.exists():
        raise failed(f"{path} is not there")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class Package(NamedTuple):
    """What a file is called in its package, and the folder that the package is in."""

    folder: Path
    module: str


def package_of(path: Path) -> Optional[Package]:
    """Of a file that imports relatively, as with `from ..config import WIDTH`; None of any other."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):  # importing says what is wrong
        return None
    levels = max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)
    if not levels:
        return None
    folder, names = path.parent, [path.stem] if path.stem != "__init__" else []
    while folder.name and (levels > 0 or (folder / "__init__.py").exists()):
        folder, names, levels = folder.parent, [folder.name, *names], levels - 1
    return Package(folder, ".".join(names))


def import_by_name(name: str, folder: Optional[Path] = None) -> ModuleType:
    """A module of the folder, or one that is installed or in the current folder; that is on the path meanwhile."""
    top, given = name.partition(".")[0], folder is not None
    folder = folder or Path.cwd()
    here = PathFinder.find_spec(top, [str(folder)])
    if here is None or (here.origin is None and not given):
        return importlib.import_module(name)
    neighbours = allow_neighbours(folder)
    if top not in sys.modules:
        neighbours.found.add(top)
    # After the standard library, whose modules it must not hide.
    installed = (number for number, place in enumerate(sys.path) if place.endswith(INSTALLED))
    sys.path.insert(next(installed, len(sys.path)), str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


class Neighbours:
    """Finds modules of a folder: for the folder's own code, or `at_last` also for libraries that it calls."""

    def __init__(self, folder: Path, at_last: bool = False) -> None:
        self.folder, self._at_last = str(folder), at_last
        self.found: Set[str] = set()

    def find_spec(
        self, name: str, path: Optional[Sequence[str]] = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        spec = self.spec(name) if path is None and self._asked_by_own_code(sys._getframe(1)) else None
        if spec is None or not (spec.origin or self._at_last):  # a folder of data does not hide a package
            return None
        self.found.add(name)
        return spec

    def spec(self, name: str) -> Optional[ModuleSpec]:
        return PathFinder.find_spec(name, [self.folder])

    def _asked_by_own_code(self, frame: Optional[FrameType]) -> bool:
        while frame is not None:
            filename = frame.f_code.co_filename
            if filename.startswith(self.folder + os.sep) and not is_library(filename):
                return True
            if not self._at_last and not filename.startswith(("<frozen importlib", importlib.__file__)):
                return False
            frame = frame.f_back
        return False


_FOLDERS: Dict[Path, Neighbours] = {}


def allow_neighbours(folder: Path) -> Neighbours:
    """Let the code of a folder import from it; what other folders have under the same names is imported anew."""
    if folder not in _FOLDERS:
        _FOLDERS[folder] = Neighbours(folder)
        sys.meta_path.insert(0, _FOLDERS[folder])
        sys.meta_path.append(Neighbours(folder, at_last=True))
    for name in {name for there in _FOLDERS.values() for name in there.found if name in sys.modules}:
        spec = _FOLDERS[folder].spec(name)
        if spec and spec.origin and spec.origin != getattr(sys.modules[name], "__file__", None):
            for part in [part for part in sys.modules if part.partition(".")[0] == name]:
                del sys.modules[part]
    return _FOLDERS[folder]


def is_library(filename: str) -> bool:
    """Whether code is installed, or Python's or Ampere's own, and so not the user's."""
    return filename.startswith((*LIBRARIES, "<")) or any(place in filename for place in INSTALLED)


def failed(message: str) -> WorkerError:
    return WorkerError("variant_failed", message)
