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

from hubbub.core.arrays import Array, Floats, Positions, frozen
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
        return _counted_support(mechanism, users, truth, runs, rng)
    true, other = mechanism.support
    held = rng.multinomial(users, truth, size=runs)
    return np.asarray(rng.binomial(held, true) + rng.binomial(users - held, other))


def has_exact_support(mechanism: FrequencyOracle | None) -> bool:
    """Whether the number of users behind each output, or bit of a sketch, can be drawn."""
    if isinstance(mechanism, CountMeanSketch):
        return mechanism.hashes * mechanism.width <= MAX_COUNTED_OUTPUTS
    listed = isinstance(mechanism, ListedSets | HadamardCountMeanSketch)
    return listed and (mechanism.output_space.size or 0) <= MAX_COUNTED_OUTPUTS  # type: ignore[union-attr]


def counted_outputs(mechanism: FrequencyOracle) -> int:
    """Return how many outputs, or buckets, are drawn for a study with exact support."""
    if isinstance(mechanism, CountMeanSketch):
        return mechanism.hashes * mechanism.width
    return mechanism.output_space.size or 0


def _counted_support(
    mechanism: FrequencyOracle, users: int, truth: Floats, runs: int, rng: np.random.Generator
) -> Array:
    """Return how many outputs support each value in each study."""
    if isinstance(mechanism, CountMeanSketch):
        return _sketched_support(mechanism, users, truth, runs, rng)
    codes = np.arange(counted_outputs(mechanism))
    channel = mechanism.encoded_channel(codes)
    chances = channel.forward(truth) * np.exp(channel.log_scale)
    chances /= chances.sum()
    supported = []
    for _ in range(runs):
        counts = rng.multinomial(users, chances)
        sent = counts > 0
        supported.append(mechanism.support_counts(codes[sent], counts[sent].astype(np.float64)))
    return np.stack(supported)


def _sketched_support(
    mechanism: CountMeanSketch, users: int, truth: Floats, runs: int, rng: np.random.Generator
) -> Array:
    """Draw how many users have each bucket of each hash, then how many ones are sent for it."""
    table = mechanism.buckets(np.arange(mechanism.hashes)).astype(np.int64)
    shares = np.stack([np.bincount(row, weights=truth, minlength=mechanism.width) for row in table])
    chances = shares / shares.sum()
    true, wrong = mechanism.support.true, 1.0 - mechanism.support.true
    supported = []
    for _ in range(runs):
        held = rng.multinomial(users, chances.ravel()).reshape(chances.shape)
        ones = rng.binomial(held, true) + rng.binomial(held.sum(axis=1, keepdims=True) - held, wrong)
        supported.append(np.take_along_axis(ones, table, axis=1).sum(axis=0))
    return np.stack(supported).astype(np.float64)


def supported_reports(oracle: FrequencyOracle, supported: Positions, users: int) -> Reports:
    """Return these numbers as sums of bits."""
    bits = oracle if isinstance(oracle, UnaryEncoding) else SupportBits(oracle)
    return Reports(oracle.domain, (BitSums(bits, frozen(supported), users),))
