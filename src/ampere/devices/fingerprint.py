"""Which device this is: what decides its costs, and nothing that names its owner."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

HARDWARE = ("cpu", "cores", "system", "machine")
SOFTWARE = ("release", "python", "torch", "runtimes")
SETTINGS = ("governor", "power_source")  # may change while it is the same device


def fingerprint(hello: Mapping[str, Any]) -> dict[str, Any]:
    """`id` stays the same when only software is updated."""
    hardware = {field: hello.get(field) for field in HARDWARE}
    if "worker" in hello:  # not ours: what it says of a machine is not comparable with what ours says
        hardware["worker"] = hello["worker"]
    digest = hashlib.sha256(json.dumps(hardware, sort_keys=True).encode()).hexdigest()
    told = {field: hello.get(field) for field in (*SOFTWARE, *SETTINGS) if field in SOFTWARE or hello.get(field)}
    return {"id": digest[:16], **hardware, **told}
