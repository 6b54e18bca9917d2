"""Starting and ending processes, on every operating system. POSIX has process groups and signals, Windows has neither.

A worker may have children that train a variant, so it is started as the leader of a group and ended with all of it.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

TASKKILL_SECONDS = 10.0


def python_program(module: str, python: str = sys.executable) -> List[str]:
    """The command that runs a module's `main`, without the current folder on its path, which `-m` puts there.

    Ampere itself is found where it was found here, even if that is no place that Python looks in by itself.
    """
    path = f"import sys; sys.path[:] = [p for p in sys.path if p] + [{str(Path(__file__).parents[2])!r}]"
    return [python, "-c", f"{path}; from {module} import main; main()"]


def own_group() -> Dict[str, Any]:
    """Arguments of Popen that make the process the leader of a group, which Ctrl-C in this one does not reach."""
    if hasattr(os, "killpg"):
        return {"start_new_session": True}
    return {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}


def end_group(process: "subprocess.Popen[Any]") -> None:
    """End a process by force, with all its children, and wait for it. It may have ended: its children may not."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            command = ["taskkill", "/F", "/T", "/PID", str(process.pid)]
            subprocess.run(command, capture_output=True, check=False, timeout=TASKKILL_SECONDS)
        process.kill()
    process.wait()


def end_own_group() -> None:
    """End this process by force, with its children where it leads their group."""
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(0)


# Some virtual machines announce instructions of their processor and do not run them, AMX for bfloat16 most of all.
REMEDIES = {"SIGILL": ", an instruction that this machine cannot run: try with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 set"}


def how_it_ended(code: Optional[int]) -> str:
    """`ended by SIGKILL`, or `exit code 3`."""
    if code is not None and code < 0:
        name = signal_name(-code)
        return f"ended by {name}{REMEDIES.get(name, '')}"
    return f"exit code {code}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # real-time signals have no names
        return f"signal {number}"
