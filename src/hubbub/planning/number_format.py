"""Numbers as far as a simulation knows them, in words."""

from __future__ import annotations

import math
from collections.abc import Callable

from hubbub.planning.result import Privacy

DIGITS = 2  # that are told of what was simulated
LOOSE = 1.5  # from this ratio of the ends on, a range is told instead of a number
DECIMALS = 6  # the most that are written out; smaller numbers are written with an exponent


def rounded(number: float, digits: int = DIGITS) -> float:
    """Return a number with so many digits that count.

    >>> rounded(41234), rounded(0.08149)
    (41000.0, 0.081)
    """
    if number == 0 or not math.isfinite(number):
        return number
    return float(round(number, digits - 1 - math.floor(math.log10(abs(number)))))


def told(number: float, digits: int = DIGITS) -> str:
    """Return a number of a sentence: rounded, with commas, without an exponent unless it is tiny.

    >>> told(41234), told(0.08149), told(1.4142), told(99.7), told(3e-9)
    ('41,000', '0.081', '1.4', '100', '3e-09')
    """
    shown = rounded(number, digits)
    if shown == 0:
        return "0"
    decimals = digits - 1 - math.floor(math.log10(abs(shown)))
    if decimals > DECIMALS:
        return f"{shown:.{digits - 1}e}" if digits > 1 and f"{shown:.{digits - 1}e}"[2] != "0" else f"{shown:.0e}"
    return f"{shown:,.{max(decimals, 0)}f}"


def people(number: float) -> str:
    """Return a number of people: whole, however few they are.

    >>> people(41234.5), people(2.3)
    ('41,000', '3')
    """
    return told(number) if number > 99 else f"{math.ceil(number)}"


def about(number: float, low: float | None, high: float | None, words: Callable[[float], str] = told) -> str:
    """Return what is known of a number: "about 41,000", or the range where the simulation leaves it wide.

    >>> about(41234, 39500, 43100), about(41234, 20000, 81000), about(0.0, 0.0, 0.0)
    ('about 41,000', 'between 20,000 and 81,000', 'about 0')
    """
    if low is None or high is None or number <= 0:
        return f"about {words(number)}"
    if low <= 0 or not math.isfinite(high):
        return f"at most {words(high)}" if math.isfinite(high) else f"at least {words(max(low, 1.0))}"
    return f"about {words(number)}" if high / low < LOOSE else f"between {words(low)} and {words(high)}"


def times(ratio: float) -> str:
    """Return a ratio as a sentence tells it.

    >>> times(1.63), times(12.3), times(340.0)
    ('1.6', '12', '340')
    """
    return told(ratio)


def many(count: int, what: str) -> str:
    """Return how many there are of something.

    >>> many(1, "user"), many(10_000, "user")
    ('1 user', '10,000 users')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def epsilon_words(privacy: Privacy | None, stated: bool) -> str:
    """Return what a user spends in all; `stated` says that the radius was, so that it is not the domain's diameter.

    Both kinds of epsilon are told where both are spent, and what is per unit of distance is told as plain epsilon too.
    """
    if privacy is None or (privacy.ldp is None and privacy.per_unit is None):
        return "no bound on epsilon"
    if privacy.per_unit is None:
        return f"epsilon {privacy.ldp:.3g}"
    per = f"epsilon {privacy.per_unit:.3g} per {privacy.unit or 'unit'}"
    both = per if privacy.ldp is None else f"epsilon {privacy.ldp:.3g} or {per}"
    if privacy.equivalent is None:
        return both
    return f"{both} (a plain epsilon of {privacy.equivalent:.3g} {reach_words(privacy, stated)})"


def reach_words(privacy: Privacy, stated: bool) -> str:
    """Return the distance over which epsilon per unit was counted."""
    unit = "" if privacy.unit in (None, "unit") else f" {privacy.unit}"
    if privacy.radius is None:
        return "in all"
    if stated:
        return f"within {privacy.radius:.3g}{unit}" if unit else f"within a distance of {privacy.radius:.3g}"
    return f"over the domain's diameter of {privacy.radius:.3g}{unit}"
