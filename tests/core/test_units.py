"""Numbers as people read them, and numbers as people write them."""

from argparse import ArgumentTypeError
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ampere.cli import option_values as values
from ampere.core import units
from ampere.core.errors import UsageError


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.00123, "1.23 mJ"),
        (12.7, "12.7 J"),
        (148000.0, "148 kJ"),
        (3.2e-7, "320 nJ"),
        (0, "0.00 J"),
        (1e-12, "0.00 nJ"),
    ],
)
def test_joules(value, shown):
    assert units.joules(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0025, "2.50 ms"), (4e-5, "40.0 µs"), (90, "90.0 s"), (600, "10.0 min"), (9000, "2.50 h"), (1e6, "11.6 days")],
)
def test_seconds(value, shown):
    assert units.seconds(value) == shown


@pytest.mark.parametrize(("joules", "shown"), [(3600, "1.00 Wh"), (148, "41.1 mWh"), (54e3, "15.0 Wh")])
def test_watt_hours(joules, shown):
    assert units.watt_hours(joules) == shown


@pytest.mark.parametrize(("share", "shown"), [(0.46, "46 %"), (0.034, "3.4 %"), (0.00023, "0.023 %"), (0, "0.0 %")])
def test_percent(share, shown):
    assert units.percent(share) == shown


@given(st.floats(1e-9, 1e11))
def test_joules_are_shown_to_a_percent(value):
    number, unit = units.joules(value).replace(",", "").split()
    scale = {f"{p}J": s for s, p in units.PREFIXES}[unit]
    assert float(number) * scale == pytest.approx(value, rel=0.006)


@pytest.mark.parametrize(("text", "share"), [("3%", 0.03), ("0.03", 0.03), (" 2.5 % ", 0.025)])
def test_shares_are_read(text, share):
    assert values.share(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["3", "100%", "-3%", "0", "nan", "inf%", "", "%", "three"])
def test_other_shares_are_refused(text):
    with pytest.raises(ArgumentTypeError, match=r"3% or 0\.03"):
        values.share(text)


@pytest.mark.parametrize(("text", "number"), [("50000", 50000), ("50_000", 50000), ("50,000", 50000)])
def test_counts_are_read(text, number):
    assert values.count(text) == number


@given(st.text(max_size=12))
def test_whatever_is_written_is_a_positive_number_or_refused(text):
    for read in (values.seconds, values.watts, values.count, values.share):
        with suppress(ArgumentTypeError):
            assert read(text) > 0


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [(0, 3, "0"), (0.1234, 3, "0.123"), (999.6, 3, "1,000"), (1234, 3, "1,230"), (2.0, 2, "2.0"), (128, 2, "130")],
)
def test_no_column_has_exponents(value, digits, shown):
    assert units.significant(value, digits) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0 FLOP"), (216, "216 FLOP"), (3240, "3.24 kFLOP"), (2e9, "2.00 GFLOP")]
)
def test_flops(value, shown):
    assert units.flops(value) == shown


@pytest.mark.parametrize(
    ("text", "joules"),
    [
        ("15Wh", 54000),
        ("15 Wh", 54000),
        ("15wh", 54000),
        ("54 kJ", 54000),
        ("2MJ", 2e6),
        ("50mJ", 0.05),
        ("5000mAh@3.85V", 69300),
        ("5 Ah @ 3.7 V", 66600),
    ],
)
def test_energy_is_read(text, joules):
    assert units.parse_energy(text) == pytest.approx(joules)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("5000mAh", "write 5000mAh@3.85V"),
        ("5000mAh@3.85", "write 5000mAh@3.85V"),
        ("15W", "is a power, .* write 15Wh"),
        ("15", "15Wh, 54kJ or 5000mAh@3.85V"),
        ("1,5Wh", "not a positive amount"),
        ("-3Wh", "not a positive amount"),
        ("2mj", "not a positive amount"),
        ("15Wh@3V", "not a positive amount"),
        ("nanJ", "not a positive amount"),
    ],
)
def test_what_is_no_energy_gets_a_line_that_says_what_would_be_right(text, says):
    with pytest.raises(UsageError, match=says):
        units.parse_energy(text)


def test_power_and_time_are_read():
    assert [units.parse_power(text) for text in ("8W", "8", "500 mW")] == [8, 8, 0.5]
    assert [units.parse_seconds(text) for text in ("15", "15s", "2 min", "1h")] == [15, 15, 120, 3600]
    with pytest.raises(UsageError, match="energy, not a power: write it in watts"):
        units.parse_power("8Wh")
    with pytest.raises(UsageError, match="positive number of seconds"):
        units.parse_seconds("2 weeks")


def test_one_thing_is_not_several():
    assert [units.counted(n, "layer") for n in (0, 1, 1200)] == ["0 layers", "1 layer", "1,200 layers"]
    assert [units.counted(n, "batch", "batches") for n in (1, 2)] == ["1 batch", "2 batches"]
