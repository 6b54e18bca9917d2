"""What the HTTP interface answers: functions from a request's record to a record, the same as `--json` prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ampere.comparison import pairwise, ranking
from ampere.core import Network
from ampere.core.errors import UsageError
from ampere.core.setup import ALLOCATORS
from ampere.core.units import parse_energy, parse_power
from ampere.estimation.additive import Additive
from ampere.estimation.estimate import Estimate
from ampere.estimation.estimator import Estimator
from ampere.estimation.lookup_table import LookupTable, Template
from ampere.estimation.memory import runtime_bytes_in
from ampere.estimation.running_costs import Tariff, parse_grids, parse_price
from ampere.estimation.training_run import Battery, training_run
from ampere.storage.networks import save_network

from .catalogue import Catalogue, Recent
from .memory import MemoryProcess
from .open_networks import Changes, OpenNetwork

MOST_ESTIMATED_LAYERS = 20_000  # of one request that estimates networks one by one
MOST_CANDIDATES = 1_000_000
MOST_COMPARED = 12  # networks, and profiles
MOST_ITERATIONS = 10**12
MOST_POINTS = 300_000  # rows of all tables of a network, which take seconds to fill
MOST_LOOKED_UP = 100_000_000  # layers of all rows of a request
MOST_TABLES = 4  # networks whose tables are kept
CHUNK = 50_000  # candidates at once
LONGEST_TEXT = 100
RUN_TEXTS = {"battery": "15Wh", "idle": "3W", "grid": "DE or 400g/kWh", "price": "0.30EUR/kWh"}
BINS = (96, 64)  # of a density: joules, capacity

Record = dict[str, Any]
Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Progress = Callable[[float, str], None]


class Answers:
    """All answers of one server."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue, self._memory = catalogue, MemoryProcess()
        self._tables = Recent[Any, "Bulk"](MOST_TABLES)

    # One network.

    def what_if(self, asked: Record) -> Record:
        """A network with some changes: its estimate, and what a run of it costs."""
        network = self._changed(asked)
        estimate = self._estimate(asked, network)
        return {**estimate.to_json(), "run": run_record(estimate, asked), "shape": shape_record(network)}

    def estimate(self, asked: Record) -> Record:
        """One network, or several."""
        if "networks" not in asked:
            return self.what_if(asked)
        several = asked["networks"]
        if not isinstance(several, list) or not several:
            raise UsageError("networks must be a list of what-if requests, each with its network and changes")
        common = {key: value for key, value in asked.items() if key != "networks"}
        requests = [{**common, **_record(each, "each of networks")} for each in several]
        networks = [self._changed(each) for each in requests]
        if sum(len(network.layers) for network in networks) > MOST_ESTIMATED_LAYERS:
            raise UsageError(
                f"networks of more than {MOST_ESTIMATED_LAYERS:,} layers together: ask in several requests, or give "
                "rows of widths to /api/v1/batch"
            )
        found = [self._estimate(each, network) for each, network in zip(requests, networks, strict=True)]
        return {"estimates": [estimate.to_json() for estimate in found]}

    def network_file(self, asked: Record) -> bytes:
        """The changed network as a file that `ampere estimate` reads."""
        network = self._changed(asked)
        with TemporaryDirectory(prefix="ampere-serve-") as folder:
            path = Path(folder) / "network.json"
            save_network(network, path)
            return path.read_bytes()

    def _changed(self, asked: Record) -> Network:
        return self.catalogue.network(_text(asked, "network")).at(Changes.from_json(asked))

    def _estimate(self, asked: Record, network: Network) -> Estimate:
        estimator = self.catalogue.estimator(_text(asked, "profile"))
        found = estimator.estimate(network, _allocator(asked))
        self.catalogue.estimated(len(network.layers))
        return found

    def memory(self, asked: Record) -> Record:
        """Peak memory of training a network with some changes."""
        network, allocator = self._changed(asked), _allocator(asked)
        profile = self.catalogue.estimator(_text(asked, "profile")).profile
        return self._memory.ask(network, profile.setup, allocator, runtime_bytes_in(profile))

    def close(self) -> None:
        self._memory.close()

    # Many networks at once.

    def batch(self, asked: Record) -> Record:
        """Joules and seconds of one network at many widths, a row each."""
        bulk = self.bulk(asked)
        rows = asked.get("rows")
        if not isinstance(rows, list) or not rows:
            raise UsageError("rows must be a list of rows of widths")
        joules, seconds = bulk.costs(_whole_numbers(rows))
        return {"widths": bulk.names, "joules": joules.tolist(), "seconds": seconds.tolist()}

    def bulk(self, asked: Record) -> Bulk:
        """The tables of a network at one batch and depth; a few are kept."""
        name, profile, allocator = _text(asked, "network"), _text(asked, "profile"), _allocator(asked)
        changes = Changes.from_json(asked)
        known, estimator = self.catalogue.network(name), self.catalogue.estimator(profile)
        key = (id(known), id(estimator), allocator, changes.batch, tuple(sorted(changes.repeats.items())))
        found = self._tables.get(key)
        if found is None:
            found = Bulk(known, estimator, known.template(changes), allocator)
            self._tables.put(key, found)
        return found

    def search(self, asked: Record, report: Progress = lambda done, words: None) -> Record:
        """Random candidates of a network: a density of cost over capacity, and those that no other one beats."""
        bulk = self.bulk(asked)
        count = _count(asked, "candidates", 200_000, MOST_CANDIDATES)
        budget = asked.get("budget_joules")
        least_capacity = asked.get("least_capacity")
        for name, value in (("budget_joules", budget), ("least_capacity", least_capacity)):
            if value is not None and not (_is_number(value) and value > 0):
                raise UsageError(f"{name} must be a number greater than 0, not {value!r:.40}")
        drawn = Drawn(bulk, min(count, MOST_LOOKED_UP // bulk.layers), _count(asked, "seed", 0, 2**32, least=0), report)
        joules, capacity = drawn.joules, drawn.capacity
        widest = _least(-capacity, joules <= budget) if budget else None
        cheapest = _least(joules, capacity >= least_capacity) if least_capacity else None
        return {
            "candidates": len(joules),
            "widths": bulk.names,
            "density": _density(joules, capacity),
            "front": drawn.candidates(front(joules, capacity)),
            "original": drawn.candidates([0])[0],
            "widest": None if widest is None else drawn.candidates([widest])[0],
            "cheapest": None if cheapest is None else drawn.candidates([cheapest])[0],
        }

    # Several networks and profiles.

    def compare(self, asked: Record) -> Record:
        """Networks ranked on every profile, with the probability of the order; one network is ranked over profiles."""
        profiles, given = asked.get("profiles"), asked.get("networks")
        if not isinstance(profiles, list) or not 1 <= len(profiles) <= MOST_COMPARED:
            raise UsageError(f"profiles must be a list of 1 to {MOST_COMPARED} names")
        if not isinstance(given, list) or not 1 <= len(given) <= MOST_COMPARED:
            raise UsageError(f"networks must be a list of 1 to {MOST_COMPARED} names, or of what-if requests")
        requests = [{"network": each} if isinstance(each, str) else _record(each, "each network") for each in given]
        networks = [self._changed(each).renamed(str(each.get("label") or each["network"])) for each in requests]
        if sum(len(network.layers) for network in networks) * len(profiles) > MOST_ESTIMATED_LAYERS:
            raise UsageError(f"that is more than {MOST_ESTIMATED_LAYERS:,} layers to estimate: compare fewer networks")
        names = list(dict.fromkeys(name if isinstance(name, str) else "" for name in profiles))
        if len(networks) == len(names) == 1:
            raise UsageError("one network on one profile has nothing to be compared with: give another of either")
        estimators = [self.catalogue.estimator(name) for name in names]
        self.catalogue.estimated(sum(len(network.layers) for network in networks) * len(names))
        if len(networks) == 1:
            return ranking.rank(networks[0], estimators, _allocator(asked), names).to_json()
        return pairwise.compare(networks, estimators, _allocator(asked), names).to_json()


class Bulk:
    """Costs of one network over all its widths, from tables."""

    def __init__(self, known: OpenNetwork, estimator: Estimator, form: Template, allocator: str) -> None:
        model, joules = estimator.of_joules
        timed = estimator.model
        if not isinstance(model, Additive) or not isinstance(timed, Additive):
            raise UsageError("this profile's method has no tables: choose one that was made with --method additive")
        if not form.largest:
            raise UsageError(f"{known.network.name or 'the network'} has no width that may change")
        self.names = [width.name for width in known.widths]
        self.original = np.array([width.value for width in known.widths], dtype=np.int64)
        form = replace(form, largest=tuple(map(int, self.original)))  # tables of wider ones would take long to fill
        _check_points(form)
        self._form, self.layers = form, len(form.layers)
        self._made_from = known, estimator  # alive as long as their tables: they are known by their identity
        some = form.network(list(self.original))
        system = estimator.allocator(allocator) == "system"
        estimate = estimator.estimate(some, allocator)
        self._joules = LookupTable(model, form, system, stddevs=False)
        self._price = joules * estimate.condition
        self._seconds = self._joules if model is timed else LookupTable(timed, form, system, stddevs=False)
        self._clock = estimate.seconds / timed.answer(some, system).seconds

    def costs(self, widths: Rows) -> tuple[Array, Array]:
        """Joules and seconds of an iteration, for each row of widths."""
        self._check(widths)
        joules = self._joules.seconds(widths)
        seconds = joules if self._seconds is self._joules else self._seconds.seconds(widths)
        return joules * self._price, seconds * self._clock

    def _check(self, widths: Rows) -> None:
        if widths.ndim != 2 or widths.shape[1] != len(self.names):
            raise UsageError(f"every row must have {len(self.names)} widths: those of {', '.join(self.names):.200}")
        if len(widths) * self.layers > MOST_LOOKED_UP:
            raise UsageError(f"{len(widths):,} rows of {self.layers:,} layers are too many: ask in several requests")
        if (widths < 1).any() or (widths > np.array(self._form.largest)).any():
            most = zip(self.names, self._form.largest, strict=True)
            limits = ", ".join(f"{name} 1 to {largest:,}" for name, largest in most)
            raise UsageError(f"a width is outside of what may be: {limits:.300}")

    def drawn(self, rng: np.random.Generator, count: int) -> Rows:
        """Random widths up to the original's, as the paper samples."""
        return np.stack([rng.integers(1, most + 1, count) for most in self.original], axis=1)

    def capacity(self, widths: Rows) -> Array:
        """Sum over trainable layers of log2(1 + channels), as `ampere search` has it."""
        total, wide = np.zeros(len(widths)), widths.astype(float)
        for layer, channels in zip(self._form.layers, self._form.channels_out, strict=True):
            if layer.trainable:
                total += np.log2(1.0 + channels.at(wide))
        return total


class Drawn:
    """Candidates of a search: the original, then random ones. Only costs are kept; widths are drawn again."""

    def __init__(self, bulk: Bulk, count: int, seed: int, report: Progress) -> None:
        self._bulk, self._count, self._seed = bulk, count, seed
        first = bulk.original[None, :]
        joules, capacity = [bulk.costs(first)[0]], [bulk.capacity(first)]
        for chunk in range(0, count, CHUNK):
            report(chunk / count, f"{chunk:,} of {count:,} networks")
            widths = self._widths(chunk)
            joules.append(bulk.costs(widths)[0])
            capacity.append(bulk.capacity(widths))
        self.joules, self.capacity = np.concatenate(joules), np.concatenate(capacity)

    def _widths(self, chunk: int) -> Rows:
        rng = np.random.default_rng([self._seed, chunk])
        return self._bulk.drawn(rng, min(CHUNK, self._count - chunk))

    def candidates(self, rows: Sequence[int]) -> list[Record]:
        """Some candidates in words, in the given order."""
        chunks = sorted({(row - 1) // CHUNK * CHUNK for row in rows if row})
        widths = {0: self._bulk.original}
        for chunk in chunks:
            drawn = self._widths(chunk)
            widths.update({row: drawn[row - 1 - chunk] for row in rows if row and (row - 1) // CHUNK * CHUNK == chunk})
        return [self._record(widths[row], row) for row in rows]

    def _record(self, widths: Any, row: int) -> Record:
        chosen = {name: int(value) for name, value in zip(self._bulk.names, widths, strict=True)}
        return {"widths": chosen, "joules": float(self.joules[row]), "capacity": float(self.capacity[row])}


def _check_points(form: Template) -> None:
    points = 0
    for cin, cout in zip(form.channels_in, form.channels_out, strict=True):
        sides = {c.variable for c in (cin, cout)} - {None}
        points += int(np.prod([form.largest[v] for v in sides if v is not None], dtype=np.int64)) if sides else 1
    if points > MOST_POINTS:
        raise UsageError(f"its widths are too large for tables of all of them ({points:,} rows): estimate one by one")


def front(joules: Array, capacity: Array) -> list[int]:
    """Candidates that no other one beats in both, cheapest first."""
    order = np.lexsort((-capacity, joules))
    best = np.maximum.accumulate(capacity[order])
    keep = np.concatenate([[True], best[1:] > best[:-1]])
    return [int(i) for i in order[keep]]


def _density(joules: Array, capacity: Array) -> Record:
    edges_x = np.geomspace(joules.min(), joules.max() * (1 + 1e-9), BINS[0] + 1)
    edges_y = np.linspace(capacity.min(), capacity.max() * (1 + 1e-9) + 1e-9, BINS[1] + 1)
    counts, _, _ = np.histogram2d(joules, capacity, bins=(edges_x, edges_y))
    return {
        "joules_edges": edges_x.tolist(),
        "capacity_edges": edges_y.tolist(),
        "counts": counts.astype(int).tolist(),
    }


def _least(by: Array, allowed: NDArray[np.bool_]) -> int | None:
    """The allowed candidate of the least value; None where none is allowed."""
    rows = np.flatnonzero(allowed)
    return int(rows[np.argmin(by[rows])]) if len(rows) else None


def shape_record(network: Network) -> Record:
    """Channels of every layer, and the capacity as `ampere search` has it."""
    channels = [[layer.channels_in, layer.channels_out] for layer in network.layers]
    trained = np.array([layer.channels_out for layer in network.layers if layer.trainable], dtype=float)
    return {"channels": channels, "capacity": float(np.log2(1.0 + trained).sum())}


def run_record(estimate: Estimate, asked: Mapping[str, Any]) -> Record | None:
    """A whole run, where the request says how long it is."""
    if asked.get("iterations") is None:
        return None
    iterations = _count(asked, "iterations", 1, MOST_ITERATIONS)
    texts = {key: asked.get(key) for key in RUN_TEXTS}
    for key, text in texts.items():
        if text is not None and (not isinstance(text, str) or len(text) > LONGEST_TEXT):
            raise UsageError(f"{key} must be a text with a unit, such as {RUN_TEXTS[key]}")
    battery, idle, grid, price = (texts[key] for key in ("battery", "idle", "grid", "price"))
    full = Battery(parse_energy(battery), battery) if battery else None
    tariff = Tariff(parse_price(price) if price else None, parse_grids(grid) if grid else ())
    watts = parse_power(idle) if idle else None
    return training_run(estimate, iterations, full, watts_idle=watts, tariff=tariff).to_json()


def _whole_numbers(rows: list[Any]) -> Rows:
    try:
        found = np.array(rows)
    except ValueError:  # rows of different lengths
        found = np.array(None)
    if found.dtype.kind != "i":
        raise UsageError("every row must have the same number of widths, which are whole numbers")
    return found.astype(np.int64)


def _record(value: Any, what: str) -> Record:
    if not isinstance(value, dict):
        raise UsageError(f"{what} must be an object")
    return value


def _text(asked: Mapping[str, Any], key: str) -> str:
    value = asked.get(key)
    if not isinstance(value, str) or not value:
        raise UsageError(f"{key} must be a name: /api/v1/{key}s lists those that there are")
    return value


def _allocator(asked: Mapping[str, Any]) -> str:
    allocator = asked.get("allocator") or "system"
    if not isinstance(allocator, str) or allocator not in ALLOCATORS:
        raise UsageError(f"there is no allocator {allocator!r:.40}: choose one of {', '.join(ALLOCATORS)}")
    return str(allocator)


def _count(asked: Mapping[str, Any], key: str, usual: int, most: int, least: int = 1) -> int:
    value = asked.get(key)
    if value is None:
        return usual
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise UsageError(f"{key} must be a whole number from {least} to {most:,}, not {value!r:.40}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def columns_in(body: bytes, offset: int, columns: int, dtype: str) -> Rows:
    """Rows of widths from a binary body: all values of the first width, then all of the second."""
    kinds: Sequence[str] = ("uint8", "uint16", "uint32")
    if dtype not in kinds:
        raise UsageError(f"dtype must be one of {', '.join(kinds)}, not {dtype!r:.40}")
    form = np.dtype(dtype).newbyteorder("<")
    size, rest = divmod(len(body) - offset, form.itemsize * max(1, columns))
    if rest or not size:
        raise UsageError(f"after the first line there must be {columns} columns of equal length, of {dtype}")
    return np.frombuffer(body, form, offset=offset).reshape(columns, size).T.astype(np.int64)
