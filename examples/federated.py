"""Federated learning of digits in Flower's simulation: accuracy against joules, energy-aware and random selection.

    pip install 'ampere-energy[federated,baselines]'
    python examples/federated.py [--clients 20] [--rounds 30]

Twenty clients, each with digits of three classes only, on boards and phones whose joules for a round differ ten times.
Both strategies choose five clients a round; one at random, one by what they teach for their joules.
"""

import argparse
import os

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from sklearn.datasets import load_digits

from ampere.core import Network
from ampere.devices.simulated import PARTS, SimulatedWorker
from ampere.evaluation.layers import linear
from ampere.integrations.flower import Client, EnergyAware

CLASSES, PIXELS, BATCH, EPOCHS, RATE = 10, 64, 16, 2, 0.1
PER_ROUND, CLASSES_A_CLIENT = 5, 3


def digits() -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    return data.data / 16.0, data.target


def shares(clients: int) -> list[np.ndarray]:
    """Which examples each client has: a few classes only, and the last fifth of all for testing."""
    rng, target = np.random.default_rng(0), digits()[1]
    train = np.arange(len(target))[: -len(target) // 5]
    found = []
    for _ in range(clients):
        classes = rng.choice(CLASSES, CLASSES_A_CLIENT, replace=False)
        there = train[np.isin(target[train], classes)]
        found.append(rng.choice(there, rng.integers(40, 120), replace=False))
    return found


def device_of(client: int) -> str:
    return list(PARTS)[client % len(PARTS)]


def round_joules(client: int, examples: int) -> float:
    """What a round costs on the client's device: its steps, as the simulated device knows them."""
    network = Network((linear(PIXELS, CLASSES, BATCH),), BATCH)
    steps = EPOCHS * -(-examples // BATCH)
    return SimulatedWorker(device_of(client), 0).truth(network).total.joules * steps


def trained(weights: np.ndarray, pixels: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, float]:
    """Softmax regression by gradient descent; the loss before it."""
    rng, first = np.random.default_rng(0), loss_of(weights, pixels, target)
    for _ in range(EPOCHS):
        for rows in np.array_split(rng.permutation(len(target)), -(-len(target) // BATCH)):
            error = probabilities(weights, pixels[rows])
            error[np.arange(len(rows)), target[rows]] -= 1
            weights = weights - RATE * with_one(pixels[rows]).T @ error / len(rows)
    return weights, first


def with_one(pixels: np.ndarray) -> np.ndarray:
    return np.column_stack([pixels, np.ones(len(pixels))])


def probabilities(weights: np.ndarray, pixels: np.ndarray) -> np.ndarray:
    scores = with_one(pixels) @ weights
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def loss_of(weights: np.ndarray, pixels: np.ndarray, target: np.ndarray) -> float:
    return float(-np.mean(np.log(probabilities(weights, pixels)[np.arange(len(target)), target] + 1e-12)))


def client_app(clients: int) -> ClientApp:
    app = ClientApp()

    @app.query()
    def which(message: Message, context: Context) -> Message:
        name = f"client {int(context.node_config['partition-id'])}"
        return Message(RecordDict({"device": ConfigRecord({"name": name})}), reply_to=message)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        number = int(context.node_config["partition-id"])
        pixels, target = digits()
        mine = shares(clients)[number]
        [weights] = message.content["arrays"].to_numpy_ndarrays()
        after, loss = trained(weights, pixels[mine], target[mine])
        metrics = {"num-examples": len(mine), "train_loss": loss, "joules": round_joules(number, len(mine))}
        content = RecordDict({"arrays": ArrayRecord([after]), "metrics": MetricRecord(metrics)})
        return Message(content, reply_to=message)

    return app


class Random(FedAvg):
    """Flower's own choice; it writes down what its clients spend."""

    spent_joules = 0.0

    def aggregate_train(self, server_round, replies):
        kept = list(replies)
        self.spent_joules += sum(r.content["metrics"]["joules"] for r in kept if not r.has_error())
        return super().aggregate_train(server_round, kept)


def run(strategy: FedAvg, clients: int, rounds: int) -> list[tuple[float, float]]:
    """Accuracy and joules after each round."""
    pixels, target = digits()
    held_out = np.arange(len(target))[-len(target) // 5 :]
    seen: list[tuple[float, float]] = []

    def evaluated(_: int, arrays: ArrayRecord) -> MetricRecord:
        [weights] = arrays.to_numpy_ndarrays()
        said = np.argmax(probabilities(weights, pixels[held_out]), axis=1)
        seen.append((float(np.mean(said == target[held_out])), strategy.spent_joules))
        return MetricRecord({"accuracy": seen[-1][0]})

    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        first = ArrayRecord([np.zeros((PIXELS + 1, CLASSES))])
        strategy.start(grid, first, num_rounds=rounds, evaluate_fn=evaluated)

    run_simulation(app, client_app(clients), num_supernodes=clients)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    count = options.clients
    known = {
        f"client {n}": Client(round_joules(n, len(mine)), examples=len(mine)) for n, mine in enumerate(shares(count))
    }
    both = {"fraction_evaluate": 0.0, "min_available_nodes": count}
    aware = EnergyAware(known, clients_per_round=PER_ROUND, **both)
    random = Random(fraction_train=PER_ROUND / count, **both)
    found = {name: run(s, count, options.rounds) for name, s in (("energy-aware", aware), ("random", random))}
    print(f"{'round':>5}" + "".join(f"{name + ' accuracy':>24}{'joules':>12}" for name in found))
    for n in range(0, options.rounds + 1, max(1, options.rounds // 10)):
        print(f"{n:>5}" + "".join(f"{rows[n][0]:>24.1%}{rows[n][1]:>12.4g}" for rows in found.values()))


if __name__ == "__main__":
    main()
