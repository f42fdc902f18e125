"""What some patterns contribute to the likelihood at one distribution: all that is sent between machines.

L and n D are sums over patterns, hence over any parts into which the patterns are split:

    L(theta) = sum over parts of  sum_{i in part} w_i log f_i,
    n D_x    = sum over parts of  sum_{i in part} w_i g_xi / f_i.

A sum holds a few vectors of the domain's size, however many patterns it stands for. Addition is associative only up to
rounding: to get the same bits each time, add in the same order.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from hubbub.channels.rounding import UNIT_ROUNDOFF
from hubbub.core.arrays import Floats
from hubbub.likelihood.underflow import UnderflowSums
from hubbub.likelihood.update_and_gap import Excess


@dataclass(frozen=True)
class Sums:
    """What some patterns contribute to L, n D and n."""

    log_likelihood: float  # -inf where a pattern that was sent has probability 0
    gradient: Floats  # sum_i w_i g_xi / f_i, over the patterns whose probability floats can represent...
    underflow: UnderflowSums | None  # ...and over the others; None if there are none
    total: float  # sum_i w_i
    excess: Excess  # the most that rounding can have taken from the gradient

    def __add__(self, other: Sums) -> Sums:
        underflow = (
            self.underflow + other.underflow
            if self.underflow and other.underflow
            else self.underflow or other.underflow
        )
        # The relative part of the sum is at most the larger of the two; the addition rounds once more.
        relative = max(self.excess.relative, other.excess.relative) * (1.0 + 4 * UNIT_ROUNDOFF) + 4 * UNIT_ROUNDOFF
        return Sums(
            self.log_likelihood + other.log_likelihood,
            self.gradient + other.gradient,
            underflow,
            self.total + other.total,
            Excess(relative, (self.excess.absolute + other.excess.absolute) * (1.0 + 4 * UNIT_ROUNDOFF)),
        )

    def __sizeof__(self) -> int:
        """Include the bytes of the vectors: Dask decides by them what to move and what to keep."""
        vectors = [self.gradient] + (
            [] if self.underflow is None else [self.underflow.log_gradient, self.underflow.posterior]
        )
        vectors += [] if isinstance(self.excess.absolute, float) else [self.excess.absolute]
        return object.__sizeof__(self) + sum(map(sys.getsizeof, vectors))
