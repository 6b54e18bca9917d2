"""Plans: batteries, memory, deadlines and hours hold; the best is found, and what cannot run is named."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from tests.fleet.fleets import DAY, HOUR, one_device, random_problem

from ampere.core.errors import UsageError
from ampere.fleet import heuristic, scheduling
from ampere.fleet.drawing import gantt
from ampere.fleet.heuristic import approximate
from ampere.fleet.prices import prices_of
from ampere.fleet.problem import FOREVER, MOST_SLOTS, DeviceLimits, JobLimits, Problem, Slots
from ampere.fleet.reports import JobReport, Reports, reported, with_reports
from ampere.fleet.scheduling import plan
from ampere.fleet.solving import NOWHERE, best, timeline
from ampere.reporting.svg import standalone

SEEDS = range(6)


def value(problem: Problem, device) -> float:
    return float(np.sum(timeline(problem, device)[1]))


def check_holds(problem: Problem, device) -> None:
    """What every assignment must keep."""
    pieces, _ = timeline(problem, device)
    for j, d in enumerate(device):
        assert d == NOWHERE or problem.possible[j, d]
    for d, limits in enumerate(problem.devices):
        mine = np.flatnonzero(device == d)
        assert problem.drawn[mine, d].sum() <= limits.battery_joules * (1 + 1e-6)
        spans = sorted((p.begin, p.end) for p in pieces if p.device == d)
        assert all(b[0] >= a[1] - 1e-3 for a, b in itertools.pairwise(spans))
        for begin, end in spans:
            assert any(since <= begin + 1e-3 and end <= to + 1e-3 for since, to in limits.available)
    for j, job in enumerate(problem.jobs):
        mine = [p for p in pieces if p.job == j]
        assert bool(mine) == (device[j] != NOWHERE)
        if mine:
            assert max(p.end for p in mine) <= job.deadline * (1 + 1e-6) + 1e-3
            assert min(p.begin for p in mine) >= job.release - 1e-3
            assert sum(p.end - p.begin for p in mine) == pytest.approx(problem.reserved[j, device[j]], rel=1e-4)


@pytest.mark.parametrize("priced", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_promised_holds(seed, priced):
    problem = random_problem(seed, 10, 4, tight=0.6, priced=priced)
    check_holds(problem, best(problem, 10).device)


def test_the_exact_plan_is_the_best_of_all_assignments():
    for seed in SEEDS:
        problem = random_problem(seed, 5, 3)
        found = best(problem, 10)
        assert found.proved
        costs = []
        for device in itertools.product(range(3), repeat=5):
            try:
                check_holds(problem, np.array(device))
                costs.append(value(problem, np.array(device)))
            except AssertionError:
                continue
        if not costs:
            assert np.any(found.device == NOWHERE)
        else:
            assert value(problem, found.device) == pytest.approx(min(costs), rel=1e-3)


def test_the_heuristic_is_near_the_best_and_its_bound_below_it(monkeypatch):
    monkeypatch.setattr("ampere.fleet.heuristic.GROUP_SECONDS", 60.0)  # a busy machine must not end it
    gaps = []
    for seed in range(3):
        problem = random_problem(seed, 14, 5)
        pairs = problem.joules.size if seed == 0 else 40  # solved as a whole, or in groups as large problems are
        monkeypatch.setattr("ampere.fleet.heuristic.GROUP_PAIRS", pairs)
        exact, near = best(problem, 60), approximate(problem, 60.0, seed)
        check_holds(problem, near.device)
        assert np.sum(near.device == NOWHERE) == np.sum(exact.device == NOWHERE)
        assert near.bound <= value(problem, exact.device) * (1 + 1e-6)
        gaps.append(value(problem, near.device) / value(problem, exact.device) - 1)
    assert gaps[0] < 1e-3
    assert np.mean(gaps) < 0.01


def test_many_jobs_are_planned_by_the_heuristic_with_a_bound():
    problem = random_problem(1, 300, 40)
    assert not scheduling.is_small(problem)
    found = plan(problem, seconds=3.0)
    assert not found.proved
    assert len(found.jobs) + len(found.unscheduled) == 300
    if found.gap is not None:
        assert found.gap < 0.1


def test_prices_of_many_devices_prove_that_a_plan_is_near_the_best():
    """Jobs look at some of the devices; the bound is of all."""
    problem = random_problem(1, 400, 60)
    slots = Slots.of(problem, MOST_SLOTS)
    costs = heuristic._least_costs(problem, slots)
    rough = heuristic._placed(problem, slots, costs, None)
    found = prices_of(problem, slots, costs, heuristic._total(costs, rough), 600.0)
    guided = heuristic._placed(problem, slots, costs, found)
    assert not np.any(guided == NOWHERE)
    check_holds(problem, guided)
    assert 0.95 * value(problem, guided) < found.bound < value(problem, guided)


def test_prices_of_jobs_that_do_not_fit_stay_finite():
    problem = random_problem(1063, 40, 4, priced=True, tight=0.3)
    problem = problem.only(np.flatnonzero(np.any(problem.possible, axis=1)).tolist(), range(4))
    slots = Slots.of(problem, MOST_SLOTS)
    found = prices_of(problem, slots, heuristic._least_costs(problem, slots), 1e9, 600.0)
    assert np.all(np.isfinite(found.seconds))
    assert np.all(np.isfinite(found.joules))


def test_a_tighter_confidence_never_costs_less():
    problem = random_problem(2, 10, 4, tight=0.7)
    values = [plan(replace(problem, confidence=c), 5, ()) for c in (0.5, 0.99)]
    if not any(p.unscheduled for p in values):
        assert values[0].value <= values[1].value * (1 + 1e-3)


def test_jobs_move_to_cheap_hours():
    device = DeviceLimits("device", rates=((0.0, 2.0), (HOUR, 1.0), (2 * HOUR, 3.0)))
    found = plan(one_device(1800.0, device=device, deadline=[DAY]), 5, ())
    assert {(span.begin >= HOUR, span.end <= 2 * HOUR + 1) for span in found.spans} == {(True, True)}
    assert found.value == pytest.approx(1800.0)


def test_a_job_begins_when_those_before_it_have_ended_and_not_at_its_part_of_the_time():
    problem = one_device(100.0, 200.0, 300.0, 50.0, deadline=[DAY, DAY, 12000.0, DAY])
    chained = [("job 0",), ("job 1",)]
    jobs = [*problem.jobs]
    jobs[1:3] = [replace(job, after=after) for job, after in zip(jobs[1:3], chained, strict=True)]
    found = plan(replace(problem, jobs=tuple(jobs)), 5, ())
    ends = {job.job: job.ends for job in found.jobs}
    begins = {name: min(span.begin for span in found.spans if span.job == name) for name in ends}
    assert begins["job 1"] >= ends["job 0"]
    assert begins["job 2"] >= ends["job 1"]
    assert max(ends.values()) == pytest.approx(650.0, abs=1.0)


def test_completion_of_jobs_that_follow_others_is_the_earliest_and_not_the_end_of_their_part_of_the_time():
    seconds = np.array([[100.0, 200.0], [100.0, 200.0], [100.0, 200.0]])
    jobs = (JobLimits("first", 10 * HOUR), JobLimits("second", 10 * HOUR, after=("first",)), JobLimits("other"))
    devices = (DeviceLimits("fast"), DeviceLimits("frugal"))
    joules = np.array([[9.0, 1.0]] * 3)
    found = plan(Problem(jobs, devices, joules, 0 * joules, seconds, objective="completion"), 5)
    assert found.value == found.ends == pytest.approx(200.0, abs=1.0)  # frugal would be cheaper, and take 400 s
    assert (found.bound, found.proved) == (None, False)  # other spans could be better
    assert all(value < HOUR for value, _ in found.baselines.values())
    assert next(job.deadline for job in found.jobs if job.job == "first") == 10 * HOUR


def test_a_plan_made_again_begins_when_devices_are_there():
    late = DeviceLimits("late", available=((HOUR, FOREVER),))
    released = one_device(60.0, 60.0, device=late)
    released = replace(released, jobs=(released.jobs[0], replace(released.jobs[1], after=("job 0",))))
    found = plan(released, 5)
    assert [job.ends for job in found.jobs] == pytest.approx([HOUR + 60, HOUR + 120], abs=1.0)


def test_a_job_pauses_while_its_device_is_away():
    device = DeviceLimits("device", available=((0.0, 100.0), (200.0, 300.0)))
    found = plan(one_device(150.0, device=device), 5, ())
    assert [(span.begin, span.end) for span in found.spans] == [(0.0, 100.0), (200.0, 250.0)]
    assert found.jobs[0].ends == 250.0


def test_the_earliest_end_is_found():
    seconds = np.array([[4.0, 8.0], [4.0, 8.0], [4.0, 8.0]])
    jobs = tuple(JobLimits(f"job {n}") for n in range(3))
    devices = (DeviceLimits("fast"), DeviceLimits("slow"))
    problem = Problem(jobs, devices, seconds, 0 * seconds, seconds, objective="completion")
    found = plan(problem, 5, ())
    assert found.value == pytest.approx(8.0, rel=0.01)
    assert {job.device for job in found.jobs} == {"fast", "slow"}


@pytest.mark.parametrize(
    ("device", "job", "words"),
    [
        (DeviceLimits("phone", battery_joules=500.0), {}, "charge 500 J"),
        (DeviceLimits("phone", memory_bytes=1e9), {"memory_bytes": [4e9]}, "needs 4.00 GB of memory"),
        (DeviceLimits("phone"), {"deadline": [600.0]}, "allow 6.67 min more"),
        (DeviceLimits("phone", available=((9000.0, 9e9),)), {"deadline": [1800.0]}, "free for 0 s of the 16.7 min"),
        (DeviceLimits("phone", available=((9000.0, 9e9),)), {"deadline": [1800.0]}, "allow 2.28 h more"),
        (DeviceLimits("phone", available=((0.0, 10.0),)), {"deadline": [1800.0]}, "available for longer"),
        (DeviceLimits("phone"), {"only_on": [frozenset({"laptop"})]}, "its data is only on laptop"),
    ],
)
def test_a_job_that_fits_nowhere_is_named_with_what_would_help(device, job, words):
    found = plan(one_device(1000.0, device=device, **job), 5)
    assert found.jobs == ()
    assert words in found.unscheduled[0].reason


def test_of_jobs_that_do_not_fit_together_as_many_as_possible_run():
    problem = one_device(400.0, 300.0, 200.0, device=DeviceLimits("phone", battery_joules=550.0))
    found = plan(problem, 5, ())
    assert {job.job for job in found.jobs} == {"job 1", "job 2"}
    assert "more in the battery" in found.unscheduled[0].reason


def test_batteries_hold_as_often_as_promised():
    problem = random_problem(3, 16, 4, tight=0.5)
    device = best(problem, 10).device
    rng, broken, days = np.random.default_rng(0), 0, 2000
    relative = (problem.stddev / problem.joules)[0]
    for d, battery in enumerate(problem.batteries):
        mine = np.flatnonzero(device == d)
        if len(mine) and np.isfinite(battery):
            drawn = problem.joules[mine, d].sum() * (1 + relative[d] * rng.standard_normal(days))
            broken = max(broken, float(np.mean(drawn > battery)))
    assert broken <= 0.06


def test_the_rules_are_shown_beside_and_never_better():
    found = plan(random_problem(4, 10, 4), 5)
    assert set(found.baselines) == {"round robin", "fastest device", "FLOPs-guided"}
    complete = [v for v, left in found.baselines.values() if left <= len(found.unscheduled)]
    assert all(found.value <= v * (1 + 1e-3) for v in complete)


def test_the_picture_has_a_bar_for_each_span():
    found = plan(random_problem(5, 6, 3), 5, ())
    text = standalone(gantt(found), "plan", "")
    assert text.count("<rect") == len(found.spans) + 1  # and the paper


def test_the_picture_names_each_time_once():
    drawn = gantt(plan(one_device(290.0), 5, ()), lambda seconds: f"{seconds / 60:g} min")
    assert [mark.words for mark in drawn.marks if getattr(mark, "words", "").endswith("min")] == [
        "0 min", "1 min", "2 min", "3 min", "4 min",
    ]  # fmt: skip


def test_nothing_to_plan_is_refused():
    with pytest.raises(UsageError, match="nothing to schedule"):
        plan(Problem((), (), np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0))))


# As jobs report.


def test_a_plan_goes_on_from_what_was_reported():
    problem = one_device(100.0, 100.0, 100.0, device=DeviceLimits("phone", battery_joules=400.0))
    problem = replace(problem, stddev=0.2 * problem.joules)
    so_far = Reports(
        (JobReport("job 0", "phone", 1.0, 150.0, 120.0), JobReport("job 1", "phone", 0.5, 75.0, 60.0)), 180.0
    )
    rest = with_reports(problem, so_far)
    assert [job.name for job in rest.jobs] == ["job 1", "job 2"]
    assert rest.devices[0].battery_joules == 175.0
    assert rest.devices[0].available[0][0] == 180.0
    assert 140 < rest.joules[1, 0] < 150  # nearly what was seen, twice
    assert rest.joules[0, 0] == pytest.approx(rest.joules[1, 0] / 2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"jobs": 3}',
        '{"jobs": [{"job": "a"}]}',
        '{"jobs": [{"job":"a","device":"b","done":2,"joules":1,"seconds":1}]}',
    ],
)
def test_reports_that_make_no_sense_are_refused(tmp_path, text):
    (tmp_path / "so-far.json").write_text(text)
    with pytest.raises(UsageError, match=r"so-far\.json"):
        reported(tmp_path / "so-far.json")
