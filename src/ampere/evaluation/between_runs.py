"""Drift between two runs of the evaluation: the same networks, measured and estimated in both.

measured    what training a network costs now, over what it cost before
estimated   the same, as the profiles of both runs tell it
carried     what the profile of before says of now: what a profile is worth later
"""

from __future__ import annotations

from collections.abc import Iterator

from ampere.core.errors import ProfileError, UsageError
from ampere.validation.methods import answers

from .catalogue import Record
from .comparing import OURS, compared
from .folder import Folder
from .lab import Lab
from .running import VERSION, Result
from .summary import DRIFT
from .trials_job import TrialsJob, trials_of

TITLE = "drift between two runs of the evaluation"

Both = tuple[TrialsJob, TrialsJob]  # before, now


def check(folder: Folder, lab: Lab) -> None:
    """Before anything is measured: is there another run to compare with, and of the same devices?"""
    _, ids = folder.known()
    if folder.path.resolve() == lab.folder.path.resolve():
        raise UsageError(f"{folder.path} cannot be held against itself: name the folder of another run")
    for device in lab.plan.devices:
        if device in ids and ids[device] != lab.describe(device)["id"]:
            raise UsageError(f"{folder.path} holds figures of another {device} device: drift is of one device only")


def between(folder: Folder, lab: Lab) -> Result:
    """Kept beside the records of the experiments, and drawn as they are."""
    plan, _ = folder.known()
    with Lab(folder, plan) as before:
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


def _in_both(before: Lab, now: Lab) -> Iterator[Both]:
    for device in now.plan.devices:
        for family in now.plan.families(device):
            jobs = tuple((lab, trials_of(lab.plan, device, family)) for lab in (before, now))
            if all(lab.done(job.profile) and lab.done(job) for lab, job in jobs):
                yield jobs[0][1], jobs[1][1]


def _records(before: Lab, now: Lab, jobs: Both) -> Iterator[Record]:
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
