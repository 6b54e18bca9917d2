"""`ampere compare`: one sentence, a row a device or runtime, one line where something is wrong."""

from dataclasses import replace

import pytest
from tests.synthetic import chain, observed, random_chains, true_seconds

from ampere import Meter, Profile, TrainingSetup
from ampere.runtimes.table import description_of, installed
from ampere.storage.networks import save_network


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
    jax = replace(board, setup=TrainingSetup("jax"), common_yardstick_seconds=1.1e-3)
    jax.save(tmp_path / "jax.json")
    replace(jax, common_yardstick_seconds=None).save(tmp_path / "before.json")
    replace(board, setup=TrainingSetup("mnn")).save(tmp_path / "mnn.json")
    replace(board, yardstick_seconds=1.2e-3).save(tmp_path / "twin.json")
    replace(server, device={**server.device, "allocators": ["tuned"]}).save(tmp_path / "port.json")
    save_network(chain(3, 20, 30).renamed("small"), tmp_path / "small.json")
    save_network(chain(3, 40, 60).renamed("large"), tmp_path / "large.json")


def test_one_device_is_one_sentence(here, files):
    ran = here("compare", "small.json", "large.json", "--profile", "board.json")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("small costs 0.")
    assert "it is cheaper (over 99.9 % probability) setup" in " ".join(ran.out.split())
    assert "modelled, not measured" in ran.said


def test_several_devices_are_a_table(here, files):
    ran = here("compare", "large.json", "small.json", "--profile", "board.json", "--profile", "server.json")
    assert ran.out.startswith("small is cheaper on each of 2 devices (over 99.9 % probability)")
    rows = {line.split()[0]: line for line in ran.out.splitlines() if line}
    assert "small" in rows["board"]
    assert "small" in rows["server"]
    assert "different meters" in rows["note"]
    assert max(len(rows[name]) for name in ("device", "board", "server")) <= 100


def test_as_json(here, files):
    record = here("compare", "small.json", "large.json", "--profile", "board.json", "--json").record
    [device] = record["devices"]
    assert record["models"] == ["small", "large"]
    assert (device["cheapest"], device["device"]) == ("small", "board")
    assert device["probability"] > 0.99
    [pair], (small, large) = device["pairwise"], device["ranking"]
    assert pair["ratio"] == pytest.approx(small["joules"] / large["joules"])
    assert device["meter"]["measured"] is False


def test_one_model_in_two_runtimes_is_paired_with_one_yardstick(here, files):
    words = ("compare", "small.json", "--profile", "board.json", "--profile", "jax.json", "--allocator", "tuned")
    ran = here(*words)
    assert ran.code == 0, ran.err
    assert "cheapest in jax" in ran.out.splitlines()[0]
    rows = {line.split()[0]: line for line in ran.out.splitlines() if line}
    assert rows["runtime"].split() == ["runtime", "mJ", "±", "ratio", "90", "%", "more", "expensive"]
    assert rows["torch"].split()[3] == "1.10"
    assert rows["device"].split() == ["device", "board"]
    assert "at the device's speed when torch was profiled, by PyTorch's" in " ".join(ran.out.split())
    assert "(jax x 0.909)" in " ".join(ran.out.split())
    assert "note" not in rows


def test_a_profile_without_that_yardstick_has_a_caveat(here, files):
    ran = here("compare", "small.json", "--profile", "board.json", "--profile", "before.json")
    said = " ".join(ran.out.split())
    assert "note" in said
    assert "not timed with jax" in said
    assert "profile it again, with PyTorch there" in said
    assert "are expressed at" not in said


def test_two_boards_of_one_make_are_distinguished_by_their_files(here, files):
    words = ("--profile", "board.json", "--profile", "twin.json")
    ran = here("compare", "small.json", *words)
    assert "cheapest on board (" in ran.out.splitlines()[0]
    assert "board (board)" in ran.said
    assert "board (twin)" in ran.said
    assert "note" not in ran.out
    two = here("compare", "small.json", "large.json", *words, "--json").record["devices"]
    assert [row["name"] for row in two] == ["board (board)", "board (twin)"]
    assert [row["factor"] for row in two] == [1, 1]


def test_the_training_loop_that_joules_assume_is_named(here, files):
    words = ("--profile", "board.json", "--profile", "port.json")
    one = " ".join(here("compare", "small.json", *words).out.split())
    assert "assumes a training loop whose allocator keeps its memory" in one
    assert "a plain training loop" not in one
    two = " ".join(here("compare", "small.json", "large.json", *words).out.split())
    assert "a plain training loop" in two
    assert "not all rows assume the same training loop: take --allocator tuned" in two


def test_two_models_in_two_runtimes_have_rows_by_runtime(here, files):
    words = ("compare", "small.json", "large.json", "--profile", "board.json", "--profile", "jax.json")
    ran = here(*words)
    assert ran.out.startswith("small is cheaper in each of 2 runtimes (over 99.9 % probability)")
    rows = {line.split()[0]: line for line in ran.out.splitlines() if line}
    assert {"torch", "jax", "condition"} <= set(rows)
    torch, jax = here(*words, "--json").record["devices"]
    assert (torch["runtime"], jax["runtime"]) == ("torch", "jax")
    assert (torch["factor"], torch["common_yardstick_seconds"]) == (1, 1e-3)
    assert jax["factor"] == pytest.approx(1 / 1.1)
    assert jax["ranking"][0]["joules"] == pytest.approx(torch["ranking"][0]["joules"] / 1.1)


def test_one_model_as_json(here, files):
    record = here("compare", "small.json", "--profile", "board.json", "--profile", "jax.json", "--json").record
    assert (record["model"], record["cheapest"]) == ("small", "jax")
    assert [entry["runtime"] for entry in record["ranking"]] == ["jax", "torch"]
    assert record["ranking"][1]["ratio"] == pytest.approx(1.1)


@pytest.mark.skipif("mnn" not in installed(), reason=description_of("mnn").install)
def test_what_a_runtime_cannot_build_is_said_before_anything_is_trained(here, refused):
    ran = here("compare", "lstm", "--runtimes", "torch,mnn", "--seconds", 4)
    refused(ran, 3, "mnn cannot build", "(no lstm)", "choose another --runtime")
    assert "profil" not in ran.err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (
            "compare small.json",
            2,
            ["small.json alone", "second MODEL", "--runtimes torch,jax", "ampere compare --help"],
        ),
        ("compare small.json --profile board.json", 2, ["compared with nothing", "--profile twice"]),
        ("compare small.json --runtimes torch", 2, ["compared with nothing"]),
        ("compare lenet5 --runtimes torch,tensorflow", 2, ["no runtime 'tensorflow'", "torch, torch-compile, jax"]),
        ("compare lenet5 --runtimes torch,jax,torch", 2, ["names a runtime twice"]),
        ("compare lenet5 --runtimes torch,", 2, ["no runtime ''"]),
        ("compare lenet5 --runtimes torch,jax --runtime jax", 2, ["leave out one of them"]),
        ("compare small.json --runtimes torch,jax --profile board.json", 2, ["leave out one of them"]),
        ("compare lenet5 --runtimes torch,jax --device simulated:xavier", 2, ["trains with torch, not with jax"]),
        ("compare small.json --runtimes torch,jax", 4, ["no profile of this device"]),
        ("compare small.json --profile board.json --profile empty.json", 4, ["holds no measurement"]),
        ("compare lstm --profile board.json --profile mnn.json", 3, ["mnn cannot build", "leave out mnn.json"]),
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
