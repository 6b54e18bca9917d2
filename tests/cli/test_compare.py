"""`ampere compare`: one sentence, a row a device, one line where something is wrong."""

from dataclasses import replace

import pytest
from tests.synthetic import chain, observed, random_chains, true_seconds

from ampere import Meter, Profile, TrainingSetup
from ampere.profiles.networks import save_network


@pytest.fixture(name="files")
def profiles_and_networks(tmp_path):
    seen = tuple(observed(n, true_seconds(n)) for n in random_chains(1, 25))
    board = Profile(
        {"id": "a", "cpu": "board"}, TrainingSetup(), Meter("cpu-time", False, "5 W per busy core"), 1e-3, seen
    )
    board.save(tmp_path / "board.json")
    server = replace(board, device={"id": "b", "cpu": "server"}, meter=Meter("RAPL", True, "package"))
    server.save(tmp_path / "server.json")
    replace(board, observations=()).save(tmp_path / "empty.json")
    save_network(chain(3, 20, 30).renamed("small"), tmp_path / "small.json")
    save_network(chain(3, 40, 60).renamed("large"), tmp_path / "large.json")


def test_one_device_is_one_sentence(here, files):
    ran = here("compare", "small.json", "large.json", "--profile", "board.json")
    assert ran.code == 0, ran.err
    first = ran.out.splitlines()[0]
    assert first.startswith("small costs 0.")
    assert first.endswith("it is cheaper, over 99.9 % sure")
    assert "modelled, not measured" in ran.out


def test_several_devices_are_a_table(here, files):
    ran = here("compare", "large.json", "small.json", "--profile", "board.json", "--profile", "server.json")
    assert ran.out.startswith("small is cheaper on each of 2 devices, over 99.9 % sure")
    rows = {line.split()[0]: line for line in ran.out.splitlines() if line}
    assert "small" in rows["board"]
    assert "small" in rows["server"]
    assert "different meters" in rows["careful"]
    assert max(len(rows[name]) for name in ("device", "board", "server")) <= 100


def test_as_json(here, files):
    record = here("compare", "small.json", "large.json", "--profile", "board.json", "--json").record
    [device] = record["devices"]
    assert record["models"] == ["small", "large"]
    assert (device["cheaper"], device["device"]) == ("small", "board")
    assert device["sure"] > 0.99
    assert device["ratio"] == pytest.approx(device["joules"][0] / device["joules"][1])
    assert device["meter"]["measured"] is False


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("compare small.json", 2, ["MODEL_B", "ampere compare --help"]),
        ("compare lenet55 small.json --profile board.json", 2, ["did you mean lenet5"]),
        ("compare small.json large.json --input 1x3x8x8 --profile board.json", 2, ["has its input already"]),
        ("compare small.json large.json --profile board.json --optimizer adam", 2, ["was made with optimizer sgd"]),
        ("compare small.json large.json --profile nowhere.json", 4, ["nowhere.json"]),
        ("compare small.json large.json --profile empty.json", 4, ["holds no measurement"]),
        ("compare small.json large.json --profile server.json --watts-per-core 3", 2, ["leave out --watts-per-core"]),
        ("compare small.json board.json --profile board.json", 4, ["board.json"]),
        ("compare small.json large.json", 4, ["no profile"]),
    ],
)
def test_what_is_wrong_is_one_line(here, files, refused, words, code, says):
    refused(here(*words.split()), code, *says)
