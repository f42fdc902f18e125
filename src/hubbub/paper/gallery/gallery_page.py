"""The whole gallery: one HTML file that needs nothing but the pictures and tables beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from hubbub.core.text import plural
from hubbub.paper.figure_specs import Figure, figure_names
from hubbub.paper.gallery.claim_verdicts import VERDICTS, check_findings, origin_of_claims
from hubbub.paper.gallery.figure_text import described, place_of_claim, place_of_figure, runs_of_figure
from hubbub.paper.gallery.medians_table import medians_tables
from hubbub.paper.judging import Finding
from hubbub.paper.results import Results
from hubbub.reporting.html_templates import read_asset, render

PACKAGE = "hubbub.paper.gallery"


def gallery_html(figures: Sequence[Figure], findings: Sequence[Finding], results: Results) -> str:
    """Return index.html: the same text for the same figures, findings and results.

    It refers to figures/NAME.png and .svg, to the tables in runs/, and to summary.json beside it.
    """
    check_findings(findings, figures)
    return render(
        PACKAGE,
        "gallery.html",
        style=read_asset(PACKAGE, "assets/gallery.css"),
        figures=figures,
        figures_by_name={figure.name: figure for figure in figures},
        all_figures=len(figure_names()),
        findings=findings,
        verdicts=VERDICTS,
        origin_of_claims=origin_of_claims(findings),
        medians={figure.name: medians_tables(figure, results) for figure in figures},
        place=results.place,
        quick=results.quick,
        seed=results.seed,
        max_runs=_max_runs(figures),
        runs=_runs_text(figures, quick=results.quick),
        address=address,
        anchor=anchor,
        described=described,
        place_of_claim=place_of_claim,
        place_of_figure=place_of_figure,
        runs_of_figure=runs_of_figure,
    )


def address(*parts: str) -> str:
    """Return a relative address: names are quoted, so that none of them leads elsewhere."""
    return "/".join(quote(part, safe="") for part in parts)


def anchor(kind: str, name: str) -> str:
    """Return the id of a figure's or a claim's place on the page."""
    return f"{kind}-" + re.sub(r"[^A-Za-z0-9_-]+", "-", name)


def _runs_text(figures: Sequence[Figure], *, quick: bool) -> str:
    most = _max_runs(figures)
    repeated = f"{plural(most, 'run')} of each setting" if most else "no repeated runs"
    text = f"{'quick' if quick else 'full'}, {repeated}"
    has_fewer = any(figure.settings and figure.runs != most for figure in figures)
    return f"{text}, fewer where a figure says so" if has_fewer else text


def _max_runs(figures: Sequence[Figure]) -> int:
    return max((figure.runs for figure in figures if figure.settings), default=0)
