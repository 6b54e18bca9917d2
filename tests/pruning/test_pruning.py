import math
import re
import threading
from dataclasses import replace

import pytest
import torch
from torch import nn

import ampere
from ampere.core import units
from ampere.core.errors import ModelError, UsageError
from ampere.estimation.estimator import Estimator
from ampere.pruning.strategies import STRATEGIES


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "flops"])
def test_the_result_is_inside_the_budget_and_trains(model, image, estimator, strategy):
    pruned = ampere.prune(model, image, "50%", estimator, strategy)
    assert pruned.inside
    assert pruned.after.joules <= 0.5 * pruned.before.joules
    assert ampere.estimate(ampere.trace(pruned.model, image), estimator).joules == pytest.approx(pruned.after.joules)
    optimizer = torch.optim.SGD(pruned.model.parameters(), lr=0.01)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(pruned.model(image), torch.arange(10))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert pruned.model(image).shape == model(image).shape


def test_ours_uses_the_budget(model, image, estimator):
    """As far as whole vectors allow: two layers of few channels have few widths at which joules change."""
    assert ampere.prune(model, image, "50%", estimator).share > 0.48


def test_a_model_with_every_sort_of_tie(tied, image, estimator):
    pruned = ampere.prune(tied, image, 0.7, estimator)
    assert pruned.inside
    assert pruned.model(image).shape == (10, 10)


def test_the_users_model_is_not_changed(model, image, estimator):
    before = {name: value.clone() for name, value in model.state_dict().items()}
    pruned = ampere.prune(model, image, "50%", estimator)
    assert pruned.model is not model
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in before.items())


def test_confidence_leaves_room_for_uncertainty(model, image, estimator):
    even, sure = (ampere.prune(model, image, "50%", estimator, confidence=c) for c in (0.5, 0.95))
    assert sure.after.joules < even.after.joules
    assert sure.after.joules + 1.6448 * sure.after.stddev <= sure.budget_joules


def test_flops_are_judged_by_flops_and_the_estimate_is_reported(model, image, estimator):
    from ampere.pruning.price import flops_of

    pruned = ampere.prune(model, image, "50%", estimator, "flops")
    assert flops_of(pruned.networks[1]) <= 0.5 * flops_of(pruned.networks[0])
    before, after = (ampere.estimate(ampere.trace(m, image), estimator).joules for m in (model, pruned.model))
    assert pruned.budget_joules == pytest.approx(0.5 * before)
    assert pruned.share == pytest.approx(after / before)
    assert after > 0.5 * before  # here half the FLOPs are not half the joules
    assert not pruned.inside


def test_layers_are_reported_before_and_after(model, image, estimator):
    pruned = ampere.prune(model, image, "50%", estimator)
    layers = list(pruned.layers())
    assert [layer.name for layer in layers] == ["0", "2", "5"]
    assert layers[0].channels_before == (3, 24)
    assert layers[0].channels_after[1] == layers[1].channels_after[0] == pruned.model[0].out_channels
    widths = {w.group: w.after for w in pruned.widths}
    assert widths == {"0": pruned.model[0].out_channels, "2": pruned.model[2].out_channels}


def test_what_is_kept_is_kept(model, image, estimator):
    pruned = ampere.prune(model, image, "80%", estimator, keep=["0"])
    assert pruned.model[0].weight.shape == model[0].weight.shape
    assert pruned.model[2].out_channels < 40
    assert "0: kept by request" in pruned.fixed


@pytest.mark.parametrize(
    ("budget", "more", "says"),
    [
        ("0.1%", {}, "cannot be met.*at the widths 2: [0-9]+, 0: [0-9]+"),
        ("900kJ", {}, "already holds"),
        ("50%", {"keep": ["nose"]}, "no layer 'nose'.*first are 0, 1"),
        ("50%", {"strategy": "enegy"}, "did you mean energy"),
        ("50%", {"confidence": 0.2}, "confidence"),
    ],
)
def test_what_cannot_be_done_is_said(model, image, estimator, budget, more, says):
    with pytest.raises(UsageError, match=says):
        ampere.prune(model, image, budget, estimator, **more)


