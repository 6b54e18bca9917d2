"""What this machine is, as a worker says it in the handshake."""

import os
import platform
from typing import Any, Dict, Optional

from ampere.core.errors import bad_request
from ampere.core.protocol import PROTOCOL
from ampere.meters import choose_meter, use_meter, watts_of
from ampere.meters.system_state import governor, power_source
from ampere.runtimes import installed

NEON = ("aarch64", "arm64", "armv7l", "armv8l")


def hello(request: Dict[str, Any]) -> Dict[str, Any]:
    runtimes = installed()
    use_meter(_meter_name(request))
    return {
        "protocol": PROTOCOL,
        "governor": governor(),
        "power_source": power_source(),
        "python": platform.python_version(),
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "cpu": cpu_model(),
        "cores": os.cpu_count() or 1,
        "vector_width": vector_width(),
        "torch": runtimes.get("torch"),
        "runtimes": runtimes,
        "meter": choose_meter(watts_of(request)).describe(),
    }


def _meter_name(request: Dict[str, Any]) -> Optional[str]:
    """The meter that the host names, which is then used for every block; None where it leaves the choice."""
    name = request.get("meter")
    if name is not None and not isinstance(name, str):
        raise bad_request(f"meter is {name!r}, but must be a name")
    return name


def cpu_model() -> str:
    return _cpuinfo("model name") or _cpuinfo("Model") or platform.processor() or platform.machine() or "unknown"


def vector_width() -> int:
    """Values of four bytes that a vector instruction takes at once, as far as the processor says."""
    flags = (_cpuinfo("flags") or "").split()
    return 16 if "avx512f" in flags else 8 if "avx2" in flags else 4 if platform.machine() in NEON else 8


def _cpuinfo(field: str) -> Optional[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            found = [line.split(":", 1)[1].strip() for line in lines if line.split(":")[0].strip() == field]
    except OSError:
        return None
    return found[0] if found else None
