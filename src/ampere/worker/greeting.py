"""The first request of a conversation: which version is spoken, how often the worker says that it is alive."""

from typing import Any, Callable, Dict, Optional

from .errors import WorkerError, bad_request
from .language import PROTOCOL, PROTOCOLS
from .machine import hello

QUICKEST_BEAT, SLOWEST_BEAT = 0.05, 3600.0  # seconds


def greeting(request: Dict[str, Any], beat_every: Callable[[Optional[float]], None]) -> Dict[str, Any]:
    version, beat_seconds = agreed(request.get("protocols", [PROTOCOL])), _beat_seconds(request)
    said = {**hello(request), "protocol": version, "factories": True, "beat_seconds": beat_seconds}
    beat_every(beat_seconds)
    return said


def agreed(offered: Any) -> int:
    """The newest version that both sides speak."""
    if not isinstance(offered, list) or not all(isinstance(version, int) for version in offered):
        raise bad_request(f"protocols is {offered!r}, but must be a list of whole numbers")
    shared = set(offered) & set(PROTOCOLS)
    if not shared:
        raise WorkerError("protocol", f"this worker speaks {_versions(PROTOCOLS)}, and was asked for {offered}")
    return max(shared)


def _versions(versions: Any) -> str:
    return "protocol " + " and ".join(map(str, versions))


def _beat_seconds(request: Dict[str, Any]) -> Optional[float]:
    seconds = request.get("beat_seconds")
    if seconds is None:
        return None
    if not isinstance(seconds, (int, float)) or not QUICKEST_BEAT <= seconds <= SLOWEST_BEAT:
        raise bad_request(f"beat_seconds is {seconds!r}, but must be from {QUICKEST_BEAT:g} to {SLOWEST_BEAT:g}")
    return float(seconds)
