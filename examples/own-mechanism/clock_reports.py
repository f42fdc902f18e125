"""Hours of the day, where 23 and 0 are neighbours: a mechanism and an estimator that know it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import hubbub as hb


@dataclass(frozen=True)
class ClockWindow(hb.Mechanism):
    """Hours within `reach` of the true one, across midnight too, are e^epsilon times as likely as all others.

    Every row of the matrix is the first one, turned: all rows have the same sum, so that no two probabilities of an
    output differ by more than a factor of e^epsilon.

    Parameters
    ----------
    domain
        Whole numbers that lie on a circle: after the last comes the first.
    epsilon
        Plain epsilon.
    reach
        How many hours to each side are likely. All values can be told apart if 2 reach + 1 and their number have no
        divisor in common.

    Raises
    ------
    MechanismError
        If the window is wider than the circle.
    """

    domain: hb.Integers
    epsilon: float
    reach: int = 2

    def __post_init__(self) -> None:
        if not 0 <= 2 * self.reach + 1 < len(self.domain):
            raise hb.MechanismError(
                "the window is wider than the circle",
                where="ClockWindow(reach=)",
                got=self.reach,
                expected=f"2 reach + 1 below {len(self.domain)}, the number of values",
                remedy="choose a smaller reach",
            )

    @property
    def outputs(self) -> NDArray[np.int64]:
        """The hours themselves."""
        return np.asarray(self.domain.labels)

    def matrix(self) -> NDArray[np.float64]:
        """Return P(output | value)."""
        size = len(self.domain)
        steps = np.minimum(np.arange(size), size - np.arange(size))  # from the first hour, the shorter way round
        # A trillionth less than claimed: rounded floats would otherwise exceed the claim, and the audit would notice.
        row = np.where(steps <= self.reach, np.exp(self.epsilon * (1 - 1e-12)), 1.0)
        row /= row.sum()
        return np.stack([np.roll(row, value) for value in range(size)])


def round_the_clock(reports: hb.Reports, *, part: float = 0.25) -> NDArray[np.float64]:
    """Return the paper's iterative Bayesian update, with each hour averaged with its two neighbours.

    `part` is the weight of either neighbour: ``hb.estimate(reports, "round-the-clock", part=0.1)``.
    """
    shares = hb.estimate(reports, "ibu").probabilities
    smooth: NDArray[np.float64] = (1 - 2 * part) * shares + part * (np.roll(shares, 1) + np.roll(shares, -1))
    return smooth
