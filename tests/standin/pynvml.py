"""A stand-in for NVML: the meter of the stand-in card, with the habits of real ones. AMPERE_STANDIN's `nvml` sets them.

    update_seconds   how often counter and power change
    seen             the part of each update in which power is looked at: A100 and H100 look a quarter of the time
    average_seconds  the time that "power" is the mean of; 0 for a sample
    limit_watts      what the card draws at most
    heat             how much more it draws, at most, after long work

Card 0 is another card, on which nothing is trained, and which draws more. The card that trains is number 1 here and
number 0 for PyTorch.
"""

import math
import sys
import time
from types import SimpleNamespace

NVML_CLOCK_SM, NVML_TEMPERATURE_GPU = 1, 0
USUAL = {
    "update_seconds": 0.1,
    "seen": 1.0,
    "average_seconds": 0.0,
    "idle_watts": 20.0,
    "busy_watts": 200.0,
    "limit_watts": 250.0,
    "heat": 0.0,
    "counts": True,
}
HEATS_UP_SECONDS = 20.0
OTHER_UUID, OTHER_WATTS = "GPU-07e20000-0000-0000-0000-000000000000", 1000.0


class NVMLError(Exception):
    pass


class Meter:
    """Joules of work that `busy(start, end)` tells the seconds of, as a card counts them."""

    def __init__(self, busy, began, clock=time.perf_counter, **settings):
        self.busy, self.began, self.clock = busy, began, clock
        self.set = SimpleNamespace(**{**USUAL, **settings})
        self._updates, self._joules = 0, 0.0

    def watts(self, start, end):
        """The mean power between two moments."""
        share = self.busy(start, end) / max(end - start, 1e-9)
        worked = self.busy(start - 3 * HEATS_UP_SECONDS, start) if self.set.heat else 0.0
        warm = 1 - math.exp(-worked / HEATS_UP_SECONDS)
        busy = min(self.set.limit_watts, self.set.busy_watts * (1 + self.set.heat * warm))
        return self.set.idle_watts + share * (busy - self.set.idle_watts)

    def joules(self):
        """The counter: what was seen of each update counts for all of it."""
        step = self.set.update_seconds
        for number in range(self._updates, int((self.clock() - self.began) / step)):
            start = self.began + number * step
            self._joules += step * self.watts(start, start + self.set.seen * step)
            self._updates = number + 1
        return self._joules

    def power(self):
        step = self.set.update_seconds
        last = self.began + step * int((self.clock() - self.began) / step)
        return self.watts(last - (self.set.average_seconds or self.set.seen * step), last)


class Other:
    """The card that nothing is trained on."""

    def joules(self):
        return OTHER_WATTS * time.perf_counter()

    def power(self):
        return OTHER_WATTS


_cards = []


def nvmlInit():
    standin = sys.modules.get("ampere_standin")
    settings = standin.SETTINGS["nvml"] if standin else None
    if settings is None:
        raise NVMLError("Driver Not Loaded")
    if not _cards:
        _cards.extend([Other(), Meter(standin.CARD.busy, standin.CARD.began, standin.CARD.now, **settings)])


def nvmlDeviceGetCount():
    return len(_cards)


def nvmlDeviceGetHandleByIndex(index):
    return _cards[index]


def nvmlDeviceGetHandleByUUID(uuid):
    by_uuid = {OTHER_UUID: 0, sys.modules["ampere_standin"].UUID: 1}
    if uuid not in by_uuid:
        raise NVMLError("Not Found")
    return _cards[by_uuid[uuid]]


def nvmlDeviceGetName(card):
    return "Another card" if isinstance(card, Other) else "Stand-in card"


def nvmlDeviceGetTotalEnergyConsumption(card):
    if isinstance(card, Meter) and not card.set.counts:
        raise NVMLError("Not Supported")
    return int(1000 * card.joules())


def nvmlDeviceGetPowerUsage(card):
    return int(1000 * card.power())


def nvmlDeviceGetEnforcedPowerLimit(card):
    return int(1000 * card.set.limit_watts)


def nvmlDeviceGetMaxClockInfo(card, kind):
    return 1410


def nvmlDeviceGetClockInfo(card, kind):
    return 1400


def nvmlDeviceGetComputeMode(card):
    return 0


def nvmlDeviceGetTemperature(card, kind):
    return 55


def nvmlSystemGetDriverVersion():
    return b"550.54.15"
