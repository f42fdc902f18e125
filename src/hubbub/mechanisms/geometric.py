"""Geometric noise on whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from hubbub.channels import Channel, DecayChannel, DecayLine
from hubbub.client import EPSILON_SHRINK, line_noise
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.domains import Integers
from hubbub.mechanisms.base import InDomainMechanism, Mechanism, matrix_too_wide
from hubbub.mechanisms.mean_scores import Score
from hubbub.mechanisms.output_spaces import IntegerOutputs, OutputSpace
from hubbub.mechanisms.parameters import check_domain, check_epsilon, check_reach
from hubbub.sampling import LineNoiseLaw, RandomSource, two_sided_geometric

INTEGERS_REMEDY = "use Integers(low, high); for Bins there is Laplace, for a map PlanarGeometric"
NEGLIGIBLE_TAIL_NATS = 32.23619130191664  # `Geometric.outputs` may leave out a probability of 1e-14 on each side
MAX_LISTED_OUTPUTS = 1_000_000


@dataclass(frozen=True)
class Geometric(Mechanism):
    """The linear geometric mechanism: outputs on all integers.

    The paper's eq. geometric::

        P(z | y) = c exp(-epsilon |z - y|),   c = (1 - exp(-epsilon)) / (1 + exp(-epsilon))

    Guarantee: epsilon times ``|y - y'|`` for any two values (epsilon-differential privacy on the line's metric).

    `outputs` and `matrix` list the integers near the domain, all but 1e-14 of the probability on each side;
    `channel` and reports take any integer.

    Parameters
    ----------
    domain
        The values: `Integers`.
    epsilon
        Epsilon per unit of distance, positive: smaller is more private.

    Raises
    ------
    MechanismError
        If the domain is not `Integers`, or epsilon is not between 1e-12 and 500.

    Examples
    --------
    >>> import hubbub as hb
    >>> noisy = hb.Geometric(hb.Integers(0, 9), epsilon=1.0)
    >>> noisy.privatize([3, 4, 5], rng=1)
    array([1, 7, 5])
    """

    domain: Integers
    epsilon: float
    metric: ClassVar[bool] = True
    full_support: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_domain(self.domain, Integers, "Geometric", INTEGERS_REMEDY)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon, "Geometric"))

    @property
    def outputs(self) -> Array | None:
        """The integers around the domain (others are possible, at less than 1e-14); None where they are too many."""
        reach = self._reach
        if 2 * reach + len(self.domain) > MAX_LISTED_OUTPUTS:
            return None
        return np.arange(self.domain.low - reach, self.domain.high + reach + 1, dtype=np.int64)

    @cached_property
    def output_space(self) -> OutputSpace:
        """Any integer."""
        return IntegerOutputs("Geometric")

    @property
    def _reach(self) -> int:
        """How far beyond the domain `outputs` reach: all but a negligible part of the probability."""
        return math.ceil(NEGLIGIBLE_TAIL_NATS / self.epsilon)

    def matrix(self) -> Floats:
        """Return P(z | y) for the integers in `outputs`.

        Returns
        -------
        numpy.ndarray
            A row for each value of the domain, a column for each output.

        Raises
        ------
        MechanismError
            If these integers are more than 1,000,000.
        """
        outputs = self.outputs
        if outputs is None:
            raise matrix_too_wide("Geometric", f"{2 * self._reach + len(self.domain):,}")
        return np.exp(self.log_columns(outputs))

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return log c - epsilon |z - y|."""
        values = self.domain.labels if among is None else self.domain.labels[among]
        return _log_factor(self.epsilon) - self.epsilon * np.abs(values[:, None].astype(np.float64) - codes[None, :])

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return a decay along the line where a matrix would be large."""
        if not self.is_large(codes, among):
            return super().encoded_channel(codes, among)
        values = self.domain.labels if among is None else self.domain.labels[among]
        flat = np.full(codes.size, _log_factor(self.epsilon))
        line = DecayLine(values.astype(np.float64), codes.astype(np.float64), self.epsilon, flat, flat, flat)
        return DecayChannel(line, lambda patterns: self.log_columns(codes[patterns], among))

    @cached_property
    def law(self) -> LineNoiseLaw:
        """Noise in whole numbers, anywhere on the line."""
        check_reach(self.epsilon, "Geometric")
        return LineNoiseLaw(
            line_noise(Fraction(self.epsilon) * EPSILON_SHRINK), len(self.domain), self.domain.low, clamped=False
        )

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Add two-sided geometric noise."""
        return self.domain.labels[positions] + two_sided_geometric(self.epsilon, positions.size, source)

    def mean_score(self) -> Score:
        """Return the outputs themselves: the noise is symmetric."""
        return lambda codes: codes.astype(np.float64)


