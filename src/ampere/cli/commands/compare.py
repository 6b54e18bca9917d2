"""`ampere compare`: which of two models is cheaper, or where one is cheapest, and how sure that is."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ampere.cli import options as shared
from ampere.cli import values
from ampere.cli.console import print_json
from ampere.cli.ensure_profile import ensure_profile, lacking_in, profile_in
from ampere.cli.model_argument import model_argument
from ampere.core.errors import ModelError, UsageError

if TYPE_CHECKING:
    from ampere.cli.ensure_profile import Model
    from ampere.core import Network
    from ampere.estimation.estimate import Estimator

    Asked = tuple[list[Network], list[Estimator]]


def add_arguments(parser: ArgumentParser) -> None:
    shared.describe(
        parser,
        "Which of two models is cheaper to train, and how sure that is. Both are estimated together, so that what is "
        "not known of layers that both have does not count. With several profiles or runtimes, in each of them. One "
        "model alone: in which of these it is cheapest.",
        "ampere compare lenet5 cnn5                                    on this device",
        "ampere compare cnn5 --runtimes torch,jax,mnn                  one model, in which runtime of this device",
        "ampere compare cnn5 --profile torch.json --profile jax.json   the same, with profiles made before",
        "ampere compare small.py:build large.py:build --input 10x3x32x32",
        "ampere compare lenet5 har --profile phone.json --profile server.json --json",
    )
    models = f"{shared.MODEL}, or a file of `ampere trace`"
    parser.add_argument("first", metavar="MODEL_A", help=models)
    parser.add_argument("second", metavar="MODEL_B", nargs="?", help="the other one, if any")
    parser.add_argument(
        "--runtimes",
        metavar="LIST",
        type=values.runtimes,
        help="in each of these on the device, as in torch,jax: profiled first where it is not known well enough",
    )
    shared.add_input(parser)
    shared.add_allocator(parser, "system")
    shared.add_device(parser)
    shared.add_profiling(parser, several=True)
    shared.add_setup(parser)
    shared.add_meter(parser, "the profile's own")
    shared.add_output(parser)


def run(options: Namespace) -> None:
    from ampere.cli.views import comparison, ranking
    from ampere.comparison import compare, rank

    _need_two(options)
    networks, estimators = _on_profiles(options) if options.profile else _here(options)
    called = [Path(path).stem for path in options.profile or ()]
    if options.second is None:
        placed = rank(networks[0], estimators, options.allocator, called)
        print_json(placed.to_json()) if options.json else ranking.show(placed)
    else:
        compared = compare(networks, estimators, options.allocator, called)
        print_json(compared.to_json()) if options.json else comparison.show(compared)


def _need_two(options: Namespace) -> None:
    """Of something."""
    if options.runtimes and (options.profile or options.runtime):
        other = "--profile, whose files say their runtimes themselves" if options.profile else "--runtime"
        raise UsageError(f"--runtimes does not go with {other}: leave out one of them")
    if options.second is None and max(len(options.profile or ()), len(options.runtimes or ())) < 2:
        raise UsageError(
            f"{options.first} alone is compared with nothing: name MODEL_B, or two runtimes as in "
            "--runtimes torch,jax, or give --profile twice (see ampere compare --help)"
        )


def _each(options: Namespace) -> list[Namespace]:
    models = [model for model in (options.first, options.second) if model is not None]
    return [Namespace(**{**vars(options), "model": model}) for model in models]


def _here(options: Namespace) -> Asked:
    """In each runtime, with one profile that knows all models."""
    models = [model_argument(each) for each in _each(options)]
    settings = [Namespace(**{**vars(options), "runtime": name}) for name in options.runtimes or (options.runtime,)]
    if options.runtimes:
        _check_all(models, settings)
    known = [[ensure_profile(model, setting) for model in models] for setting in settings]
    return [k.network for k in known[0]], [of_one[-1].estimator for of_one in known]


def _check_all(models: list[Model], settings: list[Namespace]) -> None:
    """Before any time is spent on the first."""
    from ampere.api import network_of
    from ampere.core import Network
    from ampere.profiling.capabilities import check_builds, check_setup, known

    for model in models:
        network = network_of(model)
        for setting in settings:
            description = known(setting.device, setting.runtime)
            if not (setting.no_profiling or isinstance(model, Network)):
                check_setup(setting.device, shared.setup_of(setting))
            check_builds(network, network.name or "the network", setting.runtime, description)


def _on_profiles(options: Namespace) -> Asked:
    from ampere.api import network_of
    from ampere.estimation.estimate import Estimator

    profiles = [profile_in(Path(path)) for path in options.profile]
    networks = [network_of(model_argument(each)) for each in _each(options)]
    for path, profile in zip(options.profile, profiles, strict=True):
        shared.check_setup(options, profile.setup, path)
        for network in networks:
            if "worker" not in profile.device:  # a worker of others knows by itself what it can build
                _need_layers(network, profile.setup.runtime, path)
    return networks, [Estimator(profile, options.watts_per_core) for profile in profiles]


def _need_layers(network: Network, runtime: str, path: str) -> None:
    from ampere.runtimes.table import refusal

    lacks = list(lacking_in(network, runtime))
    if lacks:
        raise ModelError(f"{refusal(runtime, lacks)} of {network.name or 'the network'}: leave out {path}")
