"""Commands, scripts and workers in processes of their own that start warm: forked from one that has imported PyTorch.

test  -- what to run, and its streams -->  warm process  --fork-->  keeper  --fork-->  command, script or worker
      <------------------- its process id, and how it ended ----------'

Starting Python and importing PyTorch takes longer than most of what is tested. Where starting, ending or killing a
process is what is tested, tests start one themselves.
"""

import array
import contextlib
import gc
import hashlib
import json
import os
import pickle
import pkgutil
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

STREAMS = ("stdin", "stdout", "stderr")
STARTED = "AMPERE_TESTS_STARTED"  # a file for the process ids of what is started in place of subprocess.Popen
WARM = "AMPERE_TESTS_WARM"  # the address of the warm process
STANDIN, ACCELERATED = "AMPERE_STANDIN", ".accelerated"  # what an imitated processor is set with, and who serves it
TRACES = "AMPERE_TESTS_TRACES"  # a folder for what Ampere's own factories were traced to
PRELOADED = (
    "torch",
    "torch._dynamo",  # an optimizer imports it
    "torch.fx.experimental.symbolic_shapes",
    "scipy.optimize",
    "ampere.cli.entry",
    "ampere.api.checking",
    "ampere.api.judging",
    "ampere.api.run",
    "ampere.api.shrinking",
    "ampere.api.tuning",
    "ampere.devices.transport",
    "ampere.runtimes.torch_runtime",
)
# Where Ampere starts a program of its own that needs PyTorch.
STARTERS = (
    "ampere.devices.transport",
    "ampere.profiling.overheads",
    "ampere.profiling.plain_processes",
    "ampere.web.memory",
)
OUR_PROGRAM = re.compile(r".*; from (ampere\.[\w.]+) import main; main\(\)")  # of python_program
PRELOADED_WHERE_INSTALLED = (
    "jax",  # it starts its threads later, when it first computes
    "flax.nnx",
    "optax",
    "distributed.cli.dask_scheduler",
    "distributed.cli.dask_worker",
)
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = (
    -1,
    -2,
    -4,
)  # numbers of mallopt: a forked process reads no settings of the allocator


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """What it printed, in words with single spaces: a longer figure or path breaks a line elsewhere."""
        return " ".join(self.out.split())

    @property
    def notices(self) -> str:
        """As `said`, of standard error."""
        return " ".join(self.err.split())


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
    return start_cold_command(words, folder, environment)


def start_script(code: str, *words: str) -> Any:
    """`python -c` with this code and these words, left running with its standard output in a pipe."""
    if os.name != "posix":
        return subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.PIPE)
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": None}
    return WarmProcess("script", _with_words(code, words), Path.cwd(), os.environ, **streams)


def _with_words(code: str, words: Sequence[str]) -> str:
    return f"import sys; sys.argv[1:] = {list(words)!r}\n{code}"


def start_cold_command(words: "list[str]", folder: Path, environment: "dict[str, str]") -> Any:
    """As `start_command`, in a new Python: for what only that shows, such as what is not imported."""
    pipe, command = subprocess.PIPE, [sys.executable, "-m", "ampere", *words]
    return subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)


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

    def __init__(self, what: str, job: Any, folder: Any, environment: Any, text: bool = False, **streams: Any) -> None:
        self.returncode: int | None = None
        self._text = text
        self.stdin: Any = None
        self.stdout: Any = None
        self.stderr: Any = None
        theirs = [self._stream(name, streams[name]) for name in STREAMS]
        self._line = socket.socket(socket.AF_UNIX)
        self._line.connect(warm_address(ACCELERATED if STANDIN in environment else ""))
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
            return os.dup(STREAMS.index(name) if wanted is None else wanted.fileno())
        reading, writing = os.pipe()
        kind = "" if self._text else "b"
        if name == "stdin":
            self.stdin = open(writing, f"w{kind}")  # noqa: SIM115
            return reading
        setattr(self, name, open(reading, f"r{kind}"))  # noqa: SIM115
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

    def communicate(self, said: Any = None, timeout: "float | None" = None) -> "tuple[Any, Any]":
        """What it printed into pipes."""
        if self.stdin and not self.stdin.closed:
            with contextlib.suppress(BrokenPipeError), self.stdin:
                self.stdin.write(said or ("" if self._text else b""))
        printed: dict[Any, Any] = {}
        pipes = [pipe for pipe in (self.stdout, self.stderr) if pipe and not pipe.closed]
        readers = [threading.Thread(target=lambda p=pipe: printed.update({p: p.read()}), daemon=True) for pipe in pipes]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader, pipe in zip(readers, pipes, strict=True):
            reader.join()
            pipe.close()
        return printed.get(self.stdout), printed.get(self.stderr)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def warm_popen(command: Sequence[str], env: "dict[str, str] | None" = None, **options: Any) -> Any:
    """In place of `subprocess.Popen` where Ampere starts a program of its own: a worker, a plain loop."""
    module, bare = _module_of(list(command)), _is_bare_script(list(command))
    if not (module or bare) or os.name != "posix":  # another one, such as a liar
        return subprocess.Popen(command, env=env, **options)
    streams = {name: options.get(name) for name in STREAMS}
    what, job = ("script", _with_words(command[2], command[3:])) if bare else ("module", [module, *command[3:]])
    process = WarmProcess(what, job, Path.cwd(), env or os.environ, options.get("text", False), **streams)
    if STARTED in os.environ:
        with open(os.environ[STARTED], "a") as file:
            file.write(f"{process.pid}\n")
    return process


