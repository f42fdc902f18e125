"""Likelihoods that decay exponentially along a line: geometric, Laplace and exponential mechanisms, in O(values).

Values are at places p_1 < p_2 < ... and pattern i at o_i. With d the distance between them,

    g[x, i] = row[x] * (left[i] exp(-rate d)   for values to the left of o_i,
                        own[i]                 for the value at o_i, if there is one,
                        right[i] exp(-rate d)  for values to the right).

Sums of exp(-rate d) over all values on one side follow from those at the neighbouring value, so that one sweep in each
direction gives them all, as sums of positive numbers: no digit is lost, however small a likelihood is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hubbub.channels.base import Channel, LogColumns, line_maxima
from hubbub.channels.rounding import UNDERFLOW_NATS, RoundingBound, entry_error, gamma
from hubbub.core.arrays import Floats, Positions, frozen


@dataclass(frozen=True)
class DecayLine:
    """The places of values and patterns, and how likelihoods decay between them; logarithms throughout."""

    places: Floats  # of the values, rising
    outputs: Floats  # of the patterns
    rate: float
    log_left: Floats
    log_own: Floats
    log_right: Floats
    log_rows: Floats | None = None  # a factor of each value


@dataclass(frozen=True)
class TridiagonalForm:
    """theta = u T and f = u B for matrices with three diagonals each; u are the sums over both sides of a value.

    Both are kept as three columns: what u before, at and after a place contribute. `centre` is the place of the
    middle column of B, for each pattern.
    """

    theta: Floats  # values by 3
    fitted: Floats  # patterns by 3
    centre: Positions


class DecayChannel(Channel):
    """Likelihoods that decay exponentially along a line."""

    def __init__(self, line: DecayLine, log_columns: LogColumns, log_scale: Floats | None = None) -> None:
        self.values, self.patterns = line.places.size, line.outputs.size
        self._log_columns = log_columns
        self._line = line
        last = np.searchsorted(line.places, line.outputs, side="left") - 1  # the nearest value on the left, or -1
        first = np.searchsorted(line.places, line.outputs, side="right")  # the nearest on the right, or `values`
        self._last, self._first = last, first
        self._at = np.where(first - last == 2, last + 1, -1)  # the value at the same place, or -1
        padded = np.concatenate([[-np.inf], line.places, [np.inf]])
        logs = np.stack(
            [
                line.log_left - line.rate * (line.outputs - padded[last + 1]),
                np.where(self._at >= 0, line.log_own, -np.inf),
                line.log_right - line.rate * (padded[first + 1] - line.outputs),
            ]
        )
        self.log_scale = frozen(logs.max(axis=0) if log_scale is None else log_scale)
        self._left, self._own, self._right = np.exp(logs - self.log_scale)
        self._decay = np.exp(-line.rate * np.diff(line.places))
        self._log_rows = np.zeros(self.values) if line.log_rows is None else line.log_rows
        self._row = np.exp(self._log_rows)

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        line = self._line
        away = line.outputs[None, :] - line.places[positions, None]
        side = np.where(away > 0, line.log_left, line.log_right) - line.rate * np.abs(away)
        logs = np.where(away == 0, line.log_own, side) + self._log_rows[positions, None]
        return np.exp(logs - self.log_scale)

    def part(self, positions: Positions) -> Channel:
        """Return the same decay between fewer values."""
        line = self._line
        rows = None if line.log_rows is None else line.log_rows[positions]
        few = replace(line, places=line.places[positions], log_rows=rows)
        return DecayChannel(few, lambda patterns: self.log_columns(patterns)[positions], self.log_scale)

    @property
    def local(self) -> bool:
        """Neighbouring values have similar likelihoods."""
        return True

    def local_maxima(self, scores: Floats) -> Positions:
        """Return the values whose score neither neighbour exceeds."""
        return line_maxima(scores)

    def log_columns(self, patterns: Positions) -> Floats:
        """Return log g from the mechanism, also where exp has flushed it to 0."""
        return self._log_columns(patterns)

    def forward(self, theta: Floats) -> Floats:
        """Return theta @ stored."""
        from hubbub.channels.compiled_loops import decayed_sums

        batch = np.atleast_2d(theta.reshape(-1, self.values)) * self._row
        up, on = decayed_sums(batch, self._decay)
        # An index of -1 or `values` goes with a factor of 0.
        fitted = self._left * up[:, self._last] + self._right * on[:, self._first % self.values]
        fitted += self._own * batch[:, self._at]
        return np.reshape(fitted, (*theta.shape[:-1], self.patterns))

    def backward(self, ratio: Floats) -> Floats:
        """Return stored @ ratio."""
        batch = np.atleast_2d(ratio.reshape(-1, self.patterns))
        return np.reshape(self._spread(batch, 1), (*ratio.shape[:-1], self.values))

    def forward_rounding(self, theta: Floats, fitted: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the bound for the longest distance over which anything remains."""
        return RoundingBound(gamma(self._operations))

    def backward_rounding(self, ratio: Floats) -> RoundingBound:  # noqa: ARG002
        """Return the same bound, and one addition for each pattern at a place."""
        counts = [np.bincount(places % self.values).max(initial=1) for places in (self._last, self._first, self._at)]
        return RoundingBound(gamma(self._operations + float(max(counts))))

    @cached_property
    def _operations(self) -> float:
        """Two for each step, three more for the steps' own factors, and what rounding does to the exponents.

        Beyond the steps that together underflow, nothing is left to be rounded.
        """
        steps = self._line.rate * np.diff(self._line.places)
        least = float(steps.min(initial=math.inf))
        longest = min(float(self.values), UNDERFLOW_NATS / least + 1.0 if least > 0.0 else math.inf)
        return 5.0 * longest + 4.0 * min(float(steps.sum()), UNDERFLOW_NATS) + 16.0

    @property
    def entry_rounding(self) -> float:
        """From how far likelihoods fade along the whole line."""
        fading = self._line.rate * float(np.ptp(self._line.places)) + float(np.ptp(self._log_rows))
        return entry_error(float(np.abs(self.log_scale).max(initial=0.0)) + min(fading, UNDERFLOW_NATS))

    def squares(self, weights: Floats) -> Floats:
        """Return (stored squared) @ weights."""
        return np.asarray(self._spread(weights[None, :], 2)[0])

    def _spread(self, batch: Floats, power: int) -> Floats:
        from hubbub.channels.compiled_loops import decayed_sums

        def collect(factor: Floats, places: Positions) -> Floats:
            sums = np.zeros((batch.shape[0], self.values))
            for row, weights in enumerate(batch):
                sums[row] = np.bincount(places, weights=weights * factor**power, minlength=self.values)
            return sums

        decay = self._decay**power
        from_right = decayed_sums(collect(self._left, self._last % self.values), decay)[1]
        from_left = decayed_sums(collect(self._right, self._first % self.values), decay)[0]
        gathered = from_right + from_left + collect(self._own, self._at % self.values)
        return np.asarray(gathered * self._row**power)

    @cached_property
    def tridiagonal_form(self) -> TridiagonalForm | None:
        """The channel as a quotient of two matrices with three diagonals each; None where places almost coincide.

        With P_j the sum over the values up to j, S_j from j on, both fading with the distance, and u_j = P_j + S_j less
        the value's own share (counted twice), the definitions give, with e_j the decay from j to j + 1,

            P_j = (u_j - e_j u_{j+1}) / (1 - e_j^2),   S_{j+1} = (u_{j+1} - e_j u_j) / (1 - e_j^2),

        and P = u after the last, S = u before the first value: all of theta and f follow from u's neighbours.
        """
        size = self.values
        steps = self._line.rate * np.diff(self._line.places)
        if size < 2 or steps.min() < 1e-6:
            return None
        decay, spread = self._decay, -np.expm1(-2 * steps)  # 1 - e^2 without cancelling
        up, on = np.zeros((size, 3)), np.zeros((size, 3))  # P and S, from u before, at and after each place
        up[:, 1], on[:, 1] = 1.0, 1.0
        up[:-1, 1], up[:-1, 2] = 1 / spread, -decay / spread
        on[1:, 1], on[1:, 0] = 1 / spread, -decay / spread
        theta = up + on
        # P + S - u: written so that the difference of two numbers near 1 / (2 step) is not one of nearly equal ones
        inner = np.zeros(size)
        inner[:-1] += decay**2 / spread
        inner[1:] += decay**2 / spread
        theta[:, 1] = 1.0 + inner
        centre = np.where(self._at >= 0, self._at, np.clip(self._last, 0, size - 1))
        fitted = np.zeros((self.patterns, 3))
        for factor, source, table in (
            (self._left, self._last, up),
            (self._own, self._at, theta),
            (self._right, self._first % size, on),
        ):
            for place in range(3):  # the entries of `table` at `source`, moved to stand around `centre`
                column = source + place - centre
                good = (factor > 0) & (column >= 0) & (column <= 2)
                np.add.at(fitted, (np.flatnonzero(good), column[good]), factor[good] * table[source[good], place])
                beyond = (factor > 0) & ~good & (table[source, place] != 0)
                if beyond.any():
                    return None
        return TridiagonalForm(theta / self._row[:, None], fitted, centre)
