"""An observation: a network that was trained, and what that showed.

Observations share most of their layers, so files hold each different layer once, in a table, and a network
is the numbers of its layers there, with the layers' names.
"""

from dataclasses import dataclass, replace
from typing import Any

from ..network import Layer, Measurement, Network
from .checks import believing, check_extent, check_layer, check_measurement

PURPOSES = ("layer", "variant", "network", "opaque", "run")


class LayerTable:
    def __init__(self) -> None:
        self._numbers: dict[Layer, int] = {}
        self._named: dict[tuple[int, str], Layer] = {}

    def number(self, layer: Layer) -> int:
        return self._numbers.setdefault(layer, len(self._numbers))

    def to_json(self) -> list[dict[str, Any]]:
        return [replace(layer, name="").to_json() for layer in self._numbers]

    @classmethod
    def from_json(cls, records: list[dict[str, Any]]) -> "LayerTable":
        table = cls()
        for number, record in enumerate(records):
            layer = Layer.from_json(record)
            check_layer(layer)
            table._named[number, ""] = layer
        return table

    def layer(self, number: int, name: str) -> Layer:
        if (number, name) not in self._named:
            self._named[number, name] = replace(self._named[number, ""], name=name)
        return self._named[number, name]


@dataclass(frozen=True)
class Observation:
    network: Network
    measurement: Measurement
    purpose: str

    def __post_init__(self) -> None:
        with believing(f"an observation of {self.network.name or 'a network'}"):
            if self.purpose not in PURPOSES:
                raise ValueError(f"purpose {self.purpose!r} is none of {', '.join(PURPOSES)}")
            check_measurement(self.measurement)

    def to_json(self) -> dict[str, Any]:
        """With a table of its own, as in a line of a journal."""
        table = LayerTable()
        row = self.to_row(table)
        return {"layers": table.to_json(), **row}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Observation":
        return cls.from_row(record, LayerTable.from_json(record["layers"]))

    def to_row(self, table: LayerTable) -> dict[str, Any]:
        network = self.network
        return {
            "network": {
                "name": network.name,
                "batch": network.batch,
                "layers": [[table.number(layer), layer.name] for layer in network.layers],
                "notes": list(network.notes),
            },
            "measurement": self.measurement.to_json(),
            "purpose": self.purpose,
        }

    @classmethod
    def from_row(cls, record: dict[str, Any], table: LayerTable) -> "Observation":
        network = _network(record["network"], table)
        return cls(network, Measurement.from_json(record["measurement"]), str(record["purpose"]))


def _network(record: dict[str, Any], table: LayerTable) -> Network:
    layers = tuple(table.layer(number, str(name)) for number, name in record["layers"])
    network = Network(layers, int(record["batch"]), str(record["name"]), tuple(map(str, record["notes"])))
    check_extent(network)
    return network
