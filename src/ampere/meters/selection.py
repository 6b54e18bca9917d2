"""Which meter is used: the one the user names, else a counter that advances under load, else the CPU-time model.

The name comes with the host's handshake (`use_meter`), or from AMPERE_METER in this process's environment. AMPERE_SYSFS
says where sysfs is, for a container that has it elsewhere.

Where an accelerator trains, only meters that include it are taken by themselves: its own, or that of the whole board.
"""

import os
from functools import lru_cache
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ampere.core.errors import WorkerError, bad_request
from ampere.meters import battery, hwmon, nvml, powercap, zeus

from .checking import advances, check
from .cpu_time import NAME as MODELLED
from .cpu_time import CpuTimeMeter
from .external import external_meter
from .meter import CheckedMeter, Finder, Meter, as_meter_failure, meter_failed

BUILT_IN: Dict[str, Finder] = {m.NAME: m.find for m in (nvml, powercap, hwmon, battery, zeus)}
# Windows of a battery take a minute each; nvml and zeus may find a graphics card on which nothing is trained.
ONLY_WHEN_ASKED = (nvml.NAME, battery.NAME, zeus.NAME)
NOT_OF_CARDS = (powercap.NAME, battery.NAME, zeus.NAME)  # a counter of the processor misses a card
QUICK_SECONDS = 1.0  # a slower one shows nothing in a short check; a block of 0 J is refused anyway
GROUP = "ampere.meters"


class Found(NamedTuple):
    """A meter of this device, or why it cannot be read."""

    name: str
    meter: Optional[Meter]
    problem: Optional[str] = None


class Choice(NamedTuple):
    """The counter to use, or None, and why others that are here cannot be used."""

    meter: Optional[Meter]
    problems: Tuple[str, ...] = ()


_named = ""  # by the host that this process serves


def use_meter(name: Optional[str]) -> None:
    """The meter of all that this process measures from now on; None leaves it to the environment."""
    global _named
    _named = name or ""


def choose_meter(watts_per_core: float, name: Optional[str] = None) -> Meter:
    """The meter to use: the same one as long as the process lives and nobody names another."""
    return _choice(name or _asked_for(), sysfs(), _card()).meter or CpuTimeMeter(watts_per_core)


def unusable_counters() -> List[str]:
    """Why joules are modelled although there are counters; empty where none is here, or the model was asked for."""
    choice = _choice(_asked_for(), sysfs(), _card())
    return [] if choice.meter else list(choice.problems)


def meter_asked_for() -> str:
    """The name of the meter that was asked for; "" where the choice is free."""
    return _asked_for()


def use_card(uuid: Optional[str], shifted: bool = True) -> None:
    """The accelerator that trains from now on, by its UUID ("" if it has none); None where the CPU does."""
    global _on_card
    _on_card = uuid is not None
    nvml.use_card(uuid or "", shifted)


_on_card = False


def _card() -> Optional[str]:
    return nvml.card() if _on_card else None


def _asked_for() -> str:
    return _named or os.environ.get("AMPERE_METER") or ""


def found_meters() -> List[Found]:
    """Every meter of this device, readable or not."""
    looked = [_look(name, find) for name, find in finders().items()]
    return [found for found in looked if found.meter or found.problem]


def finders() -> Dict[str, Finder]:
    """Finders by name, those of other packages first: whoever installs one wants to use it."""
    return {**_from_other_packages(), **BUILT_IN}


def sysfs() -> str:
    return os.environ.get("AMPERE_SYSFS") or "/sys"


@lru_cache(maxsize=None)
def _choice(name: str, root: str, card: Optional[str] = None) -> Choice:
    """`card` is that of `use_card`, for which another meter is found."""
    if name == MODELLED:
        return Choice(None)
    known = finders()
    if name:
        return Choice(external_meter(name) or _asked(name, known, root))
    problems: List[str] = []
    for name in known:
        if name in (ONLY_WHEN_ASKED if card is None else NOT_OF_CARDS) or (name == nvml.NAME and not card):
            continue
        try:
            with as_meter_failure(name):
                meter = known[name](root)
                if meter and advances(meter):
                    return Choice(CheckedMeter(name, meter))
                problems += [f"{name} does not advance under load"] if meter else []
        except WorkerError as problem:
            problems.append(str(problem))
    return Choice(None, tuple(problems))


def _asked(name: str, known: Dict[str, Finder], root: str) -> Meter:
    if name not in known:
        raise bad_request("there is no meter {!r}: use one of {}".format(name, ", ".join([*known, MODELLED])))
    with as_meter_failure(name):
        meter = known[name](root)
        if meter is None:
            raise meter_failed(f"there is no {name} on this device: `ampere devices` lists its meters")
        if meter.update_seconds <= QUICK_SECONDS and not advances(meter):
            raise meter_failed(f"{name} does not advance under load, so it cannot be used: use --meter {MODELLED}")
        return CheckedMeter(name, meter)


def _look(name: str, find: Finder) -> Found:
    try:
        with as_meter_failure(name):
            return Found(name, find(sysfs()))
    except WorkerError as problem:
        return Found(name, None, str(problem))


def _from_other_packages() -> Dict[str, Finder]:
    from importlib import metadata

    entries = metadata.entry_points()
    group = entries.select(group=GROUP) if hasattr(entries, "select") else entries.get(GROUP, ())
    return {entry.name: _loaded_when_called(entry) for entry in group}


def _loaded_when_called(entry: Any) -> Finder:
    """A finder that imports its package when called, so that a failing import is a failing meter."""
    return lambda root: entry.load()(root)


def counters(request: Dict[str, Any]) -> Dict[str, Any]:
    """Answer to a `counters` request: every meter of this device, checked under load if `check` is set."""
    return {"counters": [_report(found, bool(request.get("check"))) for found in found_meters()]}


def _report(found: Found, under_load: bool) -> Dict[str, Any]:
    try:
        with as_meter_failure(found.name):
            described = found.meter.describe() if found.meter else {}
            checked = check(found.meter) if found.meter and under_load else None
    except WorkerError as problem:
        return {"name": found.name, "problem": str(problem), "check": None}
    return {"name": found.name, **described, "problem": found.problem, "check": checked}
