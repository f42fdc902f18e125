"""Goals that add up over outputs: each column of a mechanism has a cost, and their sum is to be small.

A cost here is concave and grows in proportion to its column, so that to split a column never makes it larger, and
extreme rays suffice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from hubbub.core.arrays import Floats, Positions


class ColumnCost(ABC):
    """What one column of a mechanism costs."""

    @abstractmethod
    def costs(self, columns: Floats) -> Floats:
        """Return the cost of each column (a row of the array)."""

    @abstractmethod
    def slopes(self, columns: Floats) -> Floats:
        """Return the gradient of the cost at each column; there, cost = slope . column."""


class ServiceLoss(ColumnCost):
    """The expected loss of a user whose output is understood as the best place for it.

    loss(r) = min over places y of sum_x prior[x] r[x] losses[x, y].
    """

    def __init__(self, prior: Floats, losses: Floats) -> None:
        self.weighted = prior[:, None] * losses

    def costs(self, columns: Floats) -> Floats:
        """Return the least expected loss of each column."""
        return np.asarray((columns @ self.weighted).min(axis=1))

    def slopes(self, columns: Floats) -> Floats:
        """Return what each value adds to the loss at the column's best place."""
        return np.asarray(self.weighted.T[self.places(columns)])

    def places(self, columns: Floats) -> Positions:
        """Return the best place for each column."""
        return np.asarray(np.argmin(columns @ self.weighted, axis=1))


def by_answer(columns: Floats, loss: ServiceLoss) -> Floats:
    """Return the columns with those that are understood as the same place added up: that loses no service."""
    places, group = np.unique(loss.places(columns), return_inverse=True)
    merged = np.zeros((places.size, columns.shape[1]))
    np.add.at(merged, group.ravel(), columns)
    return merged


class LostInformation(ColumnCost):
    """Minus the mutual information of value and output, in nats, for values from a prior.

    -sum_x prior[x] r[x] log(r[x] / (prior . r)): its sum over all columns is at least minus the prior's entropy.
    """

    def __init__(self, prior: Floats) -> None:
        self.prior = prior

    def costs(self, columns: Floats) -> Floats:
        """Return minus the information of each column."""
        return np.asarray((self.slopes(columns) * columns).sum(axis=1))

    def slopes(self, columns: Floats) -> Floats:
        """Return minus prior times the log-likelihood ratio; the other terms of the gradient cancel."""
        ratios = columns / (columns @ self.prior)[:, None]
        return -self.prior * np.log(np.maximum(ratios, np.finfo(np.float64).tiny))
