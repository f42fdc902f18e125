"""A test of whether two attributes are independent.

The statistic is the likelihood ratio, computed near the likeliest distribution with independent attributes a and b:
with s the score there and J its information,

    T = 2 (min of h'Jh/2 - s'h over moves of a and b  -  the same over all moves of the joint distribution),

over moves that keep all probabilities at least 0. With no noise it is Pearson's chi-square of the table of counts. The
p-value is the share of simulated studies with a T as large: users come from a times b, and report as the real ones did.

Chi-square would be wrong: where shares may be 0, T has no chi-square distribution. Shares of a and b that are doubtful
are taken to be 0 in the simulation, as in the test of equal groups (`comparison.equality_test`). Here that alone would
not do: a value with a doubtful share brings as many moves as the other attribute has values, and T would depend on
whether they are possible. So among all moves, such a value moves as a whole, as it does under independence (but never
one of an attribute's two most frequent values). T then says nothing about values that hardly anybody has.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hubbub.association.attribute_pair import AttributePair, margin_moves
from hubbub.association.independent_fit import IndependentFit
from hubbub.association.score_simulation import ScoreSimulation, output_tables
from hubbub.comparison.equality_test import MAX_DRAWS, MAX_WORK, MIN_DRAWS, without_doubtful
from hubbub.comparison.tail_probability import tail_probability
from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.core.progress import Progress
from hubbub.core.serialization import Portable
from hubbub.solvers.boundary_deviance import limited_minima

BATCH_DRAWS = 2_000
MIN_PRESENT_VALUES = 2  # of each attribute: with fewer there is nothing to test
MAX_LOOKED_PATTERNS = 4_000  # from which it is decided whether reports depend on more than marginals
MAX_ROUNDING = 1e-9  # of likelihoods, relative


@dataclass(frozen=True, eq=False)
class IndependenceTest(Portable):
    """The test: the likelihood ratio, its p-value, and how that was found."""

    statistic: float  # T
    deviance: float  # twice what independence costs of the log-likelihood, without approximation
    p_value: float
    note: str
    sample: Floats = field(repr=False)  # of T under independence


class IndependenceRatio:
    """T, for many scores at once."""

    def __init__(self, information: Floats, first: Floats, second: Floats, users: float) -> None:
        self._information, self._users, root = information, users, math.sqrt(users)
        self._moves = margin_moves(first, second)
        free = np.outer(_present(first), _present(second)).ravel()
        shy = np.concatenate([~_present(first), ~_present(second)])  # values that move as wholes
        self._all_moves = np.concatenate([np.eye(free.size)[free], self._moves[shy]])
        self._lower = np.concatenate([-root * np.outer(first, second).ravel()[free], np.zeros(np.count_nonzero(shy))])
        self._total = np.ones(self._lower.size)
        self._lower_of_margins = -root * np.concatenate([first, second])
        self._totals_of_margins = np.repeat(np.eye(2), [first.size, second.size], axis=1)

    def of(self, scores: Floats) -> Floats:
        """Return T for scores: draws by values."""
        held = self._minima(self._moves, scores, self._lower_of_margins, self._totals_of_margins)
        free = self._minima(self._all_moves, scores, self._lower, self._total)
        return np.maximum(0.0, 2.0 * (held - free))

    def _minima(self, moves: Floats, scores: Floats, lower: Floats, equal: Floats) -> Floats:
        return limited_minima(moves @ self._information @ moves.T, scores @ moves.T, lower, equal, self._users)


def _present(shares: Floats) -> NDArray[np.bool_]:
    """Return which values have a share, and the two largest in any case."""
    present = shares > 0.0
    present[np.argsort(-shares, kind="stable")[:MIN_PRESENT_VALUES]] = True
    return present


@dataclass(frozen=True, eq=False)
class Independent:
    """Two attributes under the hypothesis that they are independent."""

    first: Floats  # shares, without doubtful ones
    second: Floats
    simulation: ScoreSimulation
    ratio: IndependenceRatio
    draws: int

    @classmethod
    def of(cls, pair: AttributePair, fit: IndependentFit, rng: np.random.Generator, max_draws: int) -> Independent:
        """Leave out doubtful shares, and prepare simulations."""
        first, second = (without_doubtful(fit.axis(place), rng) for place in (0, 1))
        draws = int(np.clip(MAX_WORK / len(pair.domain) ** 2, MIN_DRAWS, max_draws))
        point = fit.point.at(np.outer(first, second).ravel())
        simulation = ScoreSimulation(point, pair.reports, draws, rng)
        ratio = IndependenceRatio(simulation.information, first, second, simulation.users)
        return cls(first, second, simulation, ratio, draws)

    @property
    def observed(self) -> float:
        """T of the reports."""
        return float(self.ratio.of(self.simulation.observed[None])[0])

    def sample(self, theta: Floats, draws: int, what: str) -> Generator[Any, None, Floats]:
        """Return T of simulated studies whose users come from a distribution."""
        found = []
        for start in range(0, draws, BATCH_DRAWS):
            yield Progress(start, draws, what)
            found.append(self.ratio.of(self.simulation.scores(theta, min(BATCH_DRAWS, draws - start))))
        return np.concatenate(found)


def independence_test(
    pair: AttributePair, fit: IndependentFit, top: float, rng: np.random.Generator, max_draws: int = MAX_DRAWS
) -> Generator[Any, None, tuple[IndependenceTest, Independent]]:
    """Test whether two attributes are independent; `top` is the largest log-likelihood of all distributions."""
    null = Independent.of(pair, fit, rng, max_draws)
    sample = yield from null.sample(null.simulation.point.theta, null.draws, "testing independence")
    observed = null.observed
    deviance = 2.0 * max(0.0, top - fit.point.log_likelihood)
    note = f"{sample.size:,} {null.simulation.what}"
    return IndependenceTest(observed, deviance, tail_probability(sample, observed), note, frozen(sample)), null


def depends_on_marginals_alone(pair: AttributePair) -> bool:
    """Whether no two joint distributions with the same marginals give reports of this kind different probabilities.

    Moves of a joint distribution that keep both marginals are those of interactions. Reports tell nothing about them if
    they change no output's probability, or none in another way than some move of the marginals does.
    """
    sides, columns = pair.sides, _likelihoods(pair)
    columns = columns / columns.mean(axis=0)
    table = columns.reshape(*sides, -1)
    interactions = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean(axis=(0, 1))
    even = margin_moves(np.full(sides[0], 1.0 / sides[0]), np.full(sides[1], 1.0 / sides[1]))
    left, sizes, _ = np.linalg.svd((even @ columns).T, full_matrices=False)
    seen = left[:, sizes > MAX_ROUNDING * sizes[0]]
    rows = interactions.reshape(len(columns), -1)
    rest = rows - (rows @ seen) @ seen.T
    return bool(np.abs(rest).max() <= MAX_ROUNDING * np.abs(columns).max())


def _likelihoods(pair: AttributePair) -> Floats:
    """Return the likelihoods of all outputs that users could send, or of the patterns they sent (values by outputs).

    Of many, some are enough.
    """
    tables = output_tables(pair.reports)
    if tables is not None:
        columns = np.concatenate([table.probabilities for table in tables], axis=1)
        return columns[:, _evenly(np.flatnonzero(columns.any(axis=0)))]
    channel = pair.likelihood.channel
    picked = _evenly(np.flatnonzero(pair.likelihood.sent))
    return np.exp(channel.log_columns(picked) - channel.log_scale[picked])


def _evenly(places: Positions) -> Positions:
    few = min(places.size, MAX_LOOKED_PATTERNS)
    return np.asarray(places[np.unique(np.linspace(0, places.size - 1, few).astype(np.int64))])
