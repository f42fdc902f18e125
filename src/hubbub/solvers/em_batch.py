"""EM on many weightings of the same patterns at once: bootstrap replicates, folds, groups.

One update of all of them is two matrix products instead of two matrix-vector products each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel
from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import finish
from hubbub.likelihood import MIN_PLAIN_PROBABILITY, Likelihood
from hubbub.solvers.em_steps import delta_rule, em_step
from hubbub.solvers.loop import iterate


@dataclass(frozen=True)
class EmBatch:
    """Where EM ended, for each weighting."""

    thetas: Floats  # weightings by values
    log_likelihoods: Floats
    iterations: Positions
    met: NDArray[np.bool_]  # whether the rule was met


def em_batch(channel: Channel, weights: Floats, start: Floats, *, delta: float, max_iter: int) -> EmBatch:
    """Run the paper's Algorithm 1 for each row of `weights` (weightings by patterns), each until its own rule is met.

    `start` is one distribution for all weightings, or one for each. Weightings that have stopped are dropped from the
    matrix products.
    """
    count = weights.shape[0]
    totals = weights.sum(axis=1)
    constants = weights @ channel.log_scale
    thetas = np.array(np.broadcast_to(start, (count, channel.values)))
    values, steps, met = np.zeros(count), np.zeros(count, dtype=np.int64), totals == 0.0  # no users: nothing to do
    running = np.flatnonzero(~met)
    theta, shares = thetas[running], weights[running] / totals[running, None]
    all_sent = bool((shares > 0).all())
    fitted = channel.forward(theta)
    before = value = _values(shares, fitted) * totals[running] + constants[running]
    for turn in range(max_iter + 1):
        underflows = ((fitted < MIN_PLAIN_PROBABILITY) & (shares > 0)).any(
            axis=1
        )  # underflow: one by one, in logarithms
        for row in running[underflows]:
            first = start[row] if start.ndim > 1 else start
            thetas[row], values[row], steps[row], met[row] = _run_alone(channel, weights[row], first, delta, max_iter)
        done = ~underflows & (np.abs(value - before) < delta) if turn else np.zeros(running.size, dtype=bool)
        thetas[running[done]], values[running[done]], met[running[done]] = theta[done], value[done], True
        if underflows.any() or done.any():
            stay = ~underflows & ~done
            theta, fitted, value, shares, running = theta[stay], fitted[stay], value[stay], shares[stay], running[stay]
        if turn == max_iter or running.size == 0:
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.divide(shares, fitted, out=fitted)
        if not all_sent:
            ratio[shares == 0.0] = 0.0  # also if such a pattern is impossible
        theta *= channel.backward(ratio)
        theta /= theta.sum(axis=1, keepdims=True)
        fitted = channel.forward(theta)
        before, value = value, _values(shares, fitted) * totals[running] + constants[running]
        steps[running] += 1
    thetas[running], values[running] = theta, value
    return EmBatch(thetas, values, steps, met)


def _values(shares: Floats, fitted: Floats) -> Floats:
    """Return the mean log-likelihoods; not finite if a pattern that was sent has probability 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(fitted)
    if not np.isfinite(logs).all():  # patterns that nobody sent do not count
        logs = np.where(shares > 0, logs, 0.0)
    return np.asarray(np.einsum("bi,bi->b", shares, logs))


def _run_alone(
    channel: Channel, weights: Floats, start: Floats, delta: float, max_iter: int
) -> tuple[Floats, float, int, bool]:
    likelihood = Likelihood(channel, weights, int(weights.sum()))
    outcome = finish(iterate(likelihood.at(start), em_step, delta_rule(delta), max_iter))
    return outcome.point.theta, outcome.point.log_likelihood, outcome.iterations, outcome.met
