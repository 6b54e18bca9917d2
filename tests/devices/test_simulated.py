"""Simulated devices behave as the real ones are known to: each test is one such property."""

from dataclasses import replace
from itertools import pairwise
from statistics import median

import pytest
from tests.synthetic import chain, conv, linear

from ampere.core import Network, TrainingSetup
from ampere.core.measurement import BUSY, WALL, relative_spread
from ampere.devices import VariantDied
from ampere.devices.simulated import PARTS, SimulatedWorker
from ampere.devices.simulated.body import SimulatedWindow, read
from ampere.devices.simulated.physics import stage_of

EVERY = pytest.mark.parametrize("name", PARTS)
PHONES = pytest.mark.parametrize("name", ["phone-android", "phone-ios"])


def joules(device, *layers):
    return device.truth(Network(layers, 10)).total.joules


@EVERY
def test_layers_and_the_step_sum_to_the_total(name):
    truth = SimulatedWorker(name).truth(chain(3, 20, 30, 40))
    assert truth.total.joules == pytest.approx(sum(c.joules for c in truth.layers) + truth.step.joules)
    assert all(c.joules > 0 and c.seconds > 0 for c in truth.layers)


@EVERY
def test_a_repeated_layer_adds_nearly_the_same_each_time(name):
    """The paper's additivity; not exactly, because a larger network keeps more for backward than the cache holds."""
    device = SimulatedWorker(name)
    totals = [joules(device, *[conv(32, 32)] * k, linear(32 * 196, 10)) for k in range(1, 7)]
    added = [b - a for a, b in pairwise(totals)]
    assert max(added) / min(added) == pytest.approx(1.0, abs=0.15)


@EVERY
def test_power_varies_with_what_is_done(name):
    """Or joules would be nothing but time."""
    device = SimulatedWorker(name)
    costs = [device.truth(Network((layer,), 10)).layers[0] for layer in (conv(1, 2), conv(128, 256, 28))]
    idle, busy = (c.joules / c.seconds for c in costs)
    assert busy > 1.2 * idle


@EVERY
def test_utilisation_grows_with_size(name):
    device = SimulatedWorker(name)
    small, large = (device.truth(Network((conv(w, w),), 10)).layers[0].seconds / w**2 for w in (8, 128))
    assert small > 1.5 * large


def test_xavier_has_a_plateau_and_then_rises():
    """Fig. 11: hardly any change with the input channels until about 20."""
    device = SimulatedWorker("xavier")
    few, twenty, many = (joules(device, conv(channels, 16, 14)) for channels in (2, 20, 160))
    assert twenty / few < 1.5
    assert many / twenty > 2.0


def test_xavier_has_a_ridge_where_images_are_small():
    part = PARTS["xavier"]
    smooth, device = SimulatedWorker("xavier"), SimulatedWorker("xavier")
    smooth.part = replace(part, ridge=None)
    extra = [joules(device, conv(c, c, 7)) / joules(smooth, conv(c, c, 7)) for c in (4, 48, 512)]
    assert extra[1] > 1.02
    assert extra[1] > max(extra[0], extra[2])
    assert joules(device, conv(48, 48, 28)) == joules(smooth, conv(48, 48, 28))


@pytest.mark.parametrize(("name", "tile"), [("xavier", 32), ("phone-android", 4)])
def test_channels_are_padded_to_tiles(name, tile):
    device = SimulatedWorker(name)
    below, at, above = (joules(device, conv(64, 4 * tile + extra, 28)) for extra in (-1, 0, 1))
    assert above - at > 3 * abs(at - below)


@PHONES
def test_a_phone_that_trains_for_long_lowers_its_clock_and_says_so(name):
    device, workload = SimulatedWorker(name), {"layers": chain(3, 96, 128, 128).to_json()}
    blocks = [device.block(workload, pairing="plain") for _ in range(20)]
    assert not blocks[0].flags
    assert blocks[-1].flags == ("throttled",)
    assert blocks[-1].conditions["clock"] < 1
    assert blocks[-1].wall_seconds > 1.05 * blocks[0].wall_seconds


@PHONES
def test_the_yardstick_takes_out_most_of_the_throttling(name):
    cold, warm = SimulatedWorker(name), SimulatedWorker(name)
    workload = {"layers": chain(3, 96, 128, 128).to_json()}
    for _ in range(20):
        warm.block(workload, pairing="plain")
    by_clock = warm.block(workload, pairing="plain").wall_seconds / cold.block(workload, pairing="plain").wall_seconds
    paired = warm.block(workload).ratio() / cold.block(workload).ratio()
    assert abs(paired - 1) < 0.5 * abs(by_clock - 1)


ACCELERATORS = pytest.mark.parametrize("name", ["server", "xavier", "tx2"])


@ACCELERATORS
def test_launches_hide_behind_longer_operations_in_whole_networks(name):
    """Others measured operations one by one: together 1.02 times the whole step at the median, at most 1.2 times."""
    device, one_by_one = SimulatedWorker(name), SimulatedWorker(name)
    one_by_one.part = replace(device.part, queued=0.0)
    networks = [chain(3, width, 2 * width, 4 * width) for width in (4, 16, 64, 256)]
    times = [one_by_one.truth(n).total.seconds / device.truth(n).total.seconds for n in networks]
    assert 1.01 < max(times) < 1.2
    assert 1 <= times[-1] < min(times[1:3])


def first_and_later(device):
    blocks = [device.block({"layers": chain(3, 64, 96, 128).to_json()}, pairing="plain") for _ in range(6)]
    return blocks[0].wall_seconds / median(block.wall_seconds for block in blocks[1:]), blocks[0].flags


