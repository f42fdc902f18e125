"""One scale for charts side by side, with round numbers on it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats

MAX_TICKS = 5
ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MIN_RELATIVE_SPAN = 1e-4  # of a scale, so that its numbers differ in the digits that are shown
DECIMALS = 2  # of places, in hundredths of the length of the scale


class Tick(NamedTuple):
    """A round number, and its place in percent of the scale's length."""

    place: float
    text: str


class ChartScale(NamedTuple):
    """From the first to the last of some equally spaced round numbers."""

    low: float
    high: float
    step: float
    unit: str = ""  # behind each number
    factor: float = 1.0  # of each number: 100 for percent
    is_signed: bool = False

    def place(self, numbers: Floats) -> Floats:
        """Return where numbers lie, in percent of the length."""
        return np.round(100.0 * (np.asarray(numbers) - self.low) / (self.high - self.low), DECIMALS)

    def at(self, number: float) -> float:
        """Return where one number lies, in percent of the length."""
        return float(self.place(np.array([number]))[0])

    @property
    def ticks(self) -> list[Tick]:
        """All round numbers."""
        return [Tick(self.at(number), self._text(number)) for number in self._numbers()]

    def ticks_between(self, first: float, last: float) -> list[Tick]:
        """Return the round numbers between two others, with their places in percent of the way between these."""
        own = self._replace(low=first, high=last)
        return [Tick(own.at(number), self._text(number)) for number in self._numbers() if first <= number <= last]

    def _numbers(self) -> list[float]:
        count = round((self.high - self.low) / self.step)
        return [self.low + self.step * place for place in range(count + 1)]

    def _text(self, number: float) -> str:
        size = 0.0 if abs(number) < 1e-9 * self.step else abs(number) * self.factor
        sign = "" if size == 0.0 else "−" if number < 0 else "+" if self.is_signed else ""
        return f"{sign}{size:.8g}{self.unit}"


def round_scale(low: float, high: float, *, unit: str = "", factor: float = 1.0, is_signed: bool = False) -> ChartScale:
    """Return the shortest scale of at most five round steps that holds both numbers.

    >>> [tick.text for tick in round_scale(0.0, 0.634, unit="%", factor=100.0).ticks]
    ['0%', '25%', '50%', '75%']
    >>> [tick.text for tick in round_scale(-3.1, 4.4, is_signed=True).ticks]
    ['−4', '−2', '0', '+2', '+4', '+6']
    """
    span = max(high - low, 1e-12, MIN_RELATIVE_SPAN * max(abs(low), abs(high)))
    best: ChartScale | None = None
    size = 10.0 ** math.floor(math.log10(span / MAX_TICKS))
    for step in (size * each for each in (*ROUND_STEPS, 20.0, 25.0, 50.0)):
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if max(1, last - first) <= MAX_TICKS:
            made = ChartScale(first * step, max(last, first + 1) * step, step, unit, factor, is_signed)
            if best is None or made.high - made.low < best.high - best.low:
                best = made
    assert best is not None  # noqa: S101  # the largest step is ten times the span
    return best


def share_scale(*shares: Floats) -> ChartScale:
    """Return the scale from 0 to the largest of all shares."""
    return round_scale(0.0, min(1.0, _largest(shares)), unit="%", factor=100.0)


def difference_scale(*differences: Floats) -> ChartScale:
    """Return a scale of percentage points that has its 0 in the middle."""
    largest = _largest([np.abs(each) for each in differences])
    half = round_scale(0.0, largest)
    steps = round(half.high / half.step)
    step = half.step if steps <= 2 else half.high / 2 if steps == 4 else half.high  # five numbers at most
    return ChartScale(-half.high, half.high, step, factor=100.0, is_signed=True)


def number_scale(*numbers: Floats) -> ChartScale:
    """Return the scale that holds all numbers."""
    known = [each[np.isfinite(each)] for each in numbers]
    return round_scale(min(float(each.min()) for each in known if each.size), _largest(known))


def _largest(arrays: Iterable[Floats]) -> float:
    """Return the largest number; 1 where there is none above 0, so that every scale has a length."""
    return max((float(np.nanmax(each)) for each in arrays if np.isfinite(each).any()), default=0.0) or 1.0
