"""The power of a steady load by a gauge: few samples, none of them of the load before, and no yardstick's joules."""

import os

import pytest
from tests.sysfs_tree import Machine, add_hwmon, add_powercap
from tests.worker.conftest import measurement

from ampere.core.windows import LEAST_SECONDS, reading_by
from ampere.devices.simulated import PARTS, SimulatedWorker
from ampere.models.loading import find_space
from ampere.profiling.sources import SpaceSource

WATTS = 6.0


def test_a_reading_waits_until_the_load_before_is_forgotten():
    battery, sensor = reading_by(1.0), reading_by(0.1)
    assert battery.settling_seconds == 2.0
    assert battery.whole < 10
    assert sensor.seconds == LEAST_SECONDS


@pytest.mark.alone
def test_a_gauge_reads_the_targets_power_and_the_yardstick_is_timed(tmp_path, start_worker, workload_of):
    with Machine(add_hwmon(tmp_path), idle=WATTS, busy=0.0):
        worker = start_worker(**{**os.environ, "AMPERE_SYSFS": str(tmp_path), "AMPERE_METER": "hwmon"})
        assert worker.ask("hello")["result"]["meter"]["update_seconds"] > 0
        block = measurement(worker.block(workload_of("mlp"), power=True)["result"])
        alone = worker.ask("yardstick", seconds=0.2, power=True)["result"]
        worker.end()
    assert block.joules / block.wall_seconds == pytest.approx(WATTS, rel=0.1)
    assert [window.joules for window in block.yardstick] == [None, None]
    assert block.ratio() > 0
    assert 0.7 * WATTS < alone["joules"] / alone["wall_seconds"] < 3 * WATTS


def test_a_counter_of_joules_reports_no_power(tmp_path, start_worker, workload_of):
    with Machine(add_powercap(tmp_path), idle=WATTS, busy=0.0):
        worker = start_worker(**{**os.environ, "AMPERE_SYSFS": str(tmp_path), "AMPERE_METER": "powercap"})
        error = worker.block(workload_of("mlp"), power=True)["error"]
        worker.end()
    assert error["type"] == "bad_request"
    assert "does not report power" in error["message"]


def test_a_simulated_reading_is_a_sixth_of_a_window_and_closer():
    def errors(**how):
        found = []
        for seed in range(12):
            device = SimulatedWorker("phone-android", seed)
            began, block = device.clock(), device.block(network.workload, iterations=8, **how)
            found.append(block.joules / block.wall_seconds / watts - 1)
        return sum(map(abs, found)) / len(found), device.clock() - began

    assert "phone-android" in PARTS
    network = SpaceSource(find_space("cnn5")).original()
    truth = SimulatedWorker("phone-android").truth(network.network).total
    watts = truth.joules / truth.seconds
    steady, seconds = errors(power=True)
    windows, long = errors()
    assert seconds < long / 6
    assert steady < 0.04
    assert steady < windows + 0.02
