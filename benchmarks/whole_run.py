"""Whole runs, estimated before and then really run: three epochs of scikit-learn's digits, with loading and evaluation.

    python benchmarks/whole_run.py                      four models, two minutes of training each: about 15 minutes
    python benchmarks/whole_run.py --seconds 30 mlp     one of them, shorter
    python benchmarks/whole_run.py --overhead           what a budget and a scrape of its metrics cost, in seconds

    estimate   `ampere.estimate(..., epochs=3, data=..., evaluate_every="1epoch", current_speed=True)`
    truth      `--train NAME` of this file in a fresh process: a plain loop that knows nothing of Ampere. Its CPU
               seconds times the same watts, and its time by the clock without starting and importing

An epoch is as many randomly shifted digits as take a third of the seconds. The machine should be quiet: its speed is
read before each run, and what changes during a run is in the error. Each row is on disk before the next model begins;
delete benchmarks/results/whole_run.json to begin again.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

BATCH, CLASSES, EPOCHS = 32, 10, 3
EVALUATED = 359  # digits that nothing is learnt from
SAMPLES = "WHOLE_RUN_SAMPLES"  # of an epoch: the loader runs in processes of its own
BARS = {"joules": 0.06, "seconds": 0.08}  # the largest errors that are good enough
RESULTS = Path(__file__).parent / "results" / "whole_run.json"


# The models: functions that return one and its input.


def mlp() -> tuple[nn.Module, torch.Tensor]:
    layers = (nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, CLASSES))
    return nn.Sequential(*layers), torch.randn(BATCH, 1, 28, 28)


def cnn() -> tuple[nn.Module, torch.Tensor]:
    layers = (
        *(nn.Conv2d(1, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(24, 48, 3, padding=1), nn.BatchNorm2d(48), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(48 * 49, CLASSES)),
    )
    return nn.Sequential(*layers), torch.randn(BATCH, 1, 28, 28)


class Rows(nn.Module):
    """Reads an image row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(28, 96, batch_first=True), nn.Linear(96, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(images[:, 0])[0][:, -1])


def gru() -> tuple[nn.Module, torch.Tensor]:
    return Rows(), torch.randn(BATCH, 1, 28, 28)


class Patches(nn.Module):
    """Attention over patches of 7 x 7 pixels."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.embed = nn.Conv2d(1, width, 7, stride=7)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embed(images).flatten(2).transpose(1, 2)).mean(1))


def vit() -> tuple[nn.Module, torch.Tensor]:
    return Patches(), torch.randn(BATCH, 1, 28, 28)


MODELS = {"mlp": mlp, "cnn": cnn, "gru": gru, "vit": vit}


# The data.


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Images of 28 x 28 pixels, and which digits they are."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images = torch.tensor(pixels, dtype=torch.float32).reshape(-1, 1, 8, 8) / 8 - 1
    return nn.functional.interpolate(images, size=(28, 28)), torch.tensor(labels)


class Shifted:
    """So many batches of digits, each shifted by up to two pixels."""

    def __init__(self, images: torch.Tensor, labels: torch.Tensor, batches: int) -> None:
        self.images, self.labels, self.batches = images, labels, batches

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for _ in range(self.batches):
            chosen = torch.randint(len(self.labels), (BATCH,))
            x, y = (int(shift) for shift in torch.randint(-2, 3, (2,)))
            yield torch.roll(self.images[chosen], (x, y), (2, 3)), self.labels[chosen]


def loader() -> Shifted:
    images, labels = digits()
    return Shifted(images[EVALUATED:], labels[EVALUATED:], int(os.environ[SAMPLES]) // BATCH)


def train(name: str) -> None:
    """The run itself, as a script does it; one line of JSON with what it took and whether it learnt."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, _ = MODELS[name]()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    batches, (images, labels) = loader(), digits()
    correct = 0.0
    began, busy = time.perf_counter(), time.process_time()
    for _ in range(EPOCHS):
        model.train()
        for x, y in batches:
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            parts = zip(images[:EVALUATED].split(BATCH), labels[:EVALUATED].split(BATCH), strict=True)
            correct = sum(int((model(x).argmax(1) == y).sum()) for x, y in parts) / EVALUATED
    spent = {"busy_seconds": time.process_time() - busy, "seconds": time.perf_counter() - began}
    print(json.dumps({**spent, "correct": correct}))


# The comparison.


