"""Folders as the kernel shows them, and a machine that draws power and keeps them up to date."""

import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

RANGE_UJ = 262_143_328_850
SENSED_SECONDS = 0.1  # whose mean a sensor tells, so that a moment in which others work does not stand for all
Show = Callable[[float, float], None]  # joules since the start, watts just now


def put(path: Path, value: object) -> None:
    """In one piece, as the kernel does: nobody reads half a number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + "~")
    beside.write_text(f"{value}\n")
    beside.replace(path)


def add_zone(root: Path, zone: str, name: str, energy_uj: int = 0, range_uj: int = RANGE_UJ) -> Path:
    folder = root / "class" / "powercap" / zone
    put(folder / "name", name)
    put(folder / "max_energy_range_uj", range_uj)
    put(folder / "energy_uj", energy_uj)
    return folder / "energy_uj"


def add_powercap(root: Path) -> Show:
    package, dram = add_zone(root, "intel-rapl:0", "package-0"), add_zone(root, "intel-rapl:0:1", "dram")
    add_zone(root, "intel-rapl:0:0", "core", 7)

    def show(joules: float, watts: float) -> None:
        put(package, int(0.75e6 * joules))
        put(dram, int(0.25e6 * joules))

    return show


def add_rail(root: Path, chip: str, number: int, label: str, millivolts: int, milliamperes: int) -> Path:
    folder = root / "class" / "hwmon" / chip
    put(folder / "name", "ina3221")
    put(folder / f"in{number}_label", label)
    put(folder / f"in{number}_input", millivolts)
    put(folder / f"curr{number}_input", milliamperes)
    return folder / f"curr{number}_input"


def add_hwmon(root: Path) -> Show:
    gpu = add_rail(root, "hwmon1", 1, "VDD_GPU_SOC", 5000, 100)
    cpu = add_rail(root, "hwmon1", 2, "VDD_CPU_CV", 5000, 100)

    def show(joules: float, watts: float) -> None:
        put(gpu, round(watts / 2 / 5 * 1000))
        put(cpu, round(watts / 2 / 5 * 1000))

    return show


def add_battery(root: Path, status: str = "Discharging", **files: object) -> Path:
    folder = root / "class" / "power_supply" / "BAT0"
    put(folder / "type", "Battery")
    put(folder / "status", status)
    for file, value in files.items():
        put(folder / file, value)
    return folder


def add_shown_battery(root: Path) -> Show:
    folder = add_battery(root, power_now=4_000_000)
    return lambda joules, watts: put(folder / "power_now", round(watts * 1e6))


class Machine:
    """Draws `idle` watts, and `busy` more while this process works; the clock of the tree is the real one."""

    def __init__(self, show: Show, idle: float = 2.0, busy: float = 20.0) -> None:
        self.idle, self.busy, self.joules = idle, busy, 0.0
        self._show, self._done = show, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Machine":
        self._show(self.joules, self.idle)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        wall, cpu = time.monotonic(), self._work()
        past = deque([(wall, self.joules)])
        while not self._done.wait(0.001):
            now, work = time.monotonic(), self._work()
            self.joules += self.idle * (now - wall) + self.busy * max(0.0, work - cpu)
            self._show(self.joules, (self.joules - past[0][1]) / (now - past[0][0]))
            past.append((now, self.joules))
            while now - past[0][0] > SENSED_SECONDS:
                past.popleft()
            wall, cpu = now, work

    def _work(self) -> float:
        """Without that of keeping the tree."""
        return time.process_time() - time.thread_time()
