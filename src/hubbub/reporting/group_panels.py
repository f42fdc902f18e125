"""Groups side by side: one small chart for each, all of them on the same scale.

Few values are rows with a bar, a line has a curve with its band, a map has coloured cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hubbub.comparison.comparison_sentences import points
from hubbub.core.arrays import Floats, Positions
from hubbub.core.text import percent, plural
from hubbub.domains import Domain
from hubbub.reporting.chart_scale import ChartScale, Tick, difference_scale, round_scale, share_scale
from hubbub.reporting.groups_page import GroupsPage
from hubbub.reporting.panel_drawings import (
    COLOUR_STEPS,
    CellColour,
    CellMap,
    Colours,
    Curve,
    PanelNumbers,
    Strip,
    Texts,
    cell_map,
    curve,
    difference_colour,
    share_colour,
    strips,
)

MAX_STRIPS = 12  # rows of a panel
MAX_OPEN_PANELS = 12  # the others are folded
MAX_DRAWN_NUMBERS = 40_000  # in all panels of a section: a page stays below 5 MB
LEGEND_PARTS = 4


class Panel(NamedTuple):
    """The chart of one group: strips, a curve or a map."""

    title: str
    subtitle: str
    strips: list[Strip]
    curve: Curve | None
    cell_map: CellMap | None


class PanelSet(NamedTuple):
    """All panels of a section, and what they have in common."""

    kind: str  # strips, curve or map
    panels: list[Panel]
    ticks: list[Tick]  # of the common scale: lengths, or colours of a map
    across: list[Tick]  # of the horizontal axis of curves
    colours: list[CellColour]  # of the scale of a map
    left_out: list[str]  # groups without a panel, because the page would be too large
    hidden_values: int  # values without a row in each panel

    @property
    def open(self) -> list[Panel]:
        """The panels that are always in view."""
        return self.panels[:MAX_OPEN_PANELS]

    @property
    def folded(self) -> list[Panel]:
        """The panels that a reader may unfold."""
        return self.panels[MAX_OPEN_PANELS:]


class _PanelNumber(NamedTuple):
    """What all panels of a section show: the scale that they share, and how numbers become texts and colours."""

    scale: ChartScale
    texts: Texts
    colours: Colours
    has_root_scale: bool  # colours by the square root: sparse areas stay visible beside a dense centre

    def fractions(self, numbers: Floats) -> Floats:
        """Return how far along the scale of colours numbers are."""
        places = np.clip(self.scale.place(numbers) / 100.0, 0.0, 1.0)
        return np.sqrt(places) if self.has_root_scale else places

    @property
    def colour_ticks(self) -> list[Tick]:
        """Numbers on the scale of colours."""
        if not self.has_root_scale:
            return self.scale.ticks
        parts = [part / LEGEND_PARTS for part in range(LEGEND_PARTS + 1)]
        return [Tick(100.0 * part, percent(part**2 * self.scale.high)) for part in parts]


def share_panels(page: GroupsPage) -> PanelSet:
    """Return the estimate of each group with its intervals; values that are known not to be empty are marked."""
    drawn = [
        (name, plural(users, "user"), PanelNumbers(shares, low, high, np.asarray(low > 0.0)))
        for name, users, shares, low, high in zip(page.names, page.users, page.shares, page.low, page.high, strict=True)
    ]
    ends = [] if panel_kind(page.domain) == "map" else [page.high]
    quantity = _PanelNumber(share_scale(page.shares, *ends), _share_texts, share_colour, has_root_scale=True)
    return _panel_set(page, drawn, quantity)


def difference_panels(page: GroupsPage) -> PanelSet:
    """Return the differences of each group to what it is compared with; those that hold for certain are marked."""
    drawn = [
        (own.group, f"minus {own.other}", PanelNumbers(own.difference, own.low, own.high, own.changed))
        for own in page.contrasts
    ]
    is_map = panel_kind(page.domain) == "map"
    sizes = [each for own in page.contrasts for each in (own.difference, *([] if is_map else [own.low, own.high]))]
    quantity = _PanelNumber(difference_scale(*sizes), _difference_texts, difference_colour, has_root_scale=False)
    return _panel_set(page, drawn, quantity)


def panel_kind(domain: Domain) -> str:
    """Return how a distribution is drawn in a small chart."""
    if domain.chart == "map":
        return "map"
    return "curve" if domain.chart == "line" and len(domain) > MAX_STRIPS else "strips"


def signed_points(difference: float) -> str:
    """Return a difference of shares in percentage points, with its sign.

    >>> signed_points(0.0412), signed_points(-0.131), signed_points(0.0)
    ('+4.1', '−13', '0')
    """
    return "0" if difference == 0.0 else f"{'−' if difference < 0 else '+'}{points(difference)}"


def share_interval(low: float, high: float) -> str:
    """Return an interval of shares for readers."""
    return "not computed" if np.isnan(low) or np.isnan(high) else f"{percent(low)} to {percent(high)}"


def difference_interval(low: float, high: float) -> str:
    """Return an interval of differences for readers, in percentage points."""
    return "not computed" if np.isnan(low) or np.isnan(high) else f"{signed_points(low)} to {signed_points(high)}"


def _share_texts(share: float, low: float, high: float) -> tuple[str, str]:
    return percent(share), share_interval(low, high)


def _difference_texts(difference: float, low: float, high: float) -> tuple[str, str]:
    return signed_points(difference), difference_interval(low, high)


def _panel_set(page: GroupsPage, drawn: list[tuple[str, str, PanelNumbers]], quantity: _PanelNumber) -> PanelSet:
    domain, kind = page.domain, panel_kind(page.domain)
    most = len(drawn) if kind == "strips" else max(MAX_OPEN_PANELS, MAX_DRAWN_NUMBERS // len(domain))
    values = _strip_values(page) if kind == "strips" else np.arange(len(domain))
    panels = []
    for title, subtitle, numbers in drawn[:most]:
        panel = Panel(title, subtitle, [], None, None)
        if kind == "strips":
            panel = panel._replace(strips=strips(domain, values, numbers, quantity.scale, quantity.texts))
        elif domain.grid is None:
            panel = panel._replace(curve=curve(domain, numbers, quantity.scale))
        else:
            fractions = quantity.fractions(numbers.centre)
            panel = panel._replace(cell_map=cell_map(domain, domain.grid, numbers, fractions, quantity.colours))
        panels.append(panel)
    is_map = kind == "map"
    return PanelSet(
        kind,
        panels,
        quantity.colour_ticks if is_map else quantity.scale.ticks,
        _places_across(domain) if kind == "curve" else [],
        [quantity.colours(step / (COLOUR_STEPS - 1)) for step in range(COLOUR_STEPS)] if is_map else [],
        [title for title, _, _ in drawn[most:]],
        len(domain) - values.size,
    )


def _strip_values(page: GroupsPage) -> Positions:
    """Return the values that have a row: all of few; of many those that differ somewhere, then the most common."""
    size = len(page.domain)
    if size <= MAX_STRIPS:
        return np.arange(size)
    changed = np.any([own.changed for own in page.contrasts], axis=0)
    return np.lexsort((-page.shares.max(axis=0), ~changed))[:MAX_STRIPS]


def _places_across(domain: Domain) -> list[Tick]:
    """Return round numbers between the first and the last place of a line."""
    places = domain.places
    assert places is not None  # noqa: S101  # values along a line
    first, last = float(places[0]), float(places[-1])
    return round_scale(first, last).ticks_between(first, last)
