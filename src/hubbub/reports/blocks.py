"""The parts that reports are made of.

Each block holds distinct patterns of one form, with how many users sent each, and knows its channel:

* `Singles`: users who sent one output of one mechanism;
* `Joint`: users who sent several outputs, of one or several mechanisms;
* `BitSums`: sums of bits over users, where the single reports were not kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hubbub.channels import Channel, ConcatenatedChannel, SpikeChannel, product_channel
from hubbub.core.arrays import Codes, Floats, Positions, as_integers, frozen
from hubbub.core.errors import ImpossibleReportError, ReportsError
from hubbub.core.portable import Portable
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import index_codes, unique_codes
from hubbub.mechanisms.unary import UnaryEncoding
from hubbub.reports.pattern_rows import distinct_rows, log_items
from hubbub.reports.privacy_spent import Spent, spending, spent_once

Counts = NDArray[np.int64]

MOST_USERS = 2**53  # the largest count that floats hold exactly


class Block(Portable, ABC):
    """Some distinct patterns and the number of users behind each."""

    @property
    @abstractmethod
    def users(self) -> int:
        """How many users sent these reports."""

    @property
    @abstractmethod
    def weights(self) -> Floats:
        """The weight of each pattern in the log-likelihood."""

    @property
    @abstractmethod
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The mechanisms used."""

    @abstractmethod
    def channel(self, among: Positions | None) -> Channel:
        """Return the likelihood of the patterns, over the values at positions `among` (None: all)."""

    @abstractmethod
    def merge(self, other: Any) -> Block:
        """Return this block and `other`, of the same form, together."""

    @abstractmethod
    def words(self, pattern: int) -> str:
        """Return one pattern as people read it."""

    @abstractmethod
    def spending(self) -> Counter[Spent]:
        """Return how many users spent how much in all."""

    def spent(self) -> Spent:
        """Return the largest epsilon any user spent: plain, and per unit of distance, which may be two users."""
        plain, metric = zip(*self.spending(), strict=True)
        return Spent(max(plain), max(metric))

    @property
    def form(self) -> object:
        """Blocks of the same form can merge."""
        return type(self)

    def check_possible(self, among: Positions | None) -> None:
        """Refuse patterns that no value can produce, by name, with their count."""
        if all(mechanism.full_support for mechanism in self.mechanisms):
            return
        channel = self.channel(among)
        reached = channel.forward(np.full(channel.values, 1.0 / channel.values)) > 0
        impossible = np.flatnonzero(~reached & (self.weights > 0))
        if impossible.size == 0:
            return
        first = int(impossible[0])
        users = int(self.weights[impossible].sum())
        more = "" if impossible.size == 1 else f", and {_many(impossible.size - 1, 'more pattern')}"
        raise ImpossibleReportError(
            "no value can have produced a report"
            if among is None
            else "no value that is kept can have produced a report",
            where=" and ".join(dict.fromkeys(type(mechanism).__name__ for mechanism in self.mechanisms)),
            got=f"{self.words(first)} sent by {_many(int(self.weights[first]), 'user')}{more}"
            f" ({_many(users, 'user')} in all)",
            expected="outputs with a positive probability for at least one value",
            remedy="check the mechanism that these reports name, or remove them on purpose before estimating"
            if among is None
            else "keep the values that can have produced it, or remove these reports on purpose",
        )


class Counted(Block):
    """Patterns with the number of users who sent each."""

    counts: Counts

    @property
    def users(self) -> int:
        """How many users sent these reports."""
        return int(self.counts.sum())

    @property
    def weights(self) -> Floats:
        """One for each user."""
        return self.counts.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Singles(Counted):
    """One output of one mechanism for each user."""

    mechanism: Mechanism
    codes: Codes  # distinct, in a fixed order
    counts: Counts

    @classmethod
    def build(cls, mechanism: Mechanism, codes: Codes, counts: Counts) -> Singles:
        """Merge equal outputs; outputs that nobody sent are left out."""
        distinct, totals = unique_codes(codes, counts, mechanism.output_space.size)
        sent = totals > 0
        if not sent.all():
            distinct, totals = distinct[sent], totals[sent]
        return cls(mechanism, frozen(distinct), frozen(totals))

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The one mechanism."""
        return (self.mechanism,)

    @property
    def form(self) -> object:
        """Outputs of equal mechanisms merge."""
        return Singles, self.mechanism

    def channel(self, among: Positions | None) -> Channel:
        """Return the mechanism's own channel."""
        return self.mechanism.encoded_channel(self.codes, among)

    def merge(self, other: Singles) -> Singles:
        """Add the counts of equal outputs."""
        codes = np.concatenate([self.codes, other.codes])
        return Singles.build(self.mechanism, codes, np.concatenate([self.counts, other.counts]))

    def words(self, pattern: int) -> str:
        """Return the output as text."""
        space = self.mechanism.output_space
        return "output " + space.write(space.decode(self.codes[pattern : pattern + 1])[0])

    def spending(self) -> Counter[Spent]:
        """Return what one output of this mechanism spends."""
        return spent_once(self.mechanism, self.users)


