"""The other direction: how much epsilon people may spend, if the shuffled reports are to meet a central target."""

from __future__ import annotations

import math
from collections.abc import Callable

from hubbub.amplification.worst_pair import MAX_LOCAL_EPSILON, ShuffledMechanism
from hubbub.core.errors import MechanismError
from hubbub.mechanisms import Mechanism

GRID_STEPS = 1_024  # of epsilon within a factor of e: it is rounded down by 0.1% at most


def largest_local_epsilon(
    build: Callable[[float], Mechanism], users: int, delta: float, central_epsilon: float
) -> float:
    """Return the largest epsilon of a grid at which a mechanism meets a central target after shuffling.

    `build` returns the mechanism of an epsilon. The target itself always does, without any shuffling. Parameters that
    are whole numbers (buckets, sizes of subsets) change with epsilon, so that a larger epsilon may exist beyond one
    that fails; what is returned was checked.
    """

    def fits(step: int) -> bool:
        epsilon = central_epsilon * math.exp(step / GRID_STEPS)
        try:
            mechanism = build(epsilon)
        except MechanismError:  # larger than this mechanism can have
            return False
        return ShuffledMechanism.of(mechanism).fits(users, delta, central_epsilon)

    last = math.floor(GRID_STEPS * math.log(max(MAX_LOCAL_EPSILON / central_epsilon, 1.0)))
    low, high = 0, last + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return central_epsilon * math.exp(low / GRID_STEPS)
