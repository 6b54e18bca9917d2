"""`ampere profile` itself is killed at random moments: nothing acknowledged is lost, at most one variant is repeated.

    python tests/faults/test_profile_killed.py --kills 30 --seed 1      by hand, every run a process of its own

A simulated device, so that a run takes seconds. Each block that begins is written to a log: what began and was not
recorded is trained again.
"""

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ampere.storage import Profile, observations_from

pytestmark = [
    pytest.mark.fault(1, 37),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"),
]

DEVICE, KILLS = "simulated:xavier", 6
PROFILE = ["profile", "cnn5", "--device", DEVICE, "--seconds", "60", "--quiet"]
BLOCKS = 5  # of a run at most, before it is killed
LONGEST_SECONDS = 2.0  # of a run that is forked, before it is killed; a process of its own starts later


def command(home: Path, words: list[str]) -> None:
    """Run a command in this process, with a log of the blocks that begin, and exit."""
    os.environ["AMPERE_HOME"] = str(home)
    from ampere.cli import main
    from ampere.devices.simulated.device import SimulatedWorker

    log = os.open(home / "began", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    train = SimulatedWorker.block

    def block(self, *given, **named):
        os.write(log, b".")
        return train(self, *given, **named)

    SimulatedWorker.block = block
    code = main(words)
    sys.stdout.flush()
    os._exit(code)


def forked(home: Path, words: list[str], out: str = os.devnull) -> int:
    child = os.fork()
    if child == 0:
        try:
            with open(out, "w") as file:
                os.dup2(file.fileno(), 1)
            command(home, words)
        finally:
            os._exit(99)
    return child


def as_process(home: Path, words: list[str], out: str = os.devnull) -> int:
    with open(out, "w") as file:
        return subprocess.Popen([sys.executable, __file__, "--child", str(home), *words], stdout=file).pid


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def recorded(home: Path) -> list[object]:
    journal = next(home.glob("profiles/*.journal"), None)
    return list(observations_from(journal)) if journal else []


def began(home: Path) -> int:
    return (home / "began").stat().st_size if (home / "began").exists() else 0


def disturbed(home: Path, kills: int, seed: int, start, longest_seconds: float) -> dict[str, int]:
    """Kill so many runs, then let one end. Counts of what was recorded and repeated."""
    moment, killed, repeated = random.Random(seed), 0, []
    home.mkdir()
    while killed < kills:
        known, begun = recorded(home), began(home)
        child = start(home, PROFILE)
        # At any moment from its start, or after some blocks: while one is measured, recorded, or the next is chosen.
        blocks, deadline = moment.randrange(BLOCKS), time.monotonic() + longest_seconds
        while began(home) < begun + blocks and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(moment.uniform(0, 0.02 if blocks else longest_seconds))
        os.kill(child, signal.SIGKILL)
        killed += ended(child) == -signal.SIGKILL
        now = recorded(home)
        assert now[: len(known)] == known, "an acknowledged measurement is gone"
        repeated.append(began(home) - begun - (len(now) - len(known)))
        assert repeated[-1] in (0, 1), f"{repeated[-1]} variants would be trained again"
    assert ended(start(home, PROFILE)) == 0
    [path] = home.glob("profiles/*.json")
    assert list(Profile.load(path).observations) == recorded(home)
    assert not list(home.rglob("*.tmp"))
    return {"kills": killed, "recorded": len(recorded(home)), "repeated": sum(repeated)}


def estimate(home: Path, start) -> tuple[float, float]:
    """Joules of an iteration, and half the width of their interval."""
    assert ended(start(home, ["estimate", "cnn5", "--device", DEVICE, "--json", "--quiet"], str(home / "out"))) == 0
    record = json.loads((home / "out").read_text())
    low, high = record["joules_interval90"]
    return record["joules_per_iteration"], (high - low) / 2


def compared(folder: Path, kills: int, seed: int, start, longest_seconds: float) -> dict[str, object]:
    """A disturbed run next to an undisturbed one: their estimates differ by no more than their intervals allow."""
    counts = disturbed(folder / "disturbed", kills, seed, start, longest_seconds)
    (folder / "whole").mkdir()
    assert ended(start(folder / "whole", PROFILE)) == 0
    (found, wide), (whole, width) = (estimate(folder / name, start) for name in ("disturbed", "whole"))
    assert abs(found - whole) <= math.hypot(wide, width), f"{found} +- {wide} J, undisturbed {whole} +- {width} J"
    return {**counts, "joules": found, "undisturbed": whole, "interval": [wide, width]}


FORKING = """
import json, sys
from pathlib import Path
import torch
import ampere.api, ampere.profiling.running, ampere.tracing.trace
sys.path.insert(0, sys.argv[1])
from test_profile_killed import *
print(json.dumps(compared(Path(sys.argv[2]), KILLS, 0, forked, LONGEST_SECONDS)))
"""


def test_runs_killed_at_random_moments_end_as_an_undisturbed_one(tmp_path, record_property):
    """Forked from a process that has imported everything: only what a run does itself is left to be killed in."""
    pytest.importorskip("torch")
    program = [sys.executable, "-c", FORKING, str(Path(__file__).parent), str(tmp_path)]
    ran = subprocess.run(program, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    counts = json.loads(ran.stdout.splitlines()[-1])
    assert counts["kills"] == KILLS
    figure = "{kills} kills: none of {recorded} measurements lost, {repeated} repeated".format(**counts)
    record_property("figure", f"{figure}; {counts['joules']:.3g} J, undisturbed {counts['undisturbed']:.3g} J")


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        command(Path(sys.argv[2]), sys.argv[3:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(compared(Path(place), chosen.kills, chosen.seed, as_process, 12.0)))