def test_a_model_with_nothing_to_prune(image, estimator):
    only = nn.Sequential(nn.Flatten(), nn.Linear(3 * 196, 10))
    with pytest.raises(ModelError, match=r"nothing to prune.*output"):
        ampere.prune(only, image, "50%", estimator)


def test_the_short_training_decides_between_random_candidates(model, image, estimator):
    seen = []

    def train(candidate):
        seen.append(candidate)
        return float(candidate[0].out_channels)

    pruned = ampere.prune(model, image, "50%", estimator, "random", short_training=train)
    assert len(seen) > 4
    assert len({candidate[0].out_channels for candidate in seen}) > 1
    assert pruned.model[0].out_channels == min(candidate[0].out_channels for candidate in seen)


def test_a_loss_that_is_no_number_is_out_and_said_when_it_is_all_there_is(model, image, estimator):
    broken = iter([math.nan, 1.0, *[math.inf] * 20])
    assert ampere.prune(model, image, "50%", estimator, "random", short_training=lambda _: next(broken)).inside
    with torch.no_grad():
        model[0].bias.fill_(math.nan)
    with pytest.raises(ModelError, match=r"loss that is not a number.*--strategy energy"):
        ampere.prune(model, image, "50%", estimator, "random")


def test_a_budget_above_the_cost_names_the_cost(model, image, estimator):
    now = ampere.estimate(ampere.trace(model, image), estimator).joules
    with pytest.raises(UsageError, match=f"already holds.*{re.escape(units.joules(now))}"):
        ampere.prune(model, image, f"{2 * now}J", estimator)


def test_the_least_that_can_be_met_can_be_met(model, image, estimator):
    with pytest.raises(UsageError) as refused:
        ampere.prune(model, image, "1%", estimator)
    share = float(re.search(r"\(([0-9.]+) %\)", str(refused.value))[1])
    assert ampere.prune(model, image, f"{share + 1}%", estimator).inside


def test_when_everything_is_kept_nothing_is_left_to_prune(model, image, estimator):
    with pytest.raises(ModelError, match=r"nothing to prune: .*kept by request"):
        ampere.prune(model, image, "50%", estimator, keep=["0", "2", "5"])


def test_a_result_that_is_more_expensive_than_the_original_is_refused(model, image, estimator):
    """Where the original is very uncertain and everything else certainly costs a little more."""
    whole = ampere.trace(model, image)
    now = ampere.estimate(whole, estimator).joules

    class Uncertain(Estimator):
        def estimate(self, network, *arguments, **named):
            said = super().estimate(network, *arguments, **named)
            known = network.layers != whole.layers
            return replace(said, joules=1.02 * now, stddev=0.0) if known else replace(said, stddev=0.5 * now)

    with pytest.raises(ModelError, match=r"more expensive than the original.*102 %.*estimated.*keep the original"):
        ampere.prune(model, image, f"{1.1 * now}J", Uncertain(estimator.profile), confidence=0.9)


def test_a_model_that_cannot_be_copied_says_so(model, image, estimator):
    model.lock = threading.Lock()
    with pytest.raises(ModelError, match=r"Sequential cannot be copied \(.*lock.*outside the model"):
        ampere.prune(model, image, "50%", estimator)


def test_a_misspelt_allocator_is_refused(model, image, estimator):
    with pytest.raises(UsageError, match="allocator 'sytem' is none of"):
        ampere.prune(model, image, "50%", estimator, allocator="sytem")


def test_a_result_is_shown_as_a_table_of_its_layers(model, image, estimator):
    pruned = ampere.prune(model, image, "50%", estimator)
    rows = pruned.rows()
    assert [row["layer"] for row in rows] == ["0", "2", "5"]
    assert rows[0]["channels_after"] == pruned.model[0].out_channels < rows[0]["channels_before"] == 24
    shown = pruned._repr_html_()
    assert shown.count("<tr>") == 4
    assert "an iteration" in shown
    assert "(energy, estimated)" in shown


def test_a_result_as_a_frame(model, image, estimator):
    pytest.importorskip("pandas")
    frame = ampere.prune(model, image, "50%", estimator).to_frame()
    assert frame["joules_after"].sum() < frame["joules_before"].sum()
