"""Candidates that are inside their budget, spread along joules, and a front that nothing beats."""

import math
import pickle
from itertools import chain, product

import numpy as np
import pytest
from tests.synthetic import observed, random_chains, true_seconds

from ampere import Meter, Profile, TrainingSetup
from ampere.core.errors import ModelError, UsageError
from ampere.devices.workloads import traced
from ampere.estimation.estimator import Estimator
from ampere.models.loading import find_space
from ampere.searching.candidates import TRIED, ListedGroup, Prices, choose
from ampere.searching.drawing import draw
from ampere.searching.memory import rule_of, upper_bytes
from ampere.searching.parts import Boxes, Screen, parts_of
from ampere.searching.result import Candidate, Found, Trial, in_words
from ampere.searching.searching import screen as screen_all
from ampere.searching.searching import search
from ampere.searching.spaces import DRAWN, OPEN, Shape, of_function, of_space, read_axis
from ampere.searching.training import Chance, make_task, on_made_task, tried

NET = """
import torch
from torch import nn

def build(width=24, kernel=3, depth=1):
    body = [nn.Conv2d(3, width, kernel, padding=kernel // 2), nn.ReLU()]
    for _ in range(depth - 1):
        body += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(width * 196, 5)), torch.randn(10, 3, 14, 14)

def train(model, candidate):
    return candidate.arguments.get("width", 24) / 100

def words(model, candidate):
    return "good"

def raising(model, candidate):
    raise OSError("no such data")

def percent(model, candidate):
    return 87.5

def deep(depth=1):
    body = [nn.Conv3d(1, 4 * depth, 3), nn.Flatten(), nn.LazyLinear(5)]
    model, x = nn.Sequential(*body), torch.randn(2, 1, 6, 6, 6)
    model(x)
    return model, x

class Pairs(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.read, self.out = nn.Embedding(20, width), nn.Linear(width, 5)

    def forward(self, x):
        return self.out(self.read(x).mean((1, 2)))

def pairs(width=8):
    return Pairs(width), torch.randint(20, (4, 3, 2))
"""


def profile(optimizer: str = "sgd", slower: float = 1.0) -> Profile:
    seen = tuple(observed(n, slower * true_seconds(n)) for n in random_chains(1, 40, depth=2))
    return Profile({"id": "synthetic"}, TrainingSetup(optimizer=optimizer), Meter("synthetic", False), 1e-3, seen)


@pytest.fixture(scope="module")
def estimator() -> Estimator:
    return Estimator(profile())


