"""Figures that a few wild values do not move."""

from typing import List, Optional


def relative_spread(values: List[float]) -> Optional[float]:
    """Robust standard deviation over the median; of a single value it is None, not 0."""
    if len(values) < 2:
        return None
    middle = median(values)
    return 1.4826 * median([abs(v - middle) for v in values]) / middle if middle else None


def median(values: List[float]) -> float:
    return quantile(values, 0.5)


def quantile(values: List[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
