"""`ampere schedule`, `ampere catalogue` and `ampere fleet` as users type them, with simulated devices."""

import json
import os
import signal
import threading
import time
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.processes import run_command, start_command

from ampere.api.stored_profiles import profile_like
from ampere.core import TrainingSetup
from ampere.storage import Profile, observations_from

USAGE, PROFILE, DEVICE, RUNTIME_MISSING, STORAGE = 2, 4, 5, 6, 7
FLEET = """
[[device]]
name = "board"
address = "simulated:tx2"
battery = "100Wh"
price = 0.3

[[device]]
name = "fast"
address = "simulated:xavier"
battery = "1mWh"

[[device]]
name = "misspelt"
address = "simulated:tx2"
baterry = "1Wh"

[[device]]
name = "unknown"
address = "simulated:server"
"""
JOBS = """
start = 2026-12-01T20:00:00
[[job]]
name = "digits"
model = "lenet5"
iterations = 2000
deadline = "9h"
[[job]]
name = "huge"
model = "lenet5"
iterations = 900000000
deadline = "07:00"
[[job]]
name = "lost"
model = "no_such_model"
iterations = 1
"""


@pytest.fixture(scope="module", name="home")
def profiled_fleet(tmp_path_factory):
    from ampere.cli import main

    place = tmp_path_factory.mktemp("fleet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AMPERE_HOME", str(place))
        for name in ("tx2", "xavier"):
            assert main(["profile", "lenet5", "--device", f"simulated:{name}", "--seconds", "8", "--quiet"]) == 0
    return place


@pytest.fixture(name="there")
def a_command_there(here, home, monkeypatch, tmp_path):
    monkeypatch.setenv("AMPERE_HOME", str(home))
    monkeypatch.setenv("AMPERE_CATALOGUE", str(tmp_path / "catalogue"))
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "jobs.toml").write_text(JOBS)
    return here


def test_jobs_are_assigned_and_what_cannot_be_used_is_named(there, tmp_path):
    ran = there("schedule", "jobs.toml", "--devices", "fleet.toml", "--json", "--plot", "plan.svg")
    assert ran.code == 0, ran.err
    record = ran.record
    assert [(job["job"], job["device"]) for job in record["jobs"]] == [("digits", "board")]
    assert record["proved"]
    assert [job["job"] for job in record["unscheduled"]] == ["huge"]
    assert "comes nearest" in record["unscheduled"][0]["reason"]
    named = "\n".join(record["problems"])
    assert all(word in named for word in ("did you mean battery", "'unknown' is left out", "'lost'"))
    assert all(line in ran.err for line in record["problems"])
    assert "digits" in (tmp_path / "plan.svg").read_text()


def test_a_plan_is_shown_beside_simpler_rules(there):
    ran = there("schedule", "jobs.toml", "--devices", "fleet.toml", "--quiet")
    assert ran.code == 0, ran.err
    assert "1 of 2 jobs" in ran.said
    assert "FLOPs-guided" in ran.out
    assert "left out" in ran.said


def test_each_job_is_named_with_what_its_file_can_say(there, tmp_path):
    (tmp_path / "net.py").write_text("import torch\ndef net(width): return torch.nn.Linear(8, width)\n")
    job = '[[job]]\nname = "{}"\nmodel = "net.py:net"\niterations = {}\n'
    texts = (
        '[[job]]\nname = "small"\nmodel = "lenet5"\nepochs = 1\nsamples = 6400\nbatch = 64\n',
        '[[job]]\nname = "ages"\nmodel = "lenet5"\niterations = 99999999999999999\n',
        job.format("no width", 5),
        job.format("no input", 5) + "arguments = {width = 4}\n",
        job.format("nowhere", 5) + 'arguments = {width = 4}\ninput = "2x8"\ndata = ["lap"]\n',
    )
    (tmp_path / "jobs.toml").write_text("".join(texts))
    (tmp_path / "fleet.toml").write_text('[[device]]\nname = "mains"\naddress = "simulated:tx2"\n')
    words = ["schedule", "jobs.toml", "--devices", "fleet.toml", "--quiet"]
    record = there(*words, "--json").record
    assert [job["job"] for job in record["jobs"]] == ["small", "ages"]
    said = " ".join(record["problems"])
    assert "width = VALUE under [job.arguments]" in said
    assert 'give input = "10x1x28x28"' in said
    assert "no device has the name or label lap of its data" in said
    assert "--" not in said
    ran = there(*words, "--plot", "/dev/null/plan.svg")  # what was planned is shown all the same
    assert ran.code == STORAGE
    assert "2 of 2 jobs" in ran.out
    assert "after" in ran.out


