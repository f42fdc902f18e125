"""Intervals that hold against fakes where every output stands for a set of values (k-RR, unary, hashed, subsets).

An output whose set holds the true value with probability p, and any other with q, has u_x = ([x in the set] - q) /
(p - q), whose mean is theta. For a statistic c theta and any number t, the score a = (c - t 1) u + t has mean c theta,
because shares sum to 1. Let A be the mean score of all users, e its standard error, and M- and M+ the least and the
largest score that an output can have. If a share s of the users is fake, A has mean (1 - s) c theta + s m with m
between M- and M+, so that

    (A - z e - s M+) / (1 - s)   to   (A + z e - s M-) / (1 - s)

holds c theta whatever fakes sent, even if they know what everybody else sent. For the share of one value and t = 0,
M+ = (1 - q)/(p - q) and M- = -q/(p - q). For a set of unary or hashed reports M+ - M- grows with the size of the set,
or of its complement if that is smaller: t is chosen to make the interval short.

A user counts once, with the weighted mean of all scores, weighted by their precision. Users, too, count by precision,
up to a cap: with k the largest weight of a user relative to the mean weight, k s takes the place of s, because fakes
would be among those who count most. Tilt t and cap depend on nothing but who sent how many outputs of which mechanism,
and on predicted variances.

The variance is predicted from a guess of theta. It depends on theta only weakly: most of it is the mechanism's noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.goodness_of_fit.ancillary_statistics import PairProbabilities, SetMechanism, pair_probabilities
from hubbub.mechanisms import LocalHashing, RandomizedResponse, SubsetSelection
from hubbub.mechanisms.frequency_oracle import FrequencyOracle
from hubbub.mechanisms.unary_encoding import UnaryEncoding
from hubbub.reports import BitSums, Block, Joint, Reports, Singles

TILTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # t, from the least weight of the statistic to the largest
CAPS = (1.0, 2.0, 4.0, 8.0, math.inf)  # of a user's weight, relative to the least
MIN_VARIANCE = float(np.finfo(np.float64).tiny)  # of a score: that of a constant is 0


class HonestBounds(NamedTuple):
    """What the honest users' statistic may be."""

    low: float
    high: float


class _Tally(NamedTuple):
    """What the users of one form sent of one mechanism."""

    mechanism: FrequencyOracle
    outputs: float  # of each user
    supports: Floats  # how many of all outputs hold each value of the mechanism's domain


class _Form(NamedTuple):
    """Users who sent equally many outputs of each mechanism, which is public."""

    users: float
    tallies: tuple[_Tally, ...]


class _Score(NamedTuple):
    """The score of a mechanism's outputs: `slope` for each value in the set, plus a constant."""

    slope: Floats  # over the mechanism's domain
    constant: float
    low: float  # M-
    high: float  # M+
    variance: float


class _FormScore(NamedTuple):
    """The scores of the users of one form."""

    users: float
    weight: float  # of each user
    low: float
    high: float
    variance: float
    total: float  # over all users


def has_scores(reports: Reports) -> bool:
    """Whether every output stands for a set of values, of which it is known how often it holds two."""
    return all(isinstance(mechanism, SetMechanism | RandomizedResponse) for mechanism in reports.mechanisms)


@dataclass(frozen=True)
class RobustScores:
    """What users sent, added up by form: all that the scores of any statistic need."""

    forms: tuple[_Form, ...]
    theta: Floats  # a guess, for variances
    among: Positions | None

    @classmethod
    def of(cls, reports: Reports, theta: Floats) -> RobustScores:
        """Add up what users sent."""
        return cls(tuple(form for block in reports.blocks for form in _forms(block)), theta, reports.domain.among)

    @property
    def grows_with_sets(self) -> bool:
        """Whether one output can stand for several values, so that one fake moves a set by more than a value."""
        several = UnaryEncoding | LocalHashing | SubsetSelection
        return any(isinstance(tally.mechanism, several) for form in self.forms for tally in form.tallies)

    def bounds(self, weights: Floats, level: float, share: float) -> HonestBounds:
        """Return the bounds of `weights` @ theta, theta the distribution of the honest users."""
        from scipy.special import ndtri

        reach, least, span = float(ndtri(0.5 + level / 2)), float(weights.min()), float(np.ptp(weights))
        candidates = [
            _weighted(scores, cap)
            for scores in (self._scores(weights, least + part * span) for part in TILTS)
            for cap in CAPS
        ]
        low, high = _bounds(min(candidates, key=lambda scores: _half_width(scores, reach, share)), reach, share)
        return HonestBounds(max(low, least), min(high, least + span))

    def _scores(self, weights: Floats, tilt: float) -> list[_FormScore]:
        mechanisms = {tally.mechanism for form in self.forms for tally in form.tallies}
        own = {mechanism: self._score(mechanism, weights, tilt) for mechanism in mechanisms}
        between = max(0.0, float(weights**2 @ self.theta) - float(weights @ self.theta) ** 2)
        return [_score_of_form(form, own, between) for form in self.forms]

    def _score(self, mechanism: FrequencyOracle, weights: Floats, tilt: float) -> _Score:
        true, other = mechanism.support
        slope, theta = np.zeros(len(mechanism.domain)), np.zeros(len(mechanism.domain))
        kept = slice(None) if self.among is None else self.among
        slope[kept], theta[kept] = (weights - tilt) / (true - other), self.theta
        constant = tilt - other * float(slope.sum())
        low, high = constant - _most(mechanism, -slope), constant + _most(mechanism, slope)
        return _Score(slope, constant, low, high, _variance(mechanism, slope, theta))