@dataclass(frozen=True, eq=False)
class Joint(Counted):
    """Several outputs for each user.

    An item is one (mechanism, output) pair. Row i of `repeats` (patterns by items, sparse) says how often
    each item occurs in pattern i, whatever the order in which its user sent them.
    """

    sources: tuple[tuple[Mechanism, Codes], ...]  # items, mechanism after mechanism
    repeats: sparse.csr_array
    counts: Counts

    @classmethod
    def build(
        cls, sources: tuple[tuple[Mechanism, Codes], ...], users: Positions, items: Positions, counts: Counts
    ) -> Joint:
        """Merge equal patterns, given which item each user sent (`counts`: how many users each stands for).

        Sources come in the order of `ordered`, so that equal data give equal blocks whatever came first.
        """
        total = sum(len(codes) for _, codes in sources)
        ones = np.ones(items.size, dtype=np.int64)
        repeats = sparse.csr_array((ones, (users, items)), shape=(counts.size, total))  # adds up repetitions
        repeats.sort_indices()
        first, back = distinct_rows(repeats)
        merged = np.zeros(first.size, dtype=np.int64)
        np.add.at(merged, back, counts)
        return cls(sources, sparse.csr_array(repeats[first]), frozen(merged))

    @classmethod
    def of_patterns(
        cls, sources: tuple[tuple[Mechanism, Codes], ...], patterns: Sequence[tuple[Positions, Counts]]
    ) -> Joint:
        """Return the block of patterns that are distinct and in order: items by pattern, all of one length, and counts.

        The same as `build` gives, without looking for equal ones.
        """
        total = sum(len(codes) for _, codes in sources)
        lengths = np.concatenate([np.full(len(rows), rows.shape[1]) for rows, _ in patterns])
        items = np.concatenate([rows.ravel() for rows, _ in patterns])
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        ones = np.ones(items.size, dtype=np.int64)
        repeats = sparse.csr_array((ones, items, bounds), shape=(lengths.size, total))
        repeats.sum_duplicates()
        return cls(sources, repeats, frozen(np.concatenate([counts for _, counts in patterns])))

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """All mechanisms that occur."""
        return tuple(mechanism for mechanism, _ in self.sources)

    def channel(self, among: Positions | None) -> Channel:
        """Return the product over each pattern's outputs, in logs: 2,000 outputs do not underflow."""
        return product_channel(*log_items(self.sources, self.repeats, among))

    def merge(self, other: Joint) -> Joint:
        """Put both over the same items and add the counts of equal patterns."""
        sources: list[tuple[Mechanism, Codes]] = []
        moves = [
            np.empty(self.repeats.shape[1], dtype=np.int64),
            np.empty(other.repeats.shape[1], dtype=np.int64),
        ]
        offset = 0
        for mechanism in ordered(self.mechanisms + other.mechanisms):
            parts = [block._items_of(mechanism) for block in (self, other)]
            distinct, back = index_codes(np.concatenate([codes for codes, _ in parts if len(codes)]))
            place = 0
            for (codes, start), move in zip(parts, moves, strict=True):
                move[start : start + len(codes)] = offset + back[place : place + len(codes)]
                place += len(codes)
            sources.append((mechanism, frozen(distinct)))
            offset += len(distinct)
        users, items = [], []
        for block, move, first in ((self, moves[0], 0), (other, moves[1], self.counts.size)):
            entries = block.repeats.tocoo()
            users.append(np.repeat(entries.row, entries.data) + first)
            items.append(np.repeat(move[entries.col], entries.data))
        counts = np.concatenate([self.counts, other.counts])
        return Joint.build(tuple(sources), np.concatenate(users), np.concatenate(items), counts)

    def _items_of(self, mechanism: Mechanism) -> tuple[Codes, int]:
        start = 0
        for own, codes in self.sources:
            if own == mechanism:
                return codes, start
            start += len(codes)
        return np.empty(0, dtype=np.int64), 0

    def words(self, pattern: int) -> str:
        """Return the outputs as text."""
        row = self.repeats[[pattern]].tocoo()
        texts = []
        for item, times in list(zip(row.col, row.data, strict=True))[:4]:
            mechanism, codes, place = self._item(int(item))
            space = mechanism.output_space
            text = space.write(space.decode(codes[place : place + 1])[0])
            texts.append(f"{type(mechanism).__name__} {text}" + (f" ({times} times)" if times > 1 else ""))
        return "outputs " + ", ".join(texts) + (", ..." if row.nnz > 4 else "")

    def _item(self, item: int) -> tuple[Mechanism, Codes, int]:
        for mechanism, codes in self.sources:
            if item < len(codes):
                return mechanism, codes, item
            item -= len(codes)
        raise AssertionError("items are numbered within the sources")

    def spending(self) -> Counter[Spent]:
        """Return what users spent with all their outputs."""
        owner = np.repeat(np.arange(len(self.sources)), [len(codes) for _, codes in self.sources])
        of_mechanism = sparse.csr_array((np.ones(owner.size, dtype=np.int64), (np.arange(owner.size), owner)))
        return spending(self.mechanisms, (self.repeats @ of_mechanism).toarray().astype(np.int64), self.counts)


