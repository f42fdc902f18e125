"""Randomized response over any number of values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from hubbub.channels import Channel, DiagonalPlusConstantChannel, check_entries
from hubbub.client import kept_truth, response_parameters
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.core.errors import MechanismError, shorten
from hubbub.domains import Domain
from hubbub.mechanisms.frequency_oracle import FrequencyOracle, Support
from hubbub.mechanisms.mean_scores import Score, support_score
from hubbub.mechanisms.output_spaces import OutputSpace, value_outputs
from hubbub.mechanisms.parameters import (
    DOMAIN_REMEDY,
    Probability,
    check_domain,
    check_epsilon,
    check_probability,
    check_ratio,
)
from hubbub.sampling import FractionResponseLaw, RandomSource, ResponseLaw


@dataclass(frozen=True)
class RandomizedResponse(FrequencyOracle):
    """k-ary randomized response (k-RR): the truth with some probability, otherwise any value.

    For k values (the paper's eq. krr)::

        P(z | x) = exp(epsilon) / (k - 1 + exp(epsilon))   if z = x
                   1 / (k - 1 + exp(epsilon))              otherwise

    Surveys state p = P(x | x) instead, the others sharing 1 - p equally; then epsilon = log(p (k - 1) / (1 - p)).

    Guarantee: epsilon-local differential privacy.

    A mechanism given by p equals none that is given by epsilon, because no float is the logarithm of a fraction.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon, positive: smaller is more private.
    p
        Instead of epsilon: the probability that the true value is sent, above 1/k and below 1. Real reports have
        exactly the p that is written: 0.7 is 7/10, and Fraction(2, 3) or "2/3" is two thirds.

    Raises
    ------
    MechanismError
        If epsilon is not between 1e-12 and 500, or p not between 1/k and 1; also if both or neither are given.

    Examples
    --------
    >>> import math
    >>> import hubbub as hb
    >>> answers = hb.Categories(["yes", "no", "unsure"])
    >>> hb.RandomizedResponse(answers, epsilon=math.log(2)).matrix()
    array([[0.5 , 0.25, 0.25],
           [0.25, 0.5 , 0.25],
           [0.25, 0.25, 0.5 ]])
    >>> hb.RandomizedResponse(hb.Categories(["yes", "no"]), p=0.75).epsilon
    1.0986122886681098
    """

    domain: Domain
    epsilon: float
    p: Fraction | None = None

    def __init__(self, domain: Domain, epsilon: float | None = None, *, p: Probability | None = None) -> None:
        check_domain(domain, Domain, "RandomizedResponse", DOMAIN_REMEDY)
        object.__setattr__(self, "domain", domain)
        if p is None and epsilon is not None:
            object.__setattr__(self, "epsilon", check_epsilon(epsilon, "RandomizedResponse"))
            return  # without a p of its own: keys and pickles are those of earlier versions
        if p is None or epsilon is not None:
            raise MechanismError(
                "randomized response takes either epsilon or p",
                where="RandomizedResponse(epsilon=, p=)",
                got="neither" if p is None else "both",
                expected="exactly one of them",
                remedy="state p, the probability that the true value is sent, or the epsilon that follows from it",
            )
        size, fraction = len(domain), check_probability(p, "RandomizedResponse", "p")
        if not Fraction(1, size) < fraction < 1:
            raise MechanismError(
                "p leaves nothing to learn, or nothing to hide",
                where="RandomizedResponse(p=)",
                got=shorten(p),
                expected=f"above 1/{size}, which is what guessing has, and below 1",
                remedy="state the probability that the true value is sent",
            )
        object.__setattr__(self, "p", fraction)
        ratio = fraction * (size - 1) / (1 - fraction)
        object.__setattr__(self, "epsilon", check_ratio(ratio, "RandomizedResponse(p=)"))

    def __repr__(self) -> str:
        given = f"epsilon={self.epsilon!r}" if self.p is None else f"p={self.p!r}"
        return f"RandomizedResponse(domain={self.domain!r}, {given})"

    @property
    def log_ratio(self) -> float:
        """The log-likelihood of an output for its own value, less that for another one."""
        return self.epsilon

    @property
    def support(self) -> Support:
        """An output points at itself."""
        if self.p is not None:
            return Support(float(self.p), float((1 - self.p) / (len(self.domain) - 1)))
        # Dividing by the exponential keeps a large one from overflowing.
        other = math.exp(-self.log_ratio) / (1 + (len(self.domain) - 1) * math.exp(-self.log_ratio))
        return Support(other * math.exp(self.log_ratio), other)

    @property
    def outputs(self) -> Array:
        """The values of the domain."""
        return self.domain.labels

    @cached_property
    def output_space(self) -> OutputSpace:
        """The values of the domain."""
        return value_outputs(self.domain, type(self).__name__)

    def matrix(self) -> Floats:
        """Return P(z | x): one probability on the diagonal, one elsewhere.

        Returns
        -------
        numpy.ndarray
            A row for each value of the domain, a column for each output.

        Raises
        ------
        ReportsError
            If the matrix does not fit in memory.
        """
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
        log_other = -self.log_ratio - math.log1p((len(self.domain) - 1) * math.exp(-self.log_ratio))
        log_at = log_other + self.log_ratio
        if self.p is not None:
            log_at, log_other = (math.log(chance) for chance in self.support)
        return DiagonalPlusConstantChannel(values, codes, log_at=log_at, log_elsewhere=log_other)

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return the two log-likelihoods, by the channel: they are never so far apart that exp loses one."""
        return self.encoded_channel(codes, among).log_dense()

    def support_counts(self, codes: Codes, counts: Floats) -> Floats:
        """Return the counts themselves: each output points at one value."""
        return np.bincount(codes, weights=counts, minlength=len(self.domain)).astype(np.float64)

    def mean_score(self) -> Score | None:
        """Return the outputs, stretched from the middle of all values."""
        places = self.domain.places
        if places is None:
            return None
        return support_score(places, *self.support, lambda codes, numbers: numbers[codes])

    @cached_property
    def law(self) -> ResponseLaw | FractionResponseLaw:
        """The truth or any value, by whole numbers."""
        if self.p is not None:
            return FractionResponseLaw(len(self.domain), kept_truth(len(self.domain), self.p))
        return ResponseLaw(len(self.domain), *response_parameters(len(self.domain), Fraction(self.epsilon)))

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Keep the truth with probability (e^eps - 1) / (k - 1 + e^eps), otherwise take any of the k values."""
        true, other = self.support
        kept = source.uniforms(positions.size) < true - other
        return np.where(kept, positions, source.integers(len(self.domain), positions.size))
