"""Continuous Laplace noise on a line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from hubbub.channels import Channel, DecayChannel, DecayLine
from hubbub.client import EPSILON_SHRINK, line_noise, probability_width
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.domains import Bins, Integers, LineDomain
from hubbub.mechanisms.base import InDomainMechanism, check_table
from hubbub.mechanisms.exact_decay import DecayTable
from hubbub.mechanisms.parameters import check_domain, check_epsilon, check_exact
from hubbub.sampling import Law, LineNoiseLaw, RandomSource, TableLaw


@dataclass(frozen=True)
class Laplace(InDomainMechanism):
    """Continuous Laplace noise added to a value's place, then remapped to the nearest value.

    The noise t has density ``(epsilon / 2) exp(-epsilon |t|)``. P(z | x) is its integral over the points nearer to z
    than to any other value (for `Bins`: to the bin's centre); the first and the last value also collect everything
    beyond them. Remapping is post-processing.

    Guarantee: epsilon times the distance, for any two values.

    Parameters
    ----------
    domain
        The values, which are also the outputs: `Integers` or `Bins`.
    epsilon
        Epsilon per unit of distance, positive: smaller is more private.

    Raises
    ------
    MechanismError
        If the domain is not `Integers` or `Bins`, or epsilon is not between 1e-12 and 500.

    Examples
    --------
    >>> import hubbub as hb
    >>> hb.Laplace(hb.Bins([0, 10, 20, 40]), epsilon=0.1).matrix().round(3)
    array([[0.697, 0.216, 0.087],
           [0.303, 0.461, 0.236],
           [0.068, 0.169, 0.764]])
    """

    domain: LineDomain
    epsilon: float
    metric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_domain(self.domain, (Integers, Bins), "Laplace", "use Integers or Bins; for a map there is PlanarLaplace")
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon, "Laplace"))

    @property
    def _borders(self) -> Floats:
        """The points half-way between neighbours, where the nearest value changes."""
        places = self.domain.places
        return np.concatenate([[-np.inf], (places[:-1] + places[1:]) / 2, [np.inf]])

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return the log of the integral between two borders, from the side where it does not cancel."""
        places = self.domain.places if among is None else self.domain.places[among]
        left = self.epsilon * (self._borders[codes][None, :] - places[:, None])
        right = self.epsilon * (self._borders[codes + 1][None, :] - places[:, None])
        # An interval to the left of the value is the mirror image of one to the right.
        near = np.where(right <= 0, -right, left)
        far = np.where(right <= 0, -left, right)
        with np.errstate(invalid="ignore", over="ignore"):
            beside = -near + np.log(-np.expm1(-np.abs(far - near))) - np.log(2)
            around = np.log1p(-(np.exp(left) + np.exp(-right)) / 2)  # the value itself lies inside
        logs: Floats = np.where((left < 0) & (right > 0), around, beside)
        return logs

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return a decay along the line where a matrix would be large."""
        if not self.is_large(codes, among):
            return super().encoded_channel(codes, among)
        places, borders = self.domain.places, self._borders
        # Seen from a value on the left, an output's interval reaches from `near` before its place to `far` beyond it.
        near = self.epsilon * (places[codes] - borders[codes])
        far = self.epsilon * (borders[codes + 1] - places[codes])
        log_width = np.log(-np.expm1(-(near + far))) - np.log(2)
        line = DecayLine(
            places if among is None else places[among],
            places[codes],
            self.epsilon,
            log_left=np.where(np.isinf(near), -np.inf, near + log_width),  # nobody is left of the first
            log_own=np.log1p(-(np.exp(-near) + np.exp(-far)) / 2),
            log_right=np.where(np.isinf(far), -np.inf, far + log_width),
        )
        return DecayChannel(line, lambda patterns: self.log_columns(codes[patterns], among))

    @cached_property
    def law(self) -> Law:
        """Noise in whole numbers where the values are evenly spaced; otherwise a table with a row for each value."""
        places = [Fraction(place) for place in self.domain.places.tolist()]
        size, rate = len(places), Fraction(self.epsilon) * EPSILON_SHRINK
        step = self.domain.step
        if step is not None:
            check_exact(float(rate * step), float(rate * step), "Laplace")
            return LineNoiseLaw(line_noise(rate * step, rounded=True), size, 0, clamped=True)
        check_table(self, size, size)
        nearest = min(right - left for left, right in pairwise(places))
        check_exact(float(rate * nearest), float(rate * (places[-1] - places[0])), "Laplace")
        return self._rows(places, rate)

    def _rows(self, places: list[Fraction], rate: Fraction) -> TableLaw:
        """Return the integrals between borders as differences of exponentials; the value's own takes what is left."""
        size = len(places)
        points = sorted(places + [(left + right) / 2 for left, right in pairwise(places)])  # place, border, place, ...
        decays = DecayTable(points, rate)
        narrowest = float(rate * min(right - left for left, right in pairwise(points)))
        width = probability_width(
            float(rate * (places[-1] - places[0])) - math.log(-math.expm1(-narrowest)) + math.log(2 * size)
        )

        def row(own: int) -> list[int]:
            beyond = [decays.ratio(2 * own, 2 * place + 1, width) // 2 for place in range(own, size - 1)]
            before = [decays.ratio(2 * place + 1, 2 * own, width) // 2 for place in range(own)]
            right = [near - far for near, far in pairwise([*beyond, 0])]
            left = [near - far for far, near in pairwise([0, *before])]
            return [*left, (1 << width) - sum(beyond[:1]) - sum(before[-1:]), *right]

        return TableLaw(size, size, width, row)

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Add noise by inverting its distribution function, and look for the nearest value."""
        uniforms = source.positive_uniforms(positions.size)
        signs = np.where(source.words(positions.size) & np.uint64(1), 1.0, -1.0)
        points = self.domain.places[positions] - signs * np.log(uniforms) / self.epsilon
        return np.searchsorted(self._borders[1:-1], points, side="right").astype(np.int64)
