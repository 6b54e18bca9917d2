import importlib.util

import pytest


@pytest.fixture
def no_sklearn(monkeypatch):
    """A machine without scikit-learn."""
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "sklearn" else find(name))
