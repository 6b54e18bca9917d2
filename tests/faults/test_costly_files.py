"""A file that is accepted is loaded and estimated with in 2 s and 500 MB; a larger one is refused with its limit."""

import json
import os
import subprocess
import sys
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ampere.devices.external_meters.log import MOST_ROWS
from ampere.storage import Header, Profile
from ampere.storage.checks import MOST_DIFFERENT, MOST_KNOWN, MOST_NAMES

pytestmark = [
    pytest.mark.fault(24),
    pytest.mark.alone,
    pytest.mark.skipif(sys.platform != "linux", reason="a process's peak of memory is read from /proc"),
]

PROFILE = Profile.load(Path(__file__).parents[1] / "fixtures" / "profile-format-2.json")
NETWORK = PROFILE.observations[0].network.to_json()
CONV = NETWORK["layers"][1]

READING = 0.05  # the two seconds are those of a machine that reads 3 MB of JSON in so many

# The command line sets the threads of matrices to one as well: more only wait for each other.
USE_ALL = """
import json, sys, time
from pathlib import Path
from ampere.devices.external_meters.log import Log, LogSpec
from ampere.estimation.estimator import Estimator
from ampere.storage import Profile, load_network
from ampere.storage.recording import profile_from

def megabytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM"))

known = []

def estimated(profile):
    known.append(Estimator(profile))
    return known[-1].estimate(profile.observations[0].network).joules

USES = {
    "profile": lambda path: estimated(Profile.load(path)),
    "journal": lambda path: estimated(profile_from(path)),
    "network": lambda path: known[0].estimate(load_network(path)).joules,
    "log": lambda path: Log(LogSpec.of(str(path), {"time": "1", "power": "2"})).advance(),
}
TEXT = json.dumps([{"a": n, "b": [n / 7, str(n)]} for n in range(60_000)])

def reading():
    began = time.process_time()
    json.loads(TEXT)
    return time.process_time() - began

found = {}
for path in sorted(Path(sys.argv[1]).iterdir(), reverse=True):  # a profile before the networks to estimate with it
    began = time.process_time()
    try:
        used = USES[path.name.split("-")[0]](path)
    except Exception as error:
        used = f"{type(error).__name__}: {error}"
    spent = time.process_time() - began
    found[path.name] = [used, spent, path.stat().st_size, megabytes()]
found["reading"] = [1, sorted(reading() for _ in range(5))[2], len(TEXT), 0]
json.dump(found, sys.stdout)
"""


def sealed(kind: str, body: Any) -> bytes:
    head, text = b'{"ampere":"%b","format":2,' % kind.encode(), json.dumps(body).encode()
    return b'%b"sha256":"%b","body":%b}\n' % (head, sha256(head + text).hexdigest().encode(), text)


def channels(n: int) -> list[int]:
    return [1 + n % 97, 1 + n // 97]


def network(layers: int) -> bytes:
    return sealed("network", {**NETWORK, "layers": [{**CONV, "channels": channels(n)} for n in range(layers)]})


def profile(observations: int, layers: int, each: int, windows: int, names: int = 1) -> dict[str, Any]:
    """Every observation is of other layers than the one before, and its joules were read by a counter."""
    record = PROFILE.to_json()
    first, row = record["observations"][0], record["layers"]["rows"][1]
    target = [[4, 0.04 + i * 1e-4, 0.04, 0.4, 3] for i in range(windows)]
    yardstick = [[4, 0.04, 0.04 + i * 1e-4, 0.4, 3] for i in range(windows + 1)]
    measured = {**first["measurement"], "target": target, "yardstick": yardstick}
    record["layers"]["rows"] = [[row[0], *channels(n), *row[3:]] for n in range(layers)]
    record["observations"] = [
        {
            "network": {
                **{"name": f"n{i}", "batch": 10, "notes": [], "layers": [(i * each + k) % layers for k in range(each)]},
                "names": [f"l{(i * each + k) % names}" for k in range(each)],
            },
            "measurement": measured,
            "purpose": "network",
        }
        for i in range(observations)
    ]
    return {**record, "fit": {}, "yardstick_joules": 0.01}


def journal(record: dict[str, Any]) -> bytes:
    rows = record["layers"]["rows"]
    lines: list[Any] = [{"header": Header.of(PROFILE).to_json()}]
    for one in record["observations"]:
        used = {"functions": record["layers"]["functions"], "rows": [rows[n] for n in one["network"]["layers"]]}
        own = {**one["network"], "layers": [*range(len(one["network"]["layers"]))]}
        lines.append({"observation": {**one, "network": own, "layers": used}, "profiling_seconds": 1.0})
    texts = [json.dumps(line).encode() for line in lines]
    return b"".join(b"%08x %b\n" % (zlib.crc32(text), text) for text in texts)


def log(rows: int) -> bytes:
    return b"".join(b"%d.%02d,4\n" % divmod(n, 100) for n in range(rows))


ACCEPTED = {  # each at the limits that bound it
    "profile": lambda: sealed("profile", profile(2_850, MOST_KNOWN, 3, 10)),
    "network": lambda: network(MOST_DIFFERENT),
    "journal": lambda: journal(profile(2_250, 4_500, 2, 10)),
    "log": lambda: log(MOST_ROWS),
}
REFUSED = {
    "network-layers": (lambda: network(MOST_DIFFERENT + 1), MOST_DIFFERENT),
    "profile-layers": (lambda: sealed("profile", profile(1, MOST_KNOWN + 1, 3, 1)), MOST_KNOWN),
    "profile-names": (lambda: sealed("profile", profile(10, 1, 9_000, 1, names=90_000)), MOST_NAMES),
    "profile-values": (lambda: sealed("profile", [0] * 700_001), 700_000),
    "journal-values": (lambda: b"00000000 %b\n" % (b"[" * 800_001), 800_000),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("costly")
    for name, make in {**ACCEPTED, **{name: make for name, (make, _) in REFUSED.items()}}.items():
        (folder / name).write_bytes(make())
    child = [sys.executable, "-c", USE_ALL, str(folder)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(child, capture_output=True, check=True, timeout=120, env=environment)
    return dict(json.loads(done.stdout))


def test_an_accepted_file_is_used_in_two_seconds(found, record_property):
    sizes = {name: f"{name} of {found[name][2] / 1e6:.1f} MB in {found[name][1]:.1f} s" for name in ACCEPTED}
    record_property("figure", ", ".join(sizes.values()))
    assert all(not isinstance(found[name][0], str) and found[name][0] > 0 for name in ACCEPTED), found
    limit = 2 * max(1.0, found["reading"][1] / READING)
    assert {name: found[name][1] for name in ACCEPTED if found[name][1] > limit} == {}


def test_a_larger_one_is_refused_with_its_limit_as_quickly(found):
    for name, (_, limit) in REFUSED.items():
        refusal, seconds, *_ = found[name]
        assert str(refusal).startswith(("ProfileError", "MeterError")), (name, refusal)
        assert f"{limit:,}" in refusal
        assert seconds < 2, name


def test_all_in_500_megabytes(found, record_property):
    peak = max(megabytes for *_, megabytes in found.values())
    record_property("figure", f"peak {peak:.0f} MB")
    assert peak < 500
