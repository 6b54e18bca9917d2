"""What one test sets for its whole process, the next must not find."""

import sys

import pytest


@pytest.fixture(autouse=True)
def floats_as_they_are():
    """A runtime that trains in this process flushes the smallest floats to zero; hypothesis draws those too."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)
