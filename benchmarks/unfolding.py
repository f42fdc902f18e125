"""Rivals of `method="auto"` that physicists use to unfold: splines within EM, Tikhonov's penalty, maximum entropy.

Each is a function from reports to shares over the domain, or None where its rule does not apply.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline, UnivariateSpline
from scipy.linalg import cho_factor, cho_solve, eigvalsh

import hubbub as hb
from hubbub.domains import LineDomain
from hubbub.reports import Singles

Floats = NDArray[np.float64]

MAX_UPDATES, LEAST_CHANGE = 100, 0.01  # of EM with splines: PyUnfold's defaults
STRENGTHS, DECADES = 60, (-9.0, 5.0)  # of Tikhonov's penalty, relative to the weight of the counts
FINE_STRENGTHS = 20  # between two of them, where the curvature of the L-curve is looked at
MAX_NEWTON_STEPS, NEWTON_TOLERANCE = 80, 1e-7  # the tolerance in nats
LEAST_ENTROPY_WEIGHT, ENTROPY_FACTOR = 0.01, 0.5
LOSSES_BEFORE_END = 4  # weights of the entropy in a row that are worse than the best one
MAX_ENTROPY_WORK = 500_000_000  # values squared times patterns: more would take a minute


def spline_unfolding(reports: hb.Reports) -> Floats | None:
    """Unfold iteratively, with a spline through the shares after each update: lines only.

    D'Agostini, "A multidimensional unfolding method based on Bayes' theorem", 1995, which is EM from the uniform
    distribution; with splines and the rule for stopping as in PyUnfold (Bourbeau and Hampel-Arias, 2018). After each
    update a cubic smoothing spline replaces the estimated counts. PyUnfold leaves the smoothing to its user; here the
    sum of squared residuals, in standard deviations of counts, is at most the number of values. It ends when the
    distribution functions of two iterates differ by less than 0.01, or after 100 updates. As in PyUnfold, the answer is
    the last update before its spline.
    """
    if not isinstance(reports.domain, LineDomain):
        return None
    channel, weights = reports.channel, reports.weights
    users, size = float(weights.sum()), len(reports.domain)
    smooth = np.full(size, 1.0 / size)
    updated = smooth
    for _ in range(MAX_UPDATES):
        before = smooth
        updated = before * channel.backward(weights / channel.forward(before)) / users
        smooth = splined(users * updated)
        if np.abs(np.cumsum(smooth - before)).max() < LEAST_CHANGE:
            break
    return np.asarray(updated / updated.sum())


def splined(counts: Floats) -> Floats:
    """Return the shares on a cubic spline near the counts; a small floor keeps all reports possible."""
    places = np.arange(counts.size, dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of knots that would be needed to come as close as asked for
        fitted = UnivariateSpline(places, counts, w=1.0 / np.sqrt(np.maximum(counts, 1.0)), s=counts.size)(places)
    positive = np.maximum(fitted, 1e-9 * counts.sum())
    return np.asarray(positive / positive.sum())


@dataclass(frozen=True)
class Response:
    """The probabilities of all outputs (values by outputs), and how many users sent each."""

    matrix: Floats
    counts: Floats

    @classmethod
    def of(cls, reports: hb.Reports) -> Response | None:
        """Return the tables of all mechanisms side by side; None where a user sent several outputs or bits."""
        tables, counts = [], []
        for block in reports.blocks:
            if not isinstance(block, Singles) or block.codes.ndim != 1 or block.mechanism.outputs is None:
                return None
            table = block.mechanism.matrix()
            sent = np.zeros(table.shape[1])
            sent[block.codes] = block.weights
            tables.append(table * (block.users / reports.users))
            counts.append(sent)
        return cls(np.concatenate(tables, axis=1), np.concatenate(counts))


def tikhonov(reports: hb.Reports) -> Floats | None:
    """Unfold by least squares with a penalty on curvature, chosen by the L-curve: lines and maps.

    Schmitt, "TUnfold", 2012. The people x of the values minimise

        sum_z (y_z - (x A)_z)^2 / max(y_z, 1) + tau^2 |L x|^2   with sum x = n,

    with L the second differences along the line, or along both axes of a map. The bias x0 of TUnfold would change
    nothing: the curvature of zero and of equal shares is the same. Tau is at the corner of the L-curve (the largest
    curvature of log penalty against log residual). Negative people are then set to 0 and the rest normalised.
    """
    unfolding = Tikhonov.of_reports(reports)
    return None if unfolding is None else unfolding.shares(unfolding.corner())


def tikhonov_sure(reports: hb.Reports) -> Floats | None:
    """Unfold by least squares with a penalty on curvature, chosen by Stein's unbiased risk estimate: lines and maps.

    As `tikhonov`, but tau is where the residual plus twice the degrees of freedom of the fit (the trace of its
    derivative by the counts) is least, another of TUnfold's rules.
    """
    unfolding = Tikhonov.of_reports(reports)
    return None if unfolding is None else unfolding.shares(unfolding.least_risk())


def curvature(domain: hb.Domain) -> Floats:
    """Return second differences: a row for each value and axis with a neighbour on both sides."""
    if isinstance(domain, hb.Grid):
        place = np.arange(len(domain)).reshape(domain.rows, domain.columns)
        triples = [(place[:, :-2], place[:, 1:-1], place[:, 2:]), (place[:-2], place[1:-1], place[2:])]
    else:
        line = np.arange(len(domain)).reshape(-1, 1)
        triples = [(line[:-2], line[1:-1], line[2:])]
    rows = []
    for before, middle, after in triples:
        differences = np.zeros((middle.size, len(domain)))
        row = np.arange(middle.size)
        differences[row, before.ravel()] = differences[row, after.ravel()] = 1.0
        differences[row, middle.ravel()] = -2.0
        rows.append(differences)
    return np.concatenate(rows)


@dataclass(frozen=True)
class Tikhonov:
    """Least squares with a penalty of any strength, the squares of tau."""

    response: Response
    differences: Floats
    information: Floats  # A V^-1 A'
    projected: Floats  # A V^-1 y
    penalty: Floats  # L' L

    @classmethod
    def of(cls, response: Response, differences: Floats) -> Tikhonov:
        """Compute what all strengths share."""
        weighted = response.matrix / np.maximum(response.counts, 1.0)
        information, projected = weighted @ response.matrix.T, weighted @ response.counts
        return cls(response, differences, information, projected, differences.T @ differences)

    @classmethod
    def of_reports(cls, reports: hb.Reports) -> Tikhonov | None:
        """Return the problem of some reports; None where values have no neighbours, or outputs cannot be counted."""
        response = None if isinstance(reports.domain, hb.Categories) else Response.of(reports)
        return None if response is None else cls.of(response, curvature(reports.domain))

    @property
    def scale(self) -> float:
        """The strength at which counts and curvature weigh alike, roughly."""
        return float(np.trace(self.information) / np.trace(self.penalty))

    def solved(self, strength: float, right: Floats) -> Floats:
        """Solve the system of some strength, with a ridge that is far below all else."""
        ridge = 1e-12 * np.trace(self.information) / len(self.information)
        system = self.information + strength * self.penalty + ridge * np.eye(len(self.information))
        return np.asarray(cho_solve(cho_factor(system), right))

    def at(self, strength: float) -> Floats:
        """Return the people of each value, with the sum of the counts."""
        free, even = self.solved(strength, np.stack([self.projected, np.ones(len(self.information))], axis=1)).T
        return np.asarray(free + even * (self.response.counts.sum() - free.sum()) / even.sum())

    def shares(self, strength: float) -> Floats:
        """Return the people as a distribution: cut at 0 and normalised."""
        positive = np.maximum(self.at(strength), 0.0)
        return np.asarray(positive / positive.sum())

    def freedom(self, strength: float) -> float:
        """Return the trace of the derivative of the fitted counts by the counts."""
        even = self.solved(strength, np.ones(len(self.information)))
        free = float(np.trace(self.solved(strength, self.information)))
        return free - float(even @ self.information @ even / even.sum()) + 1.0

    def least_risk(self) -> float:
        """Return the strength of least estimated risk."""
        strengths = self.scale * np.logspace(*DECADES, STRENGTHS)
        return min(strengths, key=lambda strength: math.exp(self.logs(strength)[0]) + 2.0 * self.freedom(strength))

    def logs(self, strength: float) -> tuple[float, float]:
        """Return the logarithms of the residual and of the curvature."""
        people = self.at(strength)
        residual = self.response.counts - people @ self.response.matrix
        misfit = float((residual**2 / np.maximum(self.response.counts, 1.0)).sum())
        return math.log(max(misfit, 1e-300)), math.log(max(float(((self.differences @ people) ** 2).sum()), 1e-300))

    def corner(self) -> float:
        """Return the strength at which the L-curve bends most towards the origin."""
        places = np.linspace(*DECADES, STRENGTHS) * math.log(10.0)
        misfit, bend = np.array([self.logs(self.scale * math.exp(place)) for place in places]).T
        across, down = CubicSpline(places, misfit), CubicSpline(places, bend)
        fine = np.linspace(places[1], places[-2], FINE_STRENGTHS * STRENGTHS)
        turning = across(fine, 1) * down(fine, 2) - across(fine, 2) * down(fine, 1)
        speed = across(fine, 1) ** 2 + down(fine, 1) ** 2
        return self.scale * math.exp(float(fine[np.argmax(turning / np.maximum(speed, 1e-12) ** 1.5)]))


def maximum_entropy(reports: hb.Reports) -> Floats | None:
    """Unfold with the entropy as prior, weighted by its evidence.

    Skilling and Gull, "Classic maximum entropy", 1989, as in MemSys. The shares theta of k values maximise

        log-likelihood - alpha sum_x theta_x log(k theta_x),

    and alpha is the one of largest evidence: log-likelihood less penalty less half of sum_i log(1 + lambda_i / alpha),
    with lambda the curvature of the log-likelihood in units of sqrt(theta), over directions that keep the sum. At that
    alpha, 2 alpha times the (negative) entropy is the number of well-measured directions, sum_i lambda_i / (alpha +
    lambda_i), up to the spacing of the alphas, which are tried in halves from 4 n down. Equal shares are alpha = inf.
    """
    channel, weights = reports.channel, reports.weights
    if channel.values**2 * weights.size > MAX_ENTROPY_WORK:
        return None
    problem = Entropy(channel.dense(), weights)
    theta = np.full(channel.values, 1.0 / channel.values)
    best, most, losses = theta, problem.log_likelihood(theta), 0
    alpha = 4.0 * float(weights.sum())
    while alpha > LEAST_ENTROPY_WEIGHT and losses < LOSSES_BEFORE_END:
        theta = problem.maximum(alpha, theta)
        evidence = problem.evidence(alpha, theta)
        losses = 0 if evidence > most else losses + (best.std() > 0.0)
        if evidence > most:
            best, most = theta, evidence
        alpha *= ENTROPY_FACTOR
    return np.asarray(best / best.sum())


@dataclass(frozen=True)
class Entropy:
    """The likelihood of patterns (values by patterns) with the entropy as penalty."""

    matrix: Floats
    weights: Floats

    def log_likelihood(self, theta: Floats) -> float:
        """Return the log-likelihood up to a constant."""
        return float(self.weights @ np.log(theta @ self.matrix))

    def penalised(self, alpha: float, theta: Floats) -> float:
        """Return the log-likelihood less the penalty."""
        return self.log_likelihood(theta) - alpha * float(theta @ np.log(theta.size * theta))

    def curvature(self, theta: Floats) -> Floats:
        """Return minus the second derivatives of the log-likelihood, in units of sqrt(theta)."""
        fitted = theta @ self.matrix
        rows = np.sqrt(theta)[:, None] * self.matrix * (np.sqrt(self.weights) / fitted)
        return np.asarray(rows @ rows.T)

    def maximum(self, alpha: float, theta: Floats) -> Floats:
        """Return the maximum by Newton's method on the simplex, from a start inside it."""
        value = self.penalised(alpha, theta)
        for _ in range(MAX_NEWTON_STEPS):
            root = np.sqrt(theta)
            slope = self.matrix @ (self.weights / (theta @ self.matrix)) - alpha * (np.log(theta.size * theta) + 1.0)
            system = cho_factor(self.curvature(theta) + alpha * np.eye(theta.size))
            free, even = cho_solve(system, root * slope), cho_solve(system, root)
            step = root * (free - even * (root @ free) / (root @ even))
            gain = float(step @ slope)
            if gain < NEWTON_TOLERANCE:
                break
            length = min(1.0, 0.99 / max(1e-300, float((-step / theta).max())))
            while (reached := self.penalised(alpha, theta + length * step)) < value + 1e-4 * length * gain:
                length /= 2
                if length < 1e-10:
                    return theta
            theta, value = theta + length * step, reached
            theta = np.maximum(theta, 1e-250)
        return theta

    def evidence(self, alpha: float, theta: Floats) -> float:
        """Return the logarithm of the evidence of alpha, up to a constant."""
        return self.penalised(alpha, theta) - 0.5 * float(np.log1p(self.measured(theta) / alpha).sum())

    def measured(self, theta: Floats) -> Floats:
        """Return the eigenvalues of the curvature in the directions that keep the sum."""
        root = np.sqrt(theta / theta.sum())
        curvature = self.curvature(theta)
        across = curvature - np.outer(root, root @ curvature)
        across -= np.outer(across @ root, root)
        return np.maximum(eigvalsh((across + across.T) / 2), 0.0)
