"""Small layers of every kind that can be built from a description."""

import math
import time
from typing import Any, ClassVar, Dict, FrozenSet, List, Tuple
from unittest import SkipTest

from ampere.core import Layer, Network, TrailingOp, TrainingSetup, work
from ampere.core.errors import WorkerError
from ampere.runtimes import find_runtime

from .runtime import Runtime, Training
from .table import EVERY_KIND, Description, description_of, installed


def conv(
    kind: str = "conv",
    size: Tuple[int, ...] = (8, 8),
    groups: int = 1,
    channels: Tuple[int, int] = (4, 8),
    **more: Any,
) -> Layer:
    n = len(size)
    config = {
        "batch": 3,
        "size_in": size,
        "kernel": (3,) * n,
        "stride": (1,) * n,
        "padding": (1,) * n,
        "dilation": (1,) * n,
        "bias": True,
        "groups": groups,
    }
    return Layer(kind, {**config, **more}, *channels)


def transposed(output_padding: Tuple[int, int] = (0, 0), groups: int = 1) -> Layer:
    return conv("conv_transposed", groups=groups, stride=(2, 2), output_padding=output_padding)


def recurrent(kind: str) -> List[Layer]:
    config = {"batch": 3, "length": 5, "layers": 2, "directions": 2, "bias": True}
    more: List[Dict[str, Any]] = [{}, {"state_grad": True}]
    return [Layer(kind, {**config, **each}, 6, 7) for each in more]


def variants(kind: str, config: Dict[str, Any], channels: Tuple[int, int], *more: Dict[str, Any]) -> List[Layer]:
    return [Layer(kind, {**config, **each}, *channels) for each in more]


EXAMPLES: Dict[str, List[Layer]] = {
    "conv": [conv(), conv(size=(9,)), conv(size=(4, 4, 4)), conv(stride=(2, 2), bias=False)],
    "conv_grouped": [conv("conv_grouped", groups=2), conv("conv_grouped", groups=0)],
    "conv_transposed": [transposed((1, 1)), transposed(), transposed(groups=2)],
    "linear": [Layer("linear", {"lead": (3, 5), "bias": True}, 8, 4)],
    "matmul": variants("matmul", {"batch": 6, "rows": 5}, (4, 7), {}, {"gradients": 1}),
    "attention": variants(
        "attention", {"batch": 3, "heads": 2, "queries": 5, "keys": 6}, (8, 7), {}, {"dropout": True}, {"causal": True}
    ),
    "lstm": recurrent("lstm"),
    "gru": recurrent("gru"),
    "rnn": recurrent("rnn"),
    "norm_batch": [Layer("norm_batch", {"batch": 3, "size": (4,) * n}, 6, 6) for n in range(4)],
    "norm_layer": variants("norm_layer", {"lead": (3, 5)}, (6, 6), {}, {"bias": False}, {"groups": 2}),
    "embedding": [Layer("embedding", {"lead": (3, 5)}, 11, 6, input_grad=False)],
    "scale": [Layer("scale", {"values": values}, 6, 6) for values in (24, 25, 4)],
    "nonparametric": [Layer("nonparametric", {"batch": 3}, 1, 1)],
}


# What every runtime keeps to, as tests that other packages can run on a runtime of their own.
#
# from ampere.runtimes.conformance import RuntimeConformance
#
# class TestTiny(RuntimeConformance):
#     name = "tiny"  # of its entry point

OPAQUE = dict.fromkeys(("launches", "flops", "values", "parameters", "parameter_tensors"), 1)
STRANGER = Layer("opaque", {**OPAQUE, "shape_in": (3, 4), "shape_out": (3, 4)}, 4, 4, name="body.swish")


