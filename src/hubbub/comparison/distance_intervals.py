"""Distances between two groups' true distributions, with intervals: total variation and the earth mover's distance.

Either distance is the largest c @ (second - first) over a convex set of potentials c: for total variation the numbers
between 0 and 1, for the earth mover's distance those that change by no more than the distance between two values. So

* **the least distance** of likely pairs of distributions is, by the minimax theorem, the largest over potentials of
  the least c @ (second - first): any potential gives a valid bound. Potentials and pairs of distributions answer each
  other in turn (a double oracle), each time against the best mixture of what the other has answered so far. Its cutoff
  is that of the test of equality, so that the bound is above 0 if and only if the test rejects.
* **the largest distance** is searched for by letting potentials and pairs answer each other without mixing, from
  several starts, with the cutoff of single differences: the best potential for the truth is one of them. Where shares
  may be 0, that cutoff is too small for two groups that share no value; it is then simulated for the potential that
  was found, and the search is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from hubbub.comparison.populations import Populations
from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress
from hubbub.core.validation import DEFAULT_SEED
from hubbub.domains import Domain

MAX_ROUNDS = 25  # of answers of potentials and distributions
MAX_RELATIVE_GAP = 0.01  # of the distance, between what potentials and distributions have reached
MAX_CLIMBS, RANDOM_STARTS = 8, 4  # in search of the largest distance
MAX_TRANSPORT_VALUES = 400  # of a map: beyond, the earth mover's distance would take minutes

Potential = Callable[[Floats], Floats]  # the best potential for a difference of distributions
Cutoff = Callable[[Floats], Generator[Progress, None, float]]  # that of the difference of a potential, simulated


class IntervalEstimate(NamedTuple):
    """A number of the estimates that are shown, and the interval of the same number of the truths."""

    estimate: float
    low: float
    high: float
    standard_error: float | None = None  # None: there is none; distances have kinks where the groups are equal


def variation_potential(difference: Floats) -> Floats:
    """Return 1 where the second group has more."""
    return (difference > 0.0).astype(np.float64)


def transport_potential(domain: Domain) -> Potential | None:
    """Return the potentials of the earth mover's distance; None where they would take too long."""
    if domain.is_equidistant:
        return variation_potential
    if domain.places is not None:
        gaps = np.diff(domain.places)

        def along_line(difference: Floats) -> Floats:
            steps = -np.sign(np.cumsum(difference)[:-1]) * gaps
            return np.concatenate([[0.0], np.cumsum(steps)])

        return along_line
    if len(domain) > MAX_TRANSPORT_VALUES:
        return None
    distances = np.ascontiguousarray(domain.distances())

    def on_map(difference: Floats) -> Floats:
        import ot

        more, less = np.flatnonzero(difference > 0.0), np.flatnonzero(difference < 0.0)
        if more.size == 0 or less.size == 0:
            return np.zeros(difference.size)
        supply, demand = difference[more], -difference[less]
        _, log = ot.lp.emd(
            supply / supply.sum(), demand / demand.sum(), np.ascontiguousarray(distances[np.ix_(more, less)]), log=True
        )
        # Potentials of the values that give or take, extended to all values without growing faster than the distance.
        return np.asarray((distances[:, less] - log["v"][None]).min(axis=1))

    return on_map


def distance_interval(
    populations: Populations,
    potential: Potential,
    shown: float,
    equality_cutoff: float | None,
    cutoff: float,
    simulated: Cutoff | None = None,
) -> Generator[Progress, None, IntervalEstimate]:
    """Return the interval of a distance, extended to the one that is shown.

    Without `equality_cutoff` the groups may be equal. `cutoff` is that of single differences, if `simulated` knows no
    larger one.
    """
    low = 0.0 if equality_cutoff is None else (yield from _least_distance(populations, potential, equality_cutoff))
    yield Progress(0, 1, "distances")
    high, farthest = _largest_distance(populations, potential, cutoff)
    own_cutoff = cutoff if simulated is None else (yield from simulated(farthest))
    if own_cutoff > cutoff:
        high, _ = _largest_distance(populations, potential, own_cutoff)
    return IntervalEstimate(shown, min(low, shown), max(high, shown))


def _stacked(potential: Floats) -> Floats:
    return np.concatenate([-potential, potential])


def _difference(theta: Floats) -> Floats:
    first, second = np.split(theta, 2)
    return second - first


def _least_distance(populations: Populations, potential: Potential, cutoff: float) -> Generator[Progress, None, float]:
    potentials = [potential(_difference(populations.stacked.theta))]
    moved: list[Floats] = []
    best, mixture = 0.0, potentials[0]
    for done in range(MAX_ROUNDS):
        yield Progress(done, MAX_ROUNDS, "distances")
        extreme = populations.least(_stacked(mixture), cutoff)
        best = max(best, extreme.limit)
        moved.append(_difference(extreme.theta))
        mixed = _best_mixture(np.array([[c @ d for c in potentials] for d in moved])) @ np.array(moved)
        answer = potential(mixed)
        if answer @ mixed <= best / (1.0 - MAX_RELATIVE_GAP):  # likely distributions, that are hardly farther apart
            break
        potentials.append(answer)
        shares = _best_mixture(-np.array([[c @ d for d in moved] for c in potentials]))
        mixture = shares @ np.array(potentials)
    return best


def _best_mixture(game: Floats) -> Floats:
    """Return the mixture of rows whose largest entry is least."""
    from scipy.optimize import linprog

    rows, columns = game.shape
    solved = linprog(
        np.append(np.zeros(rows), 1.0),
        A_ub=np.hstack([game.T, -np.ones((columns, 1))]),
        b_ub=np.zeros(columns),
        A_eq=np.append(np.ones(rows), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * rows + [(None, None)],
        method="highs",
    )
    shares = np.asarray(solved.x, dtype=np.float64)[:-1]
    return np.asarray(shares / shares.sum())


def _largest_distance(populations: Populations, potential: Potential, cutoff: float) -> tuple[float, Floats]:
    """Return the largest distance that was found, and its potential."""
    likeliest = _difference(populations.stacked.theta)
    others = np.random.default_rng(DEFAULT_SEED).standard_normal((RANDOM_STARTS, likeliest.size))
    starts = [likeliest, -likeliest, *(others - others.mean(axis=1, keepdims=True))]
    return max((_climb(populations, potential, cutoff, start) for start in starts), key=itemgetter(0))


def _climb(populations: Populations, potential: Potential, cutoff: float, start: Floats) -> tuple[float, Floats]:
    largest, own = 0.0, potential(start)
    for _ in range(MAX_CLIMBS):
        extreme = populations.least(-_stacked(own), cutoff)
        if -extreme.limit <= largest * (1.0 + MAX_RELATIVE_GAP):
            return max(largest, -extreme.limit), own
        largest, own = -extreme.limit, potential(_difference(extreme.theta))
    return largest, own
