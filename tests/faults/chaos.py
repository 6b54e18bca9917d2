"""Chaos: real commands that profile, estimate, prune and report, disturbed at random moments.

    python tests/faults/chaos.py --seconds 1800 --seed 1        prints a line a turn, and counts at the end

A turn:  a command is started -> disturbed at a random moment -> ended
         the same command is run again, undisturbed: it must succeed
         invariants are checked: no measurement that was on the disk is lost, all are finite and physical,
         no process and no temporary file is left, and every end is a success or one line with a code of ours

Only processes of this run are disturbed. Its folder is a small file system of its own where that is allowed, so that
the disk can be filled. The clock is stepped inside its commands only, by a library that is loaded into them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # for a run by hand

from tests.listening import OURS, listening

from ampere.core.measurement import Measurement
from ampere.storage import Profile, observations_from
from ampere.storage.files import ABANDONED_SECONDS

SMALL_DISK = ["unshare", "--mount", "--map-root-user", "sh", "-ec"]
MEGABYTES = 48
MOST_WATTS = 2000.0
LEAVING_SECONDS = 20.0  # for the processes of a command that was killed
OUR_CODES = {0, 2, 3, 4, 5, 6, 7, 8, 9, 130}  # of `ampere.core.errors`, and of Ctrl-C
ONLY = {"pull": "profile tcp", **dict.fromkeys(("KILL worker", "TERM worker", "STOP worker"), "profile local")}
SIMULATED = ["--device", "simulated:xavier", "--seconds", "40"]
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
static int reads = 0;
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *) = 0;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, now);
    if (id == CLOCK_REALTIME) now->tv_sec += (reads++ / 3 % 3 - 1) * 3600;  /* back, right, ahead by an hour */
    return code;
}
"""


class Broken(AssertionError):
    """An invariant that does not hold."""


