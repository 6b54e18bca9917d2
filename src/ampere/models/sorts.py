"""What a profile of a whole device is made of: networks of every sort, and lone layers as large as large models have.

They were chosen by what is in use (convolutional, residual, depthwise, encoder-decoder, attention, recurrent, MLP and
mixer, embeddings, gather and scatter), not by any model that estimates were tried on.
"""

from collections.abc import Callable
from random import Random

from .spaces import GENERAL, Arguments, Space, draw_until, log_uniform

LEAST_SECONDS, MOST_SECONDS = 3e-4, 0.2  # of a step on one core, to within a factor of about three
MOST_LONE_SECONDS = 0.25
FLOPS_A_SECOND, SECONDS_A_VALUE, SECONDS_A_LAYER = 4e10, 4e-9, 2e-4


def _seconds(layers: float, flops: float, values: float) -> float:
    return SECONDS_A_LAYER * layers + flops / FLOPS_A_SECOND + SECONDS_A_VALUE * values


def _sampler(
    draw: Callable[[Random], Arguments], seconds: Callable[[Arguments], float], most: float = MOST_SECONDS
) -> Callable[[Random], Arguments]:
    def sample(rng: Random) -> Arguments:
        return draw_until(lambda: draw(rng), lambda drawn: LEAST_SECONDS < seconds(drawn) < most)

    return sample


def _multiple(rng: Random, of: int, low: int, high: int) -> int:
    """A multiple whose logarithm is about uniform."""
    return of * max(1, round(log_uniform(rng, low, high) / of))


# Residual CNNs.

RESIDUAL: Arguments = {
    "batch": 8,
    "size": 32,
    "channels_in": 3,
    "widths": [16, 32, 64],
    "blocks": 2,
    "sort": "basic",
    "norm": "batch",
    "squeeze": False,
    "activation": "relu",
    "classes": 10,
}


def _draw_residual(rng: Random) -> Arguments:
    width, stages = _multiple(rng, 8, 8, 96), rng.randint(1, 4)
    return {
        "batch": log_uniform(rng, 2, 32),
        "size": rng.choice([16, 24, 32, 48, 64, 96]),
        "channels_in": 3,
        "widths": [width << stage for stage in range(stages)],
        "blocks": rng.randint(1, 3),
        "sort": rng.choice(["basic", "bottleneck", "inverted"]),
        "norm": rng.choice(["batch", "batch", "group"]),
        "squeeze": rng.random() < 0.25,
        "activation": rng.choice(["relu", "relu", "silu", "gelu"]),
        "classes": rng.choice([2, 10, 100]),
    }


def residual_seconds(drawn: Arguments) -> float:
    flops = values = 0.0
    factor = {"basic": 18, "bottleneck": 1.2, "inverted": 9}[drawn["sort"]]
    planes = {"basic": 8, "bottleneck": 8, "inverted": 40}[drawn["sort"]]
    for stage, width in enumerate(drawn["widths"]):
        places = drawn["batch"] * drawn["blocks"] * (drawn["size"] / 2**stage) ** 2
        flops += 6 * places * factor * width**2
        values += planes * places * width
    return _seconds(8 * drawn["blocks"] * len(drawn["widths"]), flops, values)


# Encoder-decoders.

ENCODER_DECODER: Arguments = {
    "batch": 2,
    "dimensions": 2,
    "size": 32,
    "channels_in": 3,
    "width": 16,
    "depth": 2,
    "norm": "group",
    "up": "transposed",
    "attention": True,
    "classes": 4,
}


def _draw_encoder_decoder(rng: Random) -> Arguments:
    dimensions, depth = rng.choice([1, 2, 2, 2, 3]), rng.randint(1, 3)
    sizes = {1: (64, 1024), 2: (16, 96), 3: (8, 24)}[dimensions]
    return {
        "batch": log_uniform(rng, 2, 16),
        "dimensions": dimensions,
        "size": _multiple(rng, 2**depth, *sizes),
        "channels_in": rng.choice([1, 3]),
        "width": _multiple(rng, 4, 8, 64),
        "depth": depth,
        "norm": rng.choice(["group", "batch"]),
        "up": rng.choice(["transposed", "nearest", "linear"]),
        "attention": rng.random() < 0.4,
        "classes": rng.choice([1, 4, 20]),
    }


