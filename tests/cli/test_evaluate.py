"""`ampere evaluate`: what it refuses, what it lists, and one small experiment for real."""

import json

from ampere.evaluation.plan import Plan


def test_a_wrong_experiment_gets_the_nearest(here, refused):
    refused(here("evaluate", "aditivity"), 2, "no experiment 'aditivity'", "did you mean additivity?")


def test_a_wrong_device_is_refused_before_anything_is_measured(here, refused):
    refused(here("evaluate", "fc_channels", "--device", "simulated:xaver"), 2, "simulated:xavier")


def test_nothing_stored_cannot_be_drawn(here, refused):
    refused(here("evaluate", "additivity", "--draw-only"), 4, "holds no records of additivity")


def test_the_list_reports_how_long_each_takes(here):
    ran = here("evaluate", "--list", "--quick", "--json")
    assert ran.code == 0
    listed = {row["experiment"]: row for row in ran.record}
    assert listed["additivity"]["figure"] == "Fig. 2"
    assert all(row["seconds_left"] > 0 for row in ran.record)
    assert "Together" in here("evaluate", "--list").out


def test_a_small_experiment_for_real(ampere, here):
    words = ("evaluate", "fc_channels", "--quick", "--device", "local", "--out", "kept")
    ran = ampere(*words, "--json")
    assert ran.code == 0, ran.err
    assert "1 experiment, about" in ran.notices
    stored = json.loads((ampere.folder / "kept" / "fc_channels.json").read_text())
    assert all(row["joules"] > 0 for row in stored["body"]["records"])
    assert (ampere.folder / "kept" / "fc_channels.png").stat().st_size > 10_000
    drawn = here(*words, "--draw-only")
    assert drawn.code == 0, drawn.err
    assert "fc_channels.png" in drawn.out


def test_a_folder_of_another_plan_is_refused(here, refused, tmp_path):
    assert here("evaluate", "fc_channels", "--device", "simulated:xavier", "--out", "x", "--quick", "--quiet").code == 0
    refused(here("evaluate", "fc_channels", "--device", "simulated:xavier", "--out", "x"), 2, "a quick run")


def test_stopped_with_ctrl_c_it_says_what_is_kept(here, refused, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ampere.evaluation.running.run", stopped)
    ran = here("evaluate", "fc_channels", "--device", "simulated:xavier", "--out", "kept")
    refused(ran, 130, "stopped; what was measured is kept in kept", "goes on from there")


def test_a_folder_without_a_run_is_refused_before_anything_is_measured(here, refused, tmp_path):
    ran = here("evaluate", "fc_channels", "--device", "simulated:xavier", "--against", "nowhere")
    refused(ran, 4, "nowhere holds no evaluation")
    assert not (tmp_path / "evaluation").exists()


def test_two_runs_are_held_against_each_other(here, monkeypatch):
    monkeypatch.setattr(Plan, "families", lambda plan, device: ("lenet5",))
    words = ("evaluate", "unseen_family", "--quick", "--device", "simulated:xavier", "--no-plot", "--quiet")
    assert here(*words, "--out", "before").code == 0
    ran = here(*words, "--out", "now", "--against", "before")
    assert ran.code == 0
    assert "drift since the other run" in ran.said
    reported = here(*words, "--out", "now", "--against", "before", "--draw-only", "--json").record
    assert all(abs(line["measured"]) < 0.2 for line in reported["between_runs"])
