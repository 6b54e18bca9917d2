"""What a newcomer ran into in the first hour on the command line; each test is named by its row."""

import importlib.util
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace

import pytest
from tests.cli.conftest import Ampere

from ampere import comparison
from ampere.core import Meter
from ampere.storage.profile import Profile

FIXTURE = Path(__file__).parents[1] / "fixtures" / "profile-format-2.json"
DEVICE = ("--device", "simulated:server")
NET = """
import torch
from torch import nn

def build(width=16, act="relu"):
    body = [nn.Linear(64, width), nn.ReLU() if act == "relu" else nn.Tanh(), nn.Linear(width, 10)]
    return nn.Sequential(*body), torch.randn(10, 64)

def needy(width):
    return build(width)

def blocks():
    return nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(6))), torch.randn(10, 64)
"""


@pytest.fixture(scope="module", name="home")
def a_home_with_a_profile(tmp_path_factory):
    from ampere.cli import main

    place = tmp_path_factory.mktemp("first-hour")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AMPERE_HOME", str(place))
        assert main(["profile", "lenet5", *DEVICE, "--seconds", "150", "--quiet"]) == 0
    return place


@pytest.fixture(name="there")
def on_that_device(here, home, monkeypatch, tmp_path):
    monkeypatch.setenv("AMPERE_HOME", str(home))
    (tmp_path / "net.py").write_text(NET)
    return lambda command, *words: here(command, *words, *DEVICE)


@pytest.fixture(name="known")
def words_that_profile_nothing(there):
    return lambda command, *words: there(command, *words, "--no-profiling")


# Row 2: the setup is in the first lines and in the JSON.


def test_row_2_an_estimate_says_its_setup(known):
    lines = known("estimate", "lenet5").out.splitlines()
    assert lines[1].split(maxsplit=1) == ["setup", "torch, SGD, float32, 1 thread, batch 10"]
    record = known("estimate", "lenet5", "--json").record
    assert record["setup"] == {"runtime": "torch", "optimizer": "sgd", "dtype": "float32", "threads": 1, "on": "cpu"}
    assert record["batch"] == 10


def test_row_2_a_measurement_says_its_setup(there):
    lines = there("measure", "lenet5", "--seconds", 1, "--quiet").out.splitlines()
    assert lines[1].split(maxsplit=1) == ["setup", "torch, SGD, float32, 1 thread, batch 10"]
    assert there("measure", "lenet5", "--seconds", 1, "--quiet", "--json").record["setup"]["optimizer"] == "sgd"


def test_row_2_a_comparison_says_its_setup(known):
    head = known("compare", "lenet5", "lenet5").out.partition("\n\n")[0]
    assert head.endswith("setup  torch, SGD, float32, 1 thread, batch 10")
    record = known("compare", "lenet5", "lenet5", "--json").record
    assert record["devices"][0]["setup"]["threads"] == 1


# Row 3: a verdict about a battery.

RUN = ("--epochs", 300, "--samples", 60_000)


def test_row_3_a_battery_gets_a_verdict_with_its_probability(known):
    said = " ".join(known("estimate", "lenet5", *RUN, "--battery", "10kWh").out.split())
    assert "battery fits, with a probability of over 99.9 %: the run needs" in said
    assert "of 10kWh (90 %:" in said
    assert "--idle 8W adds it" in said
    said = " ".join(known("estimate", "lenet5", *RUN, "--battery", "1Wh").out.split())
    assert "battery does not fit, with a probability of over 99.9 %" in said


def test_row_3_the_verdict_is_in_the_json(known):
    total = known("estimate", "lenet5", *RUN, "--battery", "50Wh", "--json").record["total"]
    assert total["verdict"] in ("fits", "does not fit", "uncertain")
    assert 0 <= total["fits_probability"] <= 1
    low, high = total["battery_share_interval90"]
    assert low < total["battery_share"] < high
    assert total["iterations"] == 300 * 6000


def test_row_3_what_the_device_draws_anyway_is_part_of_it(known):
    words = ("estimate", "lenet5", *RUN, "--battery", "500Wh", "--json")
    alone, with_idle = known(*words).record["total"], known(*words, "--idle", "8W").record["total"]
    assert with_idle["idle_joules"] == pytest.approx(8 * with_idle["seconds"])
    assert with_idle["battery_share"] - alone["battery_share"] == pytest.approx(with_idle["idle_joules"] / 1.8e6)
    assert with_idle["fits_probability"] <= alone["fits_probability"]
    said = " ".join(known("estimate", "lenet5", *RUN, "--battery", "500Wh", "--idle", "8 W").out.split())
    assert "at 8 W," in said
    assert "of what the run needs" in said


def test_row_3_without_a_run_it_says_how_long_a_battery_lasts(known):
    said = " ".join(known("estimate", "lenet5", "--battery", "15Wh").out.split())
    assert "battery 15Wh lasts for about" in said
    assert "with 95 % probability" in said


# Row 5: a report of a model, with this device's profile.


def test_row_5_a_report_needs_no_profile_file(known, tmp_path):
    ran = known("report", "lenet5", "--json")
    assert ran.code == 0, ran.err
    assert ran.record["files"] == ["report.html"]
    assert "lenet5" in (tmp_path / "report.html").read_text()


