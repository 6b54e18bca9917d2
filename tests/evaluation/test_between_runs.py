"""Two runs of the evaluation: what changed is found, and what cannot be compared is refused."""

from shutil import copytree

import pytest

from ampere.core.errors import ProfileError, UsageError
from ampere.core.measurement import Window
from ampere.evaluation.between_runs import between, check, drift_of
from ampere.evaluation.jobs import FORMAT
from ampere.evaluation.running import Result, draw, run
from ampere.evaluation.session import Folder, Session
from ampere.evaluation.summary import summary_of
from ampere.storage.files import read_document, write_document

from .conftest import DEVICE, Tiny


class AsLong(Tiny):
    """Profiles that are good enough to see a tenth."""

    def profile_seconds(self, device, family):
        return 4 * super().profile_seconds(device, family)


RISE = 1.1
JOULES = Window._fields.index("joules")


def spoilt(folder):
    """Every trial of a run made more expensive by a tenth: a drift that is known."""
    for path in (folder.path / "measured").glob("trials-*.json"):
        pairs = read_document(path, "trials", FORMAT)
        for one in (one for pair in pairs for half in pair for one in half):
            for window in one["measurement"]["target"]:
                window[JOULES] *= RISE
        write_document(path, "trials", FORMAT, pairs)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run, and the same again on a device that has become more expensive; what `run` measures of both."""
    before, now = (Folder(tmp_path_factory.mktemp(name)) for name in ("before", "now"))
    with Session(before, AsLong()) as session:
        session.agree()
        run(["calibration"], session)
    copytree(before.path, now.path, dirs_exist_ok=True)  # what a simulated device measures again is the same
    spoilt(now)
    return before, now


@pytest.fixture(scope="module")
def result(runs):
    before, now = runs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ampere.evaluation.session.Plan", lambda quick, seed: AsLong(quick, seed))
        return between(before, Session(now, AsLong()))


@pytest.fixture(autouse=True)
def small_plans(monkeypatch):
    monkeypatch.setattr("ampere.evaluation.session.Plan", lambda quick, seed: AsLong(quick, seed))


def test_what_became_more_expensive_is_shown_network_by_network(runs, result):
    assert len(result.records) == 8
    for record in result.records:
        assert record["joules"] / record["joules_before"] == pytest.approx(RISE)
        assert record["estimate"] == pytest.approx(record["estimate_before"])
        assert record["estimate_carried"] == pytest.approx(record["estimate"])
        assert record["device"] == DEVICE
    assert Result.from_json(runs[1].result("between_runs")) == result


def test_the_summary_has_a_line_a_family(result):
    lines = summary_of([result])["between_runs"]
    assert [line["family"] for line in lines] == ["lenet5", "cnn5"]
    assert lines == drift_of(result.records)
    for line in lines:
        assert line["measured"] == pytest.approx(RISE - 1)
        assert line["estimated"] == pytest.approx(0)
        assert line["mape_carried"] > line["mape_before"]


def test_it_is_drawn(result, tmp_path):
    png, *_ = draw(result, tmp_path)
    assert png.stat().st_size > 10_000


def test_a_run_is_not_compared_with_itself(runs):
    with pytest.raises(UsageError, match="compared with itself"):
        check(runs[0], Session(runs[0], AsLong()))


def test_another_device_is_refused(runs, tmp_path):
    other = Folder(tmp_path)
    other.agree(AsLong(), {DEVICE: "another"})
    with pytest.raises(UsageError, match="drift is of one device only"):
        check(other, Session(runs[0], AsLong()))


def test_nothing_in_common_is_said(runs, tmp_path):
    empty = Folder(tmp_path)
    empty.agree(AsLong(), {})
    with pytest.raises(ProfileError, match="run `ampere evaluate models_devices` in both"):
        between(empty, Session(runs[0], AsLong()))
