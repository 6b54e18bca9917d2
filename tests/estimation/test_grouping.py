"""Layers grouped by block: equal neighbours are one row with a count, and the parts sum to the whole."""

from hypothesis import given
from hypothesis import strategies as st

from ampere.estimation.estimate import LayerShare
from ampere.estimation.grouping import group_layers


def shares(*rows):
    return [LayerShare(name, kind, joules, 0.1 * joules) for name, kind, joules in rows]


def encoder(count, joules=1.0):
    parts = (("attention", "attention"), ("attention.out", "linear"), ("norm", "norm_layer"))
    return [(f"bert.encoder.layer.{i}.{part}", kind, joules) for i in range(count) for part, kind in parts]


def summary(rows):
    return [(block.name, block.count, len(block.layers)) for block in group_layers(shares(*rows))]


def test_equal_encoder_layers_are_one_row_with_a_count():
    rows = [("bert.embeddings.word", "embedding", 2.0), ("bert.embeddings.norm", "norm_layer", 1.0)]
    rows += [*encoder(12), ("classifier", "linear", 0.5), ("(step)", "step", 0.1)]
    assert summary(rows) == [
        ("bert.embeddings", 1, 2),
        ("bert.encoder.layer.0-11", 12, 36),
        ("classifier", 1, 1),
        ("(step)", 1, 1),
    ]
    found = group_layers(shares(*rows))[1]
    assert [share.name for share in found.one] == [name for name, *_ in encoder(1)]
    assert found.joules == 36.0
    assert found.to_json()["count"] == 12


def test_blocks_that_cost_or_contain_something_else_stay_apart():
    wide = [("stage.2.conv", "conv", 3.0)]
    rows = [("stage.0.conv", "conv", 1.0), ("stage.1.conv", "conv", 1.01), *wide, ("stage.3.norm", "norm_batch", 3.0)]
    assert summary(rows) == [("stage.0-1", 2, 2), ("stage.2.conv", 1, 1), ("stage.3.norm", 1, 1)]


def test_equal_blocks_are_found_inside_stages_that_differ():
    rows = [(f"layers.{s}.blocks.{b}.{p}", "linear", s + 1.0) for s in (0, 1) for b in (0, 1) for p in ("a", "b")]
    rows.append(("layers.1.downsample", "linear", 9.0))
    assert summary(rows) == [
        ("layers.0.blocks.0-1", 2, 4),
        ("layers.1.blocks.0-1", 2, 4),
        ("layers.1.downsample", 1, 1),
    ]


def test_numbered_layers_of_a_plain_sequence():
    rows = [("0", "conv", 1.0), ("2", "conv", 2.0), ("4", "conv", 2.0), ("6", "linear", 2.0)]
    assert summary(rows) == [("0", 1, 1), ("2-4", 2, 2), ("6", 1, 1)]


def test_layers_without_names_stay_apart():
    assert summary([("", "conv", 1.0), ("", "conv", 1.0)]) == [("", 1, 1), ("", 1, 1)]


NAMES = st.lists(st.sampled_from(["a", "b", "0", "1", "2"]), min_size=0, max_size=4).map(".".join)


@given(st.lists(st.tuples(NAMES, st.sampled_from(["conv", "linear"]), st.sampled_from([1.0, 2.0])), max_size=12))
def test_every_layer_is_in_one_block(rows):
    layers = shares(*rows)
    found = group_layers(layers)
    assert sorted(id(share) for block in found for share in block.layers) == sorted(map(id, layers))
    assert all(len(block.layers) % block.count == 0 for block in found)