@pytest.fixture
def net(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    return f"{tmp_path}/net.py"


def search_small(estimator, **options):
    """In the space whose tables are smallest, for tests of what comes after screening."""
    return search("lenet5", "95%", estimator, **{"candidates": 1000, "confidence": 0.5, **options})


def wider_is_better(model, candidate):
    return sum(candidate.arguments["channels"]) / 500


def test_what_is_chosen_is_inside_with_the_confidence_and_costs_what_it_is_estimated_to(estimator):
    found = search("cnn5", "50%", estimator, train=wider_is_better, candidates=20_000, trials=6)
    assert (found.screened, len(found.trials)) == (20_000, 6)
    assert found.budget_joules == pytest.approx(0.5 * found.original_joules)
    for candidate in found.chosen:
        assert candidate.joules + 1.28 * candidate.stddev <= found.budget_joules
        alone = estimator.estimate(traced("ampere.models.cnn5:build", candidate.arguments))
        assert candidate.joules == pytest.approx(alone.joules, rel=0.01)
        assert candidate.stddev == pytest.approx(alone.stddev, rel=0.05)
    joules = [c.joules for c in found.chosen]
    assert joules == sorted(joules, reverse=True)
    assert joules[0] > 0.8 * found.budget_joules
    assert joules[-1] < 0.5 * found.budget_joules
    assert sum(found.spread[1]) == found.screened


def test_what_is_chosen_fits_into_memory(net, estimator):
    """Of one width, as `test_hyperpower.py` has it of two: each network that is followed takes a tenth of a second."""
    space, options = f"{net}:build", {"vary": {"width": range(8, 65)}, "trials": 3}
    options["train"] = f"{net}:train"
    sizes = upper_bytes(of_function(space, options["vary"]), [estimator.profile], tuned=False)
    largest = search(space, "1kJ", estimator, **options).chosen[0]
    limit = sizes(largest.arguments, "sgd") - 1e6
    found = search(space, "1kJ", estimator, **options, memory_bytes=limit)
    assert largest.arguments not in [c.arguments for c in found.chosen]
    assert len(found.chosen) == 3
    assert all(sizes(c.arguments, "sgd") <= limit for c in found.chosen)
    with pytest.raises(UsageError, match="no candidate fits into"):
        search(space, "1kJ", estimator, **options, memory_bytes=1e7)


def group(joules, capacity, optimizer="sgd", stddev=0.01):
    joules = np.array(joules, dtype=float)
    arguments = [{"row": i, "of": optimizer} for i in range(len(joules))]
    capacity = np.array(capacity, dtype=float)
    return ListedGroup(optimizer, 10, joules, stddev * joules, capacity, arguments, np.ones(len(joules)))


def rows(chosen):
    return [(c.arguments["of"], c.arguments["row"]) for c in chosen]


def test_of_those_that_cost_the_same_the_largest_capacity_is_taken():
    chosen = choose([group([0.9, 0.91, 0.92, 0.3, 0.31], [1, 3, 2, 5, 4])], 1.0, 1.3, 2)
    assert rows(chosen) == [("sgd", 1), ("sgd", 3)]


def test_one_whose_uncertainty_reaches_over_the_budget_is_passed_over():
    chosen = choose([group([0.99, 0.95], [9, 1], stddev=0.03)], 1.0, 1.3, 1)
    assert rows(chosen) == [("sgd", 1)]
    with pytest.raises(UsageError, match="lower --confidence"):
        choose([group([0.999, 0.998], [1, 2], stddev=0.5)], 1.0, 1.3, 1)


def test_ways_to_train_take_turns():
    costs = list(np.linspace(0.1, 0.95, 40))
    chosen = choose([group(costs, range(40)), group(costs, range(40), "adam")], 1.0, 0.0, 6)
    assert sorted(o for o, _ in rows(chosen)) == ["adam"] * 3 + ["sgd"] * 3


def test_empty_rungs_are_filled_from_others_and_nothing_is_chosen_twice():
    chosen = choose([group([0.9, 0.91, 0.92], [1, 2, 3])], 1.0, 0.0, 8)
    assert sorted(rows(chosen)) == [("sgd", 0), ("sgd", 1), ("sgd", 2)]


def test_what_cannot_be_met_names_the_least():
    with pytest.raises(UsageError, match=r"least that was found is 500 mJ, with row 1, of sgd"):
        choose([group([0.9, 0.5], [1, 2])], 0.1, 0.0, 3)


NO_CHANCE = Chance(0.0)


def found_of(*pairs, chance=NO_CHANCE):
    trials = tuple(
        Trial(Candidate({}, "sgd", 1, j, 0.0), a, 1.0, at_chance=a is not None and chance.explains(a)) for j, a in pairs
    )
    return Found("x", "d", Meter("m", False), 1, 0.9, 1, 1, (1,), 9, 9, 0.1, ((), ()), (), "t", trials)


def test_the_front_is_what_nothing_beats():
    front = found_of((3, 0.9), (1, 0.5), (2, 0.4), (2.5, 0.8), (3.5, 0.9), (0.5, None)).front
    assert [(t.candidate.joules, t.accuracy) for t in front] == [(1, 0.5), (2.5, 0.8), (3, 0.9)]


def test_batches_are_compared_by_examples_and_each_profile_adds_its_optimizer(estimator):
    with_adam = Estimator(profile("adam", slower=1.2))
    found = search("cnn5", "80%", estimator, with_adam, batches=[5, 20], candidates=4000, trials=0)
    assert found.examples == 10
    assert set(found.batches) == {5, 20}
    assert {c.batch for c in found.chosen} == {5, 20}
    assert {c.optimizer for c in found.chosen} == {"sgd", "adam"}
    for candidate in found.chosen:
        by = estimator if candidate.optimizer == "sgd" else with_adam
        alone = by.estimate(traced("ampere.models.cnn5:build", candidate.arguments))
        assert candidate.joules == pytest.approx(alone.joules * 10 / candidate.batch, rel=0.02)
    assert {(row["batch"], row["optimizer"]) for row in found.rows()} >= {(5, "sgd"), (20, "adam")}
    assert all("-" in row["channels"] for row in found.rows())


@pytest.mark.parametrize("name", [*OPEN, *DRAWN])
def test_every_space_is_searched(estimator, name, monkeypatch):
    monkeypatch.setattr("ampere.searching.spaces.MOST_SHAPES", 3)  # each is traced several times
    found = search(name, "95%", estimator, candidates=24, trials=0, confidence=0.5)
    assert 1 <= found.screened <= 24 + 12
    assert all(c.joules <= found.budget_joules for c in found.chosen)


def test_depth_varies_where_a_family_has_it(estimator):
    found = search("lstm", "70%", estimator, candidates=20_000, trials=0, confidence=0.5)
    assert len({len(c.arguments["hidden"]) for c in found.chosen}) > 1


def test_a_function_of_ones_own_is_a_space(net, estimator):
    vary = {"width": range(8, 65), "kernel": (3, 5)}
    found = search(f"{net}:build", "90%", estimator, vary=vary, train=f"{net}:train", trials=4, confidence=0.5)
    assert found.screened == 2 * 57
    assert {t.accuracy for t in found.trials} == {t.candidate.arguments["width"] / 100 for t in found.trials}
    assert {c.arguments["kernel"] for c in found.chosen} <= {3, 5}


def test_where_a_range_decides_the_depth_networks_are_estimated_one_by_one(net, estimator):
    vary = {"depth": range(1, 4)}
    found = search(f"{net}:build", "1kJ", estimator, vary=vary, iterations=1, trials=0)
    assert sorted(c.arguments["depth"] for c in found.chosen) == [1, 2, 3]
    [one, two, three] = sorted(c.joules for c in found.chosen)
    assert one < two < three


def test_axes_are_read():
    assert read_axis("width=8..64") == ("width", range(8, 65))
    assert read_axis("kernel = 3, 5") == ("kernel", (3, 5))
    assert read_axis("norm=true,false") == ("norm", (True, False))
    assert read_axis("cell=lstm,gru") == ("cell", ("lstm", "gru"))


@pytest.mark.parametrize("text", ["width", "=3", "width=", "width=9..3", "width=0..3", "2x=3"])
def test_axes_that_make_no_sense_are_refused(text):
    with pytest.raises(UsageError, match="--vary"):
        read_axis(text)


def test_a_function_without_axes_or_with_too_many_is_refused(net):
    with pytest.raises(UsageError, match="needs arguments to vary"):
        of_function(f"{net}:build", {})
    with pytest.raises(UsageError, match="more than 64"):
        of_function(f"{net}:build", {"width": tuple(range(1, 100))})


def test_training_on_the_made_task_learns():
    space = of_space(find_space("lenet5"))
    train, chance = on_made_task(space, 250, seed=0)
    candidate = Candidate(space.original, "adam", space.original["batch"], 1.0, 0.1)
    trial = tried(train, space, candidate, 0, chance)
    assert trial.accuracy > 0.3
    assert not trial.at_chance


def test_the_task_is_the_same_each_time_and_its_classes_differ():
    import torch

    example = torch.zeros(1, 1, 12, 12)
    first, again = make_task(example, 3, seed=1), make_task(example, 3, seed=1)
    assert torch.equal(first.train[0], again.train[0])
    assert first.train[0].shape[1:] == example.shape[1:]
    assert set(first.test[1].tolist()) == {0, 1, 2}


def test_a_task_of_words_has_some_that_are_more_frequent_in_a_class():
    import torch

    words, labels = make_task(torch.zeros(1, 20, dtype=torch.long), 2, words=1000).train
    assert words.shape == (4000, 20)
    counts = [torch.bincount(words[labels == c].flatten(), minlength=1000) for c in (0, 1)]
    keywords = [set(c.topk(8).indices.tolist()) for c in counts]
    assert not keywords[0] & keywords[1]
    assert all(c.max() > 5 * c.float().mean() for c in counts)


def test_a_score_that_is_not_a_number_is_a_failed_trial_and_not_the_end(estimator):
    def train(model, candidate):
        return math.nan if candidate.joules == max(seen) else 0.5

    chosen = search_small(estimator, trials=0).chosen
    seen = [c.joules for c in chosen]
    found = search_small(estimator, train=train)
    assert [bool(t.failure) for t in found.trials].count(True) == 1
    assert all(t.accuracy is not None for t in found.front)
    with pytest.raises(ModelError, match="none of 3 candidates could be trained"):
        search_small(estimator, train=lambda m, c: math.nan, trials=3)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("words", r"net.py:words returned str, not a number"),
        ("percent", r"net.py:percent returned 87.5.*from 0 to 1"),
        ("raising", "none of 2 candidates.*no such data"),
        ("gone", "no func"),
    ],
)
def test_a_training_that_goes_wrong_is_one_line(net, estimator, name, says):
    with pytest.raises(ModelError, match=says):
        search_small(estimator, train=f"{net}:{name}", trials=2)


