"""Another machine as a device, over a real OpenSSH server on loopback."""

import json
import os
import socket
import subprocess
import sys
import threading

import pytest
from tests.described import described
from tests.plugins import COUNTING, install_runtime
from tests.processes import run_command
from tests.sshd import left_behind, pull_the_cable, server, workers
from tests.synthetic import chain

from ampere.core import TrainingSetup
from ampere.core.errors import DeviceError, MeterError, RuntimeMissingError, UsageError
from ampere.devices import Device, VariantDied, VariantFailed
from ampere.devices.bundle import bootstrap_program
from ampere.devices.ssh import Address, SshWorker
from ampere.models import SPACES

QUICK = {"iterations": 2, "warmup": 1}
LAYERS = {"layers": chain(3, 4, 4, 8).to_json()}
COUNTED = TrainingSetup("counting")


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    with server(tmp_path_factory.mktemp("far")) as there:
        [site] = there.folder.glob("python/lib/python*/site-packages")
        install_runtime(site, "counting", COUNTING)
        yield there


def address(there, spec=None):
    return Address.parse((spec or there.spec).partition(":")[2])


def fake_python(there, name, line):
    path = there.folder / name
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return f"ssh://127.0.0.1:{there.port}?python={path}"


def test_it_trains_there_and_leaves_nothing(there):
    with SshWorker(address(there)) as device:
        assert device.block(LAYERS, **QUICK).ratio() > 0
        assert len(list(there.temporary.iterdir())) == 1
        assert device.block({"factory": SPACES["lenet5"].factory, "arguments": SPACES["lenet5"].default}).parameters
        with pytest.raises(VariantFailed, match=r"net\.py is a file of this machine and does not travel"):
            device.block({"factory": "/some/net.py:build"})
        assert device.restarts == 0
    assert left_behind(there, 0.0) == []


def test_the_workers_environment_is_set_there(there):
    with SshWorker(address(there), "tuned") as device:
        device.hello()
        (pid,) = [pid for pid in workers(there) if _environment(pid).get("OMP_NUM_THREADS")]
        environment = _environment(pid)
    assert environment["MALLOC_TOP_PAD_"] == "268435456"
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"
    assert environment["TMPDIR"].startswith(str(there.temporary))
    assert "PYTHONPATH" not in environment


def test_the_meter_is_chosen_there(there):
    with Device(there.spec, meter="battery") as device, pytest.raises(MeterError, match="battery"):
        _ = device.meter
    with Device(there.spec, meter="cpu-time") as device:
        assert device.meter.name == "cpu-time"
        assert isinstance(device.counters(), list)


def _environment(pid):
    with open(f"/proc/{pid}/environ") as file:
        return dict(entry.partition("=")[::2] for entry in file.read().split("\0") if entry)


def test_a_pulled_cable_is_plugged_in_again(there):
    with SshWorker(address(there)) as device:
        device.block(LAYERS, COUNTED, **QUICK)
        before = workers(there)
        threading.Timer(0.3, pull_the_cable, [there]).start()
        block = device.block(LAYERS, COUNTED, iterations=3000, warmup=1, seconds_limit=2.0)
        assert block.iterations > 1
        assert device.restarts == 1
        assert not set(before) & set(workers(there))
    assert left_behind(there) == []


def test_a_connection_lost_between_two_requests(there):
    with SshWorker(address(there)) as device:
        identity = device.identity()
        pull_the_cable(there)
        assert device.identity() == identity
    assert left_behind(there) == []


