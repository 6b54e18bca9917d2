"""Random CNNs: depth, kernels, strides, depthwise convolutions, norms, pools and heads of every sort."""

from random import Random

from .space import Arguments, draw_until, log_uniform

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
