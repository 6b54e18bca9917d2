"""Words of people for kinds, configurations, purposes, methods and flags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ampere.core import Layer, Network
from ampere.core.kinds import GROUPS, words
from ampere.validation.methods import BY_THE_CLOCK

TIMES = "\N{MULTIPLICATION SIGN}"
PURPOSES = {
    "network": "whole networks",
    "variant": "pieces of two or three layers",
    "layer": "single layers",
    "opaque": "unknown modules",
    "run": "training runs",
    "stage": "stages of single layers",
    "kernel": "single kernels",
}
METHODS = {
    "additive": "Ampere",
    "sequential": "sequential (the paper's)",
    "physics": "least squares on work",
    "flops": "FLOPs",
    "flops_intercept": "FLOPs and a constant",
    "neuralpower": "NeuralPower",
    "kernels": "kernels (nn-Meter's way)",
    "roofline": "roofline",
    "parameters": "parameter count",
    "layers": "layer count",
}
FLAGS = {
    "loaded": "Other programs held the processor, so the step waited: close them while profiling.",
    "noisy": "The rounds of one measurement differ by more than a quarter: let the device settle, or profile longer.",
    "short": "Fewer iterations fitted into the window than asked for: a slower device needs more seconds.",
    "nonfinite_loss": "The loss became infinite or not a number; time and energy still count.",
    "not_isolated": "It was trained in a process that had trained others before: this runtime cannot be forked.",
    "slow_compile": "Compiling it took longer than half a minute, which is in no figure of training.",
    "throttled": "The device lowered its clock because it was hot: cool it, or let it rest.",
}


def kind(name: str) -> str:
    return words(name) if name in GROUPS else "step overhead" if name == "step" else name.replace("_", " ")


def method(name: str) -> str:
    plain = name.removesuffix(BY_THE_CLOCK)
    return METHODS.get(plain, plain.replace("_", " ")) + (", by the clock" if plain != name else "")


def flag(name: str) -> str:
    return FLAGS.get(name, "A doubt that the device attached to the measurement; it counts with more noise.")


def configuration(layer: Layer) -> str:
    """`3x3, on 14x14, batch 10`: what is the same all over a layer's surface."""
    config: Mapping[str, Any] = layer.config
    if "kernel" in config:
        strided = [f"stride {_times(config['stride'])}"] if any(s != 1 for s in config["stride"]) else []
        return ", ".join(
            [_times(config["kernel"]), *strided, f"on {_times(config['size_in'])}", f"batch {config['batch']}"]
        )
    if "lead" in config:
        return f"{_times(config['lead'])} rows"
    shown = [f"{key.replace('_', ' ')} {_times(value)}" for key, value in config.items() if _is_size(value)]
    return ", ".join(shown)


def network(network_: Network) -> str:
    """Its name, or the channels that tell it from others."""
    channels = [f"{x.channels_in}→{x.channels_out}" for x in network_.layers[:6]]
    more = " …" if len(network_.layers) > 6 else ""
    return network_.name or " ".join(channels) + more


def _is_size(value: Any) -> bool:
    whole = value if isinstance(value, tuple) else (value,)
    return all(isinstance(v, int) and not isinstance(v, bool) for v in whole)


def _times(value: Any) -> str:
    return TIMES.join(map(str, value)) if isinstance(value, tuple) else str(value)
