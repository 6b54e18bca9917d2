import pytest

from ampere.evaluation.case_study.verdict import verdict_of


def records(ours, flops, closed_loop=(0.49, 0.495)):
    rows = []
    for seed, shares in enumerate(zip(ours, flops, closed_loop, strict=False)):
        models = {"original": (1.0, 0.97), "random_ampere": (shares[0], 0.965), "random_flops": (shares[1], 0.95)}
        models |= {"random_ampere_checked": (0.49, 0.96), "random_flops_checked": (0.51, 0.96)}
        models["ampere"] = (shares[2], 0.966)
        for model, (share, accuracy) in models.items():
            joules = 0.1 * share
            found = {"seed": seed, "model": model, "share": share, "accuracy": accuracy}
            rows.append({**found, "joules": joules, "joules_repeat": 1.01 * joules})
    return rows


def test_who_keeps_to_the_budget():
    found = verdict_of("here", records([0.49, 0.495], [0.6, 0.7]))
    assert found.ways["random_ampere"].inside == 2
    assert found.ways["random_flops"].inside == 0
    assert found.ways["random_ampere"].miss == pytest.approx(0.015)
    assert found.times_as_far == pytest.approx(0.3 / 0.015), "like with like: at random, without a check"
    assert found.accuracy_lost("ampere") == pytest.approx(0.004)
    assert found.repeatability == pytest.approx(0.01)
    unchecked, factor, checked, closed = found.sentences()
    assert "by Ampere 49.2 % (49.0 to 49.5), by FLOPs 65.0 %" in unchecked
    assert "20.0 times as much as Ampere" in factor
    assert "by Ampere 49.0 % (49.0 to 49.0), inside in 2 of 2 seeds, by FLOPs 51.0 %" in checked
    assert closed.startswith("`ampere prune`: 49.2 %")


def test_it_is_said_where_flops_are_nearer():
    assert "Ampere misses the budget of 50 % by 2.5 times" in verdict_of("", records([0.45], [0.52])).sentences()[1]


def test_a_way_that_found_nothing_is_left_out():
    gone = {"share": None, "failed": "no widths fit"}
    rows = [row | (gone if row["model"] == "random_flops" else {}) for row in records([0.49], [0.6])]
    found = verdict_of("here", rows)
    assert "random_flops" not in found.ways
    assert found.times_as_far is None
    assert found.sentences()[-1] == "random_flops, seed 0: no widths fit"
