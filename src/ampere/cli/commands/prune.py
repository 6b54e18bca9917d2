"""`ampere prune`: the same model with fewer channels, inside an energy budget."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ampere.cli import options as shared
from ampere.cli.console import print_json
from ampere.cli.ensure_profile import ensure_profile
from ampere.cli.model_argument import asked_model
from ampere.cli.progress import reporting

if TYPE_CHECKING:
    from ampere.models.loading import LoadedModel

STRATEGIES = ("energy", "magnitude", "random", "flops")


def add_arguments(parser: ArgumentParser) -> None:
    shared.describe(
        parser,
        "The same model with fewer channels, so that an iteration of its training stays inside an energy budget. "
        "The model is not trained; the result is, by you. The first time, the device is profiled for some seconds. "
        "Original and result are then trained on made-up data for some seconds in turn, to see that the budget holds.",
        "ampere prune cnn5 --budget 50%                               what would go, layer by layer",
        "ampere prune net.py:build --budget 5mJ --confidence 90% --out pruned.json",
        "ampere prune resnet --budget 20kJ --iterations 100000 --out pruned.pt2",
        "ampere prune har --budget 10% --battery 15Wh --iterations 50000 --strategy magnitude",
    )
    shared.add_model(parser)
    shared.add_budget(parser, "what an iteration costs now", 0.5, "the budget must hold")
    parser.add_argument(
        "--strategy",
        choices=STRATEGIES,
        default="energy",
        help="energy (default): least importance lost per joule saved; magnitude: smallest weights first; random: any "
        "widths that fit; flops: as energy, but FLOPs stand in for joules, to compare with",
    )
    parser.add_argument(
        "--keep", metavar="LAYER", action="append", default=[], help="leave this layer; may be repeated"
    )
    parser.add_argument(
        "--no-check", action="store_true", help="leave it at the estimate: do not measure what the result really costs"
    )
    parser.add_argument("--out", metavar="FILE", help="save the pruned model: .pt2, or .json with weights beside it")
    shared.add_allocator(parser, "system")
    shared.add_device(parser)
    shared.add_profiling(parser)
    shared.add_setup(parser)
    shared.add_meter(parser, "the profile's own")
    shared.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.estimation.estimate import joules_in
    from ampere.pruning.checking import opened_check, why_unchecked
    from ampere.pruning.pruning import prune

    battery = joules_in(options.battery) if options.battery else None
    loaded = _loaded(options)
    _refuse_nonsense(options, loaded, battery)
    known = ensure_profile(loaded, options)
    unmeasured = "as asked" if options.no_check else why_unchecked(options.device, known.profile, known.network)
    at = opened_check(loaded, options.device, known.profile, options.allocator)
    with reporting("pruning", options.quiet) as report, nullcontext() if unmeasured else at as check:
        pruned = prune(
            loaded,
            None,
            options.budget,
            known.estimator,
            options.strategy,
            keep=options.keep,
            confidence=options.confidence,
            iterations=options.iterations,
            battery_joules=battery,
            allocator=options.allocator,
            seed=options.seed,
            check=check,
            on_progress=report,
        )
    written = pruned.save(options.out) if options.out else []
    if options.json:
        print_json({**pruned.to_json(), "unmeasured": unmeasured, "written": [str(path) for path in written]})
    else:
        from ampere.cli.views.pruning import show

        show(pruned, unmeasured, written)


def _refuse_nonsense(options: Namespace, loaded: LoadedModel, battery: float | None) -> None:
    """Before any time is spent on profiling."""
    from ampere.pruning.budget import joules_allowed
    from ampere.pruning.probing import check_layers
    from ampere.pruning.saving import check_writable
    from ampere.pruning.structure import need_torch_pruning

    joules_allowed(options.budget, 1.0, options.iterations, battery)
    check_layers(loaded.model, options.keep)
    need_torch_pruning()
    if options.out:
        check_writable(Path(options.out))


def _loaded(options: Namespace) -> LoadedModel:
    from ampere.models.loading import load_model, refuse_flax

    model = asked_model(options)
    loaded = load_model(model) if isinstance(model, str) else model
    refuse_flax(loaded.model, "pruned")
    return loaded
