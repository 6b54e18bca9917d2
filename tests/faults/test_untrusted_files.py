"""Files from strangers: nothing in them runs, each is refused in one line, within 2 s and 500 MB, with no fallback."""

import json
import os
import pickle
import subprocess
import sys
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ampere.storage import Profile

pytestmark = pytest.mark.fault(19)

FIXTURE = Path(__file__).parents[1] / "fixtures" / "profile-format-2.json"
PROFILE = Profile.load(FIXTURE).to_json()
NETWORK = Profile.load(FIXTURE).observations[0].network.to_json()
CODE = "__import__('pathlib').Path('ran').touch()"

READ_ALL = """
import json, sys, time
from pathlib import Path
from ampere.storage import Profile, load_network, observations_from

def megabytes():  # not ru_maxrss, which begins with that of the parent process
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM")), None)

READERS = {"profile": Profile.load, "network": load_network, "journal": lambda path: list(observations_from(path))}
results = {}
for path in sorted(Path(sys.argv[1]).iterdir()):
    began = time.process_time()
    try:
        found = READERS[path.name.split("-")[0]](path)
        refusal, line = "accepted", repr(found)[:200]
    except Exception as error:
        refusal, line = type(error).__name__, str(error)
    peak = megabytes()
    results[path.name] = [refusal, line, time.process_time() - began, peak]
json.dump(results, sys.stdout)
"""


def sealed(kind: str, body: bytes) -> bytes:
    """An attacker can compute checksums too."""
    head = b'{"ampere":"%b","format":2,' % kind.encode()
    return head + b'"sha256":"%b","body":%b}\n' % (sha256(head + body).hexdigest().encode(), body)


def changed(record: dict[str, Any], *path: Any, to: Any) -> bytes:
    copy = json.loads(json.dumps(record))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return json.dumps(copy).encode()


class Attack:
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return eval, (CODE,)


BODIES = {  # refused by whatever reads JSON, whoever asks
    "nan": b'{"a":NaN}',
    "infinity": b'{"a":-Infinity}',
    "float-too-large": b'{"a":1e999}',
    "integer-too-long": b'{"a":%b}' % (b"9" * 5000),
    "integer-endless": b"9" * 20_000_000,
    "key-twice": b'{"device":1,"device":2}',
    "nested-deeply": b"[" * 100_000 + b"]" * 100_000,
    "nested-unclosed": b'{"a":' * 1_000_000,
    "nested-somewhat": b'{"fit":%b}' % (b"[" * 500 + b"]" * 500),
    "many-lists": b"[" + b"[]," * 10_000_000 + b"[]]",
    "many-lists-below-the-limit": b"[" + b"[]," * 700_000 + b"[]]",
    "many-records-below-the-limit": b"[" + b'{"a":{}},' * 290_000 + b"[]]",
    "wide-text": b'"%b\\ud83d\\ude00"' % (b"a" * 31_000_000),
    "not-a-record": b"[1,2,3]",
    "nothing": b"null",
    "empty-record": b"{}",
    "not-utf8": b'{"a":"\xff\xfe"}',
    "utf16": '{"a":1}'.encode("utf-16"),
    "two-values": b"{} {}",
    "code": CODE.encode(),
    "code-as-text": json.dumps(CODE).encode(),
}

RAW = {
    "pickle": pickle.dumps(Attack()),
    "python": CODE.encode(),
    "yaml": b"!!python/object/apply:eval ['%b']" % CODE.encode(),
    "zip": b"PK\x03\x04" + bytes(1000),
    "gzip": zlib.compress(bytes(50_000_000)),
    "empty": b"",
    "zeros": bytes(1000),
    "plain-json": b"{}",
    "half-an-envelope": b'{"ampere":"profile","format":1,',
    "long-format": b'{"ampere":"profile","format":%b,' % (b"1" * 100_000),
}

LSTM = {"batch": 1, "length": 1, "layers": 10**12, "directions": 1, "bias": True}
LINEAR = {"lead": [8], "bias": True}
LAYERS: dict[str, tuple[tuple[Any, ...], Any]] = {  # where in a layer, and what is put there
    "unknown-kind": (("kind",), CODE),
    "no-config": (("config",), {}),
    "config-is-text": (("config",), CODE),
    "text-times-number": (("config", "bias"), "x" * 1_000_000),
    "list-times-number": (("config", "lead"), [[1] * 1000, 10**15, 10**15]),
    "config-has-records": (("config", "extra"), {"a": {}}),
    "many-dimensions": (("config", "lead"), [10**15] * 100),
    "negative-size": (("config", "lead"), [-8]),
    "absurd-size": (("config", "lead"), [10**29]),
    "negative-channels": (("channels",), [-1, 5]),
    "absurd-channels": (("channels",), [10**29, 5]),
    "no-channels": (("channels",), [0, 5]),
    "three-channels": (("channels",), [1, 2, 3]),
    "trailing-not-finite": (("trailing",), [["elementwise", "nan", 1, True]]),
    "trailing-unknown": (("trailing",), [[CODE, 1, 1, True]]),
}


