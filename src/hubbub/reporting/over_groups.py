"""What the page shows over groups in their order: each of few values, or one that the reader chooses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hubbub.core.text import plural
from hubbub.reporting.chart_scale import ChartScale, number_scale, share_scale
from hubbub.reporting.group_tables import statistic_text
from hubbub.reporting.groups_page import GroupsPage
from hubbub.reporting.over_groups_chart import MAX_SERIES, OverGroupsChart, Series, over_groups_chart
from hubbub.reporting.visible_text import visible

MAX_CHOICES = 24
MAX_TITLE_LETTERS = 60


class OverGroups(NamedTuple):
    """A chart that can be chosen, with its name and what it shows in words."""

    title: str
    description: str
    chart: OverGroupsChart


def over_groups(page: GroupsPage) -> list[OverGroups]:
    """Return one chart of all values if these are few; otherwise one for each of some, and for the mean of numbers."""
    size = len(page.domain)
    charts = []
    own = page.statistic
    if own is not None and page.domain.places is not None and np.isfinite(own.low).any():
        scale = number_scale(own.estimate, own.low, own.high)
        charts.append(_chart(page, own.name, [Series(own.name, own.estimate, own.low, own.high)], scale))
    if size <= MAX_SERIES:
        values = [0] if size == 2 else list(range(size))  # of two values, the second says the same
        scale = share_scale(page.shares[:, values], page.high[:, values])
        series = [_series(page, value) for value in values]
        title = page.domain.title(0) if size == 2 else "All values"
        return [*charts, _chart(page, title, series, scale)]
    values = _choices(page)[: MAX_CHOICES - len(charts)]
    scale = share_scale(page.shares[:, values], page.high[:, values])
    return charts + [_chart(page, page.domain.title(value), [_series(page, value)], scale) for value in values]


def _series(page: GroupsPage, value: int) -> Series:
    return Series(page.domain.title(value), page.shares[:, value], page.low[:, value], page.high[:, value])


def _choices(page: GroupsPage) -> list[int]:
    """Return the values that may be chosen: those that differ somewhere, then the most common; in their order."""
    changed = np.any([own.changed for own in page.contrasts], axis=0)
    chosen = np.lexsort((-page.shares.max(axis=0), ~changed))[:MAX_CHOICES]
    ordered: list[int] = (chosen if page.domain.unit is None else np.sort(chosen)).tolist()
    return ordered


def _chart(page: GroupsPage, title: str, series: list[Series], scale: ChartScale) -> OverGroups:
    is_share = scale.unit == "%"
    said = []
    for own in series:
        least, most = int(np.argmin(own.estimate)), int(np.argmax(own.estimate))
        ends = [
            f"{statistic_text(float(own.estimate[place]), is_share=is_share)} in {_short(page.names[place])}"
            for place in (least, most)
        ]
        said.append(f"{_short(own.title)}: from {ends[0]} to {ends[1]}.")
    start = f"{'Shares' if is_share else 'Numbers'} over {plural(len(page.names), 'group')}, with intervals."
    description = f"{start} {' '.join(said)} All numbers are in the tables."
    return OverGroups(title, description, over_groups_chart(page.names, series, scale))


def _short(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= MAX_TITLE_LETTERS else f"{shown[: MAX_TITLE_LETTERS - 1]}…"
