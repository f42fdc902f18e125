"""A Bayesian average of smooth curves: what a few reports on a line or a map can say.

log theta is a trend plus a Gaussian field of some length and deviation. Each pair is a prior; its evidence says how
well it explains the reports (`solvers.laplace_evidence`), and the answer is the average of the modes, weighted by
evidence. It takes every report into account at once, where held-out reports are too few to tell candidates apart.

Fields are sums of cosines over a box somewhat larger than the domain, with the variances of the field's spectrum
(Solin and Särkkä 2020): one basis serves all lengths.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from hubbub.channels import Channel
from hubbub.core.arrays import Floats
from hubbub.domains.domain_shape import DomainShape
from hubbub.estimators.auto.candidate_fits import AutoCandidate
from hubbub.estimators.auto.candidate_weights import heaviest
from hubbub.likelihood import MIN_PLAIN_PROBABILITY
from hubbub.solvers.laplace_evidence import fit_curves

BAYESIAN_CURVES = AutoCandidate("Bayesian curves", "a Bayesian average of smooth curves", "less smoothing")
MAX_COSINES = 60  # along a line...
MAX_PLANE_COSINES = 100  # ...and on a map
MARGIN = 0.15  # of the domain, on each side
TREND_DEVIATIONS = (0.5, 3.0)
DEVIATIONS = (0.1, 0.3, 1.0, 3.0)
ROUGH_DEVIATIONS = (0.3, 1.0, 2.0, 4.0, 8.0)
UNIFORM_ADVANTAGE, TREND_ADVANTAGE, SPIKE_HANDICAP = 1.0, 2.0, 3.0  # nats
SPIKE_PARTS = (np.arange(10) + 0.5) / 10.0  # of the users
COUNTED_SHARE, MIN_SPIKE_SHARE = 0.95, 0.01  # of the priors that are used again for other weightings
MIN_LENGTH, LENGTH_FACTOR = 1.5, 2.0  # spacings; up to half of the domain


@dataclass(frozen=True)
class CurvePriors:
    """A basis of curves, and the variances of its coefficients under each prior; the first prior is uniform."""

    basis: Floats  # values by coefficients
    variances: Floats  # priors by coefficients

    @classmethod
    def of(cls, shape: DomainShape) -> CurvePriors:
        """Return the priors for a domain whose values have places."""
        places = shape.scaled[:, np.ptp(shape.scaled, axis=0) > 0.0]  # a column of cells is a line
        trends = shape.trends(2)[:, 1:] * np.sqrt(shape.values)
        cosines, frequencies = _cosines(places)
        dimensions = places.shape[1]
        steady, none = np.zeros(trends.shape[1]), np.zeros(frequencies.size)
        variances = [np.concatenate([steady, none])]
        top = max(shape.extent / 2.0, 2.0 * MIN_LENGTH)
        lengths = MIN_LENGTH * LENGTH_FACTOR ** np.arange(1 + int(np.log2(top / MIN_LENGTH)))
        for trend in TREND_DEVIATIONS:
            variances.append(np.concatenate([steady + trend**2, none]))
            for length, deviation in product(lengths, DEVIATIONS):
                spectrum = (3.0 / length**2 + frequencies**2) ** (-(3.0 + dimensions) / 2.0)
                variances.append(np.concatenate([steady + trend**2, deviation**2 * _scaled(spectrum, cosines)]))
        rough = (1.0 / (2.0 * top) ** 2 + frequencies**2) ** (-(1.0 + dimensions) / 2.0)
        variances += [np.concatenate([steady, size**2 * _scaled(rough, cosines)]) for size in ROUGH_DEVIATIONS]
        return cls(np.concatenate([trends, cosines], axis=1), np.array(variances))

    @property
    def log_odds(self) -> Floats:
        """How likely each prior is beforehand: as likely as its deviation is large (Gelman 2006); a mere trend more."""
        deviations = np.sqrt(self.variances.sum(axis=1))
        odds = np.log(np.where(deviations > 0.0, deviations, np.exp(UNIFORM_ADVANTAGE)))
        has_trend, has_field = self.variances[:, 0] > 0.0, self.variances[:, -1] > 0.0
        return np.asarray(odds + np.where(has_trend & ~has_field, TREND_ADVANTAGE, 0.0))


@dataclass(frozen=True)
class CurveAverage:
    """The average of the modes, and how the evidence is distributed over the priors."""

    probabilities: Floats
    weights: Floats  # of the priors, in their order; then of a spike on the uniform distribution, and on the best curve
    spread: float  # mean distance of the curves from their average, in total variation
    gain: float  # nats by which the best prior explains the reports better than the uniform distribution


def average_curves(channel: Channel, weights: Floats, priors: CurvePriors) -> CurveAverage:
    """Fit the curves of all priors and average them by their evidence."""
    curves = fit_curves(channel, weights, priors.basis, priors.variances)
    best = int(np.argmax(curves.log_evidences))
    spiked = [one_spike(channel, weights, curves.thetas[place]) for place in (0, best)]
    thetas = np.concatenate([curves.thetas, [theta for theta, _ in spiked]])
    gains = [
        curves.log_evidences[place] + gain - SPIKE_HANDICAP for place, (_, gain) in zip((0, best), spiked, strict=True)
    ]
    evidences = np.concatenate([curves.log_evidences, gains])
    gain = float(evidences.max() - evidences[0])
    evidences[: curves.log_evidences.size] += priors.log_odds
    shares = np.exp(evidences - evidences.max())
    shares /= shares.sum()
    average = shares @ thetas
    spread = float(shares @ (0.5 * np.abs(thetas - average).sum(axis=1)))
    return CurveAverage(average, shares, spread, gain)


def refit_curves(channel: Channel, weightings: Floats, priors: CurvePriors, shares: Floats) -> Floats:
    """Return the same average, with these shares of the priors, for other weightings of the patterns (rows)."""
    averages = np.zeros((len(weightings), channel.values))
    spikes = shares[len(priors.variances) :]
    curves = shares[: len(priors.variances)]
    counted = heaviest(curves, COUNTED_SHARE * float(curves.sum()))
    best = int(np.argmax(curves))
    places, start = np.unique([0, best, *counted]), None
    for row, weights in enumerate(weightings):
        fitted = fit_curves(channel, weights, priors.basis, priors.variances[places], start)
        thetas, start = fitted.thetas, fitted.coefficients
        averages[row] = curves[places] @ thetas
        for spike, place in zip(spikes, (0, best), strict=True):
            if spike > MIN_SPIKE_SHARE:
                averages[row] += spike * one_spike(channel, weights, thetas[np.searchsorted(places, place)])[0]
    return np.asarray(averages / averages.sum(axis=1, keepdims=True))


def one_spike(channel: Channel, weights: Floats, background: Floats) -> tuple[Floats, float]:
    """Return the posterior mean and the gain in evidence, in nats, if a part of the users share one value.

    Which value and how large a part are unknown: all are equally likely beforehand.
    """
    smooth = np.maximum(channel.forward(background), MIN_PLAIN_PROBABILITY)
    sent = np.flatnonzero(weights > 0)
    ratios = channel.dense()[:, sent] / smooth[sent] - 1.0
    logs = np.stack([np.log1p(part * ratios) @ weights[sent] for part in SPIKE_PARTS])  # parts by values
    gain = float(logs.max() + np.log(np.exp(logs - logs.max()).mean()))
    posterior = np.exp(logs - logs.max())
    posterior /= posterior.sum()
    in_spike = SPIKE_PARTS @ posterior  # for each value, the expected part that is its spike
    return (1.0 - in_spike.sum()) * background + in_spike, gain


def _cosines(places: Floats) -> tuple[Floats, Floats]:
    """Return cosines at the places (values by cosines), from slow to fast, and their frequencies."""
    extents = np.maximum(np.ptp(places, axis=0), 1.0)
    boxes = (1.0 + 2.0 * MARGIN) * extents
    most = MAX_COSINES if len(extents) == 1 else MAX_PLANE_COSINES
    counts = [int(min(box, most)) + 1 for box in boxes]
    waves = np.array(list(product(*(range(count) for count in counts)))[1:])  # all but the constant
    frequencies = np.linalg.norm(np.pi * waves / boxes, axis=1)
    slow = np.argsort(frequencies, kind="stable")[: min(most, len(places) - 1)]
    angles = np.pi * waves[slow][None] * ((places + MARGIN * extents) / boxes)[:, None, :]
    return np.prod(np.cos(angles), axis=2), frequencies[slow]


def _scaled(spectrum: Floats, cosines: Floats) -> Floats:
    """Return the variances of the cosines for which the field's mean variance is 1."""
    return np.asarray(spectrum / (cosines**2).mean(axis=0).dot(spectrum))
