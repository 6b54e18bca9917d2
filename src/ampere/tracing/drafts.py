"""From a draft to a layer, once it is known whether a gradient reaches it."""

from __future__ import annotations

from dataclasses import replace

from ampere.network import Layer, work

from .record import Operation


def drafted(operation: Operation) -> Layer:
    draft = operation.draft
    assert draft is not None
    trainable, input_grad = draft.trainable and operation.backward, draft.input_grad and operation.backward
    channels = draft.channels_in, draft.channels_out
    return Layer(draft.kind, draft.config, *channels, trainable=trainable, input_grad=input_grad)


def with_parameters(layer: Layer, values: int, tensors: int) -> Layer:
    """Says in the layer's config how many parameters it has where the table would count others."""
    told = work(layer)
    if (told.parameters, told.parameter_tensors) == (values, tensors):
        return layer
    return replace(layer, config={**layer.config, "parameters": values, "parameter_tensors": tensors})
