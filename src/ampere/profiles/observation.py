"""An observation: a network that was trained, and what that showed."""

from dataclasses import dataclass
from typing import Any

from ..network import Measurement, Network
from .checks import believing, check_measurement
from .layer_table import LayerTable

PURPOSES = ("layer", "variant", "network", "opaque", "run")


@dataclass(frozen=True)
class Observation:
    network: Network
    measurement: Measurement
    purpose: str

    def __post_init__(self) -> None:
        with believing(self._what):
            if self.purpose not in PURPOSES:
                raise ValueError(f"purpose {self.purpose!r} is none of {', '.join(PURPOSES)}")
            check_measurement(self.measurement)

    @property
    def _what(self) -> str:
        return f"an observation of {self.network.name or 'a network'}"

    def to_json(self) -> dict[str, Any]:
        """With a table of its own, as in a line of a journal."""
        table = LayerTable()
        row = self.to_row(table)
        return {"layers": table.to_json(), **row}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Observation":
        return cls.from_row(record, LayerTable.from_json(record["layers"]))

    def to_row(self, table: LayerTable) -> dict[str, Any]:
        """With a table that is shared, as in a profile."""
        with believing(self._what):
            network = table.network_to_json(self.network)
        return {
            "network": network,
            "measurement": self.measurement.to_json(),
            "purpose": self.purpose,
        }

    @classmethod
    def from_row(cls, record: dict[str, Any], table: LayerTable) -> "Observation":
        network = table.network_from_json(record["network"])
        return cls(network, Measurement.from_json(record["measurement"]), str(record["purpose"]))
