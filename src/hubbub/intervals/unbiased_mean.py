"""`mean`: the unbiased mean of numbers, from the scores of outputs alone.

A mechanism's score of an output has the value as its expectation (`Mechanism.mean_score`). A user's score is the
average over the user's outputs. How users' scores differ, by noise and because people differ, says how precise is what
they average to.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hubbub.core import validation
from hubbub.core.arrays import Floats, Positions
from hubbub.core.errors import EstimateError
from hubbub.core.serialization import Portable
from hubbub.core.text import plural, whole_percent
from hubbub.domains import Domain
from hubbub.estimators.validation import check_reports
from hubbub.mechanisms import Mechanism
from hubbub.rendering import Fact, facts_html
from hubbub.reports import BitSums, Block, Joint, Reports, Singles

MIN_GROUP_USERS = 30  # from which on a group's own variance decides its weight
FEW_USERS = 30  # for the law of an average of scores to be that of t

Sent = frozenset[tuple[Mechanism, int]]  # how many outputs of which mechanisms a user sent


@dataclass(frozen=True)
class Mean(Portable):
    """An unbiased mean, with its interval.

    Attributes
    ----------
    estimate : float
        The mean. It is unbiased, and may therefore lie a little beyond the line.
    low, high : float
        The endpoints of the interval: within the line, and extended to the estimate.
    level : float
        The probability with which the interval holds the true mean, for many users.
    standard_error : float
        The standard deviation of the estimate; NaN where all users sent the same, which says nothing about it.
    users : int
        How many users it is the mean of.
    note : str
        What there is to know about it.

    Examples
    --------
    >>> import hubbub as hb
    >>> answer = hb.mean(hb.Reports.from_counts(hb.Duchi(hb.Integers(0, 10), epsilon=1.0), {-1: 900, 1: 1100}))
    >>> print(answer.explain())
    mean: 6.082, between 5.61 and 6.554 at 95%. Standard error 0.2408.
    """

    estimate: float
    low: float
    high: float
    level: float
    standard_error: float
    users: int
    note: str = ""

    def explain(self) -> str:
        """Return the mean in sentences.

        Returns
        -------
        str
            What printing shows, too.
        """
        text = f"mean: {self.estimate:.4g}, between {self.low:.4g} and {self.high:.4g} at {whole_percent(self.level)}."
        if not math.isnan(self.standard_error):
            text += f" Standard error {self.standard_error:.4g}."
        return f"{text} {self.note}".strip()

    def to_json(self) -> str:
        """Return the result as one JSON document, with a version.

        Returns
        -------
        str
            All entries by their names; a standard error that there is not is null.
        """
        entries = {"version": 1, **asdict(self)}
        if math.isnan(self.standard_error):
            entries["standard_error"] = None
        return json.dumps(entries, allow_nan=False, ensure_ascii=False)

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        facts = [
            Fact("mean", f"{self.estimate:.4g}"),
            Fact(f"{whole_percent(self.level)} interval", f"{self.low:.4g} to {self.high:.4g}"),
            Fact("standard error", "none" if math.isnan(self.standard_error) else f"{self.standard_error:.4g}"),
            Fact("users", f"{self.users:,}"),
        ]
        return facts_html([*facts, *([Fact("note", self.note)] if self.note else [])])


def mean(reports: Reports, level: float = 0.95) -> Mean:
    """Return the unbiased mean of numbers, with an interval: the average of the outputs' scores.

    No distribution is estimated. Every mechanism on a line has a score of its outputs whose expectation is the value,
    or none: that of `Duchi`, `Piecewise`, `Staircase` and `Geometric` is the output itself, shifted and stretched. The
    estimate is unbiased whatever the distribution, and its interval comes from how the scores of users differ.

    Users who sent different mechanisms, or different numbers of outputs, are weighted by the inverse of the variance in
    their group, groups of fewer than 30 users together. This takes for granted that values do not depend on what users
    sent. The outputs of one user are averaged, whether they are independent or not. With survey weights, mean and
    variance are those of the sample: weights, strata and clusters.

    `hubbub.moments` gives the mean of the likeliest distribution instead, which uses that no share is negative and is
    biased towards what is possible; with many users the two agree.

    Parameters
    ----------
    reports : Reports
        Reports about numbers: `Integers` or `Bins`, which count with their centres.
    level : float, default 0.95
        The probability with which the interval holds the true mean. It is that of Student's t, and exact only for many
        users.

    Returns
    -------
    Mean
        With `estimate`, `low`, `high`, `standard_error` and `explain()`.

    Raises
    ------
    EstimateError
        If the values are no numbers, there are no scores with the value as their expectation (as of outputs that do not
        say where on the line the value is), or there are fewer than two users.
    SettingError
        If the level is not between 0 and 1.

    Examples
    --------
    >>> import hubbub as hb
    >>> ages = hb.Integers(18, 99)
    >>> noisy = hb.Staircase(ages, epsilon=2.0)
    >>> sent = noisy.privatize([20, 35, 50, 80] * 2_500, rng=1)
    >>> answer = hb.mean(hb.Reports.from_outputs(noisy, sent))
    >>> round(answer.low, 1), round(answer.estimate, 1), round(answer.high, 1)
    (45.1, 46.2, 47.4)
    """
    check_reports(reports, "mean")
    level = validation.level(level, "mean")
    line = _line(reports.domain)
    if reports.users < 2:
        raise EstimateError(
            "too few users for an interval",
            where="mean(reports)",
            got=plural(reports.users, "user"),
            expected="two users or more, whose scores say how much scores differ",
            remedy="collect more reports",
        )
    average = _weighted_sample(reports) if reports.survey is not None else _sample(reports)
    notes = []
    if average.groups > 1:
        notes.append(f"Weighted over {average.groups} ways of reporting, which are taken to have equal values.")
    if average.variance > 0.0:
        error = math.sqrt(average.variance)
        reach = _t_quantile(level, average.freedom) * error
        ends = average.estimate - reach, average.estimate + reach
        if average.freedom < FEW_USERS - 1:
            notes.append("So few users that the level is only approximate.")
    else:
        error, ends = math.nan, line
        notes.append("All scores are equal, which says nothing about how much they differ.")
    low, high = (min(max(end, line[0]), line[1]) for end in ends)
    return Mean(
        average.estimate,
        min(low, average.estimate),
        max(high, average.estimate),
        level,
        error,
        reports.users,
        " ".join(notes),
    )


class _Average(NamedTuple):
    """An average of scores, its variance, the degrees of freedom of that, and over how many groups of users it is."""

    estimate: float
    variance: float
    freedom: float
    groups: int


class _Patterns(NamedTuple):
    """The scores of a block's patterns, and what each was sent by."""

    scores: Floats
    sent: list[Sent]
    sent_of: Positions  # the place of each pattern's entry in `sent`