def _most(mechanism: FrequencyOracle, slope: Floats) -> float:
    """Return the largest sum of slopes over a set that an output can stand for."""
    if isinstance(
        mechanism, UnaryEncoding | LocalHashing
    ):  # any set: of hashes there are so many that no more is known
        return float(np.maximum(slope, 0.0).sum())
    chosen = int(mechanism.size or 1) if isinstance(mechanism, SubsetSelection) else 1
    return float(np.sort(slope)[-chosen:].sum())


def _variance(mechanism: FrequencyOracle, slope: Floats, theta: Floats) -> float:
    """Return the variance of a score, from the probabilities that a set holds one value, or two."""
    true, other = mechanism.support
    pair = PairProbabilities(0.0, 0.0)  # k-RR: no set holds two
    if isinstance(mechanism, UnaryEncoding | LocalHashing | SubsetSelection):
        pair = pair_probabilities(mechanism)
    held, squares, total = other + (true - other) * theta, slope**2, float(slope.sum())
    both = pair.neither * (total**2 - float(squares.sum()))
    both += 2.0 * (pair.own - pair.neither) * (total * float(slope @ theta) - float(squares @ theta))
    return max(MIN_VARIANCE, float(squares @ held) + both - float(slope @ held) ** 2)


def _score_of_form(form: _Form, scores: dict[FrequencyOracle, _Score], between: float) -> _FormScore:
    """Return the scores of a form; `between` is the variance of the statistic's weights over users' values.

    Outputs of one user are independent given the value; those of a mechanism that remembers may all depend on one draw.
    """
    weight = sum(tally.outputs / scores[tally.mechanism].variance for tally in form.tallies)
    low = high = total = 0.0
    variance = between
    for tally in form.tallies:
        score = scores[tally.mechanism]
        part = 1.0 / score.variance / weight  # of one output
        low, high = low + tally.outputs * part * score.low, high + tally.outputs * part * score.high
        repeats = tally.outputs**2 if tally.mechanism.remembers else tally.outputs
        variance += repeats * part**2 * max(0.0, score.variance - between)
        total += part * (float(tally.supports @ score.slope) + form.users * tally.outputs * score.constant)
    return _FormScore(form.users, weight, low, high, variance, total)


def _weighted(scores: list[_FormScore], cap: float) -> list[_FormScore]:
    """Return the scores with weights relative to the mean weight of all users, none beyond `cap` times the least."""
    most = cap * min(score.weight for score in scores)
    capped = [min(score.weight, most) for score in scores]
    mean = sum(weight * score.users for weight, score in zip(capped, scores, strict=True)) / _users(scores)
    return [score._replace(weight=weight / mean) for weight, score in zip(capped, scores, strict=True)]


def _users(scores: list[_FormScore]) -> float:
    return sum(score.users for score in scores)


def _error(scores: list[_FormScore]) -> float:
    """Return the standard error of the weighted mean of all scores."""
    return math.sqrt(sum(score.weight**2 * score.users * score.variance for score in scores)) / _users(scores)


def _half_width(scores: list[_FormScore], reach: float, share: float) -> float:
    """Return about half the width of the interval."""
    return reach * _error(scores) + share / 2 * max(score.weight * (score.high - score.low) for score in scores)


def _bounds(scores: list[_FormScore], reach: float, share: float) -> HonestBounds:
    """Return the bounds if all fakes are of the form that is best for them, whichever that is."""
    mean, error = sum(score.weight * score.total for score in scores) / _users(scores), reach * _error(scores)
    low, high = math.inf, -math.inf
    for score in scores:
        fakes = score.weight * share
        if fakes >= 1.0:
            return HonestBounds(-math.inf, math.inf)
        low = min(low, (mean - error - fakes * score.high) / (1.0 - fakes))
        high = max(high, (mean + error - fakes * score.low) / (1.0 - fakes))
    return HonestBounds(low, high)


def _forms(block: Block) -> list[_Form]:
    if isinstance(block, Joint):
        return _forms_of_joint(block)
    assert isinstance(block, Singles | BitSums)  # noqa: S101  # there are three kinds of blocks
    assert isinstance(block.mechanism, FrequencyOracle)  # noqa: S101  # see has_scores
    if isinstance(block, BitSums):
        supports = block.ones.astype(np.float64)
    else:
        supports = block.mechanism.support_counts(block.codes, block.weights)
    return [_Form(float(block.users), (_Tally(block.mechanism, 1.0, supports),))]


def _forms_of_joint(block: Joint) -> list[_Form]:
    starts = np.cumsum([0, *(len(codes) for _, codes in block.sources)])
    owner = np.repeat(np.arange(len(block.sources)), np.diff(starts))
    of_mechanism = sparse.csr_array((np.ones(owner.size), (np.arange(owner.size), owner)))
    outputs, form_of = np.unique((block.repeats @ of_mechanism).toarray(), axis=0, return_inverse=True)
    forms = []
    for number, sent in enumerate(outputs):
        counts = np.where(form_of.ravel() == number, block.weights, 0.0)
        items = np.asarray(block.repeats.T @ counts)
        tallies = [
            _tally(mechanism, float(sent[place]), codes, items[starts[place] : starts[place + 1]])
            for place, (mechanism, codes) in enumerate(block.sources)
            if sent[place]
        ]
        forms.append(_Form(float(counts.sum()), tuple(tallies)))
    return forms


def _tally(mechanism: object, outputs: float, codes: Codes, counts: Floats) -> _Tally:
    assert isinstance(mechanism, FrequencyOracle)  # noqa: S101  # see has_scores
    return _Tally(mechanism, outputs, mechanism.support_counts(codes, counts))
