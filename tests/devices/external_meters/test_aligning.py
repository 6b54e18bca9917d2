"""Clocks that were never set together, found by a load: offset and drift, in synthetic logs."""

import numpy as np
import pytest

from ampere.devices.external_meters.alignment import PATTERN, Clocks, place_of

PART = 1.0


def a_log(interval, offset, rate, began, noise=0.3, seed=0, load=8.0, seconds=60.0):
    """What a meter writes of a device at 4 W that works by the pattern: its rows are means since the row before."""
    rng = np.random.default_rng(seed)
    fine = np.arange(0.0, seconds, 0.001)
    inside = (fine >= began) & (fine < began + len(PATTERN) * PART)
    part = np.clip(((fine - began) / PART).astype(int), 0, len(PATTERN) - 1)
    watts = 4.0 + load * np.where(inside, np.array(PATTERN)[part], 0)
    joules = np.concatenate([[0.0], np.cumsum(watts) * 0.001])
    rows = np.arange(rng.uniform(0, interval), seconds - 0.01, interval / rate)
    watts = np.diff(np.interp(rows, np.append(fine, seconds), joules)) / np.diff(rows)
    return offset + rate * rows[1:], watts + noise * rng.standard_normal(len(watts))


def ends(began):
    return [began + PART * (i + 1) for i in range(len(PATTERN))]


@pytest.mark.parametrize("interval", [0.001, 0.02, 0.1, 0.25])
@pytest.mark.parametrize("offset", [-1234.5, 0.0, 1.7e9 + 0.123])
def test_an_offset_is_found_within_a_fifth_of_a_row(interval, offset):
    for seed in range(3):
        began = 2.3 + seed
        times, watts = a_log(interval, offset, 1.0, began, seed=seed, seconds=22.0)
        place = place_of(times, watts, ends(began), began)
        assert place.certain
        assert place.began - offset == pytest.approx(began, abs=max(0.2 * interval, 0.005))


def test_a_rate_is_found_from_two_patterns():
    clocks = Clocks()
    offset, rate = 1e6, 1.004
    for k in range(3):
        began = 20.0 + 200.0 * k
        times, watts = a_log(0.1, offset + rate * (began - 20.0), rate, 20.0, seed=k)
        clocks.add(began, place_of(times, watts, ends(20.0), 20.0).began)
    assert clocks.rate == pytest.approx(rate, abs=2e-4)
    assert clocks.in_log(500.0) == pytest.approx(offset + rate * 500.0, abs=0.05)


def test_one_pattern_gives_no_rate():
    clocks = Clocks()
    clocks.add(10.0, 1010.0)
    assert clocks.in_log(12.5) == 1012.5


def test_what_cannot_be_drift_is_another_clock():
    clocks = Clocks()
    clocks.add(10.0, 1010.0)
    clocks.add(300.0, 1301.0)
    clocks.add(600.0, 9000.0)
    assert (clocks.rate, clocks.in_log(610.0)) == (1.0, 9010.0)
    assert not clocks.due(610.0, 180.0)
    assert clocks.due(5.0, 180.0)  # the device was started again
    assert clocks.latest is None


def test_the_rate_is_learnt_soon_and_then_followed():
    clocks, asked, now = Clocks(), [], 0.0
    while now < 600.0:
        if clocks.due(now, 180.0, soon_seconds=12.0):
            asked.append(now)
            clocks.add(now, 1.005 * now)
        now += 1.0
    assert asked == [0.0, 12.0, 24.0, 48.0, 96.0, 192.0, 372.0, 552.0]
    assert clocks.rate == pytest.approx(1.005)


@pytest.mark.parametrize("load", [0.0, 0.02])
def test_a_load_that_is_not_in_the_log_is_not_found(load):
    for seed in range(20):
        times, watts = a_log(0.1, 5.0, 1.0, 20.0, noise=1.0, seed=seed, load=load)
        assert not place_of(times, watts, ends(20.0), 20.0).certain


def test_a_log_shorter_than_the_pattern_is_waited_for():
    times, watts = a_log(0.1, 5.0, 1.0, 20.0)
    assert place_of(times[:100], watts[:100], ends(20.0), 20.0) is None
