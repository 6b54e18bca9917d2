"""A whole run, and whether a battery lasts for it."""

from dataclasses import replace
from math import log
from statistics import NormalDist

import numpy as np
import pytest

from ampere.core import Meter
from ampere.core.errors import UsageError
from ampere.estimation.estimate import Estimate, LayerShare
from ampere.estimation.interval import interval90
from ampere.estimation.running_costs import Tariff, parse_grids, parse_price
from ampere.estimation.training_run import Battery, RunPart, iterations_in, iterations_of_epochs, training_run

ESTIMATE = Estimate(
    network="net",
    joules=0.02,
    stddev=0.002,
    seconds=0.004,
    layers=(LayerShare("a", "conv", 0.02, 0.002),),
    unprofiled=(),
    extrapolated=(),
    meter=Meter("cpu-time", False, "5 W per busy core"),
    allocator="system",
)


def test_the_error_of_an_iteration_grows_with_their_number():
    run = training_run(ESTIMATE, 1000)
    assert (run.joules, run.stddev, run.seconds) == pytest.approx((20, 2, 4))
    assert run.interval == interval90(20, 2)
    assert run.verdict is run.battery_share is run.fits_probability is run.battery_share_interval is None


def test_an_interval_is_that_of_a_normal_distribution_where_it_is_narrow():
    assert interval90(20, 0.2) == pytest.approx((20 - 0.329, 20 + 0.329), abs=0.005)


@pytest.mark.parametrize("stddev", [0.5, 1.0, 3.0])
def test_no_interval_of_a_cost_reaches_0_and_90_percent_are_inside(stddev):
    low, high = interval90(1.0, stddev)
    variance = log(1 + stddev**2)
    draws = np.random.default_rng(0).lognormal(-variance / 2, variance**0.5, 20_000)
    assert 0 < low < 1 < high
    assert np.mean((low <= draws) & (draws <= high)) == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize(
    ("battery", "verdict"), [(40.0, "fits"), (23.0, "fits"), (20.0, "uncertain"), (17.0, "does not fit")]
)
def test_the_verdict_is_a_probability(battery, verdict):
    run = training_run(ESTIMATE, 1000, Battery(battery, f"{battery}J"))
    assert run.verdict == verdict
    assert run.fits_probability == pytest.approx(NormalDist(20, 2).cdf(battery))
    low, high = run.battery_share_interval
    assert low < run.battery_share < high
    assert run.battery_share == pytest.approx(20 / battery)


def test_what_the_device_draws_anyway_comes_on_top():
    run = training_run(ESTIMATE, 1000, Battery(40.0, "40J", watts_idle=5.0))
    assert run.idle_joules == pytest.approx(5 * 4)
    assert run.battery_share == pytest.approx(1.0)
    assert run.fits_probability == pytest.approx(0.5)
    assert run.joules == pytest.approx(20)


def test_what_the_meter_counts_already_is_not_added_again():
    measured = replace(ESTIMATE, watts_idle=3.0)
    assert training_run(measured, 1000, Battery(40.0, "40J")).idle_joules == 0
    assert training_run(measured, 1000, Battery(40.0, "40J")).watts_idle == 3.0
    assert training_run(measured, 1000, Battery(40.0, "40J", 5.0)).idle_joules == pytest.approx(2 * 4)
    assert training_run(measured, 1000, Battery(40.0, "40J", 1.0)).idle_joules == 0


def test_how_long_a_battery_lasts():
    assert iterations_in(Battery(200.0, "200J"), ESTIMATE) == (10_000, int(200 / interval90(0.02, 0.002)[1]))
    assert iterations_in(Battery(200.0, "200J", 5.0), ESTIMATE)[0] == 5_000


def test_an_epochs_last_batch_counts():
    assert iterations_of_epochs(2, 101, 10) == 22
    with pytest.raises(UsageError, match="no training run"):
        iterations_of_epochs(0, 101, 10)


def test_the_parts_of_a_run_sum_to_its_total():
    evaluation = RunPart("evaluation", 10, 5.0, 0.5, 1.0, "timed")
    run = training_run(ESTIMATE, 1000, parts=[evaluation], step_share=0.9)
    assert (run.joules, run.stddev, run.seconds) == pytest.approx((18 + 5, 1.8 + 0.5, 3.6 + 1.0))
    assert sum(part["joules"] for part in run.to_json()["parts"]) == pytest.approx(run.to_json()["joules"])


def test_what_a_run_is_without_is_named():
    loaded = training_run(ESTIMATE, 1000, parts=[RunPart("loading", 1000, 1.0, 0.1, 1.0, "timed")])
    assert "evaluation" in loaded.not_covered
    assert "loading" not in loaded.not_covered
    assert "loading data" in training_run(ESTIMATE, 1000).not_covered


def test_gross_and_net_differ_by_what_the_device_draws_anyway():
    measured = replace(ESTIMATE, watts_idle=3.0)
    run = training_run(measured, 1000, watts_idle=5.0)
    assert run.net_joules == pytest.approx(20 - 3 * 4)
    assert run.gross.mean == pytest.approx(20 + 2 * 4)
    assert training_run(ESTIMATE, 1000).net_joules is None


def test_a_battery_that_is_too_small_is_charged_several_times():
    assert training_run(ESTIMATE, 1000, Battery(8.0, "8J")).battery_charges == 3
    assert training_run(ESTIMATE, 1000, Battery(80.0, "80J")).battery_charges == 1


def test_modelled_joules_say_so_in_what_they_cost():
    run = training_run(ESTIMATE, 1000, tariff=Tariff(parse_price("0.30/kWh"), parse_grids("DE")))
    record = run.to_json()
    assert record["modelled"] is True
    assert record["kwh"] == pytest.approx(20 / 3.6e6)
    assert record["kwh_interval90"] == pytest.approx([joules / 3.6e6 for joules in run.interval])
