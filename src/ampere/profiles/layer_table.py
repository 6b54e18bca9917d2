"""Each different layer once. Observations share most of their layers, and layers most of their configs, so

    functions   [kind, config]                                            one a kind of layer
    rows        [function, channels in, channels out, tail, trainable, input_grad]    one a layer

and a network is the numbers of its layers' rows, with the layers' names.
"""

from dataclasses import replace
from typing import Any

from ..network import Layer, Network
from .checks import check_extent, check_layer


class LayerTable:
    """Filled layer by layer when written; read only when read."""

    def __init__(self) -> None:
        self._functions: dict[Any, int] = {}
        self._configs: list[list[Any]] = []
        self._numbers: dict[Layer, int] = {}
        self._rows: list[list[Any]] = []
        self._named: dict[tuple[int, str], Layer] = {}

    def to_json(self) -> dict[str, Any]:
        return {"functions": self._configs, "rows": self._rows}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "LayerTable":
        table = cls()
        for number, row in enumerate(record["rows"]):
            layer = _layer(row, record["functions"])
            check_layer(layer)
            table._named[number, ""] = layer
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
            raise ValueError("a network has not as many layers as names")
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
        check_layer(layer)  # what could not be read again is not written
        record = layer.to_json()
        function = (layer.kind, tuple(sorted(layer.config.items())))
        if function not in self._functions:
            self._functions[function] = len(self._configs)
            self._configs.append([record["kind"], record["config"]])
        return [
            self._functions[function],
            *record["channels"],
            record["tail"],
            record["trainable"],
            record["input_grad"],
        ]

    def _layer(self, number: int, name: str) -> Layer:
        if (number, name) not in self._named:
            self._named[number, name] = replace(self._named[number, ""], name=name)
        return self._named[number, name]


def _layer(row: list[Any], functions: list[list[Any]]) -> Layer:
    function, channels_in, channels_out, tail, trainable, input_grad = row
    if function < 0:
        raise ValueError("a layer's function has a negative number")
    kind, config = functions[function]
    return Layer.from_json(
        {
            "kind": kind,
            "config": config,
            "channels": [channels_in, channels_out],
            "tail": tail,
            "trainable": trainable,
            "input_grad": input_grad,
        }
    )
