"""Training on an accelerator: placed, waited for, metered and released, on a stand-in that behaves like one."""

import json
from types import SimpleNamespace

import pytest
import torch
from tests.processes import run_script
from tests.standin.environment import HERE, standin_environment

from ampere.core.errors import ProfileError, UsageError, WorkerError
from ampere.devices import Device
from ampere.devices.answer_fields import Unusable, check_fields
from ampere.devices.device import fingerprint
from ampere.runtimes import torch_accelerator as accelerators
from ampere.runtimes.torch_accelerator import TorchAccelerator
from ampere.storage.profile import check_device


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("standin")


@pytest.fixture(scope="module")
def checked(place):
    """All checks of tests/standin/checks.py, in one process that starts warm: it loads the stand-in by itself."""
    checks = (
        f"import ampere_standin, runpy; ampere_standin.load(); runpy.run_path({str(HERE / 'checks.py')!r})['main']()"
    )
    ran = run_script(checks, place, standin_environment(place, bytes=2**27, lag=4.0), seconds=300)
    assert ran.code == 0, ran.err[-3000:]
    return json.loads(ran.out.splitlines()[-1])


BESIDE = """
import ampere_standin; ampere_standin.load()
import json
import checks
from ampere.core import TrainingSetup
from ampere.runtimes import torch_runtime
from ampere.worker.block import block, yardstick_alone

if {forget}:
    torch_runtime.has_accelerator = lambda: False
request = {{**checks.request(), "setup": TrainingSetup().to_json()}}
yardstick_alone({{"seconds": 0.05}})
answers = [block(request, serving=True), block({{**request, "isolation": "fork"}})]
print(json.dumps([answer["flags"] for answer in answers]))
"""


@pytest.mark.parametrize("forget", [False, True])
def test_what_trains_on_the_cpu_beside_a_card_is_forked_before_autograd_has_a_thread_for_it(place, forget):
    ran = run_script(BESIDE.format(forget=forget), place, standin_environment(place), seconds=120)
    if forget:
        assert "autograd's threading" in ran.err
    else:
        assert ran.code == 0, ran.err[-3000:]
        assert not any("not_isolated" in flags for flags in json.loads(ran.out.splitlines()[-1]))


def test_weights_and_their_state_are_on_the_card(checked):
    assert checked["placement"] == {"weights": ["standin:0"], "learns": True, "resolved": "standin:0"}


def test_the_stand_in_refuses_tensors_of_two_devices(checked):
    """Else the placement of inputs would not be tested."""
    assert "two devices" in checked["mixed"]


def test_the_meter_is_read_only_when_the_queue_is_empty(checked):
    found = checked["windows"]["as_it_is"]
    assert found == {"read": 2 * (200 + 201), "early": 0}  # of 200 windows and the yardsticks around them


@pytest.mark.parametrize("fault", ["without_waiting", "read_before_waiting"])
def test_a_missing_wait_is_noticed(checked, fault):
    assert checked["windows"][fault]["early"] > 0


def test_a_timer_that_does_not_wait_is_refused_by_events(checked):
    assert "must be completed" in checked["windows"]["events_without_waiting"]


def test_busy_seconds_are_the_cards_own(checked):
    """Between two events the card may also wait for the host; the host's clock runs a little longer."""
    found = checked["device_time"]
    assert 0.0999 < found["card"] <= found["busy"] + 1e-6
    assert found["busy"] <= found["wall"]


def test_nothing_is_left_on_the_card_after_a_block(checked):
    assert checked["memory"]["as_it_is"] == {"allocated": 0, "cached": 0}


def test_the_allocators_peak_of_each_block_is_kept(checked):
    small, large, again = checked["memory"]["peaks"]
    assert 2 * 256 * 256 * 4 < small == again < large


@pytest.mark.parametrize(("fault", "what"), [("not_released", "cached"), ("leaked", "allocated")])
def test_what_is_left_is_noticed(checked, fault, what):
    assert checked["memory"][fault][what] > 0


def test_a_variant_that_does_not_fit_is_refused_and_the_next_one_trains(checked):
    found = checked["full"]
    assert found["error"]["type"] == "out_of_memory"
    assert found["left"] == {"allocated": 0, "cached": 0}
    assert "nonfinite_loss" not in found["next"]


def test_nothing_is_forked_once_the_card_was_used(checked):
    assert checked["forks"]["windows"] >= 1
    assert "not_isolated" not in checked["forks"]["flags"]
    assert checked["forks"]["ready"] is False


def test_a_budget_reads_the_card_that_trains_when_its_queue_is_empty(checked):
    found = checked["budget"]
    assert found["meter"] == "Stand-in card, the whole board"  # not the other card, of 1000 W
    assert found["read"] >= 2
    assert found["early"] == 0
    assert found["joules"] > 0


@pytest.mark.parametrize(("job", "readers"), [("two_cards", 2), ("one_card", 1)])
def test_ranks_that_train_together_count_each_card_once(checked, job, readers):
    first, second = checked["ranks"][job]
    assert sum(rank["read"] > 0 for rank in (first, second)) == readers
    assert max(first["spent"], second["spent"]) == pytest.approx(first["read"] + second["read"], abs=1e-3)


