"""Steps of EM, plain, smoothed and accelerated, and the rules that stop them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hubbub.channels import DenseChannel
from hubbub.core.arrays import Floats
from hubbub.likelihood import Evaluation, Point
from hubbub.solvers.loop import AnyPoint, Rule, Step, Stride

MAX_SINGLE_UPDATES = 1_000  # before compiled code is loaded
ENTRIES_PER_BATCH = 200_000_000  # multiplied, which takes about a tenth of a second


def em_step(point: AnyPoint) -> AnyPoint:
    """Return one update of Algorithm 1 (for equal mechanisms, the iterative Bayesian update).

    theta'_x = (1/n) sum_i theta_x g_xi / sum_u theta_u g_ui. The log-likelihood never decreases.
    """
    return point.at(point.update)


def smoothed_step(smooth: Callable[[Floats], Floats]) -> Step[AnyPoint]:
    """Return the step of EMS: an update of EM, then a smoothing."""

    def step(point: AnyPoint) -> AnyPoint:
        return point.at(smooth(point.update))

    return step


class BatchedUpdates:
    """EM updates, one by one at first; then many at a time in compiled code, if the channel is a matrix.

    Loading compiled code takes longer than most runs. `delta` ends a batch early, by the same rule that ends the run.
    """

    def __init__(self, delta: float, max_iter: int) -> None:
        self._delta = delta
        self._left = max_iter
        self._single_left = MAX_SINGLE_UPDATES

    def __call__(self, point: AnyPoint) -> AnyPoint | Stride[AnyPoint]:
        """Return the next iterate, or the end of the next batch."""
        self._single_left -= 1
        if self._single_left >= 0 or not isinstance(point, Point) or point.plain is not None:
            self._left -= 1
            return em_step(point)
        likelihood, channel = point.likelihood, point.likelihood.channel
        if not isinstance(channel, DenseChannel):
            self._left -= 1
            return em_step(point)
        from hubbub.channels.compiled_loops import em_updates

        most = min(self._left, max(1, ENTRIES_PER_BATCH // channel.entries))
        before, theta, made = em_updates(
            channel.matrix, likelihood.shares, point.theta, likelihood.total, self._delta, most
        )
        self._left -= made
        return Stride(point.at(before), point.at(theta), made)


def delta_rule(delta: float) -> Rule:
    """Return the paper's rule: stop once the total log-likelihood changes by less than `delta`."""

    def is_met(before: Evaluation, after: Evaluation) -> bool:
        return abs(after.log_likelihood - before.log_likelihood) < delta

    return is_met


def gap_rule(tol: float) -> Rule:
    """Return the rule that stops once the measured gap, which ignores rounding, is at most `tol` nats per user."""

    def is_met(before: Evaluation, after: Evaluation) -> bool:  # noqa: ARG001
        return after.measured_gap <= tol

    return is_met


def certified_rule(tol: float) -> Rule:
    """Return the rule that stops once the certified gap, which includes rounding, is at most `tol` nats per user.

    Rounding alone may exceed the tolerance: a measured gap of half the tolerance is then enough.
    """

    def is_met(before: Evaluation, after: Evaluation) -> bool:  # noqa: ARG001
        return after.measured_gap <= tol and (after.measured_gap <= tol / 2 or after.gap <= tol)

    return is_met


def accelerated_step(point: AnyPoint) -> AnyPoint:
    """Return two EM updates and an extrapolation through them (SQUAREM's third scheme), kept only if better.

    With r the first move and v the change between the two moves, theta - 2 a r + a^2 v, a = -|r| / |v|.
    Entries are kept positive (a zero would stay zero), and the result is the better of the extrapolation and
    the two plain updates, so that the log-likelihood never decreases by more than rounding. If nothing moves, the point
    itself is returned.
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
