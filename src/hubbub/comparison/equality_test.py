"""A test of whether several groups have the same distribution.

The statistic is the likelihood ratio, computed near the likeliest common distribution: with s_g the score of group g
there and J_g its information,

    T = 2 (min of h'Jh/2 - s'h for all groups together  -  the sum over groups of their own minima),

over the h that keep all probabilities at least 0. With no noise it is Pearson's chi-square of the table of counts.

**Permutations.** If each kind of report occurs in all groups, users who sent the same kind are exchangeable when the
distributions are equal: who is in which group is then chance. T is computed again for users dealt to the groups at
random, and the p-value is the share of deals with a T as large. It holds for any number of users, and whether
shares are 0 or not.

**Simulations.** If groups used different mechanisms, reports are drawn from the likeliest common distribution instead.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hubbub.comparison.populations import Populations
from hubbub.comparison.tail_probability import tail_probability
from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.core.progress import Progress
from hubbub.core.serialization import Portable
from hubbub.goodness_of_fit.output_enumeration import enumerate_outputs
from hubbub.intervals.deviance_cutoff import MAX_SIMULATED_VALUES, LocalScores, information_per_user, quantile
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.likelihood import Likelihood, Point
from hubbub.reports import Joint, Reports, Singles
from hubbub.solvers.boundary_deviance import ConePrograms

MIN_DRAWS, MAX_DRAWS = 999, 9_999
MAX_WORK = 4e7  # draws x values^2 x groups: about a second
MAX_DEALT_COUNTS = 50_000_000  # draws x patterns: with more, the normal limit of the deals is drawn
MAX_ERRORS_OF_DOUBTFUL = 1.2  # standard errors of a share, below which it is simulated as 0
SLIGHTLY_LESS = 1.0 - 1e-6
RATIO_DIGITS = 12  # of relative likelihoods that count as equal
MAX_DEALS = 50_000  # draws x groups, of more than two groups: these are dealt one by one
BATCH_ENTRIES = 5_000_000  # of counts, at a time


@dataclass(frozen=True, eq=False)
class Equality(Portable):
    """The test: the likelihood ratio, its p-value, and how that was found."""

    deviance: float
    p_value: float
    draws: int
    note: str
    common: Floats = field(repr=False)  # the likeliest distribution if they are equal
    sample: Floats = field(repr=False)  # of deviances under equality

    def cutoff(self, level: float) -> float:
        """Return the deviance from which on equality is rejected; the observed one is on the side of its p-value."""
        cutoff = quantile(self.sample, level)
        if self.p_value <= 1.0 - level:
            return min(cutoff, SLIGHTLY_LESS * self.deviance)
        return max(cutoff, self.deviance / SLIGHTLY_LESS)


def equality_test(
    populations: Populations, rng: np.random.Generator, max_draws: int = MAX_DRAWS
) -> Generator[Any, None, Equality]:
    """Test whether all groups have the same distribution."""
    pooled = sum(populations.reports[1:], start=populations.reports[0])
    region = yield from LikelihoodRegion.around(Likelihood.of(pooled))
    common = region.top
    deviance = 2.0 * max(0.0, sum(top.log_likelihood for top in populations.tops) - common.log_likelihood)
    kinds = _kinds(populations.reports)
    theta = common.theta if kinds is not None else _without_doubtful(common, rng)
    points = [top.likelihood.at(theta) for top in populations.tops]
    groups = len(points)
    draws = int(np.clip(MAX_WORK / (populations.values**2 * (groups + 1)), MIN_DRAWS, max_draws))
    if groups > 2:
        draws = max(MIN_DRAWS, min(draws, MAX_DEALS // groups))
    patterns = sum(point.likelihood.channel.patterns for point in points)
    if kinds is not None and patterns * draws <= MAX_DEALT_COUNTS:
        source: _Deals | _Simulations | _NormalDeals = _Deals(points, kinds, rng)
        note = f"{draws:,} deals of the users to the groups at random"
    elif kinds is not None:
        source, note = _NormalDeals(points, rng), f"{draws:,} deals of the users to the groups, in their normal limit"
    else:
        source = _Simulations(points, populations.reports, rng)
        note = f"{draws:,} simulations with the likeliest common distribution"
    informations = source.informations()
    test = _LikelihoodRatio(informations, theta, populations.users)
    observed = test.of(_scores(points)[:, None])[0]
    sample, step = np.empty(draws), max(1, BATCH_ENTRIES // (groups * max(patterns, populations.values)))
    for first in range(0, draws, step):
        yield Progress(first, draws, "testing equality")
        last = min(draws, first + step)
        sample[first:last] = test.of(source.scores(last - first))
    p_value = tail_probability(sample, float(observed))
    return Equality(deviance, p_value, draws, note, frozen(common.theta.copy()), frozen(sample))


class _LikelihoodRatio:
    """T, for many scores at once; informations are per user of all groups."""

    def __init__(self, informations: Floats, theta: Floats, users: float) -> None:
        self._informations, self._users = informations, users
        self._lower, self._total = -math.sqrt(users) * theta, np.ones(theta.size)

    def of(self, scores: Floats) -> Floats:
        """Return T for scores: groups by draws by values."""
        together = self._minima(self._informations.sum(axis=0), scores.sum(axis=0))
        own = sum(self._minima(block, score) for block, score in zip(self._informations, scores, strict=True))
        return np.maximum(0.0, 2.0 * (together - own))

    def _minima(self, information: Floats, scores: Floats) -> Floats:
        return ConePrograms(information, scores, self._total, self._users).minima(self._lower)


def _without_doubtful(common: Point, rng: np.random.Generator) -> Floats:
    """Return the common distribution without shares that are small beside their standard errors.

    A share of 0 is estimated as a small one half of the time, and a small one as 0. Simulations that take either for
    the truth find differences too seldom or too often; this threshold balances both.
    """
    if common.theta.size > MAX_SIMULATED_VALUES:
        return common.theta
    errors = LocalScores(common, 0, rng).standard_errors(common.theta > 0.0)
    kept = common.theta.copy()
    kept[common.theta > 0.0] *= common.theta[common.theta > 0.0] >= MAX_ERRORS_OF_DOUBTFUL * errors
    return kept / kept.sum() if kept.any() else common.theta


def _users(points: Sequence[Point]) -> float:
    return sum(point.likelihood.total for point in points)


def _scores(points: Sequence[Point]) -> Floats:
    """Return the score of each group: the sum of g_xi / f_i - 1 over its users, divided by the root of all users."""
    root = math.sqrt(_users(points))
    return np.stack([point.likelihood.total * (point.gradient - 1.0) / root for point in points])


def _kinds(groups: Sequence[Reports]) -> list[Positions] | None:
    """Return the kind of each group's patterns, numbered; None if a kind is missing in a group."""
    numbers: dict[object, int] = {}
    found = []
    for reports in groups:
        own = [_kinds_of_block(block) for block in reports.blocks]
        if any(kinds is None for kinds in own):
            return None
        found.append(np.array([numbers.setdefault(kind, len(numbers)) for kinds in own for kind in kinds or []]))
    return found if all(np.unique(own).size == len(numbers) for own in found) else None


