"""A traced network on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ampere.cli.console import headline, print_facts, print_table
from ampere.core import Layer, Network, units, work


def show(network: Network, lacks: Sequence[str] = (), runtime: str | None = None) -> None:
    flops, parameters = totals(network)
    headline(
        f"{network.name or 'network'}: {_counted(len(network.layers), 'layer')}, batch {network.batch}, "
        f"{units.number(parameters)} parameters, {units.flops(flops)} per training step"
    )
    print()
    print_table(["layer", "kind", ">channels", ">FLOP", ">parameters", "followed by"], _rows(network))
    facts = [*(("note", note) for note in network.notes)]
    if runtime:
        facts.append(("impossible", f"{runtime} cannot train {', '.join(lacks)}") if lacks else _all_of_it(runtime))
    if facts:
        print()
        print_facts(facts)


def _all_of_it(runtime: str) -> tuple[str, str]:
    return "possible", f"{runtime} can train all of it"


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def totals(network: Network) -> tuple[int, int]:
    asked = [work(layer) for layer in network.layers]
    return sum(int(w.flops) for w in asked), sum(int(w.parameters) for w in asked)


def _rows(network: Network) -> Iterator[tuple[str, ...]]:
    for layer in network.layers:
        asked = work(layer)
        channels = f"{layer.channels_in:,} - {layer.channels_out:,}"
        followed = ", ".join(t.op for t in layer.trailing)
        yield (
            layer.name or "-",
            kind(layer),
            channels,
            units.number(asked.flops),
            units.number(asked.parameters),
            followed,
        )


def kind(layer: Layer) -> str:
    if layer.kind == "opaque":
        return f"opaque ({layer.config.get('class', '?')})"
    return layer.kind


def to_json(network: Network) -> dict[str, Any]:
    flops, parameters = totals(network)
    record = network.to_json()
    layers = [
        {**shown, "flops": int(work(layer).flops), "parameters": int(work(layer).parameters)}
        for shown, layer in zip(record["layers"], network.layers, strict=True)
    ]
    return {**record, "layers": layers, "flops": flops, "parameters": parameters}
