"""Data sets are read from the files that they are distributed as; what is wrong with them is one line."""

import gzip
import struct

import numpy as np
import pytest

from ampere.core.errors import UsageError
from ampere.models.datasets import RECORD, SIGNALS, Epochs, is_dataset, load
from ampere.profiling.overheads_process import data as time_data


def idx(values):
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


@pytest.fixture
def mnist(tmp_path):
    for part, count in (("train", 30), ("t10k", 10)):
        images = np.arange(count, dtype=np.uint8)[:, None, None].repeat(28, 1).repeat(28, 2)
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(idx(images))
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(
            gzip.compress(idx((np.arange(count) % 10).astype(np.uint8)))
        )
    return tmp_path


@pytest.fixture
def cifar10(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for name in (*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin"):
        records = np.zeros((4, RECORD), np.uint8)
        records[:, 0] = range(4)
        records[:, 1:1025] = 255  # the red ones
        (folder / name).write_bytes(records.tobytes())
    return tmp_path


@pytest.fixture
def har(tmp_path):
    for part, count in (("train", 6), ("test", 3)):
        folder = tmp_path / "UCI HAR Dataset" / part / "Inertial Signals"
        folder.mkdir(parents=True)
        (folder.parent / f"y_{part}.txt").write_text("".join(f"{1 + n % 6}\n" for n in range(count)))
        for number, name in enumerate(SIGNALS):
            line = " ".join([f"  {number}.5e-001"] * 128)
            (folder / f"{name}_{part}.txt").write_text(f"{line}\n" * count)
    return tmp_path


@pytest.fixture
def celeba(tmp_path):
    """30 photographs of one grey each with a red edge, men brighter."""
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "img_align_celeba").mkdir()
    rows = []
    for number in range(30):
        name, man = f"{number:06}.jpg", number % 2
        photograph = image.new("RGB", (178, 218), (255, 0, 0))
        photograph.paste((60 + 100 * man,) * 3, (10, 30, 168, 190))
        photograph.save(tmp_path / "img_align_celeba" / name, quality=95)
        rows.append(f"{name}  -1 {'1' if man else '-1'}")
    (tmp_path / "list_attr_celeba.txt").write_text("\n".join(["30", "Smiling Male", *rows]) + "\n")
    return tmp_path


def test_mnist_is_read_packed_or_not(mnist):
    found = load(f"mnist:{mnist}")
    assert found.trained.inputs.shape == (30, 1, 28, 28)
    assert sorted(found.trained.labels) == sorted(n % 10 for n in range(30))
    assert found.tested.inputs[9, 0, 0, 0] == pytest.approx(9 / 127.5 - 1)
    assert len(load(f"mnist:{mnist}", 5, 2).trained.labels) == 5


def test_cifar10_has_colours_in_planes(cifar10):
    found = load(f"cifar10:{cifar10}")
    assert found.shape == (3, 32, 32)
    assert len(found.trained.labels) == 20
    assert found.tested.inputs[0, 0].min() == 1
    assert found.tested.inputs[0, 1:].max() == -1


def test_har_has_nine_signals_and_activities_from_zero(har):
    found = load(f"har:{har}")
    assert found.tested.inputs.shape == (3, 9, 128)
    assert list(found.tested.labels) == [0, 1, 2]
    assert found.tested.inputs[0, 8, 0] == pytest.approx(0.85)


def test_photographs_are_cropped_in_colour_and_come_with_their_attribute(celeba):
    found = load(f"celeba:{celeba}", 20, 10)
    assert found.trained.inputs.shape == (20, 3, 64, 64)
    assert list(found.tested.labels) == [0, 1] * 5
    reds = found.trained.inputs[:, 0] - found.trained.inputs[:, 1]
    assert np.abs(reds).max() < 0.2, "the red edge is cut off"
    men = found.trained.labels == 1
    assert found.trained.inputs[men].min() > found.trained.inputs[~men].max()


def test_digits_are_real_and_divided_by_the_seed():
    pytest.importorskip("sklearn")
    found, other = load("digits"), load("digits", seed=1)
    assert found.shape == (1, 28, 28)
    assert (len(found.trained.labels), len(found.tested.labels)) == (1438, 359)
    assert set(found.tested.labels) == set(range(10))
    assert not np.array_equal(found.tested.inputs, other.tested.inputs)


def broken(path, content):
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("train-images-idx3-ubyte", b"", "no idx file of 3 dimensions"),
        ("train-images-idx3-ubyte", b"\x00\x00\x0d\x03" + bytes(12), "no idx file of 3 dimensions"),
        ("train-images-idx3-ubyte", b"\x00\x00\x08\x03" + b"\xff" * 12, "should hold"),
        ("train-images-idx3-ubyte", idx(np.zeros((29, 28, 28), np.uint8)), "29 images and 30 labels"),
        ("train-labels-idx1-ubyte.gz", b"no gzip", "cannot be read"),
        ("train-labels-idx1-ubyte.gz", gzip.compress(idx(np.full(30, 11, np.uint8)), mtime=0), "labels from 0 to 11"),
    ],
)
def test_damaged_files_of_mnist_are_named(mnist, name, content, says):
    broken(mnist / name, content)
    with pytest.raises(UsageError, match=says):
        load(f"mnist:{mnist}")