def test_prices_are_needed_where_money_counts(there, refused):
    ran = there("schedule", "jobs.toml", "--devices", "fleet.toml", "--objective", "money", "--quiet")
    refused(ran, USAGE, "device 'fast' has no price")


def test_a_plan_goes_on_from_reports(there, tmp_path):
    done = {"job": "digits", "device": "board", "done": 1.0, "joules": 10.0, "seconds": 20.0}
    (tmp_path / "so-far.json").write_text(json.dumps({"jobs": [done]}))
    ran = there("schedule", "jobs.toml", "--devices", "fleet.toml", "--reports", "so-far.json", "--json", "--quiet")
    assert ran.record["jobs"] == []


def test_a_profile_of_another_device_is_named_and_the_rest_goes_on(there, home, tmp_path):
    [path] = (home / "profiles").glob("simulated-xavier*.json")
    wrong = f'[[device]]\nname = "wrong"\naddress = "simulated:tx2"\nprofile = "{path}"\n'
    (tmp_path / "fleet.toml").write_text(FLEET + wrong)
    ran = there("schedule", "jobs.toml", "--devices", "fleet.toml", "--json", "--quiet")
    [problem] = [line for line in ran.record["problems"] if "'wrong'" in line]
    assert "the profile is of another device" in problem
    assert len(ran.record["jobs"]) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("schedule", "none.toml", "--devices", "fleet.toml"), "there is no file none.toml"),
        (("schedule", "jobs.toml", "--devices", "jobs.toml"), "at its top"),
        (("schedule", "jobs.toml", "--devices", "fleet.toml", "--plot", "plan.png"), "name it plan.svg"),
        (("fleet", "fleet.toml", "profile"), "name at least one model"),
        (
            ("fleet", "fleet.toml", "check", "--label", "nothing"),
            "has the name or label nothing: there are board, fast",
        ),
        (("catalogue", "show", "nothing"), "has no entry nothing"),
        (("catalogue", "add", "x.json"), "name a profile's file and the entry"),
        (
            ("profile", "lenet5", "--device", "simulated:server", "--like", "nobody"),
            "there is no profile like 'nobody'",
        ),
    ],
)
def test_bad_input_is_one_line(there, refused, words, said):
    refused(there(*words, "--quiet"), USAGE, said)


