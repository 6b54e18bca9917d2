"""Flower: the strategy runs Flower's own rounds, asks clients for their names, and keeps batteries and budget."""

from importlib.util import find_spec

import pytest

if find_spec("flwr") is None:
    pytest.skip("Flower is not installed", allow_module_level=True)

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict

from ampere.core.errors import UsageError
from ampere.integrations.flower import Client, EnergyAware


@pytest.fixture(autouse=True)
def a_run():
    """Newer versions of Flower make messages only inside a run."""
    if find_spec("flwr.supercore.task_identity") is not None:
        from flwr.supercore.task_identity import TaskIdentity

        TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1


class GridHere:
    """Clients in this process: each answers a message at once."""

    def __init__(self, names, joules=None):
        self.names, self.joules, self.trained = dict(enumerate(names, 101)), joules or {}, []

    def get_node_ids(self):
        return list(self.names)

    def send_and_receive(self, messages, *, timeout=None):
        return [self._answered(message) for message in messages]

    def _answered(self, message):
        name = self.names[message.metadata.dst_node_id]
        if message.metadata.message_type == MessageType.QUERY:
            return Message(RecordDict({"device": ConfigRecord({"name": name})}), reply_to=message)
        self.trained.append(name)
        [weights] = message.content["arrays"].to_numpy_ndarrays()
        metrics = {"num-examples": 10, "train_loss": 1.0, "joules": self.joules.get(name, 10.0)}
        content = {"arrays": ArrayRecord([weights + 1]), "metrics": MetricRecord(metrics)}
        return Message(RecordDict(content), reply_to=message)


def run(strategy, grid, rounds):
    return strategy.start(grid, ArrayRecord([np.zeros(3)]), num_rounds=rounds)


def clients(**batteries):
    return {name: Client(10.0, 0.0, battery) for name, battery in batteries.items()}


def test_rounds_are_trained_and_joules_are_counted():
    grid = GridHere(["a", "b", "c"])
    strategy = EnergyAware(clients(a=1e9, b=1e9, c=1e9), clients_per_round=2, fraction_evaluate=0.0)
    result = run(strategy, grid, 4)
    assert len(grid.trained) == 8
    assert strategy.spent_joules == 80.0
    assert result.arrays.to_numpy_ndarrays()[0].tolist() == [4.0] * 3


def test_rounds_wait_for_clients_that_are_still_connecting(monkeypatch):
    grid, late = GridHere(["a", "b"]), []
    grid.names, all_of_them = {}, grid.names

    def connect(seconds):
        late.append(seconds)
        grid.names = all_of_them

    monkeypatch.setattr("ampere.integrations.flower.time.sleep", connect)
    run(EnergyAware(clients(a=1e9, b=1e9), clients_per_round=2, fraction_evaluate=0.0), grid, 1)
    assert (sorted(grid.trained), len(late)) == (["a", "b"], 1)


def test_an_empty_battery_and_a_spent_budget_train_no_more():
    grid = GridHere(["a", "b"])
    strategy = EnergyAware(clients(a=25.0, b=1e9), clients_per_round=2, budget_joules=65.0, fraction_evaluate=0.0)
    run(strategy, grid, 10)
    assert grid.trained.count("a") == 2
    assert strategy.spent_joules <= 65.0


def test_clients_that_say_no_known_name_are_one_line():
    strategy, grid = EnergyAware(clients(a=1e9), fraction_evaluate=0.0), GridHere(["stranger"])
    with pytest.raises(UsageError, match="no client says which device it is"):
        strategy.configure_train(1, ArrayRecord([np.zeros(3)]), ConfigRecord(), grid)
