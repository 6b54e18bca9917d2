"""Devices: where training runs. A device has workers, or stand-ins for them."""

from .device import VariantDied, VariantFailed, Worker, Yardstick
from .local import LocalWorker
from .opening import LOCAL, Device, allocator_on, check_same_meter

__all__ = [
    "LOCAL",
    "Device",
    "LocalWorker",
    "VariantDied",
    "VariantFailed",
    "Worker",
    "Yardstick",
    "allocator_on",
    "check_same_meter",
]
