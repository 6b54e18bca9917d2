"""What can be searched: shapes whose widths are open, or networks that are drawn one by one.

shape    all that is fixed: depth, kernels, batch         widths    each from a least to a largest
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any

from ampere.core import Network
from ampere.core.errors import UsageError
from ampere.devices.workloads import traced
from ampere.models.loading import LoadedModel, load_from_space, load_model, refuse_step
from ampere.models.spaces import (
    CNN,
    CNN5,
    HAR,
    LEAST_SECONDS,
    LENET5,
    LSTM,
    MOST_SECONDS,
    RECURRENT,
    RESNET,
    TRANSFORMER,
    TRANSFORMERS,
    Arguments,
    Space,
    draw_convs,
    draw_until,
    rough_seconds,
    sample_recurrent,
    sample_transformers,
)
from ampere.storage import files as strict_json

if TYPE_CHECKING:
    from ampere.models.loading import LoadedModel


Widths = Sequence[int]


@dataclass(frozen=True)
class Shape:
    """Networks that differ in their widths only."""

    least: tuple[int, ...]
    largest: tuple[int, ...]
    arguments: Callable[[Widths], Arguments]  # of the factory, without the batch

    @property
    def size(self) -> int:
        """How many networks it has."""
        found = 1
        for low, high in zip(self.least, self.largest, strict=True):
            found *= high - low + 1
        return found

    def with_(self, fixed: Mapping[str, Any]) -> Shape:
        return Shape(self.least, self.largest, lambda widths: {**fixed, **self.arguments(widths)})


@dataclass(frozen=True)
class SearchSpace:
    """Either shapes or a way to draw single networks; a network is given by the arguments of one factory."""

    name: str
    original: Arguments  # of the network that budgets in percent refer to
    batches: tuple[int, ...]
    shapes: tuple[Shape, ...]  # for every batch
    draw: Callable[[Random], Arguments] | None
    build: Callable[[Arguments], LoadedModel]
    network: Callable[[Arguments], Network]
    varied: tuple[str, ...]  # arguments that differ between networks


def checked_batches(batches: Sequence[int], original: int) -> tuple[int, ...]:
    wrong = [b for b in batches if not isinstance(b, int) or b < 1]
    if wrong:
        raise UsageError(f"a batch must be 1 or more, not {wrong[0]!r}")
    return tuple(dict.fromkeys(batches)) or (original,)


# The families and general spaces as they are searched: every width open, and depth where a family has it.
#
# What a data set decides (image size, classes, sequence length) stays as in the original: networks that solve
# different tasks cannot be compared.

MOST_SHAPES = 12  # each needs tables of its own; of more, some are drawn
DEEPEST_LSTM, DEEPEST_TRANSFORMER, MOST_BLOCKS = 5, 6, 3


def _up_to(*largest: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return (1,) * len(largest), largest


def _lenet5() -> list[Shape]:
    return [Shape(*_up_to(*LENET5["channels"], *LENET5["fc"]), lambda w: {"channels": [*w[:2]], "fc": [*w[2:]]})]


def _cnn5() -> list[Shape]:
    return [Shape(*_up_to(*CNN5["channels"]), lambda w: {"channels": [*w]})]


def _har() -> list[Shape]:
    return [Shape(*_up_to(*HAR["channels"], HAR["fc"]), lambda w: {"channels": [*w[:-1]], "fc": w[-1]})]


def _lstm() -> list[Shape]:
    widest = max(LSTM["hidden"])
    return [Shape(*_up_to(*[widest] * n), lambda w: {"hidden": [*w]}) for n in range(1, DEEPEST_LSTM + 1)]


def _transformer() -> list[Shape]:
    """The width of a head is open: heads must divide a block's width."""
    heads = TRANSFORMER["heads"]

    def of(layers: int) -> Shape:
        return Shape((4,), (64,), lambda w: {"layers": layers, "width": heads * w[0], "ff": 4 * heads * w[0]})

    return [of(layers) for layers in range(1, DEEPEST_TRANSFORMER + 1)]


def _resnet() -> list[Shape]:
    def of(blocks: tuple[int, ...]) -> Shape:
        return Shape(*_up_to(*RESNET["widths"]), lambda w: {"blocks": [*blocks], "widths": [*w]})

    return [of(blocks) for blocks in product(range(1, MOST_BLOCKS + 1), repeat=len(RESNET["blocks"]))]


def _draw_cnn(rng: Random) -> Arguments:
    def draw() -> Arguments:
        convs = draw_convs(rng, CNN["size"], CNN["channels_in"])
        return {**CNN, "convs": convs, "norm": rng.random() < 0.5, "head": rng.choice(["flatten", "average"])}

    return draw_until(draw, lambda cnn: LEAST_SECONDS < rough_seconds(cnn) < MOST_SECONDS)


CLASSIFIER: Arguments = {**TRANSFORMERS, "causal": False, "outputs": 10}


