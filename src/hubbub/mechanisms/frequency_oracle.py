"""Frequency oracles: mechanisms whose outputs stand for sets of values (unary, hashed, subsets, codes, sketches, k-RR).

The likelihood of such an output takes two values over the domain: a high one for the values in its set and, e^epsilon
times smaller (e^log_ratio, where a mechanism has several epsilons), a low one for all others.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import BitSetChannel, Channel, prefers_matrix
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.domains import Domain
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.mean_scores import Score, support_score
from hubbub.mechanisms.parameters import DOMAIN_REMEDY, check_domain, check_epsilon


class Support(NamedTuple):
    """The probabilities that an output's set holds the true value, and any other value."""

    true: float
    other: float


class FrequencyOracle(Mechanism):
    """A mechanism with epsilon-local differential privacy whose outputs stand for sets of values."""

    full_support: ClassVar[bool] = True

    @property
    @abstractmethod
    def support(self) -> Support:
        """The two probabilities behind value-by-value inversion."""

    @abstractmethod
    def support_counts(self, codes: Codes, counts: Floats) -> Floats:
        """Return for each value the number of outputs whose set holds it."""

    def unbiased_shares(self, held: Floats, total: float) -> Floats:
        """Return unbiased shares of all values, from the numbers of outputs whose sets hold each.

        Parameters
        ----------
        held
            What `support_counts` returns.
        total
            The number of outputs.

        Returns
        -------
        numpy.ndarray
            Shares, which may be negative.
        """
        true, other = self.support
        return np.asarray((held / total - other) / (true - other))

    def share_variance(self, shares: Floats) -> Floats:
        """Return the variance of each unbiased share that follows from one output.

        Parameters
        ----------
        shares
            The true shares of some values.

        Returns
        -------
        numpy.ndarray
            A variance for each share.
        """
        true, other = self.support
        held = other + shares * (true - other)
        return np.asarray(held * (1.0 - held) / (true - other) ** 2)

    def null_variance(self, shares: Floats) -> Floats:
        """Return the variance of each unbiased share that follows from one output, if nobody held that value.

        Parameters
        ----------
        shares
            The shares of all values, as they are or as estimated: noise may depend on what others hold.

        Returns
        -------
        numpy.ndarray
            A variance for each value.
        """
        return np.broadcast_to(self.share_variance(np.zeros(1)), shares.shape)

    def _check(self) -> None:
        name = type(self).__name__
        check_domain(self.domain, Domain, name, DOMAIN_REMEDY)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon, name))


class SetValuedOracle(FrequencyOracle):
    """Outputs whose sets are any subsets of the domain: kept as packed bits."""

    @abstractmethod
    def sets(self, codes: Codes) -> NDArray[np.uint8]:
        """Return the set behind each output, as packed bits over the domain."""

    @property
    def log_ratio(self) -> float:
        """The log-likelihood of an output for values in its set, less that for all others."""
        return self.epsilon

    @abstractmethod
    def log_high(self, codes: Codes) -> Floats:
        """Return log P(output | a value in its set)."""

    def support_counts(self, codes: Codes, counts: Floats) -> Floats:
        """Add up the bits."""
        size, sets = len(self.domain), self.sets(codes)
        if prefers_matrix(size * len(codes)):
            return np.asarray(counts @ np.unpackbits(sets, axis=1, count=size))
        return BitSetChannel(sets, size, low=0.0, log_scale=np.zeros(len(codes))).holders(counts)

    def mean_score(self) -> Score | None:
        """Return the score that the two probabilities of `support` make unbiased."""
        places = self.domain.places
        return None if places is None else support_score(places, *self.support, self._set_sums)

    def _set_sums(self, codes: Codes, numbers: Floats) -> Floats:
        """Return for each output the sum of the numbers of the values in its set; `numbers` has one for each value."""
        size, sets = len(self.domain), self.sets(codes)
        if prefers_matrix(size * len(codes)):
            return np.asarray(np.unpackbits(sets, axis=1, count=size) @ numbers)
        return BitSetChannel(sets, size, low=0.0, log_scale=np.zeros(len(codes))).members(numbers)

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return the high log-likelihood for the values in each output's set, `log_ratio` less for the others."""
        inside = np.unpackbits(self.sets(codes), axis=1, count=len(self.domain)).astype(bool)
        chosen = inside if among is None else inside[:, among]
        return np.asarray(np.where(chosen, 0.0, -self.log_ratio).T + self.log_high(codes))

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return the packed sets as an operator; the full output space is never built."""
        if not self.is_large(codes, among):
            return super().encoded_channel(codes, among)
        low = math.exp(-self.log_ratio)
        return BitSetChannel(self.sets(codes), len(self.domain), low=low, log_scale=self.log_high(codes), among=among)
