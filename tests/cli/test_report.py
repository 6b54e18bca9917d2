"""`ampere report` as people run it, and what it refuses."""

import json

import pytest
from tests.reporting.conftest import profile as synthetic_profile
from tests.synthetic import chain

from ampere.core import Network
from ampere.storage import save_network


@pytest.fixture
def files(tmp_path):
    """A profile and a network on disk, made without a device."""
    synthetic_profile.__wrapped__().save(tmp_path / "profile.json")
    save_network(Network(chain(3, 24, 48, 16).layers, 10, "tidy"), tmp_path / "net.json")
    return tmp_path


def test_a_stored_network_needs_no_torch(files, torchless_python):
    from .conftest import Ampere

    python, environment = torchless_python
    ran = Ampere(files / "home", files, python, **environment)("report", "profile.json", "net.json", "--json")
    assert ran.code == 0, ran.err
    assert ran.record["joules"] == "modelled"
    page = (files / "report.html").read_text()
    assert ran.record["bytes"] == len(page.encode()) < 500_000
    assert "Where the energy of tidy goes" in page


def test_the_run_is_reported_as_estimate_reports_it(files, here):
    ran = here(
        "report", "profile.json", "net.json", "--epochs", 3, "--samples", 1000, "--battery", "15Wh", "--out", "r.html"
    )
    assert (ran.code, ran.out) == (0, "")
    assert "charts in r.html" in ran.notices
    page = (files / "r.html").read_text()
    assert "for 300 iterations" in page
    assert "of a battery of 15" in page


def test_charts_one_by_one(files, here):
    ran = here("report", "profile.json", "net.json", "--format", "svg", "--out", "figures", "--json")
    written = json.loads(ran.out)["files"]
    assert len(written) == len(list((files / "figures").glob("*.svg"))) >= 6


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nowhere.json"], 4, "does not exist"),
        (["net.json", "--no-profiling"], 4, "no profile of this device"),
        (["profile.json", "nosuchfamily"], 2, "nosuchfamily"),
        (["net.json", "--profile", "net.json"], 4, "is a network, not a profile"),
        (["profile.json", "net.json", "--battery", "big"], 2, "15Wh"),
        (["profile.json", "net.json", "--epochs", "3"], 2, "--samples"),
        (["profile.json", "net.json", "--batch", "4"], 2, "trace the model again"),
        (["profile.json", "--validation", "profile.json"], 4, "is not a validation"),
        (["profile.json", "--out", "folder"], 2, "is a folder"),
        (["profile.json", "--format", "svg", "--out", "net.json"], 7, "net.json"),
        (["profile.json", "--format", "pdf"], 2, "pdf"),
        ([], 2, "no profile of this device yet: name a model"),
    ],
)
def test_what_makes_no_sense_is_one_line(files, here, refused, words, code, said):
    (files / "folder").mkdir()
    refused(here("report", *words), code, said)


def test_two_profiles_are_devices_side_by_side(files, here):
    (files / "second.json").write_bytes((files / "profile.json").read_bytes())
    ran = here("report", "profile.json", "second.json", "net.json", "--out", "two.html")
    assert ran.code == 0
    assert "The devices side by side" in (files / "two.html").read_text()
