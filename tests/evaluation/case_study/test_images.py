"""Faces that Ampere draws, and photographs that a user has."""

import numpy as np
import pytest

from ampere.core.errors import UsageError
from ampere.evaluation.case_study.images import SIZE, draw_faces, load_celeba, task


def test_faces_are_repeatable_and_differ_by_seed():
    one, same, other = draw_faces(40, 3), draw_faces(40, 3), draw_faces(40, 4)
    assert one.pixels.shape == (40, SIZE, SIZE)
    assert one.pixels.dtype == np.float32
    assert np.array_equal(one.pixels, same.pixels)
    assert not np.array_equal(one.pixels, other.pixels)


def test_half_of_the_faces_smile_and_light_does_not_report_which():
    faces = draw_faces(4000, 0)
    assert 0.45 < faces.labels.mean() < 0.55
    brightness = faces.pixels.mean(axis=(1, 2))
    assert abs(np.corrcoef(brightness, faces.labels)[0, 1]) < 0.06


def test_what_is_tested_was_not_learnt_from():
    found = task("", 0, 30, 30)
    assert not np.array_equal(found.trained.pixels, found.tested.pixels)


@pytest.fixture
def folder(tmp_path):
    """Of the form that CelebA has: 30 photographs of one grey each, men brighter."""
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "img_align_celeba").mkdir()
    rows = []
    for number in range(30):
        name, man = f"{number:06}.jpg", number % 2
        image.new("RGB", (178, 218), (60 + 100 * man,) * 3).save(tmp_path / "img_align_celeba" / name)
        rows.append(f"{name}  -1 {'1' if man else '-1'}")
    (tmp_path / "list_attr_celeba.txt").write_text("\n".join(["30", "Smiling Male", *rows]) + "\n")
    return tmp_path


def test_photographs_come_with_their_attribute(folder):
    trained, tested = load_celeba(folder, 20, 10)
    assert trained.pixels.shape == (20, SIZE, SIZE)
    assert list(tested.labels) == [0, 1] * 5
    assert trained.pixels[trained.labels == 1].min() > trained.pixels[trained.labels == 0].max()


def test_a_folder_without_celeba_is_said(tmp_path):
    with pytest.raises(UsageError, match=r"no readable list_attr_celeba.txt.*folder that holds it"):
        load_celeba(tmp_path, 20, 10)


def test_too_few_photographs_are_said(folder):
    with pytest.raises(UsageError, match="30 photographs, but 40 are needed"):
        load_celeba(folder, 20, 20)


def test_a_missing_photograph_is_said(folder):
    (folder / "img_align_celeba" / "000029.jpg").unlink()
    with pytest.raises(UsageError, match=r"000029.jpg cannot be read"):
        load_celeba(folder, 20, 10)


@pytest.mark.parametrize("table", ["", "30\nSmiling\na.jpg 1\n"])
def test_a_table_without_the_attribute_is_said(folder, table):
    (folder / "list_attr_celeba.txt").write_text(table)
    with pytest.raises(UsageError, match="no table of CelebA's with a column Male"):
        load_celeba(folder, 1, 1)
