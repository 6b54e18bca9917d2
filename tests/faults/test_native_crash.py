"""A runtime that crashes in native code: MNN does, of a depthwise convolution with more channels out than in."""

import os

import pytest
from tests.plugins import bring_runtime

from ampere.cli import main
from ampere.core import Network, TrainingSetup
from ampere.devices import LocalWorker, VariantDied
from ampere.runtimes import description_of
from ampere.runtimes.conformance import EXAMPLES, conv
from ampere.storage.profile import Profile

pytestmark = pytest.mark.fault(12)

pytest.importorskip("MNN", reason=description_of("mnn").install)
DEVICE = 5
LOOSE = """
from ampere.runtimes import table

RUNTIME = table.OURS["mnn"]._replace(module="loose_runtime", packages=("loose",), limits=lambda layer: "")


def create():
    from ampere.runtimes.mnn_runtime import MnnRuntime

    table.OURS["mnn"] = RUNTIME
    return MnnRuntime()
"""
CRASHING = """
import torch
from torch import nn


def build():
    deep = nn.Conv2d(4, 8, 3, padding=1, groups=4)
    return nn.Sequential(deep, nn.Flatten(), nn.Linear(512, 4)), torch.zeros(3, 4, 8, 8)
"""


@pytest.fixture(autouse=True)
def loose(monkeypatch, tmp_path):
    """MNN as it is where nobody refuses what crashes it."""
    bring_runtime(monkeypatch, tmp_path / "site", "loose", LOOSE)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(CRASHING)


def test_the_next_variant_is_trained():
    def workload(layer):
        return {"layers": Network((layer,), 3).to_json()}

    with LocalWorker() as device:
        with pytest.raises(VariantDied, match=r"died twice on the same variant: .* was ended by SIG.*; leave it out"):
            device.block(workload(EXAMPLES["conv_grouped"][1]), TrainingSetup("loose"), iterations=2)
        assert device.block(workload(conv()), TrainingSetup("loose"), iterations=2).ratio() > 0
        assert device.restarts == (0 if hasattr(os, "fork") else 2)  # a helper crashed, and the worker goes on


def test_what_was_measured_before_stays_and_the_end_is_one_line(capsys):
    def ampere(*words):
        return main([*words, "--runtime", "loose", "--quiet"])

    assert ampere("profile", "lenet5", "--seconds", "4", "--out", "p.json") == 0
    before = len(Profile.load("p.json").observations)
    assert ampere("profile", "net.py:build", "--seconds", "4", "--out", "p.json") == 0
    assert len(Profile.load("p.json").observations) >= before > 0
    assert "ended by SIG" in " ".join(capsys.readouterr().out.split())
    assert ampere("measure", "net.py:build", "--seconds", "1") == DEVICE
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("ampere: training died twice on the same variant: ")
    assert "was ended by SIG" in line
