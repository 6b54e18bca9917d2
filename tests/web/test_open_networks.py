"""What may change in a traced network, and that the change is what tracing the changed model would give."""

import json
from dataclasses import replace

import pytest
from tests.synthetic import chain

from ampere.core import KINDS, Layer, Network, work
from ampere.core.errors import UsageError
from ampere.core.layer import TrailingOp
from ampere.models.spaces import SPACES
from ampere.web.catalogue import FAMILIES, families
from ampere.web.open_networks import Changes, OpenNetwork


def changed(widths=None, repeats=None, batch=None):
    return Changes(widths or {}, repeats or {}, batch)


def kinds(network):
    return [(x.kind, dict(x.config), x.channels_in, x.channels_out, x.trainable) for x in network.layers]


@pytest.fixture(scope="module")
def traced():
    pytest.importorskip("torch")
    from ampere.devices.workloads import traced

    return lambda name, **arguments: traced(SPACES[name].factory, SPACES[name].arguments(arguments))


@pytest.mark.parametrize("name", SPACES)
def test_without_changes_it_is_the_network(name):
    known = families()[name]
    assert known.at(changed()) == known.network


def test_the_stored_families_are_what_tracing_gives_today(traced):
    """Written by `python -m ampere.web.catalogue`."""
    stored = json.loads(FAMILIES.read_text())
    assert {name: replace(traced(name), name=name).to_json() for name in SPACES} == stored


@pytest.mark.parametrize(
    ("name", "widths", "arguments"),
    [
        ("cnn5", {"0": 7, "3": 20, "6": 31, "8": 100}, {"channels": [7, 20, 31, 100]}),
        ("lenet5", {"0": 3, "3": 9, "7": 50, "9": 11}, {"channels": [3, 9], "fc": [50, 11]}),
        ("har", {"0": 5, "3": 60, "6": 70, "10": 33}, {"channels": [5, 60, 70], "fc": 33}),
        ("lstm", {"layers.0": 12, "layers.1": 50, "layers.2": 99}, {"hidden": [12, 50, 99]}),
        ("resnet", {"0": 8, "5.body.0": 16, "7.body.0": 40, "9.body.0": 100}, {"widths": [8, 16, 40, 100]}),
    ],
)
def test_other_widths_are_those_of_the_model_with_other_widths(traced, name, widths, arguments):
    assert families()[name].at(changed(widths)) == replace(traced(name, **arguments), name=name)


def test_a_block_more_or_less_is_a_deeper_or_shallower_model(traced):
    transformer = families()["transformer"]
    [repeat] = transformer.repeats
    for layers in (1, 3, 6):
        ours = transformer.at(changed(repeats={repeat.name: layers}))
        assert kinds(ours) == kinds(traced("transformer", layers=layers))


def test_recurrent_layers_that_are_added_read_what_the_one_before_writes(traced):
    lstm = families()["lstm"]
    [repeat] = lstm.repeats
    widths = {"layers.0": 30, "layers.1": 20, "layers.2": 10}
    deeper = lstm.at(changed(widths, {repeat.name: 4}))
    assert kinds(deeper) == kinds(traced("lstm", hidden=[30, 20, 10, 10, 10]))
    shallower = lstm.at(changed(widths, {repeat.name: 1}))
    assert kinds(shallower) == kinds(traced("lstm", hidden=[30, 20]))


@pytest.mark.parametrize("name", ["cnn5", "lstm", "transformer", "resnet"])
def test_another_batch_is_that_of_the_model_at_that_batch(traced, name):
    batch = 2 * SPACES[name].default["batch"]
    ours, theirs = families()[name].at(changed(batch=batch)), traced(name, batch=batch)
    assert kinds(ours) == kinds(theirs)
    assert ours.batch == theirs.batch == batch
    assert sum(work(x).values for x in ours.layers) == sum(work(x).values for x in theirs.layers)


def test_what_the_data_decides_stays():
    for name, known in families().items():
        last = len(known.network.layers) - 1
        assert all(last not in width.layers for width in known.widths), name


def test_both_ends_of_a_shortcut_share_their_width():
    plain = chain(3, 16, 16, 16)
    joined = list(plain.layers)
    values = joined[2].trailing[-1].values_out if joined[2].trailing else 10 * 16 * 14 * 14
    joined[2] = replace(joined[2], trailing=(*joined[2].trailing, TrailingOp("elementwise", 2 * values, values)))
    assert len(OpenNetwork(plain).widths) == 3
    [shared] = OpenNetwork(Network(tuple(joined), plain.batch)).widths
    assert shared.layers == (0, 1, 2)


def test_what_the_wiring_does_not_explain_is_fixed():
    """The third layer reads more channels than any layer writes: two tensors that were put side by side."""
    first, second, _, head = chain(3, 16, 24, 8).layers
    third = second.with_channels(40, 8)
    network = Network((first, second, third, head), 10)
    assert all(width.layers[0] >= 2 for width in OpenNetwork(network).widths)


def test_a_description_of_nothing_real_has_no_widths_but_is_served():
    odd = Layer("linear", {"lead": (0,), "bias": True}, 0, 0)
    assert OpenNetwork(Network((odd, odd), 1)).widths == ()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_examples_of_every_kind_can_be_opened(kind):
    for example in KINDS[kind].examples:
        network = Network((example, example), 3)
        assert OpenNetwork(network).at(changed()) == network


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (changed({"0": 0}), "whole number from 1 to 128, not 0"),
        (changed({"0": True}), "whole number"),
        (changed({"0": 1.5}), "whole number"),
        (changed({"nowhere": 3}), "no width 'nowhere'"),
        (changed(repeats={"nowhere": 3}), "no blocks 'nowhere'"),
        (changed(batch=0), "batch must be"),
        (changed(batch=10**9), "batch must be"),
    ],
)
def test_what_cannot_be_is_refused(changes, said):
    with pytest.raises(UsageError, match=said):
        families()["cnn5"].at(changes)
