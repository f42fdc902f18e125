"""Linear scores: vectors computed from outputs whose mean is linear in the true shares, whatever these are.

An output z of a mechanism has a score s(z), a vector over values whose mean is H theta for every theta, with a known
matrix H, the mechanism's information. Scores are made for a reference theta0, at which they are optimal: another theta0
makes intervals wider, not wrong.

* `ListedScores`, for outputs that can be listed: s(z) = g_z / f_z with f = theta0 G, and H = sum_z g_z g_z' / f_z.
* `SetScores`, for outputs that stand for sets of values (unary, hashed, subsets): u_x = ([x in the set] - q) / (p - q)
  has mean theta and a known covariance C. Since shares sum to 1, the best linear score is
  s = C^-1 (u - theta0) + (1 - a' (u - theta0)) 1 with a = C^-1 theta0, and
  H = C^-1 - a 1' - 1 a' + (1 + theta0' a) 1 1'.

* `BucketScores`, in a module of its own, for sketches and dBitFlip, whose sets are of buckets of values.

In all, the covariance of s at theta0 is H - 1 1', and theta0' s = 1 for every output. All have `information`, H,
and `of`, the scores of outputs (values by outputs). `tally` counts the outputs of many users; from it, `total` is the
sum of their scores, and `scatter` the sum of (s - H centre)(s - H centre)', or its expectation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.goodness_of_fit.ancillary_statistics import SetMechanism, pair_probabilities
from hubbub.goodness_of_fit.count_tables import sum_by_position
from hubbub.intervals.bucket_scores import BucketScores, bucket_scores
from hubbub.mechanisms import Mechanism
from hubbub.outputs.output_enumeration import OutputEnumeration, enumerate_outputs
from hubbub.outputs.sent_outputs import enumerate_sent

SMALLEST_FIT = 1e-300  # keeps what is 0 from being divided by
MAX_FIXED_VARIANCE = 1e-8  # of a sum, relative to the variances of its terms: below, the sum is constant


class ListedScores:
    """Scores of outputs that can be listed."""

    def __init__(self, outputs: OutputEnumeration, reference: Floats) -> None:
        fitted = reference @ outputs.probabilities
        self._columns = outputs.probabilities / np.maximum(fitted, SMALLEST_FIT)
        self._position_of = outputs.position_of
        self.information = self._columns @ outputs.probabilities.T

    def of(self, codes: Codes) -> Floats:
        """Look the columns up."""
        return np.asarray(self._columns[:, self._position_of(codes)])

    def tally(self, codes: Codes, counts: Floats) -> Floats:
        """Return how many users sent each of the listed outputs."""
        return sum_by_position(self._position_of(codes), counts, self._columns.shape[1])

    def total(self, tally: Floats, users: float) -> Floats:  # noqa: ARG002
        """Add the columns up."""
        return np.asarray(self._columns @ tally)

    def scatter(self, tally: Floats, users: float, centre: Floats, *, spare: float = 0.0) -> Floats:  # noqa: ARG002
        """Return the empirical scatter, with `spare` more users for each output."""
        deviations = self._columns - (self.information @ centre)[:, None]
        return np.asarray((deviations * (tally + spare)) @ deviations.T)

    def spare_scatter(self, spare: float, centre: Floats) -> Floats:
        """Return the scatter of the spare users alone."""
        return self.scatter(np.zeros(self._columns.shape[1]), 0.0, centre, spare=spare)


class SetScores:
    """Scores of outputs that stand for sets of values."""

    def __init__(self, mechanism: SetMechanism, reference: Floats, among: Positions | None) -> None:
        self._mechanism = mechanism
        self._kept = np.arange(len(mechanism.domain)) if among is None else among
        self._spread = covariance_of_sets(mechanism, reference)
        if float(self._spread.sum()) <= MAX_FIXED_VARIANCE * float(np.trace(self._spread)):
            # u sums to 1 in every report, or nearly: its covariance has no inverse, and second moments are used.
            second = self._spread + np.outer(reference, reference)
            self._slope = np.asarray(np.linalg.inv(second), dtype=np.float64)
            self._offset = np.zeros(reference.size)
            self.information = self._slope
            return
        inverse = np.asarray(np.linalg.inv(self._spread), dtype=np.float64)
        tilt = inverse @ reference
        self._slope = inverse - tilt[None, :]
        self._offset = 1.0 - self._slope @ reference
        self.information = inverse - tilt[:, None] - tilt[None, :] + (1.0 + float(reference @ tilt))

    def of(self, codes: Codes) -> Floats:
        """Return the score of each set."""
        sets = np.unpackbits(self._mechanism.sets(codes), axis=1, count=len(self._mechanism.domain))
        true, other = self._mechanism.support
        return np.asarray(self._slope @ ((sets[:, self._kept].T - other) / (true - other)) + self._offset[:, None])

    def tally(self, codes: Codes, counts: Floats) -> Floats:
        """Return how many users' sets hold each value; pairs of values are too many to count."""
        return self._mechanism.support_counts(codes, counts)

    def total(self, tally: Floats, users: float) -> Floats:
        """Return the sum, which is linear in how many sets hold each value."""
        true, other = self._mechanism.support
        return np.asarray(self._slope @ ((tally[self._kept] - users * other) / (true - other)) + users * self._offset)

    def scatter(self, tally: Floats, users: float, centre: Floats, *, spare: float = 0.0) -> Floats:
        """Return the covariance at the reference, enlarged for values that vary more than it predicts."""
        true, other = self._mechanism.support
        share = (tally[self._kept] + 2.0) / (users + 4.0)
        own = share * (1.0 - share) / (true - other) ** 2
        factor = np.sqrt(np.maximum(1.0, own / np.diag(self._spread)))
        spread = self._spread * np.outer(factor, factor)
        scatter = np.asarray(users * (self._slope @ spread @ self._slope.T))
        return scatter + self.spare_scatter(spare, centre) if spare else scatter

    def spare_scatter(self, spare: float, centre: Floats) -> Floats:  # noqa: ARG002
        """Return the scatter of `spare` more users who send one value's bit each."""
        true, other = self._mechanism.support
        return np.asarray(spare / (true - other) ** 2 * (self._slope @ self._slope.T))


