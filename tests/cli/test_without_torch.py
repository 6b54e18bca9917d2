"""A stored profile and a network file are enough: no PyTorch, and little memory."""

import os
import subprocess
import sys

import pytest

from ampere.storage.networks import save_network
from ampere.storage.profile import Profile

RUNTIME_MISSING = 6
LARGEST_RESIDENT_BYTES = 200e6


@pytest.fixture
def net(torchless):
    profile = Profile.load(torchless.profile_path)
    network = next(o.network for o in profile.observations if o.purpose == "network")
    save_network(network, torchless.folder / "net.json")
    return "net.json"


def test_torch_is_really_absent(torchless):
    environment = {**os.environ, **torchless.environment}

    def importing(names):
        return subprocess.run([*torchless.python, "-c", f"import {names}"], env=environment, capture_output=True)

    assert importing("torch").returncode
    assert not importing("ampere, scipy, rich").returncode


def test_a_network_file_is_estimated(torchless, net):
    ran, shown = torchless.each(f"estimate {net} --iterations 1000 --json", f"estimate {net}")
    assert ran.code == 0, ran.err
    assert ran.record["total"]["joules"] == pytest.approx(1000 * ran.record["joules_per_iteration"])
    assert shown.code == 0, shown.err
    assert "per iteration" in shown.said


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_the_memory_stays_small(torchless, net):
    peak = "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    code = f"from ampere.cli import main; main(['estimate', '{net}', '--quiet']); {peak}"
    environment = {**os.environ, **torchless.environment, "AMPERE_HOME": str(torchless.home)}
    command = [*torchless.python, "-c", code]
    ran = subprocess.run(command, env=environment, cwd=torchless.folder, capture_output=True, text=True)
    assert "per iteration" in ran.stdout
    assert int(ran.stdout.split()[-2]) * 1024 <= LARGEST_RESIDENT_BYTES


def test_what_needs_torch_says_how_to_get_it(torchless, refused):
    *wanting, listed = torchless.each(
        "estimate lenet5", "profile lenet5", "measure lenet5", "trace net.py:build", "devices"
    )
    for ran in wanting:
        refused(ran, RUNTIME_MISSING, "pip install 'ampere-energy[torch]'")
    assert listed.code == 0, listed.err
    assert "pip install 'ampere-energy[torch]'" in listed.said
