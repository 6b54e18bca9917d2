"""Small networks that any worker can be asked to train: linear layers, as they are described in requests."""

from __future__ import annotations

from typing import Any

SMALL, LARGE = (16, 8), (512, 512)
QUICK = {"iterations": 6, "warmup": 2}


def linear(channels_in: int, channels_out: int, rows: int = 32, **more: Any) -> dict[str, Any]:
    return {
        "kind": "linear",
        "config": {"lead": [rows], "bias": True},
        "channels": [channels_in, channels_out],
        "tail": [],
        "name": "",
        "trainable": True,
        "input_grad": False,
        **more,
    }


def subject(*layers: dict[str, Any], rows: int = 32) -> dict[str, Any]:
    return {"layers": {"format": 1, "name": "", "batch": rows, "layers": list(layers), "notes": []}}


def perceptron(rows: int = 32) -> dict[str, Any]:
    """Two layers with a rectifier between them."""
    relu = [["elementwise", 24.0 * rows, 24.0 * rows, True]]
    return subject(linear(16, 24, rows, tail=relu), linear(24, 10, rows, input_grad=True), rows=rows)
