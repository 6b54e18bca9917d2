"""A lying or broken worker: every lie ends in one clear error, soon, and nothing of it is used or kept in memory."""

import subprocess
import sys
import time

import pytest

from ampere.cli import main
from ampere.core.errors import AmpereError, DeviceError
from ampere.core.protocol import MOST_LINE_BYTES
from ampere.devices import VariantFailed, process_worker, remote
from ampere.devices.conformance.lying import LIES, LyingWorker
from ampere.devices.process_worker import ProcessWorker
from ampere.devices.tcp import TcpAddress, TcpWorker
from ampere.devices.transport import WorkerProcess

pytestmark = pytest.mark.fault(23)

WORKLOAD = {"layers": {"batch": 1, "layers": []}}
SECONDS = 6.0  # in which every lie must have ended


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(process_worker, "START_SECONDS", 0.5)
    monkeypatch.setattr(remote, "PAUSE_SECONDS", 0.05)
    monkeypatch.setattr(TcpWorker, "reconnect_seconds", 0.5)


def device_at(address):
    found = TcpWorker(TcpAddress.parse(address.partition(":")[2]))
    found._grace = 0.3
    return found


def use(device):
    device.identity()
    device.counters(False)
    device.yardstick(0.02)
    device.block(WORKLOAD, iterations=2, warmup=1, seconds_limit=0.1)
    device.hello()


def error_of(device):
    with pytest.raises(AmpereError) as caught:
        use(device)
    return caught.value


@pytest.mark.measured
@pytest.mark.parametrize("name", LIES)
def test_every_lie_ends_in_one_clear_error_soon(name):
    began = time.monotonic()
    with LyingWorker(name) as liar, device_at(liar.address) as device:
        error = error_of(device)
    assert time.monotonic() - began < SECONDS
    assert error.exit_code in (3, 5)
    assert str(error).isprintable()
    assert len(str(error)) < 700


def test_an_honest_one_of_the_same_make_is_used(monkeypatch, record_property):
    monkeypatch.setitem(LIES, "nothing", LIES["joules-text"]._replace(to="never"))
    with LyingWorker("nothing") as honest, device_at(honest.address) as device:
        use(device)
    record_property("figure", f"{len(LIES) - 1} lies, each one clear error within {SECONDS:g} s")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("joules-text", "joules of a window of target is '5', not null or a number from 0"),
        ("yardstick-hot", "joules is 1e+200, not null or a number from 0"),
        ("yardstick-negative", "busy_seconds is -1.0, not a number from 0"),
        ("beat-rare", "beat_seconds is 1000000000.0, not null or a number from 0.05 to 3600"),
        ("meter-missing", "meter is None, not an object"),
        ("version-old", "the worker speaks protocol 2, this program 3: update the worker"),
        ("version-new", "the worker speaks protocol 99, this program 3: update Ampere on the host"),
        ("twice", "sent an answer with the id 1"),
        ("endless-line", f"it sent a line of more than {MOST_LINE_BYTES} bytes"),
    ],
)
def test_the_lie_is_named(name, said):
    with LyingWorker(name) as liar, device_at(liar.address) as device:
        assert said in str(error_of(device))


def test_impossible_blocks_are_left_out_by_name_and_after_three_the_worker_is_given_up():
    with LyingWorker("joules-text") as liar, device_at(liar.address) as device:
        for error in (VariantFailed, VariantFailed, DeviceError):
            with pytest.raises(error, match="impossible values 2 times"):
                device.block(WORKLOAD, iterations=2, warmup=1, seconds_limit=0.1)
        assert device.restarts == 0


class PipeWorker(ProcessWorker):
    """A lying worker over a pipe."""

    def __init__(self, name):
        super().__init__(grace_seconds=0.3)
        self._name = name

    def _launched(self):
        command = [sys.executable, "-m", "ampere.devices.conformance.lying", self._name]
        return WorkerProcess(command, {})

    def _by_hand(self):
        return "nothing"


def test_over_a_pipe_too(monkeypatch):
    monkeypatch.setattr(process_worker, "START_SECONDS", 10.0)
    with PipeWorker("endless-object") as device, pytest.raises(DeviceError, match="a line of more than"):
        use(device)


@pytest.mark.parametrize("name", ["meter-missing", "cpu-escapes", "id-wrong", "deep"])
def test_the_command_line_shows_one_line(name, capsys):
    with LyingWorker(name) as liar:
        assert main(["devices", "--device", liar.address]) == 5
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert said.err.startswith("ampere: ")


HOST = """
import resource, sys
from ampere.core.errors import AmpereError
from tests.faults.test_lying_worker import device_at, use

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

before = peak()
for address in sys.argv[1:]:
    try:
        with device_at(address) as device:
            use(device)
    except AmpereError:
        continue
print(peak() - before)
"""
LARGE = ("endless-line", "endless-object", "flood-of-text", "flood-of-answers", "target-huge", "deep", "digits")


def test_the_memory_of_the_host_is_bounded(record_property):
    liars = [LyingWorker(name) for name in LARGE]
    done = subprocess.run(
        [sys.executable, "-c", HOST, *(liar.address for liar in liars)], capture_output=True, text=True, check=True
    )
    for liar in liars:
        liar.close()
    assert float(done.stdout) < 100
    assert max(liar.bytes_sent for liar in liars) < 64 * 2**20
    record_property("figure", f"endless lines and floods: the host grows by {float(done.stdout):.0f} MB")
