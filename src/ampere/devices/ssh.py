"""Another machine as a device, with nothing installed there: the worker travels over the system's own ssh."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ampere.core.errors import DeviceError, RuntimeMissingError, UsageError
from ampere.runtimes import description_of

from .bootstrap import CUT_SHORT, NO_FOLDER, OLDEST, TOO_OLD
from .bundle import bootstrap_program, bundle
from .environment import TUNED, worker_environment
from .process_worker import WorkerOptions
from .remote import RemoteWorker
from .transport import ConnectionLost, Transport, WorkerGone, WorkerProcess

# Where a remote device is: `ssh://user@host:port?python=/path/to/python3`, as it is written and as ssh takes it.

FORM = "ssh://user@host, ssh://host:2222 or ssh://host?python=/path/to/python3"
SPEC = re.compile(
    r"//(?:(?P<user>[^-@:/?\s][^@:/?\s]*)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^-@:/?\s\[\]][^@:/?\s\[\]]*)"
    r"(?::(?P<port>\d{1,5}))?/?(?:\?python=(?P<python>\S.*))?"
)
# What the user's own configuration says of keys, jumps and names stays as it is.
OPTIONS = {
    "BatchMode": "yes",  # nobody is there to type a password
    "ConnectTimeout": "15",
    "ServerAliveInterval": "5",  # a dead line is noticed after three of these
    "ServerAliveCountMax": "3",
    "ControlMaster": "no",  # ours may be ended at any time, and would take others with it
    "ClearAllForwardings": "yes",
    "RemoteCommand": "none",
}


@dataclass(frozen=True)
class Address:
    destination: str
    port: str | None = None
    python_given: str | None = None

    @classmethod
    def parse(cls, name: str) -> Address:
        """What follows `ssh:`."""
        found = SPEC.fullmatch(name)
        if not found or (found["port"] and not 0 < int(found["port"]) < 65536):
            raise UsageError(f"'ssh:{name}' is no device: write {FORM}")
        user = f"{found['user']}@" if found["user"] else ""
        return cls(user + found["host"].strip("[]"), found["port"], found["python"])

    @cached_property
    def python(self) -> str:
        return self.python_given or os.environ.get("AMPERE_REMOTE_PYTHON") or "python3"

    @property
    def on_windows(self) -> bool:
        """Only there does a Python end in .exe."""
        return self.python.lower().endswith(".exe")

    def command(self, program: str, order: str) -> list[str]:
        """Runs a Python program there, whatever shell the user has."""
        there = _for_windows if self.on_windows else _for_unix
        options = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
        port = ["-p", self.port] if self.port else []
        return ["ssh", "-T", *options, *port, "--", self.destination, there(self.python, program, order)]

    def by_hand(self) -> str:
        return " ".join(["ssh", *(["-p", self.port] if self.port else []), self.destination])


def _for_unix(python: str, program: str, order: str) -> str:
    quoted = '"$HOME"/' + shlex.quote(python[2:]) if python.startswith("~/") else shlex.quote(python)
    return f"exec {quoted} -B -c {shlex.quote(program)} {shlex.quote(order)}"


UNPACK = "import base64 as b,sys,zlib as z;u=lambda t:z.decompress(b.b64decode(t)).decode();"


def _for_windows(python: str, program: str, order: str) -> str:
    """For cmd and PowerShell, which take neither several lines nor quotes in quotes: both texts travel as base64."""
    packed = [base64.b64encode(zlib.compress(text.encode(), 9)).decode() for text in (program, order)]
    named = f'"{python}"' if " " in python else python  # cmd runs a quoted name, PowerShell does not
    return f"{named} -B -c \"{UNPACK}sys.argv[1]=u(sys.argv[1]);exec(u('{packed[0]}'))\" {packed[1]}"


# A worker at the far end of an ssh connection: a process here that speaks for one there.

ENDED_BY_SSH = 255


class NeverRan(Exception):
    """The far end answered, but could not start a worker: its exit code, and what it said."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code


class RemoteProcess(WorkerProcess):
    patience_seconds = 5.0
    we_beat = True

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], parcel: bytes, unfit: Sequence[int]
    ) -> None:
        """`unfit` are exit codes that say why no worker can run there."""
        self._unfit = unfit
        super().__init__(command, environment, parcel)

    def _gone(self) -> Exception:
        epitaph, code = self._epitaph(), self._process.returncode
        if code == ENDED_BY_SSH or code is None or code < 0:
            return ConnectionLost("\n".join(self._said) or epitaph)
        if code in self._unfit:
            return NeverRan(code, self._said[-1] if self._said else "")
        return WorkerGone(epitaph, code)


