"""What is public: this list, each with its own words, and nothing that makes the import slow."""

import inspect
import subprocess
import sys

import pytest

import ampere

PUBLIC = [
    "AmpereError",
    "Budget",
    "Client",
    "Comparison",
    "Device",
    "EnergyCheck",
    "Estimate",
    "Estimator",
    "Layer",
    "MeasuredStep",
    "Measurement",
    "Meter",
    "Network",
    "Options",
    "Profile",
    "Progress",
    "Ranking",
    "TrainingSetup",
    "__version__",
    "check",
    "compare",
    "device",
    "estimate",
    "load_model",
    "load_pruned",
    "measure",
    "profile",
    "prune",
    "report",
    "schedule",
    "search",
    "trace",
    "tune",
    "validate",
]
NAMED = [name for name in PUBLIC if name != "__version__"]


def test_the_list_is_this_one():
    assert ampere.__all__ == PUBLIC
    assert dir(ampere) == PUBLIC


@pytest.mark.parametrize("name", NAMED)
def test_each_is_there_and_says_what_it_is(name):
    public = getattr(ampere, name)
    words = inspect.getdoc(public)
    assert words
    assert not words.startswith(f"{name}(")  # a dataclass without a docstring of its own


@pytest.mark.parametrize("name", [n for n in NAMED if n[0].islower()])
def test_functions_are_typed(name):
    signature = inspect.signature(getattr(ampere, name))
    assert signature.return_annotation is not inspect.Signature.empty
    assert all(p.annotation is not inspect.Parameter.empty for p in signature.parameters.values())


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'predict'"):
        _ = ampere.predict


def test_importing_it_loads_nothing_heavy():
    code = "import ampere, sys; print([m for m in ('torch', 'numpy', 'scipy', 'rich') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
