"""A device that dies, hangs or lies: noticed within three signs of life, done again, and nothing impossible is kept."""

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.listening import WARM_OURS, listening
from tests.processes import STARTED
from tests.rounds import least
from tests.sshd import descendants, left_behind, server, workers

from ampere.core import Layer, Measurement, Meter, Network, TrainingSetup
from ampere.core.measurement import Window
from ampere.devices import LocalWorker, VariantFailed
from ampere.devices.answers import MOST_WATTS, impossible
from ampere.devices.ssh import Address, SshWorker
from ampere.devices.tcp import TcpAddress, TcpWorker
from ampere.devices.transport import MISSED_BEATS
from ampere.profiling.experiment import of_layers
from ampere.profiling.strategies.strategy import MeasurementContext

pytestmark = pytest.mark.fault(21)

MUTANT = Path(__file__).parents[1] / "conformance" / "mutant.py"
LAYER = Layer("linear", {"lead": (8,), "bias": True}, 16, 8)
LAYERS = {"layers": Network((LAYER,), 8).to_json()}
LONG = {"iterations": 100_000, "warmup": 1, "seconds_limit": 1.0}
BEAT = 0.8
SLACK = 1.5  # seconds: a worker is ended, and the machine may be busy
NOTICED = MISSED_BEATS * BEAT + SLACK


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
    noticed, kill, before = [], device._worker.kill, device.restarts

    def stop():
        noticed.append(time.monotonic())
        os.kill(pid_of(), signal.SIGSTOP)

    device._worker.kill = lambda: (noticed.append(time.monotonic()), kill())
    threading.Timer(0.3, stop).start()
    assert device.block(LAYERS, **LONG).iterations >= 1
    assert device.restarts == before + 1
    return noticed[1] - noticed[0]


@pytest.mark.measured
def test_a_hanging_worker_is_noticed_within_three_beats():
    with LocalWorker() as device:
        seconds = least(NOTICED, lambda: stopped_while_it_trains(device, lambda: device.worker_pid))
    assert seconds < NOTICED


def worker_of(there):
    """What answers the host, which forks what trains."""
    found = workers(there)
    return next(pid for pid in found if max(found) in descendants(pid)[:1])


@pytest.mark.measured
def test_a_hanging_worker_over_ssh(tmp_path):
    with server(tmp_path) as there:
        with SshWorker(Address.parse(there.spec.partition(":")[2])) as device:
            seconds = least(NOTICED, lambda: stopped_while_it_trains(device, lambda: worker_of(there)))
        assert seconds < NOTICED
        assert left_behind(there) == []


@pytest.mark.skipif(os.name != "posix", reason="looks up what the warm process started")
def test_a_dead_worker_over_tcp_is_done_again(tmp_path, monkeypatch):
    monkeypatch.setenv(STARTED, str(tmp_path / "started"))
    with listening(WARM_OURS) as address, TcpWorker(TcpAddress.parse(address.partition(":")[2])) as device:
        device.block(LAYERS, iterations=2, warmup=1)
        pid = int((tmp_path / "started").read_text().split()[-1])
        threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
        assert device.block(LAYERS, **LONG).iterations >= 1
        assert device.restarts == 1


@pytest.mark.measured
def test_a_long_block_with_signs_of_life_is_no_hanging_one():
    with LocalWorker() as device:
        device.beat_seconds = 0.5
        device.block(LAYERS, iterations=2, warmup=1)
        longer = {**LONG, "seconds_limit": 2.0}

        def restarts():
            before = device.restarts
            assert device.block(LAYERS, **longer).elapsed_seconds > MISSED_BEATS * device.beat_seconds
            return device.restarts - before

        assert least(1, restarts) == 0  # a machine that stands still for three beats looks like a hanging worker


def test_a_lie_is_asked_about_once_more_and_then_left_out():
    with Liar() as device:
        with pytest.raises(VariantFailed, match=r"impossible values 2 times \(\S+ J in \S+ s\); they were discarded"):
            device.block(LAYERS, iterations=2, warmup=1)
        assert device.hello()["protocol"] == 3


def test_no_lie_reaches_what_is_recorded(monkeypatch):
    monkeypatch.setattr(Liar, "habit", "lies-sometimes")  # every fourth time
    recorded = []
    with Liar() as device:
        meter, nominal = Meter(**device.hello()["meter"]), device.yardstick(0.1).busy_seconds
        bench = MeasurementContext(None, {"tuned": device}, TrainingSetup(), meter, nominal, recorded.append)
        for _ in range(9):
            bench.observe(of_layers([LAYER], 8), 1e-3)
        assert device.restarts == 0
    assert len(recorded) == 9
    kept = [observation.measurement for observation in recorded]
    assert all(m.joules == pytest.approx(5.0 * m.busy_seconds, rel=0.2) for m in kept)
    assert all(0 < m.joules < MOST_WATTS * m.wall_seconds for m in kept)


WINDOW = Window(10, 0.01, 0.01, 0.05)
TRUE = Measurement((WINDOW,), (WINDOW, WINDOW), Meter("cpu-time", False), elapsed_seconds=0.05)


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ({"joules": -1e-3}, "-0.001 J in"),
        ({"joules": float("inf")}, "inf J in"),
        ({"joules": float("nan")}, "nan J in"),
        ({"joules": 0.0}, "0 J in 10 iterations"),
        ({"joules": 1e3}, "1000 J in 0.01 s"),
        ({"wall_seconds": 0.0}, "10 iterations in 0 s"),
        ({"wall_seconds": float("nan")}, "10 iterations in nan s"),
        ({"iterations": 0}, "0 iterations"),
        ({"busy_seconds": 1.0, "joules": 5.0}, "1 CPU seconds in 0.01 s on 2 cores"),
        ({"busy_seconds": -1.0}, "-1 CPU seconds"),
        ({"wall_seconds": 50.0}, "50.02 s of work while the host waited 0.06 s"),
        ({"page_faults": -1}, "-1 page faults"),
    ],
)
def test_what_cannot_be_is_named(lie, said):
    assert impossible(TRUE, 2, 0.06) is None
    assert said in impossible(replace(TRUE, target=(WINDOW._replace(**lie),)), 2, 0.06)


def test_a_yardstick_that_cannot_be_is_named():
    assert "0.01 s" in impossible(replace(TRUE, yardstick=(WINDOW, WINDOW._replace(joules=1e9))), 2, 0.06)
    assert "windows of the yardstick" in impossible(replace(TRUE, yardstick=(WINDOW,)), 2, 0.06)


def test_a_block_that_took_longer_than_the_host_waited_is_named():
    assert "50 s of work" in impossible(replace(TRUE, elapsed_seconds=50.0), 2, 0.06)
    assert "without a window" in impossible(replace(TRUE, target=()), 2, 0.06)


def test_a_plain_loop_has_no_yardstick():
    assert impossible(replace(TRUE, yardstick=()), 2, 0.06) is None