@pytest.mark.parametrize("score", [-0.2, 1.01, math.inf])
def test_a_score_that_is_no_accuracy_is_refused_with_its_value(estimator, score):
    def scored(model, candidate):
        return score

    with pytest.raises(ModelError, match=f"scored returned {score:g}, which is not an accuracy"):
        search_small(estimator, train=scored, trials=2)


@pytest.mark.parametrize("error", [ValueError("too narrow"), ModelError("too narrow"), MemoryError("too narrow")])
def test_one_candidate_that_fails_is_not_the_end(estimator, error):
    def train(model, candidate):
        if candidate.joules == min(seen):
            raise error
        return 0.5

    seen = [c.joules for c in search_small(estimator, trials=0).chosen]
    found = search_small(estimator, train=train)
    [failed] = [t for t in found.trials if t.accuracy is None]
    assert "too narrow" in failed.failure
    assert len(found.front) == 1


def test_one_candidate_that_cannot_be_built_is_not_the_end(estimator):
    space = of_space(find_space("cnn5"))
    trial = tried(lambda m, c: 1.0, space, Candidate({"nose": 3}, "sgd", 10, 1.0, 0.1), seed=0)
    assert trial.accuracy is None
    assert "nose" in trial.failure


@pytest.mark.parametrize(("name", "axis"), [("deep", "depth"), ("pairs", "width")])
def test_inputs_that_no_task_is_made_of_ask_for_a_training(net, estimator, name, axis):
    with pytest.raises(UsageError, match=r"bring a training, --train file\.py:function"):
        search(f"{net}:{name}", "1kJ", estimator, vary={axis: range(1, 3)}, trials=1)


