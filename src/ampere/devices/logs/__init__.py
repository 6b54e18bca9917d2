"""Meters that write a log: read as it grows or afterwards, and aligned with a device's windows by its load."""

from .later import NAME as LATER
from .outside import PHONE, LoggedMeter, logged_meter

__all__ = ["LATER", "PHONE", "LoggedMeter", "logged_meter"]
