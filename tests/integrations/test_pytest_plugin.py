"""The fixture `ampere_budget`, in a test suite of somebody else's."""

import pytest
from tests.synthetic import chain
from tests.test_energy_check import profile_of

import ampere
from ampere.storage.networks import save_network

pytest_plugins = ["pytester"]

BEGINNING = """
from pathlib import Path
import pytest
from ampere import Profile
from ampere.storage.networks import load_network
KNOWN = {"profile": Profile.load(Path("p.json"))}
cheap, wide = load_network(Path("cheap.json")), load_network(Path("wide.json"))
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """Runs test functions in a folder with a profile, two networks and the baseline of the cheap one."""
    monkeypatch.setenv("AMPERE_HOME", str(pytester.path / "home"))
    profile, cheap = profile_of(1), chain(3, 20, 30, 40)
    profile.save(pytester.path / "p.json")
    save_network(cheap, pytester.path / "cheap.json")
    save_network(chain(3, 20, 60, 40), pytester.path / "wide.json")
    ampere.check(cheap, pytester.path / "energy.json", profile=profile, write=True)
    pytester.makeconftest("from ampere.integrations.pytest_plugin import energy_budget, pytest_configure")

    def run(code):
        pytester.makepyfile(test_energy=BEGINNING + code)
        return pytester.runpytest_inprocess("--strict-markers", "-p", "no:cacheprovider")

    return run


def test_a_model_inside_its_budget_passes_and_one_above_it_fails_with_a_sentence(suite):
    ran = suite(
        "def test_inside(ampere_budget):\n"
        "    assert ampere_budget(cheap, joules='10J', **KNOWN).joules < 10\n"
        "def test_above(ampere_budget):\n"
        "    ampere_budget(cheap, joules='1mJ', **KNOWN)\n"
    )
    ran.assert_outcomes(passed=1, failed=1)
    ran.stdout.fnmatch_lines(["*per iteration (90 %: * and 1.00 mJ are allowed*"])


def test_a_change_fails_against_its_baseline_and_the_marker_holds_options(suite):
    ran = suite(
        "@pytest.mark.ampere_budget(baseline='energy.json', **KNOWN)\n"
        "class TestEnergy:\n"
        "    def test_same(self, ampere_budget):\n"
        "        assert ampere_budget(cheap).passed\n"
        "    def test_more(self, ampere_budget):\n"
        "        ampere_budget(wide)\n"
        "    @pytest.mark.ampere_budget(max_increase=10.0)\n"
        "    def test_allowed(self, ampere_budget):\n"
        "        ampere_budget(wide)\n"
    )
    ran.assert_outcomes(passed=2, failed=1)
    ran.stdout.fnmatch_lines(["*more than its baseline*"])


def test_a_budget_without_a_limit_is_an_error(suite):
    suite("def test_nothing(ampere_budget):\n    ampere_budget(cheap, **KNOWN)\n").assert_outcomes(failed=1)
