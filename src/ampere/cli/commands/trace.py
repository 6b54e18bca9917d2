"""`ampere trace`: the layers of a model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ampere.cli import options as shared
from ampere.cli.console import notice, print_json
from ampere.cli.ensure_profile import lacking_in
from ampere.cli.model_argument import model_argument
from ampere.core.errors import UsageError


def add_arguments(parser: ArgumentParser) -> None:
    shared.describe(
        parser,
        "The layers of one training step of a model: what they are, and what they ask for. Nothing is trained. The "
        "file that --out writes can be estimated anywhere, without PyTorch and without the model's code.",
        "ampere trace lenet5",
        "ampere trace net.py:build --input 10x3x32x32 --out net.json",
        "ampere trace lstm --runtime mnn                     and what MNN could not train of it",
        "ampere estimate net.json",
    )
    shared.add_model(parser, ", or a file of `ampere trace`")
    parser.add_argument("--out", metavar="FILE.json", help="keep the network there (default: it is only shown)")
    shared.add_runtime(parser, "also tell which layers this library could not train, and why")
    shared.add_output(parser)


def run(options: Namespace) -> None:
    if options.out and not options.out.endswith(".json"):
        raise UsageError(f"--out {options.out} does not end in .json, by which a network file is known: add it")
    from ampere.api import network_of
    from ampere.cli.views.network import show, to_json
    from ampere.storage.networks import save_network

    network = network_of(model_argument(options))
    if options.out:
        save_network(network, Path(options.out))
    lacks = lacking_in(network, options.runtime) if options.runtime else ()
    if options.json:
        print_json({**to_json(network), **({"impossible": list(lacks)} if options.runtime else {})})
    else:
        show(network, lacks, options.runtime)
    if options.out:
        notice(f"kept in {options.out}; next: ampere estimate {options.out}", options.quiet)
