#!/usr/bin/env python3
"""Start Ampere from a fresh clone, with nothing but Python.

python3 start.py                     install into .venv beside this file, then `ampere estimate cnn5`
python3 start.py estimate resnet     the same with a command of your own
python3 start.py test [tests/...]    formatting, lint, types and tests, as before every commit
"""

import sys

if sys.version_info < (3, 10):  # noqa: UP036 - this file is how an older Python finds out
    sys.exit(f"Ampere needs Python 3.10 or later, and this is {sys.version.split()[0]}: run start.py with a newer one")

import hashlib
import os
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = VENV / "ampere-installed"
LOG = VENV / "ampere-install.log"
PROGRAMS = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = PROGRAMS / ("python.exe" if os.name == "nt" else "python")

RUN_EXTRAS, TEST_EXTRAS = "torch,plot,prune", "torch,plot,prune,test"
TORCH_CPU_WHEELS = "https://download.pytorch.org/whl/cpu/torch/"
CHECKS = (
    ("formatting", ["ruff", "format", "--check", "."]),
    ("lint", ["ruff", "check", "."]),
    ("types", ["mypy"]),
)
SEVERAL_AT_A_TIME = "-n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder"
TESTS = (
    ("tests", ["pytest", "-rs", "-m", "not alone", *SEVERAL_AT_A_TIME.split()]),
    ("tests of time and power, one at a time", ["pytest", "-rs", "-m", "alone"]),
)


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["test"]:
        install(TEST_EXTRAS)
        return check(arguments[1:])
    install(RUN_EXTRAS)
    return run([str(PROGRAMS / "ampere"), *(arguments or ["estimate", "cnn5"])])


def install(extras: str) -> None:
    """Once, and again only when what is to be installed has changed."""
    if not PYTHON.exists():
        make_venv()
    installed = STAMP.read_text().split("\n") if STAMP.exists() else ["", ""]
    if installed[0] == digest() and extras in installed[1]:
        return
    STAMP.unlink(missing_ok=True)
    pip = [str(PYTHON), "-m", "pip", "install", "-e", f"{ROOT}[{extras}]", "-c", str(ROOT / "constraints.txt")]
    follow([*pip, *cpu_wheels()], "installing PyTorch and the rest into .venv, this once")
    STAMP.write_text(f"{digest()}\n{extras}")


def make_venv() -> None:
    say("making .venv")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], capture_output=True, text=True)
    if made.returncode:
        said = " ".join((made.stdout + made.stderr).split())
        sys.exit(f"cannot make {VENV}: {said[:300]} (on Debian and Ubuntu: sudo apt install python3-venv)")


def digest() -> str:
    """Names what is installed, and where: a clone that was moved is installed anew."""
    told = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    return hashlib.sha256(b"\0".join([str(ROOT).encode(), *told])).hexdigest()


def cpu_wheels() -> list[str]:
    """PyPI's torch for Linux is the CUDA build. Who has told pip where to look is left alone."""
    if not sys.platform.startswith("linux"):
        return []
    settings = subprocess.run([str(PYTHON), "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    return [] if "find-links" in settings else ["--find-links", TORCH_CPU_WHEELS]


def follow(command: list[str], what: str) -> None:
    """Run quietly into the log, with the seconds ticking on a terminal."""
    began, live = time.monotonic(), sys.stderr.isatty()
    if not live:
        say(f"{what} ...")
    with LOG.open("w") as log, subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT) as process:
        while process.poll() is None:
            time.sleep(0.2)
            if live:
                print(f"\r{what}: {time.monotonic() - began:.0f} s ", end="", file=sys.stderr, flush=True)
    if live:
        print(file=sys.stderr)
    if process.returncode:
        last = "\n".join(LOG.read_text(errors="replace").splitlines()[-15:])
        sys.exit(f"{last}\ninstalling failed: the whole log is {LOG}; mend what it says and start again")


def check(chosen_tests: list[str]) -> int:
    tests = (("tests", ["pytest", "-rs", *chosen_tests]),) if chosen_tests else TESTS
    for what, command in (*CHECKS, *tests):
        say(f"{what}: {' '.join(command)}")
        code = run([str(PYTHON), "-m", *command], folder=ROOT)
        if code:
            say(f"{what} failed")
            return code
    say("all is well")
    return 0


def run(command: list[str], folder: Path | None = None) -> int:
    """Ctrl-C reaches the child too; it ends in its own way, and we wait for it."""
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
