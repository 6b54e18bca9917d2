"""A worker behind a port as a device: ours, and one in JavaScript that trains a perceptron."""

import shutil
import socket
import subprocess
import threading
import time

import pytest
from tests.described import described
from tests.listening import NODE, OURS, WARM_OURS, listening

from ampere import Profile, TrainingSetup
from ampere.cli import main
from ampere.core.errors import DeviceError, UsageError
from ampere.devices import Device, VariantDied
from ampere.devices.tcp import TcpAddress, TcpWorker

LAYER = {"kind": "linear", "config": {"lead": [32], "bias": True}, "channels": [16, 8], "trailing": []}
LAYERS = {"layers": {"batch": 32, "layers": [{**LAYER, "trainable": True, "input_grad": False}]}}
QUICK = {"iterations": 2, "warmup": 1}
MLP = """
import torch
from torch import nn

def build(batch=32, width=64):
    return nn.Sequential(nn.Linear(48, width), nn.ReLU(), nn.Linear(width, 10)), torch.randn(batch, 48)
"""

needs_node = pytest.mark.skipif(not shutil.which("node"), reason="Node.js is not installed here (nodejs)")


def device(address, **more):
    return TcpWorker(TcpAddress.parse(address.partition(":")[2]), **more)


def test_one_host_after_another():
    with listening(WARM_OURS) as address:
        for _ in range(2):
            with device(address) as there:
                assert there.block(LAYERS, **QUICK).parameters == 136
                assert there.identity()["allocators"] == ["tuned"]
                assert there.restarts == 0


def test_a_lost_connection_is_made_again():
    with listening(WARM_OURS) as address, device(address) as there:
        identity = there.identity()
        there._worker._socket.shutdown(socket.SHUT_RDWR)
        time.sleep(0.1)
        assert there.identity() == identity
        threading.Timer(0.4, lambda: there._worker._socket.shutdown(socket.SHUT_RDWR)).start()
        assert there.block(LAYERS, iterations=100_000, warmup=1, seconds_limit=1.5).iterations > 1
        assert there.restarts == 2


def test_a_compiler_that_takes_too_long_is_reported_and_the_next_variant_is_trained():
    pytest.importorskip("jax", reason="JAX is not installed here")
    jax = TrainingSetup("jax")
    with listening(WARM_OURS) as address, device(address) as there:
        usual, there.compile_limit = there.compile_limit, 0.01
        with pytest.raises(VariantDied, match=r"longer than 0\.01 s"):
            there.block(LAYERS, jax, **QUICK)
        there.compile_limit = usual
        assert there.block(LAYERS, jax, **QUICK).parameters == 136
        assert there.restarts == 1


def test_a_worker_that_is_not_there_is_one_line():
    with pytest.raises(DeviceError, match=r"no worker answers at tcp://127\.0\.0\.1:1 \(.*refused.*\); start one"):
        described("tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    "spec", ["tcp://host", "tcp:host:1", "tcp://host:0", "tcp://host:99999", "tcp://a b:1", "tcp://user@host:1"]
)
def test_what_is_no_address(spec):
    with pytest.raises(UsageError, match=r"writ\w+ tcp://host:port"):
        described(spec)


def test_addresses():
    assert str(TcpAddress.parse("//[::1]:7070")) == "tcp://[::1]:7070"
    assert TcpAddress.parse("//board:7070") == TcpAddress("board", 7070)


@pytest.mark.parametrize("words", [["--listen"], ["--listen", "many"], ["--listen", "1", "2"], ["--port", "1"]])
def test_listening_where_nobody_can(words):
    done = subprocess.run([*OURS.split(), *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: ")


def test_a_port_that_is_taken_is_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run([*OURS.split(), "--listen", port], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"cannot listen on 127.0.0.1:{port} (")
    assert done.stderr.endswith("): choose another port\n")


@needs_node
def test_a_worker_of_others_is_not_taken_for_ours():
    with listening(NODE) as address, Device() as here, Device(address) as there:
        assert there.identity["id"] != here.identity["id"]
        assert there.setup().runtime == "perceptron"
        assert there.setup(threads=2) == TrainingSetup("perceptron", threads=2)
        assert here.setup().runtime == "torch"
        with pytest.raises(DeviceError, match='runtime is "torch"'):
            there.worker().block(LAYERS, TrainingSetup(), **QUICK)


@needs_node
def test_a_model_is_profiled_and_estimated_through_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mlp.py").write_text(MLP)
    with listening(NODE) as address:
        words = ["mlp.py:build", "--device", address, "--quiet"]
        assert main(["profile", *words, "--seconds", "4"]) == 0
        [path] = (tmp_path / "home" / "profiles").glob("*.json")
        profile = Profile.load(path)
        assert profile.setup.runtime == "perceptron"
        assert {layer.kind for o in profile.observations for layer in o.network.layers} == {"linear"}
        assert len(profile.observations) > 4
        assert main(["estimate", *words, "--no-profiling"]) == 0
        assert "modelled" in capsys.readouterr().out
        for named in ("torch", "jax"):
            assert main(["profile", *words, "--runtime", named]) == 2
            assert f"trains with perceptron, not with {named}: leave out --runtime" in capsys.readouterr().err
        assert main(["profile", "cnn5", "--device", address, "--quiet"]) == 3
        assert "perceptron cannot build" in capsys.readouterr().err
