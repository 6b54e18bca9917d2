"""Runtimes that other packages bring: a good one trains, a broken one spoils nothing but itself."""

import pytest
from tests.plugins import bring_runtime

from ampere import runtimes
from ampere.core import TrainingSetup
from ampere.core.errors import WorkerError
from ampere.runtimes import Description, description_of, find_runtime, installed
from ampere.runtimes.conformance import conv
from ampere.runtimes.table import OURS

GOOD = """
from ampere.runtimes import Description

RUNTIME = Description("ampere.runtimes.torch_runtime", ("kind",), "pip install kind", frozenset({"conv"}))
"""
BROKEN = {
    "raises": ("raise RuntimeError('half\\nan installation')", "RuntimeError: half an installation"),
    "imports": ("import a_library_that_is_not_there", "No module named 'a_library_that_is_not_there'"),
    "lacks": ("", "no attribute 'RUNTIME'"),
    "tells": ("RUNTIME = {'module': 'old'}", "a Description was expected, and found a dict"),
}


def test_one_that_another_package_brings_is_found_and_trains(monkeypatch, tmp_path, layers_workload):
    bring_runtime(monkeypatch, tmp_path, "kind", GOOD)
    monkeypatch.setattr(runtimes, "_loaded", {})
    assert installed()["kind"] == "1.0"
    assert not description_of("kind").stages
    training = find_runtime("kind").build(layers_workload(conv()), TrainingSetup("kind"))
    training.step()
    assert training.parameters == 4 * 8 * 9 + 8


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_one_spoils_nothing_but_itself(monkeypatch, tmp_path, how):
    code, reason = BROKEN[how]
    bring_runtime(monkeypatch, tmp_path, "broken", code)
    assert "broken" not in installed()
    assert "torch" in installed()
    with pytest.raises(WorkerError, match="update or uninstall its package") as refused:
        description_of("broken")
    assert refused.value.type == "runtime_missing"
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_one_that_does_not_start_says_why(monkeypatch, tmp_path):
    (tmp_path / "will_not_start.py").write_text("def create():\n    raise AttributeError('no such setting')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(OURS, "stuck", Description("will_not_start", (), "pip install stuck"))
    with pytest.raises(WorkerError, match=r"stuck does not start here \(AttributeError: no such setting\)") as refused:
        find_runtime("stuck")
    assert refused.value.type == "runtime_missing"
