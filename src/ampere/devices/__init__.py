"""Devices: a device is a way to start a worker, or to stand in for one."""

from .device import Block, VariantDied, VariantFailed, Worker, Yardstick
from .local import LocalWorker
from .opening import allocator_on, check_same_meter, describe, opened, setup_on

__all__ = [
    "Block",
    "LocalWorker",
    "VariantDied",
    "VariantFailed",
    "Worker",
    "Yardstick",
    "allocator_on",
    "check_same_meter",
    "describe",
    "opened",
    "setup_on",
]
