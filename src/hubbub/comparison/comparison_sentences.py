"""What a comparison says in words, the same in Python, at the terminal and on the page."""

from __future__ import annotations

from collections.abc import Callable

from hubbub.comparison.distance_intervals import IntervalEstimate

MIN_WRITTEN_P_VALUE = 1e-4


def p_text(p_value: float) -> str:
    """Return a p-value for readers.

    >>> p_text(0.0312), p_text(0.5), p_text(3e-9)
    ('p = 0.031', 'p = 0.50', 'p < 0.0001')
    """
    if p_value < MIN_WRITTEN_P_VALUE:
        return "p < 0.0001"
    return f"p = {p_value:.2f}" if p_value >= 0.1 else f"p = {p_value:.2g}"


def points(share: float) -> str:
    """Return a difference of shares in percentage points.

    >>> points(0.0412), points(0.131), points(0.00034)
    ('4.1', '13', '0.034')
    """
    size = 100.0 * abs(share)
    return f"{size:.0f}" if size >= 10 else f"{size:.2g}"


def share_sentence(names: tuple[str, str], value: str, low: float, high: float) -> str:
    """Return how the shares of a value, or of several, differ.

    >>> share_sentence(("men", "women"), "yes", 0.041, 0.131)
    'yes is more frequent in women than in men: by 4.1 to 13 percentage points.'
    >>> share_sentence(("men", "women"), "yes", -0.01, 0.02)
    'yes may be less frequent in women than in men by up to 1 percentage points, or more frequent by up to 2.'
    """
    words = ("less frequent", "more frequent")
    return f"{value} {_differs(names, words, low, high, points, ' percentage points')}"


def number_sentence(names: tuple[str, str], what: str, low: float, high: float) -> str:
    """Return how a mean, or another weighted sum, differs.

    >>> number_sentence(("men", "women"), "The mean", 1.3, 3.0)
    'The mean is higher in women than in men: by 1.3 to 3.'
    """
    return f"{what} {_differs(names, ('lower', 'higher'), low, high, lambda number: f'{abs(number):.2g}', '')}"


def _differs(
    names: tuple[str, str],
    words: tuple[str, str],
    low: float,
    high: float,
    written: Callable[[float], str],
    unit: str,
) -> str:
    first, second = names
    less, more = words
    if low <= 0.0 <= high:
        lower = f"may be {less} in {second} than in {first} by up to {written(low)}{unit}"
        return f"{lower}, or {more} by up to {written(high)}."
    word, near, far = (more, low, high) if low > 0.0 else (less, high, low)
    return f"is {word} in {second} than in {first}: by {written(near)} to {written(far)}{unit}."


def equality_sentence(names: tuple[str, str], p_value: float, *, rejected: bool) -> str:
    """Return what the test of equality says.

    >>> equality_sentence(("men", "women"), 0.4, rejected=False)
    'These reports do not show that men and women differ (p = 0.40).'
    """
    if rejected:
        return f"{names[0]} and {names[1]} differ ({p_text(p_value)})."
    return f"These reports do not show that {names[0]} and {names[1]} differ ({p_text(p_value)})."


def distance_sentence(what: str, distance: IntervalEstimate, unit: str = "") -> str:
    """Return how far apart the groups are.

    >>> distance_sentence("total variation", IntervalEstimate(0.08, 0.031, 0.14))
    'Their total variation is 0.08, between 0.031 and 0.14.'
    """
    return f"Their {what} is {distance.estimate:.2g}{unit}, between {distance.low:.2g} and {distance.high:.2g}."
