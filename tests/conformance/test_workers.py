"""`ampere conformance`: workers that keep to the protocol pass, and each broken habit is found by the check for it."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from tests.listening import NODE, OURS, WARM_OURS, listening

from ampere.cli import main
from ampere.core.errors import DeviceError, UsageError
from ampere.devices.conformance import CHECKS, check_worker
from ampere.devices.conformance.checks.strangers import CHECKS as STRANGERS

MUTANT = f"{sys.executable} {Path(__file__).with_name('mutant.py')}"
FOUND_BY = {
    "wrong-id": "ids",
    "two-lines": "nonsense",
    "own-errors": "unknown-action",
    "vague-meter": "meter",
    "changing": "identity",
    "answers-empty-lines": "empty",
    "any-version": "unknown-version",
    "fragile": "nonsense",
    "nan": "figures",
    "too-hot": "limits",
    "same-price": "costs",
    "untrained": "trains",
    "breathless": "beats",
}


@pytest.fixture(params=["ours", "ours over tcp", "node", "node over tcp"])
def target(request):
    if "node" in request.param and not shutil.which("node"):
        pytest.skip("Node.js is not installed here (nodejs)")
    if "tcp" not in request.param:
        yield NODE if "node" in request.param else OURS
        return
    with listening(NODE if "node" in request.param else WARM_OURS) as address:
        yield address


def test_workers_that_keep_to_it(target):
    # What a wire may change, and all of it over a pipe; ours takes 10 s to leave a block in the middle.
    strangers = [check.name for check in STRANGERS]
    names = [check.name for check in CHECKS if check.name != "leaves-work" or "node" in target]
    if "tcp:" in target:
        names = [*strangers, "version", "order", "long", "too-long", "pieces", "figures", "leaves"]
    outcomes = [o for o in check_worker(target, names) if "tcp:" in target or o.name not in strangers]
    assert [(o.name, o.reason) for o in outcomes if o.verdict != "kept"] == []


@pytest.mark.parametrize("habit", FOUND_BY)
def test_a_broken_habit_is_found(habit):
    [outcome] = check_worker(f"{MUTANT} {habit}", [FOUND_BY[habit]], patience_seconds=20)
    assert outcome.broken
    assert outcome.reason
    assert "\n" not in outcome.reason


def test_one_broken_check_does_not_spoil_the_next():
    outcomes = check_worker(f"{MUTANT} fragile", ["nonsense", "ids"])
    assert [o.verdict for o in outcomes] == ["broken", "kept"]


def test_a_worker_without_signs_of_life_may_be_one():
    [outcome] = check_worker(f"{sys.executable} -c '{SILENT}'", ["beats"])
    assert outcome.verdict == "not offered"


SILENT = """
import json, sys
said = {"protocol": 3, "system": "a", "machine": "b", "cpu": "c", "cores": 1, "runtimes": {"d": "1"}}
meter = {"name": "e", "measured": False, "scope": "f"}
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "result": {**said, "meter": meter}}), flush=True)
""".strip()


def test_what_cannot_be_reached_is_one_line():
    with pytest.raises(DeviceError, match="no worker answers at tcp://127"):
        check_worker("tcp://127.0.0.1:1")
    with pytest.raises(DeviceError, match="cannot start /no/such/worker"):
        check_worker("/no/such/worker --now")
    with pytest.raises(UsageError, match="write tcp://host:port"):
        check_worker("tcp://nowhere")
    with pytest.raises(UsageError, match="did you mean nonsense"):
        check_worker(OURS, ["nonsens"])
    with pytest.raises(UsageError, match="No closing quotation"):
        check_worker("'worker")


def test_a_program_that_is_no_worker_breaks_everything():
    outcomes = check_worker("cat", ["version", "ids"], patience_seconds=5)
    assert all(outcome.broken for outcome in outcomes)


def test_the_command_has_a_table_json_and_an_exit_code(capsys):
    words = ["conformance", OURS, "--only", "version,ids", "--quiet"]
    assert main(words) == 0
    assert "answers with the id of the request" in capsys.readouterr().out
    assert main(["conformance", f"{MUTANT} wrong-id", "--only", "ids,meter", "--json", "--quiet"]) == 10
    said = capsys.readouterr()
    record = json.loads(said.out)
    assert record["keeps"] is False
    assert {"name", "title", "verdict", "reason", "seconds"} == set(record["checks"][0])
    assert "2 of 2 checks failed" in said.err
    assert said.err.count("\n") == 1