class _Group(NamedTuple):
    """Users who sent alike: how many they are, and the mean and the variance of their scores."""

    users: float
    mean: float
    variance: float


def _line(domain: Domain) -> tuple[float, float]:
    """Return the first and the last place; refuse values that have none."""
    places = domain.places
    if places is None:
        product = domain.product is not None
        raise EstimateError(
            "these values have no mean",
            where="mean(reports)",
            got=domain.describe(),
            expected="a domain on a line: Integers or Bins",
            remedy="name a numeric attribute: hubbub.moments(reports, of=...)"
            if product
            else "ask for shares: hubbub.estimate(reports)",
        )
    return float(places[0]), float(places[-1])


def _t_quantile(level: float, freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1.0 + level) / 2.0))


# -- scores ------------------------------------------------------------------------------------------------


def _scores(mechanism: Mechanism, codes: Positions) -> Floats:
    score = mechanism.mean_score()
    if score is None:
        raise EstimateError(
            "no score of the outputs has the value as its expectation",
            where="mean(reports)",
            got=type(mechanism).__name__,
            expected="a mechanism whose outputs tell the means of all distributions apart, and are not too many",
            remedy="use hubbub.moments(reports), whose interval says what the reports leave open",
        )
    return np.asarray(score(codes), dtype=np.float64)


def _patterns(block: Block) -> _Patterns:
    """Return the score of each pattern of a block: the average over its outputs."""
    if isinstance(block, Singles):
        scores = _scores(block.mechanism, block.codes)
        return _Patterns(scores, [frozenset({(block.mechanism, 1)})], np.zeros(scores.size, dtype=np.int64))
    assert isinstance(block, Joint)  # noqa: S101  # sums of bits have no patterns
    scores = np.concatenate([_scores(mechanism, codes) for mechanism, codes in block.sources])
    owner = np.repeat(np.arange(len(block.sources)), [len(codes) for _, codes in block.sources])
    of_source = sparse.csr_array((np.ones(owner.size), (np.arange(owner.size), owner)))
    numbers = np.asarray((block.repeats @ of_source).todense()).astype(np.int64)
    distinct, sent_of = np.unique(numbers, axis=0, return_inverse=True)
    sent = [
        frozenset((mechanism, own) for (mechanism, _), own in zip(block.sources, row, strict=True) if own)
        for row in distinct.tolist()
    ]
    return _Patterns(np.asarray(block.repeats @ scores) / numbers.sum(axis=1), sent, sent_of.ravel())