def test_a_killed_host_leaves_nothing(there):
    code = (
        "import sys, time; from ampere.devices.ssh import SshWorker; from ampere.devices.ssh import Address\n"
        f"device = SshWorker(Address.parse({there.spec.partition(':')[2]!r})); device.hello()\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert host.stdout.readline() == b"ready\n"
    assert workers(there)
    host.kill()
    host.communicate()
    assert left_behind(there) == []


def test_a_device_that_goes_down_with_a_variant_is_spared_it(there, monkeypatch):
    with SshWorker(address(there)) as device:
        device.hello()
        ending = threading.Event()

        def pull_again_and_again():
            while not ending.wait(0.02):
                if device._greeted:
                    pull_the_cable(there)

        monkeypatch.setattr("ampere.devices.remote.LOSSES_AT_MOST", 1)
        puller = threading.Thread(target=pull_again_and_again)
        puller.start()
        try:
            with pytest.raises(VariantDied, match="connection was lost"):
                device.block(LAYERS, COUNTED, iterations=3000, warmup=1, seconds_limit=5.0)
        finally:
            ending.set()
            puller.join()
    assert left_behind(there) == []


def test_a_device_that_stays_away_is_given_up(there, tmp_path, monkeypatch):
    with SshWorker(address(there)) as device:
        device.hello()
        device.reconnect_seconds = 0.5
        monkeypatch.setattr("ampere.devices.remote.PAUSE_SECONDS", 0.1)
        (there.folder / "authorized").rename(tmp_path / "authorized")
        pull_the_cable(there)
        try:
            with pytest.raises(DeviceError, match="refuses your key"):
                device.hello()
        finally:
            (tmp_path / "authorized").rename(there.folder / "authorized")
    assert left_behind(there) == []


def test_a_runtime_that_is_there_and_does_not_load_says_why(there):
    python = there.spec.partition("python=")[2]
    (there.folder / "shadow").mkdir()
    (there.folder / "shadow" / "torch.py").write_text("raise ImportError('half a torch')")
    shadowed = fake_python(there, "shadowed", f'PYTHONPATH={there.folder}/shadow exec {python} "$@"')
    with (
        SshWorker(address(there, shadowed)) as device,
        pytest.raises(RuntimeMissingError, match=r"PyTorch is not installed where the worker runs.*\(half a torch\)"),
    ):
        device.block(LAYERS, **QUICK)


def test_a_compiler_that_takes_too_long_is_reported_over_ssh_too(there):
    pytest.importorskip("jax", reason="JAX is not installed here")
    with SshWorker(address(there)) as device:
        device.compile_limit = 0.01
        with pytest.raises(VariantDied, match=r"longer than 0\.01 s.*--runtime torch"):
            device.block(LAYERS, TrainingSetup("jax"), **QUICK)


def test_why_it_cannot_be_used(there, tmp_path, monkeypatch):
    old = fake_python(there, "old", "echo Python 3.6.9 >&2; exit 91")
    full = fake_python(there, "full", f'TMPDIR={there.folder}/none exec {sys.executable} -c "exit(92)"')
    closed = f"ssh://127.0.0.1:{_closed_port()}"
    cases = {
        f"ssh://127.0.0.1:{there.port}?python=/no/such/python3": "there is no /no/such/python3 there; install one",
        old: r"is Python 3\.6\.9, and 3\.8 is the oldest that will do; install one",
        full: "no temporary folder can be written there",
        closed: "no ssh server answers there; start one",
        "ssh://no-such-machine.invalid": "no machine of that name is known; check the name",
        f"ssh://nobody-here@127.0.0.1:{there.port}": "it refuses your key; give it one",
        f"ssh://localhost:{there.port}": "its host key is unknown or has changed; connect once by hand: ssh -p",
    }
    for spec, said in cases.items():
        with pytest.raises(DeviceError, match=said) as caught:
            described(spec)
        assert "\n" not in str(caught.value)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DeviceError, match="install OpenSSH's client"):
        described("ssh://somewhere")


def _closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize(
    "spec",
    [
        "ssh://",
        "ssh:host",
        "ssh://-oProxyCommand=x",
        "ssh://-l@host",
        "ssh://a:secret@host",
        "ssh://host:99999",
        "ssh://host/path",
        "ssh://host?pyton=x",
        "ssh://ho st",
        "ssh://host:port",
    ],
)
def test_what_is_no_address(spec):
    with pytest.raises(UsageError, match="write ssh://user@host"):
        described(spec)


def test_addresses():
    assert Address.parse("//me@Board").destination == "me@Board"
    assert Address.parse("//[::1]:22").destination == "::1"
    command = Address.parse("//me@host:2222?python=~/a b/python3").command("pass", "{}")
    assert command[-4:-1] == ["2222", "--", "me@host"]
    assert command[-1] == "exec \"$HOME\"/'a b/python3' -B -c pass '{}'"


def test_a_command_for_windows_needs_no_shell_words(tmp_path):
    """Neither cmd nor PowerShell is here: what both would change is not in the line, and a shell here runs it."""
    python = tmp_path / "python.exe"
    python.symlink_to(sys.executable)
    order = {"folder": "a b", "sign": "%PATH% $HOME `x` 'q' & |"}
    program = "import json, sys\nprint(json.loads(sys.argv[1]), __name__)\n"
    line = Address.parse(f"//host?python={python}").command(program, json.dumps(order))[-1]
    assert subprocess.check_output(line, shell=True, text=True) == f"{order} __main__\n"
    whole = Address.parse("//host?python=C:\\Python311\\python.exe").command(bootstrap_program(), json.dumps(order))[-1]
    assert whole.startswith("C:\\Python311\\python.exe -B -c ")
    assert not set(whole) & set("\n%$`^&|<>!")
    assert whole.count('"') == 2
    assert len(whole) < 8191, "the longest line that cmd takes"


def test_the_python_can_be_named_once_for_all(monkeypatch):
    monkeypatch.setenv("AMPERE_REMOTE_PYTHON", "/opt/python")
    assert Address.parse("//host").python == "/opt/python"
    assert Address.parse("//host?python=python3.12").python == "python3.12"


def test_profile_and_estimate_from_the_command_line(there, tmp_path):
    def ampere(*words):
        environment = {**os.environ, "AMPERE_HOME": str(tmp_path)}
        done = run_command([*words, "--device", there.spec, "--json", "--quiet"], tmp_path, environment)
        assert done.code == 0, done.err
        return json.loads(done.out)

    ampere("profile", "lenet5", "--seconds", "5")
    (profile,) = (tmp_path / "profiles").glob("*.json")
    assert profile.name.startswith(described(there.spec).identity["id"])
    assert ampere("estimate", "lenet5", "--no-profiling")["joules_per_iteration"] > 0
    assert left_behind(there) == []


def test_a_refusal_on_the_command_line_is_one_line_with_its_exit_code():
    run = [sys.executable, "-m", "ampere", "devices", "--device", f"ssh://127.0.0.1:{_closed_port()}"]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 5
    assert len(done.stderr.strip().splitlines()) == 1
