"""Half the energy for a classifier of images: pruned with our estimates, pruned with FLOPs, all trained for real."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.evaluation.case_study.energy_job import EnergyJob
from ampere.evaluation.case_study.images import TESTED, TRAINED, name_of
from ampere.evaluation.case_study.subject import MODELS, ORIGINAL, SHARE
from ampere.evaluation.case_study.training_job import TrainingJob
from ampere.evaluation.catalogue import Record
from ampere.evaluation.job import Job
from ampere.evaluation.lab import Lab
from ampere.evaluation.plan import Plan, title_of
from ampere.evaluation.profile_job import ProfileJob

TITLE = "pruned to half the energy of 2,000 iterations, and trained"
FIGURE = "Fig. 13"

ITERATIONS = 2000


def cases(plan: Plan, device: str) -> list[TrainingJob]:
    seeds = range(plan.seed, plan.seed + plan.either(1, 10))
    seconds, rounds = plan.profile_seconds(device, "cnn5"), plan.either(6, 25)
    images = plan.either(1000, TRAINED), plan.either(500, TESTED)
    return [
        TrainingJob(
            EnergyJob(ProfileJob(device, "cnn5", seconds, seed), seed, rounds),
            plan.either(200, ITERATIONS),
            images,
            plan.celeba,
        )
        for seed in seeds
    ]


def jobs(plan: Plan) -> Sequence[Job[Any]]:
    """What needs a quiet machine first, then what only takes its time."""
    found = [case for device in plan.devices for case in cases(plan, device)]
    measured: list[Job[Any]] = [job for case in found for job in (case.energy.profile, case.energy)]
    return [*measured, *found]


def records(lab: Lab) -> Iterator[Record]:
    """Joules of an iteration were measured beside the yardstick; those of a run are as many times that."""
    for device in lab.plan.devices:
        for case in cases(lab.plan, device):
            energy, trained = lab.get(case.energy), lab.get(case)
            costs = {name: _joules(model) for name, model in energy["models"].items()}
            whole = costs[ORIGINAL] or 1.0
            for name in MODELS:
                joules = costs[name]
                yield {
                    "device": device,
                    "device_title": title_of(device),
                    "meter": energy["meter"]["name"],
                    "meter_measures": energy["meter"]["measured"],
                    "images": name_of(case.celeba),
                    "seed": case.energy.seed,
                    "model": name,
                    **energy["models"][name],
                    "share": joules / whole if joules else None,
                    "iterations": case.iterations,
                    "run_iterations": ITERATIONS,
                    "run_joules": joules * ITERATIONS if joules else None,
                    "budget_joules": SHARE * whole * ITERATIONS,
                    **trained.get(name, {}),
                }


def _joules(model: dict[str, Any]) -> float | None:
    """An iteration's: the mean of its two measurements."""
    return (model["joules"] + model["joules_again"]) / 2 if "joules" in model else None
