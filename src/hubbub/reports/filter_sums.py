"""Sums of the bits of Bloom filters, by cohort, where only these were kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hubbub.channels import Channel, DenseChannel
from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.core.errors import ReportsError
from hubbub.mechanisms import BloomRappor
from hubbub.reports.blocks import Block, Counts, OfOneMechanism
from hubbub.reports.validation import check_counts, no_reports


@dataclass(frozen=True, eq=False)
class FilterSums(OfOneMechanism):
    """How many users of each cohort sent a one in each bit.

    The likelihood treats sums as if every bit came from a different user, as `BitSums` does.
    """

    mechanism: BloomRappor
    ones: Counts  # cohorts by bits
    senders: Counts  # of each cohort

    @property
    def users(self) -> int:
        """How many users sent these bits."""
        return int(self.senders.sum())

    @property
    def weights(self) -> Floats:
        """First the ones of each bit, cohort after cohort, then the zeros."""
        zeros = self.senders[:, None] - self.ones
        return np.concatenate([self.ones.ravel(), zeros.ravel()]).astype(np.float64)

    def channel(self, among: Positions | None) -> Channel:
        """Return P(bit is 1 | value) for all bits of all cohorts, then P(bit is 0 | value)."""
        ones = bit_means(self.mechanism, among)
        matrix = ones.transpose(1, 0, 2).reshape(ones.shape[1], -1)
        return DenseChannel(np.concatenate([matrix, 1.0 - matrix], axis=1), np.zeros(2 * matrix.shape[1]))

    def merge(self, other: FilterSums) -> FilterSums:
        """Add the sums."""
        return FilterSums(self.mechanism, frozen(self.ones + other.ones), frozen(self.senders + other.senders))

    def positions_of(self, other: FilterSums) -> Positions:
        """Return the bits in their order, which is the same."""
        return np.arange(2 * other.ones.size)

    def thinned(self, kept: float) -> FilterSums:
        """Scale the sums: nobody knows which bits were sent together."""
        ones, senders = (np.rint(kept * counts).astype(np.int64) for counts in (self.ones, self.senders))
        return FilterSums(self.mechanism, frozen(np.minimum(ones, senders[:, None])), frozen(senders))

    def pattern_text(self, pattern: int) -> str:
        """Return the cohort and the bit, for messages."""
        cohort, bit = divmod(pattern % self.ones.size, self.ones.shape[1])
        return f"cohort {cohort}, bit {bit}"


def filter_sums(mechanism: BloomRappor, ones: object, users: object, where: str) -> FilterSums:
    """Check sums of bits and numbers of users, cohort by cohort."""
    sums, senders = check_counts(ones, f"{where}(ones=)"), check_counts(users, f"{where}(users=)")
    shape = (mechanism.cohorts, mechanism.bits)
    if sums.shape != shape or senders.shape != shape[:1]:
        raise ReportsError(
            "ones must be a sum for each bit of each cohort, and users a number for each cohort",
            where=where,
            got=f"shapes {sums.shape} and {senders.shape}",
            expected=f"shapes {shape} and {shape[:1]}",
            remedy="pass a row of sums for each cohort, 0 where nobody sent anything",
        )
    if not senders.any():
        raise no_reports(f"{where}(users=)")
    if (sums > senders[:, None]).any():
        cohort, bit = (int(place) for place in np.argwhere(sums > senders[:, None])[0])
        raise ReportsError(
            "more ones than users",
            where=f"{where}, cohort {cohort}, bit {bit}",
            got=f"{sums[cohort, bit]} ones of {senders[cohort]} users",
            expected="at most one for each user",
            remedy="check both numbers: users is how many people of the cohort the sums are over",
        )
    return FilterSums(mechanism, frozen(sums), frozen(senders))


def refuse_filter_sums(blocks: Iterable[Block], where: str) -> None:
    """Refuse sums of the bits of filters, where these do not tell enough."""
    users = [block.users for block in blocks if isinstance(block, FilterSums)]
    if users:
        raise ReportsError(
            "only sums of the bits of filters were kept",
            where=where,
            got=f"sums over {sum(users):,} users",
            expected="the reports of each user",
            remedy="use decode_rappor, estimate(method='mle') or fit_test, or read the reports instead of their sums",
        )


def bit_means(mechanism: BloomRappor, among: Positions | None) -> Floats:
    """Return how likely each bit of a report is 1, given the cohort: cohorts by values by bits."""
    zero, one = (float(chance) for chance in mechanism.chances)
    return np.asarray(zero + (one - zero) * mechanism.mean_filters(among))
