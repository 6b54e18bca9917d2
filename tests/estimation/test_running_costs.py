"""Kilowatt-hours, money and carbon of joules."""

import csv
from importlib.resources import files

import pytest

from ampere.core.errors import UsageError
from ampere.estimation.running_costs import Tariff, countries, parse_facility_factor, parse_grids, parse_price


@pytest.mark.parametrize(
    ("text", "per_kwh", "currency"),
    [
        ("0.30/kWh", 0.3, ""),
        ("0.30EUR/kWh", 0.3, "EUR"),
        ("eur 0.30 / kWh", 0.3, "EUR"),
        ("$0.15/kWh", 0.15, "USD"),
        ("0", 0.0, ""),
        (0.25, 0.25, ""),
    ],
)
def test_prices_as_people_write_them(text, per_kwh, currency):
    assert (parse_price(text).per_kwh, parse_price(text).currency) == (per_kwh, currency)


@pytest.mark.parametrize("text", ["cheap", "0.30kWh", "0.30/MWh", "EUR0.30USD/kWh", "", "nan"])
def test_what_is_no_price_is_refused_in_one_line(text):
    with pytest.raises(UsageError, match=r"^price .* write 0\.30/kWh"):
        parse_price(text)


def test_negative_prices_and_grids_and_impossible_factors_are_refused():
    with pytest.raises(UsageError, match="negative"):
        parse_price("-0.30/kWh")
    with pytest.raises(UsageError, match="negative"):
        parse_grids("-400g/kWh")
    with pytest.raises(UsageError, match="from 1"):
        parse_facility_factor(0.9)


def test_grids_are_grams_codes_and_names_and_several_at_once():
    grids = parse_grids(["DE, fra", "400g/kWh", "0.4kgCO2e/kWh"])
    assert [grid.region for grid in grids] == ["Germany", "France", "400 g/kWh", "400 g/kWh"]
    assert parse_grids("south korea") == parse_grids("KR") == parse_grids("KOR")
    assert parse_grids(250)[0].grams_per_kwh == 250


@pytest.mark.parametrize(("text", "hint"), [("XX", "a code such as DE"), ("Germny", "did you mean Germany")])
def test_an_unknown_country_is_one_line_with_what_to_write(text, hint):
    with pytest.raises(UsageError, match=rf"there is no grid '{text}': .*{hint}"):
        parse_grids(text)


def test_the_shipped_table_names_a_source_and_a_year_for_each_region():
    rows = list(csv.DictReader(files("ampere.estimation").joinpath("grid_intensity.csv").read_text().splitlines()))
    assert len({row["code"] for row in rows}) == len(rows) > 100
    assert all(len(row["code"]) == 2 and len(row["alpha3"]) == 3 for row in rows if row["code"] not in ("WORLD", "EU"))
    assert all(2020 <= int(row["year"]) <= 2030 and 0 < float(row["grams_per_kwh"]) < 1500 for row in rows)
    assert all("Ember" in grid.source and grid.source[-4:].isdigit() for grid in countries().values())


def test_the_interval_and_the_facility_factor_go_through_to_money_and_carbon():
    tariff = Tariff(parse_price("0.30EUR/kWh"), parse_grids("400g/kWh"), 1.5)
    record = tariff.to_json(3.6e6, (1.8e6, 5.4e6))
    assert record["kwh"] == pytest.approx(1.5)
    assert record["kwh_interval90"] == pytest.approx([0.75, 2.25])
    assert record["cost"]["money"] == pytest.approx(0.45)
    assert record["cost"]["money_interval90"] == pytest.approx([0.225, 0.675])
    assert record["carbon"][0]["grams"] == pytest.approx(600)
    assert record["carbon"][0]["grams_interval90"] == pytest.approx([300, 900])