def test_the_pickled_cifar10_is_not_read(tmp_path):
    (tmp_path / "data_batch_1").write_bytes(b"\x80\x04.")
    with pytest.raises(UsageError, match="python version, which is pickled and is not read: get the binary version"):
        load(f"cifar10:{tmp_path}")


def test_a_cut_file_of_cifar10_is_named(cifar10):
    broken(cifar10 / "cifar-10-batches-bin" / "data_batch_3.bin", bytes(RECORD + 1))
    with pytest.raises(UsageError, match=r"data_batch_3.bin has 3074 bytes, which are no records"):
        load(f"cifar10:{cifar10}")


@pytest.mark.parametrize(
    ("content", "says"), [(b"1 2 x", "no number"), (b"1 2 3", "128 a line"), (b"nan " * 128, "finite numbers")]
)
def test_damaged_signals_are_named(har, content, says):
    broken(har / "UCI HAR Dataset" / "test" / "Inertial Signals" / "body_acc_x_test.txt", content)
    with pytest.raises(UsageError, match=rf"body_acc_x_test.txt .*{says}"):
        load(f"har:{har}")


def test_what_celeba_lacks_is_said(celeba, tmp_path_factory):
    with pytest.raises(UsageError, match="30 photographs, but 40 are needed"):
        load(f"celeba:{celeba}", 20, 20)
    (celeba / "img_align_celeba" / "000029.jpg").unlink()
    with pytest.raises(UsageError, match=r"000029.jpg cannot be read"):
        load(f"celeba:{celeba}", 20, 10)
    for table in ("", "30\nSmiling\na.jpg 1\n"):
        (celeba / "list_attr_celeba.txt").write_text(table)
        with pytest.raises(UsageError, match="no table of CelebA's with a column Male"):
            load(f"celeba:{celeba}", 1, 1)
    with pytest.raises(UsageError, match=r"no readable list_attr_celeba.txt"):
        load(f"celeba:{tmp_path_factory.mktemp('empty')}", 1, 1)


@pytest.mark.parametrize("name", ["mnist", "cifar10", "har", "celeba"])
def test_a_folder_that_is_not_there_is_said(name):
    with pytest.raises(UsageError, match=rf"no folder '/nowhere': write {name}:FOLDER with"):
        load(f"{name}:/nowhere")


def test_names_are_distinguished_from_functions():
    assert is_dataset("mnist:/data")
    assert is_dataset("digits")
    assert not is_dataset("data.py:loader")


@pytest.mark.parametrize("name", ["mnist", "celeba"])
def test_batches_are_tensors_and_loading_is_timed(name, request):
    folder = request.getfixturevalue(name)
    seen = [tuple(inputs.shape) for inputs, _ in Epochs(f"{name}:{folder}", 7)]
    assert len(seen) == 4
    assert seen[0][0] == 7
    timed = time_data({"loader": f"{name}:{folder}", "batch": 7, "seconds": 0.02})
    assert timed["batches"] >= 1
