"""Data sets in folders of the user's, in the files that they are distributed as, and one that comes with scikit-learn.

    mnist:FOLDER     train-images-idx3-ubyte and the other three, as they are or as .gz
    cifar10:FOLDER   the binary version: data_batch_1.bin to data_batch_5.bin and test_batch.bin
    har:FOLDER       UCI HAR: train/ and test/ with y_*.txt and "Inertial Signals"/*.txt
    celeba:FOLDER    img_align_celeba/ and list_attr_celeba.txt; in colour, cropped as usual
    digits           scikit-learn's, enlarged to the size of MNIST

Nothing is downloaded and nothing that is read is executed: the pickled versions of CIFAR-10 are refused.
"""

from __future__ import annotations

import gzip
import importlib.util
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ampere.core.errors import RuntimeMissingError, UsageError

Inputs = NDArray[np.float32]  # (examples, channels, height, width), or (examples, signals, samples)
Labels = NDArray[np.int64]

MIDDLE = 127.5  # of a byte: pixels become numbers from -1 to 1


class Examples(NamedTuple):
    inputs: Inputs
    labels: Labels

    def at(self, places: Any) -> Examples:
        """Those at some places: a slice, or an array of indices."""
        return Examples(self.inputs[places], self.labels[places])

    def tensors(self) -> tuple[Any, Any]:
        import torch

        return torch.from_numpy(self.inputs), torch.from_numpy(self.labels)


