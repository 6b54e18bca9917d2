"""From a name to a device: opened once, described once, closed at the end."""

import os

import pytest
from tests.synthetic import chain

from ampere.core import Meter, TrainingSetup
from ampere.core.errors import MeterError, ProfileError, UsageError
from ampere.devices import Device, allocator_on, check_same_meter
from ampere.devices.opening import DEVICE_TYPES
from ampere.devices.process_worker import ProcessWorker


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("simulated:xaver", "did you mean simulated:xavier"),
        ("simulated:phone_ios", "did you mean simulated:phone-ios"),
        ("simulated:phone", "did you mean simulated:phone-ios or simulated:phone-android"),
        ("simulated:", "the devices are simulated:xavier, simulated:tx2, simulated:phone-android"),
        ("simulated:pixel9000", "the devices are simulated:xavier, simulated:tx2, simulated:phone-android"),
        ("lokal", "did you mean local"),
        ("local:", "did you mean local"),
        ("local:5", "did you mean local"),
        ("toaster", "the devices are local, simulated:xavier"),
        ("", "the devices are local"),
    ],
)
def test_an_unknown_name_gets_the_nearest(spec, hint):
    with pytest.raises(UsageError, match=hint):
        _ = Device(spec).identity


def test_a_recording_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ProfileError, match="does not exist"):
        _ = Device(f"replayed:{tmp_path / 'none.json'}").identity


def test_a_device_with_one_allocator_is_asked_for_that_one():
    assert allocator_on({"id": "real"}, "system") == "system"
    assert allocator_on({"id": "simulated-tx2", "allocators": ["tuned"]}, "system") == "tuned"
    assert Device("simulated:tx2").allocator("system") == "tuned"


def test_the_meter_of_a_profile_is_named_as_it_must_be_asked_for():
    with Device(meter="cpu-time") as device:
        with pytest.raises(MeterError, match="set AMPERE_METER=log:FILE,time=COLUMN,power=COLUMN, or"):
            check_same_meter(device, Meter("log", True, "all that the meter feeds, bench.csv"))
        with pytest.raises(MeterError, match="set AMPERE_METER=powercap, or"):
            check_same_meter(device, Meter("powercap", True, "package-0"))


@pytest.fixture
def opened(monkeypatch):
    """How often workers were made."""
    made, open_ = [], DEVICE_TYPES["simulated"]
    monkeypatch.setitem(DEVICE_TYPES, "simulated", lambda *all_: made.append(all_) or open_(*all_))
    return made


def test_it_is_described_once_and_keeps_its_workers(opened):
    with Device("simulated:xavier") as device:
        assert not opened, "nothing is opened before it is needed"
        assert device.identity["id"] == "simulated-xavier"
        assert device.meter.simulated
        assert device.worker() is device.worker("tuned")
        assert len(opened) == 1
    assert device.meter.simulated, "what is known of it stays"
    assert len(opened) == 1


def test_fresh_workers_are_others_with_a_seed_of_their_own(opened):
    with Device("simulated:xavier", seed=3) as device:
        kept = device.worker()
        with device.fresh(seed=4) as workers:
            assert workers["tuned"] is not kept
        assert [seed for _, _, seed in opened] == [3, 4]


def test_workers_end_with_the_device():
    with Device() as device:
        worker = device.worker()
        worker.hello()
        assert isinstance(worker, ProcessWorker)
        pid = worker.worker_pid
        os.kill(pid, 0)
    device.close()  # again
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_meter_that_is_named_is_used_for_every_block_and_no_environment_is_changed(monkeypatch):
    monkeypatch.delenv("AMPERE_METER", raising=False)
    before = dict(os.environ)
    layers = {"layers": chain(3, 4, 4, 8).to_json()}
    with Device(meter="external:0.2:0.01") as device:
        assert device.meter.name == "external"
        found = device.worker().block(layers, TrainingSetup(), iterations=2, warmup=1)
    assert found.joules is None, "the host reads the meter, so the worker reports no joules"
    assert dict(os.environ) == before


def test_the_users_environment_names_the_meter_where_nobody_else_does(monkeypatch):
    monkeypatch.setenv("AMPERE_METER", "external:0.2:0.01")
    with Device() as device:
        assert device.meter.name == "external"
    with Device(meter="cpu-time") as device:
        assert device.meter.name == "cpu-time"


def test_an_unknown_meter_is_one_line():
    with Device(meter="rapl") as device, pytest.raises(UsageError, match="there is no meter 'rapl': use one of"):
        _ = device.meter


def test_a_simulated_device_has_its_own_meter():
    with pytest.raises(UsageError, match="has a meter of its own"):
        Device("simulated:xavier", meter="cpu-time")


def test_the_limit_on_compiling_is_an_option_of_the_worker(monkeypatch):
    monkeypatch.setenv("AMPERE_COMPILE_LIMIT", "77")
    assert Device().worker().compile_limit == 77
    assert Device(compile_limit=5.0).worker().compile_limit == 5
    monkeypatch.setenv("AMPERE_COMPILE_LIMIT", "ages")
    with pytest.raises(UsageError, match="AMPERE_COMPILE_LIMIT=ages is no number of seconds"):
        Device()
    with pytest.raises(UsageError, match="a compile limit of -1"):
        Device(compile_limit=-1)


def test_modelled_joules_can_be_those_of_other_watts():
    with Device(meter="cpu-time", watts_per_core=7.0) as device:
        assert device.meter.scope == "7 W per busy core"
        assert device.meter_at(9.0).scope == "9 W per busy core"
    simulated = Device("simulated:xavier")
    assert simulated.meter_at(9.0) == simulated.meter
    with pytest.raises(UsageError, match="positive number"):
        Device(watts_per_core=0)


def test_a_setup_is_written_in_the_words_of_pytorch():
    device = Device("simulated:xavier")
    assert device.setup() == TrainingSetup()
    assert device.setup(optimizer="AdamW", dtype="bf16", threads=2) == TrainingSetup("torch", "adamw", "bfloat16", 2)
    assert device.setup(dtype="torch.float32").dtype == "float32"
    with pytest.raises(UsageError, match="optimizer 'adagrad' is none of"):
        device.setup(optimizer="Adagrad")
