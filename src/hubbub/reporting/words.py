"""Numbers and names as people read them."""

from __future__ import annotations

LONGEST = 60  # letters of a label in a sentence


def percent(share: float) -> str:
    """Return a share as a percentage: one digit behind the point, more where it is small, never 0% for some.

    >>> percent(0.3417), percent(0.004), percent(0.00002), percent(0.0)
    ('34.2%', '0.40%', '0.002%', '0%')
    """
    points = 100 * share
    if points == 0.0:
        return "0%"
    if abs(points) >= 1.0:
        return f"{points:.1f}%"
    return f"{points:.2f}%" if abs(points) >= 0.1 else f"{points:.1g}%" if abs(points) >= 1e-4 else "less than 0.0001%"


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