# Why a remote device cannot be used, in one line with its remedy: what ssh or the far end said, and what to do.

NOT_EXECUTABLE, NOT_FOUND = 126, 127  # what every shell answers
UNFIT = (NOT_EXECUTABLE, NOT_FOUND, TOO_OLD, NO_FOLDER, CUT_SHORT)
NAME_ANOTHER = "install one, or name it as in ssh://host?python=/path/to/python3 or AMPERE_REMOTE_PYTHON"

# What ssh says, what that means, what to do; the first that fits.
OF_SSH = (
    ("Could not resolve hostname", "no machine of that name is known", "check the name, or add it to ~/.ssh/config"),
    ("Host key verification failed", "its host key is unknown or has changed", "connect once by hand: {by_hand}"),
    ("Permission denied", "it refuses your key", "give it one that `{by_hand} true` takes without a password"),
    ("Too many authentication failures", "it refuses your keys", "name the right one in ~/.ssh/config"),
    ("Connection refused", "no ssh server answers there", "start one, or give its port as in ssh://host:2222"),
    ("timed out", "it does not answer", "check that it is switched on and in reach"),
    ("not responding", "it does not answer any more", "check that it is switched on and in reach"),
    ("No route to host", "it cannot be reached", "check that it is switched on and in reach"),
    ("Network is unreachable", "it cannot be reached", "check the network of this machine"),
)


def unreachable(address: Address, said: str) -> DeviceError:
    """`said` is what ssh wrote before it ended."""
    for sign, meaning, remedy in OF_SSH:
        if sign in said:
            return _error(address, meaning, remedy.format(by_hand=address.by_hand()))
    last = (said.strip().splitlines() or ["nothing"])[-1]
    return _error(address, f"the connection ended (last words: {last[:200]})", f"try `{address.by_hand()} true`")


def unfit(address: Address, code: int, said: str) -> DeviceError:
    oldest = ".".join(map(str, OLDEST))
    if code in (NOT_EXECUTABLE, NOT_FOUND):
        return _error(address, f"there is no {address.python} there", NAME_ANOTHER)
    if code == TOO_OLD:
        return _error(address, f"its {address.python} is {said}, and {oldest} is the oldest that will do", NAME_ANOTHER)
    if code == NO_FOLDER:
        return _error(
            address, f"no temporary folder can be written there ({said})", "free some space, or set TMPDIR there"
        )
    return _error(address, "the worker did not arrive whole", "try again")


def _error(address: Address, what: str, remedy: str) -> DeviceError:
    return DeviceError(f"cannot use {address.destination} over ssh: {what}; {remedy}")


# Another machine as a device, with nothing installed there: the worker travels over the system's own ssh.
#
# connect -> the worker arrives in a temporary folder -> asked and answered in lines -> hang up, nothing remains

SILENCE_SECONDS = 60.0  # of the host, after which the far end gives up


class SshWorker(RemoteWorker):
    def __init__(self, address: Address, allocator: str = "tuned", options: WorkerOptions | None = None) -> None:
        super().__init__(allocator, options)
        self.address = address

    def _result(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        try:
            return super()._result(request, seconds)
        except RuntimeMissingError as problem:
            runtime = str(request.get("runtime") or request.get("setup", {}).get("runtime", "torch"))
            if runtime in self.hello()["runtimes"]:  # and yet it does not start: the far end knows why
                raise
            raise RuntimeMissingError(self._not_there(runtime)) from problem

    def _not_there(self, runtime: str) -> str:
        packages = " ".join(description_of(runtime).packages)
        name = "PyTorch" if runtime == "torch" else runtime
        return (
            f"{name} is not installed for {self.address.python} on {self.address.destination}: pip install {packages} "
            "there, or name another Python as in ssh://host?python=/path/to/python3"
        )

    def _ask(self, request: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        try:
            return super()._ask(request, seconds)
        except NeverRan as problem:
            raise unfit(self.address, problem.code, str(problem)) from None

    def _launched(self) -> Transport:
        order = {
            "size": len(bundle()),
            "silence_seconds": SILENCE_SECONDS,
            "environment": worker_environment({}, self.allocator, self._threads),
            "without": list(TUNED),
        }
        command = self.address.command(bootstrap_program(), json.dumps(order))
        try:
            return RemoteProcess(command, os.environ, bundle(), UNFIT)
        except OSError as problem:
            raise DeviceError(f"cannot start ssh ({problem}); install OpenSSH's client") from None

    def _unreachable(self, said: str) -> Exception:
        return unreachable(self.address, said)

    def _by_hand(self) -> str:
        return f"{self.address.by_hand()} {self.address.python}"
