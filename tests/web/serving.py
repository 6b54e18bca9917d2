"""A server without a socket, and profiles of devices that never were."""

import asyncio
import json
import os
from contextlib import contextmanager
from pathlib import Path

from tests.processes import start_command
from tests.synthetic import block, conv, linear, random_chains, true_seconds

from ampere.core import Meter, Network, TrainingSetup
from ampere.storage.profile import Observation, Profile

METER = Meter("cpu-time", False, "5 W per busy core")


def observed(network, speed, purpose="network"):
    return Observation(network, block(speed * true_seconds(network), 1e-3, meter=METER), purpose)


def profile_of(device, optimizer="sgd", speed=1.0):
    alone = [Network((conv(8 * i, 40 - 4 * i),), 10) for i in range(1, 6)]
    alone += [Network((linear(16 * i, 100 - 8 * i),), 10) for i in range(1, 6)]
    seen = [observed(n, speed) for n in random_chains(1, 16)] + [observed(n, speed, "layer") for n in alone]
    record = {"id": device, "cpu": f"Board {device}", "cores": 2}
    return Profile(record, TrainingSetup(optimizer=optimizer), METER, 1e-3, tuple(seen), 12.5, ("chains",))


@contextmanager
def served(home, *words, port=0, start=start_command):
    """`ampere serve` as a process of its own: the process, and the address that it printed."""
    command = ["serve", *map(str, words), "--port", str(port), "--no-browser", "--json"]
    process = start(command, Path.cwd(), {**os.environ, "AMPERE_HOME": str(home)})
    try:
        text = b""
        while b"}" not in text:
            line = process.stdout.readline()
            assert line, f"the server ended after {text!r}: {process.stderr.read()!r}"
            text += line
        yield process, json.loads(text)["address"]
    finally:
        process.kill()
        process.communicate()


class Answered:
    """What came back for one request."""

    def __init__(self, messages):
        start = next(m for m in messages if m["type"] == "http.response.start")
        self.status = start["status"]
        self.headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        self.body = b"".join(m.get("body", b"") for m in messages if m["type"] == "http.response.body")

    @property
    def json(self):
        return json.loads(self.body)


def asked(app, method, path, body=b"", chunks=None, **headers):
    """One request to an ASGI application; underscores in the names of headers stand for hyphens."""
    body = json.dumps(body).encode() if isinstance(body, dict) else body
    named = {"host": "127.0.0.1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if chunks is None and body:
        named.setdefault("content-length", str(len(body)))
    parts = [body] if chunks is None else chunks
    waiting = [
        {"type": "http.request", "body": part, "more_body": number < len(parts) - 1}
        for number, part in enumerate(parts)
    ]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in named.items() if value is not None],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    sent = []

    async def receive():
        if waiting:
            return waiting.pop(0)
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return Answered(sent)
