"""Networks as JSON: what this version writes, and what the first format wrote."""

from dataclasses import replace

import pytest

from ampere.core import Layer, Network, TrailingOp
from ampere.core.allocations import FreshPages

RELU = TrailingOp("elementwise", 4.0, 4.0)


def test_a_network_comes_back_as_it_was_written():
    network = Network((Layer("nonparametric", {"batch": 2}, 1, 1, (RELU,)),), 2, "small")
    assert Network.from_json(network.to_json()) == network
    assert network.to_json()["layers"][0]["trailing"] == [["elementwise", 4.0, 4.0, True]]
    assert "fresh_pages" not in network.to_json()
    followed = FreshPages(12.5, 3.0)
    assert Network.from_json(replace(network, fresh_pages=followed).to_json()).fresh_pages == followed
    with pytest.raises(ValueError, match="negative"):
        Network.from_json(replace(network, fresh_pages=FreshPages(0.0, -1.0)).to_json())


def test_the_first_format_is_read():
    layer = {"channels": [1, 1], "tail": [["elementwise", 4, 4, True]], "trainable": False, "input_grad": False}
    written = {"format": 1, "batch": 2, "layers": [{**layer, "kind": "glue", "config": {"batch": 2}}]}
    [read] = Network.from_json(written).layers
    assert (read.kind, read.trailing) == ("nonparametric", (RELU,))
