"""Simulate studies whose reports follow few enough patterns to enumerate: many studies are drawn at once.

A pattern is everything that one user sends, in any order. With one report it is an output; with m reports, r_z of them
the output z,

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
from hubbub.mechanisms import Mechanism, Staircase, SubsetSelection
from hubbub.mechanisms.unary_encoding import UnaryEncoding
from hubbub.planning.candidates import Candidate
from hubbub.reports import Block, Joint, Reports, Singles

MAX_UNARY_BITS = 12  # 4,096 patterns
MAX_SUBSETS = 5_000
MAX_JOINT_PATTERNS = 20_000  # with several reports per user
MAX_JOINT_ENTRIES = 4_000_000  # patterns times values
MAX_WIDE_ENTRIES = 300_000  # the same where outputs outnumber values, and few of them occur in one study


@dataclass(frozen=True, eq=False)
class PatternTable:
    """All patterns of one mechanism, and their likelihoods."""

    mechanism: Mechanism
    codes: Codes  # of all outputs
    members: Positions | None  # patterns by reports: the outputs in each pattern; None with one report
    channel: Channel
    log_factors: Floats | float = 0.0  # of each output: the probability of all that it stands for, over its own

    @classmethod
    def of(cls, mechanism: Mechanism, reports: int) -> PatternTable | None:
        """Enumerate the patterns; None where there are too many, or a user's outputs are not independent."""
        enumerated = _outputs(mechanism)
        if enumerated is None:
            return None
        codes, factors = enumerated
        values, patterns = len(mechanism.domain), math.comb(len(codes) + reports - 1, reports)
        is_folded = isinstance(mechanism, Staircase)  # then all of them do occur
        if len(codes) > values and len(codes) * values > (MAX_JOINT_ENTRIES if is_folded else MAX_WIDE_ENTRIES):
            return None
        if reports == 1:
            return cls(mechanism, codes, None, mechanism.encoded_channel(codes), factors)
        if mechanism.remembers or patterns > MAX_JOINT_PATTERNS or patterns * values > MAX_JOINT_ENTRIES:
            return None
        members = np.array(list(combinations_with_replacement(range(len(codes)), reports)), dtype=np.int64)
        logs = mechanism.log_columns(codes) + factors

        def log_columns(part: slice | Positions) -> Floats:
            return np.asarray(logs[:, members[part]].sum(axis=2) + orders[part])

        orders = _log_orders(members)
        return cls(mechanism, codes, members, DenseChannel.from_logs(values, patterns, log_columns))

    def matrix(self) -> Floats:
        """Return the probability of each output that one user sends, values by outputs."""
        if isinstance(self.mechanism, Staircase):
            return np.exp(self.channel.log_dense() + self.log_factors)
        return self.mechanism.checked_matrix()

    def shares(self, truth: Floats) -> Floats:
        """Return the probability of each pattern."""
        expected = self.channel.forward(truth) * np.exp(self.channel.log_scale + self.log_factors)
        return np.asarray(expected / expected.sum())

    def block(self, counts: Positions) -> Block | None:
        """Return the reports of `counts` users for each pattern."""
        sent = np.flatnonzero(counts)
        if sent.size == 0:
            return None
        if self.members is None:
            return Singles.build(self.mechanism, self.codes[sent], counts[sent])
        outputs = self.members[sent]
        users = np.repeat(np.arange(sent.size), outputs.shape[1])
        return Joint.build(((self.mechanism, self.codes),), users, outputs.ravel(), counts[sent])


def _outputs(mechanism: Mechanism) -> tuple[Codes, Floats | float] | None:
    """Return outputs and the logarithms of their factors; None where there are too many.

    Of outputs whose likelihoods are the same up to a factor, one stands for all: a study of either is estimated alike.
    """
    if isinstance(mechanism, Staircase):
        return mechanism.folded_outputs()
    if not _has_few_outputs(mechanism) or mechanism.outputs is None:
        return None
    return mechanism.output_space.encode(mechanism.outputs), 0.0


def _has_few_outputs(mechanism: Mechanism) -> bool:
    if isinstance(mechanism, UnaryEncoding):
        return len(mechanism.domain) <= MAX_UNARY_BITS
    if isinstance(mechanism, SubsetSelection):
        return math.comb(len(mechanism.domain), mechanism.size or 1) <= MAX_SUBSETS
    return True


def _log_orders(members: Positions) -> Floats:
    """Return log(m! / prod r!), the number of orders in which each pattern can be sent; its outputs are sorted."""
    orders = np.full(len(members), float(gammaln(members.shape[1] + 1)))
    repeats = np.ones(len(members))
    for column in range(1, members.shape[1]):
        is_equal = members[:, column] == members[:, column - 1]
        repeats = np.where(is_equal, repeats + 1.0, 1.0)
        orders -= np.where(is_equal, np.log(repeats), 0.0)
    return orders


class PatternTables:
    """All patterns of a candidate, one table for each mechanism."""

    def __init__(self, tables: Sequence[PatternTable], shares: Sequence[float]) -> None:
        self.tables, self.shares = tables, shares

    @classmethod
    def of(cls, candidate: Candidate) -> PatternTables | None:
        """Enumerate all patterns; None where there are too many."""
        tables = []
        for mechanism, _ in candidate.parts:
            table = PatternTable.of(mechanism, candidate.reports_per_user)
            if table is None:
                return None
            tables.append(table)
        return cls(tables, [share for _, share in candidate.parts])

    @cached_property
    def channel(self) -> Channel:
        """The likelihoods of all patterns."""
        channels = [table.channel for table in self.tables]
        return channels[0] if len(channels) == 1 else ConcatenatedChannel(channels)

    def expected(self, users: int, truth: Floats) -> Floats:
        """Return the expected number of users for each pattern."""
        counts = split_users(users, self.shares)
        return np.concatenate([n * table.shares(truth) for n, table in zip(counts, self.tables, strict=True)])

    def draw(self, users: int, truth: Floats, runs: int, rng: np.random.Generator) -> Positions:
        """Return the number of users for each pattern in simulated studies: studies by patterns."""
        counts = split_users(users, self.shares)
        drawn = [
            rng.multinomial(n, table.shares(truth), size=runs) for n, table in zip(counts, self.tables, strict=True)
        ]
        return np.concatenate(drawn, axis=1)

    def reports(self, counts: Positions) -> Reports:
        """Return the reports of one study."""
        ends = np.cumsum([table.channel.patterns for table in self.tables])[:-1]
        blocks = [table.block(own) for table, own in zip(self.tables, np.split(counts, ends), strict=True)]
        domain = self.tables[0].mechanism.domain
        first, *others = [Reports(domain, (block,)) for block in blocks if block is not None]
        return sum(others, first)


def split_users(users: int, shares: Sequence[float]) -> list[int]:
    """Return the number of users for each share: rounded down, the rest given to the largest remainders."""
    exact = np.asarray(shares) * users
    counts = np.floor(exact + 1e-9).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: users - int(counts.sum())]] += 1
    return [int(count) for count in counts]
