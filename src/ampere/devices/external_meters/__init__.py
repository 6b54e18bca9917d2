"""Meters that write a log, read as it grows or afterwards, and aligned with a device's windows by its load."""

from .bench import PHONE, LoggedMeter, logged_meter
from .deferred import NAME as DEFERRED
from .deferred import meter_for
from .log import asked_as

__all__ = ["DEFERRED", "PHONE", "LoggedMeter", "asked_as", "logged_meter", "meter_for"]
