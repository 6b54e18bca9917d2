"""Every counter of this device, read or not, and put to the test where that is asked for."""

from typing import Any, Dict

from ..errors import WorkerError
from .checking import check
from .choosing import Found, found_meters
from .meter import told_in_a_line


def counters(request: Dict[str, Any]) -> Dict[str, Any]:
    return {"counters": [_told(found, bool(request.get("check"))) for found in found_meters()]}


def _told(found: Found, put_to_the_test: bool) -> Dict[str, Any]:
    try:
        with told_in_a_line(found.name):
            said = found.meter.describe() if found.meter else {}
            checked = check(found.meter) if found.meter and put_to_the_test else None
    except WorkerError as problem:
        return {"name": found.name, "problem": str(problem), "check": None}
    return {"name": found.name, **said, "problem": found.problem, "check": checked}
