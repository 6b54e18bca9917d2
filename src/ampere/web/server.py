"""`ampere serve`: a server on this machine, and the browser on its page."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path

from ampere.core import Network
from ampere.core.errors import DeviceError, ModelError, RuntimeMissingError, UsageError
from ampere.storage.networks import load_network

from .guards import LOOPBACK_NAMES, Allowed

TRACING_SECONDS = 600.0
LARGEST_PORT = 65_535


def need_packages() -> None:
    """Raises where the server's packages are not installed."""
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise RuntimeMissingError(
            f"the explorer needs {' and '.join(missing)}, not installed here: pip install 'ampere-energy[web]'"
        )


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there, so that a port in use is known before anything is said."""
    if port > LARGEST_PORT:
        raise UsageError(f"--port {port} is no port: choose one up to {LARGEST_PORT}, or 0 for any that is free")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
    except OSError as error:
        opened.close()
        raise DeviceError(f"{host}:{port} cannot be listened on ({error.strerror}): choose another --port") from None
    opened.listen(128)
    return opened


def allowed_names(host: str, names: Sequence[str]) -> tuple[str, ...]:
    """The names under which a server at this address may be asked."""
    own = f"[{host}]" if ":" in host else host
    everywhere = host in ("0.0.0.0", "::")
    if everywhere and not names:
        raise UsageError(f"--host {host} is reached under any name: say under which, as in --name board.local")
    return tuple(dict.fromkeys([*LOOPBACK_NAMES, *([] if everywhere else [own.lower()]), *map(str.lower, names)]))


def load_networks(models: Sequence[str], say: Callable[[str], None]) -> dict[str, Network]:
    """Networks by name: files of `ampere trace` as they are, models traced in a process of their own."""
    found: dict[str, Network] = {}
    for model in models:
        if not model.endswith(".json"):
            say(f"tracing {model} ...")
        network = load_network(Path(model)) if model.endswith(".json") else traced(model)
        name = network.name or Path(model).stem
        found[name if name not in found else model] = network
    return found


def traced(model: str) -> Network:
    """A model's layers. Its code runs in another process, which ends: the server itself loads none."""
    with tempfile.TemporaryDirectory(prefix="ampere-serve-") as folder:
        out = Path(folder) / "network.json"
        command = [sys.executable, "-m", "ampere", "trace", model, "--out", str(out), "--quiet"]
        try:
            ran = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=TRACING_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise ModelError(
                f"{model} was not traced within {TRACING_SECONDS:g} s: try `ampere trace {model}`"
            ) from None
        if ran.returncode:
            lines = ran.stderr.strip().splitlines()
            words = lines[-1].removeprefix("ampere: ") if lines else f"tracing ended with exit code {ran.returncode}"
            raise ModelError(words)
        return load_network(out)


def serve(
    networks: Mapping[str, Network],
    opened: socket.socket,
    allowed: Allowed,
    *,
    certificate: tuple[str, str] | None = None,
    browse: str | None = None,
) -> None:
    """Answers until it is stopped. `browse` is an address to open in a browser as soon as it is served."""
    import uvicorn

    from .answers import Answers
    from .catalogue import Catalogue
    from .connections import Punctual
    from .routes import application

    answers = Answers(Catalogue(networks))
    config = uvicorn.Config(
        application(answers, allowed),
        http=Punctual,
        ws="none",
        log_level="error",
        proxy_headers=False,
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,  # pages that wait for events would hold it for ever
        h11_max_incomplete_event_size=65_536,
        ssl_certfile=certificate[0] if certificate else None,
        ssl_keyfile=certificate[1] if certificate else None,
    )
    if browse:
        threading.Thread(target=webbrowser.open, args=(browse,), daemon=True).start()
    try:
        uvicorn.Server(config).run(sockets=[opened])
    finally:
        answers.close()
