"""The fit of a stored profile is kept: answers stay the same to the last bit, whatever happens to the file."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from io import BytesIO
from random import Random

import numpy as np
import pytest
from tests.synthetic import block, random_chains, true_seconds
from threadpoolctl import threadpool_info, threadpool_limits

from ampere.core import Measurement, Meter, TrainingSetup
from ampere.core.measurement import Window
from ampere.estimation import kept_fits
from ampere.estimation.estimator import Estimator
from ampere.storage import Observation, Profile

CPU_TIME, COUNTER = Meter("cpu-time", False, scope="CPU seconds x 5 W per busy core"), Meter("synthetic", True)
KNOWN, ASKED = random_chains(0, 24), random_chains(1, 3)


def on_two_threads(network, rng):
    """Wall time guides, and joules are modelled from busy time, which is noisier."""

    def window(seconds, steps):
        return Window(steps, steps * seconds, steps * seconds * rng.gauss(1.8, 0.1), 9.0 * steps * seconds)

    target, yardstick = [window(true_seconds(network), 8) for _ in range(2)], [window(1e-3, 4) for _ in range(3)]
    return Measurement(tuple(target), tuple(yardstick), CPU_TIME)


def profile(threads=1, counted=False, **more):
    rng = Random(threads)
    seen = []
    for network in KNOWN if threads == 1 else KNOWN[:16]:
        seconds = true_seconds(network) * rng.gauss(1, 0.02)
        joules = {"joules": 6 * seconds, "meter": COUNTER, "yardstick_joules": 6e-3} if counted else {"meter": CPU_TIME}
        measured = block(seconds, **joules) if threads == 1 else on_two_threads(network, rng)
        seen.append(Observation(network, measured, "network"))
    meter = COUNTER if counted else CPU_TIME
    read = {"yardstick_joules": 6e-3} if counted else {}
    return Profile({"id": "x"}, TrainingSetup(threads=threads), meter, 1e-3, tuple(seen), **read, **more)


def run_of(network):
    return Observation(network, block(1.2 * true_seconds(network), yardstick=None, meter=CPU_TIME), "run")


PROFILES = {
    "modelled": profile,
    "counted": lambda: profile(counted=True),
    "on two threads": lambda: profile(2),
    "on two threads and on one": lambda: profile(2, others=(profile(),)),
    "with recorded runs": lambda: profile(runs=(run_of(ASKED[0]), run_of(ASKED[1]))),
}


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A stored profile, in a home of its own."""
    monkeypatch.setenv("AMPERE_HOME", str(tmp_path / "home"))
    path = tmp_path / "profile.json"
    profile().save(path)
    return path


def answers(path, watts=None):
    found = Profile.load(path)
    estimator = Estimator(found.on_threads(found.setup.threads), watts)
    model, _ = estimator.of_joules
    assert [cost.network for cost in estimator.fitted_costs] == [*model.data.networks]
    left_out = [each.tolist() for each in model.leave_one_out()]
    return [estimator.estimate(network).to_json() for network in ASKED], estimator.drift_share, left_out


def files(tmp_path):
    return sorted((tmp_path / "home" / "fits").glob("*"))


@pytest.mark.parametrize("which", PROFILES)
def test_answers_are_the_same_to_the_last_bit(which, stored, monkeypatch):
    PROFILES[which]().save(stored)
    first = answers(stored)
    monkeypatch.setattr("ampere.estimation.estimator.fit", None)  # it must not be called again
    assert answers(stored) == first


def test_another_profile_other_watts_and_another_version_are_fitted_anew(stored, tmp_path, monkeypatch):
    first = answers(stored)
    assert answers(stored, 10.0) != first
    monkeypatch.setattr(kept_fits, "_code", lambda: "of another version")
    assert answers(stored) == first
    assert len(files(tmp_path)) == 3
    known = profile()
    changed = replace(known, observations=known.observations[:-1])
    changed.save(stored)
    assert answers(stored) != first
    assert len(files(tmp_path)) == 4
    Estimator(replace(Profile.load(stored), observations=known.observations))  # no longer what the file says
    assert len(files(tmp_path)) == 4


def test_only_the_newest_are_kept(stored, tmp_path):
    for watts in range(1, kept_fits.MOST_KEPT + 3):
        answers(stored, float(watts))
    assert len(files(tmp_path)) == kept_fits.MOST_KEPT


def arrays_alone():
    content = BytesIO()
    np.savez(content, numbers=np.array("{}"), other=np.zeros(3))
    return content.getvalue()


DAMAGES = {
    "cut short": lambda raw: raw[: len(raw) // 2],
    "another byte": lambda raw: raw[:2000] + bytes([raw[2000] ^ 1]) + raw[2001:],
    "empty": lambda raw: b"",
    "something else": lambda raw: b"\x80\x04K\x01.",
    "other arrays": lambda raw: arrays_alone(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_means_fitting_again(damage, stored, tmp_path):
    first = answers(stored)
    (file,) = files(tmp_path)
    whole = file.read_bytes()
    file.write_bytes(DAMAGES[damage](whole))
    assert answers(stored) == first
    assert file.read_bytes() == whole  # mended


def test_where_nothing_can_be_written_answers_are_the_same(stored, tmp_path, monkeypatch):
    first = answers(stored)
    for file in files(tmp_path):
        file.unlink()
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # as on a full disk
    try:
        assert answers(stored) == first
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(tmp_path) == []
    monkeypatch.setenv("AMPERE_HOME", str(stored))  # a file: no folder can be made in it
    assert answers(stored) == first


def test_several_at_once_have_the_same_answers(stored, tmp_path):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: answers(stored), range(8)))
    assert all(each == found[0] for each in found)
    assert len(files(tmp_path)) == 1


def blas_threads():
    import scipy.linalg  # noqa: F401  (which has an OpenBLAS of its own)

    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_a_fit_takes_one_thread_of_numpy_whoever_asks_and_gives_the_others_back(stored, monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)  # as in a notebook that imported numpy long before
    fit, seen = Estimator._fit_all, []
    monkeypatch.setattr(Estimator, "_fit_all", lambda self: [seen.append(blas_threads()), fit(self)])
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("numpy's BLAS has one thread, or is of another sort")
        found = answers(stored)
        assert seen == [{1}]
        assert blas_threads() == {2}
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")  # as the command line says
    assert answers(stored)[0] == found[0]
    assert len(seen) == 1
