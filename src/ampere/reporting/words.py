"""Plain words for layer kinds, configurations, purposes, methods, flags and where joules come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ampere.baselines.answers import BY_THE_CLOCK
from ampere.core import Layer, Meter, Network, TrainingSetup, units
from ampere.core.kinds import GROUPS, words

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
    "kernels": "kernels (as nn-Meter)",
    "roofline": "roofline",
    "parameters": "parameter count",
    "layers": "layer count",
}
FLAGS = {
    "loaded": "Other programs held the processor, so the step waited: close them while profiling.",
    "noisy": "The rounds of one measurement differ by more than a quarter: let the device settle, or profile longer.",
    "short": "Fewer iterations fitted into the window than planned: a slower device needs more seconds.",
    "nonfinite_loss": "The loss became infinite or NaN; time and energy still count.",
    "not_isolated": "It was trained in a process that had trained others before: this runtime cannot be forked.",
    "slow_compile": "Compiling it took more than half a minute, which no figure of training includes.",
    "throttled": "The device lowered its clock because it was hot: cool it, or let it rest.",
}


def kind_name(name: str) -> str:
    return words(name) if name in GROUPS else "step overhead" if name == "step" else name.replace("_", " ")


def method_name(name: str) -> str:
    plain = name.removesuffix(BY_THE_CLOCK)
    return METHODS.get(plain, plain.replace("_", " ")) + (", by the clock" if plain != name else "")


def flag_meaning(name: str) -> str:
    return FLAGS.get(name, "A warning that the device attached to the measurement; it counts with more noise.")


def configuration(layer: Layer) -> str:
    """A layer's configuration without its channels: `3x3, on 14x14, batch 10`."""
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


def network_name(network_: Network) -> str:
    """A network's name, or its channels where it has none."""
    channels = [f"{x.channels_in}→{x.channels_out}" for x in network_.layers[:6]]
    more = " …" if len(network_.layers) > 6 else ""
    return network_.name or " ".join(channels) + more


def _is_size(value: Any) -> bool:
    whole = value if isinstance(value, tuple) else (value,)
    return all(isinstance(v, int) and not isinstance(v, bool) for v in whole)


def _times(value: Any) -> str:
    return TIMES.join(map(str, value)) if isinstance(value, tuple) else str(value)


def joules_origin(meter: Meter) -> str:
    """Whether joules are measured, modelled or simulated."""
    how = "simulated" if meter.simulated else "measured" if meter.measured else "modelled"
    return f"replayed {how}" if meter.replayed else how


def joules_sentence(meter: Meter) -> str:
    """Where joules come from, to follow `joules`."""
    how = "measured by"
    if not meter.measured:
        how = "modelled, not measured, by"
    if meter.simulated:
        how = "simulated, not measured on any device, by"
    replayed = "replayed from a recording, not read now: " if meter.replayed else ""
    scope = f": {meter.scope}" if meter.scope else ""
    origin = f", {meter.origin}, within a factor of {meter.factor:.3g} either way" if meter.origin else ""
    return f"{replayed}{how} {meter.name}{scope}{origin}"


def joules_note(meter: Meter) -> str:
    """Where joules come from, short enough to stand under every chart."""
    scope = f", {meter.scope}" if meter.scope else ""
    return f"{joules_origin(meter).capitalize()} joules ({meter.name}{scope})."


def setup_words(setup: TrainingSetup, batches: Mapping[str, int]) -> str:
    """How training is done: `torch, sgd, float32, 1 thread, batch 10`."""
    threads = units.counted(setup.threads, "thread") if setup.on == "cpu" else f"on {setup.on}"
    if len(set(batches.values())) == 1:
        batch = f", batch {next(iter(batches.values()))}"
    else:
        batch = "".join(f", batch {size} ({name})" for name, size in batches.items())
    return f"{setup.runtime}, {setup.optimizer}, {setup.dtype}, {threads}{batch}"
