"""`ampere trace`: the layers of a model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.cli import arguments
from ampere.cli.console import headline, notice, print_facts, print_json, print_table
from ampere.core import units
from ampere.core.errors import UsageError

if TYPE_CHECKING:
    from ampere.core import Layer, Network


def add_arguments(parser: ArgumentParser) -> None:
    arguments.describe(
        parser,
        "The layers of one training step of a model: what they are, and how much they compute. Nothing is trained. The "
        "file that --out writes can be estimated anywhere, without PyTorch and without the model's code.",
        "ampere trace lenet5",
        "ampere trace net.py:build --input 10x3x32x32 --out net.json",
        "ampere trace lstm --runtime mnn                which layers MNN cannot train",
        "ampere estimate net.json",
    )
    arguments.add_model(parser, ", or a file of `ampere trace`")
    parser.add_argument("--out", metavar="FILE.json", help="write the network there (default: only show it)")
    arguments.add_runtime(parser, "also show which layers this runtime cannot train, and why")
    arguments.add_output(parser)


def run(options: Namespace) -> None:
    if options.out and not options.out.endswith(".json"):
        raise UsageError(f"--out {options.out} does not end in .json, as a network file must: add it")
    from ampere.api import resolve, unsupported_layers
    from ampere.api.memory import with_fresh_pages
    from ampere.storage.networks import save_network

    subject = resolve(arguments.model(options.model, options))
    network = with_fresh_pages(subject) if options.out else subject.network
    if options.out:
        save_network(network, Path(options.out))
    unsupported = unsupported_layers(network, options.runtime) if options.runtime else ()
    if options.json:
        print_json({**to_json(network), **({"unsupported": list(unsupported)} if options.runtime else {})})
    else:
        show(network, unsupported, options.runtime)
    if options.out:
        notice(f"written to {options.out}; next: ampere estimate {options.out}", options.quiet)


def to_json(network: Network) -> dict[str, Any]:
    from ampere.core import work

    flops, parameters = _totals(network)
    record = network.to_json()
    layers = [
        {**shown, "flops": int(work(layer).flops), "parameters": int(work(layer).parameters)}
        for shown, layer in zip(record["layers"], network.layers, strict=True)
    ]
    return {**record, "layers": layers, "flops": flops, "parameters": parameters}


def show(network: Network, unsupported: Sequence[str], runtime: str | None) -> None:
    flops, parameters = _totals(network)
    headline(
        f"{network.name or 'network'}: {units.counted(len(network.layers), 'layer')}, batch {network.batch}, "
        f"{units.number(parameters)} parameters, {units.flops(flops)} per training step"
    )
    print()
    print_table(["layer", "kind", ">channels", ">FLOP", ">parameters", "followed by"], _rows(network))
    facts = [("note", note) for note in network.notes]
    if runtime and unsupported:
        facts.append(("unsupported", f"{runtime} cannot train {', '.join(unsupported)}"))
    elif runtime:
        facts.append(("supported", f"{runtime} can train all of it"))
    if facts:
        print()
        print_facts(facts)


def _totals(network: Network) -> tuple[int, int]:
    from ampere.core import work

    each = [work(layer) for layer in network.layers]
    return sum(int(w.flops) for w in each), sum(int(w.parameters) for w in each)


def _rows(network: Network) -> Iterator[tuple[str, ...]]:
    from ampere.core import work

    for layer in network.layers:
        of_layer = work(layer)
        yield (
            layer.name or "-",
            _kind(layer),
            f"{layer.channels_in:,} - {layer.channels_out:,}",
            units.number(of_layer.flops),
            units.number(of_layer.parameters),
            _trailing(layer),
        )


def _trailing(layer: Layer) -> str:
    """Each class of operation once, with how many there are: loops in a model make hundreds."""
    each = Counter(trailing.op for trailing in layer.trailing)
    return ", ".join(f"{count} {op}" if count > 1 else op for op, count in each.items())


def _kind(layer: Layer) -> str:
    if layer.kind == "operation":
        return f"operation ({layer.config['op'].partition('.')[0]})"
    return f"opaque ({layer.config.get('class', '?')})" if layer.kind == "opaque" else layer.kind
