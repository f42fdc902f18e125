"""Exact noise on whole numbers: falling from step to step, or from stair to stair."""

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


class StaircaseLaw(Law):
    """Noise in stairs, added to whole numbers `low`, `low` + 1, ... and as wide as these: outputs are anywhere.

    `stairs` says which stair is drawn. Of the lowest one, 0, are the 2 `reach` + 1 places around the value; all others
    have `stair` places, next to each other. All places of a stair are equally likely.
    """

    def __init__(self, stairs: Noise, reach: int, values: int, low: int) -> None:
        self.stairs, self.reach, self.values, self.low = stairs, reach, values, low
        self.stair = values - 1
        self._stairs = LineNoise(stairs)

    def draw(self, positions: Positions, source: RandomSource) -> Positions:
        """Draw a stair, and any of its places."""
        steps = self._stairs.draw(positions.size, source)
        near = source.integers(2 * self.reach + 1, positions.size) - self.reach
        beyond = self.reach + 1 + (np.abs(steps) - 1) * self.stair + source.integers(self.stair, positions.size)
        noise = np.where(steps == 0, near, np.sign(steps) * beyond)
        return np.asarray(positions + self.low + noise)
