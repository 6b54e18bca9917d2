"""Answers are those of the estimator itself, and no request can ask for more than is bounded."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.synthetic import chain
from tests.web.serving import observed

from ampere.comparison import pairwise
from ampere.core import Network
from ampere.core.errors import ProfileError, UsageError
from ampere.estimation.estimator import Estimator
from ampere.storage.networks import load_network, save_network
from ampere.storage.profile import Profile
from ampere.web import answers as module
from ampere.web.answers import front
from ampere.web.catalogue import MOST_UPLOADS, Catalogue, NotFound
from ampere.web.open_networks import Changes
from ampere.web.profiles import devices, profile_detail, runs

ASKED = {"network": "cnn5", "profile": "a-sgd"}
WIDTHS = {"0": 8, "3": 20, "6": 30, "8": 99}


@pytest.fixture(scope="module")
def estimator(folder):
    return Estimator(Profile.load(folder / "a-sgd.json"))


@pytest.fixture(scope="module")
def network(answers):
    return lambda **changes: answers.catalogue.network("cnn5").at(Changes.from_json(changes))


def test_a_what_if_is_the_estimate_of_the_changed_network(answers, estimator, network):
    found = answers.what_if({**ASKED, "widths": WIDTHS, "batch": 20})
    expected = estimator.estimate(network(widths=WIDTHS, batch=20)).to_json()
    assert {*expected} < {*found}
    assert found["joules_per_iteration"] == pytest.approx(expected["joules_per_iteration"])
    assert found["joules_interval90"] == pytest.approx(expected["joules_interval90"])
    assert found["seconds_per_iteration"] == pytest.approx(expected["seconds_per_iteration"])
    assert [layer["name"] for layer in found["layers"]] == [layer["name"] for layer in expected["layers"]]
    assert found["batch"] == 20
    assert found["shape"]["channels"] == [[1, 8], [8, 20], [20, 30], [30, 99], [99 * 49, 10]]


def test_a_run_says_kilowatt_hours_carbon_and_battery(answers):
    found = answers.what_if(
        {**ASKED, "iterations": 1000, "battery": "15Wh", "grid": "400g/kWh", "price": "0.30EUR/kWh"}
    )
    run = found["run"]
    assert run["joules"] == pytest.approx(1000 * found["joules_per_iteration"])
    assert run["kwh"] == pytest.approx(run["joules"] / 3.6e6)
    assert run["carbon"][0]["grams"] == pytest.approx(400 * run["kwh"])
    assert run["cost"]["money"] == pytest.approx(0.3 * run["kwh"])
    assert run["battery_share"] == pytest.approx(run["joules"] / 54_000)


def test_many_rows_cost_what_each_costs(answers):
    rows = [[8, 20, 30, 99], [32, 64, 128, 256], [1, 1, 1, 1], [5, 17, 64, 200]]
    found = answers.batch({**ASKED, "rows": rows})
    for row, joules, seconds in zip(rows, found["joules"], found["seconds"], strict=True):
        alone = answers.what_if({**ASKED, "widths": dict(zip(found["widths"], row, strict=True))})
        assert joules == pytest.approx(alone["joules_per_iteration"], rel=0.01)
        assert seconds == pytest.approx(alone["seconds_per_iteration"], rel=0.01)


def test_several_networks_in_one_request(answers):
    found = answers.estimate({"profile": "a-sgd", "networks": [{"network": "cnn5"}, {"network": "lenet5"}]})
    assert [e["network"] for e in found["estimates"]] == ["cnn5", "lenet5"]


def test_a_search_finds_a_front_and_what_the_buttons_ask_for(answers):
    original = answers.what_if(ASKED)
    budget, least = 0.5 * original["joules_per_iteration"], 0.8 * original["shape"]["capacity"]
    reports = []
    found = answers.search(
        {**ASKED, "candidates": 60_000, "budget_joules": budget, "least_capacity": least},
        lambda share, words: reports.append(share),
    )
    assert found["original"]["joules"] == pytest.approx(original["joules_per_iteration"], rel=0.01)
    assert found["original"]["capacity"] == pytest.approx(original["shape"]["capacity"])
    assert np.sum(found["density"]["counts"]) == found["candidates"] == 60_001
    assert found["widest"]["joules"] <= budget
    assert found["cheapest"]["capacity"] >= least
    joules, capacity = ([each[key] for each in found["front"]] for key in ("joules", "capacity"))
    assert joules == sorted(joules)
    assert capacity == sorted(capacity)
    assert len(reports) == 2


def test_the_front_is_of_those_that_no_other_one_beats():
    joules, capacity = np.array([3.0, 1.0, 2.0, 1.0, 4.0]), np.array([9.0, 4.0, 3.0, 5.0, 9.0])
    assert front(joules, capacity) == [3, 0]


def test_a_comparison_is_that_of_the_command_line(answers, folder, network):
    names = ["a-sgd", "b-sgd"]
    narrow = {"network": "cnn5", "widths": WIDTHS, "label": "narrow"}
    found = answers.compare({"networks": ["cnn5", narrow], "profiles": names})
    estimators = [Estimator(Profile.load(folder / f"{name}.json")) for name in names]
    networks = [network().renamed("cnn5"), network(widths=WIDTHS).renamed("narrow")]
    expected = pairwise.compare(networks, estimators, "system", names).to_json()
    assert found["models"] == expected["models"]
    for ours, theirs in zip(found["devices"], expected["devices"], strict=True):
        assert ours["sentence"] == theirs["sentence"]
        assert ours["order_probability"] == pytest.approx(theirs["order_probability"])
        assert ours["cheapest"] == "narrow"


def test_one_network_is_ranked_over_profiles(answers):
    found = answers.compare({"networks": ["cnn5"], "profiles": ["a-sgd", "b-sgd"]})
    assert [entry["device"] for entry in found["ranking"]] == ["Board a", "Board b"]


def test_one_network_on_one_profile_is_no_comparison(answers):
    with pytest.raises(UsageError, match="nothing to be compared with"):
        answers.compare({"networks": ["cnn5"], "profiles": ["a-sgd", "a-sgd"]})


def test_a_changed_network_can_be_taken_along(answers, network, tmp_path):
    (tmp_path / "net.json").write_bytes(answers.network_file({"network": "cnn5", "widths": WIDTHS}))
    assert load_network(tmp_path / "net.json") == network(widths=WIDTHS)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "network must be a name"),
        ({"network": "cnn5"}, "profile must be a name"),
        ({**ASKED, "widths": [1]}, "widths must be an object"),
        ({**ASKED, "widths": {"0": "x"}}, "whole number"),
        ({**ASKED, "repeats": {"0": [1]}}, "whole number"),
        ({**ASKED, "batch": [3]}, "whole number"),
        ({**ASKED, "allocator": "x"}, "no allocator 'x'"),
        ({**ASKED, "iterations": -1}, "iterations must be"),
        ({**ASKED, "iterations": 1, "battery": "15"}, "15Wh"),
        ({**ASKED, "iterations": 1, "battery": 15}, "a text with a unit"),
        ({**ASKED, "iterations": 1, "grid": "nowhere"}, "no grid 'nowhere'"),
        ({**ASKED, "iterations": 1, "grid": "x" * 1000}, "grid must be a text"),
        ({**ASKED, "iterations": 1, "price": "free"}, "not money"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(answers, asked, said):
    with pytest.raises(UsageError, match=said):
        answers.what_if(asked)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"rows": []}, "list of rows"),
        ({"rows": [[1, 2]]}, "4 widths"),
        ({"rows": [[1, 2, 3, 4], [1]]}, "same number"),
        ({"rows": [[1, 2, 3, 10**6]]}, "outside of what may be"),
        ({"rows": [[1, 2, 3, 10**40]]}, "whole numbers"),
        ({"rows": [[1, 2, 3, 4.5]]}, "whole numbers"),
        ({"rows": [["1", 2, 3, 4]]}, "whole numbers"),
        ({"rows": [True]}, "whole numbers"),
    ],
)
def test_rows_that_cannot_be_are_refused(answers, asked, said):
    with pytest.raises(UsageError, match=said):
        answers.batch({**ASKED, **asked})


@pytest.mark.parametrize("name", ["nobody", "../a-sgd", "/etc/passwd", "a-sgd.json", "*", "a-sgd\0"])
def test_only_stored_profiles_are_read(answers, name):
    with pytest.raises(NotFound, match="no profile"):
        answers.what_if({"network": "cnn5", "profile": name})


def test_work_is_bounded(answers, monkeypatch):
    monkeypatch.setattr(module, "MOST_ESTIMATED_LAYERS", 9)
    with pytest.raises(UsageError, match="several requests"):
        answers.estimate({"profile": "a-sgd", "networks": [{"network": "cnn5"}] * 2})
    with pytest.raises(UsageError, match="compare fewer"):
        answers.compare({"networks": ["cnn5"], "profiles": ["a-sgd", "b-sgd"]})
    with pytest.raises(UsageError, match="1 to 12"):
        answers.compare({"networks": ["cnn5"] * 13, "profiles": ["a-sgd"]})
    with pytest.raises(UsageError, match="candidates must be"):
        answers.search({**ASKED, "candidates": 10**9})


# The catalogue.


def test_profiles_are_listed_and_a_damaged_one_says_why(answers):
    found = {record["id"]: record for record in answers.catalogue.profiles()}
    assert sorted(found) == ["a-adam", "a-sgd", "b-sgd", "broken"]
    assert found["a-adam"]["setup"]["optimizer"] == "adam"
    assert found["a-adam"]["problem"] is None
    assert "broken.json" in found["broken"]["problem"]
    assert [device["profiles"] for device in devices(answers.catalogue)] == [["a-adam", "a-sgd"], ["b-sgd"]]


def test_a_profile_of_whole_networks_only_says_so(folder, tmp_path):
    replace(Profile.load(folder / "a-sgd.json"), method="kernels").save(tmp_path / "k.json")
    catalogue = Catalogue({}, tmp_path)
    assert "layer by layer" in catalogue.profiles()[0]["problem"]
    with pytest.raises(ProfileError, match="layer by layer"):
        catalogue.estimator("k")


def test_every_number_of_threads_is_a_profile(folder, tmp_path):
    one = Profile.load(folder / "a-sgd.json")
    four = replace(Profile.load(folder / "b-sgd.json"), device=one.device, setup=replace(one.setup, threads=4))
    replace(one, others=(four,)).save(tmp_path / "p.json")
    catalogue = Catalogue({}, tmp_path)
    found = {record["id"]: record["setup"]["threads"] for record in catalogue.profiles()}
    assert found == {"p": one.setup.threads, "p@4": 4}
    assert catalogue.estimator("p@4").profile.setup.threads == 4
    for unknown in ("p@3", "p@", "p@@4", "@4", "p@4@4"):
        with pytest.raises(NotFound, match="no profile"):
            catalogue.estimator(unknown)


def test_a_profile_that_changed_is_read_again(folder, tmp_path):
    catalogue = Catalogue({}, tmp_path)
    profile = Profile.load(folder / "a-sgd.json")
    profile.save(tmp_path / "p.json")
    first = catalogue.estimator("p")
    assert catalogue.estimator("p") is first
    Profile.load(folder / "b-sgd.json").save(tmp_path / "p.json")
    assert catalogue.estimator("p").profile.device["id"] == "b"
    assert catalogue.profiles()[0]["device_id"] == "b"


def test_networks_of_the_user_come_first_and_uploads_are_known_by_their_content(folder, tmp_path):
    own = chain(3, 8, 8, 8).renamed("own")
    catalogue = Catalogue({"own": own}, folder)
    assert catalogue.names[0] == "own"
    save_network(own, tmp_path / "own.json")
    name = catalogue.upload(json.loads((tmp_path / "own.json").read_text()))
    assert catalogue.upload(own.to_json()) == name
    assert catalogue.network(name).network == own


def test_uploads_are_few_and_small(folder, monkeypatch):
    monkeypatch.setattr("ampere.web.catalogue.MOST_UPLOADED_LAYERS", 200)
    catalogue = Catalogue({}, folder)
    layer = chain(3, 8, 8, 8).layers[1]
    for width in range(1, MOST_UPLOADS + 9):
        catalogue.upload(Network((layer.with_channels(width, width),), 10).to_json())
    assert len(catalogue.names) == MOST_UPLOADS + len(Catalogue({}, folder).names)
    for width in (1, 2, 3):
        catalogue.upload(Network((layer.with_channels(width, 8),) * 100, 10).to_json())
    assert catalogue._uploaded_layers() == 200


@pytest.mark.parametrize("record", [{}, [], 3, {"layers": [], "batch": 1}, {"ampere": "network", "body": 3}])
def test_what_is_no_network_is_refused(folder, record):
    with pytest.raises(ProfileError):
        Catalogue({}, folder).upload(record)


def test_what_is_known_of_a_profile(answers):
    found = profile_detail(answers.catalogue, {"profile": "a-sgd", "network": "cnn5"})
    assert len(found["observations"]) == found["measurements"] == 26
    surface = next(s for s in found["surfaces"] if s["kind"].startswith("conv"))
    assert len(surface["joules"]) == len(surface["channels_out"])
    shares = found["uncertainty"]
    total = sum(each["share"] for each in shares["layers"]) + shares["whole"] + shares["step"] + shares["measuring"]
    assert total == pytest.approx(1.0)
    assert json.dumps(found, allow_nan=False)
    more = shares["more_profiling"]
    assert [each["seconds"] for each in more] == [0, 15, 30, 60]
    assert more[-1]["measurements"] == pytest.approx(60 * 26 / 12.5, abs=1)  # as many as a minute did so far
    widths = [each["interval90"] for each in more]
    assert widths == sorted(widths, reverse=True)
    low, high = (
        answers.catalogue.estimator("a-sgd").estimate(answers.catalogue.network("cnn5").network, "system", 1.0).interval
    )
    assert widths[0] == pytest.approx((high - low) / (high + low))
    assert widths[0] > widths[-1] >= shares["least_interval90"] > 0


def test_recorded_runs_are_beside_their_forecast(folder, tmp_path):
    profile = Profile.load(folder / "a-sgd.json")
    run = observed(chain(3, 20, 20, 20).renamed("job"), 1.2, "run")
    replace(profile, runs=(run,)).save(tmp_path / "p.json")
    [found] = runs(Catalogue({}, tmp_path))
    assert found["network"] == "job"
    spent = found["windows"][0]["joules"] / found["windows"][0]["iterations"]
    assert found["estimated_joules"] == pytest.approx(spent / 1.2, rel=0.1)