def compared(name: str, seconds: float, profile_seconds: float) -> dict[str, Any]:
    import ampere
    from ampere.meters import watts_in

    spec = f"{Path(__file__).resolve()}:{name}"
    step = ampere.estimate(spec, threads=1, seconds=profile_seconds, notice=print)
    samples = max(1, round(seconds / EPOCHS / step.seconds)) * BATCH
    os.environ[SAMPLES] = str(samples)
    data = f"{Path(__file__).resolve()}:loader"
    estimate = ampere.estimate(
        spec,
        threads=1,
        extend=False,
        current_speed=True,
        epochs=EPOCHS,
        samples=samples,
        data=data,
        evaluate_every="1epoch",
        evaluation_samples=EVALUATED,
        notice=print,
    )
    run = estimate.run
    assert run is not None
    command = [sys.executable, __file__, "--train", name]
    truth = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    watts = watts_in(estimate.meter.scope)
    if watts is None:
        raise SystemExit("joules of this machine are measured: run this with AMPERE_METER=cpu-time")
    joules = watts * truth["busy_seconds"]
    low, high = run.interval
    return {
        "model": name,
        "iterations": run.iterations,
        "joules": joules,
        "joules_estimated": run.joules,
        "joules_error": run.joules / joules - 1,
        "inside_interval": low <= joules <= high,
        "seconds": truth["seconds"],
        "seconds_estimated": run.seconds,
        "seconds_error": run.seconds / truth["seconds"] - 1,
        "correct": truth["correct"],
        "parts": [part.to_json() for part in run.parts],
    }


def line(row: dict[str, Any]) -> str:
    joules = f"{row['joules_estimated']:.4g} J estimated, {row['joules']:.4g} J ({row['joules_error']:+.1%})"
    times = f"{row['seconds_estimated']:.4g} s estimated, {row['seconds']:.4g} s ({row['seconds_error']:+.1%})"
    return f"{row['model']}: {joules}; {times}; {row['correct']:.0%} correct"


def judged(rows: list[dict[str, Any]]) -> str:
    found = []
    for what, bar in BARS.items():
        errors = [abs(row[f"{what}_error"]) for row in rows]
        found.append(
            f"{what}: {sum(e <= bar for e in errors)} of {len(rows)} within {bar:.0%}, at most {max(errors):.1%}"
        )
    inside = sum(row["inside_interval"] for row in rows)
    return f"{'; '.join(found)}; joules of {inside} inside their 90 % interval"


def overhead() -> None:
    """Seconds of a budget's step, and of one scrape of its metrics, which happens every 15 s or so."""
    from urllib.request import urlopen

    import ampere
    from ampere.integrations.metrics import serve_prometheus

    steps, scrapes = 20_000, 50
    with ampere.Budget(joules=1e9) as budget, serve_prometheus(budget, port=0) as port:
        began = time.perf_counter()
        for _ in range(steps):
            budget.step()
        each = (time.perf_counter() - began) / steps
        began = time.process_time()
        for _ in range(scrapes):
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                answer.read()
        scrape = (time.process_time() - began) / scrapes
    print(f"a step of the budget: {1e6 * each:.2f} us; a scrape: {1e3 * scrape:.2f} ms of CPU time")
    print(f"of a step of 1 ms: {each / 1e-3:.2%}; a scrape every 15 s: {scrape / 15:.4%} of the time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{', '.join(MODELS)} (default: all)")
    parser.add_argument("--seconds", type=float, default=120.0, help="of training, each (default 120)")
    parser.add_argument("--profile-seconds", type=float, default=20.0, help="of profiling, each (default 20)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="records: the same command goes on from there")
    parser.add_argument("--train", choices=MODELS, help=argparse.SUPPRESS)
    parser.add_argument("--overhead", action="store_true", help="what a budget and its metrics cost")
    options = parser.parse_args()
    if options.train:
        train(options.train)
    elif options.overhead:
        overhead()
    else:
        if unknown := [name for name in options.models if name not in MODELS]:
            parser.error(f"there is no model {unknown[0]}: choose from {', '.join(MODELS)}")
        rows = json.loads(options.out.read_text()) if options.out.exists() else []
        for name in options.models or MODELS:
            if name not in [row["model"] for row in rows]:
                rows.append(compared(name, options.seconds, options.profile_seconds))
                options.out.write_text(json.dumps(rows, indent=1) + "\n")
            print(line(next(row for row in rows if row["model"] == name)), flush=True)
        print(judged(rows))


if __name__ == "__main__":
    main()
