"""The site is built strictly: no broken link or anchor, every command and public name on its page."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ampere
from ampere.cli.parsing import TITLES

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("mkdocs", "material", "mkdocstrings")),
    reason="MkDocs is not installed here (pip install 'ampere-energy[docs]')",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize("part", ["tutorial", "how-to", "reference", "explanation", "decisions"])
def test_every_part_has_a_page_to_begin_with(site, part):
    assert (site / part / "index.html").exists()


def test_no_marker_is_left(site):
    assert not [page.name for page in site.rglob("*.html") if "generated:" in page.read_text(encoding="utf-8")]


def test_tables_and_lists_are_drawn_as_such(site):
    for page in site.rglob("*.html"):
        text = re.sub(r"<(pre|code)\b.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert "|---" not in text, page.name
        assert not re.search(r"<p>[^<]*\n- ", text), page.name


def test_every_flag_of_every_command_is_on_the_page(site):
    page = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    for name in TITLES:
        shown = subprocess.run([sys.executable, "-m", "ampere", name, "--help"], capture_output=True, text=True).stdout
        section = page.split(f'id="ampere-{name}"')[1].split("<h2")[0]
        for flag in set(re.findall(r"--[a-z][a-z-]+", shown.split("examples:")[0])) - {"--help"}:
            assert flag in section, f"ampere {name} {flag}"


def test_every_public_name_is_on_the_page(site):
    page = (site / "reference" / "api.html").read_text(encoding="utf-8")
    for name in ampere.__all__:
        assert name == "__version__" or f"ampere.{name}" in page


def test_every_decision_is_listed(site):
    page = (site / "decisions" / "index.html").read_text(encoding="utf-8")
    assert all(f'{path.stem}.html"' in page for path in (ROOT / "docs" / "decisions").glob("0*.md"))


def test_pages_need_no_network(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(https?://[^"]*\.(?:js|css|woff2?))', page)
