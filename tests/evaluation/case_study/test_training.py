import pytest
import torch

from ampere.core.errors import ModelError
from ampere.evaluation.case_study.images import task
from ampere.evaluation.case_study.model import LOOKS, train
from ampere.models.cnn5 import build


def trained(seed, iterations=120):
    torch.manual_seed(seed)
    model, _ = build([4, 8, 8, 16], batch=10)
    return train(model, task("faces", 0, 600, 200), iterations, 10, seed, lambda share: None)


def test_faces_can_be_learnt():
    found = trained(0, iterations=900)
    assert found.accuracy > 0.7
    assert found.loss < found.curve[0][1]
    assert found.cpu_seconds > 0


def test_a_curve_goes_from_the_first_weights_to_the_last():
    found = trained(1)
    assert [found.curve[0][0], found.curve[-1][0]] == [0, 120]
    assert len(found.curve) == LOOKS + 1


def test_the_same_seed_trains_the_same():
    threads = torch.get_num_threads()
    assert trained(2).curve == trained(2).curve
    assert torch.get_num_threads() == threads


def test_a_loss_that_is_no_number_is_named():
    model, _ = build([4, 8, 8, 16], batch=10)
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    with pytest.raises(ModelError, match="loss on the test images became nan"):
        train(model, task("faces", 0, 600, 200), 20, 10, 0, lambda share: None)