class Dataset(NamedTuple):
    """What is learnt from, and what is tested on."""

    trained: Examples
    tested: Examples
    classes: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one example."""
        return tuple(self.trained.inputs.shape[1:])


def is_dataset(spec: str) -> bool:
    """Whether a text names a data set rather than a function."""
    return spec == DIGITS or spec.partition(":")[0] in READERS


def load(spec: str, trained: int | None = None, tested: int | None = None, seed: int = 0) -> Dataset:
    """A data set, or only so many of its examples: those to learn from chosen by the seed."""
    name, _, folder = spec.partition(":")
    if spec == DIGITS:
        found = digits(seed)
    elif name in READERS:
        if not folder or not Path(folder).is_dir():
            raise UsageError(f"{spec}: there is no folder {folder!r}: write {name}:FOLDER with {CONTENTS[name]}")
        found = READERS[name](Path(folder), trained, tested, seed)
    else:
        raise UsageError(
            f"there is no data set {name!r}: choose {DIGITS}, or {', '.join(f'{n}:FOLDER' for n in READERS)}"
        )
    chosen = np.random.default_rng(seed).permutation(len(found.trained.labels))[:trained]
    return found._replace(trained=found.trained.at(chosen), tested=found.tested.at(slice(tested)))


class Epochs:
    """Shuffled batches of a data set as tensors, an epoch each time; photographs are read as they are needed."""

    def __init__(self, spec: str, batch: int) -> None:
        name, _, folder = spec.partition(":")
        self._batch, self._folder = batch, Path(folder)
        self._rows = labels_in(self._folder) if name == "celeba" else []
        self._tensors: tuple[Any, ...] = () if self._rows else load(spec).trained.tensors()

    def __len__(self) -> int:
        """Batches of an epoch."""
        return self._count // self._batch

    @property
    def _count(self) -> int:
        return len(self._rows) or len(self._tensors[1])

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        count = self._count
        order = Random(0).sample(range(count), count)
        for begin in range(0, count - self._batch + 1, self._batch):
            chosen = order[begin : begin + self._batch]
            if self._rows:
                yield photographs(self._folder, [self._rows[i] for i in chosen]).tensors()
            else:
                yield self._tensors[0][chosen], self._tensors[1][chosen]


# MNIST: idx files. Two zeros, the type of the values, the number of dimensions, the dimensions, then all values.

UNSIGNED_BYTE = 8
MOST_VALUES = 1 << 30


def mnist(folder: Path, *_: object) -> Dataset:
    trained, tested = (
        Examples(
            _pixels(_idx(folder, f"{part}-images", 3)[:, None]), _idx(folder, f"{part}-labels", 1).astype(np.int64)
        )
        for part in ("train", "t10k")
    )
    for part, examples in (("train", trained), ("t10k", tested)):
        if len(examples.inputs) != len(examples.labels):
            raise UsageError(f"{folder}: {part} has {len(examples.inputs)} images and {len(examples.labels)} labels")
    return Dataset(trained, tested, _classes(folder, trained, tested, 10))


def _idx(folder: Path, name: str, dimensions: int) -> NDArray[np.uint8]:
    endings = (f"-idx{dimensions}-ubyte", f".idx{dimensions}-ubyte")
    places = [folder, folder / "raw", folder / "MNIST" / "raw"]
    paths = [place / f"{name}{ending}{packed}" for place in places for ending in endings for packed in ("", ".gz")]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise UsageError(f"{folder} has no {name}{endings[0]}, packed or not: give the folder with {CONTENTS['mnist']}")
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            head = file.read(4 + 4 * dimensions)
            sizes = tuple(int(size) for size in np.frombuffer(head[4:], ">u4"))
            if head[:4] != bytes([0, 0, UNSIGNED_BYTE, dimensions]) or len(sizes) != dimensions:
                raise UsageError(f"{path} is no idx file of {dimensions} dimensions of bytes: get it again")
            count = math.prod(sizes)
            body = file.read(min(count, MOST_VALUES) + 1)
    except (OSError, EOFError) as error:
        raise UsageError(f"{path} cannot be read ({error}): get it again") from None
    if not count or len(body) != count:
        raise UsageError(f"{path} should hold {count} values and holds {len(body)} or more: get it again")
    return np.frombuffer(body, np.uint8).reshape(sizes)


# CIFAR-10, binary version: records of a label and 3 x 32 x 32 bytes.

SIDE, COLOURS = 32, 3
RECORD = 1 + COLOURS * SIDE * SIDE


def cifar10(folder: Path, *_: object) -> Dataset:
    place = next((p for p in (folder, folder / "cifar-10-batches-bin") if (p / "test_batch.bin").is_file()), None)
    if place is None:
        pickled = any((p / "data_batch_1").is_file() for p in (folder, folder / "cifar-10-batches-py"))
        why = "the python version, which is pickled and is not read" if pickled else "no test_batch.bin"
        raise UsageError(f"{folder} holds {why}: get the binary version, with {CONTENTS['cifar10']}")
    parts = [_records(place / f"data_batch_{number}.bin") for number in range(1, 6)]
    trained = Examples(np.concatenate([p.inputs for p in parts]), np.concatenate([p.labels for p in parts]))
    tested = _records(place / "test_batch.bin")
    return Dataset(trained, tested, _classes(folder, trained, tested, 10))


def _records(path: Path) -> Examples:
    try:
        values = np.fromfile(path, np.uint8)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): get the binary version of CIFAR-10") from None
    if not len(values) or len(values) % RECORD:
        raise UsageError(f"{path} has {len(values)} bytes, which are no records of {RECORD}: get it again")
    rows = values.reshape(-1, RECORD)
    return Examples(_pixels(rows[:, 1:].reshape(-1, COLOURS, SIDE, SIDE)), rows[:, 0].astype(np.int64))


# UCI HAR: a text file for each of nine signals, 128 samples a line; activities from 1 to 6.

SIGNALS = tuple(f"{what}_{axis}" for what in ("body_acc", "body_gyro", "total_acc") for axis in "xyz")
SAMPLES, ACTIVITIES = 128, 6


def har(folder: Path, *_: object) -> Dataset:
    place = next((p for p in (folder, folder / "UCI HAR Dataset") if (p / "train").is_dir()), folder)
    trained, tested = _motions(place, "train"), _motions(place, "test")
    return Dataset(trained, tested, _classes(folder, trained, tested, ACTIVITIES))


def _motions(folder: Path, part: str) -> Examples:
    labels = _numbers(folder / part / f"y_{part}.txt", 1)[:, 0].astype(np.int64) - 1
    signals = [_numbers(folder / part / "Inertial Signals" / f"{name}_{part}.txt", SAMPLES) for name in SIGNALS]
    for name, values in zip(SIGNALS, signals, strict=True):
        if len(values) != len(labels):
            raise UsageError(f"{folder / part}: {name} has {len(values)} lines and y_{part}.txt {len(labels)}")
    return Examples(np.stack(signals, axis=1), labels)


def _numbers(path: Path, columns: int) -> Inputs:
    try:
        values = np.array(path.read_text(encoding="ascii").split(), dtype=np.float32)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): give the folder with {CONTENTS['har']}") from None
    except ValueError:
        raise UsageError(f"{path} holds something that is no number: get it again") from None
    if not values.size or values.size % columns or not np.isfinite(values).all():
        raise UsageError(f"{path} does not hold finite numbers, {columns} a line: get it again")
    return values.reshape(-1, columns)


# CelebA: aligned photographs of 178 x 218 pixels, of which the middle 148 x 148 are used, and a table of attributes.

ATTRIBUTE = "Male"  # the paper's task
PHOTOGRAPHS, TABLE = "img_align_celeba", "list_attr_celeba.txt"
CROP, SIZE = 148, 64


def celeba(folder: Path, trained: int | None, tested: int | None, seed: int) -> Dataset:
    """The first photographs to learn from and the last to be tested on, as CelebA itself divides them."""
    rows = labels_in(folder)
    wanted_tested = len(rows) // 10 if tested is None else tested
    wanted = len(rows) - wanted_tested if trained is None else trained
    if len(rows) < wanted + wanted_tested or not wanted or not wanted_tested:
        raise UsageError(
            f"{folder} lists {len(rows)} photographs, but {wanted + wanted_tested} are needed: get all of CelebA"
        )
    learnt = Random(seed).sample(rows[: len(rows) - wanted_tested], wanted)
    return Dataset(photographs(folder, learnt), photographs(folder, rows[-wanted_tested:]), 2)


def labels_in(folder: Path, attribute: str = ATTRIBUTE) -> list[tuple[str, int]]:
    """Each photograph's name, and whether it has the attribute."""
    if importlib.util.find_spec("PIL") is None:
        raise RuntimeMissingError("photographs need Pillow: pip install 'ampere-energy[plot]'")
    try:
        _, names, *lines = (folder / TABLE).read_text().splitlines()
        column = names.split().index(attribute) + 1
        return [(cells[0], int(cells[column] == "1")) for cells in map(str.split, lines) if cells]
    except OSError as error:
        raise UsageError(
            f"{folder} has no readable {TABLE} ({error.strerror}): give the folder with {CONTENTS['celeba']}"
        ) from None
    except (ValueError, IndexError):
        raise UsageError(f"{folder / TABLE} is no table of CelebA's with a column {attribute}: get it again") from None


