"""Exact intervals of the simplest study: two values, one mechanism with two outputs, and not too many users.

The number of users who sent the first output is binomial. With few users it takes few values, and the law of the
deviance is not that of chi-square: with 20 users and a truth of 10%, intervals by chi-square can hold it in 89% of all
studies. But all its values can be listed. A share t is in the interval if at least 1 - level of all studies of t
would have a deviance at t as large as this one has. Whatever the true share is, the interval holds it with at least
probability `level`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.serialization import Portable
from hubbub.reports import Reports, Singles

MAX_USERS = 1_000  # beyond, chi-square is exact enough: 94.6% at least
GRID_STEPS = 1_000  # of the share of the first value
BISECTIONS = 30  # of a step of the grid, in search of an endpoint
SAME = 1e-9  # deviances that differ by less are equal
EXACT_NOTE = "Exact: all numbers of answers that {users:,} users can give were enumerated."


@dataclass(frozen=True, eq=False)
class TwoOutputs(Portable):
    """A study with two values and two outputs: how likely each value makes the first output, and who sent it."""

    chances: Floats
    users: int
    count: int

    @classmethod
    def of(cls, reports: Reports) -> TwoOutputs | None:
        """Return the study if it is of this kind; None otherwise."""
        is_small = len(reports.domain) == 2 and len(reports.blocks) == 1 and reports.users <= MAX_USERS
        if not is_small or reports.survey is not None:
            return None
        block = reports.blocks[0]
        if not isinstance(block, Singles) or block.mechanism.outputs is None or len(block.mechanism.outputs) != 2:
            return None
        codes = block.mechanism.output_space.encode(block.mechanism.outputs)
        chances = np.exp(block.mechanism.encoded_channel(codes, reports.domain.among).log_columns(np.array([0])))[:, 0]
        sent = block.weights[(block.codes == codes[0]).reshape(len(block.codes), -1).all(axis=1)]
        if chances[0] == chances[1]:
            return None  # the reports say nothing
        return cls(chances, reports.users, int(sent.sum()))

    def shares(self, level: float) -> tuple[float, float]:
        """Return the lowest and the highest share of the first value that these reports leave open."""
        grid = np.linspace(0.0, 1.0, GRID_STEPS + 1)
        possible = np.flatnonzero(self.tail(grid) > 1.0 - level)
        likeliest = float(
            np.clip((self.count / self.users - self.chances[1]) / np.diff(self.chances[::-1])[0], 0.0, 1.0)
        )
        inside_low = min(likeliest, float(grid[possible[0]])) if possible.size else likeliest
        inside_high = max(likeliest, float(grid[possible[-1]])) if possible.size else likeliest
        step = 1.0 / GRID_STEPS
        low = self._border(inside_low, max(0.0, inside_low - step), level)
        return low, self._border(inside_high, min(1.0, inside_high + step), level)

    def _border(self, inside: float, outside: float, level: float) -> float:
        """Return where the tail falls to 1 - level, between a share that is open and one that may not be."""
        if self.tail(np.array([outside]))[0] > 1.0 - level:
            return outside
        for _ in range(BISECTIONS):
            middle = (inside + outside) / 2.0
            inside, outside = (middle, outside) if self.tail(np.array([middle]))[0] > 1.0 - level else (inside, middle)
        return outside

    def tail(self, shares: Floats) -> Floats:
        """Return for each share of the first value the probability of a deviance at least as large as this study's."""
        from scipy.special import xlog1py, xlogy

        first = self.chances[1] + (self.chances[0] - self.chances[1]) * shares[:, None]
        counts = np.arange(self.users + 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = xlogy(counts, first) + xlog1py(self.users - counts, -first)
        deviances = self._largest_logs - logs  # half of them, to be precise
        deviances[np.isnan(deviances)] = 0.0
        beyond = deviances >= deviances[:, [self.count]] - SAME
        return np.asarray((np.exp(self._log_ways + logs) * beyond).sum(axis=1))

    @cached_property
    def _largest_logs(self) -> Floats:
        from scipy.special import xlog1py, xlogy

        counts = np.arange(self.users + 1.0)
        likeliest = np.clip(counts / self.users, self.chances.min(), self.chances.max())
        return np.asarray(xlogy(counts, likeliest) + xlog1py(self.users - counts, -likeliest))

    @cached_property
    def _log_ways(self) -> Floats:
        from scipy.special import gammaln

        counts = np.arange(self.users + 1.0)
        return np.asarray(gammaln(self.users + 1.0) - gammaln(counts + 1.0) - gammaln(self.users - counts + 1.0))
