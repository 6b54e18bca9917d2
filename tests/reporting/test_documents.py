"""An estimate as CSV, Markdown and HTML: the same figures as in its JSON."""

import csv
from html.parser import HTMLParser

import pytest

from ampere.core import Meter
from ampere.estimation.estimate import Estimate, LayerShare
from ampere.estimation.running_costs import Tariff, parse_grids, parse_price
from ampere.estimation.training_run import Battery, training_run
from ampere.reporting.documents import FORMATS

LAYERS = (LayerShare("conv|1<b>", "conv", 0.015, 0.001), LayerShare("(step)", "step", 0.005, 0.0))
METER = Meter("cpu-time", False, "5 W per busy core", origin="the default", factor=2.0)
ESTIMATE = Estimate("net", 0.02, 0.002, 0.004, LAYERS, ("conv|1<b>",), (), METER, "system", device="a CPU")


@pytest.fixture
def record():
    tariff = Tariff(parse_price("0.30EUR/kWh"), parse_grids("DE,FR"))
    return {**ESTIMATE.to_json(), "total": training_run(ESTIMATE, 1000, tariff=tariff).to_json(), "memory": None}


def test_the_rows_of_the_table_sum_to_an_iteration(record):
    rows = list(csv.DictReader(FORMATS["csv"](record).splitlines()))
    assert sum(float(row["joules"]) for row in rows) == pytest.approx(0.02)
    assert sum(float(row["share"]) for row in rows) == pytest.approx(1)
    assert rows[0]["name"] == "conv|1<b>"


@pytest.mark.parametrize("format", ["markdown", "html"])
def test_a_document_says_what_matters(record, format):
    written = FORMATS[format](record)
    for words in ("20.0 mJ per iteration", "modelled", "within a factor of 2", "1,000 iterations", "Germany", "EUR"):
        assert words in written, words


def test_names_of_layers_break_neither_tables_nor_pages(record):
    markdown = FORMATS["markdown"](record)
    [row] = [line for line in markdown.splitlines() if line.startswith("| conv")]
    assert row.replace("\\|", "").count("|") == 6
    assert "<b>" not in markdown
    tags = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            tags.append(tag)

    Reader().feed(FORMATS["html"](record))
    assert "b" not in tags
    assert tags.count("table") == 3


@pytest.mark.parametrize("format", ["markdown", "html"])
def test_a_document_has_what_the_command_line_prints_of_a_run(record, format):
    battery = Battery(180_000.0, "50Wh")
    total = training_run(ESTIMATE, 1000, battery=battery, watts_idle=6.0, tariff=Tariff(facility_factor=1.2)).to_json()
    memory = {"peak_bytes": 3e8, "interval90_bytes": [2e8, 4e8], "limit_bytes": 1e9, "verdict": "fits"}
    written = FORMATS[format]({**record, "total": total, "memory": {**memory, "largest_batch": 640}})
    for words in (
        "300 MB at its peak (90 %: 200 MB to 400 MB), fits into 1.00 GB",
        "640 fits",
        "24.0 J at 6 W, 44.0 J in all",
        "(x 1.2)",
        "fits: it fits with a probability of over 99.9 %",
        "of 50.0 Wh",
        "other programs on the device",
        "(rest of step)",
    ):
        assert words in written, words
    assert "0.00 J" not in written


def test_an_iteration_alone_has_no_run(record):
    markdown = FORMATS["markdown"]({**record, "total": None})
    assert "Whole run" not in markdown
