"""Loops over all rectangles of a lattice, compiled by Numba. Import this module inside the functions that need it.

Tables over rectangles are indexed by [first row, row after the last, first column, column after the last]. A sum over a
rectangle is a signed sum over its four corners in a table of sums over everything before a corner.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats
from hubbub.core.compiling import compiled
from hubbub.resolution.pieces import TIE

Choices = NDArray[np.int32]
LEAF, TOLD = -2, -1  # choices of a division, beside the place of a cut: this rectangle is not cut, and is told or not


def _deviations(covariance: Floats, rows: int, columns: int, ramp: int, least: float) -> Floats:
    """Return standard deviations of all sums from the covariance of the corners; 0 for those that are left out."""
    deviations = np.zeros((rows + 1, rows + 1, columns + 1, columns + 1))
    across = columns + 1
    for top in range(rows):
        for bottom in range(top + 1, rows + 1):
            if bottom - top < ramp and bottom - top < rows:
                continue
            for left in range(columns):
                for right in range(left + 1, columns + 1):
                    if right - left < ramp and right - left < columns:
                        continue
                    corners = (
                        bottom * across + right,
                        top * across + right,
                        bottom * across + left,
                        top * across + left,
                    )
                    variance = 0.0
                    for i in range(4):
                        for j in range(4):
                            sign = 1.0 if (i in (0, 3)) == (j in (0, 3)) else -1.0
                            variance += sign * covariance[corners[i], corners[j]]
                    if variance > least:
                        deviations[top, bottom, left, right] = np.sqrt(variance)
    return deviations


def _largest(sums: Floats, deviations: Floats, largest: Floats) -> None:
    """Raise `largest`, one entry for each draw, to the largest standardised sum over any rectangle."""
    rows, columns, draws = deviations.shape[0] - 1, deviations.shape[2] - 1, largest.size
    across = columns + 1
    for top in range(rows):
        for bottom in range(top + 1, rows + 1):
            for left in range(columns):
                for right in range(left + 1, columns + 1):
                    deviation = deviations[top, bottom, left, right]
                    if deviation == 0.0:
                        continue
                    plus, minus = sums[bottom * across + right], sums[top * across + right]
                    other_minus, other_plus = sums[bottom * across + left], sums[top * across + left]
                    scale = 1.0 / deviation
                    for draw in range(draws):
                        value = abs(plus[draw] - minus[draw] - other_minus[draw] + other_plus[draw]) * scale
                        largest[draw] = max(largest[draw], value)


@compiled
def _around(table: Floats, top: int, bottom: int, left: int, right: int) -> float:
    """Return the sum over a rectangle, from a table of sums over everything before a corner."""
    return float(table[bottom, right] - table[top, right] - table[bottom, left] + table[top, left])


@compiled
def _reached(
    top: int, bottom: int, left: int, right: int, half: int, rows: int, columns: int
) -> tuple[int, int, int, int]:
    """Return the rectangle outside of which a soft indicator is 0: ramps reach half their width beyond its edges."""
    return max(top - half, 0), min(bottom + half, rows), max(left - half, 0), min(right + half, columns)


@compiled
def _filled(
    top: int, bottom: int, left: int, right: int, half: int, rows: int, columns: int
) -> tuple[int, int, int, int]:
    """Return the rectangle inside of which a soft indicator is 1; it may be empty. The lattice's ends have no ramps."""
    first, last = 0 if top == 0 else top + half, rows if bottom == rows else bottom - half
    return first, last, 0 if left == 0 else left + half, columns if right == columns else right - half


def _narrow(
    sums: Floats, deviations: Floats, ramp: int, told: float, other: float, relative: float, low: Floats, high: Floats
) -> None:
    """Raise low ends and lower high ends by the bounds on soft indicators with one width of ramps.

    Weights whose sum is told with the critical value `told` are bounded by it, those of other sums by `other`.
    """
    rows, columns = deviations.shape[0] - 1, deviations.shape[2] - 1
    half = ramp // 2
    for top in range(rows):
        for bottom in range(top + 1, rows + 1):
            for left in range(columns):
                for right in range(left + 1, columns + 1):
                    deviation = deviations[top, bottom, left, right]
                    if deviation == 0.0:
                        continue
                    share = _around(sums, top, bottom, left, right)
                    critical = told if relative * share >= told * deviation else other
                    a, b, c, d = _reached(top, bottom, left, right, half, rows, columns)
                    low[a, b, c, d] = max(low[a, b, c, d], share - critical * deviation)
                    a, b, c, d = _filled(top, bottom, left, right, half, rows, columns)
                    if a < b and c < d:
                        high[a, b, c, d] = min(high[a, b, c, d], share + critical * deviation)


def _needed(sums: Floats, deviations: Floats, ramp: int, truth: Floats, needed: Floats) -> None:
    """Raise for each rectangle the least critical value at which the bounds of `narrow` hold its true share."""
    rows, columns = deviations.shape[0] - 1, deviations.shape[2] - 1
    half = ramp // 2
    for top in range(rows):
        for bottom in range(top + 1, rows + 1):
            for left in range(columns):
                for right in range(left + 1, columns + 1):
                    deviation = deviations[top, bottom, left, right]
                    if deviation == 0.0:
                        continue
                    share = _around(sums, top, bottom, left, right)
                    a, b, c, d = _reached(top, bottom, left, right, half, rows, columns)
                    true = _around(truth, a, b, c, d)
                    needed[a, b, c, d] = max(needed[a, b, c, d], (share - true) / deviation)
                    a, b, c, d = _filled(top, bottom, left, right, half, rows, columns)
                    if a < b and c < d:
                        true = _around(truth, a, b, c, d)
                        needed[a, b, c, d] = max(needed[a, b, c, d], (true - share) / deviation)


