"""Curves with a Gaussian prior: their modes, and the evidence for each prior, by Laplace's method.

A curve is theta = softmax(basis a) with independent coefficients a_j of variance v_j. The evidence is the probability
of the reports with a integrated out: how well a prior explains them, with no reports held out. Around the
mode, with H the curvature of the log-likelihood in a,

    log evidence = L(a) - a' V^-1 a / 2 - log det(1 + V^1/2 H V^1/2) / 2.

Many pairs of a weighting and a prior (rows) are fitted at once. As in `penalised_likelihood`, H takes one matrix C for
all rows, from their mean fit; gradients are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.channels import Channel
from hubbub.core.arrays import Floats, Positions
from hubbub.likelihood import MIN_PLAIN_PROBABILITY

MIN_STEP_GAIN_NATS = 1e-3  # below which a step is not worth making
MAX_STEPS = 25
STEPS_PER_CURVATURE = 3
MAX_LOG_CHANGE = 3.0  # of a probability, in one step
SHRINK_FACTOR, MAX_SHRINKS = 0.4, 12
SKETCH_COLUMNS = 80
MIN_SINGULAR_SHARE = 3e-3  # of the largest singular value of the curvature's root, that counts


@dataclass(frozen=True)
class Curves:
    """The modes of some rows: distributions, log evidences up to the same constant, and scaled coefficients."""

    thetas: Floats
    log_evidences: Floats
    coefficients: Floats  # in units of their deviations under the prior


def fit_curves(
    channel: Channel, weights: Floats, basis: Floats, variances: Floats, start: Floats | None = None
) -> Curves:
    """Fit each row: `weights` (rows or 1, by patterns), `variances` (rows by coefficients).

    A row has one mode. `start`, the coefficients for similar weights, only saves steps on the way there.
    """
    return _CurveFit(channel, np.atleast_2d(weights), basis, variances, start).run()


class _CurveFit:
    def __init__(
        self, channel: Channel, weights: Floats, basis: Floats, variances: Floats, start: Floats | None
    ) -> None:
        self.channel, self.basis = channel, basis
        self.weights = np.broadcast_to(weights, (len(variances), channel.patterns))
        self.totals = self.weights.sum(axis=1, keepdims=True)
        self.shares = self.weights.mean(axis=0) / self.totals.mean()
        # Coefficients in units of their deviations: a = roots b, b ~ N(0, 1).
        self.roots = np.sqrt(variances)
        self.b = np.zeros_like(variances) if start is None else start.copy()

    def run(self) -> Curves:
        """Take Newton steps until no row gains by more; rows that are finished are left alone."""
        rows = np.arange(len(self.b))
        value, theta, fitted = self._at(rows, self.b)
        for step_number in range(MAX_STEPS):
            if step_number % STEPS_PER_CURVATURE == 0:
                root = self._curvature_root(fitted.mean(axis=0))
            gradient, matrix = self._newton(rows, theta[rows], fitted[rows], root)
            step = np.linalg.solve(matrix, gradient[..., None])[..., 0]
            worthwhile = np.einsum("br,br->b", gradient, step) > MIN_STEP_GAIN_NATS
            rows, step = rows[worthwhile], step[worthwhile]
            if rows.size == 0:
                break
            change = np.abs((self.roots[rows] * step) @ self.basis.T).max(axis=1)
            length = np.minimum(1.0, MAX_LOG_CHANGE / np.maximum(change, MIN_PLAIN_PROBABILITY))
            for _ in range(MAX_SHRINKS):
                trial = self._at(rows, self.b[rows] + length[:, None] * step)
                better = trial[0] >= value[rows]
                if better.all():
                    break
                length = np.where(better, length, SHRINK_FACTOR * length)
            moved = rows[better]
            self.b[moved] += length[better, None] * step[better]
            for whole, part in zip((value, theta, fitted), trial, strict=True):
                whole[moved] = part[better]
            rows = moved
        every = np.arange(len(self.b))
        _, matrix = self._newton(every, theta, fitted, self._curvature_root(fitted.mean(axis=0)))
        return Curves(theta, value - 0.5 * np.linalg.slogdet(matrix)[1], self.b)

    def _at(self, rows: Positions, b: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the penalised likelihoods, the distributions and what they fit."""
        u = (self.roots[rows] * b) @ self.basis.T
        theta = np.exp(u - u.max(axis=1, keepdims=True))
        theta /= theta.sum(axis=1, keepdims=True)
        fitted = np.maximum(self.channel.forward(theta), MIN_PLAIN_PROBABILITY)
        likelihood = np.einsum("bi,bi->b", self.weights[rows], np.log(fitted))
        return likelihood - 0.5 * np.einsum("br,br->b", b, b), theta, fitted

    def _newton(self, rows: Positions, theta: Floats, fitted: Floats, root: Floats) -> tuple[Floats, Floats]:
        """Return the gradient in b and the negative Hessian."""
        roots, totals = self.roots[rows], self.totals[rows]
        pull = theta * (self.channel.backward(self.weights[rows] / fitted) - totals)
        gradient = (pull @ self.basis) * roots - self.b[rows]
        # Both parts of the Hessian are products of the basis with itself: one for C, and one for the diagonal.
        seen = (self.basis.T[None] * theta[:, None, :]) @ root
        matrix = (seen @ seen.transpose(0, 2, 1)) * totals[:, :, None]
        matrix += (self.basis.T[None] * np.maximum(-pull, 0.0)[:, None, :]) @ self.basis
        matrix *= roots[:, :, None] * roots[:, None, :]
        places = np.arange(matrix.shape[1])
        matrix[:, places, places] += 1.0
        return gradient, matrix

    def _curvature_root(self, fitted: Floats) -> Floats:
        """Return R (values by a few) with C / n = R R', at what the rows fit on average."""
        ratio = self.channel.dense() / fitted
        ratio -= (ratio @ self.shares)[:, None]
        ratio *= np.sqrt(self.shares)
        if min(ratio.shape) > SKETCH_COLUMNS:  # C has few directions that count, and a random sketch meets them all
            sketch = np.random.default_rng(0).standard_normal((ratio.shape[1], SKETCH_COLUMNS))
            ratio = ratio @ np.linalg.qr(ratio.T @ (ratio @ sketch))[0]
        if ratio.shape[0] < ratio.shape[1]:
            squares, directions = np.linalg.eigh(ratio @ ratio.T)
            roots = directions * np.sqrt(np.maximum(squares, 0.0))
        else:
            squares, directions = np.linalg.eigh(ratio.T @ ratio)
            roots = ratio @ directions
        return np.asarray(roots[:, squares > MIN_SINGULAR_SHARE**2 * squares[-1]])
