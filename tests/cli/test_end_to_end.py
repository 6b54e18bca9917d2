"""The commands as a user meets them, one after the other, on a profile made once."""

import json
import re

import pytest

from ampere.estimation.estimate import COVERS

ESTIMATE_KEYS = {
    "joules_per_iteration",
    "joules_stddev",
    "joules_interval90",
    "seconds_per_iteration",
    "total",
    "layers",
    "unprofiled",
    "extrapolated",
    "meter",
    "allocator",
    "condition",
    "covers",
    "profile",
}


def test_profiling_reports_what_it_did(profiled_home):
    said = (profiled_home.parent / "said.txt").read_text()
    for word in ("expected error", "measured", "fitting", "modelled", "ampere estimate lenet5", ".json"):
        assert word in said


def test_the_stored_profile_answers_at_once(profiled):
    before = profiled.profile_path.read_bytes()
    ran = profiled("estimate", "lenet5", "--json")
    assert ran.code == 0, ran.err
    assert profiled.profile_path.read_bytes() == before
    assert ran.err == ""


def test_the_json_has_its_keys_and_the_layers_sum_up(profiled, here):
    record = here(
        *("estimate", "lenet5", "--epochs", 2, "--samples", 101, "--battery", "15Wh", "--watts-per-core", 5, "--json")
    ).record
    assert record.keys() >= ESTIMATE_KEYS
    assert record["joules_per_iteration"] == pytest.approx(sum(layer["joules"] for layer in record["layers"]))
    assert all(layer.keys() == {"name", "kind", "joules", "stddev"} for layer in record["layers"])
    said = {"name": "cpu-time", "measured": False, "scope": "5 W per busy core", "simulated": False}
    assert record["meter"].items() >= said.items()
    total = record["total"]
    assert total["iterations"] == 2 * 11
    assert total["joules"] == pytest.approx(22 * record["joules_per_iteration"])
    assert total["battery_share"] == pytest.approx(total["joules"] / 54000)
    low, high = total["joules_interval90"]
    assert low < total["joules"] < high


def test_the_screen_says_everything_that_matters(profiled, here):
    ran = here("estimate", "lenet5", "--iterations", 1000, "--battery", "15Wh")
    assert ran.code == 0, ran.err
    shown = " ".join(ran.out.split())  # a longer figure breaks a line elsewhere
    for word in (
        "per iteration",
        "90 %",
        "1,000 iterations",
        "Wh",
        "of 15Wh",
        "conv",
        "(rest of step)",
        "█",
        "modelled",
    ):
        assert word in shown, word
    assert "--watts-per-core" in shown
    assert "plain training loop with the system's allocator" in shown
    assert COVERS in shown


def test_a_wide_model_is_folded(profiled, here):
    ran = here("estimate", "lenet5", "--top", 2)
    assert "(3 others)" in ran.said
    assert ran.out.count("conv") + ran.out.count("linear") == 2


def test_a_layer_that_runs_several_times_is_one_row(profiled, here, tmp_path):
    body = "again = nn.Linear(9, 9)\n    return nn.Sequential(again, nn.ReLU(), again, again), torch.randn(4, 9)"
    (tmp_path / "net.py").write_text(f"import torch\nfrom torch import nn\n\n\ndef build():\n    {body}\n")
    shown = here("estimate", "net.py:build", "--no-profiling").out
    assert re.search(r"^0 \(3 times\) +linear", shown, re.MULTILINE), shown
    assert shown.count("linear") == 1


def test_other_watts_scale_the_joules_and_nothing_else(profiled, here):
    five, ten = (here("estimate", "lenet5", "--json", "--watts-per-core", watts).record for watts in (5, 10))
    assert ten["joules_per_iteration"] == pytest.approx(2 * five["joules_per_iteration"], rel=0.01)
    assert ten["seconds_per_iteration"] == pytest.approx(five["seconds_per_iteration"])
    assert ten["meter"]["scope"] == "10 W per busy core"


def test_now_asks_the_device(profiled, here):
    ran = here("estimate", "lenet5", "--current-speed", "--json")
    assert ran.code == 0, ran.err
    assert ran.record["condition"] > 0
    assert ran.record["condition"] != 1.0


def test_a_traced_file_is_estimated_as_the_model_is(profiled, here):
    traced = here("trace", "lenet5", "--out", "net.json", "--json")
    assert traced.code == 0, traced.err
    assert [layer["kind"] for layer in traced.record["layers"]] == ["conv", "conv", "linear", "linear", "linear"]
    assert traced.record["parameters"] == 61706
    of_file, of_model = (here("estimate", m, "--json").record for m in ("net.json", "lenet5"))
    assert of_file["joules_per_iteration"] == pytest.approx(of_model["joules_per_iteration"])


def test_a_model_of_the_users_with_what_it_prints_on_standard_error(profiled, subject):
    ran = profiled("estimate", subject("chatty"), "--no-profiling", "--json")
    assert ran.code == 0, ran.err
    assert "building, please wait" in ran.notices
    assert "thinking about" in ran.notices
    assert json.loads(ran.out)["network"] == "subjects:chatty"


