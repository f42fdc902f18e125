"""The whole page: one HTML file that needs nothing but the pictures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from string import Template

from hubbub.paper.figure_specs import Figure, figure_names
from hubbub.paper.gallery.claims_table import checked, counts, table
from hubbub.paper.gallery.gallery_sections import section, sheet
from hubbub.paper.gallery.gallery_text import anchor, runs_in_words, text
from hubbub.paper.judging import Finding
from hubbub.paper.results import Results


def page(figures: Sequence[Figure], findings: Sequence[Finding], results: Results) -> str:
    """Return index.html: the same text for the same figures, findings and results.

    It refers to figures/NAME.png and .svg, to the tables in runs/, and to summary.json beside it.
    """
    checked(findings, figures)
    return Template(_read("page.html")).substitute(
        style=_read("page.css"),
        banners="\n".join(_banners(figures, results)),
        facts=_facts(figures, results),
        navigation=_navigation(figures),
        counts=counts(findings),
        claims=table(findings, figures),
        sheet=sheet(figures),
        sections="\n".join(section(figure, findings, results) for figure in figures),
        version=text(version("hubbub")),
    )


def _banners(figures: Sequence[Figure], results: Results) -> list[str]:
    """Return what a reader must know before anything else."""
    found = []
    if results.place.synthetic:
        found.append(
            "<strong>Synthetic data.</strong> The people on the map are invented, so the numbers that the paper "
            "publishes for its map cannot be compared with ours. "
            "Give real data with <code>--data</code> or <code>--counts</code>."
        )
    if results.quick:
        runs = _most_runs(figures)
        less = f"At most {runs_in_words(runs)} of each setting, and fewer settings" if runs else "Less was measured"
        found.append(
            f"<strong>Quick run.</strong> {less} than in the paper: fewer verdicts can be reached. "
            "Leave out <code>--quick</code> for all of it."
        )
    every = len(figure_names())
    if len(figures) < every:
        found.append(
            f"<strong>Some figures only.</strong> {len(figures)} of {every} figures were asked for; claims that belong "
            "to the others were not checked. Name no figure for all of them."
        )
    return [f'<p class="banner" role="note">{said}</p>' for said in found]


def _facts(figures: Sequence[Figure], results: Results) -> str:
    place = results.place
    kind = "" if place.synthetic else " (from a file)"  # of a synthetic place the source says it
    often = f"{runs_in_words(_most_runs(figures))} of each setting" if _most_runs(figures) else "no repeated runs"
    runs = f"{'quick' if results.quick else 'full'}, {often}"
    if any(figure.settings and figure.runs != _most_runs(figures) for figure in figures):
        runs += ", fewer where a figure says so"
    facts = (
        ("Data", f"<strong>{text(place.name)}</strong>{kind}. {text(place.source)}"),
        ("SHA-256 of the data", f"<code>{text(place.sha256)}</code>"),
        ("Runs", text(runs)),
        ("Seed", f"<code>{results.seed}</code>"),
        ("All numbers", '<a href="summary.json">summary.json</a>'),
    )
    return "\n".join(f"<div><dt>{name}</dt><dd>{said}</dd></div>" for name, said in facts)


def _navigation(figures: Sequence[Figure]) -> str:
    return "\n".join(
        f'<li><a href="#{anchor("figure", figure.name)}" title="{text(figure.title)}">{text(figure.name)}</a></li>'
        for figure in figures
    )


def _most_runs(figures: Sequence[Figure]) -> int:
    return max((figure.runs for figure in figures if figure.settings), default=0)


def _read(name: str) -> str:
    return files("hubbub.paper.gallery").joinpath(name).read_text(encoding="utf-8")
