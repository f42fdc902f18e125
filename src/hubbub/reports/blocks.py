"""The blocks that reports consist of.

Each block holds distinct patterns of one form, with the number of users who sent each, and knows its channel:

* `Singles`: users who sent one output of one mechanism;
* `Joint`: users who sent several outputs, of one or several mechanisms;
* `BitSums`: sums of bits over users, where the individual reports were not kept (of Bloom filters `FilterSums`).
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

from hubbub.channels import Channel, ConcatenatedChannel, DiagonalPlusConstantChannel, product_channel
from hubbub.core.arrays import Codes, Floats, Positions, frozen
from hubbub.core.errors import ImpossibleReportError
from hubbub.core.serialization import Portable
from hubbub.core.text import plural
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.output_spaces import index_codes, unique_codes
from hubbub.mechanisms.unary_encoding import UnaryEncoding
from hubbub.reports.pattern_rows import distinct_rows, log_items
from hubbub.reports.privacy_accounting import Spent, spending, spent_once

Counts = NDArray[np.int64]
Sources = tuple[tuple[Mechanism, Codes], ...]  # the distinct outputs of each mechanism


class Block(Portable, ABC):
    """Distinct patterns of one form, and the number of users who sent each."""

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
        """Return this block merged with another one of the same form."""

    @abstractmethod
    def positions_of(self, other: Any) -> Positions:
        """Return where the patterns of a block of the same form are in this one, which holds all of them."""

    @abstractmethod
    def thinned(self, kept: float) -> Block:
        """Return the block with a share of its users kept, evenly over the patterns in their order."""

    @abstractmethod
    def pattern_text(self, pattern: int) -> str:
        """Return a pattern for messages."""

    @abstractmethod
    def spending(self) -> Counter[Spent]:
        """Return how many users spent how much epsilon with all their outputs."""

    @property
    def form(self) -> object:
        """What blocks must have in common to be merged."""
        return type(self)

    def check_possible(self, among: Positions | None) -> None:
        """Refuse patterns that no value can produce; the message names one of them and counts their users."""
        if all(mechanism.full_support for mechanism in self.mechanisms):
            return
        channel = self.channel(among)
        reached = channel.forward(np.full(channel.values, 1.0 / channel.values)) > 0
        impossible = np.flatnonzero(~reached & (self.weights > 0))
        if impossible.size == 0:
            return
        first = int(impossible[0])
        users = int(self.weights[impossible].sum())
        more = "" if impossible.size == 1 else f", and {plural(impossible.size - 1, 'more pattern')}"
        raise ImpossibleReportError(
            "no value can have produced a report"
            if among is None
            else "no value that is kept can have produced a report",
            where=" and ".join(dict.fromkeys(type(mechanism).__name__ for mechanism in self.mechanisms)),
            got=f"{self.pattern_text(first)} sent by {plural(int(self.weights[first]), 'user')}{more}"
            f" ({plural(users, 'user')} in total)",
            expected="outputs with a positive probability for at least one value",
            remedy="check the mechanism that these reports name, or remove them on purpose before estimating"
            if among is None
            else "keep the values that can have produced it, or remove these reports on purpose",
        )


class OfOneMechanism(Block):
    """Reports of one mechanism, one from each user."""

    mechanism: Mechanism

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The one mechanism."""
        return (self.mechanism,)

    @property
    def form(self) -> object:
        """The kind of block, and the mechanism."""
        return type(self), self.mechanism

    def spending(self) -> Counter[Spent]:
        """Return what each user spent with one output of this mechanism."""
        return spent_once(self.mechanism, self.users)


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
class Singles(OfOneMechanism, Counted):
    """One output of one mechanism for each user."""

    mechanism: Mechanism
    codes: Codes  # distinct, in a fixed order
    counts: Counts

    @classmethod
    def build(cls, mechanism: Mechanism, codes: Codes, counts: Counts) -> Singles:
        """Merge equal outputs, and leave out those that nobody sent."""
        distinct, totals = unique_codes(codes, counts, mechanism.output_space.size)
        sent = totals > 0
        if not sent.all():
            distinct, totals = distinct[sent], totals[sent]
        return cls(mechanism, frozen(distinct), frozen(totals))

    def channel(self, among: Positions | None) -> Channel:
        """Return the mechanism's own channel."""
        return self.mechanism.encoded_channel(self.codes, among)

    def merge(self, other: Singles) -> Singles:
        """Add the counts of equal outputs."""
        codes = np.concatenate([self.codes, other.codes])
        return Singles.build(self.mechanism, codes, np.concatenate([self.counts, other.counts]))

    def positions_of(self, other: Singles) -> Positions:
        """Return where the outputs of another block are in this one."""
        return self.find(other.codes)

    def find(self, codes: Codes) -> Positions:
        """Return the places of outputs, all of which are in this block."""
        return _places(index_codes(np.concatenate([self.codes, codes]))[1], len(self.codes))

    def thinned(self, kept: float) -> Singles:
        """Thin the counts."""
        return Singles.build(self.mechanism, self.codes, _thinned(self.counts, kept))

    def pattern_text(self, pattern: int) -> str:
        """Return the output, for messages."""
        return "output " + _output_text(self.mechanism, self.codes[[pattern]])


