"""Abuse of the HTTP interface: many clients at once, hostile pages, bodies without end. It stays up, and small.

AMPERE_HTTP_SECONDS=60 makes the load test as long as the figures in docs/explanation/benchmarks.md.
"""

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from tests.web.serving import profile_of

pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'ampere-energy[web]'")
pytestmark = pytest.mark.fault(20)

CLIENTS = 200
SECONDS = float(os.environ.get("AMPERE_HTTP_SECONDS", "2"))
PAUSE_SECONDS = 1.0  # of a client between two answers
MOST_GROWTH_MB = 50
WIDTHS = {"0": 32, "3": 64, "6": 128, "8": 256}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Port and process of a server with one profile."""
    home = tmp_path_factory.mktemp("home")
    profile_of("a").save(home / "profiles" / "a.json")
    words = [sys.executable, "-m", "ampere", "serve", "--port", "0", "--no-browser", "--json"]
    process = subprocess.Popen(words, env={**os.environ, "AMPERE_HOME": str(home)}, stdout=subprocess.PIPE, text=True)
    text = ""
    while "}" not in text:
        text += process.stdout.readline()
    yield int(json.loads(text)["address"].rstrip("/").rpartition(":")[2]), process
    process.kill()
    process.wait()
    process.stdout.close()


def resident_mb(process):
    status = Path(f"/proc/{process.pid}/status")
    if not status.exists():
        pytest.skip("no /proc here")
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmRSS")) / 1024


def post(connection, what, body, **headers):
    connection.request("POST", f"/api/v1/{what}", body, headers)
    response = connection.getresponse()
    response.read()
    return response.status


def some_question(rng):
    widths = {name: rng.randint(1, most) for name, most in WIDTHS.items()}
    return json.dumps({"network": "cnn5", "profile": "a", "widths": widths})


def test_two_hundred_clients_are_answered_and_memory_stays(served, record_property):
    port, process = served
    warm = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for seed in range(300):
        assert post(warm, "what-if", some_question(random.Random(seed))) == 200
    warm.close()
    before, statuses, waited = resident_mb(process), Counter(), []
    end = time.monotonic() + SECONDS

    def client(seed):
        rng = random.Random(1000 + seed)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        time.sleep(rng.random() * PAUSE_SECONDS)
        while time.monotonic() < end:
            began = time.perf_counter()
            statuses[post(connection, "what-if", some_question(rng))] += 1
            waited.append(time.perf_counter() - began)
            time.sleep(PAUSE_SECONDS * (0.5 + rng.random()))
        connection.close()

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    grown = resident_mb(process) - before
    p99 = sorted(waited)[int(0.99 * (len(waited) - 1))]
    record_property(
        "figure",
        f"{CLIENTS} clients for {SECONDS:g} s: {len(waited)} answers, no error, p99 {1e3 * p99:.0f} ms, "
        f"memory {grown:+.0f} MB",
    )
    assert set(statuses) == {200}
    assert len(waited) >= CLIENTS
    assert grown < MOST_GROWTH_MB


def test_hostile_requests_get_nothing_and_do_no_harm(served, record_property):
    port, process = served
    before = resident_mb(process)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    own = f"127.0.0.1:{port}"
    question = some_question(random.Random(0))
    assert post(connection, "what-if", question, Host="evil.example") == 421
    assert post(connection, "what-if", question, Origin="https://evil.example") == 403
    assert post(connection, "what-if", question, Origin=f"http://{own}") == 200
    assert post(connection, "what-if", question, **{"Sec-Fetch-Site": "cross-site"}) == 403
    connection.close()
    refused = 0
    for raw in (
        b"GET / HTTP/1.1\r\nHost: " + own.encode() + b"\r\nX: " + b"x" * 300_000 + b"\r\n\r\n",
        b"POST /api/v1/what-if HTTP/1.1\r\nHost: " + own.encode() + b"\r\nContent-Length: 999999999\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"GET http://elsewhere.example/ HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n",
        b"{}\n" * 1000,
    ):
        answer = b""
        with socket.create_connection(("127.0.0.1", port), timeout=20) as stranger, suppress(ConnectionError):
            stranger.sendall(raw)
            answer = stranger.recv(200)
        refused += not answer or answer.split(b" ")[1][:1] == b"4"
    assert refused == 5
    held = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(200)]  # that never ask
    again = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    assert post(again, "what-if", question) == 200
    again.close()
    for each in held:
        each.close()
    assert resident_mb(process) - before < MOST_GROWTH_MB
    record_property("figure", "5 malformed requests refused; 200 silent connections keep nobody from an answer")
