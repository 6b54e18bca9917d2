"""Checks that a worker, written by anyone in any language, follows docs/reference/protocol.md."""

from .outcome import Broken, Check, NotOffered, Outcome
from .running import CHECKS, check_worker

__all__ = ["CHECKS", "Broken", "Check", "NotOffered", "Outcome", "check_worker"]
