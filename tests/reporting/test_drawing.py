"""Scales put values where they belong; pictures leave the page whole."""

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ampere.reporting import save_charts
from ampere.reporting.charts import Bar, Bars, colour_step
from ampere.reporting.drawing import DARK, LIGHT, RAMP, SERIES, Datum, Drawing, Linear, Log, Rect, Text, short_names
from ampere.reporting.plotting import save_png
from ampere.reporting.record import Chart, Table
from ampere.reporting.svg import standalone

SIZES = st.floats(1e-9, 1e9)


@given(SIZES, st.floats(1.01, 1e6))
def test_ticks_are_within_the_scale_and_rise(low, ratio):
    for scale in (Linear(low, low * ratio, 0, 100), Log(low, low * ratio, 0, 100)):
        ticks = scale.ticks(6)
        assert len(ticks) <= 7
        assert ticks == sorted(set(ticks))
        assert all(-0.01 <= scale(t) <= 100.01 for t in ticks)


@given(st.floats(0.1, 1e3), st.floats(1.1, 1e6))
def test_a_scale_begins_and_ends_where_it_says(low, ratio):
    scale = Log(low, low * ratio, 10, 90)
    assert scale(low) == pytest.approx(10)
    assert scale(low * ratio) == pytest.approx(90)
    assert 10 < scale(low * math.sqrt(ratio)) < 90


@given(st.floats(1.0, 1e6))
def test_a_step_of_colour_is_one_of_the_ramp(value):
    assert 0 <= colour_step(value, 1.0, 1e6) < len(RAMP)


def test_light_and_dark_have_the_same_roles_in_other_colours():
    assert LIGHT.keys() == DARK.keys()
    assert not set(LIGHT.values()) & set(DARK.values())


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_counts_have_whole_ticks(low, span):
    assert all(tick == int(tick) for tick in Linear(low, low + span, 0, 100, whole=True).ticks(6))


def test_the_colours_of_kinds_are_no_greys_and_differ():
    for theme in (LIGHT, DARK):
        colours = [theme[role] for role in (*SERIES, "step")]
        assert len(set(colours)) == len(colours)
        for colour in colours:
            channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
            assert max(channels) - min(channels) > 60, colour


def bert(layers):
    parts = ("attention.self.query", "attention.self.key", "attention.output.dense", "intermediate.dense")
    return [f"bert.encoder.layer.{i}.{part}" for i in range(layers) for part in parts]


@pytest.mark.parametrize("room", [90, 120, 200])
def test_long_names_are_cut_where_they_are_the_same(room):
    names = bert(12)
    shown = short_names(names, room)
    assert len(set(shown)) == len(names)
    assert all(len(short) < len(name) for short, name in zip(shown, names, strict=True))


def test_numbers_and_ends_of_paths_survive():
    shown = short_names(bert(2), 190)
    assert shown[0] == "…0.attention.self.query"
    assert shown[5] == "…layer.1.attention.self.key"


@given(st.lists(st.text(max_size=60), max_size=8, unique=True), st.floats(10, 300))
def test_names_that_differ_never_look_alike(names, room):
    assert len(set(short_names(names, room))) == len(names)


DRAWING = Drawing(200, 60, [Datum([Rect(0, 0, 90, 20, "one")], 'tip "<&>'), Text(5, 50, "$x$ <b> & $", 12, "ink")])


def test_svg_alone_is_xml_in_fixed_colours():
    text = standalone(DRAWING, "a <title>", "what & how")
    root = ElementTree.fromstring(text.encode())
    assert root.find("{*}title").text == "a <title>"
    assert "var(" not in text
    assert LIGHT["one"] in text


def test_png_draws_bars_of_the_values_in_the_colours_of_paper(tmp_path):
    from matplotlib.image import imread

    bars = Bars([Bar("one", 4.0, "4 J", "tip"), Bar("$x$", 1.0, "1 J", "tip", colour="two")])
    save_png(Chart("k", "a $title$", "Measured joules.", bars, Table((), ())), tmp_path / "x.png")
    pixels = (255 * imread(tmp_path / "x.png")[:, :, :3]).round().astype(int)
    counts = [(pixels == [int(LIGHT[c][i : i + 2], 16) for i in (1, 3, 5)]).all(axis=2).sum() for c in ("one", "two")]
    assert counts[0] / counts[1] == pytest.approx(4, rel=0.1)


def test_a_picture_that_travels_alone_says_where_its_joules_come_from(report, tmp_path):
    for path in save_charts(report, tmp_path, "svg"):
        texts = [element.text for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
        assert "Modelled joules (cpu-time, 5 W per busy core)" in " ".join(texts), path.name


@pytest.mark.parametrize("form", ["svg", "png"])
def test_a_file_a_chart(report, tmp_path, form):
    written = save_charts(report, tmp_path / "figures", form)
    assert [p.stem for p in written] == [c.key for c in report.charts]
    assert all(p.stat().st_size > 1000 for p in written)
