"""From a name to a device, and what is said when there is none of that name."""

import pytest

from ampere.core import Meter
from ampere.core.errors import MeterError, ProfileError, UsageError
from ampere.devices import allocator_on, check_same_meter, describe, opened


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("simulated:xaver", "did you mean simulated:xavier"),
        ("simulated:phone_ios", "did you mean simulated:phone-ios"),
        ("simulated:", "did you mean simulated:tx2"),
        ("lokal", "did you mean local"),
        ("local:", "did you mean local"),
        ("local:5", "did you mean local"),
        ("toaster", "the devices are local, simulated:xavier"),
        ("", "the devices are local"),
    ],
)
def test_an_unknown_name_gets_the_nearest(spec, hint):
    with pytest.raises(UsageError, match=hint):
        describe(spec, 5.0)
    with pytest.raises(UsageError, match=hint), opened(spec, 5.0):
        pass


def test_a_recording_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ProfileError, match="does not exist"):
        describe(f"replayed:{tmp_path / 'none.json'}", 5.0)


def test_a_device_with_one_allocator_is_asked_for_that_one():
    assert allocator_on({"id": "real"}, "system") == "system"
    assert allocator_on({"id": "simulated-tx2", "allocators": ["tuned"]}, "system") == "tuned"


def test_the_meter_of_a_profile_is_named_as_it_must_be_asked_for(monkeypatch):
    monkeypatch.setenv("AMPERE_METER", "cpu-time")
    with pytest.raises(MeterError, match="set AMPERE_METER=log:FILE,time=COLUMN,power=COLUMN, or"):
        check_same_meter("local", Meter("log", True, "all that the meter feeds, bench.csv"))
    with pytest.raises(MeterError, match="set AMPERE_METER=powercap, or"):
        check_same_meter("local", Meter("powercap", True, "package-0"))
