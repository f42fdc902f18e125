"""Values, shares and directions in words."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hubbub.core.arrays import Floats, plain
from hubbub.core.text import listed, percent
from hubbub.domains import Domain

LISTED = 3  # names that a sentence can carry
DIGITS = 6  # of a direction that count for the order of names
FAINT = 0.01  # entries of a direction, relative to its largest, that are not worth a name


def value_list(domain: Domain, positions: Iterable[int], most: int = LISTED) -> str:
    """Return the values at some positions as a list for a sentence: at most some by name, then how many more."""
    return listed([repr(plain(domain.labels[place])) for place in positions], most=most)


def sides(direction: Floats) -> tuple[list[int], list[int]]:
    """Return who is on either side of a direction, largest entries first.

    The side with fewer values comes first, or the one with the first value: a direction has no beginning.
    """
    relative = (direction / np.abs(direction).max()).round(DIGITS)  # so that rounding does not decide between equals
    order = np.argsort(-np.abs(relative), kind="stable")
    gaining = [int(place) for place in order if relative[place] > FAINT]
    losing = [int(place) for place in order if relative[place] < -FAINT]
    one, other = sorted((gaining, losing), key=lambda side: (len(side), min(side)))
    return one, other


def in_words(domain: Domain, direction: Floats, link: str = "from") -> str:
    """Return what a direction exchanges: "'a' from 'b' and 'c'", largest entries first."""
    one, other = sides(direction)
    return f"{value_list(domain, one)} {link} {value_list(domain, other)}"


def span(lower: float, upper: float) -> str:
    """Return a range of shares."""
    return f"from {percent(lower)} to {percent(upper)}"
