"""Commands, scripts and workers in processes of their own that start warm: forked from one that has imported PyTorch.

test  -- what to run, and its streams -->  warm process  --fork-->  keeper  --fork-->  command, script or worker
      <------------------- its process id, and how it ended ----------'

Starting Python and importing PyTorch takes longer than most of what is tested. Where starting, ending or killing a
process is what is tested, tests start one themselves.
"""

import array
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

WARM = "AMPERE_TESTS_WARM"  # the address of the warm process
PRELOADED = (
    "torch",
    "torch._dynamo",  # an optimizer imports it
    "torch.fx.experimental.symbolic_shapes",
    "scipy.optimize",
    "ampere.cli.entry",
    "ampere.api",
    "ampere.devices.transport",
)
PRELOADED_WHERE_INSTALLED = ("jax", "flax.nnx", "optax")  # JAX starts its threads later, when it first computes
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = (
    -1,
    -2,
    -4,
)  # numbers of mallopt: a forked process reads no settings of the allocator


class Done(NamedTuple):
    code: int
    out: str
    err: str


def run_command(words: "list[str]", folder: Path, environment: "dict[str, str]", seconds: float = 180.0) -> Done:
    """`ampere` with these words."""
    return _run("command", words, ["-m", "ampere", *words], folder, environment, seconds)


def run_script(code: str, folder: Path, environment: "dict[str, str]", seconds: float = 180.0) -> Done:
    """`python -c` with this code."""
    return _run("script", code, ["-c", code], folder, environment, seconds)


