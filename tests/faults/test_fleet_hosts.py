"""A fleet of hosts behind cables: one is cut off, one hangs and one lies in the middle, and nothing else is touched."""

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.fleet.hosts import ALONE, BEAT_SECONDS, CUT, HANGS, LIAR, UNAVAILABLE
from tests.listening import TOKEN
from tests.processes import run_script

from ampere.devices.answers import MOST_WATTS
from ampere.storage.profile import Profile

ROOT = Path(__file__).parents[2]
IN_THE_LAB = "from pathlib import Path; from tests.fleet.hosts import main; main(Path({!r}))"
needed = [program for program in ("node", "ip", "nsenter", "unshare") if not shutil.which(program)]


@pytest.mark.measured
@pytest.mark.fault(21)
@pytest.mark.skipif(bool(needed), reason=f"hosts in network namespaces need {', '.join(needed)}")
@pytest.mark.skipif(find_spec("distributed") is None, reason="dask.distributed is not installed")
def test_hosts_that_are_cut_off_hang_or_lie_are_noticed_and_the_others_go_on(tmp_path, record_property):
    environment = {**os.environ, "AMPERE_HOME": str(tmp_path), "AMPERE_WORKER_TOKEN": TOKEN}
    ran = run_script(IN_THE_LAB.format(str(tmp_path)), ROOT, environment)
    if ran.code == UNAVAILABLE:
        pytest.skip(f"network namespaces are not allowed here ({ran.out.strip()})")
    assert ran.code == 0, ran.err
    found = json.loads((tmp_path / "found.json").read_text())
    first, again = ({o["device"]: o for o in found[run]["outcomes"]} for run in ("first", "again"))
    # The rest goes on, and what cannot be is named and kept nowhere.
    assert {name for name, outcome in first.items() if outcome["result"]} == {ALONE, HANGS}
    assert "no worker answers at tcp://10.7.1.2:7070" in first[CUT]["problem"]
    assert "impossible values" in first[LIAR]["problem"]
    assert not (tmp_path / "fleet" / "fleet" / "liar.json").exists()
    assert set(found["noticed"]) == {CUT, HANGS}
    # With the cable back the same command goes on where it was, and does nothing twice.
    assert (again[ALONE], again[HANGS]) == (first[ALONE], first[HANGS])
    assert again[CUT]["result"]["measurements"] >= found["kept"] >= 1
    kept = [o.measurement for name in (ALONE, CUT, HANGS) for o in Profile.load(_file(tmp_path, name)).observations]
    assert all(0 < m.joules < MOST_WATTS * m.wall_seconds for m in kept)
    seconds = max(found["noticed"].values()) / BEAT_SECONDS
    record_property("figure", f"hosts cut off and hanging were noticed after at most {seconds:.1f} heartbeats")


def _file(home: Path, name: str) -> Path:
    return home / "fleet" / "fleet" / f"{name}.json"
