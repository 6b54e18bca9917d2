"""The energy counter of NVIDIA cards, read from a stand-in for NVML that has the habits of real ones."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
from tests.standin import pynvml as standin

from ampere.core.errors import WorkerError
from ampere.meters import nvml, selection

OURS = "GPU-ours"
WINDOWS = 40


class Load:
    """A clock that only moves when something sleeps, and spans of work on it."""

    def __init__(self):
        self.now, self.spans = 0.0, []

    def sleep(self, seconds):
        self.now += seconds

    def busy(self, start, end):
        return sum(max(0.0, min(end, b) - max(start, a)) for a, b in self.spans)

    def train(self, seconds, period=0.1, share=1.0):
        """Work for a share of each period, which begins now: a step of a network is not the same all the way."""
        ends = self.now + seconds
        while self.now < ends - 1e-9:
            self.spans.append((self.now, self.now + share * period))
            self.now += period
        del self.spans[:-400]  # as far back as the card looks


@pytest.fixture(name="load")
def a_card_on_a_clock_of_its_own(monkeypatch):
    load = Load()
    library = ModuleType("pynvml")
    library.__dict__.update({name: value for name, value in vars(standin).items() if not name.startswith("__")})
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr(nvml.time, "sleep", load.sleep)

    def bring(**settings):
        meter = standin.Meter(load.busy, 0.0, lambda: load.now, **settings)
        monkeypatch.setattr(standin, "_cards", [standin.Other(), meter])
        fake = SimpleNamespace(SETTINGS={"nvml": settings}, UUID=OURS, CARD=None)
        monkeypatch.setitem(sys.modules, "ampere_standin", fake)
        monkeypatch.setattr(nvml, "_card", OURS)
        return nvml.find("")

    load.bring = bring
    return load


def test_joules_are_those_of_the_card_that_trains(load):
    meter = load.bring(update_seconds=0.02)
    meter.start()
    load.train(10.0)
    assert meter.stop() == pytest.approx(10 * 200, rel=0.02)
    assert meter.describe()["scope"] == "Stand-in card, the whole board"


def test_a_power_limit_and_heat_are_in_the_reading(load):
    meter = load.bring(update_seconds=0.02, busy_watts=200.0, limit_watts=210.0, heat=0.5)
    meter.start()
    load.train(10.0)
    assert 10 * 200 < meter.stop() <= 10 * 210 * 1.02


@pytest.mark.parametrize(("shift", "most"), [(nvml.GOLDEN, 0.03), (0.0, None)])
def test_windows_shifted_in_phase_make_up_for_a_card_that_looks_a_quarter_of_the_time(load, monkeypatch, shift, most):
    """Without the shift all windows miss the same part of each step."""
    monkeypatch.setattr(nvml, "_shift", shift)
    meter, read = load.bring(seen=0.25), 0.0
    for _ in range(WINDOWS):
        meter.start()
        load.train(5.0, share=0.5)
        read += meter.stop()
    off = abs(read / (WINDOWS * 5.0 * (20 + 0.5 * 180)) - 1)
    assert off <= most if most is not None else off > 0.2


def test_a_card_without_a_counter_is_sampled(load):
    meter = load.bring(counts=False)
    assert isinstance(meter, nvml.NvmlPower)
    load.train(1.0)
    assert meter.reading() == pytest.approx(200, rel=0.05)
    assert meter.describe()["update_seconds"] == nvml.UPDATE_SECONDS


def test_a_counter_that_was_reset_is_no_measurement(load, monkeypatch):
    meter = load.bring()
    load.train(1.0)
    meter.start()
    monkeypatch.setattr(standin._cards[1], "joules", lambda: 0.0)
    with pytest.raises(WorkerError, match="reset"):
        meter.stop()


def test_a_card_that_nvml_does_not_know_is_refused(load, monkeypatch):
    load.bring()
    monkeypatch.setattr(nvml, "_card", "GPU-gone")
    with pytest.raises(WorkerError, match="NVML knows no card GPU-gone"):
        nvml.find("")


def test_what_decides_costs_is_stated(load):
    load.bring()
    found = nvml.stated(OURS)
    assert found == {"driver": "550.54.15", "power_limit_watts": 250, "most_clock_mhz": 1410, "compute_mode": 0}
    assert nvml.stated("") == {}


def test_without_a_driver_there_is_no_meter(load, monkeypatch):
    load.bring()
    monkeypatch.setattr(sys.modules["ampere_standin"], "SETTINGS", {"nvml": None})
    assert nvml.find("") is None


def test_a_counter_of_the_processor_is_never_taken_for_a_card(monkeypatch):
    looked = []
    for name in selection.BUILT_IN:
        monkeypatch.setitem(selection.BUILT_IN, name, lambda root, name=name: looked.append(name))
    selection._choice.cache_clear()
    try:
        selection.use_card("GPU-x")
        selection.choose_meter(5.0)
        assert looked == ["nvml", "hwmon"]
        looked.clear()
        selection.use_card(None)
        selection.choose_meter(5.0)
        assert "nvml" not in looked
    finally:
        selection.use_card(None)
        selection._choice.cache_clear()
