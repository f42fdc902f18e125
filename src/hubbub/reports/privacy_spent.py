"""How much privacy users spent in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import index_codes


class Spent(NamedTuple):
    """What a user spent in all: plain epsilon, and epsilon per unit of distance. They are never added together."""

    plain: float
    metric: float


def spending(mechanisms: Sequence[Mechanism], outputs: NDArray[np.int64], users: NDArray[np.int64]) -> Counter[Spent]:
    """Return how many users spent how much, from how many outputs of each mechanism (columns) they sent.

    Each mechanism knows what its outputs spend together. Over mechanisms this adds up, in their order, so that the
    order of the outputs cannot matter.
    """
    kinds, back = index_codes(outputs)
    counts = np.zeros(len(kinds), dtype=np.int64)
    np.add.at(counts, back, users)
    totals: Counter[Spent] = Counter()
    for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        sums = [0.0, 0.0]
        for number, mechanism in zip(kind, mechanisms, strict=True):
            if number:
                sums[mechanism.metric] += mechanism.spent(number)
        totals[Spent(*sums)] += count
    return totals


def spent_once(mechanism: Mechanism, users: int) -> Counter[Spent]:
    """Return what users spent who sent one output of one mechanism."""
    return spending([mechanism], np.ones((1, 1), dtype=np.int64), np.array([users]))
