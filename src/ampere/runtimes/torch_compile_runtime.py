"""Training with PyTorch's compiler: the forward pass and its backward are compiled, loss and update run as they are.

The yardstick is PyTorch's own, uncompiled: figures of both runtimes refer to the same step.
"""

import json
import os
import shutil
import time
from collections import OrderedDict
from importlib.util import find_spec
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch
import torch._dynamo
import torch._inductor.config
from torch import Tensor, nn

from ampere.core import Network, TrainingSetup
from ampere.core.errors import WorkerError, as_worker_error

from .runtime import Training
from .table import description_of, refuse_lacking
from .torch_model import build_from_factory
from .torch_network import build_chain
from .torch_runtime import DTYPES, TorchRuntime, precise_training, trainable, use_tf32

KEPT_AT_MOST = 200  # compiled networks: one that is trained in several rounds is compiled once
RECOMPILED_AT_MOST = 100_000  # networks share code; beyond PyTorch's own limit it would stop compiling, silently
LIMITS = (  # as they are called now, and before PyTorch 2.7
    ("recompile_limit", "cache_size_limit"),
    ("accumulated_recompile_limit", "accumulated_cache_size_limit"),
)
COMPILERS = ("g++", "clang++", "c++")


class TorchCompileRuntime(TorchRuntime):
    name = "torch-compile"

    def __init__(self) -> None:
        super().__init__()
        if not any(map(shutil.which, (os.environ.get("CXX", ""), *COMPILERS))):
            raise WorkerError(
                "runtime_missing", "torch-compile needs a C++ compiler: install g++ or clang++, or use --runtime torch"
            )
        compile_all(torch._dynamo.config)
        # With Triton there would be processes that stay behind; C++ compilers are awaited by threads.
        torch._inductor.config.compile_threads = 1 if find_spec("triton") else os.cpu_count() or 1
        self._kept: OrderedDict[str, Compiled] = OrderedDict()

    def build(self, workload: Dict[str, Any], setup: TrainingSetup) -> Training:
        """What was compiled before starts again from its first weights."""
        name = json.dumps([workload, setup.name], sort_keys=True)
        known = self._kept.get(name)
        compiled = known or self._compiled(workload, setup)
        self._kept[name] = compiled
        self._kept.move_to_end(name)
        if len(self._kept) > KEPT_AT_MOST:
            self._kept.popitem(last=False)
        compiled.model.load_state_dict(compiled.first)
        made = precise_training(compiled.parameters, compiled.loss_of, setup)
        return made if known else made._replace(compile_seconds=compiled.seconds)

    def forget(self) -> None:
        """Let go of compiled networks, whose weights take the memory of a card."""
        self._kept.clear()

    def ready_to_fork(self, workload: Dict[str, Any], threads: int) -> bool:
        return False  # what a child compiles would be lost with it

    def _compiled(self, workload: Dict[str, Any], setup: TrainingSetup) -> "Compiled":
        """The first step compiles, so it is done here."""
        began = time.monotonic()
        use_tf32(setup.dtype)
        model, loss_of, parameters = self._made(workload, DTYPES[setup.dtype])
        first = {key: value.clone() for key, value in model.state_dict().items()}
        try:
            precise_training(parameters, loss_of, setup).step()
        except Exception as problem:
            raise _refusal(problem) from None
        return Compiled(model, loss_of, parameters, first, time.monotonic() - began)

    def _made(
        self, workload: Dict[str, Any], dtype: torch.dtype
    ) -> Tuple[nn.Module, Callable[[], Tensor], List[nn.Parameter]]:
        if "layers" in workload:
            network = Network.from_json(workload["layers"])
            refuse_lacking(network, self.name, description_of(self.name))
            chain = build_chain(network, dtype, self._device)
            chain.forward = torch.compile(chain.forward, dynamic=False)  # type: ignore[method-assign]
            return chain, chain.loss, chain.trained
        # Not model.compile(): of modules that are PyTorch's own, as Sequential, it compiles nothing and says nothing.
        model, loss_of = build_from_factory(
            workload, dtype, lambda made: torch.compile(made, dynamic=False), self._device
        )
        return model, loss_of, trainable(model)


def compile_all(config: Any) -> None:
    for now, before in LIMITS:
        setattr(config, now if hasattr(config, now) else before, RECOMPILED_AT_MOST)


class Compiled(NamedTuple):
    model: nn.Module
    loss_of: Callable[[], Tensor]
    parameters: List[nn.Parameter]
    first: Dict[str, Tensor]  # weights before the first step
    seconds: float


def _refusal(problem: Exception) -> WorkerError:
    """What the compiler said last is more than that it failed."""
    plain = as_worker_error(problem)
    if plain.type != "variant_failed" or type(problem).__module__.partition(".")[0] != "torch":
        return plain
    lines: List[str] = [line.strip() for line in str(problem).splitlines() if line.strip()]
    causes = [line for line in lines if "rror" in line] or lines
    return WorkerError("variant_failed", f"torch.compile failed: {causes[0][:200]}; --runtime torch needs no compiler")


create = TorchCompileRuntime
