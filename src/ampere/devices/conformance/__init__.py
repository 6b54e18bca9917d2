"""Checks that a worker, written in any language, follows docs/reference/protocol.md; and a lying one, to test hosts."""

from .lying import LIES, LyingWorker
from .outcome import Broken, Check, NotOffered, Outcome
from .running import CHECKS, check_worker

__all__ = ["CHECKS", "LIES", "Broken", "Check", "LyingWorker", "NotOffered", "Outcome", "check_worker"]