@pytest.mark.measured
def test_measuring_shows_the_estimate_beside_it(profiled, here, subject):
    words = ["measure", "lenet5", "--seconds", 1, "--data", subject("loader"), "--evaluation", "--json"]
    ran = here(*words)
    assert ran.code == 0, ran.err
    record = ran.record
    assert record["joules_per_iteration"] == pytest.approx(5.0 * record["busy_seconds_per_iteration"], rel=0.2)
    assert record["difference"] == pytest.approx(
        record["estimate"]["joules_per_iteration"] / record["joules_per_iteration"] - 1
    )
    assert abs(record["difference"]) < 0.5
    assert 0 < record["evaluation"]["joules"] < record["joules_per_iteration"]
    assert record["data"]["batches"] > 100
    assert record["rounds"] >= 3


@pytest.mark.measured
def test_validating_compares_every_method_and_draws(profiled, here):
    ran = here("validate", "lenet5", "--networks", 4, "--seed", 3, "--plot", "v.png", "--json")
    assert ran.code == 0, ran.err
    record = ran.record
    assert record["networks"] == len(record["rows"]) == 4
    assert record["mape"].keys() >= {"additive", "physics", "flops", "flops_intercept"}
    assert record["mape"]["additive"] < 0.5
    assert 0 <= record["coverage90"] <= 1
    assert record["repeatability_mape"] >= 0
    assert record["profiling_seconds"] > 0
    assert record["rows"][0].keys() >= {"actual", "additive", "physics", "flops", "flops_intercept"}
    assert (profiled.folder / "v.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.measured
def test_the_papers_method_beside_ours_by_both_protocols(profiled, here):
    words = ["--networks", 2, "--rounds", 1, "--seconds", 8, "--no-plot", "--json"]
    ran = here("validate", "lenet5", "--methods", "additive,sequential,sequential_wallclock", *words)
    assert ran.code == 0, ran.err
    record = ran.record
    assert record["mape"].keys() == {"additive", "sequential", "sequential_wallclock"}
    assert record["coverage90_by_method"].keys() == record["mape"].keys()
    assert record["mape"]["sequential"] < 0.5
    assert all(row["sequential_wallclock"] > 0 for row in record["rows"])
    assert len(list((profiled.home / "profiles").glob("*-sequential*.json"))) == 2
    estimated = here("estimate", "lenet5", "--method", "sequential", "--no-profiling", "--json")
    assert estimated.code == 0, estimated.err
    assert estimated.record["allocator"] == "tuned"
    assert estimated.record["unprofiled"] == []
    shares = [layer["joules"] for layer in estimated.record["layers"]]
    assert sum(shares) == pytest.approx(estimated.record["joules_per_iteration"])
    again = here("profile", "lenet5", "--out", estimated.record["profile"]["path"], "--method", "networks")
    assert again.code == 4
    assert "do not mix" in again.notices


def test_devices_reports_of_the_machine_and_its_profiles(profiled, here):
    (profiled.home / "profiles" / "broken.json").write_text("no")
    ran = here("devices")
    assert ran.code == 0, ran.err
    for word in ("torch 2.", "cpu-time", "no energy counter", "lenet5", "broken.json", "not an Ampere profile"):
        assert word in " ".join(ran.out.split())  # a long path breaks lines anywhere
    record = here("devices", "--json").record
    assert [p["problem"] is None for p in record["profiles"]].count(True) == 1


def test_a_trace_reports_what_another_runtime_could_not_train(here, subject):
    said = here("trace", "lstm", "--runtime", "mnn").out
    assert "unsupported  mnn cannot train layers.0 (no lstm), layers.1 (no lstm)" in said
    assert here("trace", "lstm", "--runtime", "mnn", "--json").record["unsupported"] == [
        "layers.0 (no lstm)",
        "layers.1 (no lstm)",
    ]
    assert "mnn can train all of it" in here("trace", "lenet5", "--runtime", "mnn").said
    assert "unsupported" not in here("trace", "lenet5", "--json").record


def test_a_trace_counts_what_follows_a_layer(here, tmp_path):
    body = "nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Tanh(), nn.GELU(), nn.Linear(2, 1))"
    (tmp_path / "net.py").write_text(f"from torch import nn\n\n\ndef build():\n    return {body}\n")
    assert "elementwise, 2 transcendental\n" in here("trace", "net.py:build", "--input", "3x4").out


def test_a_models_name_is_shown_as_it_is_written(here, tmp_path):
    """`:loop:` is a picture to the library that draws tables."""
    (tmp_path / "net.py").write_text("from torch import nn\n\n\ndef loop():\n    return nn.Linear(4, 2)\n")
    assert here("trace", "net.py:loop", "--input", "3x4").out.startswith("net:loop: 1 layer, batch 3, 10 parameters, ")
