"""AlexNet, ResNet-18 and MobileNetV3-small of 64x64 pixels, estimated from single layers that are far smaller.

    python benchmarks/rapl_networks.py [--data FOLDER] [--rows 200] [--out benchmarks/results/rapl_networks.json]

Fitted to rows of convolutions, linear layers and pooling together; norms and activations were never measured alone and
are priced by the prior at the device's speed. Rows stop at 16 input and 64 output channels and 512 features, so nearly
every layer here is extrapolated. The networks have their thousand classes and one more linear layer to ten, as they
were measured.
"""

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from others_rows import CPUS, LAYERS, MISSING, default_folder, load, ours, print_row, split
from torch import nn

from ampere.baselines import METHODS, Evidence
from ampere.core import Network
from ampere.estimation.additive import Data
from ampere.models.resnet import basic
from ampere.tracing.trace import trace

BATCH, SIDE, CLASSES = 512, 64, 1000
RIVALS = ("physics", "flops_intercept")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=default_folder())
    parser.add_argument("--rows", type=int, default=200, help="of each layer kind")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/rapl_networks.json"))
    options = parser.parse_args()
    if not (options.data / "raptorlake-conv.csv").is_file():
        print(MISSING)
        return
    print_row("whole networks", ["measured J", "ours J", "+-", "ours", "physics", "FLOPs + const"])
    records = []
    for cpu in CPUS:
        seen = joined([split(load(options.data, cpu, kind), options.rows, 0)[0] for kind in LAYERS])
        model, known = ours(seen), Evidence(seen.networks, ("",) * len(seen), seen.costs)
        rivals = [METHODS[name].fit(known) for name in RIVALS]
        for name, build in NETWORKS.items():
            network = traced(nn.Sequential(build(), nn.Linear(CLASSES, 10)))
            answer, actual = model.answer(network), measured(options.data / f"{cpu}_{name}.json")
            said = [answer.seconds, *(float(rival((network,))[0]) for rival in rivals)]  # costs here are joules
            off = ["-"] * len(said) if actual is None else [f"{joules / actual - 1:+.0%}" for joules in said]
            shown = "wrapped" if actual is None else f"{actual:.1f}"
            print_row(f"{cpu[:10]} {name[:9]}", [shown, f"{said[0]:.1f}", f"{answer.stddev:.1f}", *off])
            figures = dict(zip(("ours", *RIVALS), said, strict=True))
            records.append({"cpu": cpu, "network": name, "joules": actual, "estimated_joules": figures})
    options.out.write_text(json.dumps({"rows_a_kind": options.rows, "networks": records}, indent=1))


def measured(file: Path) -> float | None:
    """Joules of a batch, the median of the epochs; None where the counter wrapped."""
    record = json.loads(file.read_text())
    epochs = np.array([record["forward_energy"], record["backward_energy"]])
    return float(np.median(epochs.sum(axis=0))) * 1e-6 if np.all(epochs > 0) else None


def joined(parts: list[Data]) -> Data:
    networks = tuple(network for part in parts for network in part.networks)
    columns = [np.concatenate([getattr(p, name) for p in parts]) for name in ("costs", "noise", "system")]
    shuffled = np.random.default_rng(0).permutation(len(networks))
    return Data(tuple(networks[i] for i in shuffled), *(column[shuffled] for column in columns))


def traced(model: nn.Module) -> Network:
    return trace(model, torch.zeros(BATCH, 3, SIDE, SIDE, device="meta"))


def alexnet() -> nn.Module:
    sizes = [(3, 64, 11, 4, 2), (64, 192, 5, 1, 2), (192, 384, 3, 1, 1), (384, 256, 3, 1, 1), (256, 256, 3, 1, 1)]
    modules: list[nn.Module] = []
    for place, size in enumerate(sizes):
        modules += [nn.Conv2d(*size), nn.ReLU()] + ([nn.MaxPool2d(3, 2)] if place in (0, 1, 4) else [])
    modules += [nn.AdaptiveAvgPool2d(6), nn.Flatten(), nn.Dropout(), nn.Linear(9216, 4096), nn.ReLU()]
    return nn.Sequential(*modules, nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, CLASSES))


def resnet18() -> nn.Module:
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    stages = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
    blocks = [block for before, after, s in stages for block in (basic(before, after, s), basic(after, after, 1))]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


class Bottleneck(nn.Module):
    """MobileNetV3's: widen, convolve each channel, squeeze and excite, narrow."""

    def __init__(self, before: int, wide: int, after: int, kernel: int, stride: int, excite: bool, hard: bool) -> None:
        super().__init__()
        act = nn.Hardswish if hard else nn.ReLU
        widen = [*conv_norm(before, wide, 1), act()] if wide != before else []
        self.wide = nn.Sequential(*widen, *conv_norm(wide, wide, kernel, stride, wide), act())
        squeezed = max(8, int(wide / 4 + 4) // 8 * 8)
        squeeze = [nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, squeezed, 1), nn.ReLU(), nn.Conv2d(squeezed, wide, 1)]
        self.gate = nn.Sequential(*squeeze, nn.Hardsigmoid()) if excite else None
        self.narrow = nn.Sequential(*conv_norm(wide, after, 1))
        self.skips = stride == 1 and before == after

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = self.wide(x)
        out: torch.Tensor = self.narrow(wide if self.gate is None else self.gate(wide) * wide)
        return out + x if self.skips else out


def conv_norm(before: int, after: int, kernel: int, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    conv = nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(after)]


MOBILENET = [  # before, wide, after, kernel, stride, excite, hard
    (16, 16, 16, 3, 2, True, False),
    (16, 72, 24, 3, 2, False, False),
    (24, 88, 24, 3, 1, False, False),
    (24, 96, 40, 5, 2, True, True),
    (40, 240, 40, 5, 1, True, True),
    (40, 240, 40, 5, 1, True, True),
    (40, 120, 48, 5, 1, True, True),
    (48, 144, 48, 5, 1, True, True),
    (48, 288, 96, 5, 2, True, True),
    (96, 576, 96, 5, 1, True, True),
    (96, 576, 96, 5, 1, True, True),
]


def mobilenet_v3_small() -> nn.Module:
    stem, last = [*conv_norm(3, 16, 3, 2), nn.Hardswish()], [*conv_norm(96, 576, 1), nn.Hardswish()]
    top = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(576, 1024), nn.Hardswish(), nn.Dropout(0.2)]
    return nn.Sequential(*stem, *(Bottleneck(*row) for row in MOBILENET), *last, *top, nn.Linear(1024, CLASSES))


NETWORKS = {"alexnet": alexnet, "resnet18": resnet18, "mobilenet_v3_small": mobilenet_v3_small}


if __name__ == "__main__":
    main()
