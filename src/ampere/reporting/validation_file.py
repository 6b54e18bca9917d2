"""The JSON of `ampere validate --json`, read as carefully as any file from elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ampere.core import Meter
from ampere.core.errors import ProfileError
from ampere.storage import files as strict_json
from ampere.storage.files import read_at_most

LARGEST = 8_000_000  # bytes
MOST_ROWS = 2_000
BESIDES = ("network", "actual", "again")  # what a row holds besides its estimates


@dataclass(frozen=True)
class Row:
    network: str
    actual: float
    estimates: dict[str, float]


@dataclass(frozen=True)
class Validated:
    model: str
    rows: tuple[Row, ...]
    mape: dict[str, float]
    repeatability: float
    meter: Meter
    ours: str  # the method that the others are held against


def read_validation(path: Path) -> Validated:
    raw = read_at_most(path, LARGEST)
    try:
        return _validated(strict_json.loads(raw.decode("utf-8")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise ProfileError(
            f"{path} is not a validation ({what[:120]}): make one with `ampere validate MODEL --json --no-plot > FILE`"
        ) from None


def _validated(record: dict[str, Any]) -> Validated:
    mape = {str(m): _figure(error, f"the error of {m}") for m, error in record["mape"].items()}
    if not mape:
        raise ValueError("it has no method")
    if not 0 < len(record["rows"]) <= MOST_ROWS:
        raise ValueError(f"it has {len(record['rows'])} rows")
    rows = tuple(_row(row, mape) for row in record["rows"])
    repeatability = _figure(record["repeatability_mape"], "the repeatability")
    ours = "additive" if "additive" in mape else next(iter(mape))  # the main profile's method comes first
    return Validated(str(record["model"]), rows, mape, repeatability, Meter(**record["meter"]), ours)


def _row(row: dict[str, Any], mape: dict[str, float]) -> Row:
    estimates = {m: _figure(row[m], m) for m in mape}
    actual = _figure(row["actual"], "a measurement")
    if not actual > 0:
        raise ValueError("a measurement is not positive")
    return Row(str(row["network"]), actual, estimates)


def _figure(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{what} is {value!r:.40}")
    return float(value)
