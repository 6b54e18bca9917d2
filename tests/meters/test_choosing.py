"""Which meter is taken, and which are put to the test and rejected."""

import pytest
from tests.sysfs_tree import Machine, add_battery, add_hwmon, add_powercap, add_zone

from ampere.core.errors import WorkerError
from ampere.meters import choose_meter, counters, powercap
from ampere.meters import selection as choosing
from ampere.meters.checking import check
from ampere.meters.selection import found_meters


@pytest.fixture(autouse=True)
def _this_tree(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_SYSFS", str(tmp_path))
    monkeypatch.delenv("AMPERE_METER", raising=False)


def chosen():
    return choose_meter(5.0).describe()["name"]


def test_without_a_counter_joules_are_modelled():
    assert choose_meter(7.0).describe() == {"name": "cpu-time", "measured": False, "scope": "7 W per busy core"}
    assert found_meters() == []


def test_a_counter_that_advances_is_taken(tmp_path):
    with Machine(add_powercap(tmp_path)):
        assert chosen() == "powercap"


def test_a_counter_that_stands_still_is_no_meter(tmp_path, monkeypatch):
    add_zone(tmp_path, "intel-rapl:0", "package-0", 12345)
    assert chosen() == "cpu-time"
    monkeypatch.setenv("AMPERE_METER", "powercap")
    with pytest.raises(WorkerError, match="does not advance under load"):
        chosen()


def test_the_model_can_be_asked_for_where_there_is_a_counter(tmp_path, monkeypatch):
    monkeypatch.setenv("AMPERE_METER", "cpu-time")
    with Machine(add_powercap(tmp_path)):
        assert chosen() == "cpu-time"


def test_a_battery_is_taken_only_when_asked_for(tmp_path, monkeypatch):
    add_battery(tmp_path, power_now=5_000_000)
    assert chosen() == "cpu-time"
    monkeypatch.setenv("AMPERE_METER", "battery")
    assert chosen() == "battery"


def test_a_battery_that_moves_in_coarse_steps_can_be_asked_for(tmp_path, monkeypatch):
    add_battery(tmp_path, energy_now=50_000_000)
    monkeypatch.setenv("AMPERE_METER", "battery")
    assert chosen() == "battery"


@pytest.mark.parametrize("asked", ["hwmon", "battery"])
def test_what_is_asked_for_and_not_there_is_never_replaced(monkeypatch, asked):
    monkeypatch.setenv("AMPERE_METER", asked)
    with pytest.raises(WorkerError, match=f"there is no {asked} on this device") as said:
        chosen()
    assert said.value.type == "meter_failed"


def test_an_unknown_name_is_answered_with_the_known_ones(monkeypatch):
    monkeypatch.setenv("AMPERE_METER", "rapl")
    with pytest.raises(WorkerError, match="powercap, hwmon, battery, zeus, cpu-time"):
        chosen()


def test_the_choice_lasts_as_long_as_the_process(tmp_path):
    with Machine(add_hwmon(tmp_path)):
        first = choose_meter(5.0)
        add_powercap(tmp_path)
        assert choose_meter(5.0) is first


def test_one_that_cannot_be_read_is_listed_with_the_reason(tmp_path):
    add_battery(tmp_path, "Charging", power_now=5_000_000)
    [found] = found_meters()
    assert (found.name, found.meter) == ("battery", None)
    assert "unplug" in found.problem


@pytest.fixture(name="bring")
def a_package_of_others(tmp_path, monkeypatch):
    """Installs one whose meter is looked for by this source."""

    def bring(source, module="bench_meter"):
        package = tmp_path / "site"
        (package / "bench-1.0.dist-info").mkdir(parents=True)
        (package / "bench-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: bench\nVersion: 1.0\n")
        (package / "bench-1.0.dist-info/entry_points.txt").write_text(f"[ampere.meters]\nbench = {module}:find\n")
        (package / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(package)

    return bring


BENCH = (
    "from ampere.meters.cpu_time import CpuTimeMeter\n\n\n"
    "class Bench(CpuTimeMeter):\n"
    "    def describe(self):\n"
    '        return {"name": "bench", "measured": True, "scope": "a shunt", "window_seconds": 0.1}\n\n\n'
    "def find(root):\n    return Bench()\n"
)


def test_meters_of_others_are_found_by_their_entry_point(tmp_path, bring):
    bring(BENCH)
    with Machine(add_powercap(tmp_path)):
        assert chosen() == "bench"
        assert next(iter(choosing.finders())) == "bench"


BROKEN = {
    "not_imported": ("import a_library_that_is_not_there\n", "ModuleNotFoundError: No module named 'a_library"),
    "not_found": ("def find(root):\n    raise KeyError('port\\nmore')\n", "KeyError"),
    "not_started": (f"{BENCH}\n\nBench.start = lambda self: 1 / 0\n", "ZeroDivisionError: division by zero"),
}


@pytest.mark.alone
@pytest.mark.parametrize("sort", BROKEN)
def test_a_broken_package_is_reported_and_hides_no_other_meter(tmp_path, monkeypatch, bring, sort):
    source, words = BROKEN[sort]
    bring(source, module=sort)
    with Machine(add_powercap(tmp_path)):
        assert chosen() == "powercap"
        listed = {counter["name"]: counter for counter in counters({"check": sort == "not_started"})["counters"]}
        assert words in listed["bench"]["problem"]
        assert "\n" not in listed["bench"]["problem"]
        assert listed["powercap"]["problem"] is None
        monkeypatch.setenv("AMPERE_METER", "bench")
        with pytest.raises(WorkerError, match=words) as said:
            chosen()
        assert said.value.type == "meter_failed"


@pytest.mark.alone
def test_a_good_counter_passes_the_check(tmp_path):
    with Machine(add_powercap(tmp_path), idle=3.0, busy=60.0):
        for _ in range(5):  # on a machine that others use too, the load of one check is sometimes none
            found = check(powercap.find(str(tmp_path)))
            expected = {
                "no problem": found["problem"] is None,
                "watts_idle": found["watts_idle"] == pytest.approx(3.0, rel=0.5),
                "watts_load": found["watts_load"] > 2 * found["watts_idle"],
                "noise_watts": found["noise_watts"] < found["watts_load"] - found["watts_idle"],
                "update_seconds": 0.0005 < found["update_seconds"] < 0.05,
            }
            if all(expected.values()):
                break
    assert all(expected.values()), (expected, found)
    assert found["resolution"] >= 1e-6
    assert found["resolution_unit"] == "J"


@pytest.mark.alone
def test_one_that_does_not_rise_under_load_is_rejected(tmp_path):
    with Machine(add_powercap(tmp_path), idle=5.0, busy=0.0):
        checks = (check(powercap.find(str(tmp_path)))["problem"] for _ in range(4))  # see above: until one is clear
        assert "does not rise under load" in next(filter(None, checks), "no problem")


def test_one_that_stands_still_is_rejected(tmp_path):
    add_zone(tmp_path, "intel-rapl:0", "package-0", 12345)
    assert "does not advance" in check(powercap.find(str(tmp_path)))["problem"]