def start_command(words: "list[str]", folder: Path, environment: "dict[str, str]") -> Any:
    """`ampere` with these words, left running."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if os.name == "posix":
        return WarmProcess("command", words, folder, environment, **streams)
    return subprocess.Popen([sys.executable, "-m", "ampere", *words], cwd=folder, env=environment, **streams)


def _run(what: str, job: Any, words: "list[str]", folder: Path, environment: "dict[str, str]", seconds: float) -> Done:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
        if os.name == "posix":
            process: Any = WarmProcess(what, job, folder, environment, **streams)
        else:
            process = subprocess.Popen([sys.executable, *words], cwd=folder, env=environment, **streams)
        try:
            process.wait(seconds)
        finally:
            process.kill()
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode("utf-8").replace("\r\n", "\n"))
        return Done(process.wait(10), *said)


class WarmProcess:
    """What `subprocess.Popen` is, of a job of the warm process."""

    def __init__(self, what: str, job: Any, folder: Any, environment: Any, **streams: Any) -> None:
        self.returncode: int | None = None
        theirs = [self._stream(name, streams[name]) for name in ("stdin", "stdout", "stderr")]
        self._line = socket.socket(socket.AF_UNIX)
        self._line.connect(warm_address())
        request = {"what": what, "job": job, "folder": str(folder), "environment": dict(environment)}
        socket.send_fds(self._line, [b"\0"], theirs)
        self._line.sendall(json.dumps(request).encode() + b"\n")
        for file in theirs:
            os.close(file)
        self.pid = int(self._read())

    def _stream(self, name: str, wanted: Any) -> int:
        """The end that the process gets; a pipe's other end is kept as an attribute, as in Popen."""
        if wanted == subprocess.DEVNULL:
            return os.open(os.devnull, os.O_RDWR)
        if wanted != subprocess.PIPE:
            return os.dup(wanted.fileno())
        reading, writing = os.pipe()
        if name == "stdin":
            self.stdin = open(writing, "wb")  # noqa: SIM115
            return reading
        setattr(self, name, open(reading, "rb"))  # noqa: SIM115
        return writing

    def _read(self) -> bytes:
        return bytes(array.array("b", iter(lambda: self._line.recv(1)[0], 10)))

    def poll(self) -> "int | None":
        if self.returncode is None and select.select([self._line], [], [], 0)[0]:
            self.returncode = int(self._read())
            self._line.close()
        return self.returncode

    def wait(self, timeout: "float | None" = None) -> int:
        if self.returncode is None and not select.select([self._line], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("a warm process", timeout or 0.0)
        code = self.poll()
        assert code is not None
        return code

    def communicate(self, timeout: "float | None" = None) -> "tuple[bytes, bytes]":
        """What it printed, which must fit into pipes that nobody reads until it has ended."""
        self.wait(timeout)
        with self.stdout, self.stderr:
            return self.stdout.read(), self.stderr.read()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def warm_worker(command: Sequence[str], env: "dict[str, str] | None" = None, **options: Any) -> Any:
    """In place of `subprocess.Popen` where a host or a listener starts a worker on this machine."""
    from ampere.core.processes import python_program

    program = python_program("ampere.worker.__main__")
    if list(command[: len(program)]) != program:  # another one, such as a liar
        return subprocess.Popen(command, env=env, **options)
    streams = {name: options.get(name, getattr(sys, name)) for name in ("stdin", "stdout", "stderr")}
    return WarmProcess("worker", list(command[len(program) :]), Path.cwd(), env or os.environ, **streams)


def start_warm_process() -> None:
    """It ends with the process that starts it, and serves all processes that this one starts from now on."""
    os.environ[WARM] = str(Path(tempfile.mkdtemp(), "socket"))
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    subprocess.Popen([sys.executable, "-m", "tests.processes"], cwd=Path(__file__).parents[1], env=environment)


def warm_address() -> str:
    """Where the warm process listens; it is started by whoever needs it first."""
    if WARM not in os.environ:
        start_warm_process()
    deadline = time.monotonic() + 120
    while not Path(os.environ[WARM]).exists():
        assert time.monotonic() < deadline, "the warm process does not start"
        time.sleep(0.02)
    return os.environ[WARM]


def serve() -> None:
    """Fork a process for each request, until the process that started this one is gone."""
    for module in PRELOADED:
        __import__(module)
    for module in PRELOADED_WHERE_INSTALLED:
        with contextlib.suppress(ImportError):
            __import__(module)
    sys.modules["ampere.devices.transport"].subprocess = popen_of_warm_workers()  # type: ignore[attr-defined]
    parent, address = os.getppid(), os.environ[WARM]
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{address}.new")
    listener.listen(64)
    Path(f"{address}.new").rename(address)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are waited for by nobody
    while os.getppid() == parent:
        if not select.select([listener], [], [], 1.0)[0]:
            continue
        line = listener.accept()[0]
        if os.fork() == 0:
            listener.close()
            _keep(line)
        line.close()
    shutil.rmtree(Path(address).parent)


def _keep(line: socket.socket) -> None:
    """Start what was asked for, and report how it ended."""
    with contextlib.suppress(BaseException):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _, files, _, _ = socket.recv_fds(line, 1, 3)
        request = json.loads(line.makefile("rb").readline())
        job = os.fork()
        if job == 0:
            line.close()
            _do(request, files)
        for file in files:
            os.close(file)
        line.sendall(b"%d\n" % job)
        code = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
        line.sendall(b"%d\n" % code)
    os._exit(0)


def _do(request: "dict[str, Any]", files: "list[int]") -> None:
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
        sys.path[:0] = [p for p in request["environment"].get("PYTHONPATH", "").split(os.pathsep) if p]
        if "AMPERE_STANDIN" in os.environ:  # the warm process has none, and each test sets its own
            sys.modules["torch"]._import_device_backends()  # type: ignore[attr-defined]
        code = _done(request["what"], request["job"])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else bool(ended.code)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(code)


def _done(what: str, job: Any) -> int:
    sys.argv = ["ampere", *(job if what != "script" else [])]
    if what == "command":
        from ampere.cli import main

        return main(job)
    if what == "worker":
        import ctypes

        from ampere.worker.__main__ import main as work

        for name, number in (("TRIM_THRESHOLD", TRIM_THRESHOLD), ("TOP_PAD", TOP_PAD), ("MMAP_MAX", MMAP_MAX)):
            if (value := os.environ.get(f"MALLOC_{name}_")) is not None:
                ctypes.CDLL(None).mallopt(number, min(int(value), 2**31 - 1))
        work()
        return 0
    sys.path.insert(0, "")
    exec(compile(job, "<string>", "exec"), {"__name__": "__main__"})
    return 0


def popen_of_warm_workers() -> Any:
    """In place of the module `subprocess` where a host starts local workers."""
    return SimpleNamespace(Popen=warm_worker, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired)


if __name__ == "__main__":
    serve()
