"""The paper's six families: the original network of each, and how the paper's evaluation samples around it."""

from random import Random

from .space import Arguments, Space, widths_up_to

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
