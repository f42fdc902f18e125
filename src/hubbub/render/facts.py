"""Labelled facts, and their text and HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from hubbub.arrays import Array, Floats


class Fact(NamedTuple):
    """Something worth saying, and its name."""

    label: str
    text: str


def as_text(facts: Sequence[Fact]) -> str:
    """Return the facts in two aligned columns."""
    width = max(len(fact.label) for fact in facts)
    return "\n".join(f"{fact.label:<{width}}  {fact.text}" for fact in facts)


def as_html(facts: Sequence[Fact], labels: Array, probabilities: Floats, most: int = 20) -> str:
    """Return the facts and the most probable values as two small tables; every text is escaped."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(fact.label)}</th>"
        f"<td style='text-align:left'>{html.escape(fact.text)}</td></tr>"
        for fact in facts
    )
    order = probabilities.argsort(kind="stable")[::-1][:most]
    top = max(float(probabilities.max()), 1e-300)
    bars = "".join(
        f"<tr><td style='text-align:left'>{html.escape(str(labels[place]))}</td>"
        f"<td>{probabilities[place]:.4f}</td>"
        f"<td style='text-align:left'><div style='width:{120 * probabilities[place] / top:.0f}px;"
        "height:0.8em;background:#0072b2'></div></td></tr>"
        for place in order
    )
    rest = len(labels) - len(order)
    more = f"<tr><td colspan='3'>and {rest:,} more values</td></tr>" if rest else ""
    head = "<tr><th style='text-align:left'>value</th><th>probability</th><th></th></tr>"
    return f"<table>{rows}</table><table>{head}{bars}{more}</table>"
