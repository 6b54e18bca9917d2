"""What is cheaper to train, and how sure that is: one of two networks, or one network in one of several places."""

from .normalization import Normalized
from .pairwise import Comparison, DeviceComparison, compare
from .probability import SURE, in_percent
from .ranking import Placed, Ranking, rank

__all__ = ["SURE", "Comparison", "DeviceComparison", "Normalized", "Placed", "Ranking", "compare", "in_percent", "rank"]
