"""Studies whose reports are counts of a short list of patterns: many of them are drawn and estimated at one stroke.

A pattern is all that one user sends, whatever the order. With one report it is an output; with m reports r_z times the
output z, and

    P(pattern | x) = m! / prod_z r_z!  *  prod_z P(z | x)^r_z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
from scipy.special import gammaln

from hubbub.channels import Channel, ConcatenatedChannel, DenseChannel
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.mechanisms import Mechanism, SubsetSelection
from hubbub.mechanisms.unary import UnaryEncoding
from hubbub.planning.candidate import Candidate
from hubbub.reports import Block, Joint, Reports, Singles
from hubbub.reports.reports import in_order

MOST_BITS = 12  # of unary reports: 4,096 patterns
MOST_SETS = 5_000
MOST_PATTERNS = 20_000  # of several reports of a user
MOST_ENTRIES = 4_000_000  # of their likelihoods
MOST_WIDE = 300_000  # the same where outputs outnumber values: few of them occur in one study


@dataclass(frozen=True, eq=False)
class PatternTable:
    """All patterns of one mechanism, and their likelihoods."""

    mechanism: Mechanism
    codes: Codes  # of all outputs
    items: Positions | None  # patterns by reports: which outputs each consists of; None with one report
    channel: Channel

    @classmethod
    def of(cls, mechanism: Mechanism, reports: int) -> PatternTable | None:
        """List the patterns; None where they are too many, or outputs of a user are not independent."""
        if not _is_short(mechanism) or mechanism.outputs is None:
            return None
        codes = mechanism.output_space.encode(mechanism.outputs)
        values, many = len(mechanism.domain), math.comb(len(codes) + reports - 1, reports)
        if len(codes) > values and len(codes) * values > MOST_WIDE:
            return None
        if reports == 1:
            return cls(mechanism, codes, None, mechanism.encoded_channel(codes))
        if mechanism.remembers or many > MOST_PATTERNS or many * values > MOST_ENTRIES:
            return None
        items = np.array(list(combinations_with_replacement(range(len(codes)), reports)), dtype=np.int64)
        logs = mechanism.log_columns(codes)

        def log_columns(part: slice | Positions) -> Floats:
            return np.asarray(logs[:, items[part]].sum(axis=2) + ways[part])

        ways = _log_ways(items)
        return cls(mechanism, codes, items, DenseChannel.from_logs(values, many, log_columns))

    def shares(self, truth: Floats) -> Floats:
        """Return the probability of each pattern."""
        expected = self.channel.forward(truth) * np.exp(self.channel.log_scale)
        return np.asarray(expected / expected.sum())

    def block(self, counts: Positions) -> Block | None:
        """Return so many users of each pattern as reports."""
        sent = np.flatnonzero(counts)
        if sent.size == 0:
            return None
        if self.items is None:
            return Singles.build(self.mechanism, self.codes[sent], counts[sent])
        items = self.items[sent]
        who = np.repeat(np.arange(sent.size), items.shape[1])
        return Joint.build(((self.mechanism, self.codes),), who, items.ravel(), counts[sent])


def _is_short(mechanism: Mechanism) -> bool:
    if isinstance(mechanism, UnaryEncoding):
        return len(mechanism.domain) <= MOST_BITS
    if isinstance(mechanism, SubsetSelection):
        return math.comb(len(mechanism.domain), mechanism.size or 1) <= MOST_SETS
    return True


def _log_ways(items: Positions) -> Floats:
    """Return log(m! / prod r!): how many orders of the reports make each pattern; items are in order."""
    ways = np.full(len(items), float(gammaln(items.shape[1] + 1)))
    run = np.ones(len(items))
    for place in range(1, items.shape[1]):
        same = items[:, place] == items[:, place - 1]
        run = np.where(same, run + 1.0, 1.0)
        ways -= np.where(same, np.log(run), 0.0)
    return ways


class PatternTables:
    """A candidate all of whose patterns are listed, mechanism after mechanism."""

    def __init__(self, tables: Sequence[PatternTable], shares: Sequence[float]) -> None:
        self.tables, self.split_shares = tables, shares

    @classmethod
    def of(cls, candidate: Candidate) -> PatternTables | None:
        """List all patterns; None where there are too many of them."""
        tables = []
        for mechanism, _ in candidate.parts:
            table = PatternTable.of(mechanism, candidate.reports_per_user)
            if table is None:
                return None
            tables.append(table)
        return cls(tables, [share for _, share in candidate.parts])

    @cached_property
    def channel(self) -> Channel:
        """The likelihood of all patterns."""
        channels = [table.channel for table in self.tables]
        return channels[0] if len(channels) == 1 else ConcatenatedChannel(channels)

    def expected(self, users: int, truth: Floats) -> Floats:
        """Return how many users send each pattern in the mean."""
        counts = split(users, self.split_shares)
        return np.concatenate([n * table.shares(truth) for n, table in zip(counts, self.tables, strict=True)])

    def draw(self, users: int, truth: Floats, runs: int, rng: np.random.Generator) -> Positions:
        """Return how many users send each pattern in so many studies: studies by patterns."""
        counts = split(users, self.split_shares)
        drawn = [
            rng.multinomial(n, table.shares(truth), size=runs) for n, table in zip(counts, self.tables, strict=True)
        ]
        return np.concatenate(drawn, axis=1)

    def reports(self, counts: Positions) -> Reports:
        """Return one study's reports."""
        ends = np.cumsum([table.channel.patterns for table in self.tables])[:-1]
        parts = zip(self.tables, np.split(counts, ends), strict=True)
        blocks = [block for table, own in parts if (block := table.block(own)) is not None]
        merged: dict[object, Block] = {}
        for block in blocks:
            merged[block.form] = merged[block.form].merge(block) if block.form in merged else block
        return Reports(self.tables[0].mechanism.domain, in_order(merged.values()))


def split(users: int, shares: Sequence[float]) -> list[int]:
    """Return how many users belong to each share: rounded down, and what is left goes to the largest remainders."""
    exact = np.asarray(shares) * users
    counts = np.floor(exact + 1e-9).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: users - int(counts.sum())]] += 1
    return [int(count) for count in counts]
