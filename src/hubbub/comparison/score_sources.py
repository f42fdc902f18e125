"""Scores of groups under equality: users dealt to the groups at random, or reports simulated anew.

The score of a group at a common distribution is the sum of g_xi / f_i - 1 over its users.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import sparse

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.intervals.deviance_cutoff import information_per_user, score_covariance
from hubbub.likelihood import Point
from hubbub.mechanisms import Mechanism
from hubbub.outputs.sent_outputs import AttributeSets, enumerate_sent
from hubbub.reports import BitSums, Block, Joint, Reports, Singles

MAX_DEALT_COUNTS = 50_000_000  # draws x patterns: with more, the normal limit of the deals is drawn
RATIO_DIGITS = 12  # of relative likelihoods that count as equal


def _users(points: Sequence[Point]) -> float:
    return sum(point.likelihood.total for point in points)


def observed_scores(points: Sequence[Point]) -> Floats:
    """Return the score of each group: the sum of g_xi / f_i - 1 over its users, divided by the root of all users."""
    root = math.sqrt(_users(points))
    return np.stack([point.likelihood.total * (point.gradient - 1.0) / root for point in points])


def report_kinds(groups: Sequence[Reports]) -> list[Positions] | None:
    """Return the kind of each group's patterns, numbered; None if a kind is missing in a group."""
    numbers: dict[object, int] = {}
    found = []
    for reports in groups:
        own = []
        for block in reports.blocks:
            kinds, which = _kinds_of_block(block)
            if not kinds:
                return None
            own.append(np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds])[which])
        found.append(np.concatenate(own))
    return found if all(np.unique(own).size == len(numbers) for own in found) else None


def _kinds_of_block(block: Block) -> tuple[list[object], Positions]:
    """Return what users ran and which attributes they sent, and which of these each pattern has.

    Nothing where only sums are known.
    """
    if isinstance(block, BitSums):
        return [], np.empty(0, dtype=np.int64)
    if isinstance(block, Singles):
        return _kinds_of_outputs(block.mechanism, block.codes)
    assert isinstance(block, Joint)  # noqa: S101  # there are three kinds of blocks
    kinds: list[object] = []
    owner: list[Positions] = []
    for mechanism, codes in block.sources:
        own, which = _kinds_of_outputs(mechanism, codes)
        owner.append(len(kinds) + which)
        kinds += own
    items = np.concatenate(owner)
    of_kind = sparse.csr_array((np.ones(items.size, dtype=np.int64), (np.arange(items.size), items)))
    distinct, which = np.unique((block.repeats @ of_kind).toarray(), axis=0, return_inverse=True)
    sent = [tuple((kind, times) for kind, times in zip(kinds, row, strict=True) if times) for row in distinct.tolist()]
    return list(sent), which.ravel()


def _kinds_of_outputs(mechanism: Mechanism, codes: Codes) -> tuple[list[object], Positions]:
    """Return the mechanism with each set of attributes that was sent, and which of these each output has."""
    sets = AttributeSets.of(mechanism, codes)
    return [(mechanism, *has) for has in sets.distinct.tolist()], sets.which


class ScoreSource(ABC):
    """Scores of groups that are equal, as chance makes them."""

    what: ClassVar[str]  # they are, for readers

    @property
    @abstractmethod
    def informations(self) -> Floats:
        """Each group's information, per user of all groups: groups by values by values."""

    @abstractmethod
    def scores(self, draws: int) -> Floats:
        """Return scores: groups by draws by values."""


def score_source(
    points: Sequence[Point],
    groups: Sequence[Reports],
    kinds: list[Positions] | None,
    draws: int,
    rng: np.random.Generator,
) -> ScoreSource:
    """Return deals where users of a kind are exchangeable, simulations elsewhere.

    The normal limit of deals is that of a single kind: several may have unlike shares of each group.
    """
    if any(reports.survey is not None for reports in groups):
        return SampledScores(points, rng)
    if kinds is None:
        return Simulations(points, groups, rng)
    if sum(point.likelihood.channel.patterns for point in points) * draws <= MAX_DEALT_COUNTS:
        return Deals(points, kinds, rng)
    return NormalDeals(points, rng) if not any(own.any() for own in kinds) else Simulations(points, groups, rng)


class Deals(ScoreSource):
    """Users dealt to groups at random, those of each kind apart."""

    what = "deals of the users to the groups at random"

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

    @cached_property
    def informations(self) -> Floats:
        """Each group's information, as that of the kinds it sent over all groups."""
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
    left = np.tile(counts, (draws, 1))
    dealt = []
    for size in sizes[:-1]:
        own = _take(left, size, rng)
        dealt.append(own.astype(np.float64))
        left -= own
    return [*dealt, left.astype(np.float64)]


