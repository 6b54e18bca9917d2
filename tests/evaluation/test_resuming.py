"""What was measured is not measured again, and figures of two plans do not meet in one folder."""

import pytest

from ampere.core.errors import ProfileError, UsageError
from ampere.evaluation.experiments import additivity
from ampere.evaluation.jobs import BlocksJob
from ampere.evaluation.plan import Plan
from ampere.evaluation.running import expected_seconds, jobs_left, run
from ampere.evaluation.session import Folder, Session


@pytest.fixture
def done(monkeypatch):
    """The names of the jobs that were really done; one may be made to fail."""
    names, really = [], BlocksJob.do

    def do(self, session, path, report):
        if self.name == do.stopped_at:
            raise KeyboardInterrupt
        really(self, session, path, report)
        names.append(self.name)

    do.stopped_at = None
    monkeypatch.setattr(BlocksJob, "do", do)
    names_and_switch = type("Done", (), {"names": names, "stop_at": lambda s, n: setattr(do, "stopped_at", n)})
    return names_and_switch()


def test_a_stopped_run_goes_on_where_it_was(session, done):
    first, second = [job.name for job in additivity.jobs(session.plan)]
    done.stop_at(second)
    with pytest.raises(KeyboardInterrupt):
        run(["additivity"], session)
    assert done.names == [first]
    assert session.folder.result("additivity") is None
    done.stop_at(None)
    run(["additivity"], session)
    assert done.names == [first, second]


def test_what_is_finished_is_neither_measured_nor_computed_again(session, done, monkeypatch):
    [before] = run(["fc_channels"], session)
    monkeypatch.setattr("ampere.evaluation.experiments.fc_channels.records", None)
    [again] = run(["fc_channels"], session)
    assert again == before
    assert len(done.names) == 1
    assert expected_seconds(["fc_channels"], session) == 0


def test_shared_work_is_counted_once(session):
    apart = sum(expected_seconds([name], session) for name in ("calibration", "noise_floor", "models_devices"))
    assert expected_seconds(["calibration", "noise_floor", "models_devices"], session) < 0.6 * apart


def test_what_was_not_measured_is_named(session):
    [job, *_] = jobs_left(["additivity"], session)
    with pytest.raises(ProfileError, match="was not measured yet"):
        session.get(job)


@pytest.mark.parametrize("other", [Plan(quick=False), Plan(quick=True, seed=1)])
def test_a_folder_holds_one_plan(tmp_path, other):
    folder = Folder(tmp_path)
    folder.agree(Plan(quick=True), {"local": "a"})
    folder.agree(Plan(quick=True), {"local": "a", "simulated:tx2": "b"})
    with pytest.raises(UsageError, match="choose another folder"):
        folder.agree(other, {"local": "a"})


def test_a_folder_holds_one_machine(tmp_path):
    Folder(tmp_path).agree(Plan(), {"local": "a"})
    with pytest.raises(UsageError, match="another local device"):
        Folder(tmp_path).agree(Plan(), {"local": "b"})


def test_progress_never_goes_back_and_ends_at_all(session):
    seen = []
    with Session(session.folder, session.plan) as own:
        run(["additivity", "fc_channels"], own, lambda done, total, words: seen.append((done, total)))
    shares = [done / total for done, total in seen]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
