"""Labelled facts, and their text and HTML."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.domains import Domain


class Fact(NamedTuple):
    """Something worth saying, and its name."""

    label: str
    text: str


def upper_text(bound: float, digits: int = 2) -> str:
    """Return an upper bound in few digits, rounded up: what is read is a bound, too.

    >>> upper_text(4.61e-3), upper_text(1.0000001e-9, 3)
    ('4.7e-03', '1.01e-09')
    """
    text = f"{bound:.{digits - 1}e}"
    if not math.isfinite(bound) or float(text) >= bound:
        return text
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(bound)
    return f"{float(rounded):.{digits - 1}e}"


def as_text(facts: Sequence[Fact]) -> str:
    """Return the facts in two aligned columns."""
    width = max(len(fact.label) for fact in facts)
    below = "\n" + " " * (width + 2)
    return "\n".join(f"{fact.label:<{width}}  {fact.text.replace(chr(10), below)}" for fact in facts)


def most_probable(domain: Domain, probabilities: Floats, most: int) -> Positions:
    """Return the positions to show: values with places in their order, others from the most probable down."""
    shown = np.argsort(-probabilities, kind="stable")[:most]
    return shown if domain.unit is None else np.sort(shown)


def facts_html(facts: Sequence[Fact]) -> str:
    """Return the facts as a small table for notebooks; every text is escaped, and keeps its lines."""
    rows = "".join(
        f"<tr><th style='text-align:left;vertical-align:top;white-space:nowrap'>{html.escape(fact.label)}</th>"
        f"<td style='text-align:left;vertical-align:top;white-space:pre-wrap'>{html.escape(fact.text)}</td></tr>"
        for fact in facts
    )
    return f"<table>{rows}</table>"


def table_html(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table for notebooks, the first column to the left and the others to the right; every text is escaped."""

    def row(cells: Sequence[str], tag: str) -> str:
        sides = ("left", *["right"] * (len(cells) - 1))
        told = zip(sides, cells, strict=True)
        return "".join(f"<{tag} style='text-align:{side}'>{html.escape(cell)}</{tag}>" for side, cell in told)

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return f"<table><tr>{row(header, 'th')}</tr>{body}</table>"


def as_html(facts: Sequence[Fact], domain: Domain, probabilities: Floats, most: int = 20) -> str:
    """Return the facts and the most probable values as two small tables; every text is escaped."""
    shown = most_probable(domain, probabilities, most)
    top = max(float(probabilities.max()), 1e-300)
    bars = "".join(
        f"<tr><td style='text-align:left'>{html.escape(domain.title(int(place)))}</td>"
        f"<td>{probabilities[place]:.4f}</td>"
        f"<td style='text-align:left'><div style='width:{120 * probabilities[place] / top:.0f}px;"
        "height:0.8em;background:#0072b2'></div></td></tr>"
        for place in shown
    )
    rest = len(domain) - shown.size
    more = f"<tr><td colspan='3'>and {rest:,} more values, less probable</td></tr>" if rest else ""
    head = "<tr><th style='text-align:left'>value</th><th>probability</th><th></th></tr>"
    return f"{facts_html(facts)}<table>{head}{bars}{more}</table>"
