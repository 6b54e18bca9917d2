"""What every runtime promises: ours are held to the tests that those of other packages are held to, which can fail."""

import pytest

from ampere import runtimes
from ampere.core.errors import WorkerError
from ampere.core.kinds import built_by
from ampere.core.kinds.convolution import transposed_example
from ampere.runtimes import Description, installed
from ampere.runtimes.conformance import EXAMPLES, STRANGER, RuntimeConformance, separable
from ampere.runtimes.table import OURS


def where_it_is_installed(name):
    return pytest.mark.skipif(name not in installed(), reason=OURS[name].install)


@pytest.fixture(autouse=True)
def denormal_numbers():
    """Other tests in this process count on them, and PyTorch's runtime flushes them."""
    yield
    if "torch" in installed():
        __import__("torch").set_flush_denormal(False)


@where_it_is_installed("torch")
class TestTorch(RuntimeConformance):
    name = "torch"


@where_it_is_installed("torch-compile")
class TestTorchCompile(RuntimeConformance):
    name = "torch-compile"
    alone = frozenset({"conv", "linear", "lstm", "norm_layer"})  # its layers are torch's own

    def possible_together(self):
        """One of each kind: C++ is compiled for each, and the others are trained by torch."""
        return list({layer.kind: layer for layer in reversed(super().possible_together())}.values())[::-1]


@where_it_is_installed("jax")
class TestJax(RuntimeConformance):
    name = "jax"

    def possible_together(self):
        """Those that were not trained alone, and the only ones of their kinds: each is compiled."""
        others = [layer for layer in super().possible_together() if layer not in self.possible_alone()]
        kinds = {layer.kind for layer in others}
        return [*others, *(layer for layer in self.possible_alone() if layer.kind not in kinds)]


@where_it_is_installed("mnn")
class TestMnn(RuntimeConformance):
    name = "mnn"


def test_each_of_ours_is_held_to_it():
    assert {suite.name for suite in RuntimeConformance.__subclasses__()} >= set(OURS)


def test_limits_within_a_kind_are_put_to_the_test():
    assert OURS["jax"].lacks(transposed_example(groups=2))
    assert [bool(OURS["mnn"].lacks(layer)) for layer in EXAMPLES["conv_transposed"]] == [True, False, True]


class Broken(RuntimeConformance):
    name = "broken"


@pytest.fixture
def broken(monkeypatch):
    """PyTorch's runtime with what it makes changed."""
    torch_runtime = pytest.importorskip("ampere.runtimes.torch_runtime", reason=OURS["torch"].install)
    monkeypatch.setitem(OURS, "broken", Description("", (), "", built_by("torch")))

    def change(made):
        class Mutant(torch_runtime.TorchRuntime):
            def build(self, workload, setup):
                return made(super().build, workload, setup)

        monkeypatch.setattr(runtimes, "_loaded", {**runtimes._loaded, "broken": Mutant()})
        return Broken()

    return change


def test_one_that_trains_nothing_is_found_out(broken):
    suite = broken(lambda build, *asked: build(*asked)._replace(step=lambda: None, last_loss=lambda: 1.0))
    with pytest.raises(AssertionError):
        suite.test_it_really_learns("sgd")
    with pytest.raises(AssertionError):
        suite.test_a_layer_learns_and_its_parameters_change(EXAMPLES["linear"][0])


def test_one_that_counts_wrongly_is_found_out(broken):
    suite = broken(lambda build, *asked: build(*asked)._replace(parameters=1))
    with pytest.raises(AssertionError):
        suite.test_a_layer_has_the_parameters_of_the_table(EXAMPLES["linear"][0])


def test_one_that_refuses_without_a_name_is_found_out(broken):
    def refusing(build, *asked):
        raise WorkerError("variant_failed", "no")

    with pytest.raises(AssertionError):
        broken(refusing).test_an_unsupported_layer_is_refused_by_name(STRANGER)


def test_one_that_builds_something_else_instead_is_found_out(broken):
    suite = broken(lambda build, workload, setup: build(separable(), setup))
    with pytest.raises(AssertionError, match="broken refuses nothing"):
        suite.test_an_unsupported_layer_is_refused_by_name(STRANGER)
