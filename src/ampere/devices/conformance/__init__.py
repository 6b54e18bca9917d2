"""Whether a worker keeps to docs/PROTOCOL.md, told check by check, whoever wrote it and in whatever language."""

from .outcome import Broken, Check, NotOffered, Outcome
from .running import CHECKS, check_worker

__all__ = ["CHECKS", "Broken", "Check", "NotOffered", "Outcome", "check_worker"]
