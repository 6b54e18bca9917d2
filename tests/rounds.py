"""What is measured on a machine that others use too: again, until it is clear or no more rounds are left."""

from collections.abc import Callable
from statistics import median


def median_off(bar: float, measured: "Callable[[], float]", rounds: int = 7) -> float:
    """The median of all rounds' relative errors, once it is within the bar.

    Neighbours disturb single rounds either way; a measurement that is wrong is wrong in the median of all.
    """
    errors = [measured()]
    while abs(median(errors)) > bar and len(errors) < rounds:
        errors.append(measured())
    return abs(median(errors))


def least(bar: float, measured: "Callable[[], float]", rounds: int = 4) -> float:
    """The least of all rounds, once it is within the bar: neighbours add to a wait, never take from it."""
    found = measured()
    for _ in range(rounds - 1):
        if found < bar:
            break
        found = min(found, measured())
    return found
