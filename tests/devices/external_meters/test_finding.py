"""Several patterns in one synthetic log: each looks like the others, together they lie in one place only."""

import numpy as np
import pytest

from ampere.core.errors import MeterError
from ampere.devices.external_meters.alignment import PATTERN, aligned, watts_at_rest
from ampere.devices.external_meters.deferred import NEXT_SECONDS, DeferredMeter
from ampere.devices.external_meters.log import Log, LogSpec

PART, EVERY, OFFSET = 0.2, 0.01, -777.7
BEGAN = (20.0, 33.0, 47.0, 75.0)
PATTERNS = [tuple(began + PART * np.arange(len(PATTERN) + 1)) for began in BEGAN]


@pytest.fixture(name="written")
def a_log(tmp_path):
    """4 W at rest, 12 W in training and where the patterns work; rows by a clock that runs fast."""

    def write(rate=1.0001, first=0.0, last=100.0, patterns=PATTERNS, unit="s"):
        times = np.arange(first, last, EVERY)
        watts = np.where(times > 15.0, 12.0, 4.0)
        for pattern in patterns:
            inside = (times >= pattern[0]) & (times < pattern[-1])
            part = np.clip(((times - pattern[0]) / PART).astype(int), 0, len(PATTERN) - 1)
            watts = np.where(inside, 4.0 + 8.0 * np.array(PATTERN)[part], watts)
        watts += np.random.default_rng(1).normal(0, 1.0, len(times))
        rows = zip(OFFSET + rate * (times + EVERY), watts, strict=True)
        path = tmp_path / "log.csv"
        path.write_text("t,P\n" + "".join(f"{t:.6f},{w:.4f}\n" for t, w in rows))
        log = Log(LogSpec.of(str(path), {"time": f"t:{unit}", "power": "P"}))
        log.advance()
        return log

    return write


@pytest.mark.parametrize("rate", [0.9997, 1.0, 1.0004])
def test_clocks_are_found_within_a_row(written, rate):
    found = aligned(written(rate), PATTERNS)
    assert (found.found, found.given) == (4, 4)
    assert found.rate == pytest.approx(rate, abs=1e-4)
    for seconds in (20.0, 60.0, 99.0):
        assert found.in_log(seconds) == pytest.approx(OFFSET + rate * seconds, abs=EVERY)
    assert found.within_seconds < EVERY


def test_a_recording_that_began_late_or_ended_early(written):
    late, early = aligned(written(first=25.0), PATTERNS), aligned(written(last=60.0), PATTERNS)
    assert late.found == early.found == 3
    for found in (late, early):
        assert found.in_log(50.0) == pytest.approx(OFFSET + 1.0001 * 50.0, abs=EVERY)


def test_one_of_several_could_be_any_of_them(written):
    with pytest.raises(MeterError, match="does not show"):
        aligned(written(first=45.0, last=55.0), PATTERNS)


def test_one_that_was_given_alone_is_found(written):
    found = aligned(written(patterns=PATTERNS[:1]), PATTERNS[:1])
    assert (found.found, found.rate, found.within_seconds) == (1, 1.0, 0.0)


def test_a_log_of_something_else_or_of_too_little(written):
    with pytest.raises(MeterError, match="does not show in"):
        aligned(written(patterns=()), PATTERNS)
    with pytest.raises(MeterError, match="shorter than the load pattern"):
        aligned(written(last=2.0), PATTERNS)
    with pytest.raises(MeterError, match=r"does not show in|shorter than the load pattern"):
        aligned(written(unit="ms"), PATTERNS)


def test_power_at_rest_is_that_of_the_patterns_rests(written):
    log = written()
    assert watts_at_rest(log, aligned(log, PATTERNS), PATTERNS) == pytest.approx(4.0, rel=0.1)


def test_a_pattern_is_given_again_after_as_long_as_all_before_it():
    meter, times = DeferredMeter(EVERY), [0.0]

    def ask(request):
        if request["do"] == "block":
            times.append(times[-1] + 1.0)
            return {"meter": {"name": "external"}, "target": [], "yardstick": []}
        ends = times[-1] + PART * np.arange(1, len(request["pattern"]) + 1)
        return {"began": times[-1], "ends": ends if len(ends) > 1 else [times[-1]]}

    patterns = [meter.around({"do": "block"}, ask)["pattern"] for _ in range(100)]
    assert [second for second, pattern in enumerate(patterns) if pattern] == [0, *NEXT_SECONDS * np.array([1, 2, 4, 8])]
    assert {len(pattern) for pattern in patterns} == {0, len(PATTERN) + 1}
