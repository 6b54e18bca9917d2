"""Experiments are found by themselves, and a wrong name gets the nearest ones."""

import pytest

from ampere.core.errors import UsageError
from ampere.evaluation import running
from ampere.evaluation.plan import Plan


@pytest.mark.parametrize("name", running.names())
def test_every_experiment_says_what_it_is_and_what_it_needs(name):
    experiment = running.find(name)
    assert 10 < len(experiment.TITLE) < 90
    assert experiment.FIGURE == "" or experiment.FIGURE.startswith(("Fig. ", "Table "))
    for quick in (True, False):
        jobs = experiment.jobs(Plan(quick))
        assert jobs
        assert all(job.seconds > 0 for job in jobs)
        assert len({job.name for job in jobs}) == len(set(jobs))


@pytest.mark.parametrize("name", running.names())
def test_every_experiment_has_a_picture(name):
    assert callable(running.find(name).draw)


def test_the_papers_figures_come_first_and_in_order():
    figures = [running.find(name).FIGURE for name in running.in_paper_order()]
    numbers = [int(figure.split(",")[0].split(" ")[1]) for figure in figures if figure.startswith("Fig.")]
    assert numbers == sorted(numbers)
    assert not any(figures[figures.index("") :])


@pytest.mark.parametrize(("wrong", "right"), [("additivty", "additivity"), ("fc-channels", "fc_channels")])
def test_a_wrong_name_gets_the_nearest(wrong, right):
    with pytest.raises(UsageError, match=f"did you mean {right}"):
        running.chosen([wrong])


def test_a_name_is_taken_once():
    assert running.chosen(["additivity", "additivity"]) == ["additivity"]