def test_arguments_in_words():
    assert in_words({"channels": [3, 4], "batch": 8}) == "channels 3-4, batch 8"


def test_networks_at_chance_level_are_no_front():
    found = found_of((1, 0.11), (2, 0.125), (3, 0.13), (4, 0.6), chance=Chance(0.1, 1000))
    assert [trial.at_chance for trial in found.trials] == [True, True, False, False]
    assert [trial.candidate.joules for trial in found.front] == [3, 4]
    nothing = found_of((1, 0.1), (2, 0.12), chance=Chance(0.1, 1000))
    assert nothing.front == ()
    assert "no trained network is above chance level" in nothing.headline
    assert [row["at_chance"] for row in nothing.rows()] == [True, True]


def test_chance_is_wider_where_few_examples_were_tested():
    assert Chance(0.5, 50).explains(0.6)
    assert not Chance(0.5, 5000).explains(0.6)
    assert not Chance(0.5).explains(0.51)
    assert Chance(0.5).explains(0.51, examples=100)


def test_two_steps_of_training_are_at_chance_level_and_said_to_be(estimator):
    found = search("lenet5", "95%", estimator, candidates=2000, trials=2, steps=1, confidence=0.5)
    assert 0.1 <= found.chance < 0.15  # the most frequent of ten classes
    assert [trial.at_chance for trial in found.trials] == [True, True]
    assert found.front == ()
    assert found.to_json()["trials"][0]["at_chance"]


def test_chance_of_a_users_training_is_that_of_the_classes(net, estimator):
    vary = {"width": range(8, 65)}
    found = search(f"{net}:build", "90%", estimator, vary=vary, train=f"{net}:train", trials=6, confidence=0.5)
    assert found.chance == 0.2
    for trial in found.trials:
        assert trial.at_chance == (trial.candidate.arguments["width"] <= 20)

    def few_examples(model, candidate):
        return 0.3, 30

    counted = search(f"{net}:build", "90%", estimator, vary=vary, train=few_examples, trials=1, confidence=0.5)
    assert counted.trials[0].accuracy == 0.3
    assert counted.trials[0].at_chance


def test_everything_that_varies_is_listed_even_where_all_chosen_have_it_alike(net, estimator):
    vary = {"width": range(8, 65), "kernel": (3, 5), "depth": (1,)}
    found = search(f"{net}:build", "90%", estimator, vary=vary, train=f"{net}:train", trials=3, confidence=0.5)
    assert found.varied == ("width", "kernel", "depth")
    for row, trial in zip(found.rows(), found.trials, strict=True):
        assert {name: row[name] for name in vary} == {name: trial.candidate.arguments[name] for name in vary}
    assert all(f">{name}</th>" in found._repr_html_() for name in (*vary, "accuracy", "on_front"))


