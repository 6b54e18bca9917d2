"""How much memory a variant may take, and whether the system ended one that took too much.

/proc/meminfo does not know the limit of a container. That is the limit of the process's control group, or of any group
around it, whichever leaves least:

    version 2   /proc/self/cgroup: 0::/a/b           SYSFS/fs/cgroup/a/b/memory.max, memory.high, memory.current
    version 1                      4:memory:/a/b     SYSFS/fs/cgroup/memory/a/b/memory.limit_in_bytes, ...

Inside a container the path may be the host's, of which only the end of the tree is there: the groups that exist count.
"""

import contextlib
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional

from ampere.meters.selection import sysfs

KEEP_FREE = 0.1  # share of the memory now available that a variant may not take
PRESSURE = 0.5  # share of it that a killed process had taken, from which on memory is to blame
PROC = Path("/proc")


class Version(NamedTuple):
    """The files of a control group. Soft limits that only protect memory from others (memory.low) are not limits."""

    limits: List[str]
    used: str
    reclaimable: str  # in memory.stat: files that are kept in memory as long as nobody needs it
    events: str


VERSION_1 = Version(["memory.limit_in_bytes"], "memory.usage_in_bytes", "total_inactive_file", "memory.oom_control")
VERSION_2 = Version(["memory.max", "memory.high"], "memory.current", "inactive_file", "memory.events")


class Group(NamedTuple):
    folder: Path
    version: Version

    def available(self) -> Optional[int]:
        """Bytes left below the lowest limit; None where there is none."""
        limits = [found for found in map(self._number, self.version.limits) if found is not None]
        used = self._number(self.version.used)
        if not limits or used is None:
            return None
        reclaimable = field_of(self.folder / "memory.stat", self.version.reclaimable) or 0
        return max(0, min(limits) - max(0, used - reclaimable))

    def oom_kills(self) -> int:
        return field_of(self.folder / self.version.events, "oom_kill") or 0

    def _number(self, file: str) -> Optional[int]:
        """The number in a file; None for "max" or without the file."""
        try:
            return int((self.folder / file).read_text())
        except (OSError, ValueError):
            return None


def groups(proc: Path = PROC, cgroups: Optional[Path] = None) -> List[Group]:
    """The control groups that count this process's memory, the innermost first."""
    root = cgroups or Path(sysfs()) / "fs" / "cgroup"
    return [group for line in _lines(proc / "self" / "cgroup") for group in _groups_in(line, root)]


def _groups_in(line: str, root: Path) -> Iterator[Group]:
    """The groups of a line HIERARCHY:CONTROLLERS:PATH in /proc/self/cgroup; version 2 names no controllers."""
    _, controllers, path = [*line.split(":", 2), "", ""][:3]
    if not controllers:
        version, top = VERSION_2, root if (root / "cgroup.controllers").exists() else root / "unified"
    elif "memory" in controllers.split(","):
        version, top = VERSION_1, root / "memory"
    else:
        return
    inner = top / path.lstrip("/")
    for folder in (inner, *inner.parents):
        if folder.is_dir():
            yield Group(folder, version)
        if folder == top:
            return


def available_bytes(proc: Path = PROC, cgroups: Optional[Path] = None) -> Optional[int]:
    """Bytes that this process may still take; None where the system does not say."""
    machine = field_of(proc / "meminfo", "MemAvailable:")
    left = [None if machine is None else machine * 1024, *(group.available() for group in groups(proc, cgroups))]
    return min((each for each in left if each is not None), default=None)


def oom_kills(proc: Path = PROC, cgroups: Optional[Path] = None) -> int:
    """How many processes the system has ended for their memory: a number that grows, whatever it counts exactly."""
    machine = field_of(proc / "vmstat", "oom_kill") or 0
    return machine + sum(group.oom_kills() for group in groups(proc, cgroups))


class MemoryWatch:
    """Memory as it was before a process started, to tell why that process was killed."""

    def __init__(self) -> None:
        self._kills, self._available = oom_kills(), available_bytes()

    def ran_out(self, peak_bytes: int) -> bool:
        """Whether memory was short since then, for a process that had taken so much at its peak."""
        took_most = self._available is not None and peak_bytes > PRESSURE * self._available
        return took_most or oom_kills() > self._kills


def volunteer_for_the_oom_killer() -> None:
    """Ask Linux to end this process first when the machine runs out of memory."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")


def limit_memory() -> None:
    """Limit this process to the memory now available: a larger allocation then fails at once, not by a later kill."""
    used, available = field_of(PROC / "self" / "status", "VmData:"), available_bytes()
    if used is None or available is None:
        return
    import resource

    limit = int(used * 1024 + available * (1 - KEEP_FREE))
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def field_of(path: Path, name: str) -> Optional[int]:
    """The number behind a name in a file of such lines; None where there is none."""
    found = (line.split()[1:2] for line in _lines(path) if line.split()[:1] == [name])
    try:
        return int(next(found)[0])
    except (StopIteration, IndexError, ValueError):
        return None


def _lines(path: Path) -> List[str]:
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return []