@dataclass(frozen=True, eq=False)
class BitSums(Block):
    """How many users sent a one for each value, when only these sums were kept.

    Their joint likelihood is lost with the reports. The sums are treated as if every bit came from a user of
    its own: inversion is exact, maximum likelihood is approximate.
    """

    mechanism: UnaryEncoding
    ones: Counts
    senders: int

    @property
    def users(self) -> int:
        """How many users the sums are over."""
        return self.senders

    @property
    def weights(self) -> Floats:
        """First the ones of each value, then the zeros."""
        return np.concatenate([self.ones, self.senders - self.ones]).astype(np.float64)

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The one mechanism."""
        return (self.mechanism,)

    @property
    def form(self) -> object:
        """Sums of equal mechanisms add."""
        return BitSums, self.mechanism

    def channel(self, among: Positions | None) -> Channel:
        """Return P(bit j is 1 | value) for all j, then P(bit j is 0 | value)."""
        logs = self.mechanism.log_bits
        size = len(self.mechanism.domain)
        peaks = np.arange(size)
        if among is not None:
            peaks = np.full(size, -1)
            peaks[among] = np.arange(among.size)
            size = among.size
        one = SpikeChannel(size, peaks, log_at=logs.own_one, log_elsewhere=logs.other_one)
        zero = SpikeChannel(size, peaks, log_at=logs.own_zero, log_elsewhere=logs.other_zero)
        return ConcatenatedChannel([one, zero])

    def merge(self, other: BitSums) -> BitSums:
        """Add the sums."""
        return BitSums(self.mechanism, frozen(self.ones + other.ones), self.senders + other.senders)

    def words(self, pattern: int) -> str:
        """Return which bit."""
        return f"bit {pattern % self.ones.size}"

    def spending(self) -> Counter[Spent]:
        """Return what one output of this mechanism spends."""
        return spent_once(self.mechanism, self.users)


def ordered(mechanisms: Iterable[Mechanism]) -> list[Mechanism]:
    """Return the distinct mechanisms in an order that does not depend on which came first."""
    return sorted(dict.fromkeys(mechanisms), key=lambda mechanism: mechanism.content_key)


def check_counts(counts: object, where: str) -> Counts:
    """Return counts as whole numbers that are at least 0."""
    remedy = "count users: shares, percentages and missing counts are not numbers of users"
    whole = as_integers(counts, ReportsError, where=where, expected="numbers of users", remedy=remedy)
    if whole.size and whole.min() < 0:
        raise ReportsError(
            "a count is negative",
            where=where,
            got=int(whole.min()),
            expected="numbers of users, at least 0",
            remedy="count users; noise added to counts is not part of this model",
        )
    if whole.sum(dtype=np.float64) > MOST_USERS:
        raise ReportsError(
            "there are too many users to count them exactly",
            where=where,
            got=f"{whole.sum(dtype=np.float64):.3g} users",
            expected=f"at most {MOST_USERS:.3g}",
            remedy="check the counts: there are not so many people",
        )
    return whole


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