def encoder_decoder_seconds(drawn: Arguments) -> float:
    dimensions, flops, values = drawn["dimensions"], 0.0, 0.0
    for level in range(drawn["depth"] + 1):
        places = drawn["batch"] * (drawn["size"] / 2**level) ** dimensions
        width = drawn["width"] * 2**level
        flops += 6 * places * 3**dimensions * 6 * width**2
        values += 30 * places * width
    bottom = (drawn["size"] / 2 ** drawn["depth"]) ** dimensions
    if drawn["attention"]:
        flops += 12 * drawn["batch"] * bottom**2 * drawn["width"] * 2 ** drawn["depth"]
        values += 8 * drawn["batch"] * bottom**2
    return _seconds(12 * drawn["depth"], flops, values)


# Decoders of tokens, as written by hand.

DECODER: Arguments = {
    "batch": 2,
    "sequence": 64,
    "layers": 2,
    "width": 128,
    "heads": 4,
    "ff": 256,
    "fused": True,
    "vocabulary": 1000,
}


def _draw_decoder(rng: Random) -> Arguments:
    heads = rng.choice([2, 4, 8])
    width = _multiple(rng, 8 * heads, 32, 512)
    return {
        "batch": log_uniform(rng, 1, 8),
        "sequence": _multiple(rng, 8, 16, 256),
        "layers": rng.randint(1, 6),
        "width": width,
        "heads": heads,
        "ff": rng.choice([2, 3, 4]) * width,
        "fused": rng.random() < 0.5,
        "vocabulary": rng.choice([100, 1000, 8000, 30000]),
    }


def decoder_seconds(drawn: Arguments) -> float:
    tokens, width = drawn["batch"] * drawn["sequence"], drawn["width"]
    each = 4 * width**2 + 3 * width * drawn["ff"] + 2 * drawn["sequence"] * width
    flops = 6 * tokens * (drawn["layers"] * each + width * drawn["vocabulary"])
    scores = 0 if drawn["fused"] else 6 * drawn["heads"] * tokens * drawn["sequence"]
    values = drawn["layers"] * (60 * tokens * width + scores) + 3 * tokens * drawn["vocabulary"]
    return _seconds(16 * drawn["layers"], flops, values + 2 * width * drawn["vocabulary"])


# MLPs, mixers and tables of categories.

MLP: Arguments = {
    "batch": 32,
    "tables": [],
    "bag": 0,
    "tokens": 0,
    "width": 128,
    "depth": 3,
    "norm": "batch",
    "activation": "relu",
    "dropout": 0.1,
    "outputs": 10,
}


def _draw_mlp(rng: Random) -> Arguments:
    reads = rng.choice(["numbers", "tables", "tokens"])
    tables = [log_uniform(rng, 10, 50_000) for _ in range(log_uniform(rng, 1, 24))] if reads == "tables" else []
    return {
        "batch": log_uniform(rng, 2, 256),
        "tables": tables,
        "bag": rng.choice([0, log_uniform(rng, 1, 16)]) if tables else 0,
        "tokens": log_uniform(rng, 8, 256) if reads == "tokens" else 0,
        "width": log_uniform(rng, 8, 128 if tables else 1024),
        "depth": rng.randint(1, 6),
        "norm": rng.choice(["none", "batch", "layer"]),
        "activation": rng.choice(["relu", "gelu", "tanh"]),
        "dropout": rng.choice([0.0, 0.1]),
        "outputs": rng.choice([1, 10, 100]),
    }


def mlp_seconds(drawn: Arguments) -> float:
    batch, width, tokens, depth = drawn["batch"], drawn["width"], drawn["tokens"], drawn["depth"]
    if tokens:
        flops = 6 * batch * depth * 4 * tokens * width * (tokens + width)
        return _seconds(8 * depth, flops, 40 * batch * depth * tokens * width)
    first, rows = len(drawn["tables"]) or 1, sum(drawn["tables"])
    parameters = (first + depth) * width**2
    layers = 3 * depth + len(drawn["tables"])
    return _seconds(layers, 6 * batch * parameters, 3 * (parameters + rows * width) + 10 * batch * width * depth)


