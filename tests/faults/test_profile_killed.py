"""`ampere profile` itself is killed at random moments: nothing acknowledged is lost, at most one variant is repeated.

    python -m tests.faults.test_profile_killed --kills 30 --seed 1      by hand, every run a process of its own

A simulated device, so that a run takes seconds. Each block that begins is written to a log: what began and was not
recorded is trained again.
"""

import argparse
import inspect
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
from typing import Any

import pytest
from tests.processes import start_script

from ampere.storage import Profile, observations_from

pytestmark = [
    pytest.mark.fault(1, 37),
    pytest.mark.skipif(os.name != "posix", reason="kills by signals"),
]

DEVICE, KILLS = "simulated:xavier", 6
PROFILE = ["profile", "cnn5", "--device", DEVICE, "--seconds", "60", "--quiet"]
BLOCKS = 5  # of a run at most, before it is killed
LONGEST_SECONDS = 2.0  # of a run that is forked, before it is killed; a process of its own starts later


def command(home: str, words: list[str], out: str) -> None:
    """Run a command in this process, with a log of the blocks that begin, and exit."""
    os.environ["AMPERE_HOME"] = home
    from ampere.cli import main
    from ampere.devices.simulated.device import SimulatedWorker

    log = os.open(Path(home) / "began", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    train = SimulatedWorker.block

    def block(self, *given, **named):
        os.write(log, b".")
        return train(self, *given, **named)

    SimulatedWorker.block = block
    with open(out, "w") as sys.stdout:
        code = main(words)
    os._exit(code)


CODE = f"""import os, sys
from pathlib import Path
{inspect.getsource(command)}
command(sys.argv[1], sys.argv[3:], sys.argv[2])"""


def warm(home: str, words: list[str], out: str) -> Any:
    """Forked from a process that has imported everything: only what a run does itself is left to be killed in."""
    return start_script(CODE, home, out, *words)


def cold(home: str, words: list[str], out: str) -> Any:
    """From the start of Python on."""
    return subprocess.Popen([sys.executable, "-c", CODE, home, out, *words], stdout=subprocess.PIPE)


def ended(process: Any) -> int:
    process.communicate()
    return process.returncode


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
        process = start(str(home), PROFILE, os.devnull)
        # At any moment from its start, or after some blocks: while one is measured, recorded, or the next is chosen.
        blocks, deadline = moment.randrange(BLOCKS), time.monotonic() + longest_seconds
        while began(home) < begun + blocks and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(moment.uniform(0, 0.02 if blocks else longest_seconds))
        process.kill()
        killed += ended(process) == -signal.SIGKILL
        now = recorded(home)
        assert now[: len(known)] == known, "an acknowledged measurement is gone"
        repeated.append(began(home) - begun - (len(now) - len(known)))
        assert repeated[-1] in (0, 1), f"{repeated[-1]} variants would be trained again"
    assert ended(start(str(home), PROFILE, os.devnull)) == 0
    [path] = home.glob("profiles/*.json")
    assert list(Profile.load(path).observations) == recorded(home)
    assert not list(home.rglob("*.tmp"))
    return {"kills": killed, "recorded": len(recorded(home)), "repeated": sum(repeated)}


def estimate(home: Path, start) -> tuple[float, float]:
    """Joules of an iteration, and half the width of their interval."""
    words = ["estimate", "cnn5", "--device", DEVICE, "--json", "--quiet"]
    assert ended(start(str(home), words, str(home / "out"))) == 0
    record = json.loads((home / "out").read_text())
    low, high = record["joules_interval90"]
    return record["joules_per_iteration"], (high - low) / 2


def compared(folder: Path, kills: int, seed: int, start, longest_seconds: float) -> dict[str, object]:
    """A disturbed run next to an undisturbed one: their estimates differ by no more than their intervals allow."""
    counts = disturbed(folder / "disturbed", kills, seed, start, longest_seconds)
    (folder / "whole").mkdir()
    assert ended(start(str(folder / "whole"), PROFILE, os.devnull)) == 0
    (found, wide), (whole, width) = (estimate(folder / name, start) for name in ("disturbed", "whole"))
    assert abs(found - whole) <= math.hypot(wide, width), f"{found} +- {wide} J, undisturbed {whole} +- {width} J"
    return {**counts, "joules": found, "undisturbed": whole, "interval": [wide, width]}


def test_runs_killed_at_random_moments_end_as_an_undisturbed_one(tmp_path, record_property):
    pytest.importorskip("torch")
    counts = compared(tmp_path, KILLS, 0, warm, LONGEST_SECONDS)
    assert counts["kills"] == KILLS
    figure = "{kills} kills: none of {recorded} measurements lost, {repeated} repeated".format(**counts)
    record_property("figure", f"{figure}; {counts['joules']:.3g} J, undisturbed {counts['undisturbed']:.3g} J")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(compared(Path(place), chosen.kills, chosen.seed, cold, 12.0)))
