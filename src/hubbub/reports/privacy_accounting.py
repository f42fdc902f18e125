"""How much epsilon users spent with all their outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import unique_codes

MAX_ROUNDING = 1e-9  # of sums of epsilon, relatively: 0.1 + 0.2 is not above 0.3


class Spent(NamedTuple):
    """What a user spent: plain epsilon, and epsilon per unit of distance, which are never added together."""

    plain: float
    metric: float


def spending(mechanisms: Sequence[Mechanism], outputs: NDArray[np.int64], users: NDArray[np.int64]) -> Counter[Spent]:
    """Return how many users spent how much, given the number of outputs of each mechanism (columns) that they sent.

    Each mechanism knows what several of its outputs spend together. The sum over mechanisms is always taken in the same
    order, so that the order of the outputs cannot change a digit.
    """
    kinds, counts = unique_codes(outputs, users, None)
    totals: Counter[Spent] = Counter()
    for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        sums = [0.0, 0.0]
        for number, mechanism in zip(kind, mechanisms, strict=True):
            if number:
                sums[mechanism.metric] += mechanism.spent(number)
        totals[Spent(*sums)] += count
    return totals


def is_above(spent: float, limit: float) -> bool:
    """Whether an epsilon is above a limit, by more than its sum may have been rounded.

    >>> is_above(0.1 + 0.2, 0.3), is_above(0.31, 0.3)
    (False, True)
    """
    return spent > limit * (1.0 + MAX_ROUNDING)


def spent_once(mechanism: Mechanism, users: int) -> Counter[Spent]:
    """Return the spending of users who each sent one output of one mechanism."""
    return spending([mechanism], np.ones((1, 1), dtype=np.int64), np.array([users]))
