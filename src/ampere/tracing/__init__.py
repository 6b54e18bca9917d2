"""A torch model becomes a Network: its layers in the order in which they run, without training anything."""

from .inputs import parse_input
from .trace import trace, trace_own

__all__ = ["parse_input", "trace", "trace_own"]
