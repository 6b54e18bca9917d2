"""What every device keeps to: real ones here, over ssh and over TCP, some that do not exist, and a recording.

A new one counts when it passes.
"""

import json
import math

import pytest
from tests.listening import WARM_OURS, listening
from tests.recordings import record
from tests.sshd import server
from tests.synthetic import chain

from ampere.core import Meter, Network, TrainingSetup
from ampere.core.measurement import seconds_per_iteration
from ampere.devices import Device, VariantFailed
from ampere.devices.simulated import PARTS

SMALL, LARGE = chain(3, 4, 4, 8), chain(3, 48, 64, 64)
SIMULATED = [f"simulated:{name}" for name in PARTS]
REAL = ("local", "ssh", "tcp")
QUICK = {"iterations": 6, "warmup": 2}


@pytest.fixture(scope="module", params=["local", "ssh", "tcp", *SIMULATED, "replayed"], name="spec")
def a_spec(request, tmp_path_factory):
    if request.param == "tcp":
        with listening(WARM_OURS) as address:
            yield address
        return
    if request.param == "ssh":
        with server(tmp_path_factory.mktemp("far")) as there:
            yield there.spec
        return
    if request.param != "replayed":
        yield request.param
        return
    path = tmp_path_factory.mktemp("recorded") / "recording.json"
    record(path, [SMALL, LARGE], rounds=4)
    yield f"replayed:{path}"


@pytest.fixture(scope="module", name="opened")
def a_device(spec):
    with Device(spec) as device:
        yield device


@pytest.fixture(name="device")
def its_worker(opened):
    return opened.worker()


def block(device, network, **options):
    return device.block({"layers": network.to_json()}, TrainingSetup(), **{**QUICK, **options})


def test_a_device_says_what_its_worker_says(opened, device):
    assert opened.identity == device.identity() == json.loads(json.dumps(device.identity()))
    assert opened.meter == Meter(**device.hello()["meter"])
    assert opened.vector_width in (4, 8, 16, 32)


def test_only_real_devices_measure(spec, device):
    meter = Meter(**device.hello()["meter"])
    assert meter.simulated == ("simulated" in spec or "replayed" in spec)  # the recording is of a simulated device
    assert meter.replayed == ("replayed" in spec)
    assert not (meter.measured and meter.simulated)
    sort = spec.partition(":")[0]
    assert sort in REAL or (device.identity()["id"].startswith(sort) and device.hello()["cpu"].startswith(sort))


def beside(found):
    """Busy seconds of a step of the yardstick that the block was paired with."""
    return seconds_per_iteration(found.yardstick)


def test_every_figure_of_a_block_is_finite_and_positive(device):
    found = block(device, SMALL)
    figures = (
        found.ratio(),
        found.wall_seconds,
        found.busy_seconds,
        beside(found),
        found.joules,
        found.elapsed_seconds,
    )
    assert all(math.isfinite(figure) and figure > 0 for figure in figures)
    assert found.iterations >= 1
    assert found.parameters > 0


@pytest.mark.measured
def test_larger_networks_cost_more(device):
    small, large = block(device, SMALL), block(device, LARGE)
    assert large.ratio() > small.ratio()
    assert large.joules > small.joules


@pytest.mark.measured
def test_the_ratio_is_that_of_the_seconds(device):
    found = block(device, LARGE)
    assert found.ratio() == pytest.approx(found.busy_seconds / beside(found), rel=0.25)


@pytest.mark.measured
def test_the_yardstick_costs_about_the_same_alone_and_beside(device):
    assert beside(block(device, SMALL)) == pytest.approx(device.yardstick(0.3).busy_seconds, rel=0.8)


@pytest.mark.measured
def test_its_clock_moves_by_what_a_block_takes(device):
    began = device.clock()
    took = block(device, SMALL).elapsed_seconds
    assert device.clock() - began >= 0.9 * took


def test_an_unknown_layer_is_refused_by_its_name(device):
    record = SMALL.to_json()
    record["layers"][0]["kind"] = "warp"
    with pytest.raises(VariantFailed, match="warp"):
        device.block({"layers": record}, TrainingSetup(), **QUICK)


def test_nothing_at_all_is_refused(device):
    with pytest.raises(VariantFailed):
        device.block({"layers": Network((), 10).to_json()}, TrainingSetup(), **QUICK)


def test_it_can_be_closed_twice(spec):
    device = Device(spec)
    device.worker().close()
    device.close()
    device.close()


@pytest.mark.parametrize("spec", SIMULATED)
def test_a_seed_repeats_everything(spec):
    def run(seed):
        with Device(spec, seed=seed) as device:
            return [block(device.worker(), network) for network in (SMALL, LARGE)]

    assert run(3) == run(3)
    assert run(3) != run(4)
