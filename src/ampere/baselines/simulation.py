"""Simulation: the uniform latency model of ZigZag, on a described core.

layer -> loop nests of its products (loop_nests) -> ZigZag: cycles and picojoules of each on the core -> summed
cost(network) = factor * simulated(network),   cycles where time was measured, picojoules where a counter read joules

For each nest three orders of its loops are simulated, which keep the result, the weights or the input in place the
longest; the one with the fewest cycles counts. (All orders, as ZigZag searches them, take two minutes a convolution.)
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ampere.core import Network
from ampere.estimation.features import Array

from .counts import fit_proportional
from .loop_nests import LoopNest, loop_nests
from .method import Estimator, Evidence, Method

BITS = 32  # of a value
FITTED = 16  # networks that the factor is fitted to, at most: simulating one takes seconds
LOOPS = ("B", "G", "K", "C", "OY", "OX", "FY", "FX")
ORDERS = (  # from the innermost loop
    ("FX", "FY", "C", "OX", "OY", "B", "K", "G"),
    ("OX", "OY", "B", "FX", "FY", "C", "K", "G"),
    ("K", "FX", "FY", "C", "OX", "OY", "B", "G"),
)


class Memory(NamedTuple):
    """A memory that the whole array shares; picojoules are of one access of so many bits."""

    name: str
    bytes: int
    bits_a_cycle: int
    picojoules: float
    holds: tuple[str, ...] = ("I1", "I2", "O")


class Core(NamedTuple):
    """An array of multipliers, each dimension with the loops that it may run at once, and memories from the inside."""

    name: str
    array: tuple[tuple[int, tuple[str, ...]], ...]
    multiplication_picojoules: float
    memories: tuple[Memory, ...]


# Energies of an access: M. Horowitz, Computing's Energy Problem, ISSCC 2014 (45 nm), by size; a CPU's sizes are usual.
CPU = Core(
    "cpu",
    ((8, ("K",)), (2, ("OX", "B", "C", "OY"))),  # two vector units of 8 values
    4.6,
    (
        Memory("registers", 512, 512, 2.0, ("O",)),
        Memory("first_cache", 32 << 10, 512, 160.0),
        Memory("second_cache", 1 << 20, 256, 400.0),
        Memory("last_cache", 16 << 20, 128, 600.0),
        Memory("dram", 1 << 34, 64, 2000.0),
    ),
)
EDGE = Core(
    "edge",
    ((16, ("K",)), (16, ("C", "OX", "B"))),  # an array of multipliers behind one buffer
    4.6,
    (
        Memory("accumulators", 4096, 8192, 32.0, ("O",)),
        Memory("weights", 16 << 10, 8192, 256.0, ("I2",)),
        Memory("buffer", 512 << 10, 1024, 800.0),
        Memory("dram", 1 << 33, 64, 2000.0),
    ),
)


def unavailable() -> str:
    missing = [name for name in ("zigzag", "six") if importlib.util.find_spec(name) is None]
    return "ZigZag is not installed: pip install 'ampere-energy[simulation]' (Python 3.11 or later)" if missing else ""


def fit(core: Core, evidence: Evidence) -> Estimator:
    picked = np.unique(np.linspace(0, len(evidence.networks) - 1, FITTED).round().astype(int))
    some = Evidence(
        tuple(evidence.networks[i] for i in picked),
        tuple(evidence.stages[i] for i in picked),
        evidence.costs[picked],
        evidence.in_joules,
    )
    return fit_proportional(lambda networks: simulated(core, networks, evidence.in_joules), some)


def simulated(core: Core, networks: Sequence[Network], in_joules: bool) -> Array:
    """Cycles of a step of each network, or picojoules."""
    return np.array([sum(_simulated_layers(core, network, in_joules)) for network in networks], dtype=float)


def _simulated_layers(core: Core, network: Network, in_joules: bool) -> Iterator[float]:
    for layer, count in network.distinct.items():
        for nest, times in loop_nests(layer):
            cycles, picojoules = simulate(core, nest)
            yield count * times * (picojoules if in_joules else cycles)


@lru_cache(maxsize=65536)
def simulate(core: Core, nest: LoopNest) -> tuple[float, float]:
    """Cycles and picojoules of one nest, with the order of loops that takes the fewest cycles."""
    with _quiet():
        return min(_Simulator.of(core).orders(nest))


@contextmanager
def _quiet() -> Iterator[None]:
    """ZigZag logs each step that it takes."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


