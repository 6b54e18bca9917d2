import pytest

from ampere.evaluation.case_study.verdict import verdict_of


def records(ours, flops):
    rows = []
    for seed, (a, b) in enumerate(zip(ours, flops, strict=True)):
        for model, share, accuracy in (("original", 1.0, 0.97), ("ampere", a, 0.965), ("flops", b, 0.95)):
            joules = 0.1 * share
            rows.append(
                {"seed": seed, "model": model, "share": share, "joules": joules, "joules_repeat": 1.01 * joules}
            )
            rows[-1]["accuracy"] = accuracy
    return rows


def test_who_keeps_to_the_budget():
    found = verdict_of("here", records([0.49, 0.495], [0.6, 0.7]))
    assert found.ways["ampere"].inside == 2
    assert found.ways["flops"].inside == 0
    assert found.ways["ampere"].miss == pytest.approx(0.015)
    assert found.times_as_far == pytest.approx(0.3 / 0.015)
    assert found.accuracy_lost("ampere") == pytest.approx(0.005)
    assert found.repeatability == pytest.approx(0.01)
    assert "inside the budget of 50 % in 2 of 2" in found.sentences()[0]


def test_what_was_not_shown_is_said():
    found = verdict_of("here", records([0.45, 0.47], [0.52, 0.55]))
    assert "not 3 times" in found.sentences()[1]


def test_a_way_that_found_nothing_is_left_out():
    gone = {"share": None, "failed": "no widths fit"}
    rows = [row | (gone if row["model"] == "flops" else {}) for row in records([0.49], [0.6])]
    found = verdict_of("here", rows)
    assert "flops" not in found.ways
    assert found.times_as_far is None
    assert found.sentences()[1:] == ["flops, seed 0: no widths fit"]