def photographs(folder: Path, rows: Sequence[tuple[str, int]]) -> Examples:
    """In colour, the middle of each, at the usual 64 x 64 pixels."""
    from PIL import Image

    pixels = np.empty((len(rows), COLOURS, SIZE, SIZE), dtype=np.float32)
    for i, (name, _) in enumerate(rows):
        path = folder / PHOTOGRAPHS / Path(name).name
        try:
            with Image.open(path) as photograph:
                left, top = (photograph.width - CROP) // 2, (photograph.height - CROP) // 2
                middle = photograph.convert("RGB").crop((left, top, left + CROP, top + CROP)).resize((SIZE, SIZE))
                pixels[i] = np.asarray(middle, dtype=np.float32).transpose(2, 0, 1) / MIDDLE - 1
        except OSError as error:
            raise UsageError(f"{path} cannot be read ({error}): get CelebA's {PHOTOGRAPHS} again") from None
    return Examples(pixels, np.array([label for _, label in rows], dtype=np.int64))


# scikit-learn's digits: 1,797 of them, 8 x 8 pixels from 0 to 16.

DIGITS = "digits"
ENLARGED, BORDER, BRIGHTEST = 3, 2, 16.0
TESTED_SHARE = 0.2


def has_digits() -> bool:
    return importlib.util.find_spec("sklearn") is not None


def digits(seed: int = 0) -> Dataset:
    """Real handwritten digits, enlarged to 28 x 28; the seed decides which fifth is tested on."""
    if not has_digits():
        raise RuntimeMissingError("digits come with scikit-learn: pip install 'ampere-energy[baselines]'")
    from sklearn.datasets import load_digits

    small, labels = load_digits(return_X_y=True)
    images = small.reshape(-1, 8, 8).repeat(ENLARGED, axis=1).repeat(ENLARGED, axis=2)
    images = np.pad(images, ((0, 0), (BORDER, BORDER), (BORDER, BORDER)))
    order = np.random.default_rng(seed).permutation(len(labels))
    inputs = (images[order, None] / (BRIGHTEST / 2) - 1).astype(np.float32)
    tested = round(TESTED_SHARE * len(labels))
    every = Examples(inputs, labels[order].astype(np.int64))
    return Dataset(every.at(slice(tested, None)), every.at(slice(tested)), 10)


Reader = Callable[[Path, "int | None", "int | None", int], Dataset]
READERS: dict[str, Reader] = {"mnist": mnist, "cifar10": cifar10, "har": har, "celeba": celeba}
CONTENTS = {
    "mnist": "train-images-idx3-ubyte, train-labels-idx1-ubyte and the same of t10k",
    "cifar10": "data_batch_1.bin to data_batch_5.bin and test_batch.bin",
    "har": "train/ and test/ of the UCI HAR Dataset",
    "celeba": f"{PHOTOGRAPHS}/ and {TABLE}",
}


def _pixels(values: NDArray[np.uint8]) -> Inputs:
    return values.astype(np.float32) / np.float32(MIDDLE) - 1


def _classes(folder: Path, trained: Examples, tested: Examples, classes: int) -> int:
    highest = max(int(part.labels.max()) for part in (trained, tested))
    lowest = min(int(part.labels.min()) for part in (trained, tested))
    if lowest < 0 or highest >= classes:
        raise UsageError(f"{folder} has labels from {lowest} to {highest}, not 0 to {classes - 1}: get it again")
    return classes
