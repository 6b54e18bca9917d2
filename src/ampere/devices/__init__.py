"""Devices: a device is a way to start a worker, or to stand in for one."""

from .device import VariantDied, VariantFailed, Worker, Yardstick
from .local import LocalWorker
from .opening import allocator_on, check_same_meter, describe, opened, setup_on

__all__ = [
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
