"""`ampere search` from words to a table, a picture and a file."""

import json

import pytest
from tests.searching.test_searching import NET, profile


@pytest.fixture
def search(here, tmp_path):
    (tmp_path / "net.py").write_text(NET)
    profile().save(tmp_path / "p.json")
    profile("adam").save(tmp_path / "adam.json")
    quick = ["--candidates", 5000, "--trials", 3, "--steps", 2]
    return lambda *words: here("search", *words, "--profile", "p.json", "--allow-other-device", "--quiet", *quick)


def test_a_table_a_picture_and_a_file(search, tmp_path):
    ran = search("cnn5", "--budget", "50%")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("cnn5: ")
    assert "5,000 candidates in" in ran.said
    assert "modelled by synthetic, not measured" in ran.said
    assert max(map(len, ran.out.splitlines())) <= 120
    assert (tmp_path / "search-cnn5.png").read_bytes().startswith(b"\x89PNG")
    saved = json.loads((tmp_path / "search-cnn5.json").read_text())
    assert len(saved["trials"]) == 3
    assert all(trial["at_chance"] for trial in saved["trials"])  # two steps teach nothing
    assert saved["front"] == []
    assert "no trained network is above chance level" in ran.out.splitlines()[0]
    assert "(chance)" in ran.out


def test_json_reports_the_same(search):
    record = search("cnn5", "--budget", "50%", "--json", "--no-plot", "--out", "s.json").record
    assert record["written"] == ["s.json"]
    assert all(c["joules"] <= record["budget_joules"] for c in record["chosen"])


def test_screening_alone(search):
    ran = search("cnn5", "--budget", "50%", "--no-training")
    assert ran.code == 0, ran.err
    assert "12 of 5,000 candidates are worth training" in ran.said


def test_two_optimisers_and_a_function_of_ones_own(search):
    words = ["--vary", "width=8..64", "--train", "net.py:train", "--no-plot", "--json", "--profile", "adam.json"]
    record = search("net.py:build", "--budget", "90%", "--confidence", "50%", *words).record
    assert {c["optimizer"] for c in record["chosen"]} == {"sgd", "adam"}
    assert record["trained_with"] == "net.py:train"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["cnn5", "--budget", "0.01%"], 2, ["cannot be met", "least that was found", "channels"]),
        (["cnn5", "--budget", "100%"], 2, ["below 100%"]),
        (["cnn5", "--budget", "much"], 2, ["budget 'much'"]),
        (["cnn5", "--budget", "50%", "--confidence", "20%"], 2, ["50% to 99.9%"]),
        (["cnn5", "--budget", "50%", "--batch", "0"], 2, ["whole number from 1"]),
        (["cnn5", "--budget", "50%", "--optimizers", "luck"], 2, ["no optimizer 'luck'"]),
        (["cnn5", "--budget", "50%", "--vary", "width=1..9"], 2, ["function of your own"]),
        (["cnn5", "--budget", "50%", "--train", "net.py"], 2, ["file.py:function"]),
        (["cnn5", "--budget", "10%", "--battery", "15Wh"], 2, ["--iterations"]),
        (["cnn55", "--budget", "50%"], 2, ["did you mean cnn5"]),
        (["net.py:build", "--budget", "50%"], 2, ["net.py:build needs arguments to vary"]),
        (["net.py:build", "--budget", "50%", "--vary", "width=9..1"], 2, ["not a range"]),
        (["net.py:build", "--budget", "50%", "--vary", "nose=1..9"], 3, ["nose"]),
        (["cnn5"], 2, ["--budget"]),
    ],
)
def test_what_is_wrong_is_said_in_one_line(search, refused, words, code, says):
    refused(search(*words), code, *says)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--budget", "much"], 2, ["budget 'much'"]),
        (["--budget", "100%"], 2, ["below 100%"]),
        (["--budget", "10%", "--battery", "15Wh"], 2, ["--iterations"]),
        (["--budget", "50%", "--train", "gone.py:train"], 3, ["gone.py is not there"]),
        (["--budget", "50%", "--train", "net.py:gone"], 3, ["no function 'gone'"]),
    ],
)
def test_what_is_wrong_is_said_before_any_profiling(here, search, refused, words, code, says):
    """This home has no profile, which would be the next thing to say."""
    refused(here("search", "cnn5", "--no-profiling", "--quiet", *words), code, *says)


def test_of_profiles_that_are_given_the_optimisers_asked_for_are_taken(search, refused):
    words = ["cnn5", "--budget", "50%", "--no-training", "--json", "--profile", "adam.json", "--optimizers"]
    assert {c["optimizer"] for c in search(*words, "adam").record["chosen"]} == {"adam"}
    refused(search(*words, "sgd,momentum"), 2, "no profile given is of momentum, but of adam, sgd")


def test_a_profile_of_another_device_is_refused(here, search, refused):
    refused(here("search", "cnn5", "--budget", "50%", "--profile", "p.json", "--quiet"), 4, "--allow-other-device")
