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
from hubbub.core.arrays import Floats
from hubbub.likelihood import MIN_PLAIN_PROBABILITY

MIN_STEP_GAIN_NATS = 1e-3  # below which a step is not worth making
MAX_STEPS = 25
MAX_LOG_CHANGE = 3.0  # of a probability, in one step
SHRINK_FACTOR, MAX_SHRINKS = 0.4, 12
SKETCH_COLUMNS = 120
MIN_SINGULAR_SHARE = 1e-4  # of the largest singular value of the curvature's root, that counts


@dataclass(frozen=True)
class Curves:
    """The modes of some rows: distributions, and log evidences up to the same constant."""

    thetas: Floats
    log_evidences: Floats


def fit_curves(channel: Channel, weights: Floats, basis: Floats, variances: Floats) -> Curves:
    """Fit each row: `weights` (rows or 1, by patterns), `variances` (rows by coefficients)."""
    return _CurveFit(channel, np.atleast_2d(weights), basis, variances).run()


class _CurveFit:
    def __init__(self, channel: Channel, weights: Floats, basis: Floats, variances: Floats) -> None:
        self.channel, self.basis = channel, basis
        self.weights = np.broadcast_to(weights, (len(variances), channel.patterns))
        self.totals = self.weights.sum(axis=1, keepdims=True)
        self.roots = np.sqrt(variances)
        # Coefficients in units of their deviations: a = roots b, b ~ N(0, 1).
        self.b = np.zeros_like(variances)

    def run(self) -> Curves:
        value, theta, fitted = self._at(self.b)
        moving = np.ones(len(value), dtype=bool)
        for _ in range(MAX_STEPS):
            gradient, matrix = self._newton(theta, fitted)
            step = np.linalg.solve(matrix, gradient[..., None])[..., 0]
            gain = np.einsum("br,br->b", gradient, step)
            moving &= gain > MIN_STEP_GAIN_NATS
            if not moving.any():
                break
            change = np.abs((self.roots * step) @ self.basis.T).max(axis=1)
            length = np.minimum(1.0, MAX_LOG_CHANGE / np.maximum(change, MIN_PLAIN_PROBABILITY)) * moving
            for _ in range(MAX_SHRINKS):
                trial = self._at(self.b + length[:, None] * step)
                worse = (trial[0] < value) & (length > 0)
                if not worse.any():
                    break
                length = np.where(worse, SHRINK_FACTOR * length, length)
            better = trial[0] >= value
            self.b = np.where(better[:, None], self.b + length[:, None] * step, self.b)
            value, theta, fitted = (
                np.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old)
                for new, old in zip(trial, (value, theta, fitted), strict=True)
            )
            moving &= better
        _, matrix = self._newton(theta, fitted)
        return Curves(theta, value - 0.5 * np.linalg.slogdet(matrix)[1])

    def _at(self, b: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the penalised likelihoods, the distributions and what they fit."""
        u = (self.roots * b) @ self.basis.T
        theta = np.exp(u - u.max(axis=1, keepdims=True))
        theta /= theta.sum(axis=1, keepdims=True)
        fitted = np.maximum(self.channel.forward(theta), MIN_PLAIN_PROBABILITY)
        likelihood = np.einsum("bi,bi->b", self.weights, np.log(fitted))
        return likelihood - 0.5 * np.einsum("br,br->b", b, b), theta, fitted

    def _newton(self, theta: Floats, fitted: Floats) -> tuple[Floats, Floats]:
        """Return the gradient in b and the negative Hessian."""
        pull = theta * (self.channel.backward(self.weights / fitted) - self.totals)
        gradient = (pull @ self.basis) * self.roots - self.b
        root = self._curvature_root(fitted)
        tilted = self.basis.T[None] * theta[:, None, :]  # rows by coefficients by values
        seen = tilted @ root
        matrix = (seen @ seen.transpose(0, 2, 1)) * self.totals[:, :, None]
        bend = np.maximum(-pull, 0.0)
        matrix += (self.basis.T[None] * bend[:, None, :]) @ self.basis
        matrix *= self.roots[:, :, None] * self.roots[:, None, :]
        places = np.arange(matrix.shape[1])
        matrix[:, places, places] += 1.0
        return gradient, matrix

    def _curvature_root(self, fitted: Floats) -> Floats:
        """Return R (values by a few) with C / n = R R', at the mean fit of all rows."""
        shares = self.weights.mean(axis=0) / self.totals.mean()
        middle = fitted.mean(axis=0)
        ratio = self.channel.dense() / middle
        ratio -= (ratio @ shares)[:, None]
        ratio *= np.sqrt(shares)
        if min(ratio.shape) > SKETCH_COLUMNS:  # C has few directions that count, and a random sketch meets them all
            ratio = ratio @ np.linalg.qr(ratio.T @ (ratio @ self._sketch(ratio.shape[1])))[0]
        left, sizes, _ = np.linalg.svd(ratio, full_matrices=False)
        kept = sizes > MIN_SINGULAR_SHARE * sizes[0]
        return np.asarray(left[:, kept] * sizes[kept])

    @staticmethod
    def _sketch(patterns: int) -> Floats:
        return np.random.default_rng(0).standard_normal((patterns, SKETCH_COLUMNS))