# What cannot be used is refused in one line.


@pytest.mark.skipif(torch.cuda.is_available(), reason="it is for machines without CUDA")
def test_cuda_that_is_not_there_is_refused_with_what_is():
    with pytest.raises(WorkerError, match="cuda cannot be used here") as refused:
        accelerators.find_accelerator("cuda")
    assert refused.value.type == "accelerator"
    assert "pip install torch" in str(refused.value)


def test_a_backend_that_pytorch_does_not_know_is_refused():
    with pytest.raises(WorkerError, match=r"knows no warp.*other names are cuda, mps, xpu"):
        accelerators.find_accelerator("warp")


@pytest.mark.skipif(torch.cuda.is_available(), reason="it is for machines without CUDA")
def test_a_driver_that_is_too_old_is_named(monkeypatch):
    def too_old():
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 11040).\nPlease update it.")

    monkeypatch.setattr(torch.cuda, "init", too_old)
    with pytest.raises(WorkerError, match=r"driver on your system is too old \(found version 11040\)"):
        accelerators.find_accelerator("cuda")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("CUDA error: all CUDA-capable devices are busy or unavailable", "in use by another process"),
        ("CUDA out of memory. Tried to allocate 2 MiB. This process has 14 GiB in use.", "too little memory"),
        ("CUDA error: no kernel image is available for execution on the device", "does not work"),
    ],
)
def test_a_card_that_does_not_answer_is_refused(monkeypatch, said, expected):
    def fails(*sizes, **named):
        raise RuntimeError(said)

    monkeypatch.setattr(torch, "ones", fails)
    module = SimpleNamespace(set_device=lambda index: None, mem_get_info=lambda index: (2**20, 2**30))
    with pytest.raises(WorkerError, match=expected) as refused:
        TorchAccelerator("cuda", 0, module).touch()
    assert refused.value.type == "accelerator"
    assert "\n" not in str(refused.value)


def test_an_operation_that_mps_lacks_is_named_with_the_remedy():
    said = "The operator 'aten::_foo' is not currently implemented for the MPS device. If you want this op to be added"
    error = accelerators.as_accelerator_error(NotImplementedError(said), "mps")
    assert error.type == "variant_failed"
    assert "mps has no aten::_foo" in str(error)
    assert "PYTORCH_ENABLE_MPS_FALLBACK=1" in str(error)


@pytest.mark.parametrize("on", ["gpu!", "cuda:x", "cpu:1", "cuda:1:2"])
def test_a_word_that_names_no_processor_is_refused(on):
    with pytest.raises(UsageError, match="use cpu, cuda"):
        Device("local", on=on)


def test_simulated_devices_have_a_processor_of_their_own():
    with pytest.raises(UsageError, match="leave out --on"):
        Device("simulated:server", on="cuda")


def test_another_card_or_power_limit_is_another_device():
    machine = {"cpu": "c", "cores": 4, "system": "Linux", "machine": "x86_64"}
    cards = [
        None,
        {"on": "cuda:0", "name": "A", "memory_bytes": 2**34, "power_limit_watts": 250},
        {"on": "cuda:0", "name": "A", "memory_bytes": 2**34, "power_limit_watts": 200},
        {"on": "cuda:0", "name": "B", "memory_bytes": 2**34, "power_limit_watts": 250},
    ]
    ids = [fingerprint({**machine, "accelerator": card})["id"] for card in cards]
    assert len(set(ids)) == 4
    assert ids[0] == fingerprint(machine)["id"]
    newer = {**cards[1], "driver": "551"}
    assert fingerprint({**machine, "accelerator": newer})["id"] == ids[1]
    there, here = (SimpleNamespace(device=fingerprint({**machine, "accelerator": card})) for card in cards[1:3])
    with pytest.raises(ProfileError, match="accelerator A, 16 GiB, at most 250 W, here A, 16 GiB, at most 200 W"):
        check_device(there, here.device)


GOOD = {"on": "cuda:0", "name": "A", "memory_bytes": 2**34, "events": True}
HELLO = {"protocol": 3, "system": "Linux", "machine": "x86_64", "cpu": "c", "cores": 4, "runtimes": {"torch": "2"}}
METER = {"name": "nvml", "measured": True, "scope": "a card"}


BAD = [{**GOOD, "on": "cuda; rm"}, {**GOOD, "on": "auto"}, {"name": "A"}, {**GOOD, "memory_bytes": "much"}, [], "A"]


@pytest.mark.parametrize("said", BAD)
def test_what_a_worker_says_of_its_accelerator_is_checked(said):
    check_fields({"do": "hello"}, {**HELLO, "meter": METER, "accelerator": GOOD})
    check_fields({"do": "hello"}, {**HELLO, "meter": METER, "accelerator": None})
    with pytest.raises(Unusable, match="accelerator is"):
        check_fields({"do": "hello"}, {**HELLO, "meter": METER, "accelerator": said})
