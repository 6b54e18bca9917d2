"""What this machine is, as a worker says it in the handshake."""

import contextlib
import hashlib
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Optional, Tuple

from ampere.core.errors import bad_request
from ampere.core.protocol import OWN_THREADS_VARIABLE, PROTOCOL, THREAD_VARIABLES
from ampere.meters import unusable_counters, use_meter
from ampere.meters.system_state import governor, power_source
from ampere.runtimes import installed

from .accelerators import described
from .memory import available_bytes

MOST_THREADS = 4096
NEON = ("aarch64", "arm64", "armv7l", "armv8l")


def hello(request: Dict[str, Any]) -> Dict[str, Any]:
    runtimes = installed()
    use_meter(_meter_name(request))
    accelerator, meter = described(request)
    return {
        "protocol": PROTOCOL,
        "governor": governor(),
        "power_source": power_source(),
        "python": platform.python_version(),
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "machine_id": machine_id(),
        "cpu": cpu_model(),
        "cores": os.cpu_count() or 1,
        "threads": named_threads() or default_threads(),
        "vector_width": vector_width(),
        "torch": runtimes.get("torch"),
        "runtimes": runtimes,
        "meter": meter,
        **accelerator,
        "unusable_counters": unusable_counters(),
        "available_bytes": (accelerator.get("accelerator") or {}).get("memory_bytes") or available_bytes(),
    }


def _meter_name(request: Dict[str, Any]) -> Optional[str]:
    """The meter that the host names, which is then used for every block; None where it leaves the choice."""
    name = request.get("meter")
    if name is not None and not isinstance(name, str):
        raise bad_request(f"meter is {name!r}, but must be a name")
    return name


SERIAL_NUMBER = "proc/device-tree/serial-number"  # of a board, also where its system was copied from another's
MACHINE_IDS = ("etc/machine-id", "var/lib/dbus/machine-id")
IN_CONTAINER = (".dockerenv", "run/.containerenv", "run/systemd/container")  # whose machine-id is the image's


def machine_id(root: str = "/") -> Optional[str]:
    """Digits that differ between two machines of one model; None where nothing names the machine.

    They are a short digest: neither a serial number nor a name can be found from them.
    """
    said = os.environ.get("AMPERE_MACHINE_ID") or _machine_name(Path(root))
    return hashlib.sha256(f"ampere {said}".encode()).hexdigest()[:8] if said else None


def _machine_name(root: Path) -> Optional[str]:
    with contextlib.suppress(OSError, UnicodeDecodeError, subprocess.SubprocessError):
        if sys.platform == "win32":
            import winreg

            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"SOFTWARE\Microsoft\Cryptography") as key:
                return str(winreg.QueryValueEx(key, "MachineGuid")[0])
        if sys.platform == "darwin":
            command = ["ioreg", "-rd1", "-c", "IOPlatformExpertDevice"]
            shown = subprocess.run(command, stdout=subprocess.PIPE, timeout=10, check=True).stdout.decode()
            found = re.search(r'"IOPlatformUUID" = "([^"]+)"', shown)
            return found.group(1) if found else None
    contained = any((root / sign).exists() for sign in IN_CONTAINER)
    for file in (SERIAL_NUMBER, *(() if contained else MACHINE_IDS)):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = (root / file).read_text().strip(" \0\n")
            if len(text) >= 8 and len(set(text)) > 2 and text != "uninitialized":  # not 0000000000000000
                return text
    return None


def cpu_model() -> str:
    return _cpuinfo("model name") or _cpuinfo("Model") or platform.processor() or platform.machine() or "unknown"


def named_threads() -> Optional[int]:
    """The number of threads that the user's environment gives to PyTorch; None where it names none."""
    own = os.environ.get(OWN_THREADS_VARIABLE)  # of a worker whose variables the host has set
    values = [own] if own is not None else [os.environ.get(name, "") for name in THREAD_VARIABLES]
    numbers = [value.partition(",")[0].strip() for value in values]
    return next((int(number) for number in numbers if number.isdecimal() and 0 < int(number) <= MOST_THREADS), None)


def default_threads(root: str = "/") -> int:
    """Threads that PyTorch trains with unless a number is set: one for each physical core that it may use.

    Found without loading it. Two logical processors of one core count once, as in the library of its products.
    """
    try:
        allowed = os.sched_getaffinity(0)
    except AttributeError:  # not Linux
        return _performance_cores() or os.cpu_count() or 1
    folder = Path(root) / "sys/devices/system/cpu"
    return len({_core_of(folder / f"cpu{number}" / "topology") or (str(number), "") for number in allowed})


def _core_of(topology: Path) -> Optional[Tuple[str, str]]:
    with contextlib.suppress(OSError):
        return (topology / "physical_package_id").read_text(), (topology / "core_id").read_text()
    return None


def _performance_cores() -> Optional[int]:
    """Those of an Apple processor; None elsewhere."""
    with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
        command = ["sysctl", "-n", "hw.perflevel0.physicalcpu"]
        return int(subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=10).stdout)
    return None


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