def corpus() -> dict[str, bytes]:
    files = {f"{kind}-{name}": sealed(kind, body) for kind in ("profile", "network") for name, body in BODIES.items()}
    files |= {f"{kind}-raw-{name}": raw for kind in ("profile", "network") for name, raw in RAW.items()}
    for name, (place, value) in LAYERS.items():
        files[f"network-layer-{name}"] = sealed("network", changed(NETWORK, "layers", 2, *place, to=value))
    files["network-endless-lstm"] = sealed(
        "network", changed(NETWORK, "layers", 2, to={**NETWORK["layers"][2], "kind": "lstm", "config": LSTM})
    )
    files["network-absurd-batch"] = sealed("network", changed(NETWORK, "batch", to=10**20))
    layer = json.dumps(NETWORK["layers"][0]).encode()
    files["network-too-many-layers"] = sealed("network", b'{"batch":1,"layers":[%b0]}' % (b"0," * 100_001))
    files["network-truncated-layer"] = sealed("network", b'{"batch":1,"layers":[%b,{}]}' % layer)
    return files | profile_files() | journal_files()


def profile_files() -> dict[str, bytes]:
    first, row = ("observations", 0), ("layers", "rows", 2)
    changes: dict[str, tuple[tuple[Any, ...], Any]] = {
        "purpose": ((*first, "purpose"), CODE),
        "joules-zero": ((*first, "measurement", "target", 0, 3), 0),
        "joules-text": ((*first, "measurement", "target", 0, 3), "inf"),
        "seconds-negative": ((*first, "measurement", "target", 0, 1), -1),
        "windows-none": ((*first, "measurement", "target"), []),
        "allocator-unknown": ((*first, "measurement", "allocator"), CODE),
        "condition-text": ((*first, "measurement", "conditions"), {"load": CODE}),
        "meter-extra": ((*first, "measurement", "meter"), {"name": "x", "measured": True, "run": CODE}),
        "meter-list": (("meter",), {"name": ["x"], "measured": 1}),
        "layer-number-too-large": ((*first, "network", "layers"), [0, 1, 99]),
        "layer-number-negative": ((*first, "network", "layers"), [0, 1, -1]),
        "layer-names-missing": ((*first, "network", "names"), ["x"]),
        "function-number-negative": ((*row, 0), -1),
        "function-number-text": ((*row, 0), CODE),
        "function-unknown": (("layers", "functions", 0), [CODE, {}]),
        "function-endless": (("layers", "functions", 0), ["lstm", LSTM]),
        "channels-text": ((*row, 1), "x" * 1_000_000),
        "channels-negative": ((*row, 2), -1),
        "trailing-not-finite": ((*row, 3), [["elementwise", "inf", 1, True]]),
        "device-without-id": (("device",), {"cpu": CODE}),
        "setup": (("setup", "optimizer"), CODE),
        "yardstick": (("yardstick_seconds",), 0),
        "observations-number": (("observations",), 10**6),
    }
    return {f"profile-{name}": sealed("profile", changed(PROFILE, *at, to=to)) for name, (at, to) in changes.items()}


def journal_files() -> dict[str, bytes]:
    bad = ['{"observation":{}}', '{"observation":5}', json.dumps({"observation": CODE})]
    return {f"journal-{n}": b"%08x %b\n" % (zlib.crc32(text.encode()), text.encode()) for n, text in enumerate(bad)}


def special_files(folder: Path) -> list[str]:
    """What only looks like a file: none may be waited for or read to its end."""
    for kind in ("profile", "network", "journal"):
        with open(folder / f"{kind}-200-MB", "wb") as file:
            file.truncate(200_000_000 if kind != "journal" else 0)
        (folder / f"{kind}-zero-device").symlink_to("/dev/zero")
        (folder / f"{kind}-loop").symlink_to(folder / f"{kind}-loop")
        (folder / f"{kind}-dangling").symlink_to(folder / "nowhere")
        (folder / f"{kind}-folder").mkdir()
        os.mkfifo(folder / f"{kind}-pipe")
    (folder / "journal-200-MB").unlink()
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if sys.platform == "win32":
        pytest.skip("needs pipes and symbolic links")
    folder = tmp_path_factory.mktemp("corpus")
    special_files(folder)
    for name, raw in corpus().items():
        (folder / name).write_bytes(raw)
    away = tmp_path_factory.mktemp("away")
    child = [sys.executable, "-c", READ_ALL, str(folder)]
    done = subprocess.run(child, capture_output=True, timeout=120, check=True, cwd=away)
    assert not list(away.iterdir()), "something in the files ran"
    loaded: dict[str, Any] = json.loads(done.stdout)
    assert len(loaded) > 100
    return loaded


def test_all_are_refused(results):
    accepted = {name: line for name, (refusal, line, *_) in results.items() if refusal != "ProfileError"}
    assert not accepted


def test_each_in_one_short_line(results):
    assert not [line for _, line, *_ in results.values() if "\n" in line or not 20 < len(line) < 600]


def test_each_within_two_seconds(results):
    assert not {name: seconds for name, (_, _, seconds, _) in results.items() if seconds > 2}


def test_all_within_500_megabytes(results):
    peak = results[max(results)][-1]
    if peak is None:
        pytest.skip("the system does not tell a process's peak memory")
    assert peak < 500
