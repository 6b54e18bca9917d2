"""Fuzzing of all that is parsed: accepted input can be used, is finite and cheap; all else is refused in one line.

    python tests/faults/fuzz.py --parser profile --inputs 1000000 --seed 1
    python tests/faults/fuzz.py --parser log --inputs 1000000 --guided       (needs `pip install atheris`)

Valid inputs are mutated: a value of a record is replaced, removed, repeated or exchanged with another; bytes are
changed, cut, repeated; guided, by whatever makes lines run that had not run yet. An input that breaks the property is
kept in tests/fixtures/fuzz, where tests read it.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    if "--guided" in sys.argv:
        import atheris  # instruments what is imported below

        atheris.instrument_imports(include=["ampere"]).__enter__()

from ampere.core import Measurement, Network
from ampere.core.errors import AmpereError, DeviceError, WorkerError
from ampere.core.measurement import Window
from ampere.devices.answer_fields import check_fields, parse_answer
from ampere.devices.answers import as_error, capabilities_in, check_version, impossible, read_answer
from ampere.devices.external_meters.log import Log, LogSpec
from ampere.estimation.estimate import Estimate
from ampere.estimation.estimator import Estimator
from ampere.estimation.normalization import Reference, normalized
from ampere.storage import Header, Observation, Profile
from ampere.storage.checks import check_network, checked
from ampere.storage.files import loads
from ampere.storage.recording import profile_from
from ampere.worker.requests import BlockRequest, read_request

FIXTURES = Path(__file__).parents[1] / "fixtures"
FOUND = FIXTURES / "fuzz"  # inputs that once broke the property, by parser
SHARED_MEMORY = "/dev/shm"
FOLDER = Path(tempfile.mkdtemp(prefix="ampere-fuzz-", dir=SHARED_MEMORY if Path(SHARED_MEMORY).is_dir() else None))
PROFILE = Profile.load(FIXTURES / "profile-format-2.json")
ESTIMATOR = Estimator(PROFILE)
SECONDS, MEGABYTES, LONGEST_LINE = 2.0, 500.0, 1_000

ODD: tuple[Any, ...] = (
    *(0, 1, 2, -1, 7, 0.0, 0.5, 1e-9, 1e-12, 1e-15, 1e-300, 5e-324, 1e6, 1e9, 1e12, 1e15, 10**15, 1e24, 10**29),
    *(1e100, 1e200, 1e300, 1.7e308, -0.5, -1e-9, -1e300, -(10**15), True, False, None),
    *("", "x", "nan", "inf", "-1", "1e300", "system", "conv", "lstm", "opaque", "step", "run", "\x1b]52;c;YQ==\x07"),
    *("x" * 20_000, [], {}, [[]], [0], [1, 2], [None], ["x"], [1e300] * 3, [0] * 20, {"x": 1}, {"id": "x"}),
)
BYTES = (*(bytes([b]) for b in b'\0\n\r\t ,;:.-+"{}[]0919eE#'), b"\xff", b"\xc3\xa9", b"nan", b"1e999", b"-", b"9" * 40)


@dataclass(frozen=True)
class Parser:
    """Something that is parsed: valid inputs, and what is done with one."""

    seeds: tuple[Any, ...]  # records, or bytes
    use: Callable[[Any], object]  # raises one of our errors for what it refuses


def outcome(parser: Parser, value: Any) -> str:
    """`accepted` or `refused`; AssertionError or any error but ours where the property does not hold."""
    try:
        parser.use(value)
    except (AmpereError, WorkerError) as error:
        if not 0 < len(str(error)) < LONGEST_LINE or "\n" in str(error):
            raise AssertionError(f"not one line: {str(error)[:200]!r}") from error
        return "refused"
    return "accepted"


# What is done with accepted input.


def _estimable(estimate: Estimate) -> None:
    numbers = [estimate.joules, estimate.stddev, estimate.seconds, *estimate.interval]
    numbers += [n for share in estimate.layers for n in (share.joules, share.stddev)]
    assert all(map(math.isfinite, numbers)), "an estimate is not finite"
    assert min(estimate.joules, estimate.seconds) > 0, "an estimate is not positive"
    json.dumps(estimate.to_json(), allow_nan=False)


def _usable(profile: Profile) -> None:
    estimator = Estimator(profile)
    for observed in (*profile.observations[:1], *profile.runs[:1]):
        _estimable(estimator.estimate(observed.network, observed.measurement.allocator))


def _profile(record: Any) -> None:
    with checked("a profile"):
        profile = Profile.from_json(record)
    _usable(profile)


def _network(record: Any) -> None:
    with checked("a network"):
        network = Network.from_json(record)
        check_network(network)
    _estimable(ESTIMATOR.estimate(network))


def _journal(raw: bytes) -> None:
    path = FOLDER / "journal"
    path.write_bytes(raw)
    _usable(profile_from(path))


def _log(raw: bytes) -> None:
    path = FOLDER / "log.csv"
    path.write_bytes(raw)
    log = Log(LogSpec.of(str(path), {"time": "1:ms", "power": "2:mW"}))
    rows = log.advance()
    if rows > 2:
        times, _ = log.since(0)
        watts = log.mean_watts(float(times[0] + times[1]) / 2, float(times[-2] + times[-1]) / 2)
        assert math.isfinite(watts), "mean watts are not finite"


def _trials(records: Any) -> None:
    with checked("trials"):
        observations = [Observation.from_json(record) for record in records]
    for cost in normalized(observations, Reference(1e-3, 0.01)):
        assert all(map(math.isfinite, (cost.joules, cost.seconds, cost.ratio))), "a cost is not finite"


def _json(raw: bytes) -> None:
    with checked("a file"):
        json.dumps(loads(raw.decode("ascii")), allow_nan=False)


def _request(raw: bytes) -> None:
    request = read_request(raw)
    if request["do"] == "block":
        BlockRequest.from_json(request)


def _answer(raw: bytes) -> None:
    """A line to the host, as an answer to each request that it could belong to."""
    answer = parse_answer(raw)
    if answer is None:
        return
    result, kind, message = read_answer(answer)
    if result is None:
        raise DeviceError(str(as_error(kind, message)))
    for do in ("hello", "block", "yardstick", "load", "counters"):
        try:
            check_fields({"do": do, "pattern": [1.0, 2.0]}, result)
        except DeviceError:
            continue
        if do == "hello":
            check_version(result)
            capabilities_in(result)
        if do == "block":
            measured = Measurement.from_json({**result, "meter": PROFILE.meter})
            impossible(measured, 4, 1e6) or Observation(PROFILE.observations[0].network, measured, "network")


# Valid inputs.


def _counted() -> Profile:
    """A profile whose joules a counter read, of some networks only, with a recorded run."""
    measured = PROFILE.observations[0].measurement
    windows = [w._replace(joules=w.busy_seconds * 5) for w in measured.yardstick]
    first = replace(measured, yardstick=tuple(windows), conditions={"yardstick_joules": 0.01})
    without = replace(measured, target=tuple(w._replace(joules=None) for w in measured.target))
    run = Measurement((Window(50, 1.0, 1.0, 5.0), Window(50, 1.1, 1.1, 5.2)), (), measured.meter)
    network = PROFILE.observations[0].network
    return replace(
        PROFILE,
        observations=(
            Observation(network, first, "network"),
            *(Observation(o.network, without, o.purpose) for o in PROFILE.observations[1:]),
        ),
        runs=(Observation(network, run, "run"),),
        yardstick_joules=0.01,
        watts_idle=1.0,
        fit=ESTIMATOR.model.hyper.to_json(),  # type: ignore[attr-defined]
        device={**PROFILE.device, "allocators": ["system", "tuned"], "runtimes": {"torch": "2.13.0"}},
    )


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _line(record: Any) -> bytes:
    text = json.dumps(record).encode()
    return b"%08x %b\n" % (zlib.crc32(text), text)


def _journal_lines() -> tuple[Any, ...]:
    seen = [{"observation": o.to_json(), "profiling_seconds": 5.0} for o in PROFILE.observations[:3]]
    return (_plain([4711, {"header": Header.of(PROFILE).to_json()}, *seen]),)


LOGS = (
    b"Timestamp,Power\n" + b"".join(b"%d,%d\n" % (20 * n, 4000 + n % 7) for n in range(30)),
    b"".join(b"%d;4%d,%d\n" % (n, n % 10, n % 3) for n in range(20)),
    b'"t"\t"P"\n' + b"".join(b"%d.5\t1e3\n" % n for n in range(20)),
)
REQUEST = {
    "do": "block",
    "workload": {"layers": PROFILE.observations[0].network.to_json()},
    "setup": PROFILE.setup.to_json(),
    **{"iterations": 10, "warmup": 4, "pairing": "step", "isolation": "inline", "stage": "step"},
    **{"seconds_limit": 60.0, "compile_limit": 60.0, "watts_per_core": 5.0, "count": True, "power": False},
}
REQUESTS = (REQUEST, {"do": "hello", "protocols": [3], "beat_seconds": 1.0, "watts_per_core": 5.0, "id": 1})
REQUESTS += ({"do": "yardstick", "seconds": 0.4, "threads": 1, "runtime": "torch", "id": "x"},)
BLOCK = PROFILE.observations[0].measurement.to_json()
ANSWERS = (
    {"id": 1, "result": {**BLOCK, "flags": []}},
    {"id": 1, "result": {"busy_seconds": 1e-3, "wall_seconds": 1e-3, "steps": 100, "joules": 0.01, "watts_idle": 1.0}},
    {"id": 1, "result": {"began": 1.0, "ends": [2.0, 3.0]}},
    {"id": 1, "error": {"type": "busy", "message": "x"}},
    {
        "id": 1,
        "result": {
            **{"protocol": 3, "system": "Linux", "machine": "x86_64", "cpu": "x", "cores": 2, "worker": "node"},
            **{"runtimes": {"torch": "2"}, "meter": PROFILE.meter.to_json(), "kinds": ["conv"], "beat_seconds": 1.0},
        },
    },
)
PROFILES = (_plain(PROFILE.to_json()), _plain(_counted().to_json()))
PARSERS = {
    "profile": Parser((*PROFILES[:1] * 5, PROFILES[1]), _profile),  # a counter's takes ten times as long to fit
    "network": Parser(tuple(_plain(o.network.to_json()) for o in PROFILE.observations), _network),
    "journal": Parser(_journal_lines(), _journal),
    "trials": Parser((_plain([o.to_json() for o in PROFILE.observations[:2]]),), _trials),
    "log": Parser(LOGS, _log),
    "json": Parser((json.dumps(PROFILES[0]).encode(), b'{"a":[1,2.5,-3e2,null,true,"x\\u00e9"],"b":{}}'), _json),
    "request": Parser(REQUESTS, _request),
    "answer": Parser(ANSWERS, _answer),
}


# Mutations.


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where values are in a record: keys and indices from the outside."""
    found = [at] if at else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        found += places(each, (*at, key))
    return found


