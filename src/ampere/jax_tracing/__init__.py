"""A flax model becomes the Network that the same model in PyTorch would: from the equations of its jaxpr."""

from .trace import trace

__all__ = ["trace"]
