"""Windows that slide along a line with the value: Square Wave, and the piecewise mechanism for means."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from hubbub.channels import Channel, WindowChannel, check_entries
from hubbub.client import default_mean_reach, default_reach, response_parameters
from hubbub.core.arrays import Array, Codes, Floats, Positions, as_integer
from hubbub.core.errors import MechanismError
from hubbub.domains import Bins, Integers, LineDomain
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.mean_scores import Score
from hubbub.mechanisms.output_spaces import OutputSpace, RangeOutputs
from hubbub.mechanisms.parameters import check_domain, check_epsilon
from hubbub.sampling import RandomSource, SetResponseLaw

LINE_REMEDY = "use Integers or Bins; for unordered values there is RandomizedResponse, for a map PlanarGeometric"


class SlidingWindow(Mechanism):
    """Base of mechanisms whose outputs within a reach of the value are e^epsilon times as likely as all others.

    With k values and the reach b, there are k + 2b outputs, of which 2b + 1 are near any value::

        P(z | x) = e^epsilon / W  if |z - x| <= b,   1 / W  otherwise,   W = (2b + 1) e^epsilon + k - 1
    """

    domain: LineDomain
    epsilon: float
    reach: int | None
    full_support: ClassVar[bool] = True

    @abstractmethod
    def _best_reach(self) -> int:
        """Return the reach where none is given."""

    def _check(self) -> None:
        name = type(self).__name__
        check_domain(self.domain, (Integers, Bins), name, LINE_REMEDY)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon, name))
        where, values = f"{name}(reach=)", len(self.domain)
        number = self._best_reach() if self.reach is None else self.reach
        reach = as_integer(number, MechanismError, where=where, expected="a whole number")
        if not 0 <= reach <= values:
            what, expected = "reach is out of range", f"from 0 (randomized response) to {values}, the number of values"
            remedy = "leave reach out for the best one"
            raise MechanismError(what, where=where, got=reach, expected=expected, remedy=remedy)
        object.__setattr__(self, "reach", reach)

    @property
    def _reach(self) -> int:
        return int(self.reach or 0)

    @property
    def window(self) -> int:
        """The number of outputs near a value: 2 reach + 1."""
        return 2 * self._reach + 1

    @property
    def _first(self) -> int:
        """The first output."""
        return int(self.domain.labels[0]) - self._reach

    @property
    def outputs(self) -> Array:
        """The values, and `reach` whole numbers more on each side."""
        return np.arange(self._first, self._first + len(self.domain) + 2 * self._reach, dtype=np.int64)

    @cached_property
    def output_space(self) -> OutputSpace:
        """Whole numbers between two limits."""
        return RangeOutputs(self._first, self._first + len(self.domain) + 2 * self._reach - 1, type(self).__name__)

    @property
    def _log_near(self) -> float:
        """The log-probability of an output near the value."""
        return -math.log(self.window + (len(self.domain) - 1) * math.exp(-self.epsilon))

    def matrix(self) -> Floats:
        """Return P(z | x).

        Returns
        -------
        numpy.ndarray
            A row for each value of the domain, a column for each output.

        Raises
        ------
        ReportsError
            If the matrix does not fit in memory.
        """
        outputs = len(self.domain) + 2 * self._reach
        check_entries(len(self.domain), outputs)
        return np.exp(self.log_columns(np.arange(outputs)))

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return the log-probability of outputs near each value, and epsilon less of all others."""
        values = np.arange(len(self.domain)) if among is None else among
        away = codes[None, :] - values[:, None]
        return np.where((away >= 0) & (away < self.window), 0.0, -self.epsilon) + self._log_near

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return sums over sliding windows where a matrix would be large."""
        if not self.is_large(codes, among):
            return super().encoded_channel(codes, among)
        scale, low = np.full(codes.size, self._log_near), math.exp(-self.epsilon)
        return WindowChannel(codes, len(self.domain), width=self.window, low=low, log_scale=scale, among=among)

    @cached_property
    def law(self) -> SetResponseLaw:
        """Any output of the window, or any at all."""
        outputs, size = len(self.domain) + 2 * self._reach, self.window
        parameters = response_parameters(outputs, Fraction(self.epsilon), size)
        return SetResponseLaw(outputs, size, *parameters, member=np.add)

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Take any output of the window, or any at all."""
        outputs = len(self.domain) + 2 * self._reach
        kept = -math.expm1(-self.epsilon) * self.window * math.exp(self._log_near)
        near = positions + source.integers(self.window, positions.size)
        any_output = source.integers(outputs, positions.size)
        return np.where(source.uniforms(positions.size) < kept, near, any_output)

    def mean_score(self) -> Score | None:
        """Return the outputs, stretched from the middle of an evenly spaced line."""
        step = self.domain.step
        if step is None:
            return super().mean_score()
        middle = float(self.domain.places[0] + self.domain.places[-1]) / 2
        kept = -math.expm1(-self.epsilon) * self.window * math.exp(self._log_near)
        centre, stretch = (len(self.domain) + 2 * self._reach - 1) / 2, float(step) / kept
        return lambda codes: middle + stretch * (codes - centre)


