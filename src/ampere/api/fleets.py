"""What is done with the devices of a fleet: checked, profiled, estimated, reported.

One store holds the profiles of a fleet: FLEET/NAME.json in the folder `fleet` of AMPERE_HOME, with FLEET/history.jsonl
for what was measured when. What it says has been done is not done again.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path
from typing import Any

from ampere.core.errors import AmpereError, ProfileError, StorageError, UsageError
from ampere.devices import Device
from ampere.estimation.estimator import Estimator
from ampere.fleet.files import FleetDevice, read_fleet
from ampere.fleet.running import Outcome, Task, run_all, skipping
from ampere.models.loading import load_model
from ampere.reporting.words import joules_origin
from ampere.storage.files import append
from ampere.storage.places import home
from ampere.storage.profile import OtherDeviceError, Profile, check_device
from ampere.storage.tables import check_table, write_table

from .estimating import profile
from .judging import report, validate
from .models import ResolvedModel, resolve
from .options import Options
from .stored_profiles import load_profile, profile_path, stored_profile

ACTIONS = ("profile", "estimate", "validate", "check", "report")
SHOWN = 12  # names in an error
NETWORKS = 20  # that each device really trains to validate its profile


@dataclass(frozen=True)
class FleetResult:
    """What became of every device of a fleet."""

    action: str
    outcomes: tuple[Outcome, ...]
    problems: tuple[str, ...]  # entries of the fleet file that could not be used
    written: tuple[Path, ...] = ()
    earlier: tuple[str, ...] = ()  # devices for which an earlier run has done it

    def to_json(self) -> dict[str, Any]:
        return {
            "action": self.action,
            "outcomes": [outcome.to_json() for outcome in self.outcomes],
            "problems": list(self.problems),
            "written": [str(path) for path in self.written],
            "earlier": list(self.earlier),
        }


@dataclass(frozen=True)
class FleetStore:
    """Where the profiles of a fleet are kept."""

    folder: Path

    @classmethod
    def of(cls, fleet: Path | str) -> FleetStore:
        return cls(home() / "fleet" / _file_name(Path(fleet).stem))

    def path(self, device: FleetDevice) -> Path:
        return Path(device.profile) if device.profile else self.named(device.name)

    def named(self, name: str) -> Path:
        return self.folder / f"{_file_name(name)}.json"

    def remember(self, task: Task, outcome: Outcome) -> None:
        """A line of history for what was measured. Several commands may add lines at the same time."""
        path, now = self.folder / "history.jsonl", datetime.now(timezone.utc).isoformat(timespec="seconds")
        line = json.dumps({"time": now, "task": task.key, **outcome.to_json()}, allow_nan=False)
        torn = path.exists() and not path.read_bytes().endswith(b"\n")  # whoever wrote it was killed
        append(path, f"{chr(10) if torn else ''}{line}\n")

    def ended(self) -> dict[str, Outcome]:
        """The outcomes of earlier runs, by their tasks, of profiles that are still there."""
        path, found = self.folder / "history.jsonl", dict[str, Outcome]()
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            with suppress(ValueError, TypeError, KeyError):
                record = json.loads(line)
                outcome = Outcome.from_json(record)
                if outcome.result is not None and Path(outcome.result["path"]).exists():
                    found[str(record["task"])] = outcome
        return found


def _file_name(text: str) -> str:
    """A name of a file that no other text has."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:80].strip("-.")
    return plain if plain == text else f"{plain}-{sha256(text.encode()).hexdigest()[:8]}"


