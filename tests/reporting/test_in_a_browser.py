"""The page as people get it: opened in a real Chromium, on a desk, on a phone, in the dark, on paper."""

import os
import shutil
from dataclasses import replace
from importlib.util import find_spec

import pytest
from tests.reporting.test_validation_file import written
from tests.synthetic import conv

from ampere.core import Network
from ampere.reporting import Run, make_report, read_validation, save_page
from ampere.reporting.drawing import DARK, LIGHT
from ampere.reporting.page import FULL, HALF, PHONE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH: apt-get install chromium"),
    pytest.mark.skipif(find_spec("playwright") is None, reason="no playwright: pip install 'ampere-energy[test]'"),
]
DESK, SMALL_PHONE = {"width": 1100, "height": 800}, {"width": 360, "height": 740}
OVERLAPPING = """svg => {
  const boxes = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
  const beside = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1;
  const apart = (a, b) => beside(a, b) || a.bottom <= b.top + 4 || b.bottom <= a.top + 4;
  return boxes.flatMap(([a, x], i) => boxes.slice(i + 1).filter(([, y]) => !apart(x, y)).map(([b]) => [a, b]));
}"""
OUTSIDE = """svg => {
  const paper = svg.getBoundingClientRect();
  const beside = b => b.left < paper.left - 1 || b.right > paper.right + 1;
  const out = b => beside(b) || b.top < paper.top - 1 || b.bottom > paper.bottom + 1;
  return [...svg.querySelectorAll("text")].filter(t => out(t.getBoundingClientRect())).map(t => t.textContent);
}"""


@pytest.fixture(scope="module")
def shown(profile, network, validation, tmp_path_factory):
    """A report with everything in it, and the file that it is."""
    folder = tmp_path_factory.mktemp("page")
    validated = read_validation(written(folder, validation))
    report = make_report(profile, [network], [Run(10_000, 54_000.0, "15Wh")], validated)
    [path] = save_page(report, folder / "report.html")
    return report, path.as_uri()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    root = hasattr(os, "getuid") and os.getuid() == 0  # Chromium's sandbox refuses to run as root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"] if root else [])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, shown):
    """Opens the report; what it requests and what it says to the console is in `requests` and `said`."""
    contexts = []

    def opened(viewport, **look):
        contexts.append(browser.new_context(viewport=viewport, **look))
        page = contexts[-1].new_page()
        page.requests, page.said = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.goto(shown[1])
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize(("viewport", "which"), [(DESK, "wide"), (SMALL_PHONE, "narrow")], ids=["desk", "phone"])
def test_every_chart_is_drawn_with_all_its_data(open_page, shown, viewport, which):
    page = open_page(viewport)
    for chart in shown[0].charts:
        width = PHONE if which == "narrow" else FULL if chart.full else HALF
        [drawn] = [s for s in page.locator(f"#{chart.key} svg.chart").all() if s.is_visible()]
        assert which in drawn.get_attribute("class")
        box = drawn.bounding_box()
        assert box["width"] > 250
        assert box["height"] > 40
        boxes = [datum.bounding_box() for datum in drawn.locator(".datum").all()]
        assert len(boxes) == len(chart.plot.draw(width).data)
        assert all(b and b["width"] > 0 and b["height"] > 0 for b in boxes), chart.key


@pytest.mark.parametrize("viewport", [DESK, SMALL_PHONE], ids=["desk", "phone"])
def test_words_are_within_their_charts_and_not_on_each_other(open_page, viewport):
    page = open_page(viewport)
    for drawn in page.locator("svg.chart:visible").all():
        assert drawn.evaluate(OUTSIDE) == []
        assert drawn.evaluate(OVERLAPPING) == []


def test_nothing_is_loaded_and_the_console_is_silent(open_page, shown):
    page = open_page(DESK)
    page.locator("button[data-order]").first.click()
    page.locator(".datum:visible").first.hover()
    page.wait_for_timeout(200)
    assert page.requests == [shown[1]]
    assert page.said == []


