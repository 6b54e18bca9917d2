"""`ampere evaluate threads`: how many threads cost the fewest joules."""

from itertools import pairwise

import pytest

from ampere.cli.evaluation_tables import show
from ampere.evaluation.experiments.threads import answers
from ampere.evaluation.plan import thread_counts
from ampere.evaluation.running import run
from ampere.evaluation.session import Folder, Session
from ampere.evaluation.summary import summary_of

from .conftest import Tiny

DESKTOP = "simulated:desktop"


@pytest.fixture(scope="module", name="result")
def an_evaluation(tmp_path_factory):
    folder = Folder(tmp_path_factory.mktemp("threads"))
    with Session(folder, Tiny(chosen_devices=(DESKTOP,))) as session:
        (result,) = run(["threads"], session, lambda done, total, text: None)
    return result


def test_numbers_double_up_to_all_cores():
    assert thread_counts(DESKTOP) == (1, 2, 4, 8)
    assert thread_counts("simulated:tx2") == (1, 2, 4, 6)


def test_joules_and_seconds_are_relative_to_one_thread(result):
    rows = result.records
    assert [row["threads"] for row in rows] == [1, 2, 4, 8]
    assert (rows[0]["relative_joules"], rows[0]["relative_seconds"]) == (1, 1)
    assert all(later["relative_seconds"] < row["relative_seconds"] for row, later in pairwise(rows))
    (fewest,) = {row["fewest_joules_on"] for row in rows}
    assert fewest > 1
    assert min(rows, key=lambda row: row["joules"])["threads"] == fewest


def test_the_answer_is_a_line(result, capsys):
    (line,) = answers(result.records)
    fewest = result.records[0]["fewest_joules_on"]
    assert f"fewest joules with {fewest} threads" in line
    assert "less than 1 thread" in line
    show([result], [])
    assert line in capsys.readouterr().out
    assert summary_of([result])["threads"] == {"cnn5": fewest}
