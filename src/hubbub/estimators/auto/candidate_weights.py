"""How much each candidate counts, from its score and its spread on the folds.

Held-out likelihood says how well a candidate predicts reports it has not seen: its score, in nats over all users.
Scores vary by chance: candidates within a few nats of each other are equally good as far as the data can tell, and on a
channel that blurs they may be very different distributions. So the answer is an average with weights

    weight = exp(score - handicap) / (spread + floor) ^ 5,

where the spread is how far the estimate moves, in total variation, when other users come (jackknife over the folds). A
candidate with twice the spread must predict better by about 3 nats to count as much: a less stable one must win by more
than noise. Where values have neighbours, some families have a handicap. First, those that can put any mass anywhere:
the jackknife underestimates how wrong these are on a channel that blurs, because all fits share most users and so the
same accidents. Second, smoothed EM, which is stable even where it flattens a truth that ends at a border.
"""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.arrays import Floats, Positions

SPREAD_POWER = 5.0
SPREAD_FLOOR = 0.3  # of the typical spread, added to each: being even more stable gains little
MIN_SPREAD = 1e-6  # in total variation; smaller spreads are treated as this one in the typical spread
HALF_LEANING_GAIN = 20.0  # nats by which the best candidate beats uniform, where folds and a rule count the same
MIN_GAIN_NATS = 3.0  # besides the logarithm of the number of values, by which a candidate must beat uniform
MAX_FITS_PAST_BEST, MAX_LOSS_PAST_BEST = 6, 6.0  # candidates since the best one of a path, and nats lost since
MAX_DEFICIT_NATS = 20.0  # behind the best candidate of all, from which a path that gets worse is given up...
MIN_WATCHED_STEPS, MAX_STEPS_TO_COUNT = 4, 30  # ...and a fit that at its pace needs more steps than these to count


def candidate_weights(scores: Floats, spreads: Floats) -> Floats:
    """Return weights that sum to 1; handicaps are already subtracted from the scores."""
    behind = scores - scores.max()
    chances = np.exp(behind)
    typical = np.exp(chances @ np.log(spreads + MIN_SPREAD) / chances.sum())
    logs = behind - SPREAD_POWER * np.log(spreads + SPREAD_FLOOR * typical)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def leaning(weights: Floats, position: int, gain: float) -> Floats:
    """Return weights of which a part went to the candidate at a position: the more, the less the folds tell.

    `gain` is by how many nats the best candidate predicts held-out reports better than the uniform distribution does.
    """
    part = 1.0 / (1.0 + (max(gain, 0.0) / HALF_LEANING_GAIN) ** 2)
    leaned = (1.0 - part) * weights
    leaned[position] += part
    return leaned


def min_gain_over_uniform(values: int) -> float:
    """Return by how many nats the best candidate must beat the uniform distribution.

    A candidate may single out any of the values: among so many, the luckiest gains the logarithm of their number.
    """
    return MIN_GAIN_NATS + math.log(values)


def can_stop_path(scores: list[float], best: float) -> bool:
    """Whether the rest of a path cannot count: it is well past its own best, or far behind others and getting worse.

    A path goes from stiff to flexible candidates; `best` is the best score of all candidates so far.
    """
    top = int(np.argmax(scores))
    is_past_best = len(scores) - top > MAX_FITS_PAST_BEST and scores[-1] < scores[top] - MAX_LOSS_PAST_BEST
    is_far_behind = len(scores) > 1 and scores[-1] < scores[-2] and scores[-1] < best - MAX_DEFICIT_NATS
    return is_past_best or is_far_behind


def heaviest(weights: Floats, share: float) -> Positions:
    """Return the fewest positions, in order of weight, that make up this share of all weight."""
    order = np.argsort(-weights, kind="stable")
    return order[: int(np.searchsorted(np.cumsum(weights[order]), share)) + 1]


def can_stop_fit(scores: list[float], best: float) -> bool:
    """Whether a fit, with these scores after each of its steps, will still be far behind the best when it ends."""
    if len(scores) <= MIN_WATCHED_STEPS:
        return False
    missing = best - MAX_DEFICIT_NATS - scores[-1]
    pace = (scores[-1] - scores[-1 - MIN_WATCHED_STEPS]) / MIN_WATCHED_STEPS
    return missing > 0.0 and pace * MAX_STEPS_TO_COUNT < missing