class RuntimeConformance:
    """With the `name` of a runtime that is installed, has an entry point or a line in our table, and builds linear
    layers at least."""

    name: ClassVar[str]
    alone: ClassVar[FrozenSet[str]] = EVERY_KIND  # kinds to train one by one: fewer where each is compiled for seconds

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Called by pytest: a test for each layer, type and optimiser that the runtime says it has."""
        can, alone = self.description, self.possible_alone()
        cases: Dict[str, List[Any]] = {
            "layer": alone,
            "learning_layer": [layer for layer in alone if work(layer).parameters],
            "impossible_layer": [STRANGER, *(layer for layer in every_example() if can.lacks(layer))],
            "optimizer": list(can.optimizers),
            "dtype": list(can.dtypes),
        }
        for argument in cases.keys() & set(metafunc.fixturenames):
            metafunc.parametrize(argument, cases[argument], ids=lambda case: getattr(case, "kind", case))

    @property
    def description(self) -> Description:
        return description_of(self.name)

    def possible_alone(self) -> List[Layer]:
        """Only the first of each kind where each would be compiled."""
        each = [[x for x in EXAMPLES[kind] if not self.description.lacks(x)] for kind in EXAMPLES if kind in self.alone]
        return [layer for found in each for layer in (found[:1] if self.description.compiles else found)]

    def runtime(self) -> Runtime:
        found = find_runtime(self.name)
        found.prepare(1)
        return found

    def built(self, workload: Dict[str, Any], **setup: Any) -> Training:
        return self.runtime().build(workload, TrainingSetup(self.name, **setup))

    def test_it_really_learns(self, optimizer: str) -> None:
        training = self.built(separable(), optimizer=optimizer)
        before = weights_of(training)
        first, last = trained(training, 300)
        assert last < 0.99 * first
        assert all(now != then for now, then in zip(weights_of(training), before))

    def test_a_layer_learns_and_its_parameters_change(self, learning_layer: Layer) -> None:
        training = self.built(workload(learning_layer), optimizer=self.description.optimizers[-1])
        before = weights_of(training)
        first, last = trained(training, 60)
        assert last < first
        assert weights_of(training) != before

    def test_a_layer_has_the_parameters_of_the_table(self, layer: Layer) -> None:
        training = self.built(workload(layer), optimizer=self.description.optimizers[-1])
        assert training.parameters == work(layer).parameters

    def test_parameters_have_the_shapes_of_torch(self, layer: Layer) -> None:
        """In whichever order a library keeps a tensor's dimensions."""
        if "torch" not in installed():
            raise SkipTest("PyTorch is not installed, which tells the shapes")
        ours = self.built(workload(layer), optimizer=self.description.optimizers[-1]).weights()
        theirs = find_runtime("torch").build(workload(layer), TrainingSetup()).weights()
        assert sorted(sorted(w.shape) for w in ours) == sorted(sorted(w.shape) for w in theirs)

    def test_all_that_it_can_build_trains_in_one_network(self) -> None:
        """Dropout makes each loss uncertain; what forty steps learn is more than that."""
        every = [layer for layer in every_example() if not self.description.lacks(layer)]
        training = self.built(workload(*every), optimizer=self.description.optimizers[-1])
        assert training.parameters == sum(work(layer).parameters for layer in every)
        first, last = trained(training, 40)
        assert last < first

    def test_it_trains_in_this_type(self, dtype: str) -> None:
        _, last = trained(self.built(separable(), dtype=dtype), 3)
        assert math.isfinite(last)

    def test_the_same_block_starts_from_the_same_weights(self) -> None:
        once, again = (trained(self.built(separable()), 2) for _ in range(2))
        assert once == again

    def test_nothing_is_left_running_when_a_step_returns(self) -> None:
        """A step that returned early would go on to use the processor while we sleep."""
        heavy = conv(size=(48, 48), channels=(32, 64))
        if self.description.lacks(heavy):
            heavy = Layer("linear", {"lead": (4096,), "bias": True}, 128, 256)
        training = self.built(workload(heavy))
        trained(training, 2)
        began = time.process_time()
        for _ in range(3):
            training.step()
        busy = time.process_time() - began
        began = time.process_time()
        time.sleep(0.3 * busy + 0.02)
        assert time.process_time() - began < 0.2 * busy

    def test_the_yardstick_learns_and_stays_finite(self) -> None:
        first, last = trained(self.runtime().yardstick(), 50)
        assert math.isfinite(last)
        assert last < first

    def test_an_impossible_layer_is_refused_by_name(self, impossible_layer: Layer) -> None:
        refused = self._refused(workload(Layer("linear", {"lead": (3,), "bias": True}, 4, 4), impossible_layer))
        assert refused.type == "variant_failed"
        assert (impossible_layer.name or impossible_layer.kind) in str(refused)

    def test_a_factory_that_is_not_there_is_refused(self) -> None:
        self._refused({"factory": "nothing"})

    def _refused(self, what: Dict[str, Any]) -> WorkerError:
        try:
            self.built(what)
        except WorkerError as refused:
            return refused
        raise AssertionError(f"{self.name} refuses nothing of {what}")


def every_example() -> List[Layer]:
    return [layer for layers in EXAMPLES.values() for layer in layers]


def workload(*layers: Layer) -> Dict[str, Any]:
    return {"layers": Network(layers, 3).to_json()}


def separable() -> Dict[str, Any]:
    """Twelve points in four dimensions and three classes, which thirty-two hidden units part."""
    relu = (TrailingOp("elementwise", 12 * 32, 12 * 32),)
    hidden = Layer("linear", {"lead": (12,), "bias": True}, 4, 32, relu, input_grad=False)
    return workload(hidden, Layer("linear", {"lead": (12,), "bias": True}, 32, 3))


def trained(training: Training, steps: int) -> Tuple[float, float]:
    training.step()
    first = training.last_loss()
    for _ in range(steps):
        training.step()
    return first, training.last_loss()


def weights_of(training: Training) -> List[Any]:
    return [weight.tolist() for weight in training.weights()]
