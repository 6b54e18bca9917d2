"""Training with JAX: flax for layers, optax for updates, one compiled function for a whole step."""

import gc
import json
import os
import time
from collections import OrderedDict
from functools import lru_cache
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import Array

from ampere.core import Network, TrainingSetup
from ampere.core.errors import ACCELERATOR, WorkerError
from ampere.core.network import InputSpec
from ampere.core.optimizers import OPTIMIZERS
from ampere.core.setup import AUTO
from ampere.core.setup import CPU as ON_CPU
from ampere.core.yardstick import YARDSTICK

from .jax_network import Arrays, Chain, Variables, loss_of, normal
from .processor import CPU, Processor
from .runtime import Training
from .table import description_of, refuse_lacking
from .user_code import failed, find_factory

SEED = 0
COMPILED_AT_MOST = 300  # programs that are kept: a variant is trained in several rounds, and compiled once
DTYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}
PLATFORMS = {"cuda": "cuda", "mps": "METAL", "xpu": "xpu"}  # by PyTorch's words


class OwnCode:
    """A flax model by its own code, with what a described network offers: variables, and a loss of them."""

    random = False  # its random numbers are those of its own nnx.Rngs, which are among its variables

    def __init__(self, workload: Dict[str, Any], dtype: Any) -> None:
        self._workload, self._dtype = workload, dtype
        self._make = find_factory(str(workload["factory"]))
        self._parts: Any = ()
        self._given: List[Any] = []
        self._order: Any = None

    def variables(self, rng: np.random.Generator) -> Variables:
        """Made anew: the arrays of the step before were given away."""
        made = self._make(**(self._workload.get("arguments") or {}))
        model, example = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
        if not isinstance(model, nnx.Module):
            raise failed("{} made no flax.nnx.Module".format(self._workload["factory"]))
        model.train()  # type: ignore[no-untyped-call]
        self._parts = nnx.split(model, nnx.Param, ...)
        self._given, self._order = jax.tree.flatten(_called_with(self._workload, example, rng))
        trained, rest = (jax.tree.leaves(part) for part in self._parts[1:])
        arrays = [self._cast(jnp.asarray(value)) for value in self._given if hasattr(value, "shape")]
        return Variables({"weights": [self._cast(w) for w in trained]}, {}, {"rest": rest, "inputs": arrays})

    def loss(self, trained: Arrays, loose: Arrays, kept: Arrays, key: Optional[Array]) -> Tuple[Array, Arrays]:
        """The loss of a step, and all that is no parameter after it."""
        graph, *shapes = self._parts
        leaves = (trained["weights"], kept["rest"])
        parts = [jax.tree.unflatten(jax.tree.structure(tree), filled) for tree, filled in zip(shapes, leaves)]
        model = nnx.merge(graph, *parts)
        arrays = iter(kept["inputs"])
        given = [next(arrays) if hasattr(value, "shape") else value for value in self._given]
        positional, named = jax.tree.unflatten(self._order, given)
        ends = [x for x in jax.tree.leaves(model(*positional, **named)) if jnp.issubdtype(x.dtype, jnp.floating)]
        if not ends:
            raise failed("the model returns no array of floating-point numbers: there is nothing to train towards")
        return loss_of(ends[0], ends[1:]), {"rest": jax.tree.leaves(nnx.state(model, nnx.Not(nnx.Param)))}

    def _cast(self, array: Array) -> Array:
        """float32 stands for the types that the model has."""
        lower = self._dtype != jnp.float32 and jnp.issubdtype(array.dtype, jnp.floating)
        return array.astype(self._dtype) if lower else array


def _called_with(workload: Dict[str, Any], example: Any, rng: np.random.Generator) -> Tuple[Any, Dict[str, Any]]:
    specs = workload.get("inputs")
    if specs is None and example is None:
        raise failed("{} returns no example inputs: give their shapes".format(workload["factory"]))
    given = example if specs is None else tuple(_array(InputSpec.from_json(spec), rng) for spec in specs)
    if isinstance(given, dict):
        return (), given
    return tuple(given) if isinstance(given, (list, tuple)) else (given,), {}


def _array(spec: InputSpec, rng: np.random.Generator) -> Array:
    if spec.dtype.startswith("float"):
        return normal(rng, spec.shape, jnp.dtype(spec.dtype))
    high = 2 if spec.high is None else spec.high
    return jnp.asarray(rng.integers(0, high, spec.shape).astype(spec.dtype))


Trainable = Union[Chain, OwnCode]


class Program(NamedTuple):
    chain: Trainable
    optimizer: optax.GradientTransformation
    step: Callable[..., Any]
    compile_seconds: float


class JaxAccelerator:
    """A device of JAX. Steps wait for their result, so nothing is queued when one returns."""

    def __init__(self, name: str, device: Any) -> None:
        self.name, self._device = name, device

    def synchronize(self) -> None:
        pass

    def timer(self) -> Callable[[], float]:
        began = time.perf_counter()
        return lambda: time.perf_counter() - began

    def release(self) -> None:
        gc.collect()

    def describe(self) -> Dict[str, Any]:
        memory = (self._device.memory_stats() or {}).get("bytes_limit")
        return {"on": self.name, "name": str(self._device.device_kind), **({"memory_bytes": memory} if memory else {})}


