"""Draws shared by several mechanisms."""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.sampling.random_source import RandomSource


def choose_rows(probabilities: Floats, rows: Positions, source: RandomSource) -> Positions:
    """Draw one column for each entry of `rows` from that row of a stochastic matrix, by inverting its sums."""
    uniforms = source.uniforms(rows.size)
    chosen = np.empty(rows.size, dtype=np.int64)
    order = np.argsort(rows, kind="stable")
    distinct, starts = np.unique(rows[order], return_index=True)
    ends = np.append(starts[1:], rows.size)
    for row, start, end in zip(distinct, starts, ends[: distinct.size], strict=True):
        members = order[start:end]
        sums = np.cumsum(probabilities[row])
        sums /= sums[-1]  # the last possible column then ends at exactly 1, which no uniform reaches
        chosen[members] = np.searchsorted(sums, uniforms[members], side="right")
    return chosen


def two_sided_geometric(epsilon: float, count: int, source: RandomSource) -> Positions:
    """Draw integers with probability proportional to exp(-epsilon |z|): the difference of two geometric draws."""
    largest = 2.0**62  # keeps the sum with any label inside int64
    up, down = (np.floor(np.log(source.positive_uniforms(count)) / -epsilon) for _ in range(2))
    drawn: Positions = np.clip(up - down, -largest, largest).astype(np.int64)
    return drawn
