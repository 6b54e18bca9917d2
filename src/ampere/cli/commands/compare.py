"""`ampere compare`: which of two models is cheaper, on which device, and how sure that is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from .. import options as shared
from ..asking import asked
from ..knowing import know, profile_in
from ..screen import print_json

if TYPE_CHECKING:
    from ampere.estimation import Estimator
    from ampere.network import Network


def add_arguments(parser: ArgumentParser) -> None:
    shared.describe(
        parser,
        "Which of two models is cheaper to train, and how sure that is. Both are estimated together, so that what is "
        "not known of layers that both have does not count. With several profiles, on each of their devices.",
        "ampere compare lenet5 cnn5                                    on this device",
        "ampere compare small.py:build large.py:build --input 10x3x32x32",
        "ampere compare lenet5 har --profile phone.json --profile server.json --json",
    )
    models = f"{shared.MODEL}, or a file of `ampere trace`"
    parser.add_argument("first", metavar="MODEL_A", help=models)
    parser.add_argument("second", metavar="MODEL_B", help="the other one")
    shared.add_input(parser)
    shared.add_allocator(parser, "system")
    shared.add_device(parser)
    shared.add_profiling(parser, several=True)
    shared.add_setup(parser)
    shared.add_meter(parser, "the profile's own")
    shared.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.comparison import compare

    (first, second), estimators = _on_profiles(options) if options.profile else _here(options)
    comparison = compare(first, second, estimators, options.allocator)
    if options.json:
        print_json(comparison.to_json())
    else:
        from ..views.comparison import show

        show(comparison)


def _each(options: Namespace) -> list[Namespace]:
    return [Namespace(**{**vars(options), "model": model}) for model in (options.first, options.second)]


def _here(options: Namespace) -> tuple[list[Network], list[Estimator]]:
    """With one profile that knows both."""
    known = [know(asked(each), each) for each in _each(options)]
    return [k.network for k in known], [known[-1].estimator]


def _on_profiles(options: Namespace) -> tuple[list[Network], list[Estimator]]:
    from ampere.api import network_of
    from ampere.estimation import Estimator

    profiles = [profile_in(Path(path)) for path in options.profile]
    for path, profile in zip(options.profile, profiles, strict=True):
        shared.check_setup(options, profile.setup, path)
    return [network_of(asked(each)) for each in _each(options)], [
        Estimator(profile, options.watts_per_core) for profile in profiles
    ]
