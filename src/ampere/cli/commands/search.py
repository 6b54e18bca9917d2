"""`ampere search`: the best architectures of a space inside an energy budget."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ampere.cli import options as shared
from ampere.cli import values
from ampere.cli.console import print_json
from ampere.cli.ensure_profile import ensure_profile, stored
from ampere.cli.picture import picture_place
from ampere.cli.progress import reporting
from ampere.core.setup import OPTIMIZERS

if TYPE_CHECKING:
    from ampere.estimation.estimate import Estimator
    from ampere.searching.result import Found
    from ampere.searching.spaces import Values


def add_arguments(parser: ArgumentParser) -> None:
    shared.describe(
        parser,
        "Screens very many architectures of a space by their estimated energy, trains the most promising ones "
        "inside the budget shortly, and shows which of them nothing beats: the front of accuracy against joules.",
        "ampere search cnn5 --budget 50%                     a million candidates, 12 of them trained",
        "ampere search resnet --budget 5mJ --confidence 95% --trials 20",
        "ampere search lstm --budget 20kJ --iterations 100000 --batch 8,16,32 --optimizers sgd,adam",
        "ampere search net.py:build --vary width=8..64 --vary kernel=3,5 --budget 40% --train net.py:train",
    )
    spaces = "a family (lenet5 cnn5 har lstm transformer resnet), a general space (cnn transformers recurrent)"
    parser.add_argument("space", metavar="SPACE", help=f"{spaces}, or file.py:function with --vary")
    shared.add_budget(parser, "the original's joules", 0.9, "a candidate must be inside")
    _add_what_varies(parser)
    _add_training(parser)
    parser.add_argument("--out", metavar="FILE", help="what was found, as JSON (default search-SPACE.json)")
    parser.add_argument("--plot", metavar="FILE", help="the front, drawn (default search-SPACE.png)")
    parser.add_argument("--no-plot", action="store_true", help="draw nothing")
    shared.add_allocator(parser, "system")
    shared.add_device(parser)
    shared.add_profiling(parser, several=True)
    parser.add_argument("--foreign", action="store_true", help="use profiles of another device all the same")
    parser.set_defaults(runtime=None)  # candidates are trained with PyTorch
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), help="default float32")
    parser.add_argument("--threads", metavar="N", type=values.count, help="default 1")
    shared.add_meter(parser, "the profile's own")
    shared.add_output(parser)


def _add_what_varies(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("what may vary")
    group.add_argument("--candidates", metavar="N", type=values.count, help="how many to screen (default 1,000,000)")
    group.add_argument("--batch", metavar="N,N", type=_counts, default=[], help="batches (default the original's)")
    words = "each with a profile of its own, made where it is missing (default sgd)"
    group.add_argument("--optimizers", metavar="NAMES", type=_optimizers, help=words)
    words = "an argument of file.py:function: width=8..64 is a range, kernel=3,5 a list; may be repeated"
    group.add_argument("--vary", metavar="NAME=VALUES", action="append", default=[], help=words)
    group.add_argument("--input", metavar="SHAPE", help="of file.py:function, where it does not return one")


def _add_training(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("training")
    words = (
        "called as function(model, candidate); returns an accuracy from 0 to 1 (default: short, on data made by Ampere)"
    )
    group.add_argument("--train", metavar="FILE.py:FUNCTION", help=words)
    group.add_argument("--trials", metavar="N", type=values.count, default=12, help="how many to train (default 12)")
    words = "of the default training, at the original's batch (default 300)"
    group.add_argument("--steps", metavar="N", type=values.count, default=300, help=words)
    group.add_argument("--no-training", action="store_true", help="only screen and choose")


def run(options: Namespace) -> None:
    from ampere.searching.searching import search
    from ampere.searching.spaces import read_axis

    vary = dict(read_axis(text) for text in options.vary)
    _refuse_nonsense(options, vary)
    name = options.space.replace(":", "-").replace("/", "-")
    out = Path(options.out or f"search-{name}.json")
    plot = None if options.no_training else picture_place(options, f"search-{name}.png")
    estimators = _known(options)
    with reporting(f"searching {options.space}", options.quiet) as report:
        found = search(
            options.space,
            options.budget,
            *estimators,
            train=options.train,
            vary=vary,
            batches=options.batch,
            candidates=options.candidates,
            trials=0 if options.no_training else options.trials,
            steps=options.steps,
            confidence=options.confidence,
            iterations=options.iterations,
            battery=options.battery,
            allocator=options.allocator,
            input=options.input,
            seed=options.seed,
            on_progress=report,
            on_trial=lambda found: _save(found, out),
        )
    _save(found, out)
    if plot and found.trials:
        from ampere.searching.drawing import draw

        draw(found, plot)
    written = [out, *([plot] if plot and found.trials else [])]
    if options.json:
        print_json({**found.to_json(), "written": [str(path) for path in written]})
    else:
        from ampere.cli.views.search import show

        show(found, written)


def _refuse_nonsense(options: Namespace, vary: dict[str, Values]) -> None:
    """Before any time is spent on profiling."""
    from ampere.estimation.estimate import joules_in
    from ampere.searching.searching import allowed_joules, space_of
    from ampere.searching.training import of_user

    space_of(options.space, vary, options.batch, options.input, options.seed)
    battery = joules_in(options.battery) if options.battery else None
    allowed_joules(options.budget, 1.0, options.iterations, battery)
    if options.train and not options.no_training:
        of_user(options.train)


def _known(options: Namespace) -> list[Estimator]:
    """One for each optimiser: of the profiles given, or of this device's own."""
    from ampere.core.errors import UsageError
    from ampere.estimation.estimate import Estimator
    from ampere.models.loading import load_model

    if options.profile:
        each = [Namespace(**{**vars(options), "profile": path, "optimizer": None}) for path in options.profile]
        profiles = [profile for profile in map(stored, each) if profile]
        there = {profile.setup.optimizer for profile in profiles}
        asked = options.optimizers or there
        for name in asked:
            if name not in there:
                raise UsageError(
                    f"no profile given is of {name}, but of {', '.join(sorted(there))}: leave out --optimizers, "
                    f"or make one with `ampere profile --optimizer {name}`"
                )
        return [Estimator(p, options.watts_per_core) for p in profiles if p.setup.optimizer in asked]
    model = options.space if ":" not in options.space else load_model(options.space, options.input)
    each = [Namespace(**{**vars(options), "optimizer": name}) for name in options.optimizers or ["sgd"]]
    return [ensure_profile(model, one).estimator for one in each]


def _save(found: Found, path: Path) -> None:
    """After every trial, so that a search that is stopped has not been for nothing."""
    from ampere.storage.files import storing

    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found.to_json(), indent=1, allow_nan=False) + "\n")


def _counts(text: str) -> list[int]:
    return [values.count(part) for part in text.split(",")]


def _optimizers(text: str) -> list[str]:
    names = [part.strip() for part in text.split(",")]
    for name in names:
        if name not in OPTIMIZERS:
            raise ArgumentTypeError(f"there is no optimiser {name!r}: choose from {', '.join(OPTIMIZERS)}")
    return names
