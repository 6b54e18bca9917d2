"""What a runtime lacks is said before anything is trained: one line, with the remedy."""

import pytest
from tests.synthetic import chain

from ampere.core import TrainingSetup
from ampere.core.errors import ModelError, RuntimeMissingError, UsageError
from ampere.devices import Device
from ampere.models import SPACES
from ampere.profiling.capabilities import built_by, check_setup
from ampere.profiling.sources import SpaceSource
from ampere.runtimes import Description
from ampere.runtimes.table import OURS

NARROW = Description(".none", ("torch",), "pip install narrow", frozenset({"linear"}), ("float32",), ("sgd",))
ABSENT = Description(".none", ("a-package-that-is-not-there",), "pip install 'ampere-energy[absent]'")


@pytest.fixture(autouse=True)
def two_more(monkeypatch):
    monkeypatch.setitem(OURS, "narrow", NARROW)
    monkeypatch.setitem(OURS, "absent", ABSENT)


def test_layers_that_a_runtime_lacks_are_named_one_by_one():
    with pytest.raises(ModelError) as refused:
        built_by(Device(), "narrow", SpaceSource(SPACES["lenet5"]))
    assert "(no conv)" in str(refused.value)
    assert "linear" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_networks_are_built_from_their_layers_where_a_runtime_runs_no_torch_code(monkeypatch):
    monkeypatch.setitem(OURS, "narrow", NARROW._replace(kinds=frozenset({"linear", "conv"})))
    source = SpaceSource(SPACES["lenet5"])
    assert set(built_by(Device(), "narrow", source).original().workload) == {"layers"}
    assert built_by(Device(), "torch", source) is source


def test_a_type_and_an_optimizer_that_it_lacks_are_refused():
    with pytest.raises(UsageError, match="no bfloat16: choose --dtype float32"):
        check_setup(Device(), TrainingSetup("narrow", dtype="bfloat16"))
    with pytest.raises(UsageError, match="no adam: choose --optimizer sgd"):
        check_setup(Device(), TrainingSetup("narrow", optimizer="adam"))


def test_a_runtime_that_is_not_installed_says_what_to_type():
    with pytest.raises(RuntimeMissingError, match=r"pip install 'ampere-energy\[absent\]'"):
        check_setup(Device(), TrainingSetup("absent"))


def test_a_device_without_hardware_trains_as_torch_does():
    with pytest.raises(UsageError, match="simulated:xavier trains with torch, not with jax"):
        check_setup(Device("simulated:xavier"), TrainingSetup("jax"))


def test_an_unknown_runtime_is_reported_what_there_is():
    with pytest.raises(UsageError, match="no runtime 'tensorflow': the runtimes are torch"):
        check_setup(Device(), TrainingSetup("tensorflow"))


def test_a_network_of_layers_it_has_passes():
    assert not NARROW._replace(kinds=frozenset({"conv", "linear"})).lacks(chain(3, 4, 4, 8).layers[0])
