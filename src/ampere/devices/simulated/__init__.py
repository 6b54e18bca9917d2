"""Devices without hardware: physically argued models of the paper's five, each of which knows its own truth."""

from .device import SimulatedWorker
from .parts import PARTS

__all__ = ["PARTS", "SimulatedWorker"]
