"""A compiler that is missing or fails is one line with a remedy, and costs nothing but the variant."""

import os
import threading
from types import SimpleNamespace

import pytest

from ampere.core.errors import WorkerError
from ampere.core.protocol import COMPILE_TIMEOUT_EXIT_CODE
from ampere.runtimes.conformance import conv
from ampere.worker.guards import compiling_at_most, in_child

COMPILED = {"runtime": "torch-compile"}
OLD_LIMITS = ("cache_size_limit", "accumulated_cache_size_limit")  # before PyTorch 2.7


def test_without_a_compiler_there_is_no_torch_compile(monkeypatch):
    from ampere.runtimes import torch_compile_runtime

    monkeypatch.setattr(torch_compile_runtime.shutil, "which", lambda name: None)
    with pytest.raises(WorkerError, match=r"install g\+\+ or clang\+\+, or use --runtime torch") as refused:
        torch_compile_runtime.create()
    assert refused.value.type == "runtime_missing"


def test_a_compiler_that_fails_is_reported_and_the_worker_goes_on(start_worker, layers_workload, tmp_path):
    broken = {"CXX": "false", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    worker = start_worker(**{**os.environ, **broken})
    error = worker.block(layers_workload(conv()), setup=COMPILED)["error"]
    assert error["type"] == "variant_failed"
    assert error["message"].startswith("torch.compile failed: ")
    assert "--runtime torch" in error["message"]
    assert "result" in worker.block(layers_workload(conv()))


@pytest.mark.parametrize("names", [("recompile_limit", "accumulated_recompile_limit"), OLD_LIMITS], ids=["new", "old"])
def test_compiling_never_stops_in_old_and_new_versions_of_torch(names):
    from ampere.runtimes.torch_compile_runtime import RECOMPILED_AT_MOST, compile_all

    config = SimpleNamespace(**dict.fromkeys(names, 8))
    compile_all(config)
    assert vars(config) == dict.fromkeys(names, RECOMPILED_AT_MOST)


@pytest.mark.parametrize("what", ["layers", "factory"])
def test_what_is_trained_was_compiled(layers_workload, workload_of, what):
    import torch._dynamo
    from torch._dynamo.utils import counters

    from ampere.core import TrainingSetup
    from ampere.runtimes import torch_compile_runtime

    torch._dynamo.reset()  # graphs of tests before this one would serve again
    runtime, before = torch_compile_runtime.create(), counters["stats"]["unique_graphs"]
    runtime.prepare(1)
    runtime.build(layers_workload(conv()) if what == "layers" else workload_of("mlp"), TrainingSetup("torch-compile"))
    assert counters["stats"]["unique_graphs"] > before


def test_one_that_takes_too_long_is_reported_before_the_process_ends(start_worker, layers_workload):
    pytest.importorskip("jax", reason="JAX is not installed here")
    worker = start_worker()
    reported = worker.block(layers_workload(conv()), setup={"runtime": "jax"}, compile_limit=0.01)
    assert reported["error"] == {"type": "compile_timeout", "message": "compiling took longer than 0.01 s"}
    assert worker.process.stdout.read() == ""
    assert worker.process.wait(10) == COMPILE_TIMEOUT_EXIT_CODE


def test_one_in_a_process_of_its_own_ends_only_that():
    def compiling():
        with compiling_at_most(0.01):
            return threading.Event().wait(10)

    with pytest.raises(WorkerError) as reported:
        in_child(compiling)
    assert reported.value.type == "compile_timeout"
