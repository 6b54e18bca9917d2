"""What joules cost: kilowatt-hours at the facility's meter, money, and carbon.

E    joules that the device draws                 f    facility factor (PUE): what cooling and supply add
kWh = f E / 3.6e6          money = kWh x price          CO2e = kWh x grams per kWh of the grid

Grams per kWh of countries are yearly averages over the life cycle of power plants, as Ember published them (CC BY 4.0).
The grid of an hour may differ from its year by a factor of two.
"""

from __future__ import annotations

import csv
import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from ampere.core.errors import UsageError

JOULES_PER_KWH = 3.6e6
SOURCE = "Ember, Yearly Electricity Data, CC BY 4.0"
GRAMS = {"g": 1.0, "kg": 1e3}
SYMBOLS = {"€": "EUR", "$": "USD", "£": "GBP", "¥": "JPY"}
_PRICE = re.compile(
    r"(?P<before>[A-Za-z]{3}|[€$£¥])?\s*(?P<number>-?[0-9.]+(?:e-?[0-9]+)?)\s*(?P<after>[A-Za-z]{3}|[€$£¥])?(?:\s*/\s*kWh)?",
    re.IGNORECASE,
)
_INTENSITY = re.compile(
    r"(?P<number>-?[0-9.]+(?:e-?[0-9]+)?)\s*(?P<unit>g|kg)?\s*(?:CO2(?:e|eq)?)?(?:\s*/\s*kWh)?", re.IGNORECASE
)


@dataclass(frozen=True)
class Price:
    """Money for a kilowatt-hour."""

    per_kwh: float
    currency: str = ""  # "" where none was named

    def money(self, kwh: float) -> str:
        value = self.per_kwh * kwh
        shown = f"{value:,.2f}" if value >= 1 else f"{value:.2g}"
        return f"{shown} {self.currency}".rstrip()


@dataclass(frozen=True)
class Grid:
    """Carbon of a kilowatt-hour, CO2 and what warms as much."""

    grams_per_kwh: float
    region: str
    source: str

    def carbon(self, kwh: float) -> str:
        grams = self.grams_per_kwh * kwh
        if grams >= 1e6:
            return f"{grams / 1e6:.3g} t"
        if grams >= 1:
            return f"{grams / 1e3:.3g} kg" if grams >= 1e3 else f"{grams:.3g} g"
        return f"{grams * 1e3:.3g} mg"


@dataclass(frozen=True)
class Tariff:
    """What is asked about joules: a price, one or more grids, and the factor of the facility."""

    price: Price | None = None
    grids: tuple[Grid, ...] = ()
    facility_factor: float = 1.0

    def kwh(self, joules: float) -> float:
        """Kilowatt-hours that the facility draws for so many joules of the device."""
        return self.facility_factor * joules / JOULES_PER_KWH

    def to_json(self, joules: float, interval: tuple[float, float]) -> dict[str, Any]:
        """Kilowatt-hours, money and grams, each with the 90 % interval of the joules."""
        kwh, bounds = self.kwh(joules), [self.kwh(bound) for bound in interval]
        record: dict[str, Any] = {"kwh": kwh, "kwh_interval90": bounds, "facility_factor": self.facility_factor}
        if self.price:
            each = self.price.per_kwh
            record["cost"] = {
                "money": each * kwh,
                "money_interval90": [each * bound for bound in bounds],
                "currency": self.price.currency,
                "per_kwh": each,
            }
        record["carbon"] = [
            {
                "region": grid.region,
                "grams": grid.grams_per_kwh * kwh,
                "grams_interval90": [grid.grams_per_kwh * bound for bound in bounds],
                "grams_per_kwh": grid.grams_per_kwh,
                "source": grid.source,
            }
            for grid in self.grids
        ]
        return record


def parse_price(text: str | float) -> Price:
    """`0.30/kWh`, `0.30 EUR/kWh`, `$0.15/kWh` or a bare 0.30."""
    match = _PRICE.fullmatch(str(text).strip())
    number = _number(match["number"]) if match else None
    currency = (match["before"] or match["after"] or "").upper() if match else ""
    if match is None or number is None or (match["before"] and match["after"]) or currency == "KWH":
        raise UsageError(f"price {text!r} is not money for a kilowatt-hour: write 0.30/kWh or 0.30EUR/kWh")
    if number < 0:
        raise UsageError(f"price {text!r} is negative: give what a kilowatt-hour costs, as 0.30/kWh")
    return Price(number, SYMBOLS.get(currency, currency))


def parse_grids(texts: str | float | Iterable[str | float]) -> tuple[Grid, ...]:
    """`400g/kWh`, a country's code such as DE, WORLD; several with commas between them, or as a list."""
    given = [texts] if isinstance(texts, (str, int, float)) else list(texts)
    return tuple(_grid(part.strip()) for text in given for part in str(text).split(",") if part.strip())


def parse_facility_factor(number: float) -> float:
    if not 1 <= number < 10:
        raise UsageError(f"a PUE of {number:g} is not possible: give a facility's factor from 1, such as 1.2")
    return number


def _grid(text: str) -> Grid:
    match = _INTENSITY.fullmatch(text)
    number = _number(match["number"]) if match else None
    if match and number is not None:
        if number < 0:
            raise UsageError(f"grid {text!r} is negative: give grams of CO2e for a kilowatt-hour, as 400g/kWh")
        grams = number * GRAMS[(match["unit"] or "g").lower()]
        return Grid(grams, f"{grams:g} g/kWh", "as given")
    known = countries()
    found = known.get(text.upper()) or known.get(text.casefold())
    if found is None:
        near = difflib.get_close_matches(text.casefold(), [name for name in known if name.islower()], n=1)
        hint = f"did you mean {known[near[0]].region}? Or give" if near else "write a code such as DE, US or WORLD, or"
        raise UsageError(f"there is no grid {text!r}: {hint} grams as 400g/kWh")
    return found


@lru_cache(maxsize=1)
def countries() -> dict[str, Grid]:
    """The shipped table, by code of two and of three letters, and by name."""
    text = files(__package__).joinpath("grid_intensity.csv").read_text(encoding="utf-8")
    known: dict[str, Grid] = {}
    for row in csv.DictReader(text.splitlines()):
        grid = Grid(float(row["grams_per_kwh"]), row["region"], f"{SOURCE}, {row['year']}")
        names = (row["code"], row["alpha3"], row["region"].casefold())
        known.update({name: grid for name in names if name})
    return known


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
