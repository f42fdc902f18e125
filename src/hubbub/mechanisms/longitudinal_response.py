"""Randomized response with memory, to values (L-GRR) or to hashes of them (LOLOHA).

Among k outputs let the permanent response y be the value with odds e^epsilon over any other output, and a report y with
odds e^L over any other. If n_y of the m reports of a person are the output y, then

    P(z_1, ..., z_m | x) = q1 q2^m (S + (e^epsilon - 1) e^(L n_x)),    S = sum_y e^(L n_y),

with q1 and q2 the probabilities of another output in either stage: outputs that were not sent are all alike, and
nothing grows with k. The largest ratio of two values is that of m equal reports, so that these spend

    log((e^(L m + epsilon) + k - 1) / (e^(L m) + e^epsilon + k - 2)).

Among more than two outputs this is more than m times as much as one report spends, as long as m is small: a single
report is most likely noise, and two equal ones are not. (The product of both stages' probabilities of keeping what they
are given is that of one response with `first`.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hubbub.client import default_memory_buckets, two_stage_response_parameters
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.domains import Domain
from hubbub.mechanisms.local_hashing import HashedResponseLaw, LocalHashing, hash_v1
from hubbub.mechanisms.longitudinal import Longitudinal
from hubbub.mechanisms.parameters import DOMAIN_REMEDY, check_domain
from hubbub.mechanisms.randomized_response import RandomizedResponse
from hubbub.sampling import RandomSource, ResponseLaw, TwoStageLaw, TwoStageResponseLaw

CHUNK_ENTRIES = 4_000_000  # of values times responses, worked on at a time


@dataclass(frozen=True)
class ResponseStages:
    """A response among `outputs` outputs, and responses to it: what m of them tell."""

    outputs: int
    epsilon: float
    evidence: float  # L: what a report tells for the permanent response that it is, in nats

    @classmethod
    def of(cls, law: TwoStageResponseLaw, epsilon: float) -> ResponseStages:
        """Return the stages of a law."""
        outputs = law.permanent.values
        odds = Fraction(outputs * law.kept, (1 << law.permanent.width) - law.kept)
        return cls(outputs, epsilon, math.log1p(odds))

    @property
    def agreement(self) -> float:
        """The probability that two reports of a person are equal."""
        same = math.exp(self._log_same)
        return same**2 + (1.0 - same) ** 2 / (self.outputs - 1)

    @property
    def _log_same(self) -> float:
        """The logarithm of the probability that a report is the permanent response."""
        return -math.log1p((self.outputs - 1) * math.exp(-self.evidence))

    @property
    def log_other(self) -> float:
        """The logarithm of q2: that a report is any one other output."""
        return self._log_same - self.evidence

    @property
    def log_first_other(self) -> float:
        """The logarithm of q1: that the permanent response is any one output but the value."""
        return -self.epsilon - math.log1p((self.outputs - 1) * math.exp(-self.epsilon))

    def told(self, reports: int) -> float:
        """Return the largest log-ratio of so many reports."""
        faded = math.exp(-self.evidence * reports)
        rise = math.expm1(self.epsilon) * -math.expm1(-self.evidence * reports)
        return math.log1p(rise / (1.0 + (math.exp(self.epsilon) + self.outputs - 2) * faded))

    def log_levels(self, counts: sparse.csr_array) -> tuple[Floats, Floats]:
        """Return log P(reports | value) for patterns of reports: of values not sent, and of each output that was sent.

        `counts` says how often each pattern has each output; the second array goes with its entries.
        """
        sent, distinct = counts.data.astype(np.float64), np.diff(counts.indptr)
        pattern = np.repeat(np.arange(distinct.size), distinct)
        reports = np.bincount(pattern, weights=sent, minlength=distinct.size)
        most = np.zeros(distinct.size)
        np.maximum.at(most, pattern, sent)
        heard = np.exp(self.evidence * (sent - most[pattern]))
        unheard = np.exp(-self.evidence * most)
        total = np.bincount(pattern, weights=heard, minlength=distinct.size) + (self.outputs - distinct) * unheard
        shared = self.log_first_other + reports * self._log_same - (reports - most) * self.evidence
        rise = math.expm1(self.epsilon)
        return shared + np.log(total + rise * unheard), shared[pattern] + np.log(total[pattern] + rise * heard)


@dataclass(frozen=True, init=False)
class LongitudinalResponse(Longitudinal, RandomizedResponse):
    """k-RR with memory (L-GRR), for users who report about one value again and again.

    The **permanent response** is k-RR with epsilon: the value with probability e^epsilon / (k - 1 + e^epsilon). It is
    drawn once for a person and a value, and never leaves the device. The **instantaneous response**, drawn anew for
    each report, is k-RR to the permanent response, so that both stages together are k-RR with `first`.

    Guarantee: `first`-local differential privacy for one report, and `epsilon` for all reports about one value
    together, however many they are. With L the log-odds of the second stage, m reports spend ::

        log((e^(L m + epsilon) + k - 1) / (e^(L m) + e^epsilon + k - 2))

    With more than two values that is *more* than m times `first` while m is small: see `spent`. A device that draws the
    permanent response anew for each report spends `first` every time.

    All reports of a user share one permanent response; their likelihood takes this into account.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon of all reports about one value together.
    first
        Plain epsilon of a single report, less than `epsilon`.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, epsilon is not between 1e-12 and 500, or `first` is not below it.

    Examples
    --------
    >>> import hubbub as hb
    >>> daily = hb.LongitudinalResponse(hb.Integers(0, 9), epsilon=2.0, first=0.5)
    >>> kept = daily.permanent([3, 3, 7], rng=0)
    >>> daily.instantaneous(kept, rng=1)
    array([8, 7, 6])
    >>> [round(daily.spent(reports), 3) for reports in (1, 2, 100)]  # two tell more than twice as much as one
    [0.5, 1.078, 2.0]
    """

    domain: Domain
    epsilon: float
    first: float = field(kw_only=True)
    without_memory: ClassVar[str] = "RandomizedResponse"

    def __init__(self, domain: Domain, epsilon: float, first: float) -> None:
        check_domain(domain, Domain, "LongitudinalResponse", DOMAIN_REMEDY)
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "first", first)
        self._check()
        self._check_first()

    def __repr__(self) -> str:
        return f"LongitudinalResponse(domain={self.domain!r}, epsilon={self.epsilon!r}, first={self.first!r})"

    @property
    def log_ratio(self) -> float:
        """`first`, for a single report."""
        return self.first

    @cached_property
    def law(self) -> TwoStageResponseLaw:  # type: ignore[override]
        """The probability that both stages keep the truth is rounded down."""
        return _two_stages(len(self.domain), self.epsilon, self.first)

    @cached_property
    def stages(self) -> ResponseStages:
        """Both stages, and what reports tell."""
        return ResponseStages.of(self.law, self.epsilon)

    def _told(self, reports: int) -> float:
        return self.stages.told(reports)

    def joint_log_columns(self, codes: Codes, repeats: sparse.csr_array, among: Positions | None = None) -> Floats:
        """Return log P(all outputs of a user | value): over all permanent responses, those not sent together."""
        size = len(self.domain)
        place = np.full(size, -1, dtype=np.int64)
        kept = np.arange(size) if among is None else among
        place[kept] = np.arange(kept.size)
        counts = sparse.csr_array((repeats.data, codes[repeats.indices], repeats.indptr), (repeats.shape[0], size))
        counts.sum_duplicates()
        unsent, sent = self.stages.log_levels(counts)
        logs = np.empty((kept.size, unsent.size))
        logs[:] = unsent
        pattern, own = np.repeat(np.arange(unsent.size), np.diff(counts.indptr)), place[counts.indices]
        logs[own[own >= 0], pattern[own >= 0]] = sent[own >= 0]
        return logs


@dataclass(frozen=True)
class TwoStageHashedLaw(TwoStageLaw):
    """A random seed, a permanent response to the bucket that the value hashes to, and responses to that."""

    permanent: HashedResponseLaw
    response: TwoStageResponseLaw

    @property
    def once(self) -> HashedResponseLaw:
        """The law of a single report."""
        return HashedResponseLaw(self.response.once)

    def report(self, codes: Codes, source: RandomSource) -> NDArray[np.uint64]:
        """Respond to permanent responses, under their seeds."""
        sent = self.response.report(codes[:, 1].astype(np.int64), source)
        return np.stack([codes[:, 0], sent.astype(np.uint64)], axis=1)


@dataclass(frozen=True, init=False)
class LongitudinalHashing(Longitudinal, LocalHashing):
    """Local hashing with memory (LOLOHA), for users who report about a value again and again, or about a changing one.

    The device draws a **seed** once and keeps it. The value is hashed into g buckets under this seed (`hash_v1`), the
    **permanent response** is g-RR to the bucket with epsilon, and each report is g-RR to the permanent response, so
    that both stages together are g-RR with `first`. Outputs are a structured array (seed, bucket).

    Guarantee: `first`-local differential privacy for one report, and `epsilon` for all reports about one value
    together; m of them spend as much as those of `LongitudinalResponse` among g values (`spent`). **If the value
    changes**, the device keeps the seed and one permanent response for each *bucket*: all reports about any number of
    values spend at most g times epsilon (`spent_over_values`), and a change within a bucket does not show at all. That
    another bucket took its place, and when, is not hidden.

    All reports of a user under one seed share one permanent response; their likelihood takes this into account. Another
    seed is another device, or one that lost its memory: its reports come from a permanent response of their own.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon of all reports about one value together.
    first
        Plain epsilon of a single report, less than `epsilon`.
    buckets
        The number of buckets, from 2 (BiLOLOHA); None for the published best number (OLOLOHA): with a = e^epsilon and
        b = e^first, (1 - a^2 + sqrt(a^4 - 14 a^2 + 12 a b (1 - a b) + 12 a^3 b + 1)) / (6 (a - b)), rounded, and 1
        more, but at least 2.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, epsilon is not between 1e-12 and 500, `first` is not below it, or
        `buckets` is not from 2 to 2^31.

    Examples
    --------
    >>> import hubbub as hb
    >>> daily = hb.LongitudinalHashing(hb.Integers(0, 99), epsilon=3.0, first=1.0)
    >>> daily.buckets
    3
    >>> kept = daily.permanent([7], rng=0)
    >>> daily.instantaneous(kept, rng=1)
    array([(11749869230777074271, 2)], dtype=[('seed', '<u8'), ('bucket', '<u4')])
    >>> daily.spent(100), daily.spent_over_values(50)
    (3.0, 9.0)
    """

    domain: Domain
    epsilon: float
    first: float
    buckets: int | None
    without_memory: ClassVar[str] = "LocalHashing"
    best_name: ClassVar[str] = "OLOLOHA"
    binary_name: ClassVar[str] = "BiLOLOHA"

    def __init__(self, domain: Domain, epsilon: float, first: float, buckets: int | None = None) -> None:
        for name, entry in (("domain", domain), ("epsilon", epsilon), ("first", first)):
            object.__setattr__(self, name, entry)
        self._check()
        self._check_first()
        self._check_buckets(default_memory_buckets(self.epsilon, self.first) if buckets is None else buckets)

    @property
    def log_ratio(self) -> float:
        """`first`, for a single report."""
        return self.first

    @cached_property
    def law(self) -> TwoStageHashedLaw:  # type: ignore[override]
        """Responses among buckets, by whole numbers."""
        response = _two_stages(self._g, self.epsilon, self.first)
        return TwoStageHashedLaw(HashedResponseLaw(response.permanent), response)

    @cached_property
    def stages(self) -> ResponseStages:
        """Both stages, given the seed, and what reports tell."""
        return ResponseStages.of(self.law.response, self.epsilon)

    def _told(self, reports: int) -> float:
        return self.stages.told(reports)

    @property
    def _most_responses(self) -> int:
        """One for each bucket."""
        return min(self._g, len(self.domain))

    def joint_log_columns(self, codes: Codes, repeats: sparse.csr_array, among: Positions | None = None) -> Floats:
        """Return log P(all outputs of a user | value): over all permanent responses, given the seed."""
        kept = np.arange(len(self.domain)) if among is None else among
        pattern = np.repeat(np.arange(repeats.shape[0]), np.diff(repeats.indptr))
        seeds, buckets = codes[repeats.indices, 0], codes[repeats.indices, 1]
        order = np.lexsort((seeds, pattern))
        pattern, seeds, buckets = pattern[order], seeds[order], buckets[order]
        new = np.append(True, (np.diff(pattern) != 0) | (seeds[1:] != seeds[:-1]))[: order.size]
        starts = np.append(np.flatnonzero(new), order.size)  # of the reports of one pattern under one seed
        counts = sparse.csr_array((repeats.data[order], np.arange(order.size), starts), (starts.size - 1, order.size))
        unsent, sent = self.stages.log_levels(counts)
        logs = np.zeros((kept.size, repeats.shape[0]))
        step = max(1, CHUNK_ENTRIES // max(1, kept.size))
        for first in range(0, unsent.size, step):
            some = np.arange(first, min(first + step, unsent.size))
            hashed = hash_v1(seeds[starts[some]][None, :], kept[:, None], self._g)
            own = np.tile(unsent[some], (kept.size, 1))
            distinct = starts[some + 1] - starts[some]
            for place in range(int(distinct.max(initial=0))):
                has = np.flatnonzero(distinct > place)
                entry = starts[some[has]] + place
                own[:, has] = np.where(hashed[:, has] == buckets[entry], sent[entry], own[:, has])
            owner = pattern[starts[some]]
            first_of = np.flatnonzero(np.append(True, np.diff(owner) != 0))
            logs[:, owner[first_of]] += np.add.reduceat(own, first_of, axis=1)
        return logs


def _two_stages(outputs: int, epsilon: float, first: float) -> TwoStageResponseLaw:
    """Return the law of a response among so many outputs, and of responses to it."""
    width, permanent, kept = two_stage_response_parameters(outputs, Fraction(epsilon), Fraction(first))
    return TwoStageResponseLaw(ResponseLaw(outputs, width, permanent), kept)
