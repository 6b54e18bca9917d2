"""Phones at the end of adb: their battery as the meter of a worker that runs on them."""

from .meter import PhoneMeter
from .phone import phones_found

__all__ = ["PhoneMeter", "phones_found"]
