"""Validation goes on where a network cannot be trained, and says so."""

from dataclasses import replace

import pytest

import ampere
from ampere.cli.commands.validate import show
from ampere.devices import Device, VariantDied
from ampere.evaluation.jobs import baselines_of, in_loops, of_family, trials_of
from ampere.evaluation.plan import Plan
from ampere.evaluation.validation import InLoops, compare, measure_twice, unseen
from ampere.models import SPACES
from ampere.profiling.sources import SpaceSource
from ampere.reporting.accuracy import Validated, _of_method

ON = "simulated:server"


class Crashing:
    """A device that one network ends."""

    def __init__(self, device, workload):
        self._device, self._workload = device, workload
        self.asked = 0

    def block(self, workload, setup, **options):
        if workload == self._workload:
            self.asked += 1
            raise VariantDied("training died twice on the same variant: ended by SIGABRT; leave it out")
        return self._device.block(workload, setup, **options)


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    path = tmp_path_factory.mktemp("validation") / "server.json"
    return ampere.profile("lenet5", device=ON, seconds=10, out=path).profile


@pytest.fixture
def experiments(profile):
    return unseen(SpaceSource(SPACES["lenet5"]), [profile], 4, 0)


def twice(experiments, profile, left_out=None):
    with Device(ON, seed=1) as opened:
        device = Crashing(opened.worker(), experiments[2].workload)
        return device, measure_twice(experiments, device, profile, 0, lambda done, total: None, 2, left_out)


def test_a_network_that_ends_the_worker_is_left_out_by_name(profile, experiments, capsys):
    left_out = {}
    device, pairs = twice(experiments, profile, left_out)
    assert [first[0].network for first, _ in pairs] == [experiments[i].network for i in (0, 1, 3)]
    assert list(left_out) == [2]
    assert device.asked == 1, "what ended the worker is not tried again"
    found = replace(compare("lenet5", pairs, profile, "tuned"), left_out=tuple(left_out.values()))
    assert found.to_json()["left_out"] == [left_out[2]]
    show(found)
    assert "1 more: training died twice" in " ".join(capsys.readouterr().out.split())


def test_where_every_network_is_needed_it_is_an_error(profile, experiments):
    with pytest.raises(VariantDied):
        twice(experiments, profile)


def test_methods_of_isolated_layers_get_their_own_number_of_measurements():
    plans = [Plan(chosen_devices=(ON,), baseline_samples=n) for n in (0, 5000)]
    usual, many = ({job.method: job for job in baselines_of(plan, of_family(plan, ON, "har"))} for plan in plans)
    samples = {method: job.samples for method, job in many.items()}
    assert samples == {"sequential": 0, "stages": 5000, **({"kernels": 5000} if "kernels" in usual else {})}
    assert usual["sequential"] == many["sequential"]
    assert "5000n" in many["stages"].name
    assert many["stages"].seconds > usual["stages"].seconds


class Asked:
    """A device that keeps how it was asked to train."""

    def __init__(self, device):
        self._device, self.how = device, []

    def block(self, workload, setup, **how):
        self.how.append(how)
        return self._device.block(workload, setup, **how)


def test_the_papers_method_is_held_against_networks_trained_as_its_variants_are(profile, experiments, tmp_path):
    papers = ampere.profile("lenet5", device=ON, method="sequential", seconds=60, out=tmp_path / "papers.json").profile
    with Device(ON, seed=1) as opened:
        plain, looped = Asked(opened.worker()), Asked(opened.worker())
        pairs = measure_twice(experiments, plain, profile, 0, lambda done, total: None, 1)
        loops = measure_twice(experiments[:3], InLoops(looped), profile, 0, lambda done, total: None, 1)
    assert {how["pairing"] for how in plain.how} == {"step"}
    assert {how["pairing"] for how in looped.how} == {"window"}
    assert min(how["iterations"] for how in looped.how) == 2 * min(how["iterations"] for how in plain.how)
    found = compare("lenet5", pairs, profile, "tuned", [papers], in_loops=loops)
    assert [row.in_loops is None for row in found.rows] == [False, False, False, True]
    twice_as_much = replace(found, rows=tuple(replace(row, in_loops=2 * row.actual) for row in found.rows))
    errors = [abs(row.estimates["sequential"] / (2 * row.actual) - 1) for row in found.rows]
    assert twice_as_much.mape["sequential"] == pytest.approx(sum(errors) / len(errors))
    assert twice_as_much.mape["additive"] == found.mape["additive"]
    validated = Validated.from_json(twice_as_much.to_json())
    assert [spot.measured for spot in _of_method(validated, "sequential", "", "").spots] == [
        2 * row.actual for row in found.rows
    ]
    assert [spot.measured for spot in _of_method(validated, "additive", "", "").spots] == [
        row.actual for row in found.rows
    ]


def test_networks_are_trained_in_loops_where_the_papers_method_takes_part_on_a_real_device():
    plan = Plan(chosen_devices=("local",))
    trials = trials_of(plan, "local", "lenet5")
    papers = baselines_of(plan, trials.profile)
    (looped,) = in_loops(trials, papers)
    assert looped.loops
    assert looped.name != trials.name
    assert in_loops(trials, [job for job in papers if job.method != "sequential"]) == []
    simulated = trials_of(plan, ON, "lenet5")
    assert in_loops(simulated, baselines_of(plan, simulated.profile)) == []