@pytest.mark.parametrize(
    ("name", "varied"),
    [
        ("lenet5", {"channels", "fc"}),
        ("resnet", {"blocks", "widths"}),
        ("transformer", {"layers", "width", "ff"}),
        ("cnn", {"convs", "norm", "head"}),
    ],
)
def test_depth_and_kernels_of_a_space_are_among_what_varies(name, varied):
    assert varied <= set(of_space(find_space(name)).varied)
    assert "batch" not in of_space(find_space(name)).varied


def test_a_search_without_a_profile_is_refused():
    with pytest.raises(UsageError, match="needs a profile"):
        search("cnn5", "50%")


def test_a_picture_of_networks_at_chance_level(tmp_path, estimator):
    pytest.importorskip("matplotlib")
    found = search_small(estimator, train=lambda m, c: 0.05, trials=2)
    draw(found, tmp_path / "front.png")
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")


def test_the_result_is_a_frame(estimator):
    pytest.importorskip("pandas")
    frame = search_small(estimator, trials=0).to_frame()
    assert {"joules", "stddev", "channels"} <= set(frame.columns)


def test_a_search_in_parts_chooses_as_well_as_one_at_once(estimator, net, monkeypatch):
    """What is in memory at a time is bounded, however many candidates there are."""
    asked = {"vary": {"width": range(4, 65)}, "trials": 0, "candidates": 4000, "confidence": 0.5}
    at_once = search(f"{net}:build", "70%", estimator, **asked)
    monkeypatch.setattr("ampere.searching.searching.AT_A_TIME", 1000)
    in_parts = search(f"{net}:build", "70%", estimator, **asked)
    assert (in_parts.screened, in_parts.inside) == (at_once.screened, at_once.inside)
    assert [c.arguments for c in in_parts.chosen] == [c.arguments for c in at_once.chosen]


def test_parts_are_every_network_once_and_leave_what_no_other_beats(estimator, monkeypatch):
    monkeypatch.setattr("ampere.searching.parts.PART", 300_000)
    monkeypatch.setattr("ampere.searching.parts.MOST_KEPT", 4_000)
    sent = []

    def elsewhere(work, parts):
        sent.append(pickle.dumps(work))  # as it goes to another process
        return map(pickle.loads(sent[0]), reversed(parts))

    found = search("lenet5", "90%", estimator, confidence=0.5, candidates=10**9, trials=0, over=elsewhere)
    whole = search("lenet5", "90%", estimator, confidence=0.5, candidates=10**6, trials=0)  # all in memory
    assert found.screened == whole.screened == 6 * 16 * 120 * 84
    assert (found.inside, sum(found.spread[1])) == (whole.inside, whole.screened)
    assert found.chosen[0] == whole.chosen[0]
    assert len(found.chosen) == len(whole.chosen)
    assert min(c.joules for c in found.chosen) == pytest.approx(min(c.joules for c in whole.chosen), rel=0.1)
    assert len(sent[0]) < 4e6
    assert 100 < len(found.shortlist) < 2_000
    best = max(found.shortlist, key=lambda row: row["capacity"])
    assert best["joules"] <= found.budget_joules
    assert {"joules", "stddev", "capacity", "channels", "fc"} <= set(best)


def test_limits_hold_for_candidates_in_parts_too(estimator):
    sizes = upper_bytes(of_space(find_space("lenet5"), (), 0), [estimator.profile], tuned=False)
    free = search("lenet5", "90%", estimator, confidence=0.5, candidates=50_000, trials=0, over=map)
    limit = sizes(free.chosen[0].arguments, "sgd") - 1e5
    found = search(
        "lenet5", "90%", estimator, confidence=0.5, candidates=50_000, trials=0, memory_bytes=limit, over=map
    )
    assert all(sizes(c.arguments, "sgd") <= limit for c in found.chosen)
    with pytest.raises(UsageError, match="of power cannot be met"):
        search("lenet5", "90%", estimator, confidence=0.5, candidates=50_000, trials=0, power=1e-9, over=map)
    with pytest.raises(UsageError, match="cannot be met: the least"):
        search("lenet5", 1e-12, estimator, candidates=50_000, trials=0, over=map)
    with pytest.raises(UsageError, match="estimated one by one"):
        search("cnn", "50%", estimator, trials=0, over=map)


def networks_of(part, shape):
    """All networks of a part, decoded one by one."""
    boxes = [Boxes.of(shape)[number] for number in part.boxes]
    return list(chain.from_iterable(product(*(range(low, high + 1) for low, high in box)) for box in boxes))[
        : part.count
    ]


