"""What a comparison says in words, the same in Python, at the terminal and on the page."""

from __future__ import annotations

from hubbub.comparison.distance_intervals import Distance

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


def change_sentence(names: tuple[str, str], value: str, low: float, high: float) -> str:
    """Return what changed in one value, of which the interval does not hold 0.

    >>> change_sentence(("men", "women"), "yes", 0.041, 0.131)
    'yes is more frequent in women than in men: by 4.1 to 13 percentage points.'
    """
    more, ends = ("more", (low, high)) if high > -low else ("less", (-high, -low))
    by = f"by {points(ends[0])} to {points(ends[1])}" if ends[0] > 0.0 else f"by up to {points(ends[1])}"
    return f"{value} is {more} frequent in {names[1]} than in {names[0]}: {by} percentage points."


def mean_sentence(names: tuple[str, str], mean: Distance) -> str:
    """Return how the means differ.

    >>> mean_sentence(("men", "women"), Distance(2.0, 1.3, 3.0))
    'The mean is higher in women than in men: by 1.3 to 3.'
    >>> mean_sentence(("men", "women"), Distance(2.0, -1.0, 3.0))
    'The mean of women may be lower than that of men by up to 1, or higher by up to 3.'
    """
    first, second = names
    if mean.low <= 0.0 <= mean.high:
        lower, higher = f"{-mean.low:.2g}", f"{mean.high:.2g}"
        return f"The mean of {second} may be lower than that of {first} by up to {lower}, or higher by up to {higher}."
    more, ends = ("higher", (mean.low, mean.high)) if mean.low > 0.0 else ("lower", (-mean.high, -mean.low))
    return f"The mean is {more} in {second} than in {first}: by {ends[0]:.2g} to {ends[1]:.2g}."


def equality_sentence(names: tuple[str, str], p_value: float, *, rejected: bool) -> str:
    """Return what the test of equality says.

    >>> equality_sentence(("men", "women"), 0.4, rejected=False)
    'These reports do not show that men and women differ (p = 0.40).'
    """
    if rejected:
        return f"{names[0]} and {names[1]} differ ({p_text(p_value)})."
    return f"These reports do not show that {names[0]} and {names[1]} differ ({p_text(p_value)})."


def distance_sentence(what: str, distance: Distance, unit: str | None) -> str:
    """Return how far apart the groups are.

    >>> distance_sentence("total variation", Distance(0.08, 0.031, 0.14), None)
    'Their total variation is 0.08, between 0.031 and 0.14.'
    """
    measured = "" if unit in (None, "unit") else f" {unit}"  # a line has no other unit than its numbers
    return f"Their {what} is {distance.estimate:.2g}{measured}, between {distance.low:.2g} and {distance.high:.2g}."
