"""What a block showed, per iteration, with every doubt as a flag."""

import math
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .measuring import Window, ratios
from .medians import median, relative_spread
from .request import BlockRequest
from .surroundings import conditions

LOADED_WALL_PER_CPU = 1.25
NOISY_SPREAD = 0.25
THROTTLED, YARDSTICKS_TO_TELL = 1.15, 4


class Trial(NamedTuple):
    targets: List[Window]
    yardsticks: List[Window]
    losses: Tuple[float, float]  # after the first step, and after the last
    parameters: int
    flags: Tuple[str, ...]
    counted: bool = False  # a counter read the joules


def summary(request: BlockRequest, trial: Trial) -> Dict[str, Any]:
    targets, yardsticks = trial.targets, trial.yardsticks
    found = ratios(targets, yardsticks)
    iterations = sum(w.iterations for w in targets)
    cpu_seconds = median([w.cpu_per_iteration for w in targets])
    return {
        "ratio": median(found) if found else None,
        "spread": relative_spread(found),
        "seconds": median([w.seconds / w.iterations for w in targets]),
        "cpu_seconds": cpu_seconds,
        "yardstick_seconds": median([w.cpu_per_iteration for w in yardsticks]) if yardsticks else None,
        "joules": _joules(targets) if request.counting else None,
        "yardstick_joules": _joules(yardsticks) if trial.counted and yardsticks else None,
        "windows": _for_the_host(targets, yardsticks if trial.counted else []),
        "iterations": iterations,
        "page_faults": sum(w.page_faults for w in targets) / iterations,
        "parameters": trial.parameters,
        "loss": [_finite(loss) for loss in trial.losses],
        "conditions": conditions(),
        "flags": [*trial.flags, *_flags(request, trial, relative_spread(found))],
    }


def _for_the_host(targets: List[Window], yardsticks: List[Window]) -> Optional[Dict[str, Any]]:
    return {"target": spans(targets), "yardstick": spans(yardsticks)} if _joules(targets) is None else None


def spans(windows: List[Window]) -> List[Tuple[float, float, float]]:
    """When they began and ended, and their CPU seconds, for a host that reads the meter."""
    return [(w.began, w.began + w.seconds, w.cpu_seconds) for w in windows]


def _joules(windows: List[Window]) -> Optional[float]:
    """The power of all windows at the cost of the median one, or a single slow window would count in joules only."""
    if any(math.isnan(w.joules) for w in windows):
        return None
    watts = sum(w.joules for w in windows) / max(sum(w.cpu_seconds for w in windows), 1e-9)
    return watts * median([w.cpu_per_iteration for w in windows])


def _flags(request: BlockRequest, trial: Trial, spread: Optional[float]) -> List[str]:
    everything = trial.targets + trial.yardsticks
    wall, cpu = sum(w.seconds for w in everything), sum(w.cpu_seconds for w in everything)
    doubts = {
        "nonfinite_loss": any(_finite(loss) is None for loss in trial.losses),
        "loaded": request.setup.threads == 1 and wall > LOADED_WALL_PER_CPU * cpu,
        "noisy": spread is not None and spread > NOISY_SPREAD,
        "throttled": slowed_down(trial.yardsticks),
        "short": sum(w.iterations for w in trial.targets) < request.iterations,
    }
    return [flag for flag, doubted in doubts.items() if doubted]


def slowed_down(yardsticks: List[Window]) -> bool:
    """The same step costs clearly more CPU time in the second half than in the first: the clock fell on the way."""
    if len(yardsticks) < YARDSTICKS_TO_TELL:
        return False
    costs, half = [w.cpu_per_iteration for w in yardsticks], len(yardsticks) // 2
    return median(costs[-half:]) > THROTTLED * median(costs[:half])


def _finite(loss: float) -> Optional[float]:
    return loss if math.isfinite(loss) else None
