"""Counters that the zeus library can read: NVIDIA and AMD graphics cards, Apple silicon, Jetson, RAPL.

Each is checked on its own, since zeus gives an empty reading, not an error, where it finds nothing:

    gpu 0              the whole board of the card
    package 0, dram 0  as RAPL reports them
    soc                Jetson: the total, or else CPU and GPU rails; Apple: CPU, GPU, memory and neural engine

A counter that does not advance under load is left out. `scope` names what is included.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional

from .checking import busy
from .meter import meter_failed

NAME = "zeus"
UPDATES_IN_WINDOW = 100
LOOK_SECONDS = 0.4  # at a counter that may move ten times a second
JOULES_PER_MJ = 1e-3
SOC_TOTALS = ("total_energy_mj",)
SOC_PARTS = ("cpu_total_mj", "gpu_mj", "gpu_sram_mj", "dram_mj", "ane_mj", "cpu_energy_mj", "gpu_energy_mj")


class Source(NamedTuple):
    label: str
    millijoules: Callable[[], float]


class ZeusMeter:
    """Adds the counters that zeus reads."""

    update_seconds = 0.1
    reading_unit = "J"

    def __init__(self, sources: List[Source]) -> None:
        self._sources = sources
        self._before = self._read()

    def describe(self) -> Dict[str, Any]:
        scope = " + ".join(source.label for source in self._sources)
        seconds = UPDATES_IN_WINDOW * self.update_seconds
        return {"name": NAME, "measured": True, "scope": scope, "window_seconds": seconds}

    def start(self) -> None:
        self._before = self._read()

    def stop(self) -> float:
        spent = [now - before for now, before in zip(self._read(), self._before)]
        for source, millijoules in zip(self._sources, spent):
            if millijoules < 0:
                raise meter_failed(f"the counter of {source.label} was reset: measure again")
        return sum(spent) * JOULES_PER_MJ

    def reading(self) -> float:
        return sum(self._read()) * JOULES_PER_MJ

    def _read(self) -> List[float]:
        return [_read(source) for source in self._sources]


def find(root: str) -> Optional[ZeusMeter]:
    """The meter of all counters that advance; None where zeus is not installed or finds nothing."""
    try:
        from zeus import device  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    sources = [*_graphics(device), *_processors(device), *_chip(device)]
    if not sources:
        return None
    before = [_read(source) for source in sources]
    busy(LOOK_SECONDS)
    alive = [source for source, was in zip(sources, before) if _read(source) > was]
    if not alive:
        labels = ", ".join(source.label for source in sources)
        raise meter_failed(f"zeus reads {labels}, but none of them advances under load: use another meter")
    return ZeusMeter(alive)


def _graphics(device: Any) -> List[Source]:
    cards = _there(device.get_gpus)
    counted = [i for i in range(len(cards or ())) if cards.gpus[i].supports_get_total_energy_consumption()]
    return [Source(f"gpu {i}, its whole board", _of(cards.get_total_energy_consumption, i)) for i in counted]


def _processors(device: Any) -> List[Source]:
    cpus = _there(device.get_cpus)
    sources = []
    for i in range(len(cpus or ())):
        sources.append(Source(f"package {i}", _of(cpus.get_total_energy_consumption, i, "cpu_mj")))
        if cpus.supports_get_dram_energy_consumption(i):
            sources.append(Source(f"dram {i}", _of(cpus.get_total_energy_consumption, i, "dram_mj")))
    return sources


def _chip(device: Any) -> List[Source]:
    chip = _there(device.get_soc)
    if chip is None:
        return []
    reported = chip.get_total_energy_consumption()
    there = [field for field in SOC_TOTALS if getattr(reported, field, None) is not None]
    there = there or [field for field in SOC_PARTS if getattr(reported, field, None) is not None]
    return [Source(f"soc {field[:-3]}", _of(chip.get_total_energy_consumption, field=field)) for field in there]


def _of(read: Callable[..., Any], index: Optional[int] = None, field: str = "") -> Callable[[], float]:
    def millijoules() -> float:
        reported = read() if index is None else read(index)
        return float(getattr(reported, field) if field else reported)

    return millijoules


def _there(get: Callable[[], Any]) -> Any:
    """What zeus finds, or None: it reports nothing found by errors of many classes."""
    try:
        return get()
    except Exception:
        return None


def _read(source: Source) -> float:
    try:
        return source.millijoules()
    except Exception as problem:
        line = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        raise meter_failed(
            f"zeus cannot read {source.label} ({line}): check the meter with `ampere devices --check`"
        ) from None
