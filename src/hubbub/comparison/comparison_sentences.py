"""What a comparison says in words, the same in Python, at the terminal and on the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hubbub.comparison.distance_intervals import IntervalEstimate
from hubbub.core.text import plural
from hubbub.intervals.linear_statistic import NAMED, VALUE

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
    return f"{value} {_differs(_between(names), SHARE, low, high)}"


def number_sentence(names: tuple[str, str], what: str, low: float, high: float) -> str:
    """Return how a mean, or another weighted sum, differs.

    >>> number_sentence(("men", "women"), "The mean", 1.3, 3.0)
    'The mean is higher in women than in men: by 1.3 to 3.'
    """
    return f"{what} {_differs(_between(names), NUMBER, low, high)}"


def share_change(value: str, low: float, high: float) -> str:
    """Return how the share of a value changed.

    >>> share_change("yes", 0.041, 0.131)
    'yes became more frequent: by 4.1 to 13 percentage points.'
    """
    return f"{value} {_differs(CHANGE, SHARE, low, high)}"


def named_sentence(names: tuple[str, str], what: str, low: float, high: float) -> str:
    """Return how the share of something that has a name, such as a region, differs.

    >>> named_sentence(("May", "June"), "Old Town", 0.041, 0.131)
    'The share of Old Town is larger in June than in May: by 4.1 to 13 percentage points.'
    """
    return f"The share of {what} {_differs(_between(names), NAMED_SHARE, low, high)}"


def named_change(what: str, low: float, high: float) -> str:
    """Return how the share of something that has a name changed.

    >>> named_change("Old Town", 0.041, 0.131)
    'the share of Old Town became larger: by 4.1 to 13 percentage points.'
    """
    return f"the share of {what} {_differs(CHANGE, NAMED_SHARE, low, high)}"


def number_change(what: str, low: float, high: float) -> str:
    """Return how a mean, or another number, changed.

    >>> number_change("the mean", -0.5, 3.0)
    'the mean may have become lower by up to 0.5, or higher by up to 3.'
    """
    return f"{what} {_differs(CHANGE, NUMBER, low, high)}"


def row_sentence(
    names: tuple[str, str], what: str, low: float, high: float, *, kind: str = VALUE, is_share: bool = True
) -> str:
    """Return how one row of a table differs: a share, that of something with a name, or a number."""
    if not is_share:
        return number_sentence(names, what, low, high)
    return (named_sentence if kind in NAMED else share_sentence)(names, what, low, high)


def row_change(what: str, low: float, high: float, *, kind: str, is_share: bool) -> str:
    """Return how one row of a table changed over time."""
    if not is_share:
        return number_change(what, low, high)
    return (named_change if kind in NAMED else share_change)(what, low, high)


def none_differs_sentence(names: tuple[str, str], rows: int, kind: str, *, rejected: bool) -> str:
    """Return that nothing with a name differs for certain; `rejected`: the groups do, in all values together.

    >>> none_differs_sentence(("May", "June"), 20, "region", rejected=False)
    'These reports do not show in any of 20 regions that May and June differ.'
    >>> none_differs_sentence(("May", "June"), 20, "region", rejected=True)
    'May and June differ, but no single region for certain.'
    """
    if rejected:
        return f"{names[0]} and {names[1]} differ, but no single {kind} for certain."
    return f"These reports do not show in any of {plural(rows, kind)} that {names[0]} and {names[1]} differ."


class _Verbs(NamedTuple):
    """How a certain and a possible difference are told; the word for its direction takes the place of {}."""

    certain: str
    possible: str


class _Quantity(NamedTuple):
    """Words for less and more of a quantity, how its size is written, and its unit."""

    less: str
    more: str
    written: Callable[[float], str]
    unit: str


SHARE = _Quantity("less frequent", "more frequent", points, " percentage points")
NAMED_SHARE = _Quantity("smaller", "larger", points, " percentage points")
NUMBER = _Quantity("lower", "higher", lambda number: f"{abs(number):.2g}", "")
CHANGE = _Verbs("became {}", "may have become {}")


def _between(names: tuple[str, str]) -> _Verbs:
    first, second = (name.replace("{", "{{").replace("}", "}}") for name in names)
    return _Verbs(f"is {{}} in {second} than in {first}", f"may be {{}} in {second} than in {first}")


def _differs(verbs: _Verbs, quantity: _Quantity, low: float, high: float) -> str:
    less, more, written, unit = quantity
    if low <= 0.0 <= high:
        lower = f"{verbs.possible.format(less)} by up to {written(low)}{unit}"
        return f"{lower}, or {more} by up to {written(high)}."
    word, near, far = (more, low, high) if low > 0.0 else (less, high, low)
    sizes = list(dict.fromkeys([written(near), written(far)]))  # both ends may be written the same
    return f"{verbs.certain.format(word)}: by {' to '.join(sizes)}{unit}."


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
