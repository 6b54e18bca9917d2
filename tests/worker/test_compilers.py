"""A compiler that is missing or fails is one line with a remedy, and costs nothing but the variant."""

import os

import pytest
from tests.layer_examples import conv

from ampere.worker.errors import WorkerError

COMPILED = {"runtime": "torch-compile"}


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
