"""Staircase noise: steps down as far apart as the line is long, for plain epsilon with the least noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from hubbub.channels import Channel, StairChannel
from hubbub.client import EPSILON_SHRINK, default_stair_reach, stair_noise, stair_reach
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.core.errors import MechanismError, shorten
from hubbub.domains import LineDomain
from hubbub.mechanisms.base import Mechanism, matrix_too_wide
from hubbub.mechanisms.geometric import MAX_LISTED_OUTPUTS, NEGLIGIBLE_TAIL_NATS
from hubbub.mechanisms.mean_scores import Score
from hubbub.mechanisms.output_spaces import IntegerOutputs, OutputSpace
from hubbub.mechanisms.parameters import (
    Probability,
    check_epsilon,
    check_even_line,
    check_probability,
    check_reach,
)
from hubbub.sampling import RandomSource, StaircaseLaw


@dataclass(frozen=True, init=False)
class Staircase(Mechanism):
    """The staircase mechanism: noise on all integers, flat for long and then e^epsilon times less likely.

    With k values the line is D = k - 1 steps long, and a noise of j steps has the probability::

        P(j) = a e^(-epsilon floor((|j| + D - r) / D)),   a = (1 - b) / ((2r - 1)(1 - b) + 2 D b),   b = e^-epsilon

    so that stairs begin at r, r + D, r + 2D, ... steps from the value. Noise is counted in steps along the line, and
    outputs are whole numbers, also beyond the values; of `Bins` they are counted as the numbers of the bins are.

    The default r is the one with the least variance, and so with the most precise mean. Outputs are unbiased for their
    values, which makes their average an unbiased mean (`hubbub.mean`).

    Guarantee: epsilon-local differential privacy, for any two values: moving by D steps passes one stair.

    Parameters
    ----------
    domain
        The values: `Integers`, or `Bins` of one width.
    epsilon
        Plain epsilon, positive: smaller is more private.
    gamma
        r as a share of D, above 0 and at most 1: r is gamma D, rounded up. It is taken as it is written, 0.3 or "1/3".
        None for the r with the least variance.

    Raises
    ------
    MechanismError
        If the domain is not `Integers` or `Bins` of one width, epsilon is not between 1e-12 and 500, or gamma not above
        0 and at most 1.

    Examples
    --------
    >>> import hubbub as hb
    >>> noisy = hb.Staircase(hb.Integers(0, 10), epsilon=2.0)
    >>> noisy.gamma, noisy.reach  # the value and 3 steps on each side are likeliest
    (Fraction(2, 5), 3)
    >>> noisy.privatize([3, 4, 5], rng=1)
    array([4, 8, 5])
    """

    domain: LineDomain
    epsilon: float
    gamma: Fraction
    full_support: ClassVar[bool] = True

    def __init__(self, domain: LineDomain, epsilon: float, gamma: Probability | None = None) -> None:
        check_even_line(domain, "Staircase")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", check_epsilon(epsilon, "Staircase"))
        share = None if gamma is None else check_probability(gamma, "Staircase", "gamma")
        if share == 0:
            raise MechanismError(
                "gamma is out of range",
                where="Staircase(gamma=)",
                got=shorten(gamma),
                expected="above 0, and at most 1",
                remedy="leave gamma out for the noise with the least variance",
            )
        values = len(domain)
        reach = default_stair_reach(values, self.epsilon) if share is None else stair_reach(values, share)
        object.__setattr__(self, "gamma", Fraction(reach + 1, values - 1))  # equal noise, equal mechanisms

    @property
    def reach(self) -> int:
        """How many steps from the value outputs are as likely as the value itself: r - 1."""
        return int(self.gamma * self._stair) - 1

    @property
    def _stair(self) -> int:
        """The places of a stair on one side, D."""
        return len(self.domain) - 1

    @property
    def _low(self) -> int:
        return int(self.domain.labels[0])

    @property
    def _log_top(self) -> float:
        """The log-probability of an output as likely as the value itself."""
        decay, rest = math.exp(-self.epsilon), -math.expm1(-self.epsilon)
        return math.log(rest) - math.log((2 * self.reach + 1) * rest + 2 * self._stair * decay)

    @property
    def _listed_stairs(self) -> int:
        """Beyond how many stairs less than 1e-14 of the probability lies."""
        return math.ceil(NEGLIGIBLE_TAIL_NATS / self.epsilon)

    @property
    def outputs(self) -> Array | None:
        """The integers around the domain (others are possible, at less than 1e-14); None where they are too many."""
        far = self.reach + self._listed_stairs * self._stair
        if 2 * far + len(self.domain) > MAX_LISTED_OUTPUTS:
            return None
        return np.arange(self._low - far, self._low + len(self.domain) + far, dtype=np.int64)

    @cached_property
    def output_space(self) -> OutputSpace:
        """Any integer."""
        return IntegerOutputs("Staircase")

    def matrix(self) -> Floats:
        """Return P(z | x) for the integers in `outputs`.

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
            raise matrix_too_wide("Staircase", "more than 1,000,000")
        return np.exp(self.log_columns(outputs))

    def stairs_down(self, steps: Positions) -> Positions:
        """Return how many stairs lie between a value and outputs so many steps away.

        Parameters
        ----------
        steps
            Whole numbers, of any sign.

        Returns
        -------
        numpy.ndarray
            The stair of each: 0 up to `reach` steps.
        """
        return np.asarray((np.abs(steps) + (self._stair - 1 - self.reach)) // self._stair)

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return the log-probability of the value itself, less epsilon for each stair."""
        values = np.arange(len(self.domain)) if among is None else among
        away = (codes - self._low)[None, :] - values[:, None]
        return np.asarray(self._log_top - self.epsilon * self.stairs_down(away))

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return sums over intervals of values where a matrix would be large."""
        if not self.is_large(codes, among):
            return super().encoded_channel(codes, among)
        size, steps = len(self.domain), codes - self._low
        beyond = np.maximum(np.maximum(-steps, steps - self._stair), 0)  # steps to the nearest value
        stairs = self.stairs_down(beyond)
        ends = self.reach + stairs * self._stair  # what is likelier lies within so many steps
        return StairChannel(
            np.maximum(steps - ends, 0),
            np.minimum(steps + ends + 1, size),
            size,
            width=2 * self.reach + 1,
            low=math.exp(-self.epsilon),
            log_scale=np.asarray(self._log_top - self.epsilon * stairs, dtype=np.float64),
            among=among,
        )

    def folded_outputs(self) -> tuple[Codes, Floats]:
        """Return outputs that stand for all: two stairs beyond the line say what those further out say, too.

        Returns
        -------
        tuple of numpy.ndarray
            Encoded outputs, increasing by 1, and the logarithm of a factor for each: the probability of all outputs
            that it stands for, over its own.
        """
        far = self.reach + self._stair
        codes = np.arange(self._low - far, self._low + len(self.domain) + far, dtype=np.int64)
        steps = codes - self._low
        outside = (steps < -self.reach) | (steps > self._stair + self.reach)
        return codes, np.where(outside, -math.log(-math.expm1(-self.epsilon)), 0.0)

    def fold(self, codes: Codes) -> Codes:
        """Return which of `folded_outputs` stands for each output.

        Parameters
        ----------
        codes
            Encoded outputs.

        Returns
        -------
        numpy.ndarray
            Encoded outputs, with the same likelihoods up to a factor.
        """
        steps = codes - self._low
        beyond = np.maximum(np.maximum(-steps, steps - self._stair), 0)
        back = np.maximum(self.stairs_down(beyond) - 1, 0) * self._stair
        return np.asarray(codes - np.sign(steps) * back)

    @cached_property
    def law(self) -> StaircaseLaw:
        """A stair, and any of its places."""
        check_reach(self.epsilon, "Staircase")
        stairs = stair_noise(Fraction(self.epsilon) * EPSILON_SHRINK, self.reach, self._stair)
        return StaircaseLaw(stairs, self.reach, len(self.domain), self._low)

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Draw a stair by floats, and any of its places."""
        count = positions.size
        centre = (2 * self.reach + 1) * math.exp(self._log_top)
        outside = source.uniforms(count) >= centre
        gone = np.floor(np.log(source.positive_uniforms(count)) / -self.epsilon).astype(np.int64)
        beyond = self.reach + 1 + gone * self._stair + source.integers(self._stair, count)
        signs = np.where(source.uniforms(count) < 0.5, -1, 1)
        near = source.integers(2 * self.reach + 1, count) - self.reach
        return np.asarray(positions + self._low + np.where(outside, signs * beyond, near))

    def mean_score(self) -> Score:
        """Return the outputs themselves: the noise is symmetric."""
        first, step = float(self.domain.places[0]), float(self.domain.step or 1)
        return lambda codes: first + step * (codes - self._low)
