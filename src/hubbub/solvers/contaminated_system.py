"""Newton's systems with fakes (`channels.contaminated`), at the price of those without.

The rows of fakes form a diagonal A, so that they can be eliminated. With K = diag(1 - e), V the curvature and E, F the
barriers of values and fakes, what remains for the values is

    (G K W K G' + E) step = right - G K V A (A V A + F)^-1 right of fakes,     W = V F (A V A + F)^-1:

a system of the honest channel with less curvature, which keeps its structure.
"""

from __future__ import annotations

import numpy as np

from hubbub.channels.contaminated import ContaminatedChannel
from hubbub.core.arrays import Floats
from hubbub.solvers.newton_systems import Solve, System, refined, system_for

REFINEMENTS = 2  # where fakes explain a pattern, W is a small difference of large numbers


class ContaminatedSystem(System):
    """The system of the honest channel, after the elimination of the fakes."""

    def __init__(self, channel: ContaminatedChannel) -> None:
        self._channel = channel
        self._honest = system_for(channel.honest)
        self.name = self._honest.name

    def factor(self, curvature: Floats, barrier: Floats) -> Solve:
        """Eliminate the fakes, and factorise for the values."""
        channel = self._channel
        size, entries, kept = channel.honest.values, channel.fake_entries, channel.honest_shares
        diagonal = entries**2 * curvature + barrier[size:]
        passed = entries * curvature / diagonal  # of a fake's right side, to the pattern
        solve = self._honest.factor(kept**2 * curvature * (barrier[size:] / diagonal), barrier[:size])

        def step(right: Floats) -> Floats:
            honest = solve(right[:size] - channel.honest.backward(kept * passed * right[size:]))
            fakes = right[size:] / diagonal - passed * kept * channel.honest.forward(honest)
            return np.concatenate([honest, fakes])

        return lambda right: refined(step, channel, curvature, barrier, right, times=REFINEMENTS)