@pytest.mark.parametrize("limited", [False, True])
def test_a_part_leaves_what_plain_enumeration_would(estimator, monkeypatch, limited):
    monkeypatch.setattr("ampere.searching.parts.BOX", 700)
    monkeypatch.setattr("ampere.searching.parts.PART", 12_000)
    monkeypatch.setattr("ampere.searching.parts.MOST_KEPT", 2_000)
    space = of_space(find_space("lenet5"), (), 0)
    (group,) = screen_all(space, [Prices(estimator, "system", 10)], 200, 0, lambda *report: None)
    allowed, power = float(np.median(group.joules)), float(np.median(group.watts())) if limited else None
    bytes_at = upper_bytes(space, [estimator.profile], tuned=False)
    rules = [rule_of(group, bytes_at, bytes_at(group.arguments(0), "sgd"))] if limited else []
    screen = Screen([group], allowed, power, rules)
    for part in parts_of([group.shape], 50_000, 1):
        widths = np.array(networks_of(part, group.shape))
        every, kept = group.at(widths), screen(part)
        capacity, within = every.capacity(np.arange(len(widths))), np.ones(len(widths), dtype=bool)
        if limited:
            within = (every.watts() <= power) & (rules[0].bytes(widths) <= rules[0].limit)
            assert 0 < within.sum() < len(within)
        assert (kept.screened, kept.inside) == (len(widths), np.sum(every.joules <= allowed))
        ended = np.clip(every.joules, screen.edges[0], screen.edges[-1])  # the ends take what is outside
        np.testing.assert_array_equal(kept.bars, np.histogram(ended, screen.edges)[0])
        assert kept.joules.min() == pytest.approx(every.joules[within].min())
        assert kept.joules.max() == pytest.approx(every.joules[within].max())
        known = {tuple(row): n for n, row in enumerate(widths.tolist())}
        chosen = [known[tuple(row)] for row in kept.widths.tolist()]
        assert np.all(within[chosen])
        rung = screen._rung(every.joules)
        for number in set(rung[within & (every.joules <= allowed)]):
            best = np.sort(capacity[within & (rung == number)])[::-1][:TRIED]
            mine = np.sort(capacity[[row for row in chosen if rung[row] == number]])[::-1]
            np.testing.assert_allclose(mine[: len(best)], best)


def test_boxes_hold_every_network_of_a_shape_once(monkeypatch):
    rng = np.random.default_rng(3)
    for _ in range(50):
        monkeypatch.setattr("ampere.searching.parts.BOX", int(rng.integers(1, 60)))
        monkeypatch.setattr("ampere.searching.parts.PART", int(rng.integers(1, 200)))
        least = tuple(rng.integers(1, 4, rng.integers(1, 5)).tolist())
        shape = Shape(least, tuple(low + int(rng.integers(0, 6)) for low in least), dict)
        parts = parts_of([shape], 10**6, 0)
        found = [network for part in parts for network in networks_of(part, shape)]
        assert sorted(found) == list(product(*(range(a, b + 1) for a, b in zip(least, shape.largest, strict=True))))
        assert sum(part.count for part in parts) == shape.size


def test_of_a_space_that_is_too_large_as_many_as_asked_for_are_drawn(monkeypatch):
    monkeypatch.setattr("ampere.searching.parts.PART", 4_000_000)
    shapes = [Shape((1,), (9,), dict), Shape((1,) * 5, (100,) * 5, dict)]
    small, *parts = parts_of(shapes, 9_000_000, 3)
    assert (small.group, small.count) == (0, 9)
    assert [part.group for part in parts] == [1, 1, 1]
    assert sum(part.count for part in parts) == 9_000_000 - 9
    boxes = [box for part in parts for box in part.boxes]
    assert len(set(boxes)) == len(boxes)
    first = [Boxes.of(shapes[1])[box][0][0] for box in boxes]
    assert min(first) < 5
    assert max(first) > 95
    assert parts_of(shapes, 9_000_000, 3)[1:] == parts
    assert parts_of(shapes, 9_000_000, 4)[1:] != parts


def test_a_space_with_more_networks_than_a_machine_can_number_is_drawn_from():
    shape = Shape((1,) * 12, (512,) * 12, dict)
    (part,) = parts_of([shape], 1_000_000, 0)
    assert part.count == 1_000_000
    assert all(1 <= low <= high <= 512 for box in part.boxes for low, high in Boxes.of(shape)[box])
