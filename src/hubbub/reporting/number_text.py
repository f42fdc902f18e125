"""Numbers and names as people read them."""

from __future__ import annotations

import math

LONGEST = 60  # letters of a label in a sentence


def percent(share: float) -> str:
    """Return a share as people read it; the scripts of the page say the same (numbers.js).

    >>> percent(0.3123), percent(0.01234), percent(0.000456), percent(0.0), percent(1.0), percent(1e-9)
    ('31.2%', '1.23%', '0.046%', '0%', '100%', 'under 0.0001%')
    """
    if math.isnan(share):
        return "unknown"
    size = abs(100.0 * share)
    if size == 0.0 or size == 100.0:
        return f"{100.0 * share:.0f}%"
    if size < 1e-4:
        return "under 0.0001%"
    if 99.95 <= size < 100.0:
        return "over 99.9%"
    decimals = 1 if size >= 9.995 else 2 if size >= 0.995 else 1 - math.floor(math.log10(size))
    return f"{100.0 * share:.{decimals}f}%"


def whole_percent(level: float) -> str:
    """Return a level as a percentage with no more digits than it has."""
    return f"{100 * level:g}%"


def times(factor: float) -> str:
    """Return a factor in words: a very large one has no digits worth reading.

    >>> times(2.718), times(15.2), times(8886110), times(1e30)
    ('2.7 times', '15 times', '8,886,110 times', 'more than a billion times')
    """
    if factor >= 1e9:
        return "more than a billion times"
    return f"{factor:.1f} times" if factor < 10 else f"{factor:,.0f} times"


def named(label: object) -> str:
    """Return a label in a sentence: in quotes, on one line, cut where it is long.

    >>> named("a  b"), named(7)
    ("'a b'", "'7'")
    """
    text = " ".join(str(label).split())
    return f"'{text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}'"


def plural(count: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
