"""What some patterns add to the likelihood at one distribution: all that travels between machines.

L and n D are sums over patterns, hence over any parts into which patterns are dealt:

    L(theta) = sum over parts of  sum_{i in part} w_i log f_i,
    n D_x    = sum over parts of  sum_{i in part} w_i g_xi / f_i.

A sum holds a few vectors of the domain's size, however many patterns it stands for. Adding is associative up to
rounding; whoever wants the last bit to be the same each time adds in the same order.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from hubbub.channels.rounding import UNIT_ROUNDOFF
from hubbub.core.arrays import Floats
from hubbub.likelihood.evaluation import Excess
from hubbub.likelihood.underflow import FaintSums


@dataclass(frozen=True)
class Sums:
    """The shares of some patterns in L, n D and n."""

    log_likelihood: float  # -inf where a pattern that was sent has probability 0
    gradient: Floats  # sum_i w_i g_xi / f_i, over the patterns whose probability floats can hold...
    faint: FaintSums | None  # ...and the others; None without any
    total: float  # sum_i w_i
    excess: Excess  # what rounding can have taken from the gradient

    def __add__(self, other: Sums) -> Sums:
        faint = self.faint + other.faint if self.faint and other.faint else self.faint or other.faint
        # Each part's own share of itself is at most the larger one's; the addition rounds once more.
        relative = max(self.excess.relative, other.excess.relative) * (1.0 + 4 * UNIT_ROUNDOFF) + 4 * UNIT_ROUNDOFF
        return Sums(
            self.log_likelihood + other.log_likelihood,
            self.gradient + other.gradient,
            faint,
            self.total + other.total,
            Excess(relative, (self.excess.absolute + other.excess.absolute) * (1.0 + 4 * UNIT_ROUNDOFF)),
        )

    def __sizeof__(self) -> int:
        """Return the bytes of the vectors too: who decides what to move, and what to keep, asks for them."""
        vectors = [self.gradient] + ([] if self.faint is None else [self.faint.log_gradient, self.faint.posterior])
        vectors += [] if isinstance(self.excess.absolute, float) else [self.excess.absolute]
        return object.__sizeof__(self) + sum(map(sys.getsizeof, vectors))
