"""What was estimated before: an estimate that has moved out of its earlier interval is explained.

AMPERE_HOME/estimates/PROFILE.json     {fingerprint of the network: {joules, low, high, measurements, spaces, scope}}
"""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ampere.core import units
from ampere.core.errors import StorageError

if TYPE_CHECKING:
    from ampere.api import ProfiledEstimate

MOST_KEPT = 200  # networks of a profile


def explain_change(known: ProfiledEstimate) -> str:
    """One line where the estimate lies outside the interval given before, else ""; the new one is kept."""
    path = _path(known)
    if path is None:
        return ""
    kept = _read(path)
    key = _fingerprint(known)
    before = kept.pop(key, None)
    now = _record(known)
    if now != before:
        _write(path, {**dict(list(kept.items())[1 - MOST_KEPT :]), key: now})
    return _sentence(known, before) if before else ""


def _sentence(known: ProfiledEstimate, before: dict[str, Any]) -> str:
    joules = known.estimate.joules
    if before["low"] <= joules <= before["high"]:
        return ""
    low, high = units.joules(before["low"]), units.joules(before["high"])
    change = units.signed_percent(joules / before["joules"] - 1)
    return (
        f"{known.estimate.network or 'this network'} was estimated at {units.joules(before['joules'])} before "
        f"(90 %: {low} to {high}) and is {units.joules(joules)} now ({change}): {_reason(known, before)}"
    )


def _reason(known: ProfiledEstimate, before: dict[str, Any]) -> str:
    scope = known.estimate.meter.scope
    if before.get("scope", scope) != scope:
        return f"joules were those of {before['scope']} then, and are those of {scope} now"
    more = len(known.profile.observations) - before["measurements"]
    if more <= 0:
        return "the profile was made anew since then"
    added = [name for name in known.profile.spaces if name not in before["spaces"]]
    of = f" of {', '.join(added)}" if added else ""
    return f"the profile has {units.counted(more, 'more measurement')}{of} since then"


def _record(known: ProfiledEstimate) -> dict[str, Any]:
    low, high = known.estimate.interval
    return {
        "joules": known.estimate.joules,
        "low": low,
        "high": high,
        "measurements": len(known.profile.observations),
        "spaces": list(known.profile.spaces),
        "scope": known.estimate.meter.scope,
    }


def _fingerprint(known: ProfiledEstimate) -> str:
    """The same for the same layers, batch and training loop, whatever the network is called."""
    record = {**known.network.to_json(), "name": "", "notes": [], "allocator": known.estimate.allocator}
    return sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:32]


def _path(known: ProfiledEstimate) -> Path | None:
    from ampere.storage.places import home

    return home() / "estimates" / known.path.name if known.path else None


def _read(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        kept = json.loads(path.read_text())
        if isinstance(kept, dict) and all({*record} >= {"joules", "low", "high"} for record in kept.values()):
            return kept
    return {}


def _write(path: Path, kept: dict[str, Any]) -> None:
    """A place that cannot be written only means that nothing can be explained later."""
    from ampere.storage.files import write_whole

    with suppress(StorageError):
        write_whole(path, json.dumps(kept))
