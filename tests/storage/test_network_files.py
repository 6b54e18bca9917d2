"""Networks as files: any sensible one comes back the same, and a senseless one is refused."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ampere.core.kinds
from ampere.core import KINDS, Layer, Network, TrailingOp
from ampere.core.errors import ProfileError
from ampere.core.layer import TRAILING_CLASSES
from ampere.storage import Profile, checks, load_network, save_network

NETWORK = Profile.load(Path(__file__).parents[1] / "fixtures" / "profile-format-2.json").observations[0].network

sizes = st.integers(1, 4096)
flags = st.booleans()
shapes = st.lists(sizes, min_size=1, max_size=4).map(tuple)


def pairs(low: int, high: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(st.integers(low, high), st.integers(low, high))


CONV: dict[str, st.SearchStrategy[Any]] = {
    "batch": sizes,
    "size_in": pairs(16, 64),
    "kernel": pairs(1, 7),
    "stride": pairs(1, 3),
    "padding": pairs(0, 3),
    "dilation": st.just((1, 1)),
    "groups": st.just(1),
    "bias": flags,
}
RECURRENT = {
    "batch": sizes,
    "length": sizes,
    "layers": st.integers(1, 4),
    "directions": st.integers(1, 2),
    "bias": flags,
}


def like(value: Any) -> st.SearchStrategy[Any]:
    """Other values of the sort that a kind's example has in its config."""
    return flags if isinstance(value, bool) else shapes if isinstance(value, tuple) else sizes


CONFIGS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    **{k.name: {key: like(v) for x in k.examples for key, v in x.config.items()} for k in KINDS.values()},
    "conv": CONV,
    "conv_grouped": {**CONV, "groups": st.just(0)},
    "conv_transposed": {**CONV, "output_padding": st.just((0, 0))},
    **dict.fromkeys(("lstm", "gru", "rnn"), RECURRENT),
    "operation": {key: st.just(value) for key, value in KINDS["operation"].examples[0].config.items()},
    "opaque": {
        **dict.fromkeys(("launches", "flops", "values", "parameters", "parameter_tensors", "batch"), sizes),
        **dict.fromkeys(("shape_in", "shape_out"), shapes),
        "path": st.text(max_size=20),
    },
}

amounts = st.floats(0, 1e12)
tails = st.lists(st.builds(TrailingOp, st.sampled_from(TRAILING_CLASSES), amounts, amounts, flags), max_size=3).map(
    tuple
)


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    kind = draw(st.sampled_from(sorted(CONFIGS)))
    config = draw(st.fixed_dictionaries(CONFIGS[kind]))
    return Layer(kind, config, draw(sizes), draw(sizes), draw(tails), draw(st.text()), draw(flags), draw(flags))


networks = st.builds(
    Network, st.lists(layers(), min_size=1, max_size=5).map(tuple), sizes, st.text(), st.just(("a note",))
)


@settings(max_examples=150, deadline=None)
@given(network=networks)
def test_round_trip(tmp_path_factory, network):
    path = tmp_path_factory.getbasetemp() / "network.json"
    save_network(network, path)
    loaded = load_network(path)
    assert loaded == network
    assert [layer.name for layer in loaded.layers] == [layer.name for layer in network.layers]
    assert loaded.notes == network.notes


def test_every_kind_is_tried_here():
    assert {kind for kind, config in CONFIGS.items() if config} == set(KINDS)


def test_every_shape_that_a_kind_multiplies_is_checked_as_one():
    folder = Path(ampere.core.kinds.__file__).parent
    source = "".join(path.read_text() for path in folder.glob("*.py"))
    used = set(re.findall(r'product\(\w+(?:\.config)?\["(\w+)"\]', source)) | {"lead"}
    assert used <= checks.SHAPES


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "unheard_of"},
        {"config": {}},
        {"config": {"lead": (8,), "bias": "yes" * 10**6}},
        {"config": {"lead": (float("inf"),), "bias": True}},
        {"config": {"lead": (10**15,) * 17, "bias": True}},
        {"channels_in": -3},
        {"channels_out": 10**16},
        {"trailing": (TrailingOp("elementwise", float("nan"), 1.0),)},
    ],
    ids=str,
)
def test_senseless_layers_are_not_saved(tmp_path, change):
    linear = NETWORK.layers[2]
    if "config" in change:
        change = {**change, "channels_in": 5}
    with pytest.raises(ProfileError, match="malformed"):
        save_network(replace(NETWORK, layers=(replace(linear, **change),)), tmp_path / "n.json")
    assert not list(tmp_path.iterdir())


def test_a_kernel_larger_than_its_input_is_refused(tmp_path):
    conv = NETWORK.layers[1]
    config = {**conv.config, "size_in": (3, 28), "kernel": (9, 9), "padding": (0, 0)}
    with pytest.raises(ProfileError, match="negative or absurd"):
        save_network(replace(NETWORK, layers=(replace(conv, config=config),)), tmp_path / "n.json")


def test_a_network_without_layers_is_refused(tmp_path):
    with pytest.raises(ProfileError, match="no layers"):
        save_network(Network((), 4), tmp_path / "network.json")
