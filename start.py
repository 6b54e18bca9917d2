#!/usr/bin/env python3
"""Start Ampere from a fresh clone. Only Python is needed.

python3 start.py                     install into .venv, learn this device, then estimate examples/first_model.py
python3 start.py estimate resnet     install into .venv, then run another command of Ampere
python3 start.py test [tests/...]    check formatting, lint, types and tests
python3 start.py docs                build the documentation into site/
"""

import sys

if sys.version_info < (3, 10):  # noqa: UP036 - this file is how an older Python finds out
    sys.exit(f"Ampere needs Python 3.10 or later, but this is Python {sys.version.split()[0]}")

import hashlib
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "ampere-installed"
LOG = VENV / "ampere-install.log"
PROGRAMS = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = PROGRAMS / ("python.exe" if os.name == "nt" else "python")

RUN_EXTRAS, TEST_EXTRAS, DOCS_EXTRAS = "torch,plot,prune", "torch,plot,prune,docs,test", "docs"
TORCH_CPU_WHEELS = "https://download.pytorch.org/whl/cpu/torch/"
OFFLINE = ("after connection broken by", "Failed to establish a new connection", "Connection timed out")
LEARN = ["profile", "--once", "--seconds", "80"]  # with the installing, two minutes
CHECKS = (
    ("formatting", ["ruff", "format", "--check", "."]),
    ("lint", ["ruff", "check", "."]),
)
TYPES = (  # a minute of one core, beside the tests
    ("types", ["mypy"]),
    ("types of the benchmarks", ["mypy", "--config-file", "benchmarks/mypy.ini"]),
)
# One process more than there are cores: most of them wait for a worker or a command now and then.
SEVERAL_AT_A_TIME = f"-n {min(os.cpu_count() or 1, 3) + 1} --dist loadfile --no-loadscope-reorder --durations=10"
COLLECTING = ("collecting tests", ["pytest", "--collect-only", "-qq"])
TESTS = ("tests", ["pytest", "-rs", "-m", "not alone", *SEVERAL_AT_A_TIME.split()])
TESTS_ALONE = ("tests of time and power, one at a time", ["pytest", "-rs", "-m", "alone"])


def main(arguments: list[str]) -> int:
    os.environ.setdefault("PYTHONUTF8", "1")  # Windows reads the paths of installed packages in another encoding else
    # The first process that imports a file compiles it for all: less than half of what is installed is ever imported.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if arguments[:1] == ["test"]:
        install(TEST_EXTRAS)
        return check(arguments[1:])
    if arguments == ["docs"]:
        install(DOCS_EXTRAS)
        return build_docs()
    install(RUN_EXTRAS)
    ampere = str(PROGRAMS / "ampere")
    if arguments:
        return run([ampere, *arguments])
    return run([ampere, *LEARN]) or run([ampere, "estimate", f"{ROOT / 'examples' / 'first_model.py'}:build"])


def install(extras: str) -> None:
    """Install once, and again only when the requirements have changed, an extra is missing or .venv is half-made."""
    installed = installed_extras()
    if PYTHON.exists() and set(extras.split(",")) <= installed:
        return
    if not has_pip():
        make_venv()
    forget_interrupted()
    STAMP.unlink(missing_ok=True)
    every = ",".join(sorted(installed.union(extras.split(","))))
    wanted = ["-e", f"{ROOT}[{every}]", "-c", str(ROOT / "constraints.txt"), *cpu_wheels()]
    # uv does in seconds what takes pip a minute. Where it cannot, pip is asked, and says why if it cannot either.
    pip, uv = ["pip", "install", "--no-compile"], ["uv", "pip", "install", "--python", str(PYTHON), *settings_for_uv()]
    what = "installing into .venv"
    by_uv = not follow([*pip, "--retries", "1", "uv"], "installing uv") and not follow([*uv, *wanted], what)
    if not by_uv and follow([*pip, *wanted], f"{what} with pip"):
        sys.exit(why_it_failed())
    import_once()
    STAMP.write_text(f"{digest()}\n{every}")


def settings_for_uv() -> list[str]:
    """Where pip is set to look for packages: uv does not read pip's files and variables."""
    flags = {"index-url": "--default-index", "extra-index-url": "--index", "find-links": "--find-links"}
    arguments = ["--index-strategy", "unsafe-best-match"]  # all places alike, as pip has it
    for name, value in pip_settings():
        if name == "no-index":
            arguments.append("--no-index")
        arguments += [part for place in value.split() if name in flags for part in (flags[name], place)]
    return arguments