# Answers at every step of a sequence.

SEQUENCE: Arguments = {
    "batch": 8,
    "sequence": 32,
    "cell": "lstm",
    "width": 128,
    "layers": 2,
    "both_ways": True,
    "dropout": 0.1,
    "vocabulary": 1000,
    "outputs": 10,
}


def _draw_sequence(rng: Random) -> Arguments:
    cell = rng.choice(["lstm", "gru", "cell", "decay"])
    loops = cell in ("cell", "decay")
    return {
        "batch": log_uniform(rng, 1, 32),
        "sequence": log_uniform(rng, 4, 32 if loops else 64),
        "cell": cell,
        "width": log_uniform(rng, 8, 256),
        "layers": rng.randint(1, 2 if loops else 3),
        "both_ways": not loops and rng.random() < 0.5,
        "dropout": rng.choice([0.0, 0.1]),
        "vocabulary": rng.choice([100, 1000, 8000]),
        "outputs": rng.choice([2, 10, 100]),
    }


def sequence_seconds(drawn: Arguments) -> float:
    batch, width, steps = drawn["batch"], drawn["width"], drawn["sequence"] * drawn["layers"]
    flops, values = 6 * batch * steps * 8 * width**2 * (1 + 2 * drawn["both_ways"]), 30.0 * batch * steps * width
    if drawn["cell"] == "decay":  # each step's gradient is written into zeros as large as the whole sequence
        values *= 4 + drawn["sequence"]
    return _seconds(steps, flops, values + 3 * width * drawn["vocabulary"])


# Graphs: gather and scatter.

GRAPH: Arguments = {
    "batch": 256,
    "degree": 4,
    "features": 32,
    "hidden": 64,
    "layers": 2,
    "reduce": "index",
    "ordered": "none",
    "outputs": 10,
}


def _draw_graph(rng: Random) -> Arguments:
    return {
        "batch": log_uniform(rng, 32, 4096),
        "degree": rng.randint(1, 16),
        "features": log_uniform(rng, 4, 128),
        "hidden": log_uniform(rng, 8, 256),
        "layers": rng.randint(1, 3),
        "reduce": rng.choice(["index", "scatter"]),
        "ordered": rng.choice(["none", "sort", "sum", "largest"]),
        "outputs": rng.choice([2, 10, 50]),
    }


def graph_seconds(drawn: Arguments) -> float:
    nodes, hidden, layers = drawn["batch"], drawn["hidden"], drawn["layers"]
    flops = 12 * nodes * hidden * (drawn["features"] + (layers - 1) * hidden)
    ordered = 20 if drawn["ordered"] == "sort" else 0
    return _seconds(6 * layers, flops, nodes * hidden * (6 * drawn["degree"] * layers + 8 * layers + ordered))


# Lone layers.

LONE: Arguments = {"batch": 4, "layer": "conv", "places": 28, "before": 128, "after": 128, "kernel": 3, "stride": 1}
LONE_LAYERS = {  # the least and the most places, and channels
    "conv": ((2, 112), (32, 512)),
    "pointwise": ((2, 112), (32, 1280)),
    "depthwise": ((2, 112), (32, 1024)),
    "grouped": ((2, 112), (32, 512)),
    "transposed": ((7, 56), (32, 512)),
    "norm": ((7, 112), (32, 512)),
    "linear": ((1, 512), (256, 4096)),
    "layer_norm": ((16, 512), (128, 2048)),
    "scaled": ((16, 512), (128, 2048)),
    "recurrent": ((8, 128), (128, 768)),
    "gated": ((8, 128), (128, 768)),
    "attention": ((64, 512), (128, 1024)),
    "products": ((16, 2048), (8, 64)),
    "embedding": ((16, 256), (64, 768)),
    "bag": ((1, 32), (8, 256)),
}
IMAGES = ("conv", "pointwise", "depthwise", "grouped", "transposed", "norm")
TABLES = ("embedding", "bag")


