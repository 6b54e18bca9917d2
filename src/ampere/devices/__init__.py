"""Devices: where training runs. A device has workers, or stand-ins for them."""

from .device import Block, VariantDied, VariantFailed, Worker, Yardstick
from .local import LocalWorker
from .opening import LOCAL, Device, allocator_on, check_same_meter

__all__ = [
    "LOCAL",
    "Block",
    "Device",
    "LocalWorker",
    "VariantDied",
    "VariantFailed",
    "Worker",
    "Yardstick",
    "allocator_on",
    "check_same_meter",
]
