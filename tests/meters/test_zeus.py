"""What is made of zeus' readings, with stand-ins for its devices: no machine of ours has one that it can read."""

import sys
import time
from types import ModuleType, SimpleNamespace

import pytest

from ampere.core.errors import WorkerError
from ampere.meters import selection as choosing
from ampere.meters import zeus


class Counter:
    """Millijoules that grow at some watts, or stand still."""

    def __init__(self, watts):
        self.watts, self.began, self.extra = watts, time.monotonic(), 0.0

    def read(self):
        return 1000 * self.watts * (time.monotonic() - self.began) + self.extra


def nothing():
    raise RuntimeError("NVML and AMDSMI unavailable")


@pytest.fixture(name="install")
def stand_ins_for_zeus(monkeypatch):
    def install(gpus=(), packages=(), soc=None):
        device = ModuleType("zeus.device")
        cards = SimpleNamespace(
            gpus=[SimpleNamespace(supports_get_total_energy_consumption=lambda: True) for _ in gpus],
            get_total_energy_consumption=lambda i: gpus[i].read(),
        )
        device.get_gpus = lambda: _sized(cards, len(gpus)) if gpus else nothing()
        cpus = SimpleNamespace(
            get_total_energy_consumption=lambda i: SimpleNamespace(
                cpu_mj=packages[i][0].read(), dram_mj=packages[i][1].read() if packages[i][1] else None
            ),
            supports_get_dram_energy_consumption=lambda i: packages[i][1] is not None,
        )
        device.get_cpus = lambda: _sized(cpus, len(packages)) if packages else nothing()
        device.get_soc = lambda: SimpleNamespace(get_total_energy_consumption=soc) if soc else nothing()
        package = ModuleType("zeus")
        package.device = device
        monkeypatch.setitem(sys.modules, "zeus", package)
        monkeypatch.setattr(zeus, "LOOK_SECONDS", 0.01)

    return install


def _sized(thing, length):
    return type("Sized", (SimpleNamespace,), {"__len__": lambda self: length})(**vars(thing))


def test_each_counter_is_looked_at_and_named(install):
    install(gpus=[Counter(50)], packages=[(Counter(20), Counter(4)), (Counter(0), None)])
    meter = zeus.find("")
    assert meter.describe()["scope"] == "gpu 0, its whole board + package 0 + dram 0"  # package 1 stands still
    before = time.monotonic()
    meter.start()
    began = time.monotonic()
    time.sleep(0.05)
    ended = time.monotonic()
    joules = meter.stop()
    assert 74 * (ended - began) <= joules <= 74 * (time.monotonic() - before)


def test_a_total_of_a_chip_is_read_alone_and_else_its_parts(install):
    board, cpu, gpu = Counter(9), Counter(3), Counter(2)
    install(soc=lambda: SimpleNamespace(total_energy_mj=board.read(), cpu_energy_mj=cpu.read()))
    assert zeus.find("").describe()["scope"] == "soc total_energy"
    install(soc=lambda: SimpleNamespace(total_energy_mj=None, cpu_energy_mj=cpu.read(), gpu_energy_mj=gpu.read()))
    assert zeus.find("").describe()["scope"] == "soc cpu_energy + soc gpu_energy"


def test_where_zeus_finds_nothing_there_is_no_meter(install, monkeypatch):
    install()
    assert zeus.find("") is None
    monkeypatch.setitem(sys.modules, "zeus", None)  # not installed
    assert zeus.find("") is None


def test_an_error_of_zeus_is_reported_where_zeus_is_asked_for(install):
    """Here a chip that is there and then cannot be read."""
    install(soc=nothing)
    with pytest.raises(WorkerError, match=r"zeus cannot be read \(RuntimeError: NVML and AMDSMI unavailable\)"):
        choosing.choose_meter(5.0, "zeus")
    [listed] = [found for found in choosing.found_meters() if found.name == "zeus"]
    assert "NVML and AMDSMI unavailable" in listed.problem


def test_counters_that_all_stand_still_are_refused(install):
    install(packages=[(Counter(0), None)])
    with pytest.raises(WorkerError, match="package 0, but none of them advances"):
        zeus.find("")


def test_a_counter_that_is_set_back_is_no_energy(install):
    card = Counter(50)
    install(gpus=[card])
    meter = zeus.find("")
    meter.start()
    card.extra = -1e9
    with pytest.raises(WorkerError, match="gpu 0, its whole board was reset"):
        meter.stop()


def test_a_read_that_fails_is_an_error(install):
    card = Counter(50)
    install(gpus=[card])
    meter = zeus.find("")
    card.read = nothing
    with pytest.raises(WorkerError, match=r"zeus cannot read gpu 0, its whole board \(NVML and AMDSMI unavailable\)"):
        meter.stop()
