"""Meters that write a log: read as it grows, and aligned with a device's windows by its load."""

from .outside import PHONE, LoggedMeter, logged_meter

__all__ = ["PHONE", "LoggedMeter", "logged_meter"]
