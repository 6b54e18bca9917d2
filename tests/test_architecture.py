"""What may import what, and what source code may not hold. Each rule is a table; the code is read, not run."""

import ast
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import ampere
from ampere.models import SPACES
from ampere.models.sorts import SORTS

PUBLIC = set(ampere.__all__)
SRC = Path(__file__).resolve().parents[1] / "src"
FILES = sorted((SRC / "ampere").rglob("*.py"))

# From the top down. A unit imports units of lower levels only; the exceptions within a level are below.
LEVELS = (
    ("__init__", "__main__"),
    ("cli",),
    ("integrations", "web"),
    ("api",),
    ("evaluation", "searching", "fleet"),
    ("reporting",),
    ("pruning", "comparison", "budget"),
    ("baselines",),
    ("profiling",),
    ("estimation",),
    ("devices", "models", "tracing", "storage"),
    ("worker",),
    ("runtimes", "meters"),
    ("core",),
)
NEIGHBOURS = {
    "devices": {"storage", "tracing"},  # stand-ins answer from recordings, and trace networks without training them
    "models": {"tracing"},  # reads --input 10x1x28x28
}

# What travels to a device: nothing there but Python 3.8 and a training runtime.
RUNTIME_LIBRARIES = {"torch", "jax", "flax", "optax", "MNN", "numpy"}
TRAVELLING = {
    "core": {"ampere.core", "pandas"},  # display.py makes data frames of results, on the host only
    "meters": {"ampere.core", "ampere.meters", "zeus"},
    "runtimes": {"ampere.core", "ampere.runtimes", *RUNTIME_LIBRARIES},
    "worker": {"ampere.core", "ampere.meters", "ampere.runtimes", "ampere.worker"},
}
# Of the models that travel too, the files that build one.
SPACES_AND_SORTS = (*SPACES.values(), *SORTS.values())
BUILDERS = {f"models/{space.factory.split(':')[0].split('.')[-1]}.py" for space in SPACES_AND_SORTS}

TORCH_AT_IMPORT = ("tracing/", "models/", "runtimes/")
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
FORBIDDEN_CALLS = {"eval", "exec", "compile"}
MACHINE_PATHS = ("/home/", "/root", "/work/", "/tmp/", "/Users/", "/mnt/", "C:\\")

# Since 3.9 or later, and not seen by a parser set to 3.8.
NEWER_METHODS = {"removeprefix", "removesuffix", "pairwise", "is_relative_to", "bit_count"}
NEWER_KEYWORDS = {("zip", "strict"), ("dataclass", "slots"), ("dataclass", "kw_only")}
NEWER_GENERICS = {"list", "dict", "tuple", "set", "frozenset", "type"}


class Import(NamedTuple):
    module: str
    at_import: bool  # runs when the file is imported

    @property
    def unit(self) -> str:
        return [*self.module.split("."), "__init__"][1]


def unit_of(path: Path) -> str:
    return path.relative_to(SRC / "ampere").parts[0].removesuffix(".py")


def label(path: Path) -> str:
    return path.relative_to(SRC / "ampere").as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports_of(path: Path) -> list[Import]:
    package = path.relative_to(SRC).with_suffix("").parts[:-1]
    return list(_imports(tree_of(path), package, at_import=True))


def _imports(node: ast.AST, package: tuple[str, ...], at_import: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, at_import) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from _imports_from(child, package, at_import)
        else:
            later = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) or _for_types(child)
            yield from _imports(child, package, at_import and not later)


def _imports_from(node: ast.ImportFrom, package: tuple[str, ...], at_import: bool) -> Iterator[Import]:
    base = package[: len(package) - node.level + 1] if node.level else ()
    module = ".".join([*base, *([node.module] if node.module else [])])
    if module == "ampere":  # a package, or a public name, which is loaded through the API
        yield from (
            Import(f"ampere.{alias.name if alias.name not in PUBLIC else 'api'}", at_import) for alias in node.names
        )
    else:
        yield Import(module, at_import)


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def level_of(unit: str) -> int:
    for depth, units in enumerate(LEVELS):
        if unit in units:
            return depth
    raise AssertionError(f"{unit} has no place: add it to LEVELS")


