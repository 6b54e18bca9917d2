"""Half the energy for a classifier of images: pruned with our estimates, pruned with FLOPs, all trained for real."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from ampere.evaluation.case_study.images import TESTED, TRAINED, name_of
from ampere.evaluation.case_study.jobs import EnergyJob, TrainingJob
from ampere.evaluation.case_study.model import FLOPS, MODELS, ORIGINAL, OURS, SHARE
from ampere.evaluation.case_study.verdict import verdict_of
from ampere.evaluation.drawing import by, panels, unit_for
from ampere.evaluation.jobs import Job, ProfileJob, Record
from ampere.evaluation.plan import Plan, title_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import BLUE, FAINT, INK, MUTED, ORANGE, label_axes

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


def records(session: Session) -> Iterator[Record]:
    """Joules of an iteration were measured, paired with the yardstick; those of a run are as many times that."""
    for device in session.plan.devices:
        for case in cases(session.plan, device):
            energy, trained = session.get(case.energy), session.get(case)
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
    return (model["joules"] + model["joules_repeat"]) / 2 if "joules" in model else None


WAYS = {
    ORIGINAL: ("original", MUTED),
    FLOPS: ("pruned by FLOPs", ORANGE),
    OURS: ("pruned by Ampere", BLUE),
}


def draw(figure: Any, records: Sequence[Record]) -> None:
    """As in the paper: test loss and accuracy over iterations, and the energy spent against the budget."""
    devices = by(records, "device_title")
    axes = iter(panels(figure, 3 * len(devices), columns=3, width=4.2, height=3.7))
    for device, rows in devices.items():
        known = [row for row in rows if row.get("share") is not None]
        seeds = len({row["seed"] for row in known})
        among = f"{device}, {seeds} seeds" if seeds > 1 else device
        _over_iterations(next(axes), known, 1, 1.0, among, "test loss")
        _over_iterations(next(axes), known, 2, 100.0, "", "test accuracy [%]")
        _energy(next(axes), known)


def _over_iterations(axes: Any, rows: Sequence[Record], column: int, scale: float, title: str, words: str) -> None:
    """The mean of the seeds, within the least and the most."""
    for model, (label, colour) in WAYS.items():
        curves = [row["curve"] for row in rows if row["model"] == model]
        if not curves:
            continue
        places = [point[0] for point in curves[0]]
        each = [[scale * curve[i][column] for curve in curves] for i in range(len(places))]
        axes.fill_between(places, [min(e) for e in each], [max(e) for e in each], color=colour, alpha=0.12, lw=0)
        axes.plot(places, [mean(e) for e in each], color=colour, lw=1.6, label=label)
    label_axes(axes, title, "iterations", words)
    axes.legend(loc="upper right" if column == 1 else "lower right")


def _energy(axes: Any, rows: Sequence[Record]) -> None:
    verdict = verdict_of("", rows)
    scale, unit = unit_for([row["run_joules"] for row in rows])
    budget = mean(row["budget_joules"] for row in rows) / scale
    last = rows[0]["run_iterations"]
    for model, (_, colour) in WAYS.items():
        own = [row for row in rows if row["model"] == model]
        if own:
            spent = mean(row["run_joules"] for row in own) / scale
            axes.plot([0, last], [0, spent], color=colour, lw=1.6)
            share = f"{100 * mean(verdict.ways[model].shares):.1f} %"
            axes.annotate(
                share, (last, spent), (4, 0), textcoords="offset points", color=colour, fontsize=9, va="center"
            )
    axes.hlines(budget, 0, last, color=INK, lw=0.9, ls=(0, (4, 3)))
    axes.annotate(
        f"budget, {100 * SHARE:.0f} %", (0, budget), (2, 3), textcoords="offset points", color=INK, fontsize=9
    )
    axes.fill_between([0, last], budget, budget * 2.1, color=FAINT, alpha=0.5, lw=0, zorder=0)
    axes.set(xlim=(0, 1.16 * last), ylim=(0, 2.1 * budget))
    label_axes(axes, "", "iterations", f"energy spent [{unit}]")
