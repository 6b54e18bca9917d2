"""What a device says of itself, for tests that need no more of it."""

from ampere.devices import Device
from ampere.devices.opening import Described


def described(spec: str) -> Described:
    with Device(spec) as device:
        return device.described
