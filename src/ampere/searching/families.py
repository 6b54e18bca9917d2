"""The families and general spaces as they are searched: every width open, and depth where a family has it.

What a data set decides (image size, classes, sequence length) stays as in the original: networks that solve
different tasks cannot be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from random import Random

from ampere.devices.subjects import traced
from ampere.models.cnn_sampling import CNN, LEAST_SECONDS, MOST_SECONDS, draw_convs, rough_seconds
from ampere.models.families import CNN5, HAR, LENET5, LSTM, RESNET, TRANSFORMER
from ampere.models.loading import load_from_space
from ampere.models.sequence_sampling import RECURRENT, TRANSFORMERS, sample_recurrent, sample_transformers
from ampere.models.space import Arguments, Space, draw_until

from .space import SearchSpace, Shape, checked_batches

MOST_SHAPES = 12  # each needs tables of its own; more are drawn from
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
    )
