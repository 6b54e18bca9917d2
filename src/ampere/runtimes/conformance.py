"""What every runtime keeps to, as tests that other packages can run on a runtime of their own:

from ampere.runtimes.conformance import RuntimeConformance

class TestTiny(RuntimeConformance):
    name = "tiny"  # of its entry point
"""

import math
import time
from typing import Any, ClassVar, Dict, FrozenSet, List, Tuple
from unittest import SkipTest

from ampere.core import KINDS, Layer, Network, TrailingOp, TrainingSetup, work
from ampere.core.errors import WorkerError
from ampere.core.kinds.convolution import example as conv
from ampere.core.setup import CPU
from ampere.runtimes import find_runtime

from .runtime import Runtime, Training, placed
from .table import EVERY_KIND, Description, description_of, installed

EXAMPLES: Dict[str, List[Layer]] = {name: list(kind.examples) for name, kind in KINDS.items() if kind.examples}

OPAQUE = dict.fromkeys(("launches", "flops", "values", "parameters", "parameter_tensors"), 1)
STRANGER = Layer("opaque", {**OPAQUE, "shape_in": (3, 4), "shape_out": (3, 4)}, 4, 4, name="body.swish")


class RuntimeConformance:
    """Tests of the runtime called `name`: it is installed, has an entry point or a line in our table, and builds linear
    layers at least."""

    name: ClassVar[str]
    on: ClassVar[str] = CPU  # the processor to train on
    alone: ClassVar[FrozenSet[str]] = EVERY_KIND  # kinds to train one by one: fewer where each is compiled for seconds

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Called by pytest: a test for each layer, type and optimizer that the runtime says it has."""
        can, alone = self.description, self.possible_alone()
        cases: Dict[str, List[Any]] = {
            "layer": alone,
            "learning_layer": [layer for layer in alone if work(layer).parameters],
            "unsupported_layer": [STRANGER, *(layer for layer in every_example() if can.lacks(layer))],
            "optimizer": list(can.optimizers),
            "dtype": list(can.dtypes),
        }
        for argument in cases.keys() & set(metafunc.fixturenames):
            metafunc.parametrize(argument, cases[argument], ids=lambda case: getattr(case, "kind", case))

    @property
    def description(self) -> Description:
        return description_of(self.name)

    @property
    def usual_optimizer(self) -> str:
        """One that makes a loss fall within few steps."""
        offered = self.description.optimizers
        return "adam" if "adam" in offered else offered[0]

    def possible_alone(self) -> List[Layer]:
        """Only the first of each kind where each would be compiled."""
        each = [[x for x in EXAMPLES[kind] if not self.description.lacks(x)] for kind in EXAMPLES if kind in self.alone]
        return [layer for found in each for layer in (found[:1] if self.description.compiles else found)]

    def possible_together(self) -> List[Layer]:
        return [layer for layer in every_example() if not self.description.lacks(layer)]

    def runtime(self) -> Runtime:
        found = find_runtime(self.name)
        placed(found, self.on)
        found.prepare(1)
        return found

    def built(self, workload: Dict[str, Any], **setup: Any) -> Training:
        return self.runtime().build(workload, TrainingSetup(self.name, on=self.on, **setup))

    def test_it_really_learns(self, optimizer: str) -> None:
        training = self.built(separable(), optimizer=optimizer)
        before = weights_of(training)
        first, last = trained(training, 300)
        assert last < 0.99 * first
        assert all(now != then for now, then in zip(weights_of(training), before))

    def test_a_layer_learns_and_its_parameters_change(self, learning_layer: Layer) -> None:
        training = self.built(workload(learning_layer), optimizer=self.usual_optimizer)
        before = weights_of(training)
        first, last = trained(training, 60)
        assert last < first
        assert weights_of(training) != before

    def test_a_layer_has_the_parameters_of_the_table(self, layer: Layer) -> None:
        training = self.built(workload(layer), optimizer=self.usual_optimizer)
        assert training.parameters == work(layer).parameters

    def test_parameters_have_the_shapes_of_torch(self, layer: Layer) -> None:
        """In whichever order a library keeps a tensor's dimensions."""
        if "torch" not in installed():
            raise SkipTest("PyTorch is not installed, which the shapes are compared with")
        ours = self.built(workload(layer), optimizer=self.usual_optimizer).weights()
        placed(find_runtime("torch"), CPU)
        theirs = find_runtime("torch").build(workload(layer), TrainingSetup()).weights()
        assert sorted(sorted(w.shape) for w in ours) == sorted(sorted(w.shape) for w in theirs)

    def test_all_that_it_can_build_trains_in_one_network(self) -> None:
        """Dropout makes each loss uncertain; what forty steps learn is more than that."""
        every = self.possible_together()
        training = self.built(workload(*every), optimizer=self.usual_optimizer)
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
        """A step that returned early would go on to use the processor while we sleep. On an accelerator it may."""
        if self.on != CPU:
            raise SkipTest("steps on an accelerator are queued")
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

    def test_an_unsupported_layer_is_refused_by_name(self, unsupported_layer: Layer) -> None:
        refused = self._refused(workload(Layer("linear", {"lead": (3,), "bias": True}, 4, 4), unsupported_layer))
        assert refused.type == "variant_failed"
        assert (unsupported_layer.name or unsupported_layer.kind) in str(refused)

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
