"""What is cheaper to train, and how sure that is: one of two networks, or one network in one of several places."""

from .one_condition import Moved
from .one_model import Placed, Ranking, rank
from .sureness import SURE, in_percent
from .two_models import Comparison, DeviceComparison, compare

__all__ = ["SURE", "Comparison", "DeviceComparison", "Moved", "Placed", "Ranking", "compare", "in_percent", "rank"]
