"""What is cheaper to train, with its probability: several networks on a device, or one network on several profiles."""

from .normalization import Normalized
from .pairwise import Comparison, DeviceRanking, compare
from .ranking import CONFIDENT, Pair, RankedEntry, Ranking, in_percent, rank

__all__ = [
    "CONFIDENT",
    "Comparison",
    "DeviceRanking",
    "Normalized",
    "Pair",
    "RankedEntry",
    "Ranking",
    "compare",
    "in_percent",
    "rank",
]
