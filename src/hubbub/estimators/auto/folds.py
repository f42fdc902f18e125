"""Thinning: the users are dealt into parts at random, and each part is kept back in turn.

Counts are dealt, not rows: a billion users who sent a hundred patterns are a hundred draws. What was kept back is then
predicted by an estimate from the others (held-out likelihood).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats

FEW = 100_000  # users up to which parts are made equally large


@dataclass(frozen=True)
class Thinned:
    """Weightings of the same patterns."""

    rows: Floats  # all users, then all but those of each part
    kept_back: Floats  # parts by patterns


def thin(weights: Floats, parts: int, rng: np.random.Generator) -> Thinned:
    """Deal the users of each pattern into `parts`."""
    counts = np.rint(weights).astype(np.int64)
    if counts.sum() <= FEW:
        users = rng.permutation(np.repeat(np.arange(counts.size), counts))
        dealt = np.stack([np.bincount(users[part::parts], minlength=counts.size) for part in range(parts)])
    else:
        dealt = rng.multinomial(counts, np.full(parts, 1.0 / parts)).T
    kept_back = dealt.astype(np.float64)
    return Thinned(np.concatenate([weights[None], weights - kept_back]), kept_back)