def in_each(files: list[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """One test that checks all files and names those that fail: pytest takes longer for a test than a check does."""

    def as_one_test(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            problems = {}
            for path in files:
                try:
                    check(path)
                except (AssertionError, SyntaxError) as problem:
                    problems[label(path)] = str(problem)
            assert not problems

        test.__doc__ = check.__doc__
        return test

    return as_one_test


EVERY_FILE = in_each(FILES)
TRAVELLING_FILES = in_each([f for f in FILES if unit_of(f) in TRAVELLING or label(f) in BUILDERS])


@EVERY_FILE
def test_imports_point_downwards(path):
    unit = unit_of(path)
    for target in {i.unit for i in imports_of(path) if i.module.split(".")[0] == "ampere"} - {unit}:
        lower = level_of(target) > level_of(unit)
        assert lower or target in NEIGHBOURS.get(unit, ()), f"{unit} may not import {target}"


@EVERY_FILE
def test_nobody_imports_the_worker(path):
    """It is a process on a device: what host and worker share is in `core`."""
    own = unit_of(path) == "worker"
    assert own or not [i.module for i in imports_of(path) if i.module.startswith("ampere.worker")]


def test_the_architectures_picture_names_every_unit():
    described = (SRC.parent / "docs" / "ARCHITECTURE.md").read_text()
    for unit in {unit_of(path) for path in FILES} - {"__init__", "__main__"}:
        assert f"  {unit}/ " in described or f"  {unit}.py " in described, f"docs/ARCHITECTURE.md lacks {unit}"


@TRAVELLING_FILES
def test_what_travels_imports_only_what_is_there(path):
    allowed = TRAVELLING.get(unit_of(path), {"torch"})
    for module in {i.module for i in imports_of(path)}:
        own = any(module == root or module.startswith(root + ".") for root in allowed)
        assert own or module.split(".")[0] in sys.stdlib_module_names, f"{module} is not on every device"


@TRAVELLING_FILES
def test_what_travels_parses_as_python_3_8(path):
    ast.parse(path.read_text(), feature_version=(3, 8))


@TRAVELLING_FILES
def test_what_travels_uses_nothing_newer_than_python_3_8(path):
    tree = tree_of(path)
    quoted = {id(n) for a in _unevaluated_annotations(tree) for n in ast.walk(a)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert node.attr not in NEWER_METHODS
        if isinstance(node, ast.Call):
            assert not {(ast.unparse(node.func), k.arg) for k in node.keywords} & NEWER_KEYWORDS
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and id(node) not in quoted:
            assert node.value.id not in NEWER_GENERICS, f"line {node.lineno}: {ast.unparse(node)}"


def _unevaluated_annotations(tree: ast.Module) -> Iterator[ast.expr]:
    if "from __future__ import annotations" not in ast.unparse(tree):
        return
    for node in ast.walk(tree):
        yield from (a for a in (getattr(node, "annotation", None), getattr(node, "returns", None)) if a is not None)


@EVERY_FILE
def test_torch_is_imported_late(path):
    if not label(path).startswith(TORCH_AT_IMPORT):
        assert not [i.module for i in imports_of(path) if i.at_import and i.module.split(".")[0] == "torch"]


@EVERY_FILE
def test_other_runtimes_are_imported_where_they_train(path):
    libraries = {i.module.split(".")[0] for i in imports_of(path)} & {"jax", "flax", "optax", "MNN"}
    own = label(path).startswith(("runtimes/", "tracing/jax/"))
    assert own or not libraries


@EVERY_FILE
def test_nothing_that_is_read_is_run(path):
    assert not {i.module.split(".")[0] for i in imports_of(path)} & FORBIDDEN_MODULES
    calls = [n.func for n in ast.walk(tree_of(path)) if isinstance(n, ast.Call)]
    assert not {c.id for c in calls if isinstance(c, ast.Name)} & FORBIDDEN_CALLS


@EVERY_FILE
def test_no_path_of_one_machine(path):
    constants = [n.value for n in ast.walk(tree_of(path)) if isinstance(n, ast.Constant)]
    assert not [c for c in constants if isinstance(c, str) and c.startswith(MACHINE_PATHS)]