class JaxRuntime:
    name = "jax"

    def __init__(self) -> None:
        self._programs: OrderedDict[str, Program] = OrderedDict()
        self._threads = 0
        self._accelerator: Optional[JaxAccelerator] = None

    def place(self, on: str) -> Processor:
        """XLA chooses its platform once: a worker serves one processor."""
        if on == ON_CPU or (self._accelerator and self._accelerator.name == on):
            return self._accelerator or CPU
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # else it takes most of a card's memory
        kind, _, index = on.partition(":")
        platforms = None if on == AUTO else f"{PLATFORMS.get(kind, kind)},cpu"
        jax.config.update("jax_platforms", platforms)  # type: ignore[no-untyped-call]
        try:
            found = jax.devices()
        except RuntimeError as problem:
            line = " ".join(str(problem).split())[:160]
            raise WorkerError(ACCELERATOR, f"JAX finds no {kind} ({line}): install its build of jaxlib") from None
        if found[0].platform == ON_CPU:
            return CPU
        if int(index or 0) >= len(found):
            raise WorkerError(ACCELERATOR, f"{on} is not visible: JAX sees {len(found)} of {kind}, counted from 0")
        device = found[int(index or 0)]
        jax.config.update("jax_default_device", device)  # type: ignore[no-untyped-call]
        words = {platform: word for word, platform in PLATFORMS.items()}
        kind = words.get(device.platform, "cuda" if device.platform == "gpu" else device.platform)
        self._accelerator = JaxAccelerator(f"{kind}:{int(index or 0)}" if kind != "mps" else kind, device)
        return self._accelerator

    def prepare(self, threads: int) -> None:
        """XLA reads these once, when it first runs; a worker serves one number of threads."""
        if not self._threads:
            if self._accelerator is None:  # the CPU's time is measured, whatever else JAX could use
                jax.config.update("jax_platforms", "cpu")  # type: ignore[no-untyped-call]
            os.environ["NPROC"] = str(threads)
            flags = os.environ.get("XLA_FLAGS", "")
            os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
            self._threads = threads

    def build(self, workload: Dict[str, Any], setup: TrainingSetup) -> Training:
        program, compiled_now = self._program(workload, setup)
        return _training(program, program.compile_seconds if compiled_now else 0.0)

    def yardstick(self) -> Training:
        program, _ = self._program({"layers": YARDSTICK.to_json()}, TrainingSetup("jax"))
        return _training(program, 0.0)

    def ready_to_fork(self, workload: Dict[str, Any], threads: int) -> bool:
        return False  # XLA's threads do not survive a fork

    def _program(self, workload: Dict[str, Any], setup: TrainingSetup) -> Tuple[Program, bool]:
        name = json.dumps([workload, setup.name], sort_keys=True)
        if name in self._programs:
            self._programs.move_to_end(name)
            return self._programs[name], False
        self._programs[name] = _compiled(workload, setup)
        if len(self._programs) > COMPILED_AT_MOST:
            self._programs.popitem(last=False)
        return self._programs[name], True


def _compiled(workload: Dict[str, Any], setup: TrainingSetup) -> Program:
    began = time.monotonic()
    chain, optimizer = _trainable(workload, DTYPES[setup.dtype]), OPTIMIZERS[setup.optimizer].make("jax")
    # The first three are given away: XLA writes what they become where they were.
    step = jax.jit(_step_of(chain, optimizer), donate_argnums=(0, 1, 2))
    program = step.lower(*_start(chain, optimizer)).compile()
    return Program(chain, optimizer, program, time.monotonic() - began)


def _trainable(workload: Dict[str, Any], dtype: Any) -> Trainable:
    if "layers" not in workload:
        return OwnCode(workload, dtype)
    network = Network.from_json(workload["layers"])
    refuse_lacking(network, "jax", description_of("jax"))
    return Chain(network, dtype)


def _step_of(chain: Trainable, optimizer: optax.GradientTransformation) -> Callable[..., Any]:
    def step(trained: Any, state: Any, statistics: Any, loose: Any, kept: Any, key: Any) -> Any:
        now, following = jax.random.split(key) if chain.random else (None, key)
        every = {**kept, **statistics}
        find = jax.value_and_grad(chain.loss, argnums=(0, 1), has_aux=True)
        (loss, after), (gradients, passed_on) = find(trained, loose, every, now)
        updates, state = optimizer.update(gradients, state, trained)
        return optax.apply_updates(trained, updates), state, after, following, loss, passed_on

    return step


def _start(chain: Trainable, optimizer: optax.GradientTransformation) -> Tuple[Any, ...]:
    trained, loose, kept = chain.variables(np.random.default_rng(SEED))
    statistics = {name: kept.pop(name) for name in list(kept) if name.startswith("rest")}
    return trained, _optimizer_state(optimizer, trained), statistics, loose, kept, _key()


def _optimizer_state(optimizer: optax.GradientTransformation, trained: Any) -> Any:
    """Zeros, made without compiling a program for each shape."""
    shapes = jax.eval_shape(optimizer.init, trained)
    return jax.tree.map(lambda leaf: jnp.asarray(np.zeros(leaf.shape, leaf.dtype)), shapes)


@lru_cache(maxsize=1)
def _key() -> Any:
    return jax.random.PRNGKey(SEED)


def _training(program: Program, compile_seconds: float) -> Training:
    trained, state, statistics, loose, kept, key = _start(program.chain, program.optimizer)
    now: List[Any] = [trained, state, statistics, key]
    last: List[Any] = []

    def step() -> None:
        made = program.step(now[0], now[1], now[2], loose, kept, now[3])
        now[:] = made[:4]
        last[:] = [made[4]]
        jax.block_until_ready(made)  # type: ignore[no-untyped-call]

    weights = jax.tree.leaves(trained)
    count = sum(int(np.prod(weight.shape)) for weight in weights)
    return Training(
        step,
        lambda: float(last[0]),
        count,
        compile_seconds=compile_seconds,
        weights=lambda: tuple(jax.tree.leaves(now[0])),
    )


create = JaxRuntime
