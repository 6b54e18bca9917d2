"""Drift between two runs of the evaluation: the same networks, measured and estimated in both.

measured    what training a network costs now, over what it cost before
estimated   the same, as the profiles of both runs tell it
carried     what the profile of before says of now: what a profile is worth later
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.baselines.answers import answers
from ampere.core.errors import ProfileError, UsageError
from ampere.core.units import signed_percent

from .comparing import OURS, compared
from .drawing import FAINT, INK, MUTED, OURS, THEIRS, Record, panels, plain, shared_legend, unit_for
from .jobs import TrialsJob, trials_of
from .running import VERSION, Record, Result
from .session import Folder, Session
from .summary import DRIFT, drift_of

TITLE = "drift between two runs of the evaluation"

Both = tuple[TrialsJob, TrialsJob]  # before, now


def check(folder: Folder, lab: Session) -> None:
    """Before anything is measured: is there another run to compare with, and of the same devices?"""
    _, ids = folder.known()
    if folder.path.resolve() == lab.folder.path.resolve():
        raise UsageError(f"{folder.path} cannot be held against itself: name the folder of another run")
    for device in lab.plan.devices:
        if device in ids and ids[device] != lab.describe(device)["id"]:
            raise UsageError(f"{folder.path} holds figures of another {device} device: drift is of one device only")


def between(folder: Folder, lab: Session) -> Result:
    """Kept beside the records of the experiments, and drawn as they are."""
    plan, _ = folder.known()
    with Session(folder, plan) as before:
        jobs = list(_in_both(before, lab))
        records = tuple(record for both in jobs for record in _records(before, lab, both))
    if not records:
        raise ProfileError(
            f"no network was trained in {folder.path} and in {lab.folder.path}: "
            "run `ampere evaluate models_devices` in both, with the same --seed and --device"
        )
    devices = {device: lab.describe(device) for device in dict.fromkeys(r["device"] for r in records)}
    names = tuple(now.name for _, now in jobs)
    result = Result(DRIFT, TITLE, "", names, devices, lab.plan.quick, lab.plan.seed, VERSION, records)
    lab.folder.keep(DRIFT, result.to_json())
    return result


def _in_both(before: Session, now: Session) -> Iterator[Both]:
    for device in now.plan.devices:
        for family in now.plan.families(device):
            jobs = tuple((lab, trials_of(lab.plan, device, family)) for lab in (before, now))
            if all(lab.done(job.profile) and lab.done(job) for lab, job in jobs):
                yield jobs[0][1], jobs[1][1]


def _records(before: Session, now: Session, jobs: Both) -> Iterator[Record]:
    first, second = compared(before, jobs[0]), compared(now, jobs[1])
    then, here = before.get(jobs[0].profile), now.get(jobs[1].profile)
    networks = [pair[0].network for pair in now.get(jobs[1])]
    carried = answers(then, networks, "tuned", here.yardstick_seconds)[OURS].joules
    earlier = {pair[0].network.layers: t for pair, t in zip(before.get(jobs[0]), first.trials, strict=True)}
    for network, trial, said in zip(networks, second.trials, carried, strict=True):
        if network.layers in earlier:
            known = earlier[network.layers]
            yield {
                **second.of,
                "network": trial.network,
                "joules_before": known.joules,
                "joules": trial.joules,
                "estimate_before": known.estimates[OURS],
                "estimate": trial.estimates[OURS],
                "estimate_carried": float(said),
                "repeatability": second.repeatability,
                "yardstick": here.yardstick_seconds / then.yardstick_seconds - 1,
            }


# What each network costs now over what it cost in another run, measured and estimated; the band is the noise.

SERIES = (("joules", "measured", OURS, "o"), ("estimate", "estimated", THEIRS, "x"))


def draw(figure: Any, records: Sequence[Record]) -> None:
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
        plain(axes, title, f"measured before [{unit}]", "now, difference [%]")
    shared_legend(figure)
