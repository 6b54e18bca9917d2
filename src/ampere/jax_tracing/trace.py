"""A flax model becomes a Network: its step is turned into equations, of which none is run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import jax
from flax import nnx

from ampere.errors import ModelError
from ampere.network import Layer, Network, TailOp

from .equations import Equation, Value
from .grouping import Grouping
from .layers import Layers
from .notes import notes_of
from .step import Step


def trace(model: nnx.Module, inputs: Any, *, name: str = "") -> Network:
    """The layers of one training step of `model` on `inputs`, in the order in which they run."""
    positional, named = ((), inputs) if isinstance(inputs, dict) else (tuple(inputs), {})
    step = Step(model, positional, named)
    forward = step.equations(step.run)
    backward: dict[str, list[Equation]] = defaultdict(list)
    for equation in step.equations(jax.grad(step.loss)):
        if equation.backward:
            backward[equation.path].append(equation)
    batch = next((int(x.shape[0]) for x in step.arrays if x.shape), 1)
    layers = Layers(batch, step.sizes, backward)
    groups = Grouping(forward, step.calls).found()
    built = layers.build(groups, step.calls)
    if not built:
        raise ModelError("the model computes nothing that could be trained")
    idle = sorted(set(step.sizes) - layers.counted)
    network = (*built[:-1], _with_loss(built[-1], step.output))
    return Network(network, batch, name, notes_of([group.path for group in groups], built, forward, backward, idle))


def _with_loss(last: Layer, output: Value) -> Layer:
    """Cross entropy of class scores, else a mean of squares: the loss that every runtime here trains with."""
    n = float(output.size)
    scores = len(output.shape) == 2 and output.shape[1] > 1
    loss = (
        (TailOp("reduce", n, n), TailOp("reduce", n + output.shape[0], 2.0))
        if scores
        else (TailOp("elementwise", n, n), TailOp("reduce", n, 1.0))
    )
    return replace(last, tail=(*last.tail, *loss))