@contextmanager
def on_the_web(folder):
    """The folder at a web address of this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_profile_is_shared_and_used(there, home, refused, tmp_path, monkeypatch):
    [path] = (home / "profiles").glob("simulated-tx2*.json")
    entry = ("--name", "my-board", "--by", "A. Volta", "--licence", "MIT")
    shared = there("catalogue", "add", path, *entry, "--json")
    assert shared.code == 0, shared.err
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with on_the_web(tmp_path / "catalogue") as address:
        monkeypatch.setenv("AMPERE_CATALOGUE", address)
        assert "my-board" in there("catalogue", "list").out
        assert "A. Volta" in there("catalogue", "show", "my-board").said
        assert there("catalogue", "verify").code == 0
        refused(there("catalogue", "add", path, *entry, "--quiet"), USAGE, "is a web address, which can only be read")
        words = ("estimate", "lenet5", "--device", "simulated:xavier", "--profile", "catalogue:my-board")
        ran = there(*words, "--json")
        assert ran.code == 0, ran.err
        origin = ran.record["profile"]["origin"]
        assert "measured by A. Volta (MIT)" in origin
        assert "another model than this device" in origin
        assert origin in ran.err
        assert "A. Volta (MIT)" in there(*words, "--quiet").said
        lstm = there(*[word.replace("lenet5", "lstm") for word in words], "--quiet").said  # it does not know that
        advice = "`ampere profile lstm --device simulated:xavier --like my-board --seconds 60` learns your own device"
        assert advice in lstm
        assert profile_like("catalogue:my-board", TrainingSetup()) == profile_like("my-board", TrainingSetup())
        file = tmp_path / "catalogue" / "my-board.json"
        file.write_bytes(file.read_bytes().replace(b"Volta", b"Watts"))
        refused(there("catalogue", "verify", "--json", "--quiet"), PROFILE, "another checksum")
        refused(there(*words, "--quiet"), PROFILE, "another checksum")
    refused(there("catalogue", "list", "--quiet"), PROFILE, "cannot be read")
    monkeypatch.setenv("AMPERE_CATALOGUE", str(tmp_path / "catalogue"))
    refused(there("catalogue", "verify", "my-board", "--json", "--quiet"), PROFILE, "my-board.json")


def test_a_new_device_starts_from_a_similar_one(there, tmp_path):
    words = ("--device", "simulated:tx2", "--seconds", 5, "--out", "new.json")
    ran = there("profile", "lenet5", *words, "--like", "simulated:tx2,simulated:xavier", "--quiet")
    assert ran.code == 0, ran.err
    assert "like" in ran.out
    assert len(json.loads((tmp_path / "new.json").read_text())["body"]["sources"]) == 2
    ran = there("estimate", "lenet5", "--device", "simulated:tx2", "--profile", "new.json", "--json")
    assert ran.record["joules_per_iteration"] > 0


@pytest.mark.skipif(find_spec("distributed") is None, reason="dask.distributed is not installed")
def test_a_check_finds_the_profiles_that_a_plan_uses(there, home):
    outcomes = there("fleet", "fleet.toml", "check", "--json", "--quiet").record["outcomes"]
    found = {outcome["device"]: outcome["result"]["profile"] for outcome in outcomes}
    assert {name for name, path in found.items() if path} == {"board", "fast"}  # the plan leaves out `unknown`
    assert Path(found["board"]).parent == home / "profiles"


@pytest.mark.skipif(find_spec("distributed") is None, reason="dask.distributed is not installed")
def test_a_fleet_is_profiled_estimated_and_goes_on_after_a_stop(there, tmp_path):
    (tmp_path / "two.toml").write_text(
        '[[device]]\nname = "a"\naddress = "simulated:tx2"\n'
        '[[device]]\nname = "b"\naddress = "simulated:tx2"\nseed = 1\nlike = ["a"]\n'
        '[[device]]\nname = "off"\naddress = "tcp://127.0.0.1:9"\n'
    )
    ran = there("fleet", "two.toml", "profile", "lenet5", "--seconds", 8, "--attempts", 1, "--json")
    assert (ran.code, ran.err.splitlines()[-1]) == (DEVICE, "ampere: 1 of 3 devices failed: off")
    outcomes = {o["device"]: o for o in ran.record["outcomes"]}
    assert {name for name, o in outcomes.items() if o["result"]} == {"a", "b"}
    assert outcomes["off"]["problem"]
    words = ("fleet", "two.toml", "profile", "lenet5", "--seconds", 8, "--attempts", 1, "--label", "a", "--json")
    ran = there(*words)
    assert (ran.record["outcomes"][0], ran.record["earlier"]) == (outcomes["a"], ["a"])  # it was not measured again
    Path(outcomes["a"]["result"]["path"]).unlink()
    history = Path(outcomes["a"]["result"]["path"]).with_name("history.jsonl")
    history.write_text(history.read_text()[:-9])  # whoever wrote the last line was killed
    made = there(*words).record["outcomes"][0]  # from its journal
    assert made["result"]["measurements"] >= outcomes["a"]["result"]["measurements"]
    assert there(*words).record["outcomes"][0] == made
    ran = there("fleet", "two.toml", "estimate", "lenet5", "--label", "a", "--label", "b", "--out", "all.csv", "--json")
    rows = [row for o in ran.record["outcomes"] for row in o["result"]["rows"]]
    assert {row["device"] for row in rows} == {"a", "b"}
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 3
    ran = there("fleet", "two.toml", "report", "lenet5", "--label", "a", "--label", "b", "--out", "two.html", "--json")
    assert ran.code == 0, ran.err
    page = (tmp_path / "two.html").read_text()
    assert "a: simulated Jetson TX2" in page
    assert "b: simulated Jetson TX2" in page


@pytest.mark.skipif(find_spec("distributed") is None, reason="dask.distributed is not installed")
def test_a_fleet_takes_models_that_need_arguments_and_an_input(there, home, refused, tmp_path):
    lines = ["import torch", "def net(width): return torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.ReLU())"]
    (tmp_path / "net.py").write_text("\n".join(lines))
    (tmp_path / "own.toml").write_text(
        "".join(
            f'[[device]]\nname = "{name}"\naddress = "simulated:tx2"\nlike = {like}\n'
            for name, like in (("c", '["b"]'), ("b", '["a"]'), ("a", "[]"))
        )
    )
    words = ["fleet", "own.toml", "profile", "net.py:net", "--seconds", "3", "--json", "--quiet"]
    refused(there(*words), 3, "net needs width: give --arg width=VALUE")
    refused(there(*words, "--arg", "width=8"), 3, "give --input")
    ran = there(*words, "--arg", "width=8", "--input", "4x8")  # each after the one that it starts from
    assert ran.code == 0, ran.err
    ran = there("fleet", "own.toml", "estimate", "net.py:net", "--arg", "width=4", "--batch", "2", "--input", "4x8")
    assert ran.code == 0, ran.err
    assert ran.out.count("simulated") == 3
    other = (tmp_path / "own.toml").read_text().replace("tx2", "xavier")  # a device was replaced
    (tmp_path / "own.toml").write_text(other + '[[device]]\nname = "d"\n')
    ran = there(*words, "--arg", "width=8", "--input", "4x8", "--label", "a")
    [outcome] = ran.record["outcomes"]
    assert f"{home / 'fleet' / 'own' / 'a.json'}: the profile is of another device" in outcome["problem"]
    assert "remove that file, or rename the device" in outcome["problem"]
    assert "--allow-other-device" not in outcome["problem"]
    ran = there("fleet", "own.toml", "check", "--label", "a", "--quiet")
    assert "'d': it has no address" in ran.out


@pytest.mark.fault(1, 2)
@pytest.mark.skipif(find_spec("distributed") is None, reason="dask.distributed is not installed")
@pytest.mark.skipif(os.name != "posix", reason="stops and kills by signals")
def test_two_commands_on_one_fleet_and_one_that_is_killed_lose_nothing(tmp_path):
    (tmp_path / "lab.toml").write_text('[[device]]\nname = "a"\naddress = "simulated:tx2"\n')
    environment = {**os.environ, "AMPERE_HOME": str(tmp_path)}
    words = ["fleet", "lab.toml", "profile", "lenet5", "--seconds", "20", "--attempts", "1", "--json"]
    journal = tmp_path / "fleet" / "lab" / "a.json.journal"
    first = start_command(words, tmp_path, environment)
    try:
        until = time.monotonic() + 60
        while not (journal.exists() and len([*observations_from(journal)]) > 1):
            assert first.poll() is None, "it ended before it could be stopped"
            assert time.monotonic() < until
            time.sleep(0.01)
        os.kill(first.pid, signal.SIGSTOP)  # it is at work for as long as the other one needs to see that
        second = run_command(words, tmp_path, environment)
        assert second.code == DEVICE
        [outcome] = json.loads(second.out)["outcomes"]
        assert f"is in use by process {first.pid}: wait until it ends" in outcome["problem"]
        acknowledged = [*observations_from(journal)]
    finally:
        first.kill()
        first.wait()
    again = run_command(words, tmp_path, environment)
    assert again.code == 0, again.err
    made = Profile.load(tmp_path / "fleet" / "lab" / "a.json")
    assert list(made.observations[: len(acknowledged)]) == acknowledged
    assert len(made.observations) > len(acknowledged)


@pytest.mark.skipif(find_spec("distributed") is not None, reason="dask.distributed is installed")
def test_a_fleet_says_how_to_get_dask(there, refused):
    refused(there("fleet", "fleet.toml", "check", "--quiet"), RUNTIME_MISSING, "pip install 'ampere-energy[fleet]'")
