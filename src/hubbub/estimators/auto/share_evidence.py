"""What the reports say about the share of each value by itself, whatever the others have.

If value x has the share t and all others have equal shares, pattern i has the likelihood

    m_i (1 + s (r_i - 1)),     s = (t k - 1) / (k - 1),     r_i = g_xi / m_i,

where k is the number of values and m_i the mean of g_xi over them. Mechanisms for categories treat all values alike:
the distribution of r then depends on the share of x alone, not on how the others divide the rest, and this is the exact
likelihood of t given r. For randomized response it is the binomial likelihood of the number of users who sent x.

Mechanisms that treat values in groups alike (`Channel.value_groups`) tell the totals of groups with another error than
the shares within a group. The totals T are then taken as the reports have them, and all values of a group have equal
shares but for x. With n values in its group, f_i the likelihood of pattern i if x has an equal share, too, and m_i the
mean of g_xi over the group, the pattern has the likelihood

    f_i (1 + s (r_i - 1)),     s = (t - T / n) n / (n - 1),     r_i = 1 + (g_xi - m_i) / f_i,

which is the same as above where all values are one group. An output that tells groups apart alone says nothing of x.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.channels import Channel, DiagonalPlusConstantChannel
from hubbub.core.arrays import Floats, Positions
from hubbub.likelihood import MIN_PLAIN_PROBABILITY

MAX_DISTINCT_RATIOS = 512  # of each value; where there are more, those that are almost equal are merged
MAX_ENTRIES = 1_000_000_000  # of a channel, up to which its matrix is gone through once
ENTRIES_AT_ONCE = 4_000_000
TOTAL_UPDATES, TOTAL_TOL = 500, 1e-7  # of EM for the totals of groups
BISECTIONS = 45  # halve the range of s until rounding


@dataclass(frozen=True)
class RatioBins:
    """Bins of ratios, a constant factor wide."""

    least: float
    width: float  # the logarithm of the factor
    lift: float = 0.0  # added to ratios, where some of them are negative

    @classmethod
    def of(cls, ratios: Floats, lift: float = 0.0) -> RatioBins:
        """Return bins from the smallest positive to the largest of the ratios."""
        lifted = ratios + lift
        least = float(lifted.min(where=lifted > 0, initial=np.inf))
        width = float(np.log(lifted.max() / least)) / (MAX_DISTINCT_RATIOS - 1)
        return cls(least, max(width, MIN_PLAIN_PROBABILITY), lift)

    def merge(self, ratios: Floats, users: Floats) -> tuple[Floats, Floats]:
        """Return the mean ratio and the number of users of each bin; an empty bin has the ratio 1."""
        lifted = np.maximum(ratios + self.lift, self.least)
        places = (np.log(lifted / self.least) / self.width).clip(0, MAX_DISTINCT_RATIOS - 1)
        bins = places.astype(np.int64)
        merged = np.bincount(bins, users, MAX_DISTINCT_RATIOS).astype(np.float64)
        sums = np.bincount(bins, users * ratios, MAX_DISTINCT_RATIOS)
        return np.divide(sums, merged, out=np.ones(merged.size), where=merged > 0), merged


@dataclass(frozen=True)
class GroupTotals:
    """Groups of values that a mechanism treats alike, and the total share of each."""

    group: Positions  # of each value
    totals: Floats

    @classmethod
    def of(cls, channel: Channel, weights: Floats, group: Positions) -> GroupTotals:
        """Return the totals that explain the reports best if values of a group have equal shares, by EM."""
        sizes = np.bincount(group).astype(np.float64)
        totals = sizes / sizes.sum()
        for _ in range(TOTAL_UPDATES):
            fitted = np.maximum(channel.forward((totals / sizes)[group]), MIN_PLAIN_PROBABILITY)
            gradient = channel.backward(weights / fitted) / weights.sum()
            before, totals = totals, totals * (np.bincount(group, weights=gradient) / sizes)
            totals /= totals.sum()
            if np.abs(totals - before).max() <= TOTAL_TOL:
                break
        return cls(group, totals)

    @cached_property
    def sizes(self) -> Floats:
        """How many values each group has."""
        return np.bincount(self.group).astype(np.float64)

    @property
    def average_shares(self) -> Floats:
        """The mean share of each group."""
        return self.totals / self.sizes


@dataclass(frozen=True)
class ShareEvidence:
    """Ratios r with the number of users for each, one row for each group of values with the same evidence."""

    values: int
    ratios: Floats  # groups by ratios
    counts: Floats  # groups by ratios, or one row for all groups
    group: Positions  # of each value
    alike: GroupTotals | None = None  # which values the mechanism treats alike; None: all

    @classmethod
    def of(cls, channel: Channel, weights: Floats) -> ShareEvidence | None:
        """Return the evidence on each value; None where the channel is too large to be gone through."""
        if isinstance(channel, DiagonalPlusConstantChannel):
            return cls._of_hits(channel, weights)
        if channel.entries > MAX_ENTRIES:
            return None
        sent = np.flatnonzero(weights > 0)
        means = np.maximum(channel.forward(np.full(channel.values, 1.0 / channel.values))[sent], MIN_PLAIN_PROBABILITY)
        group = np.arange(channel.values)
        step = max(1, ENTRIES_AT_ONCE // channel.patterns)
        parts: Iterator[Floats] = (
            channel.rows(group[first : first + step])[:, sent] / means for first in range(0, group.size, step)
        )
        alike, lift = None, 0.0
        if channel.value_groups is not None:
            alike = GroupTotals.of(channel, weights, channel.value_groups)
            parts, lift = cls._within_groups(channel, sent, alike, step)
        if sent.size <= MAX_DISTINCT_RATIOS:
            return cls(channel.values, np.concatenate(list(parts)), weights[None, sent], group, alike)
        merged: list[tuple[Floats, Floats]] = []
        bins: RatioBins | None = None
        for part in parts:
            # mechanisms that treat all values alike have the same ratios for all, so that the first rows set the bins
            bins = bins or RatioBins.of(part, lift)
            merged += [bins.merge(ratios, weights[sent]) for ratios in part]
        ratios, users = (np.stack(rows) for rows in zip(*merged, strict=True))
        used = users.any(axis=0)  # sets have two ratios or four, whatever their number
        return cls(channel.values, ratios[:, used], users[:, used], group, alike)

    @staticmethod
    def _within_groups(
        channel: Channel, sent: Positions, alike: GroupTotals, step: int
    ) -> tuple[Iterator[Floats], float]:
        """Return the ratios of values, some at a time, given the totals of groups; and what makes all positive."""
        fitted = np.maximum(channel.forward(alike.average_shares[alike.group])[sent], MIN_PLAIN_PROBABILITY)
        each = np.eye(alike.sizes.size)[:, alike.group] / alike.sizes[:, None]
        means = np.stack([channel.forward(row)[sent] for row in each]) / fitted

        def parts() -> Iterator[Floats]:
            for first in range(0, channel.values, step):
                some = np.arange(first, min(first + step, channel.values))
                yield 1.0 + channel.rows(some)[:, sent] / fitted - means[alike.group[some]]

        return parts(), float(means.max())

    @classmethod
    def _of_hits(cls, channel: DiagonalPlusConstantChannel, weights: Floats) -> ShareEvidence:
        """Return the evidence of a channel with two likelihoods: all that counts is how many users hit a value."""
        hits, group = np.unique(channel.scattered(weights), return_inverse=True)
        inside = float(weights.sum() if channel.inside is None else weights[channel.inside].sum())
        mean = channel.elsewhere + channel.excess / channel.values
        ratios = np.tile([channel.at / mean, channel.elsewhere / mean], (hits.size, 1))
        return cls(channel.values, ratios, np.stack([hits, inside - hits], axis=1), group)

    @cached_property
    def sizes(self) -> Floats:
        """How many values each group has."""
        return np.bincount(self.group, minlength=len(self.ratios)).astype(np.float64)

    def log_likelihood(self, shares: Floats) -> Floats:
        """Return the log-likelihood of each share for each group (groups by shares)."""
        excess = self.ratios - 1.0
        centres, parts = self._centres
        columns = [
            np.einsum("gr,gr->g", self._counts, np.log(self._mixed(excess, (share - centres) * parts)))
            for share in shares
        ]
        return np.stack(columns, axis=1)

    def information(self, shares: Floats) -> Floats:
        """Return the expected information on a share, for each of the shares."""
        ratios, users = self._pooled
        part = self.values / (self.values - 1) if self.alike is None else float(self._centres[1].mean())
        slopes = users * (ratios - 1.0) ** 2 / self._mixed(ratios - 1.0, self._s(shares)[:, None])
        return np.asarray(part**2 * slopes.sum(axis=1))

    @cached_property
    def likeliest(self) -> Floats:
        """The likeliest share of each group."""
        excess = self.ratios - 1.0
        centres, parts = (own[:, 0] for own in self._centres)
        low, high = -centres * parts, (1.0 - centres) * parts
        for _ in range(BISECTIONS):  # the log-likelihood is concave in s
            middle = 0.5 * (low + high)
            rising = np.einsum("gr,gr->g", self._counts, excess / self._mixed(excess, middle[:, None])) > 0.0
            low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        return np.clip(centres + 0.5 * (low + high) / parts, 0.0, 1.0)

    @cached_property
    def _centres(self) -> tuple[Floats, Floats]:
        """The share at which s is 0, and how much s is for each unit of share, for each row of evidence."""
        if self.alike is None:
            centres, sizes = np.full(1, 1.0 / self.values), np.full(1, float(self.values))
        else:
            centres, sizes = self.alike.average_shares[self.alike.group], self.alike.sizes[self.alike.group]
        shape = (len(self.ratios), 1)
        return np.broadcast_to(centres[:, None], shape), np.broadcast_to((sizes / (sizes - 1.0))[:, None], shape)

    @cached_property
    def _pooled(self) -> tuple[Floats, Floats]:
        """Ratios, and how many users a value with an average share would have at each: shares average 1 / k."""
        ratios = self.ratios.ravel()
        users = (self._counts * (self.sizes / self.values)[:, None]).ravel()
        if ratios.size > MAX_DISTINCT_RATIOS:
            lift = max(0.0, 1.0 - float(ratios.min())) if self.alike is not None else 0.0
            return RatioBins.of(ratios, lift).merge(ratios, users)
        return ratios, users

    @cached_property
    def _counts(self) -> Floats:
        return np.broadcast_to(self.counts, self.ratios.shape)

    def _s(self, shares: Floats) -> Floats:
        return np.asarray((shares * self.values - 1.0) / (self.values - 1))

    @staticmethod
    def _mixed(excess: Floats, s: Floats | float) -> Floats:
        return np.maximum(1.0 + s * excess, MIN_PLAIN_PROBABILITY)
