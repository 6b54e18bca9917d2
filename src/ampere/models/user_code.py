"""Code of the user's: finding a function in a file or a module, and saying in one line what went wrong in it."""

import ast
import importlib.util
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from ampere.core.errors import AmpereError, ModelError, RuntimeMissingError, UsageError
from ampere.runtimes.user_code import ONE_AT_A_TIME, allow_neighbours, import_by_name, is_library, package_of

LONGEST_MESSAGE = 300
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
EXTRAS = {"torch": "torch", "jax": "jax", "jaxlib": "jax", "flax": "jax", "optax": "jax"}  # that bring a library


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Run code of the user's, as if it was started without arguments: what it raises becomes one line, and what it
    prints a log. Libraries warn when it is trained, and need not when it is looked at."""
    try:
        with ONE_AT_A_TIME, _without_arguments(), redirect_stdout(sys.stderr), warnings.catch_warnings():
            warnings.showwarning = partial(_unless_of_a_library, warnings.showwarning)
            yield
    except AmpereError:
        raise
    except SystemExit as error:
        raise ModelError(
            f"{what} ended the program, {explain(error)}: keep what a script does under if __name__ == '__main__'"
        ) from error
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing in EXTRAS:
            raise RuntimeMissingError(
                f"{what} needs {missing}, which is not installed: pip install 'ampere-energy[{EXTRAS[missing]}]'"
            ) from error
        raise ModelError(f"{what} raised {explain(error)}: try it in Python by itself first") from error


@contextmanager
def _without_arguments() -> Iterator[None]:
    """A script that reads its own arguments must not find Ampere's."""
    arguments = sys.argv[1:]
    del sys.argv[1:]
    try:
        yield
    finally:
        sys.argv[1:] = arguments


def _unless_of_a_library(show: Callable[..., None], message: Any, category: Any, filename: str, *more: Any) -> None:
    if not is_library(filename):
        show(message, category, filename, *more)


def explain(error: BaseException) -> str:
    """`ValueError: too deep (net.py:12)`: the type, the message, and the innermost line that is not a library's."""
    message = " ".join(str(error).split())[:LONGEST_MESSAGE]
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not is_library(f.filename)]
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {message}{where}" if message else f"{type(error).__name__}{where}"


def find_function(source: str, name: str) -> Callable[..., Any]:
    with ONE_AT_A_TIME:
        if is_file(source):
            path = path_of(source)
            _refuse_without(path, source, name)
            module = _module_of_file(path)
        else:
            module = _module_by_name(source)
    function = getattr(module, name, None) if name else None
    if not callable(function):
        own = [n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", None) == module.__name__]
        raise ModelError(f"{source} has no function {name!r}: write {source}:NAME, {_offer(own, False)}")
    return function


def _refuse_without(path: Path, source: str, name: str) -> None:
    """Before anything runs: to import a training script may be to train."""
    tree = _parsed(path)
    if tree is None:
        return  # importing says what is wrong
    bound = _bound_names(tree.body)
    if name not in bound and "*" not in bound and "__getattr__" not in bound:
        raise ModelError(f"{source} has no function {name!r}: write {source}:NAME, {offer_of_file(path)}")


def _parsed(path: Path) -> "ast.Module | None":
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _bound_names(statements: list[ast.stmt]) -> set[str]:
    """What a file defines at its top, but not what is under `if __name__ == "__main__"`."""
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(statement.name)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
        elif not _is_main_guard(statement):
            found |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            found |= _bound_names([child for child in ast.walk(statement) if isinstance(child, DEFINITIONS)])
    return found


def _is_main_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)


RECIPE = (
    "def build(): model = Net(); batch = torch.randn(32, 3, 32, 32); return model, batch "
    "(and keep the training itself under if __name__ == '__main__')"
)


def offer_of_file(path: Path) -> str:
    """What there is to name in a file, read and not run; and what to write where it is a training script."""
    tree = _parsed(path)
    if tree is None:
        return "the function that returns the model"
    functions = [s.name for s in tree.body if isinstance(s, (ast.FunctionDef, ast.ClassDef))]
    return _offer(functions, any(_is_main_guard(s) or isinstance(s, (ast.For, ast.While)) for s in tree.body))


def path_of(source: str) -> Path:
    try:
        return Path(source).expanduser()
    except RuntimeError as error:  # of `~nobody/net.py`
        raise ModelError(f"{source} is not there ({error}): write the path without ~") from None


def is_file(source: str) -> bool:
    return source.endswith(".py") or "/" in source or "\\" in source


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ModelError(f"{path} is not there: check the path, seen from {Path.cwd()}")
    path = path.resolve()
    if package := package_of(path):
        allow_neighbours(path.parent)
        sys.modules.pop(package.module, None)  # it may have changed
        with guarded(f"importing {path.name}"):
            return import_by_name(package.module, package.folder)
    name = f"ampere_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is no Python file: write file.py:function")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and annotations look themselves up there
    allow_neighbours(path.parent)
    with guarded(f"importing {path.name}"):
        spec.loader.exec_module(module)
    return module


def _module_by_name(name: str) -> ModuleType:
    try:
        with guarded(f"importing {name}"):
            return import_by_name(name)
    except ModelError as error:
        missing = error.__cause__
        if isinstance(missing, ModuleNotFoundError) and missing.name and (name + ".").startswith(missing.name + "."):
            raise ModelError(
                f"there is no module {name}: install it, or name a file as in path/to/file.py:function"
            ) from error
        raise


def _offer(functions: list[str], is_script: bool) -> str:
    public = sorted(name for name in functions if not name.startswith("_"))
    if not public:
        return f"a function to be added, such as {RECIPE}"
    return f"NAME one of {', '.join(public)}" + (
        f"; if none of them returns the model, add {RECIPE}" if is_script else ""
    )
