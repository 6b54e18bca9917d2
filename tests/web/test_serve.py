"""`ampere serve` as a process, and the client that asks it."""

import os
import re
import socket
import time
from pathlib import Path

import pytest
from tests.processes import start_cold_command
from tests.synthetic import chain
from tests.web.serving import served

import ampere
from ampere.cli import main
from ampere.core.errors import DeviceError, UsageError
from ampere.storage.networks import save_network
from ampere.web.client import Client, RemoteEstimate

pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'ampere-energy[web]'")

ASKED = {"profile": "a-sgd"}


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    """A server of its own process: the process, and its address."""
    own = tmp_path_factory.mktemp("own") / "own.json"
    save_network(chain(3, 8, 16, 8).renamed("own"), own)
    with served(folder.parent, own, start=start_cold_command) as (process, address):
        yield process, address
        process.terminate()
        assert process.wait(20) in (0, -15, 130, 143)


@pytest.fixture(scope="module")
def client(server):
    with Client(server[1]) as client:
        yield client


def test_it_is_public():
    assert ampere.Client is Client


def test_the_client_has_the_servers_answers(client, answers):
    assert next(n["id"] for n in client.networks()) == "own"
    assert [d["title"] for d in client.devices()] == ["Board a", "Board b"]
    assert len(client.profiles()) == 4
    assert client.runs() == []
    found = client.estimate("cnn5", widths={"0": 8}, iterations=10, **ASKED)
    expected = answers.what_if({"network": "cnn5", "widths": {"0": 8}, "iterations": 10, **ASKED})
    assert isinstance(found, RemoteEstimate)
    assert found.joules == pytest.approx(expected["joules_per_iteration"])
    assert found.interval == pytest.approx(tuple(expected["joules_interval90"]))
    assert sum(layer.joules for layer in found.layers) == pytest.approx(found.joules)
    assert found.to_json()["run"]["iterations"] == 10


def test_many_rows_at_once(client):
    rows = [[width, 64, 128, 256] for width in range(1, 33)]
    joules, seconds = client.batch("cnn5", rows, **ASKED)
    assert len(joules) == len(seconds) == 32
    assert joules[31] == pytest.approx(client.estimate("cnn5", **ASKED).joules, rel=0.01)


def test_other_calls(client):
    assert client.compare(["cnn5", "lenet5"], profiles=["a-sgd"])["models"] == ["cnn5", "lenet5"]
    assert client.search("lenet5", candidates=100, **ASKED)["candidates"] == 101
    name = client.upload(chain(3, 9, 9, 9).renamed("sent"))
    assert client.estimate(name, **ASKED).network == "sent"


def test_a_refusal_is_the_error_of_the_local_call(client):
    with pytest.raises(UsageError, match="width 0 must be a whole number"):
        client.estimate("cnn5", widths={"0": -1}, **ASKED)
    with pytest.raises(ampere.AmpereError, match="there is no profile 'x'"):
        client.estimate("cnn5", profile="x")
    with pytest.raises(UsageError, match="65,535"):
        client.batch("cnn5", [[1, 2, 3, 70_000]], **ASKED)
    with pytest.raises(UsageError, match="no rows"):
        client.batch("cnn5", [], **ASKED)


def test_the_page_of_the_docs_runs_as_it_stands(server, capsys):
    page = Path(__file__).parents[2] / "docs" / "how-to" / "explorer.md"
    [code] = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = {}
    exec(code.replace("http://127.0.0.1:8765", server[1]), found)
    assert len(found["joules"]) == 2
    assert "J per iteration" in capsys.readouterr().out


def test_nobody_there_is_one_line():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}") as client, pytest.raises(DeviceError, match="start it with `ampere serve`"):
        client.profiles()
    with pytest.raises(UsageError, match="no address"):
        Client("127.0.0.1")


def test_the_server_has_no_torch(server):
    maps = f"/proc/{server[0].pid}/maps"
    if not os.path.exists(maps):  # noqa: PTH110 - a file that stays open only as long as the process
        pytest.skip("no /proc here")
    with open(maps) as file:
        assert "libtorch" not in file.read()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--host", "0.0.0.0", "--unencrypted"], 2, "say under which"),
        (["--host", "192.0.2.1"], 2, "--unencrypted"),
        (["--certificate", "x.pem"], 2, "belong together"),
        (["nowhere.json"], 4, "nowhere.json"),
        (["--port", "-1"], 2, "--port"),
        (["--port", "70000"], 2, "is no port"),
    ],
)
def test_bad_input_is_one_line(words, code, said, capsys):
    assert main(["serve", "--no-browser", *words]) == code
    err = capsys.readouterr().err.strip()
    assert said in err
    assert len(err.splitlines()) == 1


def test_missing_packages_are_named(monkeypatch, capsys):
    monkeypatch.setattr("ampere.web.server.find_spec", lambda name: None)
    assert main(["serve", "--no-browser"]) == 6
    assert "pip install 'ampere-energy[web]'" in capsys.readouterr().err


def test_a_port_in_use_is_one_line(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", "--no-browser", "--port", str(taken.getsockname()[1])]) == DeviceError.exit_code
    assert "choose another --port" in capsys.readouterr().err


def test_a_short_token_is_refused(monkeypatch, capsys):
    monkeypatch.setenv("AMPERE_SERVE_TOKEN", "short")
    assert main(["serve", "--no-browser", "--host", "192.0.2.1", "--unencrypted"]) == 2
    assert "choose a longer one" in capsys.readouterr().err


def test_a_profile_that_changes_is_announced(server, folder):
    """Server-sent events: what a page that is open waits for."""
    address = server[1].removeprefix("http://").rstrip("/")
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        seen = b""
        while b"event: hello" not in seen:
            seen += connection.recv(4096)
        os.utime(folder / "b-sgd.json", (time.time(), time.time()))
        while b"b-sgd" not in seen:
            seen += connection.recv(4096)
        assert b"event: changed" in seen