def test_row_5_a_report_profiles_where_needed(there, tmp_path):
    ran = there("report", "net.py:build", "--seconds", 60)
    assert ran.code == 0, ran.err
    assert "profiling" in ran.err
    assert "net:build" in (tmp_path / "report.html").read_text()


# Row 7: a wide interval is said in the headline, with what to do.


def test_row_7_an_uncertain_figure_says_so_first(here):
    out = here("estimate", "lstm", "--profile", FIXTURE, "--allow-other-device").out
    first, said = out.splitlines()[0], " ".join(out.split())
    assert "uncertain: 90 % interval" in first
    assert "±" not in first
    assert (
        "the 90 % interval is wider than half the figure: `ampere profile lstm --seconds 60` makes it tighter" in said
    )


def test_row_7_the_profile_that_is_named_is_the_one_that_is_made_tighter(here):
    words = ("--device", "simulated:tx2")
    assert here("profile", "lenet5", *words, "--seconds", 3, "--out", "own.json", "--quiet").code == 0
    said = here("estimate", "lstm", *words, "--profile", "own.json").said
    assert "`ampere profile lstm --device simulated:tx2 --out own.json --seconds 60` makes it tighter" in said


def test_row_7_a_certain_figure_does_not(known):
    assert "uncertain" not in known("estimate", "lenet5").out


# Row 8: a notice names what is missing.


def test_row_8_the_notice_names_what_is_missing(there):
    short = ("--seconds", 30)
    adamw = there("estimate", "lenet5", "--optimizer", "AdamW", *short)
    assert "no profile of this device with AdamW yet" in adamw.notices
    assert there("estimate", "lenet5", "--optimizer", "adamw").err == ""
    assert "with bfloat16 yet" in there("estimate", "lenet5", "--dtype", "bf16", *short).notices


def test_row_8_a_refusal_names_it_too(known, refused):
    refused(known("estimate", "lenet5", "--threads", 2), 4, "with 2 threads", "--threads 2")


# Row 9: arguments of a factory.


def test_row_9_a_factory_takes_arguments(here, tmp_path):
    (tmp_path / "net.py").write_text(NET)
    layers = here("trace", "net.py:build", "--arg", "width=32", "--arg", "act=tanh", "--json").record["layers"]
    assert layers[0]["channels"] == [64, 32]
    assert here("trace", "net.py:needy", "--arg", "width=8", "--json").record["layers"][0]["channels"] == [64, 8]


def test_row_9_a_factory_without_its_arguments_gets_a_recipe(here, refused, tmp_path):
    (tmp_path / "net.py").write_text(NET)
    refused(here("trace", "net.py:needy"), 3, "needy", "width", "--arg width=")


def test_row_9_an_input_is_rebatched(here, tmp_path):
    (tmp_path / "net.py").write_text(NET)
    assert here("trace", "net.py:build", "--batch", 64, "--json").record["batch"] == 64


def test_row_9_the_next_command_keeps_the_arguments(there):
    ran = there("profile", "net.py:build", "--arg", "width=32", "--seconds", 60, "--out", "p.json", "--quiet")
    assert "ampere estimate net.py:build --arg width=32 --profile p.json" in " ".join(ran.out.split())


# Row 10: an estimate that has moved is explained.


def test_row_10_an_estimate_outside_its_earlier_interval_is_explained(here, home, monkeypatch, tmp_path):
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path / "own"))
    words = ("estimate", "lenet5", *DEVICE)
    copytree(home / "profiles", tmp_path / "own" / "profiles")
    assert here(*words).err == ""
    [kept] = (tmp_path / "own" / "estimates").glob("*.json")
    [(key, record)] = json.loads(kept.read_text()).items()
    half = {name: record[name] / 2 for name in ("joules", "low", "high")}
    kept.write_text(json.dumps({key: {**record, **half, "measurements": record["measurements"] - 7}}))
    said = here(*words).err
    assert said.startswith("lenet5 was estimated at ")
    assert "(+100.0 %): the profile has 7 more measurements since then" in said
    assert here(*words).err == ""
    kept.write_text("[1, 2]")
    assert here(*words).err == ""


# Row 11: a search shows all that varies, and names chance.


def found(**changed):
    from ampere.cli.commands import search

    def trial(accuracy, joules, at_chance, **settings):
        candidate = SimpleNamespace(arguments=settings, optimizer="sgd", batch=10, joules=joules, stddev=0.1 * joules)
        return SimpleNamespace(
            candidate=candidate, accuracy=accuracy, failure="", at_chance=at_chance, stopped_early=False
        )

    trials = (trial(0.1, 0.002, True, kernel=3, width=8), trial(0.8, 0.004, False, kernel=3, width=30))
    record = {
        "space": "net", "meter": Meter("cpu-time", False, "5 W per busy core"), "budget_joules": 0.005,
        "confidence": 0.9, "original_joules": 0.01, "examples": 10, "batches": (10,), "screened": 100, "inside": 40,
        "screening_seconds": 0.1, "chosen": [t.candidate for t in trials], "trained_with": "made-up data",
        "trials": trials, "front": trials[1:], "varied": ("kernel", "width"), "mode": "capacity", "power_watts": None,
        "memory_bytes": None, **changed,
    }  # fmt: skip
    search.show(SimpleNamespace(**record), [])


