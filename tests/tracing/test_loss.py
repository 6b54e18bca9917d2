"""The loss when the user names none."""

from typing import Any

import pytest
import torch
import torch.nn.functional as functional

from ampere.runtimes.plain_script import differentiable, targets, training_loss

from .zoo_unusual import Answer


def trainable(*shape: int) -> torch.Tensor:
    return torch.ones(shape, requires_grad=True)


def test_class_scores_get_cross_entropy() -> None:
    scores = torch.randn(5, 3, requires_grad=True)
    assert training_loss(scores).item() == pytest.approx(functional.cross_entropy(scores, targets(scores)).item())


def test_labels_are_the_same_each_step_and_leave_random_numbers_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first = targets(trainable(7, 4))
    assert first is targets(trainable(7, 4))
    assert torch.rand(1) == expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (trainable(2, 3, 4), 1.0),
        (trainable(5, 1), 1.0),
        ((trainable(2, 3), [trainable(4), 7]), 2.0),
        ({"a": trainable(2, 3), "b": {"c": trainable(2)}, "n": None}, 2.0),
        (Answer(trainable(2, 2), trainable(3)), 2.0),
        ((trainable(2, 3, 4), torch.ones(9)), 1.0),
    ],
)
def test_other_outputs_get_the_mean_of_squares(output: Any, expected: float) -> None:
    assert training_loss(output).item() == pytest.approx(expected)


def test_the_models_own_loss_comes_first() -> None:
    own = trainable(1).sum() * 5
    assert training_loss({"loss": own, "logits": trainable(2, 2)}) is own


def test_a_number_is_a_loss_alone_or_where_the_other_outputs_lead_to_it() -> None:
    scores = trainable(4, 3) * 2
    loss = functional.cross_entropy(scores.view(-1, 3), torch.zeros(4, dtype=torch.long))
    assert training_loss(-loss).item() == -loss.item()  # as a likelihood's is, whose square would grow
    assert training_loss((scores, loss)) is loss
    assert training_loss([loss, {"scores": scores}]) is loss
    assert training_loss((loss, loss * 2)).item() == pytest.approx(5 * loss.item() ** 2)


def test_a_penalty_beside_other_outputs_is_not_the_loss() -> None:
    codes = trainable(4, 3) * 2
    penalty = codes.square().mean()
    assert training_loss((codes.relu(), penalty)).item() == pytest.approx(4.0 + penalty.item() ** 2)


def test_on_shapes_alone() -> None:
    scores = torch.empty(5, 3, device="meta", requires_grad=True)
    training_loss(scores).backward()
    assert scores.grad is not None


def test_nothing_to_start_from() -> None:
    assert differentiable([torch.ones(2), "a", {"b": torch.ones(1)}]) == []
    with pytest.raises(ValueError, match="no output of the model"):
        training_loss(torch.ones(2))