def _take(left: Positions, size: int, rng: np.random.Generator) -> Positions:
    """Draw so many users at random from each row of counts, one pattern after the other, for all rows at once."""
    own = np.zeros_like(left)
    rest, wanted = left.sum(axis=1), np.full(len(left), size)
    for pattern in range(left.shape[1] - 1):
        rest = rest - left[:, pattern]
        own[:, pattern] = rng.hypergeometric(left[:, pattern], rest, wanted)
        wanted = wanted - own[:, pattern]
    own[:, -1] = wanted
    return own


class NormalDeals(ScoreSource):
    """The normal limit of deals: scores whose sum is that of all groups, as of draws without return."""

    what = "deals of the users to the groups, in their normal limit"

    def __init__(self, points: Sequence[Point], rng: np.random.Generator) -> None:
        self._points, self._rng = points, rng
        self._shares = np.array([point.likelihood.total for point in points]) / _users(points)
        each = np.stack([information_per_user(point, rng) for point in points])
        self._information = np.einsum("g,gxy->xy", self._shares, each)

    @cached_property
    def informations(self) -> Floats:
        """The same information per user for all groups."""
        return np.asarray(self._shares[:, None, None] * self._information)

    def scores(self, draws: int) -> Floats:
        """Return scores of deals: groups by draws by values."""
        eigenvalues, eigenvectors = np.linalg.eigh(self._information)
        root = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        normal = self._rng.standard_normal((len(self._shares), draws, eigenvalues.size)) @ root.T
        own = np.sqrt(self._shares)[:, None, None] * normal
        total = observed_scores(self._points).sum(axis=0)
        return np.asarray(own - self._shares[:, None, None] * (own.sum(axis=0) - total))


class SampledScores(ScoreSource):
    """Scores of users with survey weights, as the sample of each group scatters."""

    what = "draws of the score as the samples scatter, by their weights, strata and clusters"

    def __init__(self, points: Sequence[Point], rng: np.random.Generator) -> None:
        self._points, self._rng = points, rng
        self._shares = [point.likelihood.total / _users(points) for point in points]

    @cached_property
    def informations(self) -> Floats:
        """The information of each group's weighted likelihood."""
        each = zip(self._shares, self._points, strict=True)
        return np.stack([share * information_per_user(point, self._rng) for share, point in each])

    def scores(self, draws: int) -> Floats:
        """Return scores: groups by draws by values."""
        found = []
        for share, point in zip(self._shares, self._points, strict=True):
            eigenvalues, eigenvectors = np.linalg.eigh(share * score_covariance(point))
            normal = self._rng.standard_normal((draws, eigenvalues.size))
            found.append((normal * np.sqrt(np.maximum(eigenvalues, 0.0))) @ eigenvectors.T)
        return np.stack(found)


class Simulations(ScoreSource):
    """Reports drawn from the common distribution, by each group's own mechanisms."""

    what = "simulations with the likeliest common distribution"

    def __init__(self, points: Sequence[Point], groups: Sequence[Reports], rng: np.random.Generator) -> None:
        self._points, self._rng = points, rng
        self._tables = [_tables(reports, point) for reports, point in zip(groups, points, strict=True)]

    @cached_property
    def informations(self) -> Floats:
        """Each group's information: expected where its outputs can be listed, observed otherwise."""
        found = []
        for point, tables in zip(self._points, self._tables, strict=True):
            if tables is None:
                own = information_per_user(point, self._rng) * point.likelihood.total
            else:
                own = np.sum([users * ((table / fitted) @ table.T) for table, fitted, users in tables], axis=0)
            found.append(own / _users(self._points))
        return np.stack(found)

    def scores(self, draws: int) -> Floats:
        """Return scores: groups by draws by values."""
        root = math.sqrt(_users(self._points))
        found = []
        for information, tables in zip(self.informations, self._tables, strict=True):
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
    """Return the likelihoods of all possible outputs, their probabilities and the users: those of each kind apart."""
    tables = []
    for block in reports.blocks:
        sent = (
            enumerate_sent(block.mechanism, block.codes, reports.users, reports.domain.among)
            if isinstance(block, Singles)
            else None
        )
        if sent is None:
            return None
        for own in sent:
            fitted = point.theta @ own.outputs.probabilities
            possible = fitted > 0.0
            users = int(block.weights[own.rows].sum())
            tables.append((own.outputs.probabilities[:, possible], fitted[possible], users))
    return tables
