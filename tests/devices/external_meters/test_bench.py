"""A bench meter beside a real worker: its clock is another one that runs fast; they share nothing but the load."""

import threading
import time

import pytest
from tests.adb_server import cpu_seconds
from tests.synthetic import chain

from ampere.core.errors import MeterError
from ampere.devices import LocalWorker
from ampere.devices.external_meters.bench import _opened
from ampere.devices.process_worker import WorkerOptions

pytestmark = pytest.mark.alone
IDLE, BUSY = 2.0, 20.0
EVERY = 0.01
LAYERS = {"layers": chain(3, 4, 4, 8).to_json()}


class Bench(threading.Thread):
    """Writes what a device draws that is idle but for one process: IDLE, and BUSY more for its CPU seconds."""

    def __init__(self, path, offset=1e6, rate=1.005, interval=EVERY, hold=0.0):
        super().__init__(daemon=True)
        self.path, self.offset, self.rate, self.interval, self.hold = path, offset, rate, interval, hold
        self.pid, self.done, self.deaf = None, threading.Event(), False
        path.write_text("stamp;mW\n")

    def run(self):
        wall, cpu, kept = time.perf_counter(), cpu_seconds(self.pid), []
        while not self.done.wait(self.interval):
            now, work = time.perf_counter(), cpu_seconds(self.pid)
            watts = IDLE + (0.0 if self.deaf else BUSY * max(0.0, work - cpu) / (now - wall))
            kept.append(f"{self.offset + self.rate * now:.6f};{1000 * watts:.3f}\n")
            if len(kept) * self.interval >= self.hold:  # as programs do that write in pieces
                with open(self.path, "a") as file:
                    file.write("".join(kept))
                kept = []
            wall, cpu = now, work


@pytest.fixture(name="bench")
def a_bench(tmp_path):
    bench = Bench(tmp_path / "bench.csv", hold=0.2)
    bench.start()
    _opened.cache_clear()
    yield bench
    bench.done.set()
    bench.join()
    _opened.cache_clear()


@pytest.fixture(name="device")
def a_device_on_the_bench(bench):
    with LocalWorker(options=WorkerOptions(f"log:{bench.path},time=stamp,power=mW:mW")) as device:
        assert device.hello()["meter"]["name"] == "log"
        bench.pid = device.worker_pid
        yield device


def test_joules_are_those_of_the_block_until_the_recording_ends(device, bench, monkeypatch):
    meter = device.hello()["meter"]
    assert meter["measured"] is True
    assert meter["update_seconds"] == pytest.approx(EVERY * bench.rate, rel=0.5)
    assert meter["window_seconds"] == pytest.approx(60 * meter["update_seconds"])
    block = device.block(LAYERS, iterations=3, warmup=2)
    expected = BUSY * block.busy_seconds + IDLE * block.wall_seconds
    assert block.joules == pytest.approx(expected, rel=0.1)
    expected = sum(BUSY * w.busy_seconds + IDLE * w.wall_seconds for w in block.yardstick)
    assert sum(w.joules for w in block.yardstick) == pytest.approx(expected, rel=0.2)
    alone = device.yardstick(0.2)
    assert alone.joules == pytest.approx(BUSY * alone.busy_seconds + IDLE * alone.wall_seconds, rel=0.15)
    assert alone.watts_idle == pytest.approx(IDLE, rel=0.3)
    bench.done.set()
    monkeypatch.setattr("ampere.devices.external_meters.bench.PATIENCE_SECONDS", 0.3)
    with pytest.raises(MeterError, match="stopped growing"):
        device.yardstick(0.1)


def test_a_meter_of_another_device_is_refused(device, bench, monkeypatch):
    bench.deaf = True
    monkeypatch.setattr("ampere.devices.external_meters.bench.PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr("ampere.devices.external_meters.bench.LEAST_PART_SECONDS", 0.1)
    assert device.yardstick(0.1, count=False).joules is None  # needs no meter
    with pytest.raises(MeterError, match="the load of the device does not show in"):
        device.block(LAYERS, iterations=3, warmup=2)
