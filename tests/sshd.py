"""A real OpenSSH server of the tests' own on loopback: its own port, keys and configuration, all in one folder."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
PRIVILEGE_SEPARATION = Path("/run/sshd")


@contextmanager
def server(folder: Path) -> Iterator[SimpleNamespace]:
    """While it runs, `ssh` is the system's own with the keys of the tests; `spec` names the device."""
    if not SSHD or not shutil.which("ssh") or not shutil.which("ssh-keygen"):
        pytest.skip("no OpenSSH server and client are installed here (openssh-server, openssh-client)")
    if os.getuid() == 0:
        PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    port, temporary = _free_port(), folder / "temporary"
    temporary.mkdir()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized")
    (folder / "known").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        f"SetEnv TMPDIR={temporary} MKL_NUM_THREADS=1\n"
    )
    (folder / "ssh_config").write_text(
        f"Host *\n IdentityFile {folder}/user\n IdentitiesOnly yes\n UserKnownHostsFile {folder}/known\n"
        f" GlobalKnownHostsFile none\n StrictHostKeyChecking yes\n IdentityAgent none\n"
    )
    programs = _program(folder, "ssh", f'exec {shutil.which("ssh")} -F {folder}/ssh_config "$@"').parent
    listener = _started(folder, port)
    spec = f"ssh://127.0.0.1:{port}?python={_python(folder)}"
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
            yield SimpleNamespace(spec=spec, port=port, folder=folder, temporary=temporary, pid=listener.pid)
    finally:
        for pid in [*descendants(listener.pid), listener.pid]:
            _kill(pid)
        listener.wait()


def descendants(pid: int) -> list[int]:
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
    found, edge = [], [pid]
    while edge:
        edge = [child for child, parent in parents.items() if parent in edge]
        found += edge
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def workers(there: SimpleNamespace) -> list[int]:
    """Every process that runs from the temporary folder of the far end."""
    every = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [pid for pid in every if f"{there.temporary}/" in command_of(pid)]


def pull_the_cable(there: SimpleNamespace) -> None:
    """Both ends of every connection to this server see it vanish."""
    for pid in descendants(there.pid):
        if command_of(pid).startswith("sshd:"):
            _kill(pid)


def left_behind(there: SimpleNamespace, seconds: float = 8.0) -> list[str]:
    until = time.monotonic() + seconds
    while left := [*map(str, there.temporary.iterdir()), *map(str, workers(there))]:
        if time.monotonic() > until:
            return left
        time.sleep(0.05)
    return []


def _started(folder: Path, port: int) -> subprocess.Popen:
    log = folder / "sshd.log"
    listener = subprocess.Popen([SSHD, "-D", "-E", log, "-f", folder / "sshd_config"], stdin=subprocess.DEVNULL)
    until = time.monotonic() + 10
    while time.monotonic() < until and listener.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return listener
        time.sleep(0.05)
    listener.kill()
    pytest.skip(f"sshd does not start here: {log.read_text()[-300:]}")


def _python(folder: Path) -> Path:
    """An interpreter of its own: it has what is installed here for training, and not Ampere."""
    made = folder / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    site = next(made.glob("lib/python*/site-packages"))
    (site / "training.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return made / "bin" / "python3"


def _program(folder: Path, name: str, line: str) -> Path:
    path = folder / "programs" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
