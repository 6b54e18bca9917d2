"""An observation: a network that was trained, and what that showed."""

from dataclasses import dataclass
from typing import Any

from ..network import Measurement, Network
from .checks import believing, check_measurement
from .layer_table import LayerTable

PURPOSES = ("layer", "variant", "network", "opaque", "run", "stage", "kernel")
IN_PART = ("stage", "kernel")  # purposes of which not the whole step was timed
STEP = "step"
STAGES = ("forward", "backward", "update")


@dataclass(frozen=True)
class Observation:
    network: Network
    measurement: Measurement
    purpose: str
    stage: str = STEP  # what was timed: the whole step, or one stage of it

    def __post_init__(self) -> None:
        with believing(self._what):
            if self.purpose not in PURPOSES:
                raise ValueError(f"purpose {self.purpose!r} is none of {', '.join(PURPOSES)}")
            if self.stage not in (STAGES if self.purpose in IN_PART else (STEP,)):
                raise ValueError(f"a {self.purpose} was not timed for the stage {self.stage[:40]!r}")
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
            **({} if self.stage == STEP else {"stage": self.stage}),
        }

    @classmethod
    def from_row(cls, record: dict[str, Any], table: LayerTable) -> "Observation":
        network = table.network_from_json(record["network"])
        measurement = Measurement.from_json(record["measurement"])
        return cls(network, measurement, str(record["purpose"]), str(record.get("stage", STEP)))
