"""Colours have roles, the same on the page and on paper; pictures leave the page whole."""

from xml.etree import ElementTree

import pytest

from ampere.reporting import save_charts
from ampere.reporting.charts import Bar, Bars
from ampere.reporting.colours import DARK, LIGHT, SERIES
from ampere.reporting.plotting import save_chart
from ampere.reporting.record import Chart, Table
from ampere.reporting.svg import Drawing, Line, Rect, Text, standalone


def test_light_and_dark_have_the_same_roles_in_other_colours():
    assert LIGHT.keys() == DARK.keys() > {*SERIES, "paper", "ink", "step", "rest"}
    assert not set(LIGHT.values()) & set(DARK.values())


def test_the_colours_of_kinds_are_no_greys_and_differ():
    for theme in (LIGHT, DARK):
        colours = [theme[role] for role in (*SERIES, "step")]
        assert len(set(colours)) == len(colours)
        for colour in colours:
            channels = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
            assert max(channels) - min(channels) > 60, colour


def test_svg_alone_is_xml_in_fixed_colours():
    marks = [Rect(0, 0, 90, 20, "one"), Line(0, 0, 9, 9, "faint"), Text(5, 50, "$x$ <b> & $\x00\ufffe", 12, "ink")]
    text = standalone(Drawing(200, 60, marks), "a <title>", "what & how")
    root = ElementTree.fromstring(text.encode())
    assert root.find("{*}title").text == "a <title>"
    assert root.find("{*}text").text == "$x$ <b> & $\\x00\N{REPLACEMENT CHARACTER}"
    assert "var(" not in text
    assert LIGHT["one"] in text


def test_png_draws_bars_of_the_values_in_the_colours_of_paper(tmp_path):
    from matplotlib.image import imread

    bars = Bars([Bar("one", 4.0, "4 J", "tip"), Bar("$x$", 1.0, "1 J", "tip", colour="two")])
    save_chart(Chart("k", "a $title$", "Measured joules.", bars, Table((), ())), tmp_path / "x.png")
    pixels = (255 * imread(tmp_path / "x.png")[:, :, :3]).round().astype(int)
    counts = [(pixels == [int(LIGHT[c][i : i + 2], 16) for i in (1, 3, 5)]).all(axis=2).sum() for c in ("one", "two")]
    assert counts[0] / counts[1] == pytest.approx(4, rel=0.1)


def test_a_file_a_chart_that_says_where_its_joules_come_from(report, tmp_path):
    written = save_charts(report, tmp_path / "figures", "svg")
    assert [path.stem for path in written] == [c.key for c in report.charts]
    for path in written:
        texts = [element.text for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
        assert "Modelled joules (cpu-time, 5 W per busy core)" in " ".join(texts), path.name
