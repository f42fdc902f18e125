"""Exact noise on whole numbers."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from hubbub.client import Noise
from hubbub.core.arrays import Positions
from hubbub.sampling.base import Law
from hubbub.sampling.random_source import RandomSource
from hubbub.sampling.weight_tables import WeightTable


class LineNoise:
    """Draws of two-sided noise: a table of the first block to both sides, then one of blocks further out."""

    def __init__(self, noise: Noise) -> None:
        self.noise = noise

    @cached_property
    def _first(self) -> WeightTable:
        """Further down, down to one step down, none, one step up to a block, further up."""
        noise, one = self.noise, 1 << self.noise.width
        out = [noise.side * step for step in (*noise.steps, noise.rest)]
        return WeightTable(2 * noise.width, [*reversed(out), (one - 2 * noise.side) * one, *out])

    @cached_property
    def _further(self) -> WeightTable:
        return WeightTable(self.noise.width, [*self.noise.steps, self.noise.rest])

    def draw(self, count: int, source: RandomSource, most: int | None = None) -> Positions:
        """Return displacements; one that has gone `most` steps need go no further."""
        block = len(self.noise.steps)
        drawn = self._first.draw(count, source) - (block + 1)
        going = np.flatnonzero(np.abs(drawn) > block)
        signs = np.sign(drawn[going])
        gone = np.full(going.size, block)
        while going.size:
            if most is not None:
                stays = gone < most
                drawn[going[~stays]] = (signs * (gone + 1))[~stays]
                going, signs, gone = going[stays], signs[stays], gone[stays]
            step = self._further.draw(going.size, source)
            drawn[going] = signs * (gone + 1 + step)
            beyond = step == block
            going, signs, gone = going[beyond], signs[beyond], gone[beyond] + block
        return drawn


class LineNoiseLaw(Law):
    """Noise added to whole numbers `low`, `low` + 1, ...: with outputs anywhere, or clamped to the `values` of them."""

    def __init__(self, noise: Noise, values: int, low: int, clamped: bool) -> None:
        self.noise, self.values, self.low, self.clamped = noise, values, low, clamped
        self._noise = LineNoise(noise)

    def draw(self, positions: Positions, source: RandomSource) -> Positions:
        """Add noise; clamped, an output is a position."""
        if not self.clamped:
            return positions + self.low + self._noise.draw(positions.size, source)
        moved = positions + self._noise.draw(positions.size, source, most=self.values)
        clamped: Positions = np.clip(moved, 0, self.values - 1)
        return clamped