def test_a_card_that_was_idle_is_warmed_up_until_its_clock_is_up(monkeypatch):
    away, flags = first_and_later(SimulatedWorker("server"))
    assert away == pytest.approx(1.0, abs=0.05)
    assert not flags
    monkeypatch.setattr(SimulatedWorker, "_raise_clocks", lambda self, step: None)
    away, flags = first_and_later(SimulatedWorker("server"))
    assert away > 1.05
    assert flags == ("throttled",)


@pytest.mark.parametrize(("seen", "off"), [(1.0, 0.01), (0.25, 0.15)])
def test_a_counter_that_looks_part_of_the_time_misreads_steps_in_its_rhythm(seen, off):
    """It sees the same part of every step; a window that begins at another moment sees another."""
    from random import Random

    part, rng = PARTS["server"], Random(0)
    part = replace(part, counter=replace(part.counter, seen=seen, noise_watts=0.0))
    window = SimulatedWindow(100, 100 * part.counter.update_seconds, 200.0, False)
    found = [read(part, window, rng, settled=True) / window.joules - 1 for _ in range(200)]
    assert max(map(abs, found)) == pytest.approx(off, abs=0.05)
    assert abs(sum(found)) / len(found) < 0.02


def test_jetsons_keep_their_clock():
    """The paper fixes it."""
    device = SimulatedWorker("tx2")
    assert not any(device.block({"layers": chain(3, 64, 64, 64).to_json()}).flags for _ in range(20))


@EVERY
def test_a_counter_is_watched_for_many_updates(name):
    device = SimulatedWorker(name)
    found = device.block({"layers": chain(3, 4, 4, 4).to_json()}, iterations=4)
    assert found.iterations * found.wall_seconds > 50 * device.part.counter.update_seconds


@EVERY
def test_short_windows_are_read_badly_and_long_ones_well(name):
    from random import Random

    part, rng = PARTS[name], Random(0)
    off = {}
    for seconds in (2 * part.counter.update_seconds, 200 * part.counter.update_seconds):
        window = SimulatedWindow(1, seconds, 10 * part.static_watts * seconds, False)
        off[seconds] = max(abs(read(part, window, rng) / window.joules - 1) for _ in range(50))
    short, long = off.values()
    assert short > 0.1
    assert long < 0.02


@EVERY
def test_a_stage_timed_alone_costs_more_than_in_the_step(name):
    """NeuralPower's overestimate: nothing of the stage before is in the cache."""
    device, network, setup = SimulatedWorker(name), chain(3, 32, 48, 64), TrainingSetup()
    alone = sum(stage_of(device.part, network, setup, stage).joules for stage in ("forward", "backward", "update"))
    truth = device.truth(network)
    assert alone > 1.02 * (truth.total.joules - truth.step.joules)


def test_what_does_not_fit_its_memory_is_refused():
    with pytest.raises(VariantDied, match="out of memory") as refused:
        SimulatedWorker("phone-ios").block({"layers": Network((conv(4096, 4096, 512, 64),), 64).to_json()})
    assert refused.value.out_of_memory


def test_the_setup_counts():
    device, network = SimulatedWorker("tx2"), chain(3, 64, 64, 64)
    setups = None, TrainingSetup(optimizer="adam"), TrainingSetup(dtype="bfloat16")
    plain, adam, half = (device.truth(network, setup).total.joules for setup in setups)
    assert half < plain < adam


def test_by_the_clock_there_is_no_yardstick():
    found = SimulatedWorker("server").block({"layers": chain(3, 8, 8, 8).to_json()}, pairing="plain")
    assert (found.ratio(), found.yardstick) == (None, ())


# Threads.

THREADS = (1, 2, 4, 8)


def on_threads(threads, name="desktop", network=None):
    return SimulatedWorker(name).truth(network or chain(3, 64, 96, 128), TrainingSetup(threads=threads)).total


def test_more_threads_are_faster_but_by_less_than_their_number():
    seconds = [on_threads(threads).seconds for threads in THREADS]
    for fewer, more in pairwise(seconds):
        assert 0.5 * fewer < more < fewer


def test_some_number_of_threads_costs_the_fewest_joules():
    """Static power favours many, what each thread draws favours few."""
    joules = [on_threads(threads).joules for threads in (1, 2, 4, 8, 64)]
    assert 0 < joules.index(min(joules)) < 4


def test_small_networks_gain_less_from_threads():
    small, large = chain(3, 4, 4, 4), chain(3, 128, 128, 128)
    gains = [on_threads(1, network=n).seconds / on_threads(8, network=n).seconds for n in (small, large)]
    assert 1 < gains[0] < gains[1] < 8


def test_threads_change_nothing_on_an_accelerator():
    assert on_threads(8, "server") == on_threads(1, "server")


def test_busy_time_of_several_threads_is_noisy_and_wall_time_is_not():
    device, workload = SimulatedWorker("desktop"), {"layers": chain(3, 64, 96, 128).to_json()}
    blocks = [device.block(workload, TrainingSetup(threads=2)) for _ in range(60)]
    wall, busy = [relative_spread([m.ratio(clock) for m in blocks]) for clock in (WALL, BUSY)]
    assert wall < 0.02 < 0.05 < busy
    assert 1.5 < median(m.busy_seconds / m.wall_seconds for m in blocks) < 2.5
    one = device.block(workload)
    assert one.busy_seconds == one.wall_seconds
