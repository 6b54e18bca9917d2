"""From data to a fitted model: vector width, hyperparameters, noisier outliers, calibrated intervals."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np

from ampere.core.kinds import VECTOR_WIDTHS

from .additive import Additive, Data
from .features import Array
from .hyperparameters import Hyperparameters
from .marginal_likelihood import most_probable

FEWEST = 4  # measurements, below which hyperparameters are not learnt
OUTLIER = 3.0  # standard deviations beyond which a measurement's noise is increased
FOLDS = 8
KNOWN_WIDTH_NATS = 3.0  # prior log odds of the vector width that was assumed before
NOISY = 0.1  # initial grain among isolated layers: a search that begins with less takes noise for signal
SEARCHED_ON = 160  # measurements, at most, in the search for hyperparameters: its cost grows with their cube
ISOLATED_SEARCHED_ON = 300  # of isolated layers, which are one position each
ISOLATED_EVALUATIONS = 150  # at least, of a search among isolated layers: they have no repeats that tell their noise
ISOLATED_FREEDOM = 1.4  # factor on the width of the prior of hyperparameters among isolated layers
# Where further searches begin among isolated layers, if nobody waits: costs that step with size, or hardly change.
OTHER_STARTS: tuple[dict[str, Any], ...] = (
    {"octaves": 1.5, "waste_octaves": 0.7},
    {"octaves": 8.0, "grain": 0.03},
)
JUDGED_ON = 120  # held-out measurements, at most, that intervals are calibrated on
ISOLATED_REFIT_UP_TO = 120
REFIT_UP_TO = 50  # measurements, up to which each fold refits hyperparameters too: few measurements are overfitted
FEWEST_SORTS, FEWEST_OF_A_SORT = 4, 3  # of networks, from which on folds are sorts
CALIBRATED_FROM = 16  # measurements, below which too few could be held out
FEW_AT_MOST = 4.0  # the largest factor on intervals of fewer


class _Blas:
    """How many are inside of `one_blas_thread`, and what gives numpy its threads back when the last one leaves."""

    lock, inside = Lock(), 0
    limit: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let numpy and scipy compute on one thread, and then as before: matrices here are small, and a second thread
    spins more than it works. The command line says so by OPENBLAS_NUM_THREADS before they are imported."""
    if os.environ.get("OPENBLAS_NUM_THREADS") == "1":
        yield
        return
    import scipy.linalg  # noqa: F401  (whose own OpenBLAS must be there to be limited)
    from threadpoolctl import threadpool_limits

    with _Blas.lock:
        _Blas.inside += 1
        if _Blas.inside == 1:
            _Blas.limit = threadpool_limits(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _Blas.lock:
            _Blas.inside -= 1
            if not _Blas.inside:
                _Blas.limit.restore_original_limits()


def learn(
    data: Data, start: Hyperparameters | None = None, evaluations: int = 60, seconds: float = float("inf")
) -> Additive:
    """The model fitted to the data, beginning with the hyperparameters `start`.

    The search for hyperparameters computes the marginal likelihood at most `evaluations` times and takes about
    `seconds` at most; with 0 evaluations they stay as they are.
    """
    hyper = start or Hyperparameters()
    if len(data) < FEWEST:
        return Additive(data, hyper)
    if evaluations:
        some = _spread_out(data, ISOLATED_SEARCHED_ON if data.isolated else SEARCHED_ON)
        evaluations = max(evaluations, ISOLATED_EVALUATIONS) if data.isolated else evaluations
        if data.isolated and hyper == Hyperparameters():  # nothing is learnt yet
            hyper = replace(hyper, grain=NOISY)
        hyper = _searched(some, _with_most_likely_width(some, hyper), evaluations, seconds)
    return Additive(_with_noisier_outliers(data, hyper), hyper)


def _with_most_likely_width(data: Data, hyper: Hyperparameters) -> Hyperparameters:
    best = max(
        (Additive(data, replace(hyper, vector_width=w)) for w in VECTOR_WIDTHS),
        key=lambda model: (
            model.marginal_likelihood(model.hyper)[0]
            + KNOWN_WIDTH_NATS * (model.hyper.vector_width == hyper.vector_width)
        ),
    )
    return best.hyper


def _searched(data: Data, hyper: Hyperparameters, evaluations: int, seconds: float) -> Hyperparameters:
    """The most probable hyperparameters, with outliers made noisier first: they must not raise the noise of all."""
    model = Additive(_with_noisier_outliers(data, hyper), hyper)
    coordinates = {kind: positions.shape[1] for kind, positions in model.design.positions.items()}
    freedom = ISOLATED_FREEDOM if data.isolated else 1.0
    unhurried = data.isolated and seconds == float("inf")
    others = [replace(hyper, **of) for of in OTHER_STARTS] if unhurried else []
    return most_probable(model.marginal_likelihood, coordinates, hyper, evaluations, seconds, freedom, others)


def calibrated(model: Additive, judged: Array) -> Additive:
    """The same model with intervals scaled to cover held-out measurements as often as they should.

    Prices and posterior are refitted without each fold; hyperparameters too where measurements are few. `judged` marks
    the measurements that are like the networks to estimate. Where networks are of several sorts, folds of whole sorts
    say how wrong a model of no measured sort is, others how wrong one of a measured sort is; a user's is between.
    """
    if (count := len(model.data)) < CALIBRATED_FROM:
        factor = few_factor(count)
        if count > FEWEST and not model.data.isolated:  # also how wrong each of them is without the others
            factor = max(factor, _calibration(model, np.ones(count, dtype=bool), [], FEW_AT_MOST))
        return Additive(model.data, replace(model.hyper, calibration=factor), model.prices)
    if np.sum(judged) < CALIBRATED_FROM:
        return model
    sorts = sorts_of(model.data, judged)
    factors = [_calibration(model, judged, [])] + ([_calibration(model, judged, sorts)] if sorts else [])
    return Additive(model.data, replace(model.hyper, calibration=float(np.exp(np.mean(np.log(factors))))), model.prices)


def _calibration(model: Additive, judged: Array, sorts: list[str], most: float = 2.5) -> float:
    data, scores = model.data, np.full(len(model.data), np.nan)
    fresh = Hyperparameters(one_by_one=model.hyper.one_by_one)
    refit = len(data) <= (ISOLATED_REFIT_UP_TO if data.isolated else REFIT_UP_TO)
    for held_out in _folds(data, sorts):
        rest = data.only(np.logical_not(held_out))
        without = learn(rest, fresh) if refit else Additive(rest, model.hyper)
        scores[held_out] = _scores(without, data.only(held_out))
        if np.sum(judged & ~np.isnan(scores)) >= JUDGED_ON and not sorts:
            break
    judged = judged & ~np.isnan(scores)
    level = min(1.0, 0.9 * (1 + 1 / np.sum(judged)))  # the finite-sample level of conformal prediction
    return float(np.clip(np.quantile(scores[judged], level) / 1.645, 0.7, most))


def few_factor(measurements: int) -> float:
    """How much wider intervals of so few measurements are: Student's t for one more of them, not the normal one.

    Overheads, arithmetic and memory have speeds of their own, so three measurements are one degree of freedom.
    """
    if not 0 < measurements < CALIBRATED_FROM:
        return 1.0
    from scipy.special import stdtrit

    return float(stdtrit(max(1.0, measurements / 3), 0.95) * np.sqrt(1 + 1 / measurements)) / 1.645


def sorts_of(data: Data, judged: Array) -> list[str]:
    """The names that enough networks share, where there are several: the sorts of a device's profile."""
    names = Counter(n.name for n, counts in zip(data.networks, judged, strict=True) if counts and n.name)
    found = [name for name, count in names.items() if count >= FEWEST_OF_A_SORT]
    return found if len(found) >= FEWEST_SORTS else []


def _folds(data: Data, sorts: list[str]) -> Iterator[Array]:
    """The measurements to hold out at a time: all of a sort where there are several, else every eighth."""
    if sorts:
        names = np.array([network.name for network in data.networks])
        yield from (names == name for name in sorts)
    else:
        yield from (np.arange(len(data)) % FOLDS == fold for fold in range(FOLDS))


def _spread_out(data: Data, most: int) -> Data:
    """At most `most` measurements, evenly spread over the run."""
    chosen = np.zeros(len(data), dtype=bool)
    chosen[np.linspace(0, len(data) - 1, min(most, len(data))).astype(int)] = True
    return data.only(chosen)


def _scores(model: Additive, data: Data) -> Array:
    """Each measurement's distance from the model's mean, in standard deviations."""
    means, posterior = model.joint(data.networks, data.system)
    noise = np.minimum(data.noise, np.median(model.data.noise))  # an outlier's added noise does not excuse it
    sizes = means if model.logarithmic else data.costs
    variance = np.diag(posterior) + (noise + model.irreducible_variance(sizes)) * sizes**2
    return np.abs(data.costs - means) / np.sqrt(np.maximum(variance, 1e-300))


def _with_noisier_outliers(data: Data, hyper: Hyperparameters) -> Data:
    """The same data, with more noise on measurements far from what the others suggest."""
    errors, deviations = Additive(data, hyper).leave_one_out()
    excess = np.abs(errors) / deviations / OUTLIER
    noisier = data.noise + (excess * deviations / data.costs) ** 2
    return replace(data, noise=np.where(excess > 1, noisier, data.noise))