def test_a_small_phone_scrolls_only_downwards(open_page):
    page = open_page(SMALL_PHONE)
    for details in page.locator("details").all():
        details.evaluate("details => details.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.fixture(scope="module")
def two_models(profile, network, tmp_path_factory):
    """A report of two models with different batches, one of them of equal blocks."""
    blocks = [replace(conv(8, 8 + 16 * k), name=f"encoder.layers.{i}.part{k}") for i in range(14) for k in (0, 1)]
    deep = Network((*blocks, replace(conv(8, 8), name="head")), 20, "deep")
    [path] = save_page(make_report(profile, [network, deep]), tmp_path_factory.mktemp("two") / "report.html")
    return path.as_uri()


@pytest.mark.parametrize("viewport", [DESK, SMALL_PHONE], ids=["desktop", "phone"])
def test_models_switch_between_per_sample_and_per_iteration(open_page, two_models, viewport):
    page = open_page(viewport)
    page.goto(two_models)
    sample, iteration = page.locator("#models-sample"), page.locator("#models-iteration")
    assert (sample.is_visible(), iteration.is_visible()) == (True, False)
    assert "per sample" in page.locator("#models p:visible").first.inner_text()
    page.get_by_role("button", name="per iteration").click()
    assert (sample.is_visible(), iteration.is_visible()) == (False, True)
    assert "per iteration" in page.locator("#models p:visible").first.inner_text()
    assert page.said == []


def test_without_scripts_one_basis_is_shown_and_no_switch(open_page, two_models):
    page = open_page(DESK, java_script_enabled=False)
    page.goto(two_models)
    assert page.locator("#models-sample").is_visible()
    assert not page.locator("#models-iteration").is_visible()
    assert not page.locator(".switch").is_visible()


def test_blocks_can_be_opened(open_page, two_models):
    page = open_page(SMALL_PHONE)
    page.goto(two_models)
    inside = page.locator("#model-2-layers details.inside").first
    assert not inside.locator("svg.narrow").first.is_visible()
    inside.locator("summary").first.click()
    drawn = inside.locator("svg.narrow").first
    assert drawn.is_visible()
    assert drawn.locator(".datum").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def colours(page):
    first = page.locator("#model-1-layers svg.wide .datum rect").first
    look = "element => [getComputedStyle(document.body).backgroundColor, getComputedStyle(element).fill]"
    return first.evaluate(look)


def rgb(colour):
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


def test_the_dark_has_colours_of_its_own_and_paper_is_light(open_page):
    light, page = open_page(DESK, color_scheme="light"), open_page(DESK, color_scheme="dark")
    assert colours(light) == [rgb(LIGHT["paper"]), rgb(LIGHT["one"])]
    assert colours(page) == [rgb(DARK["paper"]), rgb(DARK["one"])]
    page.emulate_media(media="print", color_scheme="dark")
    assert colours(page) == [rgb(LIGHT["paper"]), rgb(LIGHT["one"])]


def test_bars_can_be_ordered_by_cost_and_back(open_page):
    page = open_page(DESK, reduced_motion="reduce")
    button = page.locator("#model-1-layers button")

    def lengths():
        """Of the bars, from the top down."""
        boxes = [r.bounding_box() for r in page.locator("#model-1-layers svg.wide .datum rect").all()]
        return [box["width"] for box in sorted(boxes, key=lambda box: box["y"])]

    running = lengths()
    button.click()
    assert lengths() == sorted(running, reverse=True) != running
    button.click()
    assert lengths() == running


def test_a_tip_says_the_figure(open_page):
    page = open_page(DESK)
    page.locator("#model-1-layers svg.wide .datum rect").first.hover()
    assert page.locator("#tip").inner_text().startswith("stem (convolution 3 → 24): ")


def test_a_name_that_looks_like_code_is_a_name(open_page):
    page = open_page(DESK)
    assert page.evaluate("document.scripts.length") == 1
    assert page.get_by_text("</text><script>alert(1)</script>").count() > 0


def test_it_makes_sense_without_scripts(open_page, shown):
    page = open_page(DESK, java_script_enabled=False)
    assert page.locator("svg.chart:visible").count() == len(shown[0].charts)
    assert not page.locator("button").first.is_visible()
    summary = page.locator("#model-1-layers summary")
    summary.click()
    assert page.locator("#model-1-layers td").first.is_visible()


def test_every_chart_has_words_for_those_who_do_not_see_it(open_page, shown):
    page = open_page(DESK, java_script_enabled=False)
    for chart in shown[0].charts:
        drawn = page.get_by_role("img", name=chart.title)
        assert drawn.count() >= 1
        assert page.locator(f"#{chart.key} table tbody tr").count() == len(chart.table.rows)
