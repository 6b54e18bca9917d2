"""Spaces of random networks: the paper's six families, and any CNN, transformer or recurrent network."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

Arguments = dict[str, Any]  # plain JSON: numbers, words, lists and objects of them


@dataclass(frozen=True)
class Space:
    """Networks that share a factory and differ in its arguments. Known without importing torch."""

    name: str
    title: str
    factory: str  # module:function
    default: Mapping[str, Any]  # the original network
    sample: Callable[[Random], Arguments]

    def arguments(self, changed: Mapping[str, Any]) -> Arguments:
        """The original's arguments with some of them changed."""
        return {**self.default, **changed}


def widths_up_to(rng: Random, original: list[int]) -> list[int]:
    """Each width anywhere from 1 to the original's, as the paper samples."""
    return [rng.randint(1, width) for width in original]


def log_uniform(rng: Random, low: int, high: int) -> int:
    """An integer whose logarithm is uniform: as many below 10 as between 10 and 100."""
    return min(high, int(math.exp(rng.uniform(math.log(low), math.log(high + 1)))))


def draw_until(draw: Callable[[], Arguments], accept: Callable[[Arguments], bool]) -> Arguments:
    while True:
        arguments = draw()
        if accept(arguments):
            return arguments


# The paper's six families: the original network of each, and how the paper's evaluation samples around it.

LENET5: Arguments = {"channels": [6, 16], "fc": [120, 84], "batch": 10}
CNN5: Arguments = {"channels": [32, 64, 128, 256], "batch": 10}
HAR: Arguments = {"channels": [64, 128, 128], "fc": 128, "batch": 16}
LSTM: Arguments = {"hidden": [128, 128, 128], "batch": 16}
TRANSFORMER: Arguments = {
    "layers": 4,
    "width": 128,
    "heads": 4,
    "ff": 512,
    "sequence": 32,
    "vocabulary": 1000,
    "dropout": 0.1,
    "batch": 8,
}
RESNET: Arguments = {"blocks": [2, 2, 2, 2], "widths": [16, 32, 64, 128], "bottleneck": False, "batch": 8}


def sample_lenet5(rng: Random) -> Arguments:
    return {**LENET5, "channels": widths_up_to(rng, LENET5["channels"]), "fc": widths_up_to(rng, LENET5["fc"])}


def sample_cnn5(rng: Random) -> Arguments:
    return {**CNN5, "channels": widths_up_to(rng, CNN5["channels"])}


def sample_har(rng: Random) -> Arguments:
    return {**HAR, "channels": widths_up_to(rng, HAR["channels"]), "fc": rng.randint(1, HAR["fc"])}


def sample_lstm(rng: Random) -> Arguments:
    return {**LSTM, "hidden": widths_up_to(rng, [128] * rng.randint(1, 5))}


def sample_transformer(rng: Random) -> Arguments:
    width = rng.randrange(16, 257, TRANSFORMER["heads"])
    return {**TRANSFORMER, "layers": rng.randint(1, 6), "width": width, "ff": 4 * width}


def sample_resnet(rng: Random) -> Arguments:
    blocks = [rng.randint(1, 3) for _ in RESNET["blocks"]]
    base = rng.randint(2, RESNET["widths"][0])
    return {**RESNET, "blocks": blocks, "widths": [base << stage for stage in range(len(blocks))]}


FAMILIES: dict[str, Space] = {
    space.name: space
    for space in (
        Space("lenet5", "LeNet-5 on 28x28 images", "ampere.models.lenet5:build", LENET5, sample_lenet5),
        Space("cnn5", "5-layer CNN on 28x28 images", "ampere.models.cnn5:build", CNN5, sample_cnn5),
        Space("har", "1-d CNN on motion sensors", "ampere.models.har:build", HAR, sample_har),
        Space("lstm", "LSTM stack on images read row by row", "ampere.models.lstm:build", LSTM, sample_lstm),
        Space(
            "transformer",
            "Transformer text classifier",
            "ampere.models.transformer:build",
            TRANSFORMER,
            sample_transformer,
        ),
        Space("resnet", "ResNet-18 of 32x32 images", "ampere.models.resnet:build", RESNET, sample_resnet),
    )
}


# Random CNNs: depth, kernels, strides, depthwise convolutions, norms, pools and heads of every sort.

LEAST_SECONDS, MOST_SECONDS = 3e-4, 0.06

CNN: Arguments = {
    "batch": 8,
    "size": 24,
    "channels_in": 3,
    "convs": [
        {"channels": 32, "kernel": 3, "stride": 1, "depthwise": False, "pool": True},
        {"channels": 64, "kernel": 3, "stride": 1, "depthwise": False, "pool": False},
        {"channels": 64, "kernel": 5, "stride": 2, "depthwise": True, "pool": False},
        {"channels": 128, "kernel": 1, "stride": 1, "depthwise": False, "pool": False},
    ],
    "norm": True,
    "head": "average",
    "classes": 10,
}


def sample_cnn(rng: Random) -> Arguments:
    return draw_until(lambda: _draw(rng), lambda cnn: LEAST_SECONDS < rough_seconds(cnn) < MOST_SECONDS)


def _draw(rng: Random) -> Arguments:
    size, channels_in = rng.randint(8, 40), rng.choice([1, 3])
    return {
        "batch": log_uniform(rng, 1, 32),
        "size": size,
        "channels_in": channels_in,
        "convs": draw_convs(rng, size, channels_in),
        "norm": rng.random() < 0.5,
        "head": rng.choice(["flatten", "average"]),
        "classes": rng.choice([2, 10, 100]),
    }


