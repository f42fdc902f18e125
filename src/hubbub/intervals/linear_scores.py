"""Scores: what one output says of all shares, with a mean that is linear in them, whatever they are.

An output z of a mechanism has a score s(z), a vector over values whose mean is H theta for every theta, with a known
matrix H, the mechanism's information. Scores are made for a reference theta0, at which they are the best there
are: any other theta0 costs width, not truth.

* `ListedScores`, of outputs that can be listed: s(z) = g_z / f_z with f = theta0 G, and H = sum_z g_z g_z' / f_z.
* `SetScores`, of outputs that stand for sets of values (unary, hashed, subsets): u_x = ([x in the set] - q) / (p - q)
  has mean theta, and a covariance C that is known. Since shares sum to 1, the best linear score is
  s = C^-1 (u - theta0) + (1 - a' (u - theta0)) 1 with a = C^-1 theta0, and
  H = C^-1 - a 1' - 1 a' + (1 + theta0' a) 1 1'.

In both, the covariance of s at theta0 is H - 1 1', and theta0' s = 1 for every output.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.goodness_of_fit.known_laws import totals
from hubbub.goodness_of_fit.output_enumeration import OutputEnumeration, listing
from hubbub.mechanisms import LocalHashing, Mechanism, SubsetSelection
from hubbub.mechanisms.unary import UnaryEncoding

TINY = 1e-300
FIXED = 1e-8  # the variance of a sum, relative to that of its parts, below which it is fixed
PAIRED = (
    UnaryEncoding | LocalHashing | SubsetSelection
)  # mechanisms for whose sets the chance of two values at once is known


class Scores(ABC):
    """The scores of one mechanism's outputs."""

    information: Floats  # H, values by values

    @abstractmethod
    def of(self, codes: Codes) -> Floats:
        """Return the score of each output, values by outputs."""

    @abstractmethod
    def total(self, codes: Codes, counts: Floats) -> Floats:
        """Return the sum of the scores of outputs of so many users each."""

    @abstractmethod
    def scatter(self, codes: Codes, counts: Floats, centre: Floats) -> Floats:
        """Return the sum over users of (s - H centre)(s - H centre)', or what is to be expected of it."""


class ListedScores(Scores):
    """Scores of outputs that can be listed."""

    def __init__(self, every: OutputEnumeration, reference: Floats) -> None:
        fitted = reference @ every.chances
        self._columns = every.chances / np.maximum(fitted, TINY)
        self._place = every.place
        self.information = self._columns @ every.chances.T

    def of(self, codes: Codes) -> Floats:
        """Look the columns up."""
        return np.asarray(self._columns[:, self._place(codes)])

    def total(self, codes: Codes, counts: Floats) -> Floats:
        """Add the columns up."""
        return np.asarray(self._columns @ self._counted(codes, counts))

    def scatter(self, codes: Codes, counts: Floats, centre: Floats) -> Floats:
        """Return the users' own."""
        apart = self._columns - (self.information @ centre)[:, None]
        return np.asarray((apart * self._counted(codes, counts)) @ apart.T)

    def _counted(self, codes: Codes, counts: Floats) -> Floats:
        return totals(self._place(codes), counts, self._columns.shape[1])


class SetScores(Scores):
    """Scores of outputs that stand for sets of values."""

    def __init__(self, mechanism: PAIRED, reference: Floats, among: Positions | None) -> None:
        self._mechanism = mechanism
        self._kept = np.arange(len(mechanism.domain)) if among is None else among
        self._spread = covariance_of_sets(mechanism, reference)
        if float(self._spread.sum()) <= FIXED * float(np.trace(self._spread)):
            # u sums to 1 in every report, or nearly: its covariance has no inverse, and its second moments say all.
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
        """Return what each set says."""
        sets = np.unpackbits(self._mechanism.sets(codes), axis=1, count=len(self._mechanism.domain))
        true, other = self._mechanism.support
        return np.asarray(self._slope @ ((sets[:, self._kept].T - other) / (true - other)) + self._offset[:, None])

    def total(self, codes: Codes, counts: Floats) -> Floats:
        """Count how many sets hold each value."""
        held = self._mechanism.support_counts(codes, counts)
        return self.total_of_held(held, float(counts.sum()))

    def total_of_held(self, held: Floats, users: float) -> Floats:
        """Return the sum of the scores, from how many of the users' sets hold each value."""
        true, other = self._mechanism.support
        return np.asarray(self._slope @ ((held[self._kept] - users * other) / (true - other)) + users * self._offset)

    def scatter(self, codes: Codes, counts: Floats, centre: Floats) -> Floats:
        """Return what is to be expected: pairs of values in many reports are too many to count."""
        held = self._mechanism.support_counts(codes, counts)
        del centre
        return self.scatter_of_held(held, float(counts.sum()))

    def scatter_of_held(self, held: Floats, users: float) -> Floats:
        """Return the reference's covariance, made larger for values that vary more than it says."""
        true, other = self._mechanism.support
        share = (held[self._kept] + 2.0) / (users + 4.0)
        own = share * (1.0 - share) / (true - other) ** 2
        factor = np.sqrt(np.maximum(1.0, own / np.diag(self._spread)))
        spread = self._spread * np.outer(factor, factor)
        return np.asarray(users * (self._slope @ spread @ self._slope.T))


def scores_of(mechanism: Mechanism, reference: Floats, users: float, among: Positions | None) -> Scores | None:
    """Return the scores of a mechanism's outputs, over the values at positions `among`; None where there are none."""
    every = listing(mechanism, users, among)
    if every is not None:
        return ListedScores(every, reference)
    return SetScores(mechanism, reference, among) if isinstance(mechanism, PAIRED) else None


def covariance_of_sets(mechanism: PAIRED, theta: Floats) -> Floats:
    """Return the covariance of u under theta, from the chances that a set holds one value, or two."""
    true, other = mechanism.support
    size = len(mechanism.domain)
    own, both = true * other, other**2  # two values in the set: one of them is the user's, or neither
    if isinstance(mechanism, SubsetSelection):
        chosen = int(mechanism.size or 1)
        own = true * (chosen - 1) / (size - 1)
        both = (true * (chosen - 1) * (chosen - 2) + (1 - true) * chosen * (chosen - 1)) / max(
            1, (size - 1) * (size - 2)
        )
    held = other + (true - other) * theta
    pairs = both + (own - both) * np.add.outer(theta, theta)
    np.fill_diagonal(pairs, held)
    return np.asarray((pairs - np.outer(held, held)) / (true - other) ** 2)
