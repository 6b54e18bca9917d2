"""Devices: a device is a way to start a worker, or to stand in for one."""

from .device import Block, Device, VariantDied, VariantFailed, Yardstick
from .local import LocalDevice
from .opening import allocator_on, check_same_meter, describe, opened, setup_on

__all__ = [
    "Block",
    "Device",
    "LocalDevice",
    "VariantDied",
    "VariantFailed",
    "Yardstick",
    "allocator_on",
    "check_same_meter",
    "describe",
    "opened",
    "setup_on",
]
