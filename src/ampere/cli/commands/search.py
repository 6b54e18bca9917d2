"""`ampere search`: the best architectures of a space inside an energy budget."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.cli import arguments, option_values
from ampere.cli.console import Display, bar, headline, plot_path, print_facts, print_json, print_table
from ampere.core import units

if TYPE_CHECKING:
    from ampere.searching.result import Found, Trial

BAR = 10
MODES = ("capacity", "hyperpower")


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "Estimates the energy of very many architectures of a space, trains the most promising ones inside the budget "
        "for a short time, and shows those that no other one beats: the front of accuracy against joules.",
        "ampere search cnn5 --budget 50%                a million, 12 of them trained",
        "ampere search resnet --budget 5mJ --confidence 95% --trials 20",
        "ampere search lstm --budget 5mJ --batch 8,16,32 --optimizers sgd,adam",
        "ampere search net.py:build --vary width=8..64 --vary kernel=3,5 --budget 40%",
        "ampere search lstm --budget 5mJ --scheduler tcp://lab:8786 --table t.csv",
    )
    spaces = "a family (lenet5 cnn5 har lstm transformer resnet), a general space (cnn transformers recurrent)"
    parser.add_argument("space", metavar="SPACE", help=f"{spaces}, or file.py:function with --vary")
    arguments.add_budget(parser, "the original's joules", 0.9, "a candidate must be inside")
    words = "limit of a candidate's mean power while it trains, such as 8W"
    parser.add_argument("--power", metavar="WATTS", type=option_values.watts, help=words)
    arguments.add_memory(parser, "leave out candidates whose training may take more memory")
    _add_what_varies(parser)
    _add_training(parser)
    words = "a running dask scheduler, whose workers screen the candidates (default: this process)"
    parser.add_argument("--scheduler", metavar="tcp://HOST:PORT", help=words)
    parser.add_argument("--out", metavar="FILE", help="write the result as JSON (default search-SPACE.json)")
    words = "the largest candidates at each cost, as .parquet or .csv"
    parser.add_argument("--table", metavar="FILE", help=words)
    parser.add_argument("--plot", metavar="FILE", help="draw the front (default search-SPACE.png)")
    parser.add_argument("--no-plot", action="store_true", help="draw nothing")
    arguments.add_allocator(parser, "system")
    arguments.add_device(parser)
    arguments.add_profile_choice(parser, several=True)
    arguments.add_other_device(parser)
    arguments.add_setup(parser, runtime=False, optimizers=False)  # candidates are trained with PyTorch
    arguments.add_meter(parser, "the profile's own")
    arguments.add_output(parser)


def _add_what_varies(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("what may vary")
    group.add_argument(
        "--candidates", metavar="N", type=option_values.count, help="how many to estimate (default 1,000,000)"
    )
    group.add_argument(
        "--batch", metavar="N,N", type=option_values.counts, default=[], help="batch sizes (default the original's)"
    )
    words = "each has a profile of its own, made where it is missing (default sgd)"
    group.add_argument("--optimizers", metavar="NAMES", type=option_values.optimizers, default=[], help=words)
    words = "an argument of file.py:function: width=8..64 is a range, kernel=3,5 a list; may be repeated"
    group.add_argument("--vary", metavar="NAME=VALUES", action="append", default=[], help=words)
    group.add_argument("--input", metavar="SHAPE", help="of file.py:function, where it returns none")


def _add_training(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("training")
    words = "called as function(model, candidate); returns an accuracy from 0 to 1 (default: short, on made-up data)"
    group.add_argument("--train", metavar="FILE.py:FUNCTION", help=words)
    group.add_argument(
        "--trials", metavar="N", type=option_values.count, default=12, help="how many to train (default 12)"
    )
    words = "of the default training, at the original's batch size (default 300)"
    group.add_argument("--steps", metavar="N", type=option_values.count, default=300, help=words)
    words = (
        "capacity (default): the largest candidate at each cost, chosen at once; hyperpower: one after the other, by "
        "what was trained (Bayesian optimization), and what learns nothing is stopped early, for comparison"
    )
    group.add_argument("--mode", choices=MODES, default=MODES[0], help=words)
    group.add_argument("--no-training", action="store_true", help="only estimate and choose")


def run(options: Namespace) -> None:
    from ampere.api import search
    from ampere.searching.spaces import read_axis

    name = options.space.replace(":", "-").replace("/", "-")
    out = Path(options.out or f"search-{name}.json")
    vary = dict(read_axis(text) for text in options.vary)
    plot = None
    if not options.no_training:
        plot = plot_path(options.plot, options.no_plot, f"search-{name}.png", options.quiet)
    with arguments.open_device(options) as device, Display(options.quiet) as display:
        found = search(
            options.space,
            options.budget,
            *options.profile,
            optimizers=options.optimizers,
            train=options.train,
            vary=vary,
            batches=options.batch,
            candidates=options.candidates,
            trials=0 if options.no_training else options.trials,
            steps=options.steps,
            confidence=options.confidence,
            iterations=options.iterations,
            battery=options.battery,
            memory=options.memory,
            input=options.input,
            mode=options.mode,
            power=options.power,
            scheduler=options.scheduler,
            table=options.table,
            on_trial=lambda found: _save(found, out),
            **vars(arguments.api_options(options, device, display, profile=None)),
        )
    written = _write(found, out, plot)
    written += [Path(options.table)] if options.table else []
    if options.json:
        print_json({**found.to_json(), "written": [str(path) for path in written]})
    else:
        show(found, written)


def _write(found: Found, out: Path, plot: Path | None) -> list[Path]:
    _save(found, out)
    if not (plot and found.trials):
        return [out]
    from ampere.searching.drawing import draw

    draw(found, plot)
    return [out, plot]


def _save(found: Found, path: Path) -> None:
    """After every trial, so that a search that is stopped keeps its results."""
    from ampere.storage.files import write_whole

    write_whole(path, json.dumps(found.to_json(), indent=1, allow_nan=False) + "\n")


# The front first, then what it beats, and how the candidates were chosen.


def show(found: Found, written: Sequence[Path]) -> None:
    headline(_first_line(found))
    print()
    scale, unit = units.joules_unit(found.budget_joules)
    if found.trials:
        print_table(["", ">accuracy", f">{unit}", ">± 90 %", "|", "varied"], _trials(found, scale))
    else:
        rows = (_cost(candidate, found, scale) for candidate in found.chosen)
        print_table([f">{unit}", ">± 90 %", "|", "varied"], rows)
    print()
    print_facts(_facts(found, written))


def _first_line(found: Found) -> str:
    if not found.trials:
        return f"{found.space}: {len(found.chosen)} of {found.screened:,} candidates are worth training"
    front = [trial for trial in found.front if not _at_chance(trial)]
    if not front:
        return f"{found.space}: no trained network is above chance level; train for longer with --steps or --train"
    best = front[-1]
    joules, accuracy = best.candidate.joules, units.percent(best.accuracy or 0.0)
    share = units.percent(joules / found.original_joules)
    return (
        f"{found.space}: {accuracy} accuracy with {units.joules(joules)}, {share} of the original; "
        f"{len(front)} on the front"
    )


def _at_chance(trial: Trial) -> bool:
    return bool(getattr(trial, "at_chance", False))


def _trials(found: Found, scale: float) -> Iterator[tuple[str, ...]]:
    front = found.front
    for trial in sorted(found.trials, key=lambda t: (t not in front, -t.candidate.joules)):
        yield ("*" if trial in front else "", _accuracy(trial), *_cost(trial.candidate, found, scale))


def _accuracy(trial: Trial) -> str:
    if trial.accuracy is None:
        return "failed"
    chance = " (stopped)" if trial.stopped_early else " (chance)" if _at_chance(trial) else ""
    return f"{100 * trial.accuracy:.1f} %{chance}"


def _cost(candidate: Any, found: Found, scale: float) -> tuple[str, str, str, str]:
    return (
        units.significant(candidate.joules / scale),
        units.percent(1.645 * candidate.stddev / candidate.joules),
        bar(candidate.joules / found.budget_joules, BAR),
        _words(_differing(candidate, found)),
    )


def _settings(candidate: Any, found: Found) -> dict[str, Any]:
    """Everything that could differ between candidates."""
    varied = getattr(found, "varied", None)
    chosen = {k: v for k, v in candidate.arguments.items() if not varied or k in varied}
    batch = {"batch": candidate.batch} if len(found.batches) > 1 else {}
    optimizer = {"optimizer": candidate.optimizer} if len({c.optimizer for c in found.chosen}) > 1 else {}
    return {**chosen, **batch, **optimizer}


def _same(found: Found) -> dict[str, Any]:
    """Settings that varied, and are the same in all that were chosen."""
    first, *others = (_settings(candidate, found) for candidate in found.chosen)
    return {k: v for k, v in first.items() if others and all(k in o and o[k] == v for o in others)}


def _differing(candidate: Any, found: Found) -> dict[str, Any]:
    same = _same(found)
    settings = _settings(candidate, found)
    return {k: v for k, v in settings.items() if k not in same} or settings


def _words(settings: Mapping[str, Any]) -> str:
    """`channels 12-30-64, batch 10`."""
    return ", ".join(f"{name} {_value(value)}" for name, value in settings.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "(" + " ".join(f"{k} {_value(v)}" for k, v in value.items()) + ")"
    if isinstance(value, (list, tuple)):
        return "-".join(_value(v) for v in value)
    return str(value)


def _facts(found: Found, written: Sequence[Path]) -> Iterator[tuple[str, str]]:
    from ampere.cli.wording import meter_line

    if same := _same(found):
        yield "same in all", _words(same)
    share = units.percent(found.inside / found.screened)
    took = units.seconds(found.screening_seconds)
    yield "estimated", f"{found.screened:,} candidates in {took}; {found.inside:,} ({share}) are inside the budget"
    of = "an iteration" if len(found.batches) == 1 else f"{found.examples} examples, an iteration of the original"
    probability = units.percent(found.confidence)
    yield (
        "budget",
        f"{units.joules(found.budget_joules)} of {of}; each candidate is inside with {probability} probability",
    )
    if found.power_watts is not None:
        yield "power", f"candidates above {units.watts(found.power_watts)} are left out"
    if found.memory_bytes is not None:
        yield "memory", f"each candidate fits into {units.bytes(found.memory_bytes)} with its whole 90 % interval"
    if len(found.batches) > 1:
        yield "compared", f"joules of {found.examples} examples, because the batches differ"
    if found.trials:
        yield (
            "trained",
            f"{len(found.trials)}: {found.trained_with}; one seed each, so small differences may be random",
        )
        yield "*", "on the front: no other one that was trained is both cheaper and more accurate"
        if any(map(_at_chance, found.trials)):
            yield "chance", "no more accurate than guessing: such a candidate learnt nothing in so short a training"
    if stopped := sum(trial.stopped_early for trial in found.trials):
        yield "stopped", f"{stopped} of {len(found.trials)} early, at chance level after a part of their training"
    if found.mode == "hyperpower":
        yield "mode", "hyperpower: Bayesian optimization inside the limits, as in HyperPower (2018), for comparison"
    for trial in found.trials:
        if trial.failure:
            yield "failed", f"{_words(_differing(trial.candidate, found))}: {trial.failure}"
    yield "joules", meter_line(found.meter)
    for path in written:
        yield "written", str(path)