def _all_patterns(blocks: tuple[Block, ...]) -> tuple[Floats, Positions]:
    """Return the scores of all patterns, and a number for what each was sent by."""
    parts = [_patterns(block) for block in blocks]
    number = {sent: place for place, sent in enumerate(dict.fromkeys(each for part in parts for each in part.sent))}
    places = [np.array([number[sent] for sent in part.sent])[part.sent_of] for part in parts]
    return np.concatenate([part.scores for part in parts]), np.concatenate(places)


def _joined(ways: Positions, weights: Floats) -> Positions:
    """Return the group of each pattern: those who sent alike, and all small groups together."""
    users = np.bincount(ways, weights)
    small = (users > 0) & (users < MIN_GROUP_USERS)
    large = np.flatnonzero(users >= MIN_GROUP_USERS)
    group = np.arange(users.size)
    if small.any():
        few = users[small].sum() < MIN_GROUP_USERS and large.size > 0
        group[small] = large[np.argmin(users[large])] if few else int(np.flatnonzero(small)[0])
    return np.unique(group[ways], return_inverse=True)[1].ravel()


# -- averages ----------------------------------------------------------------------------------------------


def _sample(reports: Reports) -> _Average:
    """Return the average over users who all count the same."""
    groups = [_bit_group(block) for block in reports.blocks if isinstance(block, BitSums)]
    blocks = tuple(block for block in reports.blocks if not isinstance(block, BitSums))
    if blocks:
        scores, ways = _all_patterns(blocks)
        weights = np.concatenate([block.weights for block in blocks])
        group = _joined(ways, weights)
        own = list(_groups(scores, weights, group))
        if len(own) > 1 and not all(each.variance > 0.0 for each in own):
            own = list(_groups(scores, weights, np.zeros_like(group)))
        groups += own
    if len(groups) == 1:
        (only,) = groups
        return _Average(only.mean, only.variance / only.users, only.users - 1.0, 1)
    groups = [each for each in groups if each.variance > 0.0] or groups[:1]
    shares = np.array([each.users / each.variance for each in groups])
    total = float(shares.sum())
    means, users = np.array([each.mean for each in groups]), np.array([each.users for each in groups])
    shares /= total
    return _Average(float(shares @ means), 1.0 / total, float(1.0 / (shares**2 @ (1.0 / (users - 1.0)))), len(groups))


def _groups(scores: Floats, weights: Floats, group: Positions) -> Iterator[_Group]:
    """Yield the groups of users who all count the same."""
    for place in range(int(group.max()) + 1):
        own, counts = scores[group == place], weights[group == place]
        users = float(counts.sum())
        centre = float(own[0]) + float(counts @ (own - own[0])) / users  # equal scores have a variance of exactly 0
        yield _Group(users, centre, float(counts @ (own - centre) ** 2) / max(users - 1.0, 1.0))


def _bit_group(block: BitSums) -> _Group:
    """Return the mean and the variance of users' scores from sums of bits, which do not say how single users differ.

    With d = (x - c) / (p - q) over the values x, a score is c + sum d (bit - q). Given the value, its bits are
    independent: its variance is the sum of d^2 q (1 - q), with p (1 - p) in place of q (1 - q) for the value's own bit.
    What this and the variance of values need of the distribution is the mean of (x - c)^2, which the sums tell, too.
    """
    places, (p, q) = block.mechanism.domain.places, block.mechanism.support
    assert places is not None  # noqa: S101  # the domain is a line
    away = places - places.mean()
    shares = (block.ones / block.senders - q) / (p - q)
    mean, square = float(away @ shares), float(away**2 @ shares)
    square = min(max(square, mean**2), float((away**2).max()))
    noise = float(away @ away) * q * (1 - q) + square * (p * (1 - p) - q * (1 - q))
    return _Group(float(block.senders), float(places.mean()) + mean, noise / (p - q) ** 2 + max(0.0, square - mean**2))


def _weighted_sample(reports: Reports) -> _Average:
    """Return the average over a sample with survey weights, with the variance of its linearization."""
    survey = reports.survey
    assert survey is not None  # noqa: S101  # asked before
    scores, ways = _all_patterns(reports.blocks)
    weights = reports.weights
    group = _joined(ways, weights)
    own = list(_groups(scores, weights, group))
    if not all(each.variance > 0.0 for each in own):
        group, own = np.zeros_like(group), list(_groups(scores, weights, np.zeros_like(group)))
    precision = np.array([1.0 / each.variance if each.variance > 0.0 else 1.0 for each in own])[group]
    total = float(weights @ precision)
    estimate = float((weights * precision) @ scores) / total
    influence = (precision * (scores - estimate))[None, :]
    variance = float(survey.score_covariance(influence)[0, 0]) * survey.effective_users / total**2
    return _Average(estimate, variance, max(1.0, survey.degrees_of_freedom), len(own))
