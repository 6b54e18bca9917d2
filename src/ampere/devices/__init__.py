"""Devices: a device is a way to start a worker, or to stand in for one."""

from .block import Block, Yardstick
from .device import Device, VariantDied, VariantFailed
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
