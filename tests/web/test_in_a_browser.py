"""The explorer and reports as people use them: in a real Chromium, with mouse and keyboard, on a desk and a phone."""

import csv
import json
import os
import shlex
import shutil
import socket
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.reporting import conftest as reported
from tests.synthetic import chain, conv
from tests.web.serving import profile_of, served

from ampere import Budget
from ampere.cli import main
from ampere.core import Meter, Network
from ampere.reporting import Run, make_report, save_page
from ampere.reporting.accuracy import Validated
from ampere.reporting.colours import DARK, LIGHT
from ampere.storage.places import journal_path
from ampere.web.client import Client

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH: apt-get install chromium"),
    pytest.mark.skipif(find_spec("playwright") is None, reason="no playwright: pip install 'ampere-energy[test]'"),
    pytest.mark.skipif(find_spec("uvicorn") is None, reason="no uvicorn: pip install 'ampere-energy[web]'"),
]
SLOWEST = 120_000  # milliseconds, on a machine with much else to do
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def address(folder):
    with served(folder.parent) as (_, address):
        yield address


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    root = hasattr(os, "getuid") and os.getuid() == 0  # Chromium's sandbox refuses to run as root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"] if root else [])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, address):
    """Opens a view; what it requests from elsewhere, and what it says to the console, must be nothing."""
    contexts, said, outside = [], [], []

    def opened(state, viewport=DESK, **look):
        contexts.append(browser.new_context(viewport=viewport, **look))
        contexts[-1].set_default_timeout(SLOWEST)
        page = contexts[-1].new_page()
        page.on("request", lambda request: outside.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(f"{address}#{state}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in outside if not url.startswith((address, "data:", "blob:"))] == []


def shown(page, words):
    page.wait_for_function("words => document.querySelector('main').innerText.includes(words)", arg=words)


def headline(page):
    page.wait_for_function("() => /\\d/.test(document.querySelector('.headline')?.innerText ?? '')")
    return page.locator(".headline").inner_text()


def joules(value):
    """As format.js writes them."""
    for factor, unit in ((1, "J"), (1e-3, "mJ"), (1e-6, "µJ")):
        if value >= 0.9995 * factor:
            number = value / factor
            digits = 0 if number >= 100 else 1 if number >= 10 else 2
            return f"{number:.{digits}f}\u00a0{unit}"
    raise AssertionError(value)


def test_a_slider_moves_and_the_figures_follow(opened, address):
    page = opened("view=explorer&network=cnn5&profile=a-sgd")
    with Client(address) as client:
        assert headline(page) == f"{joules(client.estimate('cnn5', profile='a-sgd').joules)} per iteration"
        slider = page.get_by_role("slider").first
        slider.focus()
        for _ in range(5):
            page.keyboard.press("ArrowLeft")
        narrow = client.estimate("cnn5", profile="a-sgd", widths={"0": 27})
        expected = f"{joules(narrow.joules)} per iteration"
        page.wait_for_function("words => document.querySelector('.headline').innerText === words", arg=expected)
    assert "w.0=27" in page.url
    assert page.locator("#layers svg rect[stroke-dasharray]").count() == 1  # the ghost of the width as traced
    page.get_by_role("button", name="Undo").click()
    page.wait_for_function("() => !location.hash.includes('w.0=27')")


def test_a_long_network_is_few_shapes_and_its_slider_notes_the_address_sparingly(opened, address):
    """So that every frame of a drag can be drawn, and no browser refuses to note the state."""
    with Client(address) as client:
        long = client.upload(chain(3, *[8, 12] * 155).renamed("long"))
    page = opened(f"view=explorer&network={long}&profile=a-sgd")
    before = headline(page)
    page.evaluate(
        """() => {
          window.noted = 0;
          for (const name of ["pushState", "replaceState"]) {
            const own = history[name].bind(history);
            history[name] = (...words) => { window.noted += 1; own(...words); };
          }
          const slider = document.querySelector("input[type=range]");
          for (let value = 2; value <= 60; value += 1) {
            slider.value = value;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
          }
          slider.dispatchEvent(new Event("change", { bubbles: true }));
        }"""
    )
    page.wait_for_function("words => document.querySelector('.headline').innerText !== words", arg=before)
    assert page.evaluate("() => [window.noted, document.querySelectorAll('#layers svg rect').length]") == [2, 0]
    assert 2 < page.locator("#layers svg path").count() < 60
    page.wait_for_function("() => /w\\.[^=]*=/.test(location.hash)")
    page.get_by_role("button", name="Undo").click()  # all of the drag at once
    page.wait_for_function("words => document.querySelector('.headline').innerText === words", arg=before)


def test_a_link_shares_the_state(opened, address):
    run = "iterations=1000&battery=15Wh&grid=400"
    page = opened(f"view=explorer&network=cnn5&profile=b-sgd&w.0=8&w.8=100&batch=20&{run}")
    with Client(address) as client:
        same = client.estimate("cnn5", profile="b-sgd", widths={"0": 8, "8": 100}, batch=20)
    assert headline(page) == f"{joules(same.joules)} per iteration"
    shown(page, "CO₂e")
    shown(page, "Of the battery")
    assert page.evaluate("() => document.querySelector('code').textContent").startswith("ampere estimate network.json")


def test_the_buttons_search(opened):
    page = opened("view=explorer&network=lenet5&profile=a-sgd&w.0=1&w.3=16&w.7=20&w.9=80")
    headline(page)
    page.evaluate(  # a message is gone after some seconds
        """() => {
          window.messages = [];
          const message = document.getElementById("message");
          new MutationObserver(() => window.messages.push(message.textContent)).observe(message, { childList: true });
        }"""
    )
    page.get_by_role("button", name="Widest at this budget").click()
    page.wait_for_function("() => window.messages.some(words => words.includes('of 300,001 networks'))")


def test_views_open_and_the_device_can_be_changed(opened):
    page = opened("view=explorer")
    headline(page)
    page.get_by_label("Device").select_option("Board b")
    page.wait_for_function("() => location.hash.includes('b-sgd')")
    for view, words in {
        "compare": "cheapest is",
        "profile": "What one more minute of profiling would bring",
        "runs": "No run is recorded yet",
    }.items():
        page.get_by_role("link", name=view.capitalize()).click()
        shown(page, words)
        assert page.locator("nav a[aria-current=page]").inner_text().lower() == view


def test_a_point_of_the_front_opens_in_the_explorer(opened):
    page = opened("view=explorer&network=lenet5&profile=a-sgd")
    headline(page)
    page.get_by_role("link", name="Pareto").click()
    shown(page, "are on the front")
    assert page.locator("nav a[aria-current=page]").inner_text() == "Pareto"
    page.get_by_label("Open a network of the front").select_option(index=2)
    headline(page)
    assert "w.0=" in page.url


class Counter:
    """A meter of one joule for each step."""

    def __init__(self, meter):
        self.about, self.steps = meter, 0

    def describe(self):
        return self.about.to_json()

    def start(self):
        self.steps = 0

    def stop(self):
        return float(self.steps)


def test_a_run_is_seen_while_it_goes_on(opened, folder):
    meter, path = Meter("counter of a board", False, simulated=True), folder / "job.json"
    replace(profile_of("x"), meter=meter).save(path)
    counter, page = Counter(meter), opened("view=runs")
    try:
        shown(page, "No run is recorded yet")
        network = chain(3, 20, 20).renamed("job")
        with Budget(10_000, iterations=5000, meter=counter, record=True, network=network, profile=path) as budget:
            while "job is being trained" not in page.inner_text("main") and budget.steps_done < 5000:
                counter.steps += 1
                budget.step()
                page.wait_for_timeout(5)
            shown(page, "10.0\u00a0kJ spent in")
            shown(page, "5.00\u00a0kJ forecast for the whole job")
            for _ in range(200):  # enough to be recorded
                counter.steps += 1
                budget.step()
        shown(page, "per iteration were spent")
        assert "is being trained" not in page.inner_text("main")
    finally:
        path.unlink()
        journal_path(path).unlink(missing_ok=True)


def saved(page, button):
    """The file that a button saves."""
    with page.expect_download() as download:
        button.click()
    return Path(download.value.path())


def test_pictures_tables_and_the_command_line_are_exported(opened, address, tmp_path, monkeypatch, capsys):
    page = opened("view=explorer&network=lenet5&profile=a-sgd&w.0=3")
    headline(page)
    with Client(address) as client:
        expected = client.estimate("lenet5", profile="a-sgd", widths={"0": 3})
    layers = [layer.joules for layer in expected.layers if layer.kind != "step"]
    button = page.locator("#layers .exports").get_by_role("button", name="SVG")
    drawn = saved(page, button).read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert "var(--" not in drawn
    assert saved(page, page.get_by_role("button", name="PNG")).read_bytes().startswith(b"\x89PNG")
    with saved(page, page.get_by_role("button", name="CSV")).open(encoding="utf-8", newline="") as file:
        assert [float(row["joules"]) for row in csv.DictReader(file)] == pytest.approx(layers)
    rows = json.loads(saved(page, page.get_by_role("button", name="JSON")).read_text(encoding="utf-8"))
    assert [row["joules"] for row in rows] == pytest.approx(layers)

    page.get_by_text("The same figures on the command line").click()
    network = saved(page, page.get_by_role("button", name="Save the network"))
    (tmp_path / "network.json").write_bytes(network.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert main([*shlex.split(page.locator("details code").first.inner_text())[1:], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["joules_per_iteration"] == pytest.approx(expected.joules)


def press_until(page, key, selector):
    for _ in range(80):
        page.keyboard.press(key)
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{key} never comes to {selector}")


def test_the_keyboard_is_enough(opened):
    page = opened("view=explorer&network=lenet5&profile=a-sgd")
    before = headline(page)
    press_until(page, "Tab", ".skip")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "figures"
    press_until(page, "Tab", "input[type=range]")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("words => document.querySelector('.headline').innerText !== words", arg=before)
    assert "w.0=7" in page.url
    page.keyboard.press("Control+z")
    page.wait_for_function("words => document.querySelector('.headline').innerText === words", arg=before)
    press_until(page, "Tab", "#layers summary")
    page.keyboard.press("Enter")
    page.wait_for_selector("#layers table")
    press_until(page, "Shift+Tab", "nav a[data-view=compare]")
    page.keyboard.press("Enter")
    shown(page, "cheapest is")


def test_two_tabs_have_states_of_their_own_and_both_hear_of_a_new_device(opened, folder):
    first = opened("view=explorer&network=lenet5&profile=a-sgd")
    second = first.context.new_page()
    second.goto(first.url.replace("a-sgd", "b-sgd"))
    assert headline(first) != headline(second)
    path = folder / "c-sgd.json"
    profile_of("c").save(path)
    try:
        for page, own in ((first, "a-sgd"), (second, "b-sgd")):
            page.wait_for_function("() => [...document.querySelectorAll('option')].some(e => e.value === 'Board c')")
            assert own in page.url
    finally:
        path.unlink()
        journal_path(path).unlink(missing_ok=True)


def free_port():
    """A port that no outgoing connection is given, so that a server can come back to it."""
    for port in range(23_000 + os.getpid() % 5_000, 32_000):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


def test_a_server_that_was_killed_comes_back(browser, folder):
    port, context = free_port(), browser.new_context(viewport=DESK)
    context.set_default_timeout(SLOWEST)
    page = context.new_page()
    with served(folder.parent, port=port) as (process, address):
        page.goto(f"{address}#view=explorer&network=cnn5&profile=a-sgd")
        before = headline(page)
        process.kill()
        process.wait()
        page.get_by_role("slider").first.press("ArrowLeft")
        page.wait_for_function("() => document.getElementById('message').innerText.includes('start it again')")
        assert headline(page) == before
    with served(folder.parent, port=port):
        page.wait_for_function("words => document.querySelector('.headline').innerText !== words", arg=before)
        headline(page)
        assert "w.0=31" in page.url  # what was turned meanwhile
    context.close()


@pytest.mark.parametrize(("viewport", "scheme"), [(DESK, "light"), (PHONE, "dark")], ids=["desk", "phone"])
def test_nothing_is_wider_than_the_screen(opened, viewport, scheme):
    page = opened("view=explorer&network=transformer&profile=a-sgd", viewport, color_scheme=scheme)
    headline(page)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


SHORTENED = """async ([names, pixels]) => {
  const { shortNames } = await import("/static/charts.js");
  return pixels.map((room) => shortNames(names, room));
}"""
TICKS = """async () => {
  const { decades, ticks } = await import("/static/draw.js");
  const found = [];
  for (let i = 0; i < 400; i += 1) {
    const low = 10 ** (18 * Math.sin(i) ** 2 - 9), high = low * (1.01 + 10 ** (5 * Math.cos(7 * i) ** 2));
    found.push([low, high, ticks(low, high, 6), decades(low, high, 7)]);
  }
  return found;
}"""


def test_names_that_differ_never_look_alike_and_ticks_rise_within_their_scale(opened):
    page = opened("view=runs")
    parts = ("attention.self.query", "attention.self.key", "attention.output.dense", "intermediate.dense")
    names = [f"bert.encoder.layer.{i}.{part}" for i in range(12) for part in parts]
    narrow, *_, wide = page.evaluate(SHORTENED, [names, [90, 120, 160, 190]])
    assert len(set(narrow)) == len(set(wide)) == len(names)
    assert all(len(short) < len(name) for short, name in zip(wide, names, strict=True))
    assert wide[0] == "…0.attention.self.query"  # the part that all names share goes first
    odd = ["", ".", "..", "a." * 40, "a." * 41, "a" * 60, "a" * 61, "b" + "a" * 60, "…" * 30, "x.y.z" * 9]
    for shown_names in page.evaluate(SHORTENED, [odd, [10, 40, 90, 300]]):
        assert len(set(shown_names)) == len(odd)
    for low, high, even, logarithmic in page.evaluate(TICKS):
        for ticks in (even, logarithmic):
            assert ticks == sorted(set(ticks))
            assert all(0.998 * low <= tick <= 1.002 * high for tick in ticks)
        assert 2 <= len(even) <= 8
        assert len(logarithmic) <= 8


def test_every_control_has_a_name(opened):
    page = opened("view=explorer&network=resnet&profile=a-sgd")
    headline(page)
    for role in ("slider", "spinbutton", "combobox", "button"):
        for control in page.get_by_role(role).all():
            assert page.evaluate(
                "e => Boolean(e.labels?.length || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby')"
                " || e.innerText.trim())",
                control.element_handle(),
            )


def test_a_page_of_another_origin_gets_nothing(browser, address):
    context = browser.new_context()
    page = context.new_page()
    page.route("https://evil.example/", lambda route: route.fulfill(body="<p>hello</p>", content_type="text/html"))
    page.goto("https://evil.example/")
    outcome = page.evaluate(
        """async address => {
          const tries = [
            fetch(address + "api/v1/profiles"),
            fetch(address + "api/v1/what-if", {method: "POST", body: "{}", headers: {"content-type": "text/plain"}}),
          ];
          return (await Promise.allSettled(tries)).map(each => each.status);
        }""",
        address,
    )
    assert outcome == ["rejected", "rejected"]
    context.close()


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
SIZES = "svg => [...svg.querySelectorAll('.datum')].map(e => e.getBoundingClientRect()).map(b => [b.width, b.height])"
FILLS = """() => [document.body, document.querySelector('#model-1-layers .datum rect')].map(
  (e, i) => getComputedStyle(e)[i ? 'fill' : 'backgroundColor'])"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report of two models with different batches, one of them of equal blocks, and the file that it is."""
    profile, network = reported.profile.__wrapped__(), reported.network.__wrapped__()
    blocks = [replace(conv(8, 8 + 16 * k), name=f"encoder.layers.{i}.part{k}") for i in range(14) for k in (0, 1)]
    deep = Network((*blocks, replace(conv(8, 8), name="head")), 20, "deep")
    validated = Validated.from_json(reported.validation.__wrapped__())
    runs = [Run(10_000, 54_000.0, "15Wh")] * 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ampere.reporting.surfaces.FINEST", 10)
        made = make_report(profile, [network, deep], runs, validated)
    [path] = save_page(made, tmp_path_factory.mktemp("report") / "report.html")
    return made, path.as_uri()


@pytest.fixture
def read(browser, report):
    """Opens the report from its file; it requests nothing else, and says nothing to the console."""
    contexts, said = [], []

    def read(viewport=DESK, **look):
        contexts.append(browser.new_context(viewport=viewport, **look))
        contexts[-1].set_default_timeout(SLOWEST)
        page = contexts[-1].new_page()
        page.on("request", lambda request: said.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(report[1])
        return page

    yield read
    for context in contexts:
        context.close()
    assert [words for words in said if words != report[1] and not words.startswith(("data:", "blob:"))] == []


@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_every_chart_of_a_report_is_drawn_with_all_its_data(read, report, viewport):
    page = read(viewport)
    for chart in report[0].charts:
        if chart.key == "models-iteration":
            page.get_by_role("button", name="per iteration").click()
            assert not page.locator("#models-sample").is_visible()
            assert "per iteration" in page.locator("#models p:visible").first.inner_text()
        drawn = page.locator(f"#{chart.key}").get_by_role("img", name=chart.title).first
        sizes = drawn.evaluate(SIZES)
        twice = chart.key == "methods"  # measuring twice is a line, not a bar
        assert len(sizes) == len(chart.table.rows) - twice, chart.key
        assert all(width > 0 and height > 0 for width, height in sizes), chart.key
        assert drawn.evaluate(OUTSIDE) == []
        assert drawn.evaluate(OVERLAPPING) == []
        page.locator(f"#{chart.key} > details summary").first.click()
        page.locator(f"#{chart.key} > details td").first.wait_for()
    inside = page.locator("#model-2-layers details.inside").first
    inside.locator("summary").first.click()
    inside.locator("svg .datum").first.wait_for()
    assert inside.locator("svg .datum").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]


def rgb(colour):
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


def test_a_report_in_the_dark_and_on_paper_ordered_pointed_at_and_saved(read):
    page = read(color_scheme="dark", reduced_motion="reduce")
    assert page.evaluate(FILLS) == [rgb(DARK["paper"]), rgb(DARK["one"])]
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(FILLS) == [rgb(LIGHT["paper"]), rgb(LIGHT["one"])]
    assert not page.locator("button").first.is_visible()
    page.emulate_media(media="screen", color_scheme="light")
    assert page.evaluate(FILLS) == [rgb(LIGHT["paper"]), rgb(LIGHT["one"])]

    def lengths():
        """Of the bars, from the top down."""
        boxes = [r.bounding_box() for r in page.locator("#model-1-layers .datum rect").all()]
        return [box["width"] for box in sorted(boxes, key=lambda box: box["y"])]

    running, button = lengths(), page.locator("#model-1-layers").get_by_role("button", name="most expensive first")
    button.click()
    assert lengths() == sorted(running, reverse=True) != running
    button.click()
    assert lengths() == running
    page.locator("#model-1-layers .datum rect").first.hover()
    assert page.locator("#tip").inner_text().startswith("stem (convolution 3 → 24): ")
    assert page.evaluate("document.scripts.length") == 2
    page.locator("#model-1-layers > details summary").first.click()
    page.get_by_role("cell", name="</text><script>alert(1)</script>").wait_for()
    exports = page.locator("#model-1-layers .exports")
    drawn = saved(page, exports.get_by_role("button", name="SVG")).read_text(encoding="utf-8")
    assert "stem (convolution 3 → 24): " in drawn
    assert "var(--" not in drawn
    assert saved(page, exports.get_by_role("button", name="PNG")).read_bytes().startswith(b"\x89PNG")
    with saved(page, exports.get_by_role("button", name="CSV")).open(encoding="utf-8", newline="") as file:
        assert next(csv.DictReader(file))["layer"] == "stem"


def test_without_scripts_a_report_still_says_its_main_figures(read, report):
    page = read(java_script_enabled=False)
    words = page.inner_text("noscript") if page.locator("noscript h1").count() else ""
    for section in report[0].sections:
        assert section.title in words
        assert all(large in words for large, _ in section.figures)
    assert "stem" in words