Scores = ListedScores | SetScores | BucketScores


def scores_of(mechanism: Mechanism, reference: Floats, users: float, among: Positions | None) -> Scores | None:
    """Return the scores of what a mechanism draws, over the values at positions `among`; None where there are none."""
    outputs = enumerate_outputs(mechanism, users, among)
    if outputs is not None:
        return ListedScores(outputs, reference)
    return SetScores(mechanism, reference, among) if isinstance(mechanism, SetMechanism) else None


class SentScores(NamedTuple):
    """The scores of outputs with some set of attributes, and the places of those that were sent with it."""

    scores: Scores
    rows: Positions


def scores_of_sent(
    mechanism: Mechanism, codes: Codes, reference: Floats, users: float, among: Positions | None
) -> list[SentScores] | None:
    """Return the scores of encoded outputs, those of each set of attributes apart; None where there are none."""
    listed = enumerate_sent(mechanism, codes, users, among)
    if listed is not None:
        return [SentScores(ListedScores(part.outputs, reference), part.rows) for part in listed]
    if isinstance(mechanism, SetMechanism):
        return [SentScores(SetScores(mechanism, reference, among), np.arange(len(codes)))]
    of_buckets = bucket_scores(mechanism, reference, among)
    return None if of_buckets is None else [SentScores(of_buckets, np.arange(len(codes)))]


def covariance_of_sets(mechanism: SetMechanism, theta: Floats) -> Floats:
    """Return the covariance of u under theta, from the probabilities that a set holds one value, or two."""
    true, other = mechanism.support
    pair = pair_probabilities(mechanism)
    held = other + (true - other) * theta
    pairs = pair.neither + (pair.own - pair.neither) * np.add.outer(theta, theta)
    np.fill_diagonal(pairs, held)
    return np.asarray((pairs - np.outer(held, held)) / (true - other) ** 2)