class Forwarder:
    """A port that passes everything on to another, until its connections are pulled."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition("/")[2].rpartition(":")
        self._to = host, int(port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._server.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def pull(self) -> None:
        while self._open:
            with contextlib.suppress(OSError):
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            here = self._server.accept()[0]
            there = socket.create_connection(self._to)
            self._open += [here, there]
            for one, other in ((here, there), (there, here)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Chaos:
    def __init__(self, folder: Path, seed: int, log: Callable[[str], None] = print) -> None:
        self.folder, self.log, self.chance = folder, log, random.Random(seed)
        self.home, self.temporary = folder / "home", folder / "tmp"
        self.home.mkdir()
        self.temporary.mkdir()
        self.counts: Counter[str] = Counter()
        self.token = f"chaos-{os.getpid()}-{seed}"
        self.environment = {**os.environ, "AMPERE_HOME": str(self.home), "TMPDIR": str(self.temporary)}
        self.environment["AMPERE_CHAOS"] = self.token  # by which its processes are found
        self.clock = _clock_library(folder)
        self.jobs: dict[str, list[str]] = {
            "profile simulated": ["profile", "cnn5", *SIMULATED],
            "estimate": ["estimate", "cnn5", *SIMULATED, "--json"],
            "prune": ["prune", "cnn5", *SIMULATED, "--budget", "60%", "--no-check", "--out", str(folder / "p.json")],
            "report": ["report", "cnn5", *SIMULATED, "--out", str(folder / "report.html")],
        }
        self.faults: dict[str, Callable[[subprocess.Popen[str]], None]] = {
            "TERM": lambda process: process.send_signal(signal.SIGTERM),
            "KILL": lambda process: process.send_signal(signal.SIGKILL),
            "INT": lambda process: process.send_signal(signal.SIGINT),
            "HUP": lambda process: process.send_signal(signal.SIGHUP),
            "STOP": self._pause,
            "corrupt": lambda process: None,
        }
        if self.clock:
            self.faults["clock"] = lambda process: None
        if _is_mount(folder):
            self.faults["full disk"] = self._fill_disk

    def use_workers(self, address: str) -> None:
        """Profile this machine too, by workers of its commands and by one that listens at an address."""
        self.environment = {**os.environ, **self.environment}  # with the token of the worker
        self.forwarder = Forwarder(address)
        self.jobs["profile local"] = ["profile", "lenet5", "--seconds", "8"]
        self.jobs["profile tcp"] = ["profile", "lenet5", "--seconds", "8", "--device", self.forwarder.address]
        self.faults |= {
            "KILL worker": lambda process: self._signal_workers(process, signal.SIGKILL),
            "TERM worker": lambda process: self._signal_workers(process, signal.SIGTERM),
            "STOP worker": self._pause_workers,
            "pull": lambda process: self.forwarder.pull(),
        }

    def run(self, seconds: float) -> Counter[str]:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            fault = self.chance.choice(list(self.faults))
            self.turn(self.chance.choice([job for job in self.jobs if ONLY.get(fault, job) == job]), fault)
        return self.counts

    def turn(self, job: str, fault: str) -> None:
        began, known = time.monotonic(), self._measurements()
        if fault == "corrupt":
            code = self._with_corrupted_file(job)
        else:
            code, known = self._disturbed(job, fault, known)
        again, out = self._run(self.jobs[job])
        if again and "were over before anything was measured" in out:  # the machine has other things to do
            again, out = self._run([*self.jobs[job], "--seconds", "60"])
        if again:
            raise Broken(f"{job} after {fault} ended with {again}: {out[-500:]}")
        self._check(known, saved=job.startswith("profile"))
        self.counts.update(["turns", f"job {job}", f"fault {fault}"])
        self.counts["measurements"] = sum(len(found) for found in self._measurements().values())
        self.log(f"{job:18} {fault:12} exit {code:4} then 0, {time.monotonic() - began:5.1f} s")

    def _start(self, words: list[str], **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "ampere", *words],
            cwd=self.folder,
            env={**self.environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def _run(self, words: list[str]) -> tuple[int, str]:
        process = self._start(words)
        out = process.communicate(timeout=300)[0]
        return process.returncode, out

    def _disturbed(self, job: str, fault: str, known: dict[str, list[Any]]) -> tuple[int, dict[str, list[Any]]]:
        """The exit code of a disturbed command, and what was on the disk at that moment."""
        process = self._start(self.jobs[job], **({"LD_PRELOAD": str(self.clock)} if fault == "clock" else {}))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(self.chance.uniform(0, 10 if job.startswith("profile") else 4))
        known = self._measurements()
        self.faults[fault](process)
        out = process.communicate(timeout=300)[0]
        self._check_end(job, fault, process.returncode, out)
        (self.folder / "filler").unlink(missing_ok=True)
        return process.returncode, known

    def _check_end(self, job: str, fault: str, code: int, out: str) -> None:
        ended_by_us = code < 0 and fault in ("TERM", "KILL", "HUP", "INT", "STOP")
        if not ended_by_us and code not in OUR_CODES:
            raise Broken(f"{job} under {fault} ended with {code}: {out[-500:]}")
        if "Traceback" in out:
            raise Broken(f"{job} under {fault} showed a traceback: {out[-1500:]}")

    def _pause(self, process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.chance.uniform(0, 1))
        process.send_signal(self.chance.choice((signal.SIGCONT, signal.SIGKILL)))
        process.send_signal(signal.SIGCONT)

    def _signal_workers(self, process: subprocess.Popen[str], number: signal.Signals) -> None:
        for pid in self._pids() - {process.pid}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _pause_workers(self, process: subprocess.Popen[str]) -> None:
        workers = self._pids() - {process.pid}
        self._signal_workers(process, signal.SIGSTOP)
        time.sleep(self.chance.uniform(0, 1))
        if self.chance.random() < 0.8:  # else it is for the command to notice
            for pid in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _fill_disk(self, process: subprocess.Popen[str]) -> None:
        with contextlib.suppress(OSError), open(self.folder / "filler", "wb", buffering=0) as filler:
            while filler.write(b"x" * 4096):
                pass

    def _with_corrupted_file(self, job: str) -> int:
        """A file is damaged, the command run, and the file put back: it may be refused, but never believed."""
        files = [path for path in sorted(self.home.rglob("*")) if path.is_file()]
        if not files:
            return 0
        path = self.chance.choice(files)
        whole = path.read_bytes()
        damaged = bytearray(whole)
        for _ in range(self.chance.randrange(1, 4) if whole else 0):
            damaged[self.chance.randrange(len(damaged))] ^= 1 << self.chance.randrange(8)
        if self.chance.random() < 0.3:
            del damaged[self.chance.randrange(len(damaged) + 1) :]
        others = {other: other.read_bytes() for other in files}
        path.write_bytes(damaged)
        code, out = self._run(self.jobs[job])
        self._check_end(job, "corrupt", code, out)
        shutil.rmtree(self.home)
        for other, raw in others.items():
            other.parent.mkdir(parents=True, exist_ok=True)
            other.write_bytes(raw)
        return code

    def _measurements(self) -> dict[str, list[Any]]:
        """What every journal holds now."""
        return {path.name: list(observations_from(path)) for path in self.home.glob("profiles/*.journal")}

    def _check(self, known: dict[str, list[Any]], saved: bool) -> None:
        now = self._measurements()
        for name, before in known.items():
            if now.get(name, [])[: len(before)] != before:
                raise Broken(f"{name}: a measurement that was on the disk is gone")
        for name, found in now.items():
            for observation in found:
                _check_physical(name, observation.measurement)
        for path in self.home.glob("profiles/*.json"):
            journal = now[f"{path.name}.journal"]
            if any(observation not in journal for observation in Profile.load(path).observations):
                raise Broken(f"{path.name} holds a measurement that was never made")
        others = (path for path in self.temporary.iterdir() if not path.name.startswith("torchinductor"))
        written = [path for path in self.home.rglob("*.tmp") if _seconds_old(path) > ABANDONED_SECONDS + 30]
        left = [*others, *(written if saved else [])]  # who writes next removes what a killed writer left
        if left:
            raise Broken(f"temporary files are left: {', '.join(map(str, left))}")
        deadline = time.monotonic() + LEAVING_SECONDS
        while pids := self._pids():
            if time.monotonic() > deadline:
                raise Broken(f"processes are left: {pids}")
            time.sleep(0.1)

    def _pids(self) -> set[int]:
        """The processes of this run's commands, by their environment; what has ended is no longer listed."""
        found, mark = set(), f"AMPERE_CHAOS={self.token}".encode()
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in path.read_bytes().split(b"\0"):
                    found.add(int(path.parent.name))
        return found