@dataclass(frozen=True, eq=False)
class Joint(Counted):
    """Several outputs for each user.

    An item is one (mechanism, output) pair. Row i of `repeats` (patterns by items, sparse) counts how often each item
    occurs in pattern i; the order in which a user sent them does not matter.
    """

    sources: Sources  # items, mechanism after mechanism
    repeats: sparse.csr_array
    counts: Counts

    @classmethod
    def build(cls, sources: Sources, users: Positions, items: Positions, counts: Counts) -> Joint:
        """Merge equal patterns: user `users[k]` sent item `items[k]`, and stands for `counts[users[k]]` users."""
        return cls.build_with_places(sources, users, items, counts)[0]

    @classmethod
    def build_with_places(
        cls, sources: Sources, users: Positions, items: Positions, counts: Counts
    ) -> tuple[Joint, Positions]:
        """Return what `build` does, and the place of each user's pattern.

        Sources must be in the order of `common_items`, so that equal data give equal blocks whatever came first.
        """
        total = sum(len(codes) for _, codes in sources)
        ones = np.ones(items.size, dtype=np.int64)
        repeats = sparse.csr_array((ones, (users, items)), shape=(counts.size, total))  # adds up repeated items
        repeats.sort_indices()
        first, back = distinct_rows(repeats)
        merged = np.zeros(first.size, dtype=np.int64)
        np.add.at(merged, back, counts)
        return cls(sources, sparse.csr_array(repeats[first]), frozen(merged)), back

    @classmethod
    def of_patterns(cls, sources: Sources, patterns: Sequence[tuple[Positions, Counts]]) -> Joint:
        """Return the block of patterns that are already distinct and in order.

        Each element of `patterns` holds patterns of one length, as rows of items, and their counts. The result is the
        same as that of `build`, without a search for equal patterns.
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
        """Express both blocks by the same items and add the counts of equal patterns."""
        return self._merge_with_places(other)[0]

    def positions_of(self, other: Joint) -> Positions:
        """Return where the patterns of another block are in this one."""
        return _places(self._merge_with_places(other)[1], self.counts.size)

    def _merge_with_places(self, other: Joint) -> tuple[Joint, Positions]:
        sources, positions = common_items([*self.sources, *other.sources])
        entries = sparse.block_diag([self.repeats, other.repeats], format="coo")  # the other's rows and items come last
        users = np.repeat(entries.row, entries.data)
        items = np.repeat(np.concatenate(positions)[entries.col], entries.data)
        return Joint.build_with_places(sources, users, items, np.concatenate([self.counts, other.counts]))

    def thinned(self, kept: float) -> Joint:
        """Thin the counts."""
        counts = _thinned(self.counts, kept)
        return Joint(self.sources, sparse.csr_array(self.repeats[counts > 0]), frozen(counts[counts > 0]))

    def pattern_text(self, pattern: int) -> str:
        """Return the outputs, for messages; no more than four."""
        row = self.repeats[[pattern]].tocoo()
        ends = np.cumsum([len(codes) for _, codes in self.sources])
        texts = []
        for item, times in list(zip(row.col, row.data, strict=True))[:4]:
            source = int(np.searchsorted(ends, item, side="right"))
            mechanism, codes = self.sources[source]
            text = _output_text(mechanism, codes[[item - ends[source]]])  # counted from the end
            texts.append(f"{type(mechanism).__name__} {text}" + (f" ({times} times)" if times > 1 else ""))
        return "outputs " + ", ".join(texts) + (", ..." if row.nnz > 4 else "")

    def spending(self) -> Counter[Spent]:
        """Return how many users spent how much epsilon with all their outputs."""
        owner = np.repeat(np.arange(len(self.sources)), [len(codes) for _, codes in self.sources])
        of_mechanism = sparse.csr_array((np.ones(owner.size, dtype=np.int64), (np.arange(owner.size), owner)))
        return spending(self.mechanisms, (self.repeats @ of_mechanism).toarray().astype(np.int64), self.counts)


@dataclass(frozen=True, eq=False)
class BitSums(OfOneMechanism):
    """The number of users who sent a one for each value, where only these sums were kept.

    The joint likelihood of a user's bits is lost with the reports. The sums are treated as if every bit came from a
    different user: inversion is exact, maximum likelihood is approximate.
    """

    mechanism: UnaryEncoding
    ones: Counts
    senders: int

    @property
    def users(self) -> int:
        """How many users sent these bits."""
        return self.senders

    @property
    def weights(self) -> Floats:
        """First the ones of each value, then the zeros."""
        return np.concatenate([self.ones, self.senders - self.ones]).astype(np.float64)

    def channel(self, among: Positions | None) -> Channel:
        """Return P(bit j is 1 | value) for all j, then P(bit j is 0 | value)."""
        logs = self.mechanism.log_bits
        size = len(self.mechanism.domain)
        peaks = np.arange(size)
        if among is not None:
            peaks = np.full(size, -1)
            peaks[among] = np.arange(among.size)
            size = among.size
        one = DiagonalPlusConstantChannel(size, peaks, log_at=logs.own_one, log_elsewhere=logs.other_one)
        zero = DiagonalPlusConstantChannel(size, peaks, log_at=logs.own_zero, log_elsewhere=logs.other_zero)
        return ConcatenatedChannel([one, zero])

    def merge(self, other: BitSums) -> BitSums:
        """Add the sums."""
        return BitSums(self.mechanism, frozen(self.ones + other.ones), self.senders + other.senders)

    def positions_of(self, other: BitSums) -> Positions:
        """Return the bits in their order, which is the same."""
        return np.arange(2 * other.ones.size)

    def thinned(self, kept: float) -> BitSums:
        """Scale the sums: nobody knows which bits were sent together."""
        return BitSums(self.mechanism, frozen(np.rint(kept * self.ones).astype(np.int64)), round(kept * self.senders))

    def pattern_text(self, pattern: int) -> str:
        """Return the number of the bit, for messages."""
        return f"bit {pattern % self.ones.size}"


def _places(groups: Positions, count: int) -> Positions:
    """Return which of the first `count` entries has the group of each entry after them."""
    place = np.empty(int(groups.max()) + 1, dtype=np.int64)
    place[groups[:count]] = np.arange(count)
    return place[groups[count:]]


def _thinned(counts: Counts, kept: float) -> Counts:
    """Return about `kept` times the counts: sums from the first on are rounded, so that no errors add up."""
    sums = np.rint(kept * np.cumsum(counts)).astype(np.int64)
    return np.asarray(np.diff(sums, prepend=0))


def common_items(parts: Sequence[tuple[Mechanism, Codes]]) -> tuple[Sources, list[Positions]]:
    """Return the distinct outputs of all parts, in an order of their own, and the places of the outputs of each part.

    An output that occurs in several parts has one place.
    """
    parts_of: dict[Mechanism, list[int]] = {}
    for part, (mechanism, _) in enumerate(parts):
        parts_of.setdefault(mechanism, []).append(part)
    sources: list[tuple[Mechanism, Codes]] = []
    positions: list[Positions] = [np.empty(0, dtype=np.int64)] * len(parts)
    offset = 0
    for mechanism in ordered(parts_of):
        own = [parts[part][1] for part in parts_of[mechanism]]
        distinct, back = index_codes(np.concatenate(own))
        ends = np.cumsum([len(codes) for codes in own])
        for part, places in zip(parts_of[mechanism], np.split(back + offset, ends[:-1]), strict=True):
            positions[part] = places
        sources.append((mechanism, frozen(distinct)))
        offset += len(distinct)
    return tuple(sources), positions


def _output_text(mechanism: Mechanism, codes: Codes) -> str:
    """Return one encoded output as files hold it."""
    space = mechanism.output_space
    return space.write(space.decode(codes)[0])


def ordered(mechanisms: Iterable[Mechanism]) -> list[Mechanism]:
    """Return the distinct mechanisms in an order that does not depend on which came first."""
    return sorted(dict.fromkeys(mechanisms), key=lambda mechanism: mechanism.content_key)
