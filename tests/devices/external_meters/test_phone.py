"""A phone's battery over adb: adbutils and a worker are real, the adb server and its phone are imitated."""

import json
import socketserver
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.adb_server import SERIAL
from tests.rounds import median_off
from tests.synthetic import chain

from ampere.core.errors import MeterError, UsageError
from ampere.devices import Device, LocalWorker
from ampere.devices.external_meters import phone as meter
from ampere.devices.external_meters.bench import _opened
from ampere.devices.external_meters.phone import Phone, PhoneMeter, phones_found
from ampere.devices.process_worker import WorkerOptions

pytest.importorskip("adbutils")
SERVER = Path(__file__).parents[2] / "adb_server.py"
LAYERS = {"layers": chain(3, 4, 4, 8).to_json()}


@pytest.fixture(name="phone")
def an_imitated_phone(tmp_path, monkeypatch):
    """Sets what the phone reports from now on."""
    path = tmp_path / "state.json"

    def does(**state):
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(state))
        fresh.replace(path)

    does()
    with subprocess.Popen([sys.executable, SERVER, path], stdout=subprocess.PIPE, text=True) as server:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", server.stdout.readline().strip())
        yield does
        server.kill()


@pytest.mark.parametrize("unit", [1e6, 1e3])
def test_watts_are_current_times_voltage(phone, unit):
    phone(idle=2.5, unit=unit)
    assert Phone().watts() == pytest.approx(2.5, rel=0.01)
    assert Phone(SERIAL).watts() == pytest.approx(2.5, rel=0.01)


REFUSALS = {
    "charged \\(USB\\)": {"usb": "true", "status": 2},
    "is full, not discharging": {"status": 5},
    "set by hand": {"stopped": "\n  (UPDATES STOPPED -- use 'reset' to restart)"},
    "does not report its battery's current": {"sysfs": False},
    "allow this computer": {"state": "unauthorized"},
}


@pytest.mark.parametrize("words", REFUSALS)
def test_a_reading_that_means_nothing_is_refused(phone, words):
    phone(**REFUSALS[words])
    with pytest.raises(MeterError, match=words):
        PhoneMeter(SERIAL)
    assert phones_found()[0]["problem"]


def test_no_phone_and_no_server(phone, monkeypatch):
    with pytest.raises(MeterError, match=f"adb sees {SERIAL}: connect one"):
        Phone("another")
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", "9")
    assert phones_found() == []


class Rubbish(socketserver.StreamRequestHandler):
    def handle(self):
        self.rfile.read(4)
        self.wfile.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_server_that_talks_rubbish_is_one_row_of_the_list(monkeypatch):
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Rubbish) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(server.server_address[1]))
        with Device() as device:
            found = device.counters()[-1]
        server.shutdown()
    assert (found["name"], found["check"]) == ("adb", None)
    assert "adb does not answer" in found["problem"]


def test_a_phone_is_listed(phone):
    (found,) = phones_found()
    assert found["name"] == f"adb:{SERIAL}"
    assert "the whole phone" in found["scope"]
    assert found["problem"] is None


def test_it_is_no_meter_of_this_machine(phone):
    with pytest.raises(UsageError, match="train on the phone too"):
        _ = Device(meter="adb").meter


@pytest.fixture(name="device")
def a_worker_that_the_phone_follows(phone, monkeypatch):
    monkeypatch.setattr(meter, "EVERY_SECONDS", 0.05)
    _opened.cache_clear()
    with LocalWorker(options=WorkerOptions("adb")) as device:
        assert device.hello()["meter"]["name"] == "adb"
        phone(pid=device.worker_pid)
        yield device
    _opened.cache_clear()


@pytest.mark.alone
def test_joules_are_those_of_the_worker(device):
    def off(read):
        return read.joules / (3.0 * read.busy_seconds + 1.0 * read.wall_seconds) - 1

    def off_in_a_block():
        block = device.block(LAYERS, iterations=3, warmup=2, power=True)
        assert all(window.joules is None for window in block.yardstick)
        return off(block)

    assert median_off(0.15, off_in_a_block) <= 0.15
    assert median_off(0.2, lambda: off(device.yardstick(0.2, power=True))) <= 0.2


def test_a_charger_that_is_plugged_in_stops_the_run_until_it_is_out(phone, device):
    device.block(LAYERS, iterations=3, warmup=2, power=True)
    phone(usb="true", status=2)
    time.sleep(0.3)
    with pytest.raises(MeterError, match="charged"):
        device.block(LAYERS, iterations=3, warmup=2, power=True)
    phone(pid=device.worker_pid)
    assert device.block(LAYERS, iterations=3, warmup=2, power=True).joules > 0
