"""Meters that write a log: read as it grows or afterwards, and aligned with a device's windows by its load."""

from .later import NAME as LATER
from .later import meter_for
from .outside import PHONE, LoggedMeter, logged_meter
from .spec import asked_as

__all__ = ["LATER", "PHONE", "LoggedMeter", "asked_as", "logged_meter", "meter_for"]
