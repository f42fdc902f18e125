"""The mechanism with the least expected service loss of one user under privacy bounds.

A user at place x, of prior probability pi_x, reports z with probability A[x, z] and loses l(x, z) of service. The
program is

    min  sum_x pi_x sum_z A[x, z] l(x, z)
    over row-stochastic A with  A[x, z] <= exp(b(x, y)) A[y, z]  for all x, y, z.

With b = epsilon times distance this is optimal geo-indistinguishability: Bordenabe, Chatzikokolakis, Palamidessi,
"Optimal geo-indistinguishable mechanisms for location privacy", 2014. They replace distances by those in a spanner,
which keeps a slightly stronger privacy and loses a little more; here all bounds are exact, because the structure
makes them affordable (`privacy_edges`, `output_system`). The prior is the user's, so guessing a better place from z
(a remap) cannot lower the loss: the program could have named that place itself.

Three things are returned together: a mechanism whose bounds hold for every pair to the last digits
(`privacy_repair`), its loss, and a lower bound of all mechanisms' losses (`dual_bound`). The two numbers prove how
good the mechanism is; the solver between them (`mechanism_interior_point`) need not be trusted.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats, frozen
from hubbub.core.progress import Progress, stepwise
from hubbub.designing.mechanism_interior_point import interior_point, relative_gap, starting_mechanism
from hubbub.designing.privacy_edges import equal_places, privacy_edges
from hubbub.designing.privacy_repair import repaired

DEFAULT_TOLERANCE = 1e-8
MAX_ITERATIONS = 400


@dataclass(frozen=True)
class LeastServiceLoss:
    """A mechanism with (almost) the least service loss, and the proof.

    `loss` is that of `matrix`; no mechanism that keeps the bounds loses less than `lower_bound`. `gap` is how much
    could at most be saved, as a share of the loss (of 1e-4 of the loss of random outputs, if that is more),
    `tolerance` what was asked for.
    """

    matrix: Floats
    loss: float
    lower_bound: float
    gap: float
    tolerance: float
    iterations: int

    @property
    def is_optimal(self) -> bool:
        """Whether the gap is within the tolerance."""
        return self.gap <= self.tolerance

    @property
    def status(self) -> str:
        """Say how good the mechanism is."""
        if self.is_optimal:
            return f"optimal: no mechanism loses less than {self.lower_bound:.10g}, and this one {self.loss:.10g}"
        return (
            f"almost optimal: this mechanism loses {self.loss:.10g}, and none less than {self.lower_bound:.10g}; "
            f"at most {self.gap:.1e} of the loss could be saved, where {self.tolerance:.1e} was asked for"
        )


@stepwise
def least_service_loss(
    bounds: Floats,
    prior: Floats,
    losses: Floats,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> Generator[Progress, None, LeastServiceLoss]:
    """Return the mechanism with the least expected loss.

    An iteration factorises m matrices of size k x k, for k places and m outputs; it takes 10 to 150 iterations. Memory
    is about 8 k^2 m bytes for the factors, and twice that in between.

    Parameters
    ----------
    bounds : array of shape (k, k)
        The logarithm of the largest ratio of two places' probabilities; symmetric, 0 on the diagonal, closed under
        the triangle inequality. Infinity is no bound, 0 makes two places' rows equal.
    prior : array of shape (k,)
        Probabilities of the places.
    losses : array of shape (k, m)
        What a user at a place loses by each output.
    tolerance : float
        The difference between the loss and its lower bound at which to stop, as a share of the loss.
    max_iterations : int
        After which the best mechanism so far is returned, with the gap that it has.

    Returns
    -------
    LeastServiceLoss
        The mechanism, its loss, and the lower bound that proves it.

    >>> least = least_service_loss(np.log(3.0) * (1 - np.eye(3)), np.ones(3) / 3, 1 - np.eye(3))
    >>> least.matrix.round(6).tolist(), round(least.loss, 7), least.is_optimal
    ([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]], 0.4, True)
    """
    groups = equal_places(bounds)
    leaders = np.unique(groups, return_index=True)[1]
    costs = np.zeros((leaders.size, losses.shape[1]))
    np.add.at(costs, groups, prior[:, None] * losses)
    apart = bounds[np.ix_(leaders, leaders)]
    edges = privacy_edges(apart)
    best_places = groups[np.argmin(losses, axis=0)]
    start = starting_mechanism(apart, best_places)
    outcome = yield from interior_point(
        edges, costs, start, best_places, tolerance=tolerance / 2, max_iterations=max_iterations
    )
    matrix = repaired(outcome.matrix, apart, costs)[groups]
    loss = float(prior @ (matrix * losses).sum(axis=1))
    gap = relative_gap(loss, outcome.lower_bound, costs)
    return LeastServiceLoss(frozen(matrix), loss, outcome.lower_bound, gap, tolerance, outcome.iterations)
