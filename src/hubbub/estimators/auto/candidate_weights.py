"""How much each candidate counts.

Held-out likelihood says how well a candidate predicts reports it has not seen: its score, in nats over all users.
Scores differ by chance; candidates within a few nats of each other cannot be told apart, and on a channel that blurs,
very different distributions are. So the answer is an average with weights

    weight = exp(score - handicap) / (spread + floor) ^ 5,

where the spread is how far the estimate moves, in total variation, when other users come (jackknife over the parts). A
candidate with twice the spread must predict better by about 3 nats to count as much: a less stable one must win by more
than noise. Where values have neighbours, some families have a handicap. Those that can put any mass anywhere: a
jackknife sees too little of how wrong these are on a channel that blurs, since all parts share most users and so the
same accidents. And smoothed EM, which is stable even where it flattens a truth that ends at a border.
"""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.arrays import Floats

CAUTION = 5.0  # the power of the spread
FLOOR = 0.3  # of the usual spread, added to each: what is more stable still gains little by it
PAST, WORSE = 6, 6.0  # candidates since the best one of a path, and nats lost since
HOPELESS = 20.0  # nats below the best of all
LEAST = 1e-6  # spread that counts as none
EVEN = 3.0  # nats, beside the logarithm of the number of values, by which the best candidate must beat uniform


def spread(parts: Floats) -> float:
    """Return how far chance moves an estimate, in total variation; each of `parts` leaves some users out."""
    count = len(parts)
    deviations = np.sqrt((count - 1) / count * ((parts - parts.mean(axis=0)) ** 2).sum(axis=0))
    return float(0.5 * np.sqrt(2.0 / np.pi) * deviations.sum())


def weights_of(scores: Floats, spreads: Floats) -> Floats:
    """Return weights that sum to 1; handicaps are already taken off the scores."""
    behind = scores - scores.max()
    chances = np.exp(behind)
    usual = np.exp(chances @ np.log(spreads + LEAST) / chances.sum())
    logs = behind - CAUTION * np.log(spreads + FLOOR * usual)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def needed(values: int) -> float:
    """Return by how many nats the best candidate must beat the uniform distribution.

    A candidate may single out any of the values: among so many, the luckiest gains the logarithm of their number.
    """
    return EVEN + math.log(values)


def passed(path: list[float], best: float) -> bool:
    """Say whether the rest of a path cannot count: it has left its own best behind, or was never near, and gets worse.

    A path goes from stiff to supple; `best` is the best score of all candidates so far.
    """
    top = int(np.argmax(path))
    behind = len(path) - top > PAST and path[-1] < path[top] - WORSE
    hopeless = len(path) > 1 and path[-1] < path[-2] and path[-1] < best - HOPELESS
    return behind or hopeless