def _check_physical(name: str, measurement: Measurement) -> None:
    for window in (*measurement.target, *measurement.yardstick):
        if not 0 < window.wall_seconds < 3600 or not (window.joules is None or window.joules >= 0):
            raise Broken(f"{name} holds an impossible window: {window}")
        if (window.joules or 0.0) > MOST_WATTS * window.wall_seconds:
            raise Broken(f"{name} holds invented joules: {window}")


def _seconds_old(path: Path) -> float:
    with contextlib.suppress(FileNotFoundError):
        return time.time() - path.stat().st_mtime
    return 0.0


def _clock_library(folder: Path) -> Path | None:
    """A library that steps the wall clock of whoever loads it; None where there is no compiler."""
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(CLOCK)
    with contextlib.suppress(OSError):
        made = subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], capture_output=True)
        return library if made.returncode == 0 else None
    return None


def _is_mount(folder: Path) -> bool:
    return folder.stat().st_dev != folder.parent.stat().st_dev


@contextlib.contextmanager
def small_disk() -> Iterator[list[str]]:
    """The beginning of a command that runs on a small disk of its own, and the folder; or just a folder."""
    with tempfile.TemporaryDirectory(prefix="ampere-chaos-") as folder:
        mount = f"mount -t tmpfs -o size={MEGABYTES}m tmpfs {folder}"
        probe = shutil.which("unshare") and subprocess.run([*SMALL_DISK, mount], capture_output=True).returncode == 0
        yield [*(([*SMALL_DISK, f'{mount} && exec "$@"', "sh"]) if probe else []), sys.executable, __file__, folder]


def inside(folder: str, seconds: float, seed: int, simulated: bool) -> int:
    chaos = Chaos(Path(folder), seed, lambda line: print(line, file=sys.stderr, flush=True))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the worker that listens is ended too
    try:
        with contextlib.nullcontext("") if simulated else listening(OURS) as address:
            if address:
                chaos.use_workers(address)
            counts = chaos.run(seconds)
    except Broken as broken:
        print(json.dumps({"broken": str(broken), "seed": seed, **chaos.counts}))
        return 1
    print(json.dumps({"seed": seed, "seconds": seconds, **dict(sorted(counts.items()))}))
    return 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Disturb real commands at random moments, and check what must hold.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--simulated", action="store_true", help="only simulated devices, which need no worker")
    parser.add_argument("folder", nargs="?", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.folder:
        return inside(chosen.folder, chosen.seconds, chosen.seed, chosen.simulated)
    with small_disk() as command:
        return subprocess.run([*command, *arguments]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
