"""Exact noise on the cells of a map."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.client import EPSILON_SHRINK, acceptance_probability, axis_noise
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.sampling.base import Law
from hubbub.sampling.geometric_noise import LineNoise
from hubbub.sampling.random_source import RandomSource
from hubbub.sampling.weight_tables import WeightTable

CHUNK_USERS = 1_000_000  # at a time
Remap = Callable[[Positions], Codes]


class PlanarGeometricLaw(Law):
    """Planar geometric noise by rejection: noise along both axes, taken with the probability that makes it planar.

    `steps` holds the column and row of each value; `remap` turns moved ones into codes.
    """

    def __init__(self, epsilon: float, sides: tuple[float, float], steps: Positions, remap: Remap) -> None:
        self.epsilon, self.sides, self.steps = epsilon, sides, steps
        self.remap = remap

    @cached_property
    def _axes(self) -> list[LineNoise]:
        return [LineNoise(axis_noise(self.epsilon, side)) for side in self.sides]

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Add noise and remap."""
        moved = np.empty((positions.size, 2), dtype=np.int64)
        for first in range(0, positions.size, CHUNK_USERS):
            part = slice(first, first + CHUNK_USERS)
            moved[part] = self.steps[positions[part]] + self._noise(positions[part].size, source)
        return self.remap(moved)

    def _noise(self, count: int, source: RandomSource) -> Positions:
        drawn = np.empty((count, 2), dtype=np.int64)
        waiting = np.arange(count)
        while waiting.size:
            proposed = np.stack([line.draw(waiting.size, source) for line in self._axes], axis=1)
            taken = self._take(proposed, source)
            drawn[waiting[taken]] = proposed[taken]
            waiting = waiting[~taken]
        return drawn

    def _take(self, proposed: Positions, source: RandomSource) -> NDArray[np.bool_]:
        """Compare a word with the chance of each displacement: by floats, or whole numbers if these are too close."""
        words = source.words(len(proposed))
        low, high = self._bounds(proposed)
        uniforms = (words >> np.uint64(11)).astype(np.float64)  # what is drawn lies between this and 1 more, over 2^53
        taken = (uniforms + 1) <= low
        for place in np.flatnonzero(~taken & (uniforms < high)):
            chance = acceptance_probability(self.epsilon, self.sides, *np.abs(proposed[place]).tolist())
            width = max(128, -(-chance.denominator.bit_length() // 64) * 64)
            number = (int(words[place]) << (width - 64)) | source.number(width - 64)
            taken[place] = number < chance * (1 << width)
        return taken

    def _bounds(self, proposed: Positions) -> tuple[Floats, Floats]:
        """Return bounds of 2^53 times each displacement's chance, exp(-epsilon d) over the axes' exponentials.

        Every operation is off by less than 2^-51 of its result, and the sum of the exponents' sizes bounds what that
        does to the exponential; the whole numbers of the axes are far closer than that to their exponentials.
        """
        away = np.abs(proposed).astype(np.float64)
        distance = (
            self.epsilon * float(EPSILON_SHRINK) * np.hypot(away[:, 0] * self.sides[0], away[:, 1] * self.sides[1])
        )
        along = sum(
            self.epsilon * side * math.sqrt(0.5) * (1 - 2.0**-40) * away[:, k] for k, side in enumerate(self.sides)
        )
        chance = np.exp(along - distance) * 2.0**53
        slack = 2.0**-47 * (4 + along + distance)
        # Where a float would say that a displacement is never taken, a word of leading zeros asks the whole numbers.
        return chance * (1 - slack), np.maximum(chance * (1 + slack), 1.0)


class PlanarTableLaw(Law):
    """Noise from one table of displacements, clipped to those that can matter.

    `quarter[c][r]` over 2^width is the probability of being c columns and r rows away, to one given side each; the last
    column and row stand for everything further. Whatever is at least that far leaves the window of columns and
    rows (from `corner` on) to which moved values are clamped before `remap` turns them into codes.
    """

    def __init__(
        self, width: int, quarter: list[list[int]], steps: Positions, window: tuple[Positions, Positions], remap: Remap
    ) -> None:
        self.width, self.quarter, self.steps, self.window = width, quarter, steps, window
        self.remap = remap

    @property
    def shape(self) -> tuple[int, int]:
        """The largest displacement, in columns and rows."""
        return len(self.quarter) - 1, len(self.quarter[0]) - 1

    @cached_property
    def _cells(self) -> WeightTable:
        """All displacements, column by column from the most negative."""
        columns, rows = self.shape
        across, along = (range(-most, most + 1) for most in (columns, rows))
        return WeightTable(self.width, [self.quarter[abs(column)][abs(row)] for column in across for row in along])

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Add noise, clamp and remap."""
        columns, rows = self.shape
        cells = self._cells.draw(positions.size, source)
        away = np.stack([cells // (2 * rows + 1) - columns, cells % (2 * rows + 1) - rows], axis=1)
        return self.remap(np.clip(self.steps[positions] + away, *self.window))
