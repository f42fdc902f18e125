"""The report as one HTML file that needs nothing else: no network, no server, no file beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hubbub.core.files import write_file
from hubbub.core.text import percent, plural, whole_percent
from hubbub.domains import Domain
from hubbub.polygons.result import REST
from hubbub.rendering.margins import MARGIN_TEXTS, margin_classes
from hubbub.reporting.html_templates import content_policy, read_asset, render
from hubbub.reporting.page_values import (
    BAD,
    CERTAINTY_VIEW,
    GOOD,
    PARTS_VIEW,
    UNKNOWN,
    VALUES_VIEW,
    WARNING,
    Page,
)
from hubbub.reporting.script_data import script_data
from hubbub.reporting.visible_text import visible

PACKAGE = "hubbub.reporting"
MAX_LISTED_VALUES = 20  # in the table for paper and for readers without scripts
MAX_TITLE_LETTERS = 60  # of a value in the description of the chart
TONE_WORDS = {GOOD: "fine", WARNING: "caution", BAD: "problem", UNKNOWN: "unknown"}  # never by colour alone
PART_CHARTS = {"map": "Map", "line": "Steps along a line", "bars": "Bar chart"}
CHARTS = {"map": "Heat map", "line": "Chart along a line", "bars": "Bar chart"}
REMEDY_WHILE_WRITTEN = "wait for it to end, or write this report under another name"

# One idea each, in the order in which they build on each other.
SCRIPTS = (
    *("dom_elements", "numbers", "page_values", "map_places", "selection", "resolved_parts", "set_intervals"),
    *("tooltip", "theme", "verdict_cards", "attribute_values", "attribute_tables"),
    *("chart_style", "bar_chart", "line_chart", "map_furniture", "map_cells", "map_chart", "certainty_map"),
    *("parts_chart", "estimate_chart", "map_pointer", "keyboard_navigation"),
    *("selection_readout", "value_table", "noisy_comparison", "downloads", "start"),
)


class Scripts(NamedTuple):
    """The scripts of the page, each in a block of its own: the content policy allows them by their digests."""

    before_first_paint: str
    chart_library: str
    program: str


def write_page(page: Page, path: Path) -> None:
    """Write the page in one step: whoever has the old one open never sees half of the new one."""
    write_file(path, render_page(page).encode("utf-8"), remedy=REMEDY_WHILE_WRITTEN)


def render_page(page: Page) -> str:
    """Return the page as HTML: the same text for the same content and version.

    Everything that must be read is in the HTML itself. The scripts draw what the block of data holds; the policy allows
    these scripts and nothing else, so that no label can become a program.
    """
    scripts = page_scripts()
    return render(
        PACKAGE,
        "report.html",
        page=page,
        policy=content_policy(scripts),
        style=read_asset(PACKAGE, "assets/report.css"),
        scripts=scripts,
        data=script_data(page),
        tone_words=TONE_WORDS,
        descriptions={view.name: DESCRIPTIONS[view.name](page) for view in page.views},
        intervals=_which_intervals(page),
        interval_text=_interval_text,
        rest_name=REST,
        region_intervals=_region_intervals(page),
        value_word=_value_word(page.domain),
        largest=page.largest_first()[:MAX_LISTED_VALUES],
    )


@cache
def page_scripts() -> Scripts:
    """Return the scripts; those of the page are one, in its own scope: nothing of it can be reached from outside."""
    parts = "\n".join(read_asset(PACKAGE, f"assets/{name}.js") for name in SCRIPTS)
    return Scripts(
        read_asset(PACKAGE, "assets/before_first_paint.js"),
        read_asset(PACKAGE, "assets/vendor/plotly-cartesian.min.js"),
        f'"use strict";\n(() => {{\n{parts}\n}})();\n',
    )


def _value_word(domain: Domain) -> str:
    return "combination" if domain.product is not None else "cell" if domain.chart == "map" else "value"


def _interval_text(low: float, high: float) -> str:
    return "not computed" if math.isnan(low) or math.isnan(high) else f"{percent(low)} to {percent(high)}"


def _which_intervals(page: Page) -> str:
    """Return which intervals there are: "with 95% intervals"."""
    if np.isnan(page.low).all():
        return "without intervals for single values"
    return f"with {whole_percent(page.level)} intervals"


def _region_intervals(page: Page) -> str:
    """Return which intervals the regions have."""
    if page.regions is None or np.isnan(page.regions.low).all():
        return "without intervals"
    return f"with {whole_percent(page.level)} intervals: of each by itself, and of all of them together"


def _chart_description(page: Page) -> str:
    """Return the chart of single values in words, for readers who do not see it."""
    titles = [(page.domain.title(position), float(page.estimate[position])) for position in page.largest_first()[:3]]
    return (
        f"{CHARTS[page.domain.chart]} of the estimated shares of {len(page.domain):,} values. "
        f"Largest: {_shares(titles)}. All values are in the table below."
    )


def _certainty_description(page: Page) -> str:
    """Return the map of how sure the shares are in words: how many cells are known how well."""
    classes = margin_classes(page.estimate, page.shown_low, page.shown_high)
    counts = np.bincount(classes[classes >= 0], minlength=len(MARGIN_TEXTS)).tolist()
    said = [f"{text}: {plural(count, 'cell')}" for text, count in zip(MARGIN_TEXTS, counts, strict=True)]
    return (
        f"Map of the margins of {len(page.domain):,} cells, half the width of each interval in percent of the share. "
        f"{'; '.join(reversed(said))}. All intervals are in the table below."
    )


def _parts_description(page: Page) -> str:
    """Return the chart of the parts that are told apart in words."""
    if page.resolution is None:
        return ""
    told = sorted(page.resolution.told, key=lambda part: -part.estimate)
    return (
        f"{PART_CHARTS[page.domain.chart]} of {plural(len(told), page.resolution.words.part)} that can be told apart. "
        f"Largest: {_shares([(part.title, part.estimate) for part in told[:3]])}. All of them are in the table below."
    )


def _shares(titles: Sequence[tuple[str, float]]) -> str:
    """Return shares by name, with names of moderate length."""
    shown = [(visible(title), share) for title, share in titles]
    return "; ".join(
        f"{title if len(title) <= MAX_TITLE_LETTERS else title[: MAX_TITLE_LETTERS - 1] + '…'}: {percent(share)}"
        for title, share in shown
    )


DESCRIPTIONS: dict[str, Callable[[Page], str]] = {
    VALUES_VIEW: _chart_description,
    CERTAINTY_VIEW: _certainty_description,
    PARTS_VIEW: _parts_description,
}
