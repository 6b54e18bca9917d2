"""A short run of chaos: see chaos.py, which runs for longer by hand."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.fault(1, 37),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc"),
]

SECONDS = 12  # the turn that is under way then is ended


def test_no_invariant_is_broken(record_property):
    pytest.importorskip("torch")
    pytest.importorskip("torch_pruning")
    program = [sys.executable, str(Path(__file__).with_name("chaos.py")), "--seconds", str(SECONDS), "--simulated"]
    ran = subprocess.run(program, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    counts = json.loads(ran.stdout)
    record_property("figure", f"chaos for {SECONDS} s (turns: {counts['turns']}): no invariant broken")
