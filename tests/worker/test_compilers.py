"""A compiler that is missing or fails is one line with a remedy, and costs nothing but the variant."""

import os
from types import SimpleNamespace

import pytest

from ampere.worker.errors import WorkerError
from ampere.worker.runtimes.layer_examples import conv

COMPILED = {"runtime": "torch-compile"}
OLD_LIMITS = ("cache_size_limit", "accumulated_cache_size_limit")  # before PyTorch 2.7


def test_without_a_compiler_there_is_no_torch_compile(monkeypatch):
    from ampere.worker.runtimes import torch_compile_runtime

    monkeypatch.setattr(torch_compile_runtime.shutil, "which", lambda name: None)
    with pytest.raises(WorkerError, match=r"install g\+\+ or clang\+\+, or use --runtime torch") as refused:
        torch_compile_runtime.create()
    assert refused.value.type == "runtime_missing"


def test_a_compiler_that_fails_is_told_and_the_worker_goes_on(start_worker, layers_subject, tmp_path):
    broken = {"CXX": "false", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    worker = start_worker(**{**os.environ, **broken})
    error = worker.block(layers_subject(conv()), setup=COMPILED)["error"]
    assert error["type"] == "variant_failed"
    assert error["message"].startswith("torch.compile failed: ")
    assert "--runtime torch" in error["message"]
    assert "result" in worker.block(layers_subject(conv()))


@pytest.mark.parametrize("names", [("recompile_limit", "accumulated_recompile_limit"), OLD_LIMITS], ids=["new", "old"])
def test_compiling_never_stops_in_old_and_new_versions_of_torch(names):
    from ampere.worker.runtimes.torch_compile_runtime import RECOMPILED_AT_MOST, compile_all

    config = SimpleNamespace(**dict.fromkeys(names, 8))
    compile_all(config)
    assert vars(config) == dict.fromkeys(names, RECOMPILED_AT_MOST)


@pytest.mark.parametrize("what", ["layers", "factory"])
def test_what_is_trained_was_compiled(layers_subject, subject_of, what):
    import torch._dynamo
    from torch._dynamo.utils import counters

    from ampere.network import TrainingSetup
    from ampere.worker.runtimes import torch_compile_runtime

    torch._dynamo.reset()  # graphs of tests before this one would serve again
    runtime, before = torch_compile_runtime.create(), counters["stats"]["unique_graphs"]
    runtime.prepare(1)
    runtime.build(layers_subject(conv()) if what == "layers" else subject_of("mlp"), TrainingSetup("torch-compile"))
    assert counters["stats"]["unique_graphs"] > before
