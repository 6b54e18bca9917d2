"""Drift between two runs of the evaluation: the same networks, measured and estimated in both.

measured    what training a network costs now, over what it cost before
estimated   the same, by the profiles of both runs
carried     what the profile of before estimates of now: what a profile is worth later
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import mean
from typing import Any

from ampere.baselines.answers import answers
from ampere.core.errors import ProfileError, UsageError
from ampere.core.units import signed_percent
from ampere.reporting.plotting import BLUE, FAINT, INK, MUTED, ORANGE, label_axes

from .comparing import OURS, compared
from .drawing import panels, shared_legend, unit_for
from .jobs import Record, TrialsJob, trials_of
from .running import VERSION, Result
from .session import Folder, Session

DRIFT = "between_runs"  # the name of its result
TITLE = "drift between two runs of the evaluation"
SERIES = (("joules", "measured", BLUE, "o"), ("estimate", "estimated", ORANGE, "x"))

Both = tuple[TrialsJob, TrialsJob]  # before, now


def check(folder: Folder, session: Session) -> None:
    """Refuses, before anything is measured, a folder without a run or with a run of another device."""
    _, ids = folder.known()
    if folder.path.resolve() == session.folder.path.resolve():
        raise UsageError(f"{folder.path} cannot be compared with itself: name the folder of another run")
    for device in session.plan.devices:
        if device in ids and ids[device] != session.describe(device)["id"]:
            raise UsageError(f"{folder.path} holds figures of another {device} device: drift is of one device only")


def between(folder: Folder, session: Session) -> Result:
    """The comparison with another run, kept and drawn like the results of experiments."""
    plan, _ = folder.known()
    with Session(folder, plan) as before:
        jobs = list(_in_both(before, session))
        records = tuple(record for both in jobs for record in _records(before, session, both))
    if not records:
        raise ProfileError(
            f"no network was trained in {folder.path} and in {session.folder.path}: "
            "run `ampere evaluate models_devices` in both, with the same --seed and --device"
        )
    devices = {device: session.describe(device) for device in dict.fromkeys(r["device"] for r in records)}
    names = tuple(now.name for _, now in jobs)
    result = Result(DRIFT, TITLE, "", names, devices, session.plan.quick, session.plan.seed, VERSION, records)
    session.folder.keep(DRIFT, result.to_json())
    return result


def _in_both(before: Session, now: Session) -> Iterator[Both]:
    for device in now.plan.devices:
        for family in now.plan.families(device):
            jobs = tuple((session, trials_of(session.plan, device, family)) for session in (before, now))
            if all(session.done(job.profile) and session.done(job) for session, job in jobs):
                yield jobs[0][1], jobs[1][1]


def _records(before: Session, now: Session, jobs: Both) -> Iterator[Record]:
    first, second = compared(before, jobs[0]), compared(now, jobs[1])
    then, here = before.get(jobs[0].profile), now.get(jobs[1].profile)
    networks = [pair[0][0].network for pair in now.get(jobs[1])]
    carried = answers(then, networks, "tuned", here.yardstick_seconds)[OURS].joules
    earlier = {pair[0][0].network.layers: t for pair, t in zip(before.get(jobs[0]), first.trials, strict=True)}
    for network, trial, old in zip(networks, second.trials, carried, strict=True):
        if network.layers in earlier:
            known = earlier[network.layers]
            yield {
                **second.of,
                "network": trial.network,
                "joules_before": known.joules,
                "joules": trial.joules,
                "estimate_before": known.estimates[OURS],
                "estimate": trial.estimates[OURS],
                "estimate_carried": float(old),
                "repeatability": second.repeatability,
                "yardstick": here.yardstick_seconds / then.yardstick_seconds - 1,
            }


def drift_of(records: Sequence[Record]) -> list[Record]:
    """The mean change between two runs and its effect on errors, by device and family."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record["device"], record["family"]), []).append(record)
    return [_drift(rows) for rows in groups.values()]


def _drift(rows: list[Record]) -> Record:
    def mean_of(value: Callable[[Record], float]) -> float:
        return mean(map(value, rows))

    shared = ("device", "device_title", "family", "repeatability", "yardstick")
    return {
        **{key: rows[0][key] for key in shared},
        "networks": len(rows),
        "measured": mean_of(lambda r: r["joules"] / r["joules_before"] - 1),
        "measured_apart": mean_of(lambda r: abs(r["joules"] / r["joules_before"] - 1)),
        "estimated": mean_of(lambda r: r["estimate"] / r["estimate_before"] - 1),
        "estimated_apart": mean_of(lambda r: abs(r["estimate"] / r["estimate_before"] - 1)),
        "mape_before": mean_of(lambda r: abs(r["estimate_before"] / r["joules_before"] - 1)),
        "mape": mean_of(lambda r: abs(r["estimate"] / r["joules"] - 1)),
        "mape_carried": mean_of(lambda r: abs(r["estimate_carried"] / r["joules"] - 1)),
    }


def draw(figure: Any, records: Sequence[Record]) -> None:
    """What each network costs now over what it cost in another run, measured and estimated; the band is the noise."""
    groups = drift_of(records)
    for axes, group in zip(panels(figure, len(groups)), groups, strict=True):
        rows = [r for r in records if (r["device"], r["family"]) == (group["device"], group["family"])]
        scale, unit = unit_for(r["joules_before"] for r in rows)
        noise, shift = 100 * group["repeatability"], 100 * group["yardstick"]
        axes.axhspan(-noise, noise, color=FAINT, lw=0, label="measured twice in one run")
        axes.axhline(0, color=INK, lw=0.8)
        axes.axhline(shift, color=MUTED, lw=1, ls=":", label="the yardstick itself")
        at, seen = [r["joules_before"] / scale for r in rows], [-2 * noise, 2 * noise, shift]
        for what, word, colour, marker in SERIES:
            found = [100 * (r[what] / r[f"{what}_before"] - 1) for r in rows]
            axes.scatter(at, found, s=18, color=colour, marker=marker, lw=1.2, zorder=3, label=word)
            seen += found
        room = 0.08 * (max(seen) - min(seen))
        axes.set_ylim(min(seen) - room, max(seen) + room)
        both = f"measured {signed_percent(group['measured'])}, estimated {signed_percent(group['estimated'])}"
        title = f"{group['family']} on {group['device_title']}\n{both}"
        label_axes(axes, title, f"measured before [{unit}]", "now, difference [%]")
    shared_legend(figure)
