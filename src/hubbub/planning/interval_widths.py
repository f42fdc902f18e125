"""How wide intervals will be: those of the study in which everything comes out as expected.

Where every pattern is sent by exactly as many users as expected, the truth itself maximises the likelihood, and nothing
has to be drawn. The interval of a value's share goes as far as the deviance stays below the quantile of chi-square with
one degree of freedom. Real intervals (`hubbub.band`) scatter around this one; they are wider where the truth has zeros,
whose cutoffs are larger.
"""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Positions, frozen
from hubbub.core.progress import finish
from hubbub.intervals.cutoff import chi_square
from hubbub.intervals.likelihood_region import LikelihoodRegion
from hubbub.likelihood import Likelihood
from hubbub.planning.result import Widths
from hubbub.planning.simulator import Simulator
from hubbub.planning.truths import AssumedTruth

ALL = 32  # values up to which all have their width told
MOST_ENTRIES = 2_000_000  # of likelihoods around which intervals are computed
LEAST_USERS = 2  # with less there is no interval to speak of


def widths_of(
    simulator: Simulator,
    users: int,
    truth: AssumedTruth,
    level: float,
    rng: np.random.Generator,
    places: Positions | None = None,
) -> Widths | None:
    """Return the widths for the values at some places; left out, for those that `representative` names.

    Reports that cannot be listed are drawn once; None where they are too many for intervals.
    """
    likely = _around(simulator, users, truth, rng)
    if likely is None:
        return None
    places, cutoff = representative(truth) if places is None else places, chi_square(level)
    found = np.empty(places.size)
    for turn, place in enumerate(places):
        weights = np.zeros(truth.probabilities.size)
        weights[place] = 1.0
        found[turn] = -likely.least(-weights, cutoff).limit - likely.least(weights, cutoff).limit
    labels = simulator.candidate.domain.labels[places]
    return Widths(frozen(labels.copy()), frozen(np.clip(found, 0.0, 1.0)), level)


def representative(truth: AssumedTruth) -> Positions:
    """Return the positions of all values where they are few, of three that stand for them where they are many."""
    shares = truth.probabilities
    if shares.size <= ALL:
        return np.arange(shares.size)
    order = np.argsort(shares, kind="stable")
    chosen = [order[-1], order[shares.size // 2], order[0]]
    return np.array(list(dict.fromkeys(int(place) for place in chosen)))


def _around(simulator: Simulator, users: int, truth: AssumedTruth, rng: np.random.Generator) -> LikelihoodRegion | None:
    if users < LEAST_USERS:
        return None
    tables, values = simulator.tables, simulator.values
    if tables is not None:
        if tables.channel.entries > MOST_ENTRIES:
            return None
        expected = Likelihood(tables.channel, tables.expected(users, truth.probabilities), users)
        return LikelihoodRegion(expected.at(truth.probabilities))
    if users * values > MOST_ENTRIES:
        return None
    return finish(LikelihoodRegion.around(Likelihood.of(simulator.study(users, truth.probabilities, rng))))