@dataclass(frozen=True)
class TruncatedGeometric(InDomainMechanism):
    """The geometric mechanism with outputs clamped to the domain r1..r2.

    The paper's eq. tgeometric and tgeom-cz::

        P(z | y) = c_z exp(-epsilon |z - y|),   c_z = 1 / (1 + exp(-epsilon))                          at r1, r2
                                                      (1 - exp(-epsilon)) / (1 + exp(-epsilon))        between

    Clamping is post-processing. Guarantee: epsilon times ``|y - y'|`` for any two values.

    Parameters
    ----------
    domain
        The values, which are also the outputs: `Integers`.
    epsilon
        Epsilon per unit of distance, positive: smaller is more private.

    Raises
    ------
    MechanismError
        If the domain is not `Integers`, or epsilon is not between 1e-12 and 500.

    Examples
    --------
    >>> import math
    >>> import hubbub as hb
    >>> hb.TruncatedGeometric(hb.Integers(0, 2), epsilon=math.log(2)).matrix()
    array([[0.66666667, 0.16666667, 0.16666667],
           [0.33333333, 0.33333333, 0.33333333],
           [0.16666667, 0.16666667, 0.66666667]])
    """

    domain: Integers
    epsilon: float
    metric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_domain(self.domain, Integers, "TruncatedGeometric", INTEGERS_REMEDY)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon, "TruncatedGeometric"))

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return log c_z - epsilon |z - y|."""
        values = np.arange(len(self.domain)) if among is None else among
        logs: Floats = self._log_factors(codes) - self.epsilon * np.abs(values[:, None] - codes[None, :])
        return logs

    def _log_factors(self, codes: Codes) -> Floats:
        """Return log c_z."""
        at_end = (codes == 0) | (codes == len(self.domain) - 1)
        return np.where(at_end, -math.log1p(math.exp(-self.epsilon)), _log_factor(self.epsilon))

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return a decay along the line where a matrix would be large."""
        if not self.is_large(codes, among):
            return super().encoded_channel(codes, among)
        values = np.arange(len(self.domain)) if among is None else among
        factors = self._log_factors(codes)
        line = DecayLine(values.astype(np.float64), codes.astype(np.float64), self.epsilon, factors, factors, factors)
        return DecayChannel(line, lambda patterns: self.log_columns(codes[patterns], among))

    @cached_property
    def law(self) -> LineNoiseLaw:
        """Noise in whole numbers, clamped."""
        return LineNoiseLaw(line_noise(Fraction(self.epsilon) * EPSILON_SHRINK), len(self.domain), 0, clamped=True)

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Add two-sided geometric noise and clamp."""
        line_noise = two_sided_geometric(self.epsilon, positions.size, source)
        clamped: Positions = np.clip(positions + line_noise, 0, len(self.domain) - 1)
        return clamped

    def mean_score(self) -> Score:
        """Return the outputs, and for both ends the mean of all noise that they collect, the same for all values."""
        places = self.domain.places
        beyond = 1.0 / math.expm1(self.epsilon)  # how far, on average, geometric noise goes beyond an end
        places[0], places[-1] = places[0] - beyond, places[-1] + beyond
        return lambda codes: places[codes]


def _log_factor(epsilon: float) -> float:
    """Return log (1 - exp(-epsilon)) / (1 + exp(-epsilon))."""
    return math.log(-math.expm1(-epsilon)) - math.log1p(math.exp(-epsilon))
