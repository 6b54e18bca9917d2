"""A lab of hosts in network namespaces of their own, each with a cable to this process that can be pulled out.

    this process, in a namespace of its own   10.7.N.1 ---cable N--- 10.7.N.2   a listening worker, in another one

Nothing of the machine is touched, and all of it ends with this process. `main` profiles a fleet of four such hosts: one
is left alone, one is cut off in the middle, one hangs in the middle until that is noticed, and one lies. Then the cable
is back, and the same is asked for again. What became of each is written to found.json.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.listening import NODE

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
UNAVAILABLE = 77
ALONE, CUT, HANGS, LIAR = HOSTS = ("alone", "cut", "hangs", "liar")
BEAT_SECONDS = 0.5
MLP = """
import torch
from torch import nn
def build(batch=16, width=24):
    return nn.Sequential(nn.Linear(32, width), nn.Linear(width, 10)), torch.randn(batch, 32)
"""
MUTANT = Path(__file__).parents[1] / "conformance" / "mutant.py"
LISTENING_LIAR = f"""
import socketserver, subprocess, sys
class Liar(socketserver.BaseRequestHandler):
    def handle(self):
        subprocess.run([sys.executable, {str(MUTANT)!r}, "too-hot"], stdin=self.request, stdout=self.request)
socketserver.TCPServer(("0.0.0.0", 7070), Liar).serve_forever()
"""


def leave_the_network() -> None:
    """Puts this process into an empty network of its own; ends it where that is not allowed."""
    libc, who = ctypes.CDLL(None, use_errno=True), os.geteuid()
    try:
        if libc.unshare(NEW_NETWORK):
            if libc.unshare(NEW_USER | NEW_NETWORK):
                raise OSError(os.strerror(ctypes.get_errno()))
            Path("/proc/self/uid_map").write_text(f"0 {who} 1")
        _run("ip link set lo up")
    except (OSError, subprocess.CalledProcessError) as problem:
        print(problem)
        sys.exit(UNAVAILABLE)


def host(number: int) -> "subprocess.Popen[bytes]":
    """A host whose worker listens, with a cable to here."""
    liar = [sys.executable, "-c", LISTENING_LIAR]
    command = liar if HOSTS[number] == LIAR else [*NODE.split(), "--listen", "0.0.0.0:7070"]
    process = subprocess.Popen(["unshare", "--net", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    there = Path(f"/proc/{process.pid}/ns/net")
    while there.readlink() == Path("/proc/self/ns/net").readlink():
        time.sleep(0.01)
    _run(f"ip link add cable{number} type veth peer name eth0 netns {process.pid}")
    _run(f"ip addr add 10.7.{number}.1/24 dev cable{number}")
    _run(f"ip link set cable{number} up")
    _run(f"nsenter --net={there} ip addr add 10.7.{number}.2/24 dev eth0")
    _run(f"nsenter --net={there} ip link set eth0 up")
    return process


def _run(command: str) -> None:
    subprocess.run(command.split(), check=True)


def observations(journal: Path) -> int:
    return journal.read_bytes().count(b'"observation"') if journal.exists() else 0


def main(folder: Path) -> None:
    from ampere.api.fleets import FleetStore, fleet
    from ampere.devices import process_worker, remote, tcp, transport
    from ampere.fleet import running
    from ampere.storage.places import journal_path

    transport.BEAT_SECONDS = process_worker.BEAT_SECONDS = BEAT_SECONDS
    remote.RemoteWorker.reconnect_seconds, running.PAUSE_SECONDS = 6.0, 1.0
    leave_the_network()
    hosts = {name: host(number) for number, name in enumerate(HOSTS)}
    cable, disturbed, noticed = f"cable{HOSTS.index(CUT)}", dict[str, float](), dict[str, float]()
    disturb = {
        CUT: lambda: _run(f"ip link set {cable} down"),
        HANGS: lambda: hosts[HANGS].send_signal(signal.SIGSTOP),
    }

    def once_it_trains(name: str, journal: Path) -> None:
        while not observations(journal):
            time.sleep(0.01)
        disturbed[name] = time.monotonic()
        disturb[name]()

    def connect(self: tcp.TcpAddress, seconds: float) -> socket.socket:
        name = HOSTS[int(self.host.split(".")[2])]
        if name in disturbed:  # it was given up, and is looked for again
            noticed.setdefault(name, time.monotonic() - disturbed[name])
            hosts[name].send_signal(signal.SIGCONT)
        return look_for(self, seconds)

    look_for, tcp.TcpAddress.connect = tcp.TcpAddress.connect, connect  # type: ignore[method-assign]
    try:
        file, store = folder / "fleet.toml", FleetStore.of(folder / "fleet.toml")
        entries = [f'[[device]]\nname = "{name}"\naddress = "tcp://10.7.{n}.2:7070"\n' for n, name in enumerate(HOSTS)]
        file.write_text("".join(entries))
        (folder / "mlp.py").write_text(MLP)
        for name in disturb:
            given = (name, journal_path(store.named(name)))
            threading.Thread(target=once_it_trains, args=given, daemon=True).start()
        model, asked = f"{folder}/mlp.py:build", {"seconds": 3.0, "time_limit": 90.0}
        first = fleet(file, "profile", model, attempts=1, **asked)
        kept = observations(journal_path(store.named(CUT)))
        _run(f"ip link set {cable} up")
        # The host that was cut off learns late that nobody is there any more.
        again = fleet(file, "profile", model, attempts=80, labels=[ALONE, CUT, HANGS], **asked)
        found = {"first": first.to_json(), "again": again.to_json(), "kept": kept, "noticed": noticed}
        (folder / "found.json").write_text(json.dumps(found))
    finally:
        for process in hosts.values():
            process.kill()
            process.wait()
