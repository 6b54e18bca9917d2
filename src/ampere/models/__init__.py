"""Models to estimate: the paper's families, general spaces, and a user's own. Importing this needs no torch."""

from .families import FAMILIES
from .general import GENERAL, SPACES
from .loading import LoadedModel, load_model
from .space import Space

__all__ = ["FAMILIES", "GENERAL", "SPACES", "LoadedModel", "Space", "load_model"]
