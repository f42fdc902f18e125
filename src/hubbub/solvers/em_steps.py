"""Steps and stopping rules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hubbub.channels import DenseChannel
from hubbub.core.arrays import Floats
from hubbub.likelihood import Evaluation, Point
from hubbub.solvers.loop import Q, Rule, Step, Stride

UNCOMPILED = 1_000  # updates that are made one by one
BURST = 200_000_000  # entries multiplied in one burst, about a tenth of a second


def em_step(point: Q) -> Q:
    """Return one update of Algorithm 1 (for equal mechanisms, the iterative Bayesian update).

    theta'_x = (1/n) sum_i theta_x g_xi / sum_u theta_u g_ui. The log-likelihood never decreases.
    """
    return point.at(point.update)


def smoothed_step(smooth: Callable[[Floats], Floats]) -> Step[Q]:
    """Return the step of EMS: an update of EM, then a smoothing."""

    def step(point: Q) -> Q:
        return point.at(smooth(point.update))

    return step


class Bursts:
    """EM updates, one by one at first; then many at a time in compiled code, where the channel is a matrix.

    Compiled code takes longer to load than most runs take. `delta` ends a burst early, by the same rule that ends the
    run.
    """

    def __init__(self, delta: float, max_iter: int) -> None:
        self._delta = delta
        self._left = max_iter
        self._alone = UNCOMPILED

    def __call__(self, point: Q) -> Q | Stride[Q]:
        """Return the next iterate, or the end of the next burst."""
        self._alone -= 1
        if self._alone >= 0 or not isinstance(point, Point) or point.plain is not None:
            self._left -= 1
            return em_step(point)
        likelihood, channel = point.likelihood, point.likelihood.channel
        if not isinstance(channel, DenseChannel):
            self._left -= 1
            return em_step(point)
        from hubbub.channels.kernels import em_burst

        most = min(self._left, max(1, BURST // channel.entries))
        before, theta, made = em_burst(
            channel.matrix, likelihood.shares, point.theta, likelihood.total, self._delta, most
        )
        self._left -= made
        return Stride(point.at(before), point.at(theta), made)


def delta_rule(delta: float) -> Rule:
    """Return the paper's rule: stop when the total log-likelihood changes by less than `delta`."""

    def enough(before: Evaluation, after: Evaluation) -> bool:
        return abs(after.log_likelihood - before.log_likelihood) < delta

    return enough


def gap_rule(tol: float) -> Rule:
    """Stop where no distribution is better by more than `tol` nats per user, as far as floats can tell."""

    def enough(before: Evaluation, after: Evaluation) -> bool:  # noqa: ARG001
        return after.measured_gap <= tol

    return enough


def certified_rule(tol: float) -> Rule:
    """Stop on the certificate, with all that rounding can have taken from it.

    Where rounding alone may be as much as the tolerance, half of it as far as floats can tell has to do.
    """

    def enough(before: Evaluation, after: Evaluation) -> bool:  # noqa: ARG001
        return after.measured_gap <= tol and (after.measured_gap <= tol / 2 or after.gap <= tol)

    return enough


def accelerated_step(point: Q) -> Q:
    """Return two EM updates and an extrapolation through them (SQUAREM's third scheme), kept only if better.

    With r the first move and v the change between the two moves, theta - 2 a r + a^2 v, a = -|r| / |v|.
    Entries are kept positive (a zero would stay zero), and the result is the better of the extrapolation and
    the two plain updates, so that the log-likelihood never decreases by more than rounding. A point that does
    not move is returned as it is.
    """
    first = em_step(point)
    second = em_step(first)
    move = first.theta - point.theta
    bend = second.theta - first.theta - move
    size = float(np.linalg.norm(bend))
    best = second
    if size > 0.0:
        length = -max(1.0, float(np.linalg.norm(move)) / size)
        leap = point.theta - 2 * length * move + length**2 * bend
        leap = np.maximum(leap, 0.01 * second.theta)
        target = point.at(leap / leap.sum())
        best = target if target.log_likelihood >= second.log_likelihood else second
    return point if np.array_equal(best.theta, point.theta) else best
