"""What the crowd said, in one or two sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hubbub.core.arrays import Floats, plain
from hubbub.core.text import one_line, percent, plural, quoted, whole_percent
from hubbub.domains import Domain
from hubbub.intervals import Quantile
from hubbub.intervals.set_intervals import SetShares, normal_quantile
from hubbub.reporting.map_regions import MapRegions
from hubbub.reporting.page_values import Page

MAX_PLACE_LETTERS = 100  # of a region's name and a place on the map
MAX_REGIONS_IN_SUMMARY = 3
MAX_TIE_DIFFERENCE = 1e-6  # between two shares, relative to the larger, that counts as a tie


def summary_of(page: Page, linear: SetShares | None, median: Quantile | None = None) -> str:
    """Return the most common categories, the median of a line, or where at least half of the users on a map are."""
    if page.domain.chart == "map":
        text = _map_summary(page)
    elif page.domain.chart == "line":
        text = _line_summary(page, linear, median)
    else:
        text = _categories_summary(page)
    has_range = " (between " in text  # a tie, or a certain answer, has none
    return f"{text} Ranges are {whole_percent(page.level)} confidence intervals." if has_range else text


def _categories_summary(page: Page) -> str:
    order, title = page.largest_first(), page.domain.title
    first, largest = order[0], percent(page.estimate[order[0]])
    start = f"Among {plural(page.users, 'user')}, "
    ties = _ties(page)
    if ties > 1:
        pair = f"{quoted(title(first))} and {quoted(title(order[1]))}"
        text = f"{start}{pair if ties == 2 else f'{ties:,} answers'} are equally common in the estimate, "
        return f"{text}with about {largest} each{', ahead of all others' if ties < len(order) else ''}."
    text = f"{start}{quoted(title(first))} is the most common answer, with about {largest}{_interval(page, first)}"
    if len(order) == 1 or page.estimate[order[1]] <= 0.0:
        return text + "."
    second = order[1]
    share = percent(page.estimate[second])
    text += f", ahead of {quoted(title(second))} with {share}{_interval(page, second)}."
    if page.shown_low[first] < page.shown_high[second]:
        text += " The two ranges overlap: on their own they do not settle which answer is more common."
    return text


def _map_summary(page: Page) -> str:
    order = page.largest_first()
    cells = _first_reaching(np.cumsum(page.estimate[order]), 0.5) + 1
    text = f"At least half of the {plural(page.users, 'user')} are in {cells:,} of {plural(len(page.domain), 'cell')}."
    if page.regions is not None and not np.isnan(page.regions.estimate).all():
        return f"{_regions_summary(page.regions)} {text}"
    first, largest = order[0], percent(page.estimate[order[0]])
    ties = _ties(page)
    if ties > 1:
        return f"{text} The {ties:,} busiest cells have about {largest} each."
    title = page.domain.title(first)
    busiest = f"at {one_line(title, MAX_PLACE_LETTERS)}" if page.domain.is_on_map else quoted(title)
    return f"{text} The busiest cell is {busiest} with about {largest}{_interval(page, first)}."


def _regions_summary(regions: MapRegions) -> str:
    """Return the regions with the largest shares."""
    order = [number for number in regions.largest_first() if regions.estimate[number] > 0.0][:MAX_REGIONS_IN_SUMMARY]
    return (
        f"The busiest of {plural(len(regions.names), 'region')}: "
        + ", ".join(
            f"{one_line(regions.names[number], MAX_PLACE_LETTERS)} with about {percent(regions.estimate[number])}"
            f"{_range(regions.low[number], regions.high[number])}"
            for number in order
        )
        + "."
    )


def _ties(page: Page) -> int:
    """Return how many values have the largest share, up to rounding."""
    return int(np.count_nonzero(page.estimate >= float(page.estimate.max()) * (1.0 - MAX_TIE_DIFFERENCE)))


def _interval(page: Page, position: int) -> str:
    """Return the interval of a value, in brackets; nothing if it is not known."""
    return _range(page.shown_low[position], page.shown_high[position])


def _range(low: float, high: float) -> str:
    return "" if np.isnan(low) else f" (between {percent(low)} and {percent(high)})"


def _line_summary(page: Page, linear: SetShares | None, quantile: Quantile | None) -> str:
    cumulative = np.cumsum(page.estimate)
    quarter, median, last_quarter = (_first_reaching(cumulative, share) for share in (0.25, 0.5, 0.75))

    def name(position: int) -> str:
        return _value_name(page.domain, position)

    text = f"The median of {plural(page.users, 'user')} is {name(median)}"
    if quantile is not None:
        low, high = (int(page.domain.index(np.array([end]))[0]) for end in (quantile.low, quantile.high))
        text += _range_text(low, median, high, name)
    elif linear is not None:
        text += _range_text(*_median_range(linear, page.level, median), name)
    if quarter == last_quarter:
        return f"{text}; the middle half of the users is there, too."
    return f"{text}; the middle half of the users is from {name(quarter)} to {name(last_quarter)}."


def _median_range(linear: SetShares, level: float, median: int) -> tuple[int, int, int]:
    """Return the first and the last plausible median, extended to that of the estimate."""
    centre = np.clip(np.cumsum(linear.centre), 0.0, 1.0)
    margin = normal_quantile(level) * linear.running_deviations
    low, high = _first_reaching(centre + margin, 0.5), _first_reaching(centre - margin, 0.5)
    return min(low, median), median, max(high, median)


def _range_text(low: int, median: int, high: int, name: Callable[[int], str]) -> str:
    if low == high == median:
        return " (no other median is plausible)"
    return f" (between {name(low)} and {name(high)})"


def _first_reaching(cumulative: Floats, share: float) -> int:
    """Return the first position at which a cumulative distribution reaches a share."""
    reached = cumulative >= share - 1e-12
    return int(np.argmax(reached)) if reached.any() else cumulative.size - 1


def _value_name(domain: Domain, position: int) -> str:
    if domain.intervals is not None:
        low, high = domain.intervals[position]
        return f"{low:g}–{high:g}" if low >= 0 else f"[{low:g}, {high:g}]"
    return str(plain(domain.labels[position]))
