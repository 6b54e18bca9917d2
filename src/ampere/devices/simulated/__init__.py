"""Devices without hardware: physical models of the paper's five devices, whose true costs are known."""

from .device import SimulatedWorker
from .parts import PARTS

__all__ = ["PARTS", "SimulatedWorker"]
