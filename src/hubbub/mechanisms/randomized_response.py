"""Randomized response over any number of values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from hubbub.channels import Channel, DiagonalPlusConstantChannel, check_entries
from hubbub.client import response_parameters
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.domains import Domain
from hubbub.mechanisms.frequency_oracle import FrequencyOracle, Support
from hubbub.mechanisms.output_spaces import OutputSpace, ValueOutputs
from hubbub.sampling import RandomSource, ResponseLaw


@dataclass(frozen=True)
class RandomizedResponse(FrequencyOracle):
    """k-ary randomized response (k-RR): the truth with some probability, otherwise any value.

    For k values (the paper's eq. krr)::

        P(z | x) = exp(epsilon) / (k - 1 + exp(epsilon))   if z = x
                   1 / (k - 1 + exp(epsilon))              otherwise

    Guarantee: epsilon-local differential privacy.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon, positive: smaller is more private.

    Examples
    --------
    >>> from hubbub.domains import Categories
    >>> RandomizedResponse(Categories(["yes", "no", "unsure"]), epsilon=math.log(2)).matrix()
    array([[0.5 , 0.25, 0.25],
           [0.25, 0.5 , 0.25],
           [0.25, 0.25, 0.5 ]])
    """

    domain: Domain
    epsilon: float

    def __post_init__(self) -> None:
        self._check()

    @property
    def support(self) -> Support:
        """An output points at itself."""
        # Dividing by exp(epsilon) keeps a large epsilon from overflowing.
        other = math.exp(-self.epsilon) / (1 + (len(self.domain) - 1) * math.exp(-self.epsilon))
        return Support(other * math.exp(self.epsilon), other)

    @property
    def outputs(self) -> Array:
        """The values of the domain."""
        return self.domain.labels

    @cached_property
    def output_space(self) -> OutputSpace:
        """The values of the domain."""
        return ValueOutputs(self.domain, "RandomizedResponse")

    def matrix(self) -> Floats:
        """Diagonal plus constant."""
        check_entries(len(self.domain), len(self.domain))
        matrix = np.full((len(self.domain), len(self.domain)), self.support.other)
        np.fill_diagonal(matrix, self.support.true)
        return matrix

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return a diagonal-plus-constant operator."""
        values = len(self.domain)
        if among is not None:
            place = np.full(values, -1, dtype=np.int64)
            place[among] = np.arange(among.size)
            codes, values = place[codes], among.size
        log_other = -self.epsilon - math.log1p((len(self.domain) - 1) * math.exp(-self.epsilon))
        return DiagonalPlusConstantChannel(values, codes, log_at=log_other + self.epsilon, log_elsewhere=log_other)

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return the two log-likelihoods, by the channel: they are never so far apart that exp loses one."""
        return self.encoded_channel(codes, among).log_dense()

    def support_counts(self, codes: Codes, counts: Floats) -> Floats:
        """Return the counts themselves: each output points at one value."""
        return np.bincount(codes, weights=counts, minlength=len(self.domain)).astype(np.float64)

    @cached_property
    def law(self) -> ResponseLaw:
        """The truth or any value, by whole numbers."""
        return ResponseLaw(len(self.domain), *response_parameters(len(self.domain), Fraction(self.epsilon)))

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Keep the truth with probability (e^eps - 1) / (k - 1 + e^eps), otherwise take any of the k values."""
        true, other = self.support
        kept = source.uniforms(positions.size) < true - other
        return np.where(kept, positions, source.integers(len(self.domain), positions.size))
