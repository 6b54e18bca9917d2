"""Scales put values where they belong; pictures leave the page whole."""

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ampere.reporting import drawing as scales
from ampere.reporting import save_charts, svg
from ampere.reporting.drawing import DARK, LIGHT, RAMP, Datum, Drawing, Rect, Text, fitted
from ampere.reporting.heatmap import step
from ampere.reporting.raster import save_png

SIZES = st.floats(1e-9, 1e9)


@given(SIZES, st.floats(1.01, 1e6))
def test_ticks_are_within_the_scale_and_rise(low, ratio):
    for scale in (scales.Linear(low, low * ratio, 0, 100), scales.Log(low, low * ratio, 0, 100)):
        ticks = scale.ticks(6)
        assert len(ticks) <= 7
        assert ticks == sorted(set(ticks))
        assert all(-0.01 <= scale(t) <= 100.01 for t in ticks)


@given(st.floats(0.1, 1e3), st.floats(1.1, 1e6))
def test_a_scale_begins_and_ends_where_it_says(low, ratio):
    scale = scales.Log(low, low * ratio, 10, 90)
    assert scale(low) == pytest.approx(10)
    assert scale(low * ratio) == pytest.approx(90)
    assert 10 < scale(low * math.sqrt(ratio)) < 90


@given(st.floats(1.0, 1e6))
def test_a_step_of_colour_is_one_of_the_ramp(value):
    assert 0 <= step(value, 1.0, 1e6) < len(RAMP)


def test_light_and_dark_have_the_same_roles_in_other_colours():
    assert LIGHT.keys() == DARK.keys()
    assert not set(LIGHT.values()) & set(DARK.values())


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_things_that_come_one_by_one_have_whole_ticks(low, span):
    assert all(tick == int(tick) for tick in scales.Linear(low, low + span, 0, 100, whole=True).ticks(6))


def test_a_long_name_loses_its_middle():
    name = "encoder.layers.11.self_attention.output_projection"
    shown = fitted(name, 120)
    assert len(shown) < len(name)
    assert (shown[0], shown[-1], "…" in shown) == ("e", "n", True)


DRAWING = Drawing(200, 60, [Datum([Rect(0, 0, 90, 20, "one")], 'tip "<&>'), Text(5, 50, "$x$ <b> & $", 12, "ink")])


def test_svg_alone_is_xml_in_fixed_colours():
    text = svg.alone(DRAWING, "a <title>", "what & how")
    root = ElementTree.fromstring(text.encode())
    assert root.find("{*}title").text == "a <title>"
    assert "var(" not in text
    assert LIGHT["one"] in text


def test_png_draws_the_same_marks(tmp_path):
    save_png(DRAWING, tmp_path / "x.png")
    from matplotlib.image import imread

    pixels = imread(tmp_path / "x.png")
    assert pixels.shape[:2] == (150, 500)
    red, green, blue = pixels[20, 100, :3]
    assert blue > green > red  # the bar
    assert pixels[20, 400, :3].min() == 1.0  # the paper


def test_a_picture_that_travels_alone_says_where_its_joules_come_from(report, tmp_path):
    for path in save_charts(report, tmp_path, "svg"):
        texts = [element.text for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
        assert "Modelled joules (cpu-time, 5 W per busy core)" in " ".join(texts), path.name


@pytest.mark.parametrize("form", ["svg", "png"])
def test_a_file_a_chart(report, tmp_path, form):
    written = save_charts(report, tmp_path / "figures", form)
    assert [p.stem for p in written] == [c.key for c in report.charts]
    assert all(p.stat().st_size > 1000 for p in written)
