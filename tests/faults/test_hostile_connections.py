"""Strangers at a listening worker: none is obeyed, none makes it grow or wait, and a host with the token is served."""

import contextlib
import itertools
import json
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from tests.listening import OURS, listener
from tests.sshd import descendants

from ampere.core.errors import DeviceError, UsageError, WorkerError
from ampere.core.protocol import PROTOCOL
from ampere.devices.tcp import TcpAddress, TcpWorker
from ampere.worker import listening
from ampere.worker.requests import BlockRequest, check_allowed

pytestmark = pytest.mark.fault(22)

CONNECTIONS = int(os.environ.get("AMPERE_HOSTILE_CONNECTIONS", "1000"))
MOST_GROWTH_MB = 20
HELLO = {"id": 1, "do": "hello", "protocols": [PROTOCOL]}


@pytest.fixture(scope="module")
def started():
    with listener(OURS) as found:
        yield found


@pytest.fixture
def host(started, monkeypatch):
    _, address, token = started
    monkeypatch.setenv("AMPERE_WORKER_TOKEN", token)
    with TcpWorker(TcpAddress.parse(address.partition(":")[2])) as device:
        yield device


def resident_mb(pid):
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def lines(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def attacks(marker):
    """First words of strangers, each of which would leave a marker if it were obeyed."""
    workload = {"factory": "os:system", "arguments": {"command": f"touch {marker}"}}
    order = {"id": 2, "do": "block", "workload": workload, "iterations": 1, "warmup": 1}
    body = lines(order)
    head = f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    return (
        head.encode() + body,
        b"GET / HTTP/1.0\r\n\r\n",
        os.urandom(4096) + b"\n",
        b"{" + b"x" * 1_000_000,
        b"[" * 100_000 + b"\n" + body,
        b"{" + b'"a":{' * 1500 + b"\n" + body,
        b"",  # silent
        b"{",  # and then silent
        body,
        b"\n" + body,
        lines({"id": 1, "do": "ping"}, order),
        lines(HELLO, order),
        lines({**HELLO, "token": "a-wrong-token-of-somebody"}, order),
        lines({**HELLO, "token": ["a"]}, order),
        lines({**HELLO, "token": "\ud800"}, order),
        lines({**HELLO, "id": {}, "token": None}, order),
        lines({**HELLO, "protocols": [2]}, order),
        lines({**HELLO, "protocols": "all"}, order),
    )


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory of a process is read from /proc")
def test_a_thousand_hostile_connections(started, host, tmp_path, record_property):
    process, address, _ = started
    marker = tmp_path / "obeyed"
    where = TcpAddress.parse(address.partition(":")[2])
    before, open_ones, answers = resident_mb(process.pid), [], []
    for attack in itertools.islice(itertools.cycle(attacks(marker)), CONNECTIONS):
        connection = where.connect(5.0)
        connection.settimeout(0.02)
        with contextlib.suppress(OSError):  # it is closed in the middle
            connection.sendall(attack)
        open_ones.append(connection)  # nobody hangs up politely
        if len(open_ones) > 200:
            answers.append(said_to(open_ones.pop(0)))
    answers += map(said_to, open_ones)
    grown = resident_mb(process.pid) - before
    assert process.poll() is None
    assert not marker.exists()
    assert descendants(process.pid) == []  # no worker was even started
    assert not any(b'"result"' in answer for answer in answers)
    assert grown < MOST_GROWTH_MB
    assert host.hello()["protocol"] == PROTOCOL
    record_property("figure", f"{len(answers)} connections, 0 obeyed, {grown:+.1f} MB, then a host is served")


def said_to(connection):
    with connection, contextlib.suppress(OSError):
        return connection.recv(65536)
    return b""


def test_what_is_no_handshake_ends_the_connection_at_once(started, tmp_path):
    where = TcpAddress.parse(started[1].partition(":")[2])
    for attack in attacks(tmp_path / "obeyed"):
        if not attack.endswith(b"\n"):
            continue
        with where.connect(5.0) as connection:
            connection.settimeout(2.0)
            connection.sendall(attack)
            with contextlib.suppress(ConnectionError):
                while connection.recv(65536):
                    pass  # TimeoutError where it stays open


def test_a_silent_stranger_is_sent_away(started):
    with TcpAddress.parse(started[1].partition(":")[2]).connect(5.0) as connection:
        connection.settimeout(8.0)
        assert connection.recv(1) == b""


def test_code_that_is_named_in_a_request_is_not_run(host, tmp_path):
    marker = tmp_path / "obeyed"
    host.hello()
    order = {"factory": "os:system", "arguments": {"command": f"touch {marker}"}}
    answer = host._ask({"do": "block", "workload": order, "iterations": 1, "warmup": 1}, 5.0)
    assert answer["error"]["type"] == "variant_failed"
    assert "does not run os for its host: describe layers, or start it with --allow os" in answer["error"]["message"]
    assert not marker.exists()


@pytest.mark.parametrize(("token", "said"), [("", "no token was given"), ("another-token-of-16", "the token is wrong")])
def test_a_host_without_the_token_is_told_what_to_do(started, monkeypatch, token, said):
    monkeypatch.setenv("AMPERE_WORKER_TOKEN", token)
    with TcpWorker(TcpAddress.parse(started[1].partition(":")[2])) as device:
        with pytest.raises(DeviceError, match=rf"{said}.*set AMPERE_WORKER_TOKEN") as caught:
            device.hello()
        assert started[2] not in str(caught.value)


def test_a_host_of_the_version_before_is_told_which_side_to_update(started):
    with TcpAddress.parse(started[1].partition(":")[2]).connect(5.0) as connection:
        connection.sendall(lines({"id": 1, "do": "hello", "protocols": [2], "beat_seconds": 5.0}))
        error = json.loads(connection.makefile().readline())["error"]
    assert error["type"] == "protocol"
    assert error["message"] == "this worker speaks protocol 3, and was asked for [2]: update Ampere on the host"


def test_the_token_is_neither_shown_nor_passed_on(started, host):
    """It is in no message, no identity and no description, and a worker's own code cannot read it."""
    token = started[2]
    assert len(token) == 32
    assert token not in json.dumps([host.hello(), host.identity()]) + repr(vars(host))
    [worker] = descendants(started[0].pid)
    assert token.encode() not in Path(f"/proc/{worker}/environ").read_bytes()
    assert token.encode() not in Path(f"/proc/{worker}/cmdline").read_bytes()
    with pytest.raises(UsageError) as caught:
        TcpAddress.parse(f"//{token}@127.0.0.1:7070")
    assert token not in str(caught.value)


def test_a_second_host_is_answered_while_the_first_is_served(started, host):
    host.hello()
    with TcpWorker(host.address) as second, pytest.raises(DeviceError, match="the worker is busy"):
        second.hello()
    assert host.hello()["factories"] is False
    assert host.restarts == 0, "it kept its connection"


def test_a_host_that_falls_silent_makes_room_for_the_next(monkeypatch):
    monkeypatch.setattr(listening, "SILENCE_SECONDS", 0.5)
    monkeypatch.setenv("AMPERE_WORKER_TOKEN", "a-token-of-the-tests")
    server = socket.create_server(("127.0.0.1", 0))
    where = TcpAddress(*server.getsockname())
    threading.Thread(target=listening.Listener(server, "a-token-of-the-tests", []).run, daemon=True).start()
    with where.connect(5.0) as silent, TcpWorker(where) as next_host:
        silent.sendall(lines({**HELLO, "token": "a-token-of-the-tests"}))
        silent.settimeout(60.0)
        while silent.recv(65536):
            pass
        monkeypatch.setattr(listening, "SILENCE_SECONDS", 60.0)  # the next one waits for a worker to start
        assert next_host.hello()["protocol"] == PROTOCOL


def test_code_is_run_only_of_modules_that_are_allowed():
    request = BlockRequest.from_json({"workload": {"factory": "my.models:build"}})
    check_allowed(request, None)
    check_allowed(request, ["my.models"])
    for allowed in ([], ["my"], ["my.models.inner"], ["my.models:build"]):
        with pytest.raises(WorkerError, match=r"--allow my\.models"):
            check_allowed(request, allowed)


def test_it_listens_on_loopback_unless_told_otherwise(started):
    assert started[1].startswith("tcp://127.0.0.1:")


def test_a_short_token_is_refused():
    environment = {**os.environ, "AMPERE_WORKER_TOKEN": "1234"}
    done = subprocess.run([*OURS.split(), "--listen", "0"], capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert done.stderr == "the token in AMPERE_WORKER_TOKEN is too short: give at least 16 characters\n"