def pip_settings() -> list[tuple[str, str]]:
    listed = subprocess.run([str(PYTHON), "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    lines = [line.partition("=") for line in listed.splitlines()]
    return [(name.rpartition(".")[2], value.strip("'\"").replace("\\n", " ")) for name, _, value in lines]


def import_once() -> None:
    """Compile what is imported first, before a profile's seconds run; where PyTorch is not wanted it fails, unheard."""
    say("compiling PyTorch's Python files ...")
    imports = "import torch._dynamo, torch.fx.experimental.symbolic_shapes, scipy.optimize; from ampere.api import *"
    with suppress(OSError):
        subprocess.run([str(PYTHON), "-c", imports], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def installed_extras() -> set[str]:
    if not STAMP.exists():
        return set()
    of, _, extras = STAMP.read_text(errors="replace").partition("\n")
    return set(extras.split(",")) if of == digest() else set()


def has_pip() -> bool:
    """Whether .venv can be installed into. Its making may have been interrupted, or its Python removed."""
    try:
        return subprocess.run([str(PYTHON), "-m", "pip", "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


def forget_interrupted() -> None:
    """Make pip install again what it was interrupted in: it writes the list of files, RECORD, last."""
    for package in VENV.glob("**/site-packages/*.dist-info"):
        if not (package / "RECORD").exists():
            shutil.rmtree(package)


def make_venv() -> None:
    say("creating .venv")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], capture_output=True, text=True)
    if made.returncode:
        said = " ".join((made.stdout + made.stderr).split())
        sys.exit(f"cannot create {VENV}: {said[:300]} (on Debian and Ubuntu: sudo apt install python3-venv)")


def digest() -> str:
    """Identify the requirements and their place: a clone that was moved is installed again."""
    files = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    return hashlib.sha256(b"\0".join([str(ROOT).encode(), *files])).hexdigest()


def cpu_wheels() -> list[str]:
    """PyPI's torch for Linux is the CUDA build. Settings of pip's own take precedence."""
    if not sys.platform.startswith("linux"):
        return []
    given = any(name == "find-links" for name, _ in pip_settings())
    return [] if given else ["--find-links", TORCH_CPU_WHEELS]


def follow(module: list[str], what: str) -> int:
    """Run a module of .venv with its output in the log, and show the elapsed seconds on a terminal."""
    began, live = time.monotonic(), sys.stderr.isatty()
    if not live:
        say(f"{what} ...")
    with LOG.open("w") as log, subprocess.Popen([str(PYTHON), "-m", *module], stdout=log, stderr=log) as process:
        while process.poll() is None:
            time.sleep(0.2)
            if live:
                print(f"\r{what}: {time.monotonic() - began:.0f} s ", end="", file=sys.stderr, flush=True)
    if live:
        print(file=sys.stderr)
    return process.returncode


def why_it_failed() -> str:
    said = LOG.read_text(errors="replace")
    if any(sign in said for sign in OFFLINE):
        return (
            "installing needs the network, and packages cannot be reached: connect and run this again, "
            f"or set PIP_NO_INDEX=1 and PIP_FIND_LINKS to a folder of wheels (log: {LOG})"
        )
    last = "\n".join(said.splitlines()[-15:])
    return f"{last}\ninstalling failed: the whole log is {LOG}; fix the cause and run this again"


def build_docs() -> int:
    say("documentation: mkdocs build --strict")
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")  # an announcement in colours, on every build
    code = run([str(PYTHON), "-m", "mkdocs", "build", "--strict", "--quiet"], folder=ROOT)
    say("building the documentation failed" if code else f"built: {ROOT / 'site' / 'index.html'}")
    return code


def check_types() -> int:
    return next((code for each in TYPES if (code := step(*each, quiet=True))), 0)


def check(chosen_tests: list[str]) -> int:
    for what, command in CHECKS:
        if code := step(what, command):
            return code
    with ThreadPoolExecutor() as beside:
        types = beside.submit(check_types)
        if chosen_tests:
            code = step("tests", ["pytest", "-rs", *chosen_tests]) or types.result()
        else:  # collected once before: else each of the processes that run tests would compile all files of tests
            code = step(*COLLECTING, quiet=True) or step(*TESTS) or types.result() or step(*TESTS_ALONE)
    if not code:
        say("all checks passed")
    return code


def step(what: str, command: list[str], quiet: bool = False) -> int:
    say(f"{what}: {' '.join(command)}")
    code = (run_quietly if quiet else run)([str(PYTHON), "-m", *command], folder=ROOT)
    if code:
        say(f"{what} failed")
    return code


def run_quietly(command: list[str], folder: Path) -> int:
    """Run a command beside others, and show what it printed if it fails."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        say(done.stdout)
    return done.returncode


def run(command: list[str], folder: Path | None = None) -> int:
    """Run a command and return its exit code. Ctrl-C reaches the command too, so it is waited for."""
    with subprocess.Popen(command, cwd=folder) as process:
        while True:
            try:
                code = process.wait()
                return code if code >= 0 else 128 - code
            except KeyboardInterrupt:
                continue


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