def _draw_transformer(rng: Random) -> Arguments:
    return {**sample_transformers(rng), **_of(CLASSIFIER, "sequence", "reads", "outputs", "causal")}


def _draw_recurrent(rng: Random) -> Arguments:
    return {**sample_recurrent(rng), **_of(RECURRENT, "sequence", "reads", "features", "outputs")}


def _of(arguments: Arguments, *names: str) -> Arguments:
    return {name: arguments[name] for name in names}


OPEN: dict[str, Callable[[], list[Shape]]] = {
    "lenet5": _lenet5,
    "cnn5": _cnn5,
    "har": _har,
    "lstm": _lstm,
    "transformer": _transformer,
    "resnet": _resnet,
}
DRAWN: dict[str, tuple[Arguments, Callable[[Random], Arguments]]] = {
    "cnn": (CNN, _draw_cnn),
    "transformers": (CLASSIFIER, _draw_transformer),
    "recurrent": (RECURRENT, _draw_recurrent),
}


DRAWS = 20  # to see which arguments differ


def _varied(shapes: Sequence[Shape], draw: Callable[[Random], Arguments] | None) -> tuple[str, ...]:
    if draw is None:
        return tuple(dict.fromkeys(name for shape in shapes for name in shape.arguments(shape.largest)))
    rng = Random(0)
    drawn = [draw(rng) for _ in range(DRAWS)]
    return tuple(name for name in drawn[0] if any(one.get(name) != drawn[0][name] for one in drawn))


def of_space(space: Space, batches: Sequence[int] = (), seed: int = 0) -> SearchSpace:
    original, draw = DRAWN.get(space.name, (dict(space.default), None))
    batches, rng = checked_batches(batches, original["batch"]), Random(seed)
    shapes = OPEN[space.name]() if space.name in OPEN else []
    if len(shapes) > MOST_SHAPES:
        shapes = rng.sample(shapes, MOST_SHAPES)
    with_batch = draw and (lambda rng: {**draw(rng), "batch": rng.choice(batches)})
    return SearchSpace(
        space.name,
        dict(original),
        batches,
        tuple(shape.with_({**original, "batch": batch}) for batch in batches for shape in shapes),
        with_batch,
        lambda arguments: load_from_space(space, None, arguments),
        lambda arguments: traced(space.factory, arguments),
        _varied(shapes, draw),
    )


# A function of the user as a space: `--vary channels=8..64 --vary kernel=3,5`.
#
# A range is an open width; every combination of listed values is a shape.

MOST_COMBINATIONS = 64
_RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")
_REMEDY = "write --vary width=8..64 for a range, --vary kernel=3,5 for a list"

Values = range | tuple[Any, ...]


def read_axis(text: str) -> tuple[str, Values]:
    """`width=8..64` or `kernel=3,5`."""
    name, _, values = (part.strip() for part in text.partition("="))
    if not name.isidentifier() or not values:
        raise UsageError(f"--vary {text} is not an argument with values: {_REMEDY}")
    if not (found := _RANGE.fullmatch(values)):
        return name, tuple(_value(part.strip()) for part in values.split(","))
    low, high = int(found[1]), int(found[2])
    if not 1 <= low < high:
        raise UsageError(f"--vary {text} is not a range from 1 or more to a larger number: {_REMEDY}")
    return name, range(low, high + 1)


def _value(text: str) -> Any:
    try:
        return strict_json.loads(text)
    except ValueError:
        return text


def of_function(spec: str, axes: Mapping[str, Values], input: str | None = None) -> SearchSpace:
    """The networks of a function; the original is what it makes without any of these arguments."""
    if not axes:
        raise UsageError(f"{spec} needs arguments to vary: {_REMEDY}, where both are arguments of the function")
    ranges = {name: values for name, values in axes.items() if isinstance(values, range)}
    lists = {name: values for name, values in axes.items() if not isinstance(values, range)}
    chosen = [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]
    if len(chosen) > MOST_COMBINATIONS:
        raise UsageError(
            f"the lists of --vary combine to {len(chosen)} shapes, more than {MOST_COMBINATIONS}: shorten them"
        )
    original = _network(load_model(spec, input))
    return SearchSpace(
        spec,
        {},
        (original.batch,),
        tuple(_shape(ranges, fixed) for fixed in chosen),
        None,
        lambda arguments: load_model(spec, input, **arguments),
        lambda arguments: _network(load_model(spec, input, **arguments)),
        tuple(axes),
    )


def _shape(ranges: Mapping[str, range], fixed: Arguments) -> Shape:
    least, largest = (tuple(values[end] for values in ranges.values()) for end in (0, -1))

    def arguments(widths: Sequence[int]) -> Arguments:
        return {**fixed, **{name: int(width) for name, width in zip(ranges, widths, strict=True)}}

    return Shape(least, largest, arguments)


def _network(loaded: LoadedModel) -> Network:
    from ampere.tracing.trace import trace

    refuse_step(loaded, "searched for")
    return trace(loaded.model, loaded.inputs, name=loaded.name)