def _kinds_of_block(block: object) -> list[object] | None:
    """Return for each pattern the mechanisms that its users ran; None where only sums are known."""
    if isinstance(block, Singles):
        return [block.mechanism] * len(block.codes)
    if isinstance(block, Joint):
        owner = np.repeat(np.arange(len(block.sources)), [len(codes) for _, codes in block.sources])
        of_source = [block.repeats[:, owner == source].sum(axis=1) for source in range(len(block.sources))]
        return [tuple(zip(block.mechanisms, times, strict=True)) for times in np.stack(of_source, axis=1).tolist()]
    return None


class _Deals:
    """Users dealt to groups at random, those of each kind apart."""

    def __init__(self, points: Sequence[Point], kinds: Sequence[Positions], rng: np.random.Generator) -> None:
        self._points, self._rng = points, rng
        weights = [point.likelihood.weights for point in points]
        # Relative likelihoods g / f of all groups' patterns, kind by kind: values by patterns.
        ratios = np.concatenate([point.likelihood.channel.dense() / point.fitted for point in points], axis=1)
        every, counts = np.concatenate(kinds), np.concatenate(weights).astype(np.int64)
        self._ratios, self._counts, self._sizes = [], [], []
        for kind in range(int(every.max()) + 1):
            ratio, count = _merged(ratios[:, every == kind], counts[every == kind])
            self._ratios.append(ratio)
            self._counts.append(count)
            self._sizes.append([int(own[of == kind].sum()) for own, of in zip(weights, kinds, strict=True)])

    def informations(self) -> Floats:
        """Return each group's information as that of the kinds it sent, over all groups."""
        kinds = [
            (ratio * (count / count.sum())) @ ratio.T for ratio, count in zip(self._ratios, self._counts, strict=True)
        ]
        shares = np.array(self._sizes) / _users(self._points)  # kinds by groups
        return np.asarray(np.einsum("kg,kxy->gxy", shares, np.stack(kinds)))

    def scores(self, draws: int) -> Floats:
        """Return scores of deals: groups by draws by values."""
        groups, root = len(self._points), math.sqrt(_users(self._points))
        scores = np.zeros((groups, draws, self._ratios[0].shape[0]))
        for ratio, counts, sizes in zip(self._ratios, self._counts, self._sizes, strict=True):
            for group, dealt in enumerate(_deal(counts, sizes, draws, self._rng)):
                scores[group] += (dealt @ ratio.T - sizes[group]) / root
        return scores


