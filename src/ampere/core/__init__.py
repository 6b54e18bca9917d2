"""Pure data that travels between host and device: standard library only, Python 3.8 and later."""

from ampere.core.kinds import KINDS, Work, work

from .layer import Layer, TrailingOp
from .measurement import Measurement, Meter
from .network import Network
from .setup import TrainingSetup

__all__ = ["KINDS", "Layer", "Measurement", "Meter", "Network", "TrailingOp", "TrainingSetup", "Work", "work"]