class _Simulator:
    """ZigZag's description of one core."""

    def __init__(self, core: Core) -> None:
        from zigzag.parser.accelerator_factory import AcceleratorFactory
        from zigzag.parser.accelerator_validator import AcceleratorValidator

        self._core = core
        checked = AcceleratorValidator(_described(core))
        assert checked.validate(), checked.validator.errors
        self._accelerator = AcceleratorFactory(checked.normalized_data).create()

    @staticmethod
    @lru_cache(maxsize=8)
    def of(core: Core) -> _Simulator:
        return _Simulator(core)

    def orders(self, nest: LoopNest) -> Iterator[tuple[float, float]]:
        from zigzag.cost_model.cost_model import CostModelEvaluation
        from zigzag.mapping.temporal_mapping import TemporalMappingType
        from zigzag.opt.loma.engine import LomaEngine
        from zigzag.opt.loma.memory_allocator import MemoryAllocator

        how = TemporalMappingType.UNEVEN
        layer, at_once, at_once_whole = self._mapped(nest)
        engine = LomaEngine(accelerator=self._accelerator, layer=layer, spatial_mapping=at_once, mapping_type=how)
        left = {str(loop): (loop, size) for loop, size in engine.get_temporal_loops().items()}
        some = left or {"B": (layer.layer_dims[0], 1)}
        for order in dict.fromkeys(tuple(some[name] for name in order if name in some) for order in ORDERS):
            placed = MemoryAllocator(self._accelerator, layer, at_once, list(order), how).run()
            cost = CostModelEvaluation(
                accelerator=self._accelerator,
                layer=layer,
                spatial_mapping=at_once,
                spatial_mapping_int=at_once_whole,
                temporal_mapping=placed,
                access_same_data_considered_as_no_access=True,
            )
            yield float(cost.latency_total2), float(cost.energy_total)

    def _mapped(self, nest: LoopNest) -> tuple[Any, Any, Any]:
        """ZigZag's form of a nest, and the loops that the array runs at once."""
        from zigzag.parser.mapping_validator import MappingValidator
        from zigzag.parser.workload_factory import LayerNodeFactory
        from zigzag.parser.workload_validator import WorkloadValidator
        from zigzag.stages.mapping.spatial_mapping_conversion import SpatialMappingConversionStage

        mapping = MappingValidator([{"name": "default", "spatial_mapping": self._at_once(nest)}])
        workload = WorkloadValidator([_layer(nest)])
        assert mapping.validate(), mapping.validator.errors
        assert workload.validate(), workload.validator.errors
        layer = LayerNodeFactory(workload.normalized_data[0], mapping.normalized_data).create()
        layer.spatial_mapping.initialize_oa_dims(self._accelerator.operational_array.dimension_sizes)
        stage = SpatialMappingConversionStage([_no_stage], accelerator=self._accelerator, layer=layer)
        return layer, *stage.convert_user_spatial_mapping(layer.spatial_mapping)

    def _at_once(self, nest: LoopNest) -> dict[str, list[str]]:
        found = {}
        for number, (size, loops) in enumerate(self._core.array, 1):
            loop = next((name for name in loops if getattr(nest, name) > 1), loops[0])
            found[f"D{number}"] = [f"{loop}, {min(size, getattr(nest, loop))}"]
        return found


def _no_stage(*_: Any, **__: Any) -> None:
    """The stage after the conversion, which is not run."""


def _layer(nest: LoopNest) -> dict[str, Any]:
    kernel, image = "[g][k][c][fy][fx]", "[b][g][k][oy][ox]"
    result, weights = (kernel, image) if nest.of_weights else (image, kernel)
    return {
        "id": 0,
        "operator_type": "Conv",
        "equation": f"O{result}+=W{weights}*I[b][g][c][iy][ix]",
        "dimension_relations": [
            f"i{axis}={step}*o{axis}+{spread}*f{axis}"
            for axis, step, spread in zip("yx", nest.stride, nest.dilation, strict=True)
        ],
        "loop_dims": list(LOOPS),
        "loop_sizes": [getattr(nest, name) for name in LOOPS],
        "operand_precision": {"W": BITS, "I": BITS, "O": BITS, "O_final": BITS},
        "operand_source": {"W": 0, "I": 0},
    }


def _described(core: Core) -> dict[str, Any]:
    dimensions = [f"D{number}" for number, _ in enumerate(core.array, 1)]
    return {
        "name": core.name,
        "operational_array": {
            "unit_energy": core.multiplication_picojoules,
            "unit_area": 1,
            "dimensions": dimensions,
            "sizes": [size for size, _ in core.array],
        },
        "memories": {
            memory.name: {
                "size": 8 * memory.bytes,
                "r_cost": memory.picojoules,
                "w_cost": memory.picojoules,
                "area": 0,
                "latency": 1,
                "operands": list(memory.holds),
                "served_dimensions": dimensions,
                "ports": [
                    _port("read", memory, "tl", "th"),
                    _port("write", memory, "fh", "fl"),
                ],
            }
            for memory in core.memories
        },
    }


def _port(kind: str, memory: Memory, way: str, of_results: str) -> dict[str, Any]:
    """A port for everything that a memory holds, and for results that are not complete."""
    uses = [f"{operand}, {way}" for operand in memory.holds] + [f"O, {of_results}"] * ("O" in memory.holds)
    width = {"bandwidth_min": BITS, "bandwidth_max": memory.bits_a_cycle}
    return {"name": f"{kind[0]}_port_1", "type": kind, **width, "allocation": uses}


def _method(name: str, title: str, core: Core) -> Method:
    fitted: Callable[[Evidence], Estimator] = lambda evidence: fit(core, evidence)  # noqa: E731
    return Method(name, title, "networks", fitted, unavailable, slow=True)


ON_CPU = _method("simulation", "simulated loop nests on a CPU with caches (ZigZag), times a factor", CPU)
ON_EDGE = _method("simulation_edge", "simulated loop nests on an edge accelerator (ZigZag), times a factor", EDGE)
