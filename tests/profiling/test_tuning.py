"""Advice: what saves is found, what does not is not claimed, and changes really change how a model is trained."""

from pathlib import Path
from random import Random

import pytest
from tests.synthetic import chain

import ampere
from ampere.core import TrainingSetup
from ampere.core.errors import UsageError
from ampere.devices import VariantFailed
from ampere.models.loading import load_model
from ampere.profiling.sources import source_of
from ampere.profiling.tuning import Change, _of_batch, changes_for, try_changes
from ampere.runtimes.plain_loop import train

MODEL = """
import torch
from torch import nn

def build(batch=4):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4))
    return model, torch.randn(batch, 3, 8, 8)
"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text(MODEL)
    return f"{tmp_path / 'net.py'}:build"


def tried(savings: "dict[str, float]", spread: float, seed: int, seconds: float = 100.0):
    """Changes of a machine on which each really saves so much, and processes differ by `spread`."""
    rng, now = Random(seed), [0.0]

    def measure(change: Change, with_it_first: bool) -> "tuple[float, float]":
        now[0] += 3.0
        without, having = (0.1 * rng.lognormvariate(0, spread) for _ in range(2))
        return without, having * (1 - savings[change.name])

    changes = [Change(name, name, (f"use {name}",)) for name in savings]
    found, joules = try_changes(changes, measure, seconds, clock=lambda: now[0])
    return {one.change: one for one in found}, joules


def test_a_saving_of_ten_percent_is_found_and_its_size_is_right():
    found = [tried({"allocator": 0.12, "fused": 0.0}, 0.02, seed) for seed in range(20)]
    assert sum(one["allocator"].confirmed for one, _ in found) >= 18
    savings = [one["allocator"].saving for one, _ in found]
    assert sum(savings) / len(savings) == pytest.approx(0.12, abs=0.02)
    advice, joules = found[0][0]["allocator"], found[0][1]
    assert advice.joules_saved == pytest.approx(advice.saving * joules)
    assert advice.paste == ("use allocator",)


def test_progress_expects_what_the_fewest_pairs_take_where_that_is_more_than_the_seconds():
    now, reported = [0.0], list[tuple[float, float]]()

    def measure(change: Change, with_it_first: bool) -> "tuple[float, float]":
        now[0] += 3.0
        return 1.0, 1.0

    changes = [Change(str(n), str(n), ()) for n in range(5)]
    try_changes(changes, measure, 10.0, lambda *seen: reported.append(seen[:2]), clock=lambda: now[0])
    assert reported[1:] == [(3.0 * n, 45.0) for n in range(1, 15)]  # three pairs of each


def test_what_saves_nothing_is_hardly_ever_advised():
    names = {f"change {n}": 0.0 for n in range(5)}
    claimed = [one.confirmed for seed in range(40) for one in tried(names, 0.06, seed, 200.0)[0].values()]
    assert sum(claimed) <= 0.02 * len(claimed)


def test_what_costs_more_is_reported_as_that():
    found, _ = tried({"threads 2": -0.3, "allocator": 0.12}, 0.02, 1)
    assert list(found) == ["allocator", "threads 2"]
    assert found["threads 2"].saving < -0.2
    assert found["threads 2"].probability < 0.05
    assert not found["threads 2"].confirmed


def test_a_change_that_fails_is_named_and_the_others_are_tried():
    def measure(change: Change, with_it_first: bool) -> "tuple[float, float]":
        if change.name == "fused":
            raise VariantFailed("the model cannot be trained: no fused update here")
        return 1.0, 0.8

    changes = [Change(name, name, ()) for name in ("fused", "allocator")]
    first, second = try_changes(changes, measure, 10.0, clock=lambda: 0.0)[0]
    assert (first.change, first.confirmed) == ("allocator", True)
    assert "no fused update" in second.failed
    with pytest.raises(VariantFailed, match="no fused update"):
        try_changes(changes[:1], measure, 10.0, clock=lambda: 0.0)


def test_only_what_keeps_what_is_learnt_is_tried_unless_allowed():
    network = chain(3, 8, 8)
    usual = {change.name for change in changes_for(network, TrainingSetup(), 4)}
    assert {"allocator", "threads 4", "channels_last", "fused", "foreach"} == usual
    allowed = {change.name for change in changes_for(network, TrainingSetup(), 1, ("bfloat16", "batch"))}
    assert {"bfloat16", "batch"} <= allowed
    assert "compile" not in allowed
    assert "fused" not in {change.name for change in changes_for(network, TrainingSetup(optimizer="lion"), 1)}
    with pytest.raises(UsageError, match="nothing to allow"):
        ampere.tune("lenet5", allow=["magic"])


@pytest.mark.parametrize(
    "changes",
    [{"channels_last": True}, {"autocast": True}, {"optimizer": {"fused": True}}, {"optimizer": {"foreach": True}}],
)
def test_every_change_trains(model, changes):
    workload = dict(source_of(load_model(model)).original().workload)
    found = train(workload, TrainingSetup(), 0.0, 0.0, changes)
    assert found["windows"][0][2] > 0
    assert all(loss == loss for loss in found["loss"])


def test_another_batch_is_of_the_function_or_of_its_inputs(model):
    own = source_of(load_model(model)).original()
    assert _of_batch(own, 8)["arguments"] == {"batch": 8}
    given = source_of(load_model(model, "4x3x8x8")).original()
    assert _of_batch(given, 8)["inputs"][0]["shape"] == [8, 3, 8, 8]


def test_what_no_other_process_can_build_is_refused():
    torch = pytest.importorskip("torch")
    network = ampere.trace(torch.nn.Linear(3, 2), torch.randn(4, 3))
    with pytest.raises(UsageError, match=r"file\.py:function"):
        ampere.tune(network)
    with pytest.raises(UsageError, match="on this machine"):
        ampere.tune("lenet5", device="simulated:xavier")
