"""Survey weights: how many people each user stands for, and how users were sampled.

A weighted sample is estimated by the weighted likelihood: sum_i w_i log f_i, with weights that add up to the effective
number of users, (sum w)^2 / sum w^2 (Kish). The scatter of its score is that of the users as they were sampled: weights
that differ, strata, and clusters of users who were sampled together (Binder's linearization).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hubbub.core.arrays import Floats, Positions, as_array, frozen
from hubbub.core.errors import ReportsError, shorten
from hubbub.core.serialization import Portable

Labels = NDArray[np.str_]
NO_LABEL = ""


@dataclass(frozen=True, eq=False)
class SurveyWeights(Portable):
    """The survey weights of some reports: which users sent which pattern, by weight, stratum and cluster.

    `Reports.from_outputs` makes them of its arguments `weights`, `strata` and `clusters`, and ``reports.survey`` holds
    them. There is one row for each combination.

    Attributes
    ----------
    patterns : array of int
        The place of the pattern among all patterns of the reports.
    weights : array
        How many people a user of this row stands for.
    strata, clusters : array of str
        Where the users were sampled; all the same where the sample has no strata, "" where it has no clusters.
    users : array of int
        How many users the row is about.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> reports = hb.Reports.from_outputs(coin, ["yes", "no", "yes"], weights=[1, 2, 1])
    >>> reports.survey.total, round(reports.survey.effective_users, 2)
    (4.0, 2.67)
    """

    patterns: Positions
    weights: Floats
    strata: Labels
    clusters: Labels
    users: Positions

    @classmethod
    def build(
        cls, patterns: Positions, weights: Floats, strata: Labels, clusters: Labels, users: Positions
    ) -> SurveyWeights:
        """Return the weights of some rows, merging equal ones, in an order that does not depend on arrival.

        Parameters
        ----------
        patterns : array of int
            The place of each row's pattern.
        weights : array
            How many people a user of each row stands for.
        strata, clusters : array of str
            Where the users of each row were sampled.
        users : array of int
            How many users each row is about.

        Returns
        -------
        SurveyWeights
            The merged rows.
        """
        order = np.lexsort((weights, clusters, strata, patterns))
        columns = [column[order] for column in (patterns, weights, strata, clusters)]
        new = np.ones(order.size, dtype=bool)
        new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
        totals = np.add.reduceat(users[order], np.flatnonzero(new)) if order.size else users
        kept = [frozen(column[new]) for column in columns]
        return cls(kept[0], kept[1], kept[2], kept[3], frozen(totals))

    def moved(self, positions: Positions) -> SurveyWeights:
        """Return the same users for patterns in another order.

        Parameters
        ----------
        positions : array of int
            The new place of each pattern.

        Returns
        -------
        SurveyWeights
            The weights, by the new places.
        """
        return SurveyWeights.build(positions[self.patterns], self.weights, self.strata, self.clusters, self.users)

    def merge(self, other: SurveyWeights) -> SurveyWeights:
        """Return the users of both samples; a stratum or cluster of the same name is one.

        Parameters
        ----------
        other : SurveyWeights
            The other sample, whose patterns are numbered alike.

        Returns
        -------
        SurveyWeights
            The weights of all users.
        """
        columns = ("patterns", "weights", "strata", "clusters", "users")
        return SurveyWeights.build(*(np.concatenate([getattr(self, each), getattr(other, each)]) for each in columns))

    def rows(self, which: Positions) -> SurveyWeights:
        """Return some of the rows, as they are.

        Parameters
        ----------
        which : array of int
            The places of the rows.

        Returns
        -------
        SurveyWeights
            These rows.
        """
        return SurveyWeights(
            self.patterns[which], self.weights[which], self.strata[which], self.clusters[which], self.users[which]
        )

    @property
    def total(self) -> float:
        """The weight of all users."""
        return math.fsum((self.users * self.weights).tolist())

    # -- what is estimated ---------------------------------------------------------------------------

    @cached_property
    def effective_users(self) -> float:
        """How many users of equal weight would tell as much (Kish): (sum w)^2 / sum w^2."""
        return float((self.users @ self.weights) ** 2 / (self.users @ self.weights**2))

    @cached_property
    def scaled(self) -> Floats:
        """The weights of users, scaled to add up to the effective number of users."""
        return self.weights * (self.effective_users / float(self.users @ self.weights))

    def sums(self, patterns: int) -> Floats:
        """Return the scaled weight of each pattern.

        Parameters
        ----------
        patterns : int
            How many patterns there are.

        Returns
        -------
        array
            The sum of `scaled` over the users who sent each pattern.
        """
        return np.asarray(np.bincount(self.patterns, self.users * self.scaled, minlength=patterns), dtype=np.float64)

    # -- how it scatters -----------------------------------------------------------------------------

    @property
    def is_clustered(self) -> bool:
        """Whether users were sampled together."""
        return bool((self.clusters != NO_LABEL).any())

    @cached_property
    def _units(self) -> tuple[Positions, Positions]:
        """The sampled unit of each row (a cluster of a stratum, or the stratum), and the stratum of each unit."""
        strata, stratum = np.unique(self.strata, return_inverse=True)
        if not self.is_clustered:
            return stratum.ravel(), np.arange(strata.size)
        _, cluster = np.unique(self.clusters, return_inverse=True)
        pairs, unit = np.unique(np.column_stack([stratum.ravel(), cluster.ravel()]), axis=0, return_inverse=True)
        return unit.ravel(), pairs[:, 0]

    @cached_property
    def _sampled(self) -> Floats:
        """How many units were sampled in each stratum: clusters, or users."""
        unit, stratum = self._units
        if self.is_clustered:
            return np.bincount(stratum).astype(np.float64)
        return np.bincount(unit, self.users).astype(np.float64)

    @property
    def degrees_of_freedom(self) -> float:
        """How many units were sampled beyond the first of each stratum."""
        self._check_clusters()
        return float((self._sampled - 1.0).sum())

    def score_covariance(self, scores: Floats) -> Floats:
        """Return the covariance of the weighted score, per effective user.

        Between the sampled units of a stratum: ``n / (n - 1) sum_i (u_i - mean u)(u_i - mean u)'``, where ``u_i`` is
        the sum of weights times scores over the users of unit i.

        Parameters
        ----------
        scores : array
            The score of each pattern (values by patterns).

        Returns
        -------
        array
            The covariance (values by values).

        Raises
        ------
        ReportsError
            If some users are in no cluster while others are, or a stratum has a single cluster.
        """
        self._check_clusters()
        unit, stratum = self._units
        correction = self._sampled / np.maximum(self._sampled - 1.0, 1.0)
        sums = self.users * self.scaled
        table = sparse.csr_array(
            (sums, (self.patterns, unit)), shape=(scores.shape[1], stratum.size)
        )  # adds up rows of the same pattern and unit
        by_unit = np.asarray(scores @ table)
        if self.is_clustered:
            squares = (by_unit * correction[stratum]) @ by_unit.T
            by_stratum = np.asarray(
                by_unit @ sparse.csr_array((np.ones(stratum.size), (np.arange(stratum.size), stratum)))
            )
        else:
            own = np.bincount(self.patterns, sums * self.scaled * correction[unit], minlength=scores.shape[1])
            squares, by_stratum = (scores * own) @ scores.T, by_unit
        squares -= (by_stratum * (correction / self._sampled)) @ by_stratum.T
        return np.asarray(squares / self.effective_users)

    def _check_clusters(self) -> None:
        """Refuse clusters that do not say how far clusters differ. Not before: parts of a survey may be merged."""
        if not self.is_clustered:
            return
        if (self.clusters == NO_LABEL).any():
            raise ReportsError(
                "some users are in no cluster",
                where="clusters",
                got="an empty name",
                expected="the cluster of every user, or of none",
                remedy="name the cluster of each user: a user who was sampled alone is a cluster too",
            )
        lonely = np.flatnonzero(self._sampled < 2)
        if lonely.size:
            raise ReportsError(
                "a stratum has a single cluster",
                where="clusters",
                got=f"one cluster in the stratum {shorten(np.unique(self.strata)[lonely[0]])}",
                expected="two clusters or more in each stratum: one says nothing about how far clusters differ",
                remedy="join the stratum to a similar one",
            )


@dataclass(frozen=True, eq=False)
class IndependentSamples:
    """Samples of several groups: values and patterns of one group after the other, nothing in common."""

    samples: tuple[SurveyWeights, ...]
    patterns: tuple[int, ...]  # of each group

    @property
    def degrees_of_freedom(self) -> float:
        """How many units were sampled beyond the first of each stratum of each group."""
        return sum(sample.degrees_of_freedom for sample in self.samples)

    def score_covariance(self, scores: Floats) -> Floats:
        """Return the covariance of all scores, per effective user of all groups: one block for each group."""
        users = np.array([sample.effective_users for sample in self.samples])
        size, ends = scores.shape[0] // users.size, np.cumsum(self.patterns)
        covariance = np.zeros((scores.shape[0], scores.shape[0]))
        for group, (sample, end) in enumerate(zip(self.samples, ends.tolist(), strict=True)):
            own = slice(group * size, (group + 1) * size)
            block = sample.score_covariance(scores[own, end - self.patterns[group] : end])
            covariance[own, own] = block * (users[group] / users.sum())
        return covariance


def check_survey(
    users: int, where: str, *, weights: object, strata: object, clusters: object
) -> tuple[Floats, Labels, Labels]:
    """Return the weight, stratum and cluster of each user."""
    given = np.ones(users) if weights is None else _numbers(weights, where)
    stratum, cluster = _labels(strata, users, f"{where}(strata=)"), _labels(clusters, users, f"{where}(clusters=)")
    for name, shape in (("weights", given.shape), ("strata", stratum.shape), ("clusters", cluster.shape)):
        if shape != (users,):
            raise ReportsError(
                f"{name} must be one for each user",
                where=f"{where}({name}=)",
                got=f"shape {shape}",
                expected=f"{users:,} of them, in the order of the users",
                remedy="pass one entry for each user, in the same order",
            )
    wrong = np.flatnonzero(~((given > 0.0) & np.isfinite(given)))
    if wrong.size:
        raise wrong_weight(f"{where}(weights=), position {int(wrong[0])}", given[wrong[0]])
    return given, stratum, cluster


def wrong_weight(where: str, got: object) -> ReportsError:
    """Return the error for a weight that is missing, 0, negative or not finite."""
    return ReportsError(
        "a weight is not a positive number",
        where=where,
        got=shorten(got),
        expected="how many people the user stands for: a positive, finite number",
        remedy="leave users with weight 0 out; complete missing weights, or remove these users on purpose",
    )


def _numbers(weights: object, where: str) -> Floats:
    try:
        return np.asarray(as_array(weights), dtype=np.float64)
    except (TypeError, ValueError):
        raise wrong_weight(f"{where}(weights=)", weights) from None


def _labels(labels: object, users: int, where: str) -> Labels:
    if labels is None:
        return np.full(users, NO_LABEL)
    given = [
        NO_LABEL if label is None or label != label else str(label) for label in np.ravel(as_array(labels)).tolist()
    ]
    if NO_LABEL in given:
        raise ReportsError(
            "a name is missing",
            where=f"{where}, position {given.index(NO_LABEL)}",
            got="nothing",
            expected="the stratum or cluster of every user",
            remedy="complete it, or leave the argument out",
        )
    return np.array(given, dtype=np.str_)
