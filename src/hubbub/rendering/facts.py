"""Labelled facts, and tables of them as text and as HTML for notebooks."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats, Positions, largest_first
from hubbub.domains import Domain
from hubbub.rendering.palette import BLUE

BAR_PIXELS = 120  # length of the bar of the most probable value
MAX_LISTED_VALUES = 20  # in a notebook


class Fact(NamedTuple):
    """A statement and its label."""

    label: str
    text: str


def upper_text(bound: float, digits: int = 2) -> str:
    """Return an upper bound in few digits, rounded up so that the text is an upper bound, too.

    >>> upper_text(4.61e-3), upper_text(1.0000001e-9, 3)
    ('4.7e-03', '1.01e-09')
    """
    text = f"{bound:.{digits - 1}e}"
    if not math.isfinite(bound) or float(text) >= bound:
        return text
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(bound)
    return f"{float(rounded):.{digits - 1}e}"


def most_probable(domain: Domain, probabilities: Floats, most: int) -> Positions:
    """Return the positions of the most probable values, in domain order if the domain has distances."""
    shown = largest_first(probabilities)[:most]
    return shown if domain.unit is None else np.sort(shown)


def facts_text(facts: Sequence[Fact]) -> str:
    """Return the facts in two aligned columns."""
    width = max(len(fact.label) for fact in facts)
    next_line = "\n" + " " * (width + 2)
    return "\n".join(f"{fact.label:<{width}}  {fact.text.replace(chr(10), next_line)}" for fact in facts)


def facts_html(facts: Sequence[Fact]) -> str:
    """Return the facts as a small table; every text is escaped and keeps its line breaks."""
    rows = "".join(
        f"<tr><th style='text-align:left;vertical-align:top;white-space:nowrap'>{html.escape(fact.label)}</th>"
        f"<td style='text-align:left;vertical-align:top;white-space:pre-wrap'>{html.escape(fact.text)}</td></tr>"
        for fact in facts
    )
    return f"<table>{rows}</table>"


def table_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with the first column aligned left and the others right; every text is escaped."""

    def row(cells: Sequence[str], tag: str) -> str:
        sides = ("left", *["right"] * (len(cells) - 1))
        aligned = zip(sides, cells, strict=True)
        return "".join(f"<{tag} style='text-align:{side}'>{html.escape(cell)}</{tag}>" for side, cell in aligned)

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return f"<table><tr>{row(header, 'th')}</tr>{body}</table>"


def distribution_html(facts: Sequence[Fact], domain: Domain, probabilities: Floats) -> str:
    """Return the facts, and the most probable values with bars, as two small tables; every text is escaped."""
    shown = most_probable(domain, probabilities, MAX_LISTED_VALUES)
    top = max(float(probabilities.max()), 1e-300)
    bars = "".join(
        f"<tr><td style='text-align:left'>{html.escape(domain.title(int(position)))}</td>"
        f"<td>{probabilities[position]:.4f}</td>"
        f"<td style='text-align:left'><div style='width:{max(0.0, BAR_PIXELS * probabilities[position] / top):.0f}px;"
        f"height:0.8em;background:{BLUE}'></div></td></tr>"
        for position in shown
    )
    hidden = len(domain) - shown.size
    more = f"<tr><td colspan='3'>and {hidden:,} more values, less probable</td></tr>" if hidden else ""
    head = "<tr><th style='text-align:left'>value</th><th>probability</th><th></th></tr>"
    return f"{facts_html(facts)}<table>{head}{bars}{more}</table>"
