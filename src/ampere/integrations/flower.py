"""A Flower strategy that chooses clients by estimated joules, battery and usefulness, inside a fleet's budget.

    from ampere.integrations.flower import EnergyAware

    strategy = EnergyAware(clients={"pixel-7": Client(joules=120.0, battery_joules=9e3)}, budget_joules=50e3)

Flower knows clients by numbers that change from run to run. Each client says which device it is by answering a query:

    @app.query()
    def which(message, context):
        return Message(RecordDict({"device": ConfigRecord({"name": "pixel-7"})}), reply_to=message)

or `names` says it. A client's reply to training may hold `joules` (measured) and `train_loss` among its metrics.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from ampere.core.errors import UsageError
from ampere.fleet.selection import Client, Selector

__all__ = ["Client", "EnergyAware"]

ASKING_SECONDS = 180.0  # a simulation starts its clients when they are first asked
WAITING_SECONDS = 1.0  # between two looks at who is there
LOSS, JOULES = "train_loss", "joules"


class EnergyAware(FedAvg):  # type: ignore[misc]
    """Federated averaging that chooses clients by what they cost and what they teach."""

    def __init__(
        self,
        clients: Mapping[str, Client],
        *,
        clients_per_round: int = 10,
        budget_joules: float = float("inf"),
        confidence: float = 0.95,
        names: Mapping[int, str] | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        """`clients` by name; `names` of Flower's nodes where clients do not say theirs. Others go to FedAvg."""
        super().__init__(**options)
        if clients_per_round < 1:
            raise UsageError(f"{clients_per_round} clients a round train nothing: give 1 or more")
        self.selector = Selector(clients, budget_joules, confidence, seed)
        self._count = clients_per_round
        self._names = dict(names or {})

    @property
    def spent_joules(self) -> float:
        """What all clients have spent so far."""
        return self.selector.spent_joules

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Training for the clients that are chosen; for none where no battery or budget lasts."""
        nodes = self._nodes(grid)
        chosen = self.selector.select(server_round, self._count, nodes)
        config["server-round"] = server_round
        record = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        return self._construct_messages(record, [nodes[name] for name in chosen], MessageType.TRAIN)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The average of what came back; what each client spent is written down."""
        kept = list(replies)
        for reply in kept:
            name = self._names.get(reply.metadata.src_node_id)
            if name is None:
                continue
            failed = reply.has_error()
            loss, joules = (None, None) if failed else (_metric(reply.content, key) for key in (LOSS, JOULES))
            self.selector.report(server_round, name, loss, joules)  # a client that failed has spent its joules too
        return super().aggregate_train(server_round, kept)

    def _nodes(self, grid: Grid) -> dict[str, int]:
        """The number of each client that is there, by its name. A round without clients would teach nothing."""
        enough = min(self.min_available_nodes, len(self.selector.clients))
        while len(there := list(grid.get_node_ids())) < enough:
            logging.getLogger("flwr").info("waiting for clients: %d of %d are there", len(there), enough)
            time.sleep(WAITING_SECONDS)
        if unknown := [node for node in there if node not in self._names]:
            asked = [Message(RecordDict(), dst_node_id=node, message_type=MessageType.QUERY) for node in unknown]
            replies = [r for r in grid.send_and_receive(asked, timeout=ASKING_SECONDS) if not r.has_error()]
            if not replies and not self._names:
                raise UsageError(f"none of {len(asked)} clients answered in {ASKING_SECONDS:g} s: look at their logs")
            for reply in replies:
                if "device" in reply.content:
                    self._names[reply.metadata.src_node_id] = str(reply.content["device"]["name"])
        found = {self._names[node]: node for node in there if self._names.get(node) in self.selector.clients}
        if there and not found:
            raise UsageError(
                "no client says which device it is: answer queries as ampere.integrations.flower shows, or give names"
            )
        return found


def _metric(content: RecordDict, key: str) -> float | None:
    for record in content.metric_records.values():
        if key in record:
            value = record[key]
            return float(value) if isinstance(value, (int, float)) else None
    return None