def test_row_11_every_varied_setting_is_shown_and_chance_is_named(capsys):
    found()
    out = capsys.readouterr().out
    assert out.startswith("net: 80 % accuracy with 4.00 mJ, 40 % of the original; 1 on the front")
    assert "same in all  kernel 3" in out
    assert "width 30" in out
    assert "10.0 % (chance)" in out
    assert "no more accurate than guessing" in out


def test_row_11_a_search_in_which_nothing_learnt_says_so(capsys):
    found(front=())
    assert capsys.readouterr().out.startswith("net: no trained network is above chance level")


# Row 13: what people write is understood, and refusals have the right remedy.


def test_row_13_units_and_names_as_people_write_them(known):
    joined, apart = (
        known("estimate", "lenet5", "--iterations", 10, "--battery", *battery, "--json").record["total"]
        for battery in (("15Wh",), ("15", "Wh"))
    )
    assert joined == apart
    phone = known("estimate", "lenet5", "--iterations", 10, "--battery", "5000mAh@3.85V", "--json").record["total"]
    assert phone["battery_joules"] == pytest.approx(69_300)
    written = known("estimate", "lenet5", "--optimizer", "SGD", "--dtype", "fp32", "--json").record
    assert written["setup"] == {"runtime": "torch", "optimizer": "sgd", "dtype": "float32", "threads": 1, "on": "cpu"}


def test_row_13_a_charge_asks_for_the_voltage(known, refused):
    refused(known("estimate", "lenet5", "--battery", "5000mAh"), 2, "voltage", "5000mAh@3.85V")


def test_row_13_a_home_that_cannot_be_written_names_what_helps(ampere, refused, tmp_path):
    (tmp_path / "file").touch()
    elsewhere = Ampere(tmp_path / "file" / "home", tmp_path)
    ran = elsewhere("estimate", "lenet5", *DEVICE, "--quiet")
    refused(ran, 7, "cannot write")
    assert "--out" not in ran.err


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell with pipes")
def test_row_13_a_pipe_that_closes_is_no_error(home):
    command = f"{sys.executable} -m ampere devices --json; echo $? >&2"
    ran = subprocess.run(["bash", "-c", f"({command}) | head -1"], capture_output=True, text=True, timeout=120)
    assert ran.stderr.strip() == "0"


# Row 14: any number of models, ranked.


@pytest.mark.skipif(not hasattr(comparison, "RankedEntry"), reason="comparisons of more than two models")
def test_row_14_three_models_are_ranked(there):
    words = ("compare", "net.py:build", "lenet5", "net.py:blocks", "--seconds", 60, "--quiet")
    ran = there(*words)
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0].startswith("cheapest is ")
    record = there(*words, "--json").record
    assert len(record["models"]) == 3
    [device] = record["devices"]
    costs = [entry["joules"] for entry in device["ranking"]]
    assert costs == sorted(costs)


# Row 15: equal blocks are one row.


@pytest.mark.skipif(
    importlib.util.find_spec("ampere.estimation.grouping") is None, reason="layers are grouped by block"
)
def test_row_15_equal_blocks_are_one_row(there):
    words = ("estimate", "net.py:blocks", "--seconds", 60, "--quiet")
    plain, grouped = there(*words).out, there(*words, "--group-by", "block").out
    assert plain.count("linear") == 6
    [row] = [line for line in grouped.splitlines() if line.startswith("1-4")]  # the first and the last cost less
    assert row.split()[1:3] == ["linear", "4"]
    record = there(*words, "--group-by", "block", "--json").record
    total = sum(block["joules"] for block in record["blocks"])
    assert total == pytest.approx(record["joules_per_iteration"])


# Row 16: words.


def test_row_16_the_rest_of_a_step_is_explained(known):
    out = known("estimate", "lenet5").out
    assert "(rest of step)" in out
    assert "what a step costs outside its layers" in " ".join(out.split())
    assert "(step)" not in out


@pytest.mark.parametrize("words", [("estimate", "lenet5"), ("estimate", "lenet5", "--battery", "15Wh", *RUN)])
def test_tables_fit_eighty_columns(known, monkeypatch, words):
    monkeypatch.setenv("COLUMNS", "80")
    out = re.sub(r"/\S{30,}", "a-path", known(*words).out)  # which is never broken
    assert max(map(len, out.splitlines())) <= 80


def test_a_profile_of_measured_idle_watts_says_what_is_in_the_joules(here, tmp_path):
    profile = Profile.load(FIXTURE)
    replace(profile, watts_idle=2.5).save(tmp_path / "p.json")
    words = ("estimate", "lenet5", "--profile", "p.json", "--allow-other-device", "--battery", "15Wh")
    said = " ".join(here(*words, "--iterations", 1000).out.split())
    assert "2.5 W at rest, measured:" in said
    assert "in them already" in said
