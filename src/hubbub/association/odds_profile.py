"""The interval of an odds ratio: the profile likelihood over all joint distributions that have it.

Four combinations (two values of each attribute) have the odds ratio p_11 p_22 / (p_12 p_21). For a given ratio, EM has
a closed form: the expected counts of all other combinations become shares as they are; those of the four are replaced
by the table that has their margins and the given odds ratio, which solves a quadratic equation. Many ratios are fitted
at once; where the deviance crosses its cutoff, the ratios between are fitted again.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import Progress
from hubbub.likelihood import Likelihood, Point

MAX_LOG_RATIO = 14.0  # a ratio of a million: beyond it, an end is open
RATIOS_AT_ONCE = 29
ROUNDS = 3  # each makes the steps 14 times smaller
MAX_UPDATES = 20_000
MIN_PROGRESS = 1e-7  # of the log-likelihood, in an update
CHECKED_EVERY = 20


def odds_interval(top: Point, four: Positions, cutoff: float) -> Generator[Any, None, tuple[float, float]]:
    """Return the ratios whose deviance is at most the cutoff: 0 or inf where there is no end.

    `four` are the positions of the combinations 11, 12, 21 and 22.
    """
    ends = []
    for side in (-1.0, 1.0):
        outer = side * MAX_LOG_RATIO
        inner = float(np.clip(_log_ratio(top.theta[four]), -MAX_LOG_RATIO, MAX_LOG_RATIO))
        end = side * math.inf
        if inner != outer:
            for turn in range(ROUNDS):
                yield Progress(turn, ROUNDS, "profiling the odds ratio")
                logs = np.linspace(inner, outer, RATIOS_AT_ONCE)
                deviances = 2.0 * (top.log_likelihood - profile(top, four, logs))
                beyond = np.flatnonzero(deviances > cutoff)
                if turn == 0 and beyond.size == 0:
                    break
                place = int(beyond[0]) if beyond.size else logs.size - 1
                nearest = max(place - 1, 0)
                inner, outer = float(logs[nearest]), float(logs[place])
                rise = deviances[place] - deviances[nearest]
                share = (cutoff - deviances[nearest]) / rise if rise > 0.0 else 0.5
                end = inner + float(np.clip(share, 0.0, 1.0)) * (outer - inner)
        ends.append(end)
    low, high = ends
    return (0.0 if low == -math.inf else math.exp(low)), (math.inf if high == math.inf else math.exp(high))


def _log_ratio(four: Floats) -> float:
    """Return the logarithm of the odds ratio; 0 where it is 0 divided by 0."""
    with np.errstate(divide="ignore"):
        logs = np.log(four)
    ratio = float(logs[0] + logs[3]) - float(logs[1] + logs[2]) if np.isfinite(logs).all() else math.nan
    if not math.isnan(ratio):
        return ratio
    above, below = four[0] * four[3], four[1] * four[2]
    return 0.0 if above == below else math.copysign(MAX_LOG_RATIO, above - below)


def profile(top: Point, four: Positions, logs: Floats) -> Floats:
    """Return the largest log-likelihood of distributions with each of some odds ratios, given as logarithms."""
    likelihood, ratios = top.likelihood, np.exp(logs)
    mixed = 0.98 * top.theta + 0.02 / top.theta.size  # EM never leaves a share of 0
    theta = _with_ratios(np.tile(mixed, (logs.size, 1)), four, ratios)
    value = _values(likelihood, theta)
    for update in range(MAX_UPDATES):
        theta = _with_ratios(theta * _gradients(likelihood, theta), four, ratios)
        if update % CHECKED_EVERY == CHECKED_EVERY - 1:
            before, value = value, _values(likelihood, theta)
            if (value - before <= CHECKED_EVERY * MIN_PROGRESS).all():
                break
    return _values(likelihood, theta)


def _gradients(likelihood: Likelihood, theta: Floats) -> Floats:
    fitted = likelihood.channel.forward(theta)
    ratio = np.divide(likelihood.shares, fitted, out=np.zeros_like(fitted), where=likelihood.sent & (fitted > 0.0))
    return likelihood.channel.backward(ratio)


def _values(likelihood: Likelihood, theta: Floats) -> Floats:
    fitted = likelihood.channel.forward(theta)[:, likelihood.sent]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(fitted) @ likelihood.weights[likelihood.sent] + likelihood.constant)


def _with_ratios(theta: Floats, four: Positions, ratios: Floats) -> Floats:
    """Return distributions whose four shares keep their margins and have the given odds ratios."""
    p11, p12, p21, p22 = theta[:, four].T
    row, column, total = p11 + p12, p11 + p21, p11 + p12 + p21 + p22
    # x (total - row - column + x) = ratio (row - x) (column - x)
    square, linear, constant = 1.0 - ratios, total + (ratios - 1.0) * (row + column), -ratios * row * column
    root = np.sqrt(np.maximum(linear**2 - 4.0 * square * constant, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(total > 0.0, -2.0 * constant / (linear + root), 0.0)
    own = np.clip(np.nan_to_num(own), np.maximum(0.0, row + column - total), np.minimum(row, column))
    done = theta.copy()
    done[:, four] = np.maximum(np.stack([own, row - own, column - own, total - row - column + own], axis=1), 0.0)
    return np.asarray(done / done.sum(axis=1, keepdims=True))
