"""Networks as files, so that one machine can trace and another estimate."""

from pathlib import Path

from ampere.core import Network

from .checks import MOST_LAYERS, check_count, check_network, checked
from .files import read_document, write_document

KIND = "network"
FORMAT = 2


def save_network(network: Network, path: Path) -> None:
    """Write a network to a file, after checking it."""
    with checked(f"network {network.name}"):
        check_network(network)
    write_document(path, KIND, FORMAT, network.to_json())


def load_network(path: Path) -> Network:
    """The network in a file, after checking it."""
    record = read_document(path, KIND, FORMAT)
    with checked(str(path)):
        check_count(len(record["layers"]), MOST_LAYERS, "layers")
        network = Network.from_json(record)
        check_network(network)
    return network
