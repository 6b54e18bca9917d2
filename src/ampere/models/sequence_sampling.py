"""Random transformers and recurrent networks."""

from random import Random

from .space import Arguments, draw_until, log_uniform

MOST_SECONDS = 0.06

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
    return draw_until(lambda: _draw_transformer(rng), lambda drawn: transformer_seconds(drawn) < MOST_SECONDS)


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
    }


def transformer_seconds(drawn: Arguments) -> float:
    width, tokens = drawn["width"], drawn["batch"] * drawn["sequence"]
    per_token = 4 * width**2 + 2 * width * drawn["ff"] + 2 * drawn["sequence"] * width
    head = width * drawn["outputs"] * (tokens if drawn["causal"] else drawn["batch"])
    return float(7e-4 * drawn["layers"] + 6 * (tokens * drawn["layers"] * per_token + head) / 4e10)


def sample_recurrent(rng: Random) -> Arguments:
    return draw_until(lambda: _draw_recurrent(rng), lambda drawn: recurrent_seconds(drawn) < MOST_SECONDS)


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