def put(value: Any, place: tuple[Any, ...], new: Any, remove: bool = False) -> Any:
    """The record with another value at a place; the rest is shared with the old one."""
    if not place:
        return new
    key, *rest = place
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if not rest and remove:
        del copy[key]
    else:
        copy[key] = put(copy[key], tuple(rest), new, remove)
    return copy


def value_at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


_PLACES: dict[int, list[tuple[Any, ...]]] = {}


def mutated(seed: Any, rng: Random) -> Any:
    """A valid input with one to three changes."""
    if isinstance(seed, bytes):
        return _mutated_bytes(seed, rng)
    where = _PLACES.setdefault(id(seed), places(seed))
    value = seed
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        place = rng.choice(where)
        try:
            value = put(value, place, _other(value, place, where, rng), remove=rng.random() < 0.1)
        except (KeyError, IndexError, TypeError):  # the place went with an earlier change
            continue
    return value


def _other(value: Any, place: tuple[Any, ...], where: list[tuple[Any, ...]], rng: Random) -> Any:
    old, way = value_at(value, place), rng.random()
    if isinstance(old, (int, float)) and not isinstance(old, bool) and way < 0.4:
        return old * rng.choice((0, -1, 2, 0.5, 1e-6, 1e6, 1e12, 1e30))
    if way < 0.5:
        return value_at(value, rng.choice(where))
    if isinstance(old, list) and way < 0.6:
        return old * rng.choice((2, 3, 50)) if len(json.dumps(old)) < 5000 else old[: len(old) // 2]
    return rng.choice(ODD)


def _mutated_bytes(seed: bytes, rng: Random) -> bytes:
    raw = bytearray(seed)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        at = rng.randrange(len(raw) + 1)
        end = min(len(raw), at + rng.choice((0, 1, 1, 4, 40)))
        raw[at:end] = rng.choice((rng.choice(BYTES), bytes(raw[at:end]) * 2, b"", bytes([rng.randrange(256)])))
    return bytes(raw)


def made(name: str, rng: Random) -> Any:
    """A mutated input of a parser. A journal is records, changed either before or after their checksums."""
    seed = mutated(chosen := rng.choice(PARSERS[name].seeds), rng)
    if name in ("request", "answer"):
        raw = json.dumps(seed).encode()
        return _mutated_bytes(raw, rng) if rng.random() < 0.2 else raw
    if name != "journal":
        return seed
    if rng.random() < 0.2:
        return _mutated_bytes(b"".join(map(_line, chosen)), rng)
    return b"".join(map(_line, seed if isinstance(seed, list) else [seed]))


def kept() -> list[tuple[str, Any]]:
    """Inputs that once broke the property: (parser, input)."""
    found = []
    for path in sorted(FOUND.glob("*.json")):
        record = json.loads(path.read_text())
        value = record["input"]
        found.append((record["parser"], base64.b64decode(value["bytes"]) if record["is_bytes"] else value))
    return found


def keep(name: str, value: Any) -> Path:
    raw = isinstance(value, bytes)
    text = json.dumps(
        {"parser": name, "is_bytes": raw, "input": {"bytes": base64.b64encode(value).decode()} if raw else value}
    )
    path = FOUND / f"{name}-{zlib.crc32(text.encode()):08x}.json"
    FOUND.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    return path


# By hand.


def _megabytes() -> float:
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM")), 0.0)


class Run:
    """Inputs given to a parser, and what became of them."""

    def __init__(self, name: str) -> None:
        self.name, self.began = name, time.monotonic()
        self.counts = {"accepted": 0, "refused": 0, "problems": 0}
        self.slowest = 0.0

    @property
    def done(self) -> int:
        return sum(self.counts.values())

    def give(self, value: Any) -> None:
        start = time.process_time()
        try:
            self.counts[outcome(PARSERS[self.name], value)] += 1
        except Exception as error:
            self.counts["problems"] += 1
            print(f"{type(error).__name__}: {str(error)[:200]}: kept in {keep(self.name, value)}")
        self.slowest = max(self.slowest, time.process_time() - start)

    def report(self, how: str) -> int:
        rate, peak = self.done / max(time.monotonic() - self.began, 1e-9), _megabytes()
        print(f"{self.name}: {self.done:,} inputs {how}, {rate:,.0f} a second")
        print(", ".join(f"{number:,} {what}" for what, number in self.counts.items()))
        print(f"slowest {self.slowest:.3f} s, peak {peak:.0f} MB", flush=True)
        return 1 if self.counts["problems"] or self.slowest > SECONDS or peak > MEGABYTES else 0


def guided(run: Run, inputs: int, seed: int) -> None:
    """libFuzzer through atheris, which never returns. Records are given as JSON text."""
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    takes_bytes = isinstance(made(run.name, Random(seed)), bytes)
    for n in range(50):
        value = made(run.name, Random(seed + n))
        (corpus / str(n)).write_bytes(value if takes_bytes else json.dumps(value).encode())

    def give(raw: bytes) -> None:
        try:
            run.give(raw if takes_bytes else json.loads(raw))
        except ValueError:  # not JSON: another parser's
            run.counts["refused"] += 1
        if run.done >= inputs:
            os._exit(run.report(f"of seed {seed}, guided"))

    atheris.Setup([sys.argv[0], f"-seed={seed}", "-max_len=20000", "-verbosity=0", str(corpus)], give)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parser", choices=PARSERS, required=True)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after so many")
    parser.add_argument("--guided", action="store_true", help="by coverage, with atheris")
    options = parser.parse_args()
    run, rng = Run(options.parser), Random(options.seed)
    if options.guided:
        guided(run, options.inputs, options.seed)
    while run.done < options.inputs and time.monotonic() - run.began < options.seconds and run.counts["problems"] < 20:
        run.give(made(options.parser, rng))
    return run.report(f"of seed {options.seed}")


if __name__ == "__main__":
    raise SystemExit(main())
