"""From data to a fitted model: vector width, hyperparameters, one look for outliers, calibrated intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ampere.core.kinds import VECTOR_WIDTHS

from .additive import Additive, Data
from .features import Array
from .hyperparameters import Hyperparameters
from .marginal_likelihood import most_probable

FEWEST = 4  # measurements, below which there is nothing to learn hyperparameters from
OUTLIER = 3.0  # standard deviations beyond which a measurement's noise is taken to be larger than it says
FOLDS = 8
WIDTH_BELIEF = 3.0  # how much more likely, in nats, the vector width is that was believed before
NOISY = 0.1  # grain that a search among lone layers begins with: noise once taken for signal would stay so
SEARCHED_ON = 160  # measurements, at most, in the search for hyperparameters: its cost grows with their cube
JUDGED_ON = 120  # held-out measurements, at most, that intervals are calibrated on
LEARNT_ANEW = 50  # measurements, up to which hyperparameters too are found without each fold: few are fitted too well
CALIBRATED_FROM = 16  # measurements, below which the intervals are left as they are


def learn(
    data: Data, start: Hyperparameters | None = None, evaluations: int = 60, seconds: float = float("inf")
) -> Additive:
    """`evaluations` is how often the evidence may be computed in the search for hyperparameters; 0 leaves them.

    Many measurements make the evidence dear; the search ends when it has taken about so many `seconds`.
    """
    hyper = start or Hyperparameters()
    if len(data) < FEWEST:
        return Additive(data, hyper)
    if evaluations:
        some = _spread_out(data, SEARCHED_ON)
        if data.alone and hyper == Hyperparameters():  # nothing was learnt yet
            hyper = replace(hyper, grain=NOISY)
        hyper = _searched(some, _with_likeliest_width(some, hyper), evaluations, seconds)
    return Additive(_doubting_outliers(data, hyper), hyper)


def _with_likeliest_width(data: Data, hyper: Hyperparameters) -> Hyperparameters:
    best = max(
        (Additive(data, replace(hyper, vector_width=w)) for w in VECTOR_WIDTHS),
        key=lambda model: (
            model.evidence(model.hyper)[0] + WIDTH_BELIEF * (model.hyper.vector_width == hyper.vector_width)
        ),
    )
    return best.hyper


def _searched(data: Data, hyper: Hyperparameters, evaluations: int, seconds: float) -> Hyperparameters:
    """A wild measurement must not pass for the noise of all: it is doubted before."""
    model = Additive(_doubting_outliers(data, hyper), hyper)
    coordinates = {kind: positions.shape[1] for kind, positions in model.stack.positions.items()}
    return most_probable(model.evidence, coordinates, hyper, evaluations, seconds)


def calibrated(model: Additive, judged: Array) -> Additive:
    """The same model with intervals scaled so that they cover held-out measurements as often as they say.

    Prices and posterior are made anew without each fold, of few measurements hyperparameters too. `judged` says which
    measurements are like what will be asked for.
    """
    data, scores = model.data, np.full(len(model.data), np.nan)
    anew = Hyperparameters(one_by_one=model.hyper.one_by_one)
    if np.sum(judged) < CALIBRATED_FROM:
        return model
    for fold in range(FOLDS):
        held_out = np.arange(len(data)) % FOLDS == fold
        rest = data.only(~held_out)
        without = learn(rest, anew) if len(data) <= LEARNT_ANEW else Additive(rest, model.hyper)
        scores[held_out] = _scores(without, data.only(held_out))
        if np.sum(judged & ~np.isnan(scores)) >= JUDGED_ON:
            break
    judged = judged & ~np.isnan(scores)
    level = min(1.0, 0.9 * (1 + 1 / np.sum(judged)))  # so many held out say a little less than as many unseen
    factor = float(np.clip(np.quantile(scores[judged], level) / 1.645, 0.7, 2.5))
    return Additive(data, replace(model.hyper, calibration=factor), model.prices)


def _spread_out(data: Data, most: int) -> Data:
    """At most so many, evenly over the run: early and late ones, cheap and dear ones."""
    chosen = np.zeros(len(data), dtype=bool)
    chosen[np.linspace(0, len(data) - 1, min(most, len(data))).astype(int)] = True
    return data.only(chosen)


def _scores(model: Additive, data: Data) -> Array:
    """How many standard deviations each measurement is from what the model says of it."""
    means, posterior = model.joint(data.networks, data.system)
    noise = np.minimum(data.noise, np.median(model.data.noise))  # an outlier that was doubted is still to be covered
    variance = np.diag(posterior) + (noise + model.unrepeatable(data.costs)) * data.costs**2
    return np.abs(data.costs - means) / np.sqrt(np.maximum(variance, 1e-300))


def _doubting_outliers(data: Data, hyper: Hyperparameters) -> Data:
    errors, deviations = Additive(data, hyper).leave_one_out()
    excess = np.abs(errors) / deviations / OUTLIER
    doubted = data.noise + (excess * deviations / data.costs) ** 2
    return replace(data, noise=np.where(excess > 1, doubted, data.noise))
