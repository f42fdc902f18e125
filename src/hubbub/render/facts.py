"""Labelled facts, and their text and HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hubbub.arrays import Floats, Positions
from hubbub.domains import Domain


class Fact(NamedTuple):
    """Something worth saying, and its name."""

    label: str
    text: str


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
    """Return the facts as a small table; every text is escaped, lines stay lines."""
    rows = "".join(
        f"<tr><th style='text-align:left;vertical-align:top'>{html.escape(fact.label)}</th>"
        f"<td style='text-align:left;white-space:pre-line'>{html.escape(fact.text)}</td></tr>"
        for fact in facts
    )
    return f"<table>{rows}</table>"


def intervals_html(domain: Domain, low: Floats, estimate: Floats, high: Floats, most: int = 20) -> str:
    """Return intervals as a small table, largest first; NaN: not asked for. Every text is escaped."""
    asked = [int(place) for place in np.argsort(-estimate, kind="stable") if low[place] == low[place]]
    cells = "".join(
        f"<tr><td style='text-align:left'>{html.escape(domain.title(place))}</td>"
        f"<td>{low[place]:.4f}</td><td>{estimate[place]:.4f}</td><td>{high[place]:.4f}</td></tr>"
        for place in asked[:most]
    )
    rest = len(asked) - most
    more = f"<tr><td colspan='4'>and {rest:,} more intervals</td></tr>" if rest > 0 else ""
    head = "<tr><th style='text-align:left'>value</th><th>low</th><th>estimate</th><th>high</th></tr>"
    return f"<table>{head}{cells}{more}</table>"


def as_html(facts: Sequence[Fact], domain: Domain, probabilities: Floats, most: int = 20) -> str:
    """Return the facts and the most probable values as two small tables; every text is escaped."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(fact.label)}</th>"
        f"<td style='text-align:left'>{html.escape(fact.text)}</td></tr>"
        for fact in facts
    )
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
    return f"<table>{rows}</table><table>{head}{bars}{more}</table>"