def draw_convs(rng: Random, size: int, channels: int) -> list[Arguments]:
    """Maps stay at 2x2 or more: a batch norm needs more than one value a channel."""
    convs: list[Arguments] = []
    for position in range(rng.randint(1, 8)):
        conv = _draw_conv(rng, channels, shrinkable=size >= 4, first=position == 0)
        size = _halved(size, conv)
        if size >= 4 and rng.random() < 0.2:
            conv["pool"], size = True, size // 2
        channels = conv["channels"]
        convs.append(conv)
    return convs


def _draw_conv(rng: Random, channels: int, shrinkable: bool, first: bool) -> Arguments:
    depthwise = not first and rng.random() < 0.2
    return {
        "channels": channels if depthwise else log_uniform(rng, 1, 256),
        "kernel": rng.choice([3, 5]) if depthwise else rng.choice([1, 3, 3, 5]),
        "stride": 2 if shrinkable and rng.random() < 0.25 else 1,
        "depthwise": depthwise,
        "pool": False,
    }


def _halved(size: int, conv: Arguments) -> int:
    return int((size - 1) // conv["stride"] + 1)


def rough_seconds(cnn: Arguments) -> float:
    """A step on one core to within a factor of about three: enough to leave out what is absurd."""
    size, channels, flops, values = cnn["size"], cnn["channels_in"], 0.0, 0.0
    for conv in cnn["convs"]:
        values += size**2 * channels * cnn["batch"]
        size = _halved(size, conv)
        fan_in = 1 if conv["depthwise"] else channels
        channels = conv["channels"]
        flops += 6 * cnn["batch"] * size**2 * channels * fan_in * conv["kernel"] ** 2
        values += (3 + 3 * cnn["norm"]) * size**2 * channels * cnn["batch"]
        size //= 1 + conv["pool"]
    head = channels * cnn["classes"] * (size**2 if cnn["head"] == "flatten" else 1)
    return 2e-4 * len(cnn["convs"]) + flops / 4e10 + 4e-9 * (values + 3 * head)


# Random transformers and recurrent networks.

MOST_SEQUENCE_SECONDS = 0.06

TRANSFORMERS: Arguments = {
    "batch": 4,
    "sequence": 64,
    "layers": 2,
    "width": 128,
    "heads": 4,
    "ff": 512,
    "causal": True,
    "norm_first": True,
    "reads": "tokens",
    "outputs": 1000,
    "dropout": 0.1,
    "activation": "relu",
}

RECURRENT: Arguments = {
    "batch": 8,
    "sequence": 32,
    "cell": "gru",
    "hidden": [128, 128],
    "reads": "tokens",
    "features": 64,
    "outputs": 10,
}


def sample_transformers(rng: Random) -> Arguments:
    return draw_until(lambda: _draw_transformer(rng), lambda drawn: transformer_seconds(drawn) < MOST_SEQUENCE_SECONDS)


def _draw_transformer(rng: Random) -> Arguments:
    heads = rng.choice([1, 2, 4, 8])
    width = heads * round(log_uniform(rng, 16, 384) / heads)
    return {
        "batch": log_uniform(rng, 1, 16),
        "sequence": log_uniform(rng, 8, 128),
        "layers": rng.randint(1, 6),
        "width": max(16, width),
        "heads": heads,
        "ff": rng.randint(1, 4) * max(16, width),
        "causal": rng.random() < 0.5,
        "norm_first": rng.random() < 0.5,
        "reads": rng.choice(["tokens", "patches"]),
        "outputs": rng.choice([10, 100, 1000]),
        "dropout": rng.choice([0.0, 0.1]),
        "activation": rng.choice(["relu", "gelu"]),
    }


def transformer_seconds(drawn: Arguments) -> float:
    width, tokens = drawn["width"], drawn["batch"] * drawn["sequence"]
    per_token = 4 * width**2 + 2 * width * drawn["ff"] + 2 * drawn["sequence"] * width
    head = width * drawn["outputs"] * (tokens if drawn["causal"] else drawn["batch"])
    return float(7e-4 * drawn["layers"] + 6 * (tokens * drawn["layers"] * per_token + head) / 4e10)


def sample_recurrent(rng: Random) -> Arguments:
    return draw_until(lambda: _draw_recurrent(rng), lambda drawn: recurrent_seconds(drawn) < MOST_SEQUENCE_SECONDS)


def _draw_recurrent(rng: Random) -> Arguments:
    return {
        "batch": log_uniform(rng, 1, 32),
        "sequence": log_uniform(rng, 4, 64),
        "cell": rng.choice(["lstm", "gru"]),
        "hidden": [log_uniform(rng, 8, 256) for _ in range(rng.randint(1, 5))],
        "reads": rng.choice(["tokens", "features"]),
        "features": log_uniform(rng, 4, 128),
        "outputs": rng.choice([2, 10, 100]),
    }


def recurrent_seconds(drawn: Arguments) -> float:
    seconds, width = 0.0, drawn["features"]
    for hidden in drawn["hidden"]:
        flops = 6 * drawn["batch"] * 4 * hidden * (width + hidden)
        seconds += drawn["sequence"] * (1e-4 + flops / 4e10)
        width = hidden
    return seconds


# The general spaces: any CNN, any transformer, any recurrent network whose step takes about 0.3 to 60 ms.

GENERAL: dict[str, Space] = {
    space.name: space
    for space in (
        Space("cnn", "any CNN", "ampere.models.cnn:build", CNN, sample_cnn),
        Space("transformers", "any transformer", "ampere.models.transformers:build", TRANSFORMERS, sample_transformers),
        Space("recurrent", "any recurrent network", "ampere.models.recurrent:build", RECURRENT, sample_recurrent),
    )
}

SPACES: dict[str, Space] = {**FAMILIES, **GENERAL}