def fleet(
    file: Path | str,
    action: str,
    *models: str,
    input: str | None = None,
    batch: int | None = None,
    arguments: Mapping[str, Any] | None = None,
    seconds: float | None = None,
    time_limit: float = 3600.0,
    attempts: int = 2,
    scheduler: str | None = None,
    labels: Sequence[str] = (),
    again: bool = False,
    out: Path | str | None = None,
    on_outcome: Callable[[Outcome, int, int], None] = lambda outcome, done, total: None,
) -> FleetResult:
    """Does the same with every device of a fleet, at the same time where that disturbs nobody.

    `action` is "check", "profile", "estimate", "validate" or "report"; profile, estimate and validate need `models`,
    which are built with `input`, `batch` and `arguments` as by `load_model`. A device that cannot be reached, hangs or
    fails is named in its outcome, and the others go on. What an earlier run has done is not done again unless `again`.
    `labels` choose devices. `scheduler` is the address of a running dask scheduler whose workers front the devices.
    `on_outcome` is called as each ends.
    """
    if action not in ACTIONS:
        raise UsageError(f"a fleet cannot {action!r:.40}: choose from {', '.join(ACTIONS)}")
    if action in ("profile", "estimate", "validate") and not models:
        raise UsageError(f"name at least one model to {action}")
    found = read_fleet(Path(file))
    devices = [d for d in found.entries if not labels or {*labels} & {d.name, *d.labels}]
    if not devices:
        known = dict.fromkeys(word for d in found.entries for word in (d.name, *d.labels))
        raise UsageError(f"no device of {file} has the name or label {' or '.join(labels)}: there are {_few(known)}")
    store = FleetStore.of(file)
    if out and action in ("estimate", "validate"):
        check_table(Path(out))
    given = {"input": input, "batch": batch, "arguments": dict(arguments or {})}
    building = {name: value for name, value in given.items() if value}
    # A wrong model is one line, before any device is asked. Of a cluster only the workers need to have it.
    resolved = [_model(model, building) for model in models] if scheduler is None or action == "report" else []
    if action == "report":
        return _report(devices, store, resolved, found.problems, Path(out or "fleet.html"))
    asked = {"models": list(models), "building": building, "seconds": seconds, "folder": str(store.folder)}
    tasks = {device.name: Task(device, action, asked, attempts, time_limit) for device in devices}
    ended = store.ended() if action == "profile" and not again else {}
    left, outcomes = skipping([*tasks.values()], ended)
    earlier = tuple(outcome.device for outcome in outcomes)
    for wave in _waves(left):
        for came in _run(wave, store, scheduler):
            outcome = _kept(came, store)
            outcomes.append(outcome)
            on_outcome(outcome, len(outcomes), len(tasks))
            if action == "profile":
                store.remember(tasks[outcome.device], outcome)
    place = {name: n for n, name in enumerate(tasks)}
    outcomes.sort(key=lambda outcome: place[outcome.device])  # as in the file, whoever ended first
    written = [_table(outcomes, Path(out))] if out and action in ("estimate", "validate") else []
    return FleetResult(action, tuple(outcomes), found.problems, tuple(written), earlier)


def _model(spec: str, building: Mapping[str, Any]) -> ResolvedModel:
    if building and spec.endswith(".json"):
        raise UsageError(f"{spec} has its input already: trace the model again with another one")
    return resolve(load_model(spec, **building) if building else spec)


def _few(words: Iterable[str]) -> str:
    shown = [*words]
    return ", ".join([*shown[:SHOWN], *(["..."] if len(shown) > SHOWN else [])])


def _waves(tasks: Sequence[Task]) -> Iterator[list[Task]]:
    """Devices that are profiled from others' profiles wait for these."""
    waiting = list(tasks)
    while waiting:
        names = {task.device.name for task in waiting if task.action == "profile"}
        wave = [task for task in waiting if not names & {*task.device.like}] or waiting
        waiting = [task for task in waiting if task not in wave]
        yield wave


def _run(tasks: Sequence[Task], store: FleetStore, scheduler: str | None) -> Iterator[Outcome]:
    """The outcomes of tasks. What a task needs of the store goes with it: a dask worker may be on another machine."""
    ready = []
    for task in tasks:
        sent = dict[str, Any]()
        try:
            if task.action == "profile":
                sent["sources"] = [load_profile(store.named(name)).to_json() for name in task.device.like]
            elif scheduler and store.path(task.device).exists():
                sent["profile"] = load_profile(store.path(task.device)).to_json()
            ready.append(replace(task, arguments={**task.arguments, **sent}))
        except AmpereError as problem:
            yield Outcome(task.device.name, task.action, None, str(problem))
    if ready:
        yield from run_all(ready, perform_action, scheduler)


