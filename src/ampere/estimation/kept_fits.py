"""Fits of stored profiles, kept on disk: the next command neither fits again nor imports what fits.

A file is named by all that a fit depends on: the profile's checksum, the watts asked for, Ampere's code and numpy. It
holds arrays and numbers, each as it was, so that answers are the same to the last bit. A file that is missing, damaged
or cannot be written only means fitting again.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ampere.core.errors import StorageError
from ampere.storage.files import write_whole
from ampere.storage.places import fits_folder

from .features import Array

MOST_KEPT = 6  # files: one is a few MB
DECIDING = ("core", "estimation", "storage", "devices")  # packages of Ampere whose code a fit depends on
NUMBERS = "numbers"


def name_of(seal: str, *asked: object) -> str:
    """The name of a fit of the profile with this checksum, with what else was asked for."""
    return sha256(repr((seal, asked, np.__version__, _code())).encode()).hexdigest()


@lru_cache(maxsize=1)
def _code() -> str:
    """What changes when Ampere's version does, or one of the files of its code and tables."""
    root = Path(__file__).parents[1]
    files = sorted(f for package in DECIDING for f in (root / package).rglob("*") if f.suffix in (".py", ".csv"))
    seen = [(str(file.relative_to(root)), (known := file.stat()).st_size, known.st_mtime_ns) for file in files]
    return sha256(repr(seen).encode() + (root / "__init__.py").read_bytes()).hexdigest()


def read(name: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """The numbers and arrays of a fit; KeyError where it is not kept."""
    try:
        with np.load(_file(name), allow_pickle=False) as kept:
            arrays = dict(kept)
        return json.loads(str(arrays.pop(NUMBERS))), arrays
    except Exception as problem:  # whatever is wrong with the file
        raise KeyError(name) from problem


def write(name: str, numbers: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Keep a fit, where there is room for it; only the newest are kept."""
    content = io.BytesIO()
    named: dict[str, Any] = {NUMBERS: np.array(json.dumps(numbers)), **arrays}
    np.savez(content, **named)
    with suppress(StorageError, OSError):
        write_whole(_file(name), content.getvalue(), wait=False)
        for old in sorted(fits_folder().glob("*.npz"), key=os.path.getmtime, reverse=True)[MOST_KEPT:]:
            old.unlink()


def _file(name: str) -> Path:
    return fits_folder() / f"{name[:32]}.npz"
