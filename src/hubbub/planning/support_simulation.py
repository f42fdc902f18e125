"""Simulate frequency oracles by how many reports support each value, where whole reports would take too long.

What the reports say about the shares is mostly in these numbers. They are drawn exactly (each value's as unary bits
are), and estimated as sums of bits with the oracle's two probabilities. What is lost are the combinations of values
within a report: errors come out as large as those of whole reports, or up to about 15% larger
(`benchmarks/support_plans.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.domains import Domain
from hubbub.mechanisms import CountMeanSketch, HadamardCountMeanSketch
from hubbub.mechanisms.frequency_oracle import FrequencyOracle
from hubbub.mechanisms.hadamard_response import ListedSets
from hubbub.mechanisms.unary_encoding import BitLogs, UnaryEncoding
from hubbub.reports import BitSums, Reports

MAX_COUNTED_OUTPUTS = 1 << 20  # or bits of sketches, whose users are counted


@dataclass(frozen=True)
class SupportBits(UnaryEncoding):
    """Whether a report of an oracle supports each value, as if these were independent bits."""

    oracle: FrequencyOracle

    @property
    def domain(self) -> Domain:  # type: ignore[override]  # a field elsewhere
        """The oracle's."""
        return self.oracle.domain

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        """The oracle's."""
        return self.oracle.epsilon

    @property
    def log_bits(self) -> BitLogs:
        """The logarithms of the oracle's two probabilities, and of their complements."""
        true, other = self.oracle.support
        return BitLogs(math.log(true), math.log1p(-true), math.log(other), math.log1p(-other))


def draw_support(
    mechanism: FrequencyOracle, users: int, truth: Floats, runs: int, rng: np.random.Generator
) -> Positions:
    """Return how many reports support each value in each study, without drawing the reports.

    The numbers for the values are drawn independently, given the users' values. The bits of unary reports are
    independent. So is the support of a random hash: it maps each other value to the reported bucket with probability
    1/g, whatever happens to the rest. Of sets of one size they are nearly so, if there are many values.

    Where outputs are few, or about few buckets, the numbers are counted over outputs that are drawn all at once.
    """
    if has_exact_support(mechanism):
        return np.stack([_counted_support(mechanism, users, truth, rng) for _ in range(runs)])
    true, other = mechanism.support
    held = rng.multinomial(users, truth, size=runs)
    return np.asarray(rng.binomial(held, true) + rng.binomial(users - held, other))


def has_exact_support(mechanism: FrequencyOracle | None) -> bool:
    """Whether the number of users behind each output, or bit of a sketch, can be drawn."""
    if isinstance(mechanism, CountMeanSketch):
        return mechanism.hashes * mechanism.width <= MAX_COUNTED_OUTPUTS
    listed = isinstance(mechanism, ListedSets | HadamardCountMeanSketch)
    return listed and (mechanism.output_space.size or 0) <= MAX_COUNTED_OUTPUTS  # type: ignore[union-attr]


def _counted_support(mechanism: FrequencyOracle, users: int, truth: Floats, rng: np.random.Generator) -> Floats:
    """Return how many outputs support each value in one study."""
    if isinstance(mechanism, CountMeanSketch):
        return _sketched_support(mechanism, users, truth, rng)
    codes = np.arange(mechanism.output_space.size or 0)
    channel = mechanism.encoded_channel(codes)
    chances = channel.forward(truth) * np.exp(channel.log_scale)
    counts = rng.multinomial(users, chances / chances.sum())
    sent = counts > 0
    return mechanism.support_counts(codes[sent], counts[sent].astype(np.float64))


def _sketched_support(mechanism: CountMeanSketch, users: int, truth: Floats, rng: np.random.Generator) -> Floats:
    """Draw how many users have each bucket of each hash, then how many ones are sent for it."""
    table = mechanism.buckets(np.arange(mechanism.hashes))
    chances = np.stack([np.bincount(row, weights=truth, minlength=mechanism.width) for row in table])
    held = rng.multinomial(users, (chances / chances.sum()).ravel()).reshape(chances.shape)
    true, wrong = mechanism.support.true, 1.0 - mechanism.support.true
    ones = rng.binomial(held, true) + rng.binomial(held.sum(axis=1, keepdims=True) - held, wrong)
    return np.asarray(np.take_along_axis(ones, table.astype(np.int64), axis=1).sum(axis=0), dtype=np.float64)


def supported_reports(oracle: FrequencyOracle, supported: Positions, users: int) -> Reports:
    """Return these numbers as sums of bits."""
    bits = oracle if isinstance(oracle, UnaryEncoding) else SupportBits(oracle)
    return Reports(oracle.domain, (BitSums(bits, frozen(supported), users),))