@dataclass(frozen=True)
class SquareWave(SlidingWindow):
    """Square Wave: on a line, outputs near the value are e^epsilon times as likely as all others.

    With k values and the reach b, outputs are whole numbers from b before the first value to b beyond the last::

        P(z | x) = e^epsilon / W  if |z - x| <= b,   1 / W  otherwise,   W = (2b + 1) e^epsilon + k - 1

    where values and outputs are counted along the line: of `Bins`, whatever their widths, the number of the bin, so
    that outputs may be negative. By default b is the published one, of the wave from which outputs tell most::

        b = floor(k (epsilon - 1 + e^-epsilon) / (2 (e^epsilon - 1 - epsilon)))

    This is the form of Square Wave that puts values into bins first, so that its probabilities are exact.

    Guarantee: epsilon-local differential privacy, for any two values however far apart. Of the mechanisms with such a
    guarantee it is the one that uses the order of values; where near values need less protection, mechanisms on a
    metric such as `TruncatedGeometric` are more accurate.

    Parameters
    ----------
    domain
        The values: `Integers` or `Bins`.
    epsilon
        Plain epsilon, positive: smaller is more private.
    reach
        How far from the value an output is near: from 0, which is randomized response; None for the best one.

    Raises
    ------
    MechanismError
        If the domain is not `Integers` or `Bins`, epsilon is not between 1e-12 and 500, or the reach is not from 0 to
        the number of values.

    Examples
    --------
    >>> import hubbub as hb
    >>> wave = hb.SquareWave(hb.Integers(0, 23), epsilon=1.0)
    >>> wave.reach, wave.outputs[[0, -1]].tolist()
    (6, [-6, 29])
    >>> wave.privatize([8, 8, 17], rng=1)
    array([28, 23, 22])
    """

    domain: LineDomain
    epsilon: float
    reach: int | None = None

    def __post_init__(self) -> None:
        self._check()

    def _best_reach(self) -> int:
        return default_reach(len(self.domain), self.epsilon)


@dataclass(frozen=True)
class Piecewise(SlidingWindow):
    """The piecewise mechanism: a wave so wide that the mean of the outputs tells most about the mean of the values.

    It is `SquareWave` with another reach: windows are e^(-epsilon/2) of the line, as published for numbers between two
    limits. On an evenly spaced line the mean output of a value grows with the value in a straight line, so that the
    average of outputs, stretched, is an unbiased mean (`mean_score`, and `hb.mean`).

    It is made for means. The whole distribution can be estimated from its outputs, too, but less accurately than from
    those of `SquareWave`.

    Guarantee: epsilon-local differential privacy.

    Parameters
    ----------
    domain
        The values: `Integers`, or `Bins` of one width.
    epsilon
        Plain epsilon, positive: smaller is more private.
    reach
        How far from the value an output is near: from 0, which is randomized response; None for the best one.

    Raises
    ------
    MechanismError
        If the domain is not `Integers` or `Bins` of one width, epsilon is not between 1e-12 and 500, or the reach is
        not from 0 to the number of values.

    Examples
    --------
    >>> import hubbub as hb
    >>> hb.Piecewise(hb.Integers(0, 99), epsilon=1.0).reach
    30
    """

    domain: LineDomain
    epsilon: float
    reach: int | None = None

    def __post_init__(self) -> None:
        self._check()
        if self.domain.step is None:
            raise MechanismError(
                "the piecewise mechanism needs an evenly spaced line",
                where="Piecewise(domain)",
                got="bins of several widths",
                expected="Integers, or Bins of one width",
                remedy="use bins of one width, or SquareWave for the whole distribution",
            )

    def _best_reach(self) -> int:
        return default_mean_reach(len(self.domain), self.epsilon)
