"""The whole gallery: one HTML file that needs nothing but the pictures and tables beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from hubbub.core.text import plural
from hubbub.paper.claims import Claim
from hubbub.paper.figure_specs import FIGURE_KINDS, Figure, figure_names
from hubbub.paper.gallery.medians_table import medians_tables
from hubbub.paper.judging import VERDICTS, Finding
from hubbub.paper.results import Results
from hubbub.paper.wording import method_name, printed_place
from hubbub.reporting.html_templates import read_asset, render

PACKAGE = "hubbub.paper.gallery"


class ShownVerdict(NamedTuple):
    """How a verdict is shown: by a mark and a word, never by its colour alone."""

    style: str  # its class in gallery.css
    mark: str  # the symbol of the template: mark-...
    plural: str  # what several such claims do
    meaning: str


EARLY_MEANING = "True of EM as long as it is stopped early, but not of the maximum-likelihood answer."
SHOWN_VERDICTS: Mapping[str, ShownVerdict] = dict(
    zip(
        VERDICTS,
        (
            ShownVerdict("holds", "good", "hold", "What we measured agrees with it."),
            ShownVerdict("early", "early", "hold only with early stopping", EARLY_MEANING),
            ShownVerdict("fails", "bad", "do not hold", "What we measured contradicts it."),
            ShownVerdict("open", "unknown", "not decided", "Too few runs to tell, or nothing to compare with."),
        ),
        strict=True,
    )
)


def gallery_html(figures: Sequence[Figure], findings: Sequence[Finding], results: Results) -> str:
    """Return index.html: the same text for the same figures, findings and results.

    It refers to figures/NAME.png and .svg, to the tables in runs/, and to summary.json beside it.
    """
    max_runs = max((figure.runs for figure in figures if figure.settings), default=0)
    return render(
        PACKAGE,
        "gallery.html",
        style=read_asset(PACKAGE, "assets/gallery.css"),
        figures=figures,
        figures_by_name={figure.name: figure for figure in figures},
        all_figures=len(figure_names()),
        findings=findings,
        verdicts=SHOWN_VERDICTS,
        origin_of_claims=_origin_of_claims(findings),
        medians={figure.name: medians_tables(figure, results) for figure in figures},
        place=results.place,
        quick=results.quick,
        seed=results.seed,
        max_runs=max_runs,
        runs=_runs_text(figures, max_runs, quick=results.quick),
        address=_address,
        anchor=_anchor,
        described=_described,
        place_of_claim=_place_of_claim,
        place_of_figure=_place_of_figure,
        runs_of_figure=_runs_of_figure,
    )


def _address(*parts: str) -> str:
    """Return a relative address: names are quoted, so that none of them leads elsewhere."""
    return "/".join(quote(part, safe="") for part in parts)


def _anchor(kind: str, name: str) -> str:
    """Return the id of a figure's or a claim's place on the page."""
    return f"{kind}-" + re.sub(r"[^A-Za-z0-9_-]+", "-", name)


def _runs_text(figures: Sequence[Figure], most: int, *, quick: bool) -> str:
    repeated = f"{plural(most, 'run')} of each setting" if most else "no repeated runs"
    text = f"{'quick' if quick else 'full'}, {repeated}"
    has_fewer = any(figure.settings and figure.runs != most for figure in figures)
    return f"{text}, fewer where a figure says so" if has_fewer else text


def _origin_of_claims(findings: Sequence[Finding]) -> str:
    """Return how many claims are the paper's, and how many our own."""
    ours = sum(finding.claim.ours for finding in findings)
    if not findings:
        return "No claim belongs to these figures."
    if ours == len(findings):
        return "All of them are our own, none the paper's."
    if ours == 0:
        return "All of them are claims of the paper."
    return f"{plural(len(findings) - ours, 'claim')} of the paper, {ours} of our own."


def _described(figure: Figure) -> str:
    """Return what the picture shows, for readers who cannot see it."""
    text = f"{FIGURE_KINDS[figure.kind].picture}: {figure.title}. {figure.shows}"
    if figure.show:
        text += f" It shows {', '.join(map(method_name, figure.show))}."
    if figure.settings:
        text += " The numbers are in the table of medians below."
    return text


def _place_of_figure(figure: Figure) -> str:
    """Return where the figure is in the paper; a few go beyond it, and their files say so."""
    if figure.where.startswith("beyond"):
        return f"{figure.where.capitalize()}."
    return f"In the paper: {printed_place(figure.where)}."


def _place_of_claim(claim: Claim) -> str:
    """Return where a claim is in the paper, as the beginning of a line."""
    place = printed_place(claim.where)
    return place[:1].upper() + place[1:]


def _runs_of_figure(figure: Figure) -> str:
    """Return how many runs a figure has, and which methods were tried on the first of them only."""
    if not figure.settings:
        return ""
    text = f"{plural(figure.runs, 'run')} of each setting"
    if figure.first_runs:
        text += f"; {' and '.join(map(method_name, figure.beyond))} on the {figure.first_runs} only"
    return text + "."