def _merged(ratios: Floats, counts: Positions) -> tuple[Floats, Positions]:
    """Add up the users of patterns that say the same: they need not be told apart."""
    _, first, back = np.unique(ratios.round(RATIO_DIGITS), axis=1, return_index=True, return_inverse=True)
    merged = np.zeros(first.size, dtype=np.int64)
    np.add.at(merged, back.ravel(), counts)
    return ratios[:, first], merged


def _deal(counts: Positions, sizes: Sequence[int], draws: int, rng: np.random.Generator) -> list[Floats]:
    """Return the counts of each group (draws by patterns) for users dealt at random."""
    if len(sizes) == 2:
        first = rng.multivariate_hypergeometric(counts, sizes[0], size=draws, method="marginals")
        return [first.astype(np.float64), (counts - first).astype(np.float64)]
    dealt = np.empty((len(sizes), draws, counts.size))
    for draw in range(draws):
        left = counts.copy()
        for group, size in enumerate(sizes[:-1]):
            own = rng.multivariate_hypergeometric(left, size, method="marginals")
            dealt[group, draw] = own
            left = left - own
        dealt[-1, draw] = left
    return list(dealt)


class _NormalDeals:
    """The normal limit of deals: scores whose sum is that of all groups, as of draws without return."""

    def __init__(self, points: Sequence[Point], rng: np.random.Generator) -> None:
        self._points, self._rng = points, rng
        self._shares = np.array([point.likelihood.total for point in points]) / _users(points)
        each = np.stack([information_per_user(point, rng) for point in points])
        self._information = np.einsum("g,gxy->xy", self._shares, each)

    def informations(self) -> Floats:
        """Return the same information per user for all groups."""
        return np.asarray(self._shares[:, None, None] * self._information)

    def scores(self, draws: int) -> Floats:
        """Return scores of deals: groups by draws by values."""
        eigenvalues, eigenvectors = np.linalg.eigh(self._information)
        root = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        normal = self._rng.standard_normal((len(self._shares), draws, eigenvalues.size)) @ root.T
        own = np.sqrt(self._shares)[:, None, None] * normal
        total = _scores(self._points).sum(axis=0)
        return np.asarray(own - self._shares[:, None, None] * (own.sum(axis=0) - total))


class _Simulations:
    """Reports drawn from the common distribution, by each group's own mechanisms."""

    def __init__(self, points: Sequence[Point], groups: Sequence[Reports], rng: np.random.Generator) -> None:
        self._points, self._rng = points, rng
        self._tables = [_tables(reports, point) for reports, point in zip(groups, points, strict=True)]

    def informations(self) -> Floats:
        """Return each group's information: expected where its outputs can be listed, observed otherwise."""
        found = []
        for point, tables in zip(self._points, self._tables, strict=True):
            if tables is None:
                own = information_per_user(point, self._rng) * point.likelihood.total
            else:
                own = np.sum([users * ((table / fitted) @ table.T) for table, fitted, users in tables], axis=0)
            found.append(own / _users(self._points))
        self._found = np.stack(found)
        return self._found

    def scores(self, draws: int) -> Floats:
        """Return scores: groups by draws by values."""
        root = math.sqrt(_users(self._points))
        found = []
        for information, tables in zip(self._found, self._tables, strict=True):
            if tables is None:
                eigenvalues, eigenvectors = np.linalg.eigh(information)
                normal = self._rng.standard_normal((draws, eigenvalues.size))
                found.append((normal * np.sqrt(np.maximum(eigenvalues, 0.0))) @ eigenvectors.T)
                continue
            own = np.zeros((draws, len(information)))
            for table, fitted, users in tables:
                counts = self._rng.multinomial(users, fitted / fitted.sum(), size=draws)
                own += (counts @ (table / fitted).T - users) / root
            found.append(own)
        return np.stack(found)


def _tables(reports: Reports, point: Point) -> list[tuple[Floats, Floats, int]] | None:
    """Return the likelihoods of all possible outputs, their probabilities and the users, for each mechanism."""
    tables = []
    for block in reports.blocks:
        if not isinstance(block, Singles):
            return None
        outputs = enumerate_outputs(block.mechanism, reports.users, reports.domain.among)
        if outputs is None:
            return None
        fitted = point.theta @ outputs.probabilities
        possible = fitted > 0.0
        tables.append((outputs.probabilities[:, possible], fitted[possible], block.users))
    return tables