def warm_run(command: Sequence[str], timeout: "float | None" = None, **options: Any) -> Any:
    """In place of `subprocess.run`, as `warm_popen`."""
    process = warm_popen(command, **options)
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _module_of(command: "list[str]") -> "str | None":
    """The module of Ampere whose `main` a command runs with this interpreter."""
    from ampere.core.processes import python_program

    if command[:2] == [sys.executable, "-m"] and command[2] == "ampere.web.memory":
        return command[2]
    found = OUR_PROGRAM.fullmatch(command[2]) if command[1:2] == ["-c"] else None
    return found[1] if found and command[:3] == python_program(found[1]) else None


def _is_bare_script(command: "list[str]") -> bool:
    """Whether it trains a user's model without Ampere."""
    from ampere.profiling.plain_processes import BARE, bare_script

    return command[:3] == [sys.executable, "-c", BARE + bare_script()]


def start_warm_process() -> None:
    """It ends with the process that starts it, and serves all processes that this one starts from now on."""
    os.environ[WARM] = str(Path(tempfile.mkdtemp(), "socket"))
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    subprocess.Popen([sys.executable, "-m", "tests.processes"], cwd=Path(__file__).parents[1], env=environment)


def warm_address(which: str = "") -> str:
    """Where the warm process listens, or its twin; they are started by whoever needs them first."""
    if WARM not in os.environ:
        start_warm_process()
    address, deadline = f"{os.environ[WARM]}{which}", time.monotonic() + 120
    while not Path(address).exists():
        assert time.monotonic() < deadline, "the warm process does not start"
        time.sleep(0.02)
    return address


def serve() -> None:
    """Fork a process for each request, until the process that started this one is gone."""
    parent, address = os.getppid(), os.environ[WARM]  # it may be gone before all is imported
    for module in PRELOADED:
        __import__(module)
    for module in pkgutil.iter_modules(import_module("ampere.cli.commands").__path__, "ampere.cli.commands."):
        import_module(module.name)
    for module in PRELOADED_WHERE_INSTALLED:
        with contextlib.suppress(ImportError):
            __import__(module)
    for module in STARTERS:
        import_module(module).subprocess = warm_subprocess()  # type: ignore[attr-defined]
    share_traces()
    if os.fork() == 0:  # a processor that is plugged in later is not seen where PyTorch has gone backward before
        parent, address = os.getppid(), f"{address}{ACCELERATED}"
    else:
        _follow_once()
    gc.freeze()  # else each child looks for garbage in all of it, and so copies it
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
    shutil.rmtree(Path(address).parent, ignore_errors=True)


def _follow_once() -> None:
    """Let PyTorch find out once for all what its operations do to shapes: in the first estimate that is most of it."""
    from ampere.models.loading import load_model
    from ampere.tracing.memory import allocations_of
    from ampere.tracing.trace import trace

    for family in ("lenet5", "transformer"):
        loaded = load_model(family)
        trace(loaded.model, loaded.inputs)
        for optimizer in ("sgd", "adam"):
            allocations_of(loaded.model, loaded.inputs, optimizer)


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
        if STANDIN in os.environ:  # the warm process has none, and each test sets its own
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
    sys.argv = ["ampere", *(job if what == "command" else [])]
    if what == "command":
        from ampere.cli import main

        return main(job)
    _allocate_as_asked()
    if what == "module":
        sys.argv = ["-c", *job[1:]]
        import_module(job[0]).main()
        return 0
    sys.path.insert(0, "")
    exec(compile(job, "<string>", "exec"), {"__name__": "__main__"})
    return 0


def _allocate_as_asked() -> None:
    import ctypes

    for name, number in (("TRIM_THRESHOLD", TRIM_THRESHOLD), ("TOP_PAD", TOP_PAD), ("MMAP_MAX", MMAP_MAX)):
        if (value := os.environ.get(f"MALLOC_{name}_")) is not None:
            ctypes.CDLL(None).mallopt(number, min(int(value), 2**31 - 1))


def warm_subprocess() -> Any:
    """In place of the module `subprocess` where Ampere starts programs of its own."""
    same = {name: getattr(subprocess, name) for name in ("PIPE", "DEVNULL", "TimeoutExpired")}
    return SimpleNamespace(Popen=warm_popen, run=warm_run, **same)


def share_traces() -> None:
    """Trace each network of Ampere's own factories once for all processes: hundreds of tests profile the same few."""
    from ampere.devices import workloads

    trace, folder = workloads._traced.__wrapped__, Path(os.environ[TRACES])

    @lru_cache(maxsize=4096)
    def shared(factory: str, arguments: str) -> Any:
        file = folder / hashlib.sha256(f"{factory} {arguments}".encode()).hexdigest()
        try:
            return pickle.loads(file.read_bytes())
        except OSError:
            network = trace(factory, arguments)
        with contextlib.suppress(OSError):  # a test may have filled the disk
            folder.mkdir(exist_ok=True)
            new = file.with_suffix(f".{os.getpid()}")
            new.write_bytes(pickle.dumps(network))
            new.replace(file)
        return network

    workloads._traced = shared


if __name__ == "__main__":
    serve()
