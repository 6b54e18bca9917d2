"""Tests that every meter must pass; other packages can run them on a meter of their own.

from ampere.meters.conformance import MeterConformance

class TestMine(MeterConformance):
    @pytest.fixture
    def meter(self):
        return find("/sys")
"""

import hashlib
import json
import math
import time

from .meter import Meter

FIELDS = {"name", "measured", "scope"}
SAMPLES = 6
LEAST_SAMPLES, LEAST_UPDATES = 60, 100  # in a window: of a sensor of watts, of a counter of joules


class MeterConformance:
    """Tests of a fixture `meter`, on a machine that draws more power when this process works."""

    def test_it_says_what_it_is(self, meter: Meter) -> None:
        described = meter.describe()
        assert set(described) - {"window_seconds", "update_seconds"} == FIELDS
        assert bool(described.get("update_seconds")) <= (meter.reading_unit == "W")
        assert isinstance(described["measured"], bool)
        assert described["measured"] == (described.get("window_seconds", 0) > 0)
        assert described["scope"]
        assert json.loads(json.dumps(described)) == described

    def test_its_windows_are_long_enough(self, meter: Meter) -> None:
        check_window(meter)

    def test_it_rises_under_load(self, meter: Meter) -> None:
        meter.start()
        work(load_of(meter))
        joules = meter.stop()
        assert math.isfinite(joules)
        assert joules > 0

    def test_twice_the_load_is_about_twice_the_joules(self, meter: Meter) -> None:
        spent = []
        for share in (1, 2):
            meter.start()
            work(share * load_of(meter))
            spent.append(meter.stop())
        assert 1.5 < spent[1] / spent[0] < 2.7

    def test_windows_do_not_leak_into_each_other(self, meter: Meter) -> None:
        meter.start()
        work(load_of(meter))
        long = meter.stop()
        meter.start()
        short = meter.stop()
        assert 0 <= short < 0.2 * long

    def test_a_window_may_be_begun_again(self, meter: Meter) -> None:
        meter.start()
        work(load_of(meter))
        long = meter.stop()
        meter.start()
        work(load_of(meter))
        meter.start()
        assert 0 <= meter.stop() < 0.2 * long

    def test_its_reading_moves_under_load(self, meter: Meter) -> None:
        assert meter.reading_unit in ("J", "W")
        seen = set()
        for _ in range(20):
            work(max(0.005, min(meter.update_seconds, 0.2) / 4))
            seen.add(meter.reading())
        assert len(seen) > 2
        assert all(map(math.isfinite, seen))


def check_window(meter: Meter) -> None:
    """Fails for a meter whose windows hold too few samples or updates; one that models needs none."""
    least = LEAST_UPDATES if meter.reading_unit == "J" else LEAST_SAMPLES
    described = meter.describe()
    assert not described["measured"] or described["window_seconds"] >= least * meter.update_seconds


def work(cpu_seconds: float) -> None:
    """Use so many CPU seconds. Hashing releases the GIL, so that a thread that samples power can run."""
    until = time.process_time() + cpu_seconds
    while time.process_time() < until:
        hashlib.sha256(bytes(200000)).digest()


def load_of(meter: Meter) -> float:
    """CPU seconds of a load that is long enough for the meter: the ends of a window must matter little."""
    least = 0.1 if meter.reading_unit == "J" else 0.3
    return max(least, min(SAMPLES * meter.update_seconds, 1.0))
