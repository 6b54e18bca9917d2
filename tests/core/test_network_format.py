"""Networks as JSON: what this version writes, and what the first format wrote."""

from dataclasses import replace

import pytest

from ampere.core import Layer, Network, TrailingOp

RELU = TrailingOp("elementwise", 4.0, 4.0)


def test_a_network_comes_back_as_it_was_written():
    network = Network((Layer("nonparametric", {"batch": 2}, 1, 1, (RELU,)),), 2, "small")
    assert Network.from_json(network.to_json()) == network
    assert network.to_json()["layers"][0]["trailing"] == [["elementwise", 4.0, 4.0, True]]
    assert "page_faults" not in network.to_json()
    assert Network.from_json(replace(network, page_faults=12.5).to_json()).page_faults == 12.5
    with pytest.raises(ValueError, match="negative"):
        Network.from_json(replace(network, page_faults=-1.0).to_json())


def test_the_first_format_is_read():
    layer = {"channels": [1, 1], "tail": [["elementwise", 4, 4, True]], "trainable": False, "input_grad": False}
    written = {"format": 1, "batch": 2, "layers": [{**layer, "kind": "glue", "config": {"batch": 2}}]}
    [read] = Network.from_json(written).layers
    assert (read.kind, read.trailing) == ("nonparametric", (RELU,))
