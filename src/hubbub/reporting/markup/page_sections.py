"""The parts of the page that are read without any script: header, verdicts, the largest values, how it was computed."""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.text import percent
from hubbub.reporting.markup.escaping import escaped, isolated, paragraph, shown
from hubbub.reporting.page import BAD, GOOD, UNKNOWN, WARNING, Page, Verdict

MOST_LISTED = 20
TONES = {GOOD: "fine", WARNING: "take care", BAD: "problem", UNKNOWN: "not known"}


def verdicts(page: Page) -> str:
    """Return a card for each verdict: its tone is an icon and a word, not only a colour.

    Cards are open here, for paper and for readers without scripts; a script closes them, so that the chart is in sight.
    """
    return "\n".join(_card(verdict) for verdict in page.verdicts)


def _card(verdict: Verdict) -> str:
    tone = verdict.tone if verdict.tone in TONES else UNKNOWN
    return (
        f'<li><details class="card {tone}" open><summary><span class="tone"><svg class="mark" aria-hidden="true">'
        f'<use href="#mark-{tone}"/></svg>{TONES[tone]}</span><h3>{isolated(verdict.question)}</h3>'
        f'<strong class="answer">{isolated(verdict.answer)}</strong></summary>'
        f'<p class="said">{paragraph(verdict.text)}</p></details></li>'
    )


def notes(page: Page) -> str:
    """Return what the reader must know besides, if anything."""
    if not page.notes:
        return ""
    listed = "".join(f"<li>{paragraph(note)}</li>" for note in page.notes)
    return f'<div class="notes" role="note" aria-label="Notes"><ul>{listed}</ul></div>'


def facts(page: Page) -> str:
    """Return how it was computed."""
    return "\n".join(
        f"<div><dt>{isolated(fact.label)}</dt><dd>{paragraph(fact.text)}</dd></div>" for fact in page.facts
    )


def largest(page: Page) -> str:
    """Return the rows of the most probable values, for paper and for readers without scripts."""
    order = np.argsort(-page.estimate, kind="stable")[:MOST_LISTED]
    return "\n".join(
        f'<tr><th scope="row">{isolated(page.domain.title(int(place)))}</th>'
        f'<td><data value="{float(page.estimate[place])!r}">{percent(float(page.estimate[place]))}</data></td>'
        f"<td>{_between(float(page.low[place]), float(page.high[place]))}</td></tr>"
        for place in order
    )


def largest_caption(page: Page) -> str:
    """Return what the table of the largest values is."""
    many = len(page.domain)
    what = f"All {many:,} values" if many <= MOST_LISTED else f"The {MOST_LISTED} largest of {many:,} values"
    return f"{what}, {intervals(page)}"


def _between(low: float, high: float) -> str:
    return "not computed" if math.isnan(low) or math.isnan(high) else f"{percent(low)} to {percent(high)}"


def intervals(page: Page) -> str:
    """Return which intervals there are: "with intervals at 95%"."""
    none = bool(np.isnan(page.low).all())
    return "without intervals of single values" if none else f"with intervals at {100 * page.level:g}%"


def people(page: Page) -> str:
    """Return from how many people it comes."""
    return "1 person" if page.users == 1 else f"{page.users:,} people"


def kind(page: Page) -> str:
    """Return which chart the values ask for: categories, line or map."""
    return "categories" if page.domain.chart == "bars" else page.domain.chart


def alternative(page: Page) -> str:
    """Return the chart in words, for those who do not see it."""
    what = {"map": "Heat map", "line": "Chart along a line", "categories": "Bar chart"}[kind(page)]
    order = np.argsort(-page.estimate, kind="stable")[:3]
    top = "; ".join(
        f"{_cut(shown(page.domain.title(int(one))))}: {percent(float(page.estimate[one]))}" for one in order
    )
    return escaped(
        f"{what} of the estimated shares of {len(page.domain):,} values. Largest: {top}. "
        "All values are in the table below."
    )


def _cut(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
