"""What profiling costs: seconds on the device, and how many networks were trained in them."""

from __future__ import annotations

from collections.abc import Iterator

from ampere.evaluation.catalogue import Record
from ampere.evaluation.lab import Lab
from ampere.evaluation.plan import Plan, title_of
from ampere.evaluation.profile_job import ProfileJob, of_family

TITLE = "seconds that profiling takes"
FIGURE = "Table 1"

# Seconds of profiling and fitting in the paper, of the parts that the simulated devices are modelled on.
PAPER = {
    "simulated:phone-android": {"lenet5": 694, "cnn5": 1688, "har": 2188, "lstm": 1615},
    "simulated:phone-ios": {"lenet5": 1201, "cnn5": 1012, "har": 2446, "lstm": 1168},
    "simulated:xavier": {"lenet5": 184, "cnn5": 421, "har": 740, "lstm": 1145},
    "simulated:tx2": {"lenet5": 285, "cnn5": 1211, "har": 4433, "lstm": 422},
    "simulated:server": {"lenet5": 235, "cnn5": 268, "har": 562, "lstm": 436},
}


def jobs(plan: Plan) -> list[ProfileJob]:
    return [of_family(plan, device, family) for device in plan.all_devices for family in plan.families(device)]


def records(lab: Lab) -> Iterator[Record]:
    for job in jobs(lab.plan):
        profile = lab.get(job)
        yield {
            "device": job.device,
            "device_title": title_of(job.device),
            "meter": profile.meter.name,
            "family": job.family,
            "method": job.method,
            "seconds": profile.profiling_seconds,
            "measurements": len(profile.observations),
            "rounds": sum(len(o.measurement.rounds) for o in profile.observations),
            "paper_seconds": PAPER.get(job.device, {}).get(job.family),
        }
