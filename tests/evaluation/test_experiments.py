"""Every experiment leaves records that say where they come from, and from which its picture is drawn."""

from statistics import mean

import pytest

from ampere.evaluation import running
from ampere.evaluation.case_study.model import WAYS
from ampere.evaluation.running import QUICK, Result, draw
from ampere.reporting.plotting import STYLE

from .conftest import DEVICE

NAMES = running.names()


@pytest.mark.parametrize("name", NAMES)
def test_records_name_their_device(evaluated, name):
    _, results = evaluated
    records = results[name].records
    assert records
    assert {r["device"] for r in records} == {DEVICE}
    assert all("(simulated)" in r["device_title"] for r in records)
    assert results[name].devices[DEVICE]["meter"]["simulated"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_is_what_was_returned(evaluated, name):
    folder, results = evaluated
    assert Result.from_json(folder.result(name)) == results[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_is_drawn_from_what_is_stored(evaluated, name, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "FORMATS", (".png",))
    monkeypatch.setitem(STYLE, "savefig.dpi", 60)
    folder, _ = evaluated
    [png] = draw(Result.from_json(folder.result(name)), tmp_path)
    assert png.read_bytes()[:4] == b"\x89PNG"
    assert png.stat().st_size > 10_000


def test_a_picture_is_stored_in_three_formats(evaluated, tmp_path):
    folder, _ = evaluated
    png, svg, pdf = draw(Result.from_json(folder.result(NAMES[0])), tmp_path)
    assert png.read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in svg.read_text()[:2000]
    assert pdf.read_bytes()[:5] == b"%PDF-"


def test_layers_add_up_and_single_ones_cost_more(evaluated):
    _, results = evaluated
    rows = results["additivity"].records
    assert all(abs(r["line_joules"] / r["joules"] - 1) < 0.2 for r in rows)
    assert rows[-1]["neuralpower_joules"] is None or rows[-1]["neuralpower_joules"] > rows[-1]["joules"]


def test_the_table_has_every_method_and_the_noise(evaluated):
    _, results = evaluated
    for record in results["models_devices"].records:
        assert {"additive", "physics", "flops_intercept", "flops"} <= set(record["mape"])
        assert set(record["profiling_seconds"]) == set(record["mape"])
        assert 0 < record["repeatability"] < 1
        assert record["mape"]["additive"] < record["mape"]["flops"]


def test_the_papers_method_and_plain_flops_are_in_every_comparison(evaluated):
    _, results = evaluated
    for name in ("estimated_measured", "transformer", "resnet_depth"):
        assert all({"additive", "sequential", "flops"} <= set(r["estimates"]) for r in results[name].records)
    for record in results["models_devices"].records:
        assert set(record["mape_stderr"]) == set(record["mape"])
        assert "sequential" in record["mape"]


def test_the_process_profiles_some_points_and_fits_the_others(evaluated):
    _, results = evaluated
    rows = results["fc_channels"].records
    assert {rows[0]["profiled"], rows[-1]["profiled"]} == {True}
    assert any(not r["profiled"] for r in rows)
    assert all(abs(r["gp_joules"] / r["joules"] - 1) < 0.5 for r in rows[1:])


def test_profiled_points_are_where_they_were_measured(evaluated):
    _, results = evaluated
    rows = [r for r in results["layer_surface"].records if r["what"] == "profiled"]
    assert {r["method"] for r in rows} == {"additive", "sequential"}
    assert any(abs(r["joules"] / r["estimate"] - 1) > 1e-3 for r in rows)


def test_profiling_by_the_papers_method_goes_to_its_own_end(evaluated):
    _, results = evaluated
    rows = {r["method"]: r for r in results["profiling_cost"].records}
    assert rows["sequential"]["ended_by"] not in ("", "time", "its seconds")
    assert all(r["joules"] > 0 and r["measurements"] > 5 for r in rows.values())


def test_more_points_make_the_process_better_whatever_the_kernel(evaluated):
    _, results = evaluated
    rows = results["gp_ablations"].records
    assert len({r["value"] for r in rows if r["varied"] == "kernel"}) == 4
    for value in ("guided", "random"):
        own = [r for r in rows if r["value"] == value]
        few, many = (mean(r["mape"] for r in own if r["points"] == points) for points in (4, 20))
        assert many < few


def test_a_quick_run_says_that_it_is_too_small_to_rank(evaluated):
    _, results = evaluated
    assert QUICK in running._note(results["models_devices"])
    assert results["time_energy"].records[0]["joules_are"] == "simulated"


def test_intervals_that_claim_more_hold_more(evaluated):
    _, results = evaluated
    rows = [r for r in results["calibration"].records if r["family"] == "cnn5"]
    held = [r["coverage"] for r in rows]
    assert held == sorted(held)


def test_each_step_looks_where_nothing_is_known(evaluated):
    _, results = evaluated
    for record in results["gp_steps"].records:
        assert record["next"] not in record["known"]
        assert len(record["known"]) == record["step"]


def test_a_profile_knows_its_own_family_best(evaluated):
    _, results = evaluated
    errors = {(r["profiled"], r["tested"]): r["mape"] for r in results["unseen_family"].records}
    assert errors["cnn5", "cnn5"] < errors["lenet5", "cnn5"]


def test_the_case_study_prunes_to_the_budget_and_trains(evaluated):
    _, results = evaluated
    rows = {r["model"]: r for r in results["pruning"].records if r["seed"] == 0}
    assert list(rows) == ["original", *WAYS]
    assert rows["original"]["images"] == "digits"
    assert rows["random_flops"]["share"] != rows["random_flops_checked"]["share"], "the check has changed it"
    assert rows["original"]["share"] == 1.0
    assert rows["ampere"]["share"] < 0.6
    assert all(
        narrow <= wide for narrow, wide in zip(rows["ampere"]["channels"], rows["original"]["channels"], strict=True)
    )
    assert all(row["curve"][-1][0] == row["iterations"] and 0 <= row["accuracy"] <= 1 for row in rows.values())
    assert rows["ampere"]["budget_joules"] == pytest.approx(rows["original"]["run_joules"] / 2)
