"""A device that dies, hangs or lies: noticed within three signs of life, done again, and nothing impossible is kept."""

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.listening import OURS, listening
from tests.sshd import command_of, descendants, left_behind, server, workers

from ampere.core import Layer, Meter, Network, TrainingSetup
from ampere.devices import Block, LocalWorker, VariantFailed
from ampere.devices.answers import MOST_WATTS, impossible
from ampere.devices.ssh import Address, SshWorker
from ampere.devices.tcp import TcpAddress, TcpWorker
from ampere.devices.transport import MISSED_BEATS
from ampere.profiling.experiment import of_layers
from ampere.profiling.strategies.strategy import MeasurementContext

MUTANT = Path(__file__).parents[1] / "conformance" / "mutant.py"
LAYER = Layer("linear", {"lead": (8,), "bias": True}, 16, 8)
LAYERS = {"layers": Network((LAYER,), 8).to_json()}
LONG = {"iterations": 100_000, "warmup": 1, "seconds_limit": 1.0}
BEAT = 0.8
SLACK = 1.5  # seconds: a worker is ended, and the machine may be busy


class Liar(LocalWorker):
    """This machine with a worker that has a bad habit."""

    habit = "too-hot"

    def __init__(self, *given, **named):
        super().__init__(*given, **named)
        self._command = (sys.executable, str(MUTANT), self.habit, "ours")


def stopped_while_it_trains(device, pid_of):
    """Seconds until that was noticed; the block is then done again."""
    device.beat_seconds = BEAT
    device.block(LAYERS, iterations=2, warmup=1)
    noticed, kill = [], device._worker.kill

    def stop():
        noticed.append(time.monotonic())
        os.kill(pid_of(), signal.SIGSTOP)

    device._worker.kill = lambda: (noticed.append(time.monotonic()), kill())
    threading.Timer(0.3, stop).start()
    assert device.block(LAYERS, **LONG).iterations >= 1
    assert device.restarts == 1
    return noticed[1] - noticed[0]


@pytest.mark.alone
def test_a_hanging_worker_is_noticed_within_three_beats():
    with LocalWorker() as device:
        assert stopped_while_it_trains(device, lambda: device.worker_pid) < MISSED_BEATS * BEAT + SLACK


@pytest.mark.alone
def test_a_hanging_worker_over_ssh(tmp_path):
    with server(tmp_path) as there:
        with SshWorker(Address.parse(there.spec.partition(":")[2])) as device:
            seconds = stopped_while_it_trains(device, lambda: max(workers(there)))
        assert seconds < MISSED_BEATS * BEAT + SLACK
        assert left_behind(there) == []


def test_a_dead_worker_over_tcp_is_done_again():
    before = descendants(os.getpid())
    with listening(OURS) as address, TcpWorker(TcpAddress.parse(address.partition(":")[2])) as device:
        device.block(LAYERS, iterations=2, warmup=1)
        [pid] = [p for p in descendants(os.getpid()) if p not in before and "--listen" not in command_of(p)]
        threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
        assert device.block(LAYERS, **LONG).iterations >= 1
        assert device.restarts == 1


@pytest.mark.alone
def test_a_long_block_with_signs_of_life_is_no_hanging_one():
    with LocalWorker() as device:
        device.beat_seconds = 0.5
        device.block(LAYERS, iterations=2, warmup=1)
        longer = {**LONG, "seconds_limit": 2.0}
        assert device.block(LAYERS, **longer).elapsed > MISSED_BEATS * device.beat_seconds
        assert device.restarts == 0


def test_a_lie_is_asked_about_once_more_and_then_left_out():
    with Liar() as device:
        with pytest.raises(VariantFailed, match=r"told what cannot be, 2 times: \S+ J in \S+ s; nothing of it is kept"):
            device.block(LAYERS, iterations=2, warmup=1)
        assert device.hello()["protocol"] == 1


def test_no_lie_reaches_what_is_recorded(monkeypatch):
    monkeypatch.setattr(Liar, "habit", "lies-sometimes")  # every fourth time
    recorded = []
    with Liar() as device:
        meter, nominal = Meter(**device.hello()["meter"]), device.yardstick(0.1).cpu_seconds
        bench = MeasurementContext(None, {"tuned": device}, TrainingSetup(), meter, nominal, recorded.append)
        for _ in range(9):
            bench.observe(of_layers([LAYER], 8), 1e-3)
        assert device.restarts == 0
    assert len(recorded) == 9
    kept = [observation.measurement for observation in recorded]
    assert all(m.joules == pytest.approx(5.0 * m.cpu_seconds, rel=0.2) for m in kept)
    assert all(0 < m.joules < MOST_WATTS * m.seconds for m in kept)


TRUE = Block(
    ratio=0.5,
    spread=0.02,
    seconds=1e-3,
    cpu_seconds=1e-3,
    yardstick_seconds=2e-3,
    joules=5e-3,
    iterations=10,
    page_faults=0.0,
    parameters=100,
    loss=(1.0, 0.9),
    elapsed=0.05,
    conditions={},
    flags=(),
)


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ({"joules": -1e-3}, "joules is -0.001"),
        ({"joules": float("inf")}, "joules is inf"),
        ({"joules": 0.0}, "0 J in"),
        ({"joules": 1e3}, "1000 J in 0.001 s"),
        ({"seconds": 0.0}, "iterations of 0 s"),
        ({"iterations": 0}, "0 iterations"),
        ({"cpu_seconds": 1.0, "joules": 5.0}, "1 CPU seconds in 0.001 s on 2 cores"),
        ({"elapsed": 50.0}, "50 s of work while the host waited 0.06 s"),
        ({"iterations": 10_000}, "10000 iterations of 0.001 s while the host waited"),
        ({"ratio": 50.0}, "a ratio of 50 where the seconds say 0.5"),
        ({"ratio": float("nan")}, "ratio is nan"),
        ({"yardstick_seconds": -2e-3}, "yardstick_seconds is -0.002"),
    ],
)
def test_what_cannot_be_is_named(lie, said):
    assert impossible(TRUE, 2, 0.06) is None
    assert said in impossible(replace(TRUE, **lie), 2, 0.06)


def test_a_plain_loop_has_no_ratio_to_agree_with():
    assert impossible(replace(TRUE, ratio=None, spread=None, yardstick_seconds=None), 2, 0.06) is None
