"""The protocol's page is true: its examples are run, with our worker and one in JavaScript; its tables are whole."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from ampere.core.errors import WorkerError
from ampere.core.protocol import PROTOCOL, PROTOCOLS
from ampere.devices.conformance.candidate import ERROR_TYPES, Candidate
from ampere.worker.serving import agreed

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "protocol.md").read_text()
NODE = ROOT / "examples" / "node-worker" / "worker.js"
EXAMPLES = re.findall(r"^```protocol\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PAIRS = [re.findall(r"^> (.*)\n< (.*)$", example, re.MULTILINE) for example in EXAMPLES]


@pytest.fixture(scope="module", params=["ours", "node"])
def candidate(request):
    if request.param == "node" and not shutil.which("node"):
        pytest.skip("Node.js is not installed here (nodejs)")
    commands = {"ours": f"{sys.executable} -m ampere.worker", "node": f"node {NODE}"}
    candidate = Candidate(commands[request.param])
    yield candidate
    candidate.anew()


def alike(shown, said, where=""):
    """The same fields and types all the way down; ids and types of errors are the same, figures are not."""
    if isinstance(shown, dict):
        for name in shown if where != "result.runtimes" else ():
            assert name in said, f"{where} has no {name}"
            alike(shown[name], said[name], f"{where}.{name}".lstrip("."))
    elif isinstance(shown, list):
        assert isinstance(said, list)
    elif where in ("id", "error.type", "result.protocol", "result.parameters", "result.iterations"):
        assert said == shown, where
    elif isinstance(shown, (int, float)) and not isinstance(shown, bool):
        assert isinstance(said, (int, float)), where
    else:
        assert type(said) is type(shown), where


@pytest.mark.parametrize("pairs", PAIRS, ids=["lines", "hello", "block", "yardstick"])
def test_every_example_is_answered_as_shown(candidate, pairs):
    assert len(pairs) >= 2
    for asked, shown in pairs:
        candidate.say(asked)
        alike(json.loads(shown), candidate.hear())


def test_every_line_of_an_example_is_run():
    assert sum(example.count("\n") for example in EXAMPLES) == sum(2 * len(pairs) for pairs in PAIRS)


@pytest.mark.parametrize("do", ["hello", "block", "yardstick"])
def test_every_field_of_an_answer_is_explained(candidate, do):
    block = {name: value for name, value in json.loads(PAIRS[2][0][0]).items() if name not in ("id", "do")}
    asked = {"block": block, "yardstick": {"seconds": 0.05}, "hello": {"beat_seconds": 5}}[do]
    said = candidate.result(do, **asked)
    for name in {*said, *(said["meter"] if do == "hello" else ())}:
        assert f"`{name}`" in PAGE, f"docs/reference/protocol.md does not explain {name}"
    candidate.result("hello")


def test_every_error_is_explained():
    assert all(f"| `{name}` |" in PAGE for name in ERROR_TYPES)


def test_the_version_is_the_pages():
    assert PAGE.startswith(f"# The worker's protocol, version {PROTOCOL}\n")


def test_the_newest_shared_version_is_taken(monkeypatch):
    monkeypatch.setattr("ampere.worker.serving.PROTOCOLS", (1, 2, 3))
    assert agreed([5, 2, 1]) == 2
    assert agreed([*PROTOCOLS]) == 3
    with pytest.raises(WorkerError, match="speaks protocol 1 and 2 and 3, and was asked for"):
        agreed([9])


def test_the_lying_worker_is_used_as_shown(capsys):
    [code] = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    exec(compile(code, "protocol.md", "exec"), {})
    assert "joules of a window of target is '5'" in capsys.readouterr().out
