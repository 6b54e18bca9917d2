"""Commands and scripts in processes of their own that start warm: forked from one that has imported PyTorch already.

Starting Python and importing PyTorch takes longer than most of what is tested. Where the start itself is tested, tests
start a process themselves.
"""

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NamedTuple

PRELOADED = ["torch", "torch.fx.experimental.symbolic_shapes", "scipy.optimize", "ampere.cli.entry", "ampere.api"]


class Done(NamedTuple):
    code: int
    out: str
    err: str


def run_command(words: "list[str]", folder: Path, environment: "dict[str, str]", seconds: float = 180.0) -> Done:
    """`ampere` with these words."""
    return _run("command", words, folder, environment, seconds)


def run_script(code: str, folder: Path, environment: "dict[str, str]", seconds: float = 180.0) -> Done:
    """`python -c` with this code."""
    return _run("script", code, folder, environment, seconds)


def _run(what: str, job: Any, folder: Path, environment: "dict[str, str]", seconds: float) -> Done:
    if os.name != "posix":
        words = ["-m", "ampere", *job] if what == "command" else ["-c", job]
        done = subprocess.run(
            [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds
        )
        return Done(done.returncode, done.stdout, done.stderr)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory() as said:
        process = context.Process(target=_job, args=(what, job, str(folder), environment, said))
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"still running after {seconds:.0f} s: {job}")
        out, err = (Path(said, name).read_text(encoding="utf-8") for name in ("out", "err"))
        return Done(process.exitcode, out, err)


def _job(what: str, job: Any, folder: str, environment: "dict[str, str]", said: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(Path(said, name), os.O_WRONLY | os.O_CREAT), number)
    sys.stdin = io.StringIO()
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    code = 1
    try:
        if what == "command":
            from ampere.cli import main

            code = main(job)
        else:
            sys.path.insert(0, "")
            exec(compile(job, "<string>", "exec"), {"__name__": "__main__"})
            code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else bool(ended.code)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
