"""Rivals of `method="auto"` from other people's papers, each as short as its rule: benchmark baselines, not a library.

A rival is a function from reports to shares over the domain, or None where its rule does not apply. Those below start
from the unbiased shares that matrix inversion finds, before these are made a distribution; the ones that unfold
(benchmarks/unfolding.py) start from the counts of outputs. Nothing here depends on the code of `auto`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import norm

import hubbub as hb
from hubbub.mechanisms.frequency_oracle import FrequencyOracle
from hubbub.reports import BitSums, Singles
from hubbub.solvers import invert
from unfolding import maximum_entropy, spline_unfolding, tikhonov, tikhonov_sure

Floats = NDArray[np.float64]
Rival = Callable[[hb.Reports], Floats | None]

FALSE_ALARMS = 0.02  # alpha of base-cut: the chance that any value without users is kept
EXPONENTS = (0.0, 5.0)  # of the power law, between which the best one is sought
EVEN_POINTS, NEAR_POINTS, NEAR_DEVIATIONS = 300, 121, 8.0  # at which integrals over a share are computed
GRID_SHARES = 300  # at which the nonparametric prior may have mass, besides the estimates themselves


@dataclass(frozen=True)
class Unbiased:
    """The shares that inversion finds, which may be negative, and their standard deviations."""

    shares: Floats
    deviations: Floats
    null_deviations: Floats  # of the shares of values that nobody holds

    @classmethod
    def of(cls, reports: hb.Reports) -> Unbiased | None:
        """Invert one mechanism with a square matrix, or a frequency oracle; None where there is no inverse.

        An estimate of a frequency oracle has the variance s (1 - s) / (n (p - q)^2), where a share s of the outputs
        supports the value. Of another mechanism with matrix A and B = A^-1 it is (sum_z q_z B_zx^2 - v_x^2) / n, with q
        the shares of the outputs; what it would be for a value that nobody holds is then not known by itself, and the
        same number is used.
        """
        block, users = reports.blocks[0], reports.users
        mechanism = next(iter(reports.mechanisms))
        is_alone = len(reports.blocks) == 1 and isinstance(block, Singles | BitSums)
        outputs = mechanism.outputs
        is_square = outputs is not None and len(outputs) == len(mechanism.domain)
        if not is_alone or not (is_square or isinstance(mechanism, FrequencyOracle)):
            return None
        try:
            shares = invert(reports)
        except hb.HubbubError:
            return None
        if isinstance(mechanism, FrequencyOracle):
            true, other = mechanism.support
            supported = other + np.clip(shares, 0.0, 1.0) * (true - other)
            scale = np.sqrt(users) * (true - other)
            held = np.sqrt(supported * (1.0 - supported)) / scale
            return cls(shares, held, np.full(shares.size, np.sqrt(other * (1.0 - other)) / scale))
        assert isinstance(block, Singles)  # noqa: S101  # sums of bits are those of frequency oracles
        inverse = np.linalg.inv(mechanism.matrix())
        sent = np.zeros(shares.size)
        sent[block.codes] = block.weights / users
        variances = (sent @ inverse**2 - (sent @ inverse) ** 2) / users
        deviations = np.sqrt(np.maximum(variances, 1e-24))
        return cls(shares, deviations, deviations)


def scaled(shares: Floats) -> Floats:
    """Cut at 0 and divide by the sum; equal shares where nothing is left."""
    positive = np.maximum(shares, 0.0)
    total = positive.sum()
    return np.full(shares.size, 1.0 / shares.size) if total == 0.0 else np.asarray(positive / total)


def norm_sub(reports: hb.Reports) -> Floats | None:
    """Norm-sub: add the same number to all unbiased shares and cut at 0, so that the sum is 1.

    Wang, Lopuhaä-Zwakenberg, Li, Škorić and Li, "Locally differentially private frequency estimation with consistency",
    NDSS 2020. It is the nearest distribution in Euclidean distance, so the same as `inv-p`; here the number is found by
    bisection.
    """
    unbiased = Unbiased.of(reports)
    if unbiased is None:
        return None
    low, high = -float(unbiased.shares.max()), 1.0 - float(unbiased.shares.min())
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(unbiased.shares + middle, 0.0).sum() < 1.0 else (low, middle)
    return scaled(unbiased.shares + high)


def norm_cut(reports: hb.Reports) -> Floats | None:
    """Norm-cut: cut the unbiased shares at 0, then set the smallest to 0 until the sum is at most 1.

    Wang and others, NDSS 2020. What is left may add up to less than 1, which the paper leaves so; here it is divided by
    its sum, because only distributions have a distance. The largest share always stays.
    """
    unbiased = Unbiased.of(reports)
    if unbiased is None:
        return None
    positive = np.maximum(unbiased.shares, 0.0)
    falling = np.argsort(-positive, kind="stable")
    kept = max(1, int(np.count_nonzero(np.cumsum(positive[falling]) <= 1.0)))
    positive[falling[kept:]] = 0.0
    return scaled(positive)


def base_cut(reports: hb.Reports) -> Floats | None:
    """Base-cut: set the unbiased shares to 0 unless they are significantly above 0.

    Wang and others, NDSS 2020. With d values and sigma the deviation of the share of a value that nobody holds, those
    above Phi^-1(1 - 0.02 / d) sigma are kept. The paper does not make them add up to 1; here they are divided by their
    sum, because only distributions have a distance, and are all alike where none is kept.
    """
    unbiased = Unbiased.of(reports)
    if unbiased is None:
        return None
    threshold = norm.ppf(1.0 - FALSE_ALARMS / unbiased.shares.size) * unbiased.null_deviations
    return scaled(np.where(unbiased.shares > threshold, unbiased.shares, 0.0))


def power(reports: hb.Reports) -> Floats | None:
    """Power: posterior expectations under a prior that is a power law, fitted to the same estimates.

    Wang and others, NDSS 2020, after Jia and Gong, "Calibrate", INFOCOM 2019. Shares between 1/n and 1 have a prior
    density proportional to x^-a, the unbiased share of a value is normal around its own, and a is where the likelihood
    of all unbiased shares is largest. The expectations are divided by their sum.
    """
    unbiased = Unbiased.of(reports)
    if unbiased is None:
        return None
    law = PowerLaw.of(unbiased, 1.0 / reports.users)
    best = minimize_scalar(lambda exponent: -law.log_likelihood(exponent), bounds=EXPONENTS, method="bounded")
    return scaled(law.expectations(float(best.x)))


@dataclass(frozen=True)
class PowerLaw:
    """Integrals over the share of each value, by the trapezoidal rule at points that are dense near its estimate."""

    points: Floats  # values by points
    errors: Floats  # the logarithms of the normal densities of the estimates there
    widths: Floats
    least: float

    @classmethod
    def of(cls, unbiased: Unbiased, least: float) -> PowerLaw:
        """Place the points."""
        shares, deviations = unbiased.shares[:, None], unbiased.deviations[:, None]
        near = shares + deviations * np.linspace(-NEAR_DEVIATIONS, NEAR_DEVIATIONS, NEAR_POINTS)
        everywhere = np.broadcast_to(np.geomspace(least, 1.0, EVEN_POINTS), (shares.size, EVEN_POINTS))
        points = np.sort(np.clip(np.concatenate([near, everywhere], axis=1), least, 1.0), axis=1)
        gaps = np.diff(points, axis=1)
        widths = np.zeros_like(points)
        widths[:, :-1] += gaps / 2
        widths[:, 1:] += gaps / 2
        return cls(points, np.asarray(norm.logpdf(shares, points, deviations)), widths, least)

    def _masses(self, exponent: float) -> tuple[Floats, Floats]:
        """Return the joint masses at the points, each row up to a factor, and the logarithms of the factors."""
        power = 1.0 - exponent
        log_total = np.log(-np.log(self.least)) if power == 0.0 else np.log((1.0 - self.least**power) / power)
        logs = self.errors - exponent * np.log(self.points)
        tops = logs.max(axis=1, keepdims=True)
        return np.exp(logs - tops) * self.widths, tops[:, 0] - log_total

    def log_likelihood(self, exponent: float) -> float:
        """Return the log-likelihood of all estimates."""
        masses, factors = self._masses(exponent)
        return float((np.log(masses.sum(axis=1)) + factors).sum())

    def expectations(self, exponent: float) -> Floats:
        """Return the posterior expectation of each share."""
        masses, _ = self._masses(exponent)
        return np.asarray((masses * self.points).sum(axis=1) / masses.sum(axis=1))


def empirical_bayes(reports: hb.Reports) -> Floats | None:
    """Empirical Bayes: posterior means under the prior of shares that fits the estimates best, whatever its shape.

    Kiefer and Wolfowitz, "Consistency of the maximum likelihood estimator in the presence of infinitely many incidental
    parameters", 1956; Koenker and Mizera, "Convex optimization, shape constraints, compound decisions, and empirical
    Bayes rules", 2014. The prior is any distribution on a grid of shares (300 even steps from 0 to the largest
    estimate, and the estimates themselves); unbiased shares are normal around the true ones. The posterior means are
    divided by their sum.
    """
    unbiased = Unbiased.of(reports)
    if unbiased is None:
        return None
    positive = np.maximum(unbiased.shares, 0.0)
    if positive.max() == 0.0:
        return scaled(positive)
    grid = np.unique(np.concatenate([np.linspace(0.0, positive.max(), GRID_SHARES), positive]))
    logs = np.asarray(norm.logpdf(unbiased.shares, grid[:, None], unbiased.deviations))
    densities = np.exp(logs - logs.max(axis=0))
    masses = mixture_weights(densities)[:, None] * densities
    return scaled((grid[:, None] * masses).sum(axis=0) / masses.sum(axis=0))


def mixture_weights(densities: Floats) -> Floats:
    """Return the weights of rows that make the product over the columns of the weighted sums largest.

    This is a maximum of the likelihood like any other here, so hubbub's certified solver finds it. It wants rows of
    probabilities: what a row lacks to 1 goes to an output that nobody sends.
    """
    components, points = densities.shape
    rows = densities / (1.01 * densities.sum(axis=1).max())
    table = np.concatenate([rows, 1.0 - rows.sum(axis=1, keepdims=True)], axis=1)
    mechanism = hb.Matrix(hb.Integers(0, components - 1), np.arange(points + 1), table)
    counts = np.append(np.ones(points, dtype=np.int64), 0)
    return hb.estimate(hb.Reports.from_counts(mechanism, counts), "mle").probabilities


RIVALS: dict[str, Rival] = {
    "norm-sub": norm_sub,
    "norm-cut": norm_cut,
    "base-cut": base_cut,
    "power": power,
    "empirical Bayes": empirical_bayes,
    "spline": spline_unfolding,
    "Tikhonov": tikhonov,
    "Tikhonov SURE": tikhonov_sure,
    "entropy": maximum_entropy,
}
