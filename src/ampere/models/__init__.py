"""Models to estimate: the paper's families, general spaces, and a user's own. Importing this needs no torch."""

from .loading import LoadedModel, load_model
from .spaces import FAMILIES, GENERAL, SPACES, Space

__all__ = ["FAMILIES", "GENERAL", "SPACES", "LoadedModel", "Space", "load_model"]
