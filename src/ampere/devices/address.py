"""Where a remote device is: `ssh://user@host:port?python=/path/to/python3`, as it is written and as ssh is told."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from functools import cached_property

from ..errors import UsageError

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

    def command(self, program: str, order: str) -> list[str]:
        """Runs a Python program there, whatever shell the user has."""
        home = self.python.startswith("~/")
        python = '"$HOME"/' + shlex.quote(self.python[2:]) if home else shlex.quote(self.python)
        there = f"exec {python} -B -c {shlex.quote(program)} {shlex.quote(order)}"
        options = [word for name, value in OPTIONS.items() for word in ("-o", f"{name}={value}")]
        port = ["-p", self.port] if self.port else []
        return ["ssh", "-T", *options, *port, "--", self.destination, there]

    def by_hand(self) -> str:
        return " ".join(["ssh", *(["-p", self.port] if self.port else []), self.destination])
