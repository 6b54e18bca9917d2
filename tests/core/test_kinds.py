"""The table of layer kinds: every entry is whole, and no runtime claims a kind that it has no builder of."""

from dataclasses import replace

import pytest

from ampere.core import KINDS, Layer, work
from ampere.core.errors import WorkerError
from ampere.core.kinds import GROUPS, built_by, group, kind_of_group, resized, words
from ampere.core.kinds.convolution import example
from ampere.core.kinds.kind import product
from ampere.core.wiring import operands, shape_out
from ampere.runtimes.table import OURS, checked_builders

DESCRIBED = [kind for kind in KINDS.values() if kind.described]
EXAMPLES = [layer for kind in DESCRIBED for layer in kind.examples]


@pytest.fixture
def warp(monkeypatch):
    """A kind that somebody has just added, and that no runtime builds."""
    monkeypatch.setitem(KINDS, "warp", replace(KINDS["linear"], name="warp", runtimes=()))
    return Layer("warp", {"lead": (3,), "bias": True}, 4, 4)


@pytest.mark.parametrize("kind", DESCRIBED, ids=lambda kind: kind.name)
def test_an_entry_is_whole(kind):
    assert kind.words
    assert kind.examples
    assert kind.runtimes
    assert all(layer.kind == kind.name for layer in kind.examples)


@pytest.mark.parametrize("layer", EXAMPLES, ids=lambda layer: layer.kind)
def test_work_and_coordinates_are_those_of_the_shapes(layer):
    asked = work(layer)
    assert min(KINDS[layer.kind].coordinates(layer, 8)) > 0
    assert (asked.parameters > 0) == (KINDS[layer.kind].parametric and layer.trainable)
    touched = product(shape_out(layer)) + sum(product(operand.shape) for operand in operands(layer))
    assert layer.kind == "nonparametric" or asked.values >= touched / 3


def test_a_new_kind_is_refused_by_every_runtime_that_does_not_build_it(warp):
    assert all(description.lacks(warp) == "no warp" for description in OURS.values())


def test_a_runtime_that_says_it_builds_a_kind_must_have_a_builder(monkeypatch, warp):
    builders = dict.fromkeys(built_by("torch"), len)
    assert checked_builders("torch", builders) == builders
    monkeypatch.setitem(KINDS, "warp", replace(KINDS["warp"], runtimes=("torch",)))
    with pytest.raises(LookupError, match="warp"):
        checked_builders("torch", builders)
    monkeypatch.setitem(KINDS, "warp", replace(KINDS["warp"], runtimes=()))
    with pytest.raises(LookupError, match="warp"):
        checked_builders("torch", {**builders, "warp": len})


def test_a_worker_names_the_layer_that_it_cannot_build(warp):
    from ampere.core import Network
    from ampere.runtimes.table import refuse_lacking

    with pytest.raises(WorkerError, match=r"torch cannot build warp \(no warp\)"):
        refuse_lacking(Network((warp,), 3), "torch", OURS["torch"])


def test_every_group_has_a_kind_and_words():
    assert all(kind_of_group(name).name in KINDS and words(name) for name in GROUPS)
    assert {group(layer) for layer in EXAMPLES} <= set(GROUPS)


def test_channels_change_as_far_as_the_kind_lets_them():
    channels = {kind.name: resized(kind.examples[0], 2, 3) for kind in DESCRIBED}
    sizes = {name: (layer.channels_in, layer.channels_out) for name, layer in channels.items()}
    assert sizes["linear"] == (2, 3)
    assert sizes["embedding"] == (11, 3)
    assert sizes["norm_layer"] == (2, 2)
    assert sizes["attention"] == (8, 7)
    depthwise = KINDS["conv_grouped"].examples[1]
    assert resized(depthwise, 2, 3).channels_out == 4  # two for each that it reads, as before


def test_strided_groups_also_count_by_places_of_the_input():
    plain = KINDS["conv_grouped"].examples[1]
    strided = replace(plain, config={**plain.config, "stride": (2, 2)})
    assert work(strided).flops < work(plain).flops
    assert work(strided).half_padded_flops == work(plain).half_padded_flops
    dense = KINDS["conv"].examples[0]
    wide = replace(dense, config={**dense.config, "stride": (2, 2)})
    assert work(wide).half_padded_flops < work(dense).half_padded_flops


def test_pointwise_convolutions_of_few_images_read_their_weights_for_each():
    few, many = (example("conv", (3, 3), channels=(32, 64), kernel=(1, 1), padding=(0, 0), batch=n) for n in (15, 16))
    assert group(few) == "conv_direct"
    assert group(many) == "conv"
    assert work(few).weights == 15 * work(many).weights
    assert work(few, 8).padded_flops / work(few, 8).flops == 16 / 9  # along the nine places, not the channels
    assert work(many, 8).padded_flops == work(many, 8).flops
