"""Faces that Ampere draws, and photographs that a user has."""

import numpy as np
import pytest

from ampere.core.errors import UsageError
from ampere.evaluation.case_study.images import SIZE, draw_faces, name_of, task
from ampere.models.datasets import has_digits


def test_faces_are_repeatable_and_differ_by_seed():
    one, same, other = draw_faces(40, 3), draw_faces(40, 3), draw_faces(40, 4)
    assert one.inputs.shape == (40, 1, SIZE, SIZE)
    assert one.inputs.dtype == np.float32
    assert np.array_equal(one.inputs, same.inputs)
    assert not np.array_equal(one.inputs, other.inputs)


def test_half_of_the_faces_smile_and_light_does_not_report_which():
    faces = draw_faces(4000, 0)
    assert 0.45 < faces.labels.mean() < 0.55
    brightness = faces.inputs.mean(axis=(1, 2, 3))
    assert abs(np.corrcoef(brightness, faces.labels)[0, 1]) < 0.06


def test_what_is_tested_was_not_learnt_from():
    found = task("faces", 0, 30, 30)
    assert not np.array_equal(found.trained.inputs, found.tested.inputs)


@pytest.mark.parametrize("data", ["har:/data", "data.py:loader"])
def test_what_are_no_images_is_refused(data):
    with pytest.raises(UsageError, match="the case study classifies images: choose digits"):
        task(data, 0)


def test_digits_are_the_default_where_scikit_learn_is(monkeypatch):
    assert name_of("") == ("digits" if has_digits() else "faces")
    monkeypatch.setattr("ampere.evaluation.case_study.images.has_digits", lambda: False)
    assert name_of("") == "faces"
    assert name_of("celeba:C:\\photographs") == "celeba"