def _tighten(low: Floats, high: Floats) -> None:
    """Make bounds agree with each other, as shares are not negative and add up.

    In growing rectangles: a low end is at least the sum of those of two halves, and so is a high end at most. In
    shrinking ones: what one half has at most, the whole less the other half has at most.
    """
    rows, columns = low.shape[0] - 1, low.shape[2] - 1
    for height in range(1, rows + 1):
        for width in range(1, columns + 1):
            for a in range(rows - height + 1):
                for c in range(columns - width + 1):
                    b, d = a + height, c + width
                    lowest, highest = low[a, b, c, d], high[a, b, c, d]
                    for m in range(a + 1, b):
                        lowest = max(lowest, low[a, m, c, d] + low[m, b, c, d])
                        highest = min(highest, high[a, m, c, d] + high[m, b, c, d])
                    for m in range(c + 1, d):
                        lowest = max(lowest, low[a, b, c, m] + low[a, b, m, d])
                        highest = min(highest, high[a, b, c, m] + high[a, b, m, d])
                    low[a, b, c, d], high[a, b, c, d] = lowest, highest
    for height in range(rows, 0, -1):
        for width in range(columns, 0, -1):
            for a in range(rows - height + 1):
                for c in range(columns - width + 1):
                    b, d = a + height, c + width
                    lowest, highest = low[a, b, c, d], high[a, b, c, d]
                    for m in range(a + 1, b):
                        one_low, other_low = low[a, m, c, d], low[m, b, c, d]
                        one_high, other_high = high[a, m, c, d], high[m, b, c, d]
                        low[a, m, c, d] = max(one_low, lowest - other_high)
                        low[m, b, c, d] = max(other_low, lowest - one_high)
                        high[a, m, c, d] = min(one_high, highest - other_low)
                        high[m, b, c, d] = min(other_high, highest - one_low)
                    for m in range(c + 1, d):
                        one_low, other_low = low[a, b, c, m], low[a, b, m, d]
                        one_high, other_high = high[a, b, c, m], high[a, b, m, d]
                        low[a, b, c, m] = max(one_low, lowest - other_high)
                        low[a, b, m, d] = max(other_low, lowest - one_high)
                        high[a, b, c, m] = min(one_high, highest - other_low)
                        high[a, b, m, d] = min(other_high, highest - one_low)


def _divide(low: Floats, high: Floats, shown: Floats, allowed: NDArray[np.bool_], relative: float) -> Choices:
    """Return for each rectangle how to cut it into the most parts that are told: the best of all cuts, cut again."""
    rows, columns = low.shape[0] - 1, low.shape[2] - 1
    best = np.zeros(low.shape)
    choices = np.full(low.shape, LEAF, dtype=np.int32)
    for height in range(1, rows + 1):
        for width in range(1, columns + 1):
            for a in range(rows - height + 1):
                for c in range(columns - width + 1):
                    b, d = a + height, c + width
                    share = _around(shown, a, b, c, d)
                    least, most = min(low[a, b, c, d], share), max(high[a, b, c, d], share)
                    score, choice = -TIE, LEAF  # one part that is left is better than two
                    if least > 0.0 and most - least <= relative * (most + least) and allowed[a, b, c, d]:
                        score, choice = 1.0 + TIE * height * width / (rows * columns), TOLD
                    for m in range(a + 1, b):
                        value = best[a, m, c, d] + best[m, b, c, d]
                        if value > score:
                            score, choice = value, m
                    for m in range(c + 1, d):
                        value = best[a, b, c, m] + best[a, b, m, d]
                        if value > score:
                            score, choice = value, rows + m  # columns are numbered after the rows
                    best[a, b, c, d], choices[a, b, c, d] = score, choice
    return choices


def _connected(kept: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return for each rectangle whether the kept cells inside are connected by their sides."""
    rows, columns = kept.shape
    connected = np.zeros((rows + 1, rows + 1, columns + 1, columns + 1), dtype=np.bool_)
    waiting = np.empty((rows * columns, 2), dtype=np.int64)
    seen = np.zeros(kept.shape, dtype=np.int64)
    number = 0
    for a in range(rows):
        for b in range(a + 1, rows + 1):
            for c in range(columns):
                for d in range(c + 1, columns + 1):
                    number += 1
                    total, found, end = 0, 0, 0
                    for y in range(a, b):
                        for x in range(c, d):
                            if kept[y, x]:
                                total += 1
                                if end == 0:
                                    waiting[0, 0], waiting[0, 1], end = y, x, 1
                                    seen[y, x] = number
                    while found < end:
                        y, x = waiting[found]
                        found += 1
                        for there, other in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                            inside = a <= there < b and c <= other < d
                            if inside and kept[there, other] and seen[there, other] != number:
                                seen[there, other] = number
                                waiting[end, 0], waiting[end, 1] = there, other
                                end += 1
                    connected[a, b, c, d] = total > 0 and found == total
    return connected


deviations = compiled(_deviations, nogil=True)
largest = compiled(_largest, nogil=True, fastmath=True)
narrow = compiled(_narrow, nogil=True)
needed = compiled(_needed, nogil=True)
tighten = compiled(_tighten, nogil=True)
divide = compiled(_divide, nogil=True)
connected = compiled(_connected, nogil=True)
