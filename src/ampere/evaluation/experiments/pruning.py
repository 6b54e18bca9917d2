"""Half the energy for a classifier of images: pruned at random as in the paper and by our closed loop, and trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean
from typing import Any

from ampere.evaluation.case_study.images import TESTED, TRAINED, kind_of, name_of
from ampere.evaluation.case_study.jobs import EnergyJob, TrainingJob
from ampere.evaluation.case_study.model import MODELS, ORIGINAL, SHARE, WAYS, space_of
from ampere.evaluation.drawing import by, colour_of, panels, shared_legend, unit_for
from ampere.evaluation.jobs import Job, ProfileJob, Record
from ampere.evaluation.plan import Plan, title_of
from ampere.evaluation.session import Session
from ampere.reporting.plotting import INK, MUTED, label_axes

TITLE = "pruned to half the energy of 2,000 iterations, and trained"
FIGURE = "Fig. 13"

ITERATIONS = 2000


def cases(plan: Plan, device: str) -> list[TrainingJob]:
    seeds = range(plan.seed, plan.seed + plan.either(1, 3))
    seconds, rounds = plan.profile_seconds(device, "cnn5"), plan.either(6, 25)
    images = plan.either(1000, TRAINED), plan.either(500, TESTED)
    space = space_of(kind_of(plan.data))
    return [
        TrainingJob(
            EnergyJob(ProfileJob(device, space.name, seconds, seed, space=space), seed, rounds, plan.data),
            plan.either(200, ITERATIONS),
            images,
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
                    "images": name_of(case.energy.data),
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


TITLES = {ORIGINAL: "original", **{name: way.title for name, way in WAYS.items()}}


def _colour(model: str) -> str:
    if model == ORIGINAL:
        return MUTED
    way = WAYS[model]
    others = "sequential" if way.strategy != "random" else "flops" if way.by_flops else "additive"
    return colour_of("physics" if way.closed_loop else others)


def _style(model: str) -> str:
    return "--" if model != ORIGINAL and WAYS[model].checked else "-"


def draw(figure: Any, records: Sequence[Record]) -> None:
    """As in the paper: test loss and accuracy over iterations; then the energy spent against the budget."""
    devices = by(records, "device_title")
    axes = iter(panels(figure, 3 * len(devices), columns=3, width=3.4, height=3.2))
    for device, rows in devices.items():
        known = [row for row in rows if row.get("share") is not None]
        seeds = len({row["seed"] for row in known})
        among = f"{device}, {known[0]['images']}, {seeds} seed{'s' if seeds > 1 else ''}"
        _over_iterations(next(axes), known, 1, 1.0, among, "test loss")
        _over_iterations(next(axes), known, 2, 100.0, "", "test accuracy [%]")
        _energy(next(axes), known)
    shared_legend(figure)


def _over_iterations(axes: Any, rows: Sequence[Record], column: int, scale: float, title: str, words: str) -> None:
    """The mean of the seeds, within the least and the most."""
    for model, own in by(rows, "model").items():
        curves = [row["curve"] for row in own]
        places = [point[0] for point in curves[0]]
        each = [[scale * curve[i][column] for curve in curves] for i in range(len(places))]
        colour = _colour(model)
        axes.fill_between(places, [min(e) for e in each], [max(e) for e in each], color=colour, alpha=0.08, lw=0)
        axes.plot(places, [mean(e) for e in each], _style(model), color=colour, lw=1.5, label=TITLES[model])
    label_axes(axes, title, "iterations", words)


def _energy(axes: Any, rows: Sequence[Record]) -> None:
    """Bars of the mean over seeds, with a dot for each seed."""
    groups = by(rows, "model")
    scale, unit = unit_for([row["run_joules"] for row in rows])
    for place, (model, own) in enumerate(groups.items()):
        spent = [row["run_joules"] / scale for row in own]
        share = f"{100 * mean(row['share'] for row in own):.1f} %"
        filled = {"facecolor": "white", "hatch": "////"} if _style(model) == "--" else {"facecolor": _colour(model)}
        axes.barh([place], [mean(spent)], 0.66, edgecolor=_colour(model), **filled)
        if len(own) > 1:
            axes.plot(spent, [place] * len(own), "|", color=INK, ms=9)
        axes.annotate(share, (max(spent), place), (5, 0), textcoords="offset points", va="center", fontsize=8.5)
    budget = mean(row["budget_joules"] for row in rows) / scale
    axes.axvline(budget, color=INK, lw=1.1, ls=(0, (4, 3)))
    axes.annotate(f"budget, {100 * SHARE:.0f} %", (budget, -0.62), (4, 0), textcoords="offset points", fontsize=8.5)
    axes.set_yticks(range(len(groups)), [TITLES[model] for model in groups])
    axes.set(ylim=(len(groups) - 0.5, -0.95), xlim=(0, 2.4 * budget))
    label_axes(axes, "", f"energy of {rows[0]['run_iterations']:,} iterations [{unit}]", "")