# What a task does, in this process or in a dask worker.


def perform_action(action: str, device: FleetDevice, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Does one thing with one device; what it returns is plain JSON."""
    store = FleetStore(Path(arguments["folder"]))
    with _in_words_of_a_fleet(device, store):
        return DOES[action](device, store, arguments)


@contextmanager
def _in_words_of_a_fleet(device: FleetDevice, store: FleetStore | None) -> Iterator[None]:
    """A profile of another device is named with what its fleet can do about it."""
    try:
        yield
    except OtherDeviceError as problem:
        path = device.profile or (store.path(device) if store else None)
        where = f"{path}: {problem.what}" if path else problem.what
        remedy = "name another file as its profile" if device.profile else "remove that file, or rename the device"
        raise ProfileError(f"{where}: {remedy}, and profile it") from None


def _check(device: FleetDevice, store: FleetStore, arguments: Mapping[str, Any]) -> dict[str, Any]:
    began = time.monotonic()
    with _opened(device) as opened:
        described = opened.described
        known = _known(device, store, opened, arguments.get("profile"))
    return {
        "id": described.identity["id"],
        "cpu": described.identity.get("cpu"),
        "meter": described.meter.name,
        "measured": described.meter.measured,
        "runtimes": list(described.runtimes),
        "seconds": time.monotonic() - began,
        "profile": str(known[1]) if known else None,
    }


def _profile(device: FleetDevice, store: FleetStore, arguments: Mapping[str, Any]) -> dict[str, Any]:
    path, sources = store.path(device), [Profile.from_json(record) for record in arguments["sources"]]
    with _opened(device) as opened:
        for model in arguments["models"]:
            subject = _model(model, arguments["building"])
            made = profile(
                subject, seconds=arguments["seconds"], out=path, like=sources, device=opened, seed=device.seed,
                runtime=device.runtime, optimizer=device.optimizer, dtype=device.dtype, threads=device.threads,
            )  # fmt: skip
    return {
        "path": str(path),
        "id": made.profile.device["id"],
        "measurements": len(made.profile.observations),
        "profiling_seconds": made.profile.profiling_seconds,
        "expected_error": made.expected_error,
        "meter": made.profile.meter.name,
        "profile": made.profile.to_json(),  # for the store of whoever asked, where this ran on another machine
    }


def _estimate(device: FleetDevice, store: FleetStore, arguments: Mapping[str, Any]) -> dict[str, Any]:
    sent = arguments.get("profile")
    estimator = Estimator(Profile.from_json(sent) if sent else fleet_profile(device, store)[0])
    rows = []
    for model in arguments["models"]:
        network = _model(model, arguments["building"]).network
        found = estimator.estimate(network, condition=None if device.condition == 1.0 else device.condition)
        rows.append(
            {
                "device": device.name,
                "model": model,
                "joules": found.joules,
                "stddev": found.stddev,
                "seconds": found.seconds,
                "meter": found.meter.name,
                "joules_are": joules_origin(found.meter),
                "unprofiled": len(found.unprofiled),
                "extrapolated": len(found.extrapolated),
            }
        )
    return {"rows": rows}


def _validate(device: FleetDevice, store: FleetStore, arguments: Mapping[str, Any]) -> dict[str, Any]:
    sent = arguments.get("profile")
    known = Profile.from_json(sent) if sent else fleet_profile(device, store)[0]
    rows = []
    with _opened(device) as opened:
        for model in arguments["models"]:
            subject = _model(model, arguments["building"])
            found = validate(subject, profile=known, device=opened, networks=NETWORKS, seed=device.seed)
            figures = {
                "mape": found.mape[found.method],
                "repeatability_mape": found.repeatability_mape,
                "coverage90": found.coverage90,
            }
            rows.append({"device": device.name, "model": model, "networks": len(found.rows), **figures})
    return {"rows": rows}


DOES: dict[str, Callable[[FleetDevice, FleetStore, Mapping[str, Any]], dict[str, Any]]] = {
    "check": _check,
    "profile": _profile,
    "estimate": _estimate,
    "validate": _validate,
}


def fleet_profile(device: FleetDevice, store: FleetStore | None) -> tuple[Profile, Path]:
    """The profile of a fleet's device, and its file."""
    if not device.address:
        return load_profile(str(device.profile)), Path(str(device.profile))
    with _opened(device) as opened, _in_words_of_a_fleet(device, store):
        known = _known(device, store, opened)
    if known is None:
        raise ProfileError(
            f"{device.name} has no profile yet: make one with `ampere profile MODEL --device {device.address}`, or "
            "one for every device with `ampere fleet FILE profile MODEL`"
        )
    return known


def _known(
    device: FleetDevice, store: FleetStore | None, opened: Device, sent: dict[str, Any] | None = None
) -> tuple[Profile, Path] | None:
    """The profile that a device names, that of the fleet's store (`sent` from there), or the device's own."""
    named = Path(device.profile) if device.profile else None
    stored = store.path(device) if store is not None else named
    path = stored if stored is not None and (named or stored.exists()) else None
    options = Options(
        profile=Profile.from_json(sent) if sent else path, device=opened, runtime=device.runtime,
        optimizer=device.optimizer, dtype=device.dtype, threads=device.threads,
    )  # fmt: skip
    known = stored_profile(options)
    if known is None:
        return None
    if sent:
        check_device(known, opened.identity)
    return known, (stored if sent else path) or profile_path(opened, options)


def _opened(device: FleetDevice) -> Device:
    return Device(device.address, on=device.on, meter=device.meter, seed=device.seed)


def _kept(outcome: Outcome, store: FleetStore) -> Outcome:
    """The outcome without the profile that came with it, which is stored where it is not there yet."""
    if outcome.result is None or "profile" not in outcome.result or outcome.action != "profile":
        return outcome
    result = dict(outcome.result)
    came = Profile.from_json(result.pop("profile"))
    path = store.named(outcome.device)
    if not Path(result["path"]).exists():  # it was made on another machine
        came.save(path)
        result["path"] = str(path)
    return replace(outcome, result=result)


def _table(outcomes: Sequence[Outcome], path: Path) -> Path:
    """The rows of all estimates: Parquet, or CSV by the file's name."""
    rows = [row for outcome in outcomes if outcome.result for row in outcome.result["rows"]]
    if not rows:
        raise StorageError(f"{path} was not written: no device has an estimate")
    write_table(rows, path)
    return path


def _named(profile: Profile, name: str) -> Profile:
    """The profile as that of the fleet's device: many of a fleet may have the same processor."""
    return replace(profile, device={**profile.device, "cpu": f"{name}: {profile.device.get('cpu', '')}"})


def _report(
    devices: Sequence[FleetDevice],
    store: FleetStore,
    models: Sequence[ResolvedModel],
    problems: Sequence[str],
    out: Path,
) -> FleetResult:
    """One page about all devices that have a profile."""
    known, outcomes = [], []
    for device in devices:
        path = store.path(device)
        try:  # what is stored needs no device that answers
            made, path = (load_profile(path), path) if path.exists() else fleet_profile(device, store)
            known.append(_named(made, device.name))
            outcomes.append(Outcome(device.name, "report", {"profile": str(path)}))
        except AmpereError as problem:
            outcomes.append(Outcome(device.name, "report", None, str(problem)))
    if not known:
        raise ProfileError("no device of the fleet has a profile yet: make them with `ampere fleet FILE profile MODEL`")
    report(*models, profiles=known, out=out)
    return FleetResult("report", tuple(outcomes), tuple(problems), (out,))