def _draw_lone(rng: Random, layer: str) -> Arguments:
    places, channels = LONE_LAYERS[layer]
    drawn = {
        "batch": log_uniform(rng, 1, 16),
        "layer": layer,
        "places": log_uniform(rng, *places),
        "before": _multiple(rng, {"attention": 64, "grouped": 32}.get(layer, 8), *channels),
        "after": log_uniform(rng, 5000, 50_000) if layer in TABLES else _multiple(rng, 8, *channels),
        "kernel": rng.choice([2, 4] if layer == "transposed" else [3, 3, 4, 5, 7]),
        "stride": rng.choice([1, 1, 2]),
    }
    few = {"conv": ("before", [1, 3]), "transposed": ("after", [1, 3])}.get(layer)  # where images begin and end
    if few and rng.random() < 0.25:
        drawn[few[0]] = rng.choice(few[1])
    after = {"grouped": [4, 8, 16, 32], "products": [2, 4, 8, 16, 32]}.get(layer)  # of a group, of a matrix
    return {**drawn, "after": rng.choice(after)} if after else drawn


def lone_seconds(drawn: Arguments) -> float:
    layer, places, before, after = drawn["layer"], drawn["places"], drawn["before"], drawn["after"]
    positions = drawn["batch"] * places * (places if layer in IMAGES else after if layer == "products" else 1)
    window = drawn["kernel"] ** 2
    each = {
        "conv": window * before * after,
        "pointwise": before * after,
        "depthwise": window * before,
        "grouped": window * before * after,
        "transposed": window * before * after,
        "linear": before * after,
        "recurrent": 8 * before**2,
        "gated": 6 * before**2,
        "attention": 4 * before**2 + 2 * places * before,
        "products": after * before,
    }.get(layer, 0)
    width = before * (4 if layer == "depthwise" else 2)
    rows = after * before if layer in TABLES else 0
    layers = 4 + (places if layer in ("recurrent", "gated") else 0)
    return _seconds(layers, 6 * positions * each, positions * (width + 2 * min(after, 4096)) + 3 * rows)


def sample_lone(rng: Random, layer: str) -> Arguments:
    """A layer of `LONE_LAYERS`, of any size."""
    return _sampler(lambda drawing: _draw_lone(drawing, layer), lone_seconds, MOST_LONE_SECONDS)(rng)


SORTS: dict[str, Space] = {
    space.name: space
    for space in (
        Space(
            "residual",
            "any residual CNN",
            "ampere.models.residual:build",
            RESIDUAL,
            _sampler(_draw_residual, residual_seconds),
        ),
        Space(
            "encoder_decoder",
            "any encoder-decoder",
            "ampere.models.encoder_decoder:build",
            ENCODER_DECODER,
            _sampler(_draw_encoder_decoder, encoder_decoder_seconds),
        ),
        Space(
            "decoder",
            "any decoder of tokens",
            "ampere.models.decoder:build",
            DECODER,
            _sampler(_draw_decoder, decoder_seconds),
        ),
        Space(
            "sequence",
            "any network that answers at every step",
            "ampere.models.sequence:build",
            SEQUENCE,
            _sampler(_draw_sequence, sequence_seconds),
        ),
        Space("mlp", "any MLP or mixer", "ampere.models.mlp:build", MLP, _sampler(_draw_mlp, mlp_seconds)),
        Space("graph", "any graph network", "ampere.models.graph:build", GRAPH, _sampler(_draw_graph, graph_seconds)),
        Space(
            "lone",
            "any layer alone",
            "ampere.models.lone:build",
            LONE,
            lambda rng: sample_lone(rng, rng.choice([*LONE_LAYERS])),
        ),
    )
}

# How often each is drawn for the profile of a device. Kinds that several of them have are learnt from all of them.
SHARES = {
    "cnn": 2,
    "residual": 3,
    "encoder_decoder": 2,
    "transformers": 2,
    "decoder": 2,
    "recurrent": 1,
    "sequence": 2,
    "mlp": 2,
    "graph": 1,
    "lone": 4,
}
EVERY_SORT: dict[str, Space] = {name: {**GENERAL, **SORTS}[name] for name in SHARES}
