"""The layers of a file, each stored once: observations share most of their layers, and layers most of their configs.

    functions   [kind, config]                                                        one for each kind of layer
    rows        [function, channels in, channels out, tail, trainable, input_grad]    one for each layer

A network is the numbers of its layers' rows, with the names of its layers.
"""

from typing import Any

from ampere.core import Layer, Network

from .checks import MOST_KNOWN, MOST_NAMES, check_count, check_extent, check_layer


class LayerTable:
    """Filled while writing, complete after reading."""

    def __init__(self, before: "LayerTable | None" = None) -> None:
        self._functions: dict[Any, int] = {}
        self._configs: list[list[Any]] = []
        self._numbers: dict[Layer, int] = {}
        self._rows: list[list[Any]] = []
        self._read: list[Layer] = []
        self._known: dict[Layer, Layer] = before._known if before else {}
        self._named: dict[tuple[Layer, str], Layer] = before._named if before else {}

    def to_json(self) -> dict[str, Any]:
        return {"functions": self._configs, "rows": self._rows}

    @classmethod
    def from_json(cls, record: dict[str, Any], before: "LayerTable | None" = None) -> "LayerTable":
        """A table of a file; `before` is the last one of the same file, with which it shares layers."""
        table = cls(before)
        for row in record["rows"]:
            layer = _layer(row, record["functions"])
            if layer not in table._known:
                check_layer(layer)
                table._known[layer] = layer
                check_count(len(table._known), MOST_KNOWN, "different layers")
            table._read.append(table._known[layer])
        return table

    def network_to_json(self, network: Network) -> dict[str, Any]:
        check_extent(network)
        return {
            "name": network.name,
            "batch": network.batch,
            "layers": [self._number(layer) for layer in network.layers],
            "names": [layer.name for layer in network.layers],
            "notes": list(network.notes),
        }

    def network_from_json(self, record: dict[str, Any]) -> Network:
        if len(record["layers"]) != len(record["names"]):
            raise ValueError("a network has more or fewer layers than names")
        layers = tuple(map(self._layer, record["layers"], map(str, record["names"])))
        network = Network(layers, int(record["batch"]), str(record["name"]), tuple(map(str, record["notes"])))
        check_extent(network)
        return network

    def _number(self, layer: Layer) -> int:
        if layer not in self._numbers:
            self._numbers[layer] = len(self._rows)
            self._rows.append(self._row(layer))
        return self._numbers[layer]

    def _row(self, layer: Layer) -> list[Any]:
        check_layer(layer)  # a layer that could not be read again is not written
        record = layer.to_json()
        function = (layer.kind, tuple(sorted(layer.config.items())))
        if function not in self._functions:
            self._functions[function] = len(self._configs)
            self._configs.append([record["kind"], record["config"]])
        return [
            self._functions[function],
            *record["channels"],
            record["trailing"],
            record["trainable"],
            record["input_grad"],
        ]

    def _layer(self, number: int, name: str) -> Layer:
        if not 0 <= number < len(self._read):
            raise ValueError(f"a network has a layer {number!r:.20}, which the file lacks")
        layer = self._read[number]
        if (layer, name) not in self._named:
            check_count(len(self._named), MOST_NAMES, "layers of different names")
            self._named[layer, name] = layer.renamed(name)
        return self._named[layer, name]


def _layer(row: list[Any], functions: list[list[Any]]) -> Layer:
    function, channels_in, channels_out, trailing, trainable, input_grad = row
    if function < 0:
        raise ValueError("a layer's function has a negative number")
    kind, config = functions[function]
    return Layer.from_json(
        {
            "kind": kind,
            "config": config,
            "channels": [channels_in, channels_out],
            "trailing": trailing,
            "trainable": trainable,
            "input_grad": input_grad,
        }
    )
