"""The whole page: one HTML file that needs nothing else, no network and no server."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from importlib.resources import files
from string import Template

import numpy as np

from hubbub.core.errors import HubbubError
from hubbub.reporting.markup import page_sections as sections
from hubbub.reporting.markup.content_policy import policy
from hubbub.reporting.markup.escaping import escaped, isolated, paragraph, shown
from hubbub.reporting.markup.page_data import document
from hubbub.reporting.page import Covariance, Page

# One idea each, in the order in which they build on each other.
SCRIPTS = (
    *("elements", "numbers", "values", "sets", "state", "reading", "theme", "verdicts"),
    *("drawing", "bars", "line", "map", "chart", "walk", "choice", "table", "comparison", "downloads", "start"),
)


def assemble(page: Page) -> str:
    """Return the page as HTML: the same text for the same content and version.

    Everything that must be read is in the HTML itself. The scripts draw what the block of data holds; the policy allows
    these scripts by their digests and nothing else, so that no label can become a program.
    """
    _check(page)
    early, library, program = scripts = (_read("early.js"), _read("vendor/plotly-cartesian.min.js"), _joined())
    return Template(_read("page.html")).substitute(
        policy=escaped(policy(scripts)),
        version=escaped(version("hubbub")),
        title=isolated(page.title),
        window_title=escaped(shown(page.title)),
        style=_read("page.css"),
        summary=paragraph(page.summary),
        people=sections.people(page),
        count=f"{len(page.domain):,}",
        verdicts=sections.verdicts(page),
        notes=sections.notes(page),
        kind=sections.kind(page),
        alternative=sections.alternative(page),
        intervals=escaped(sections.intervals(page)),
        caption=escaped(sections.largest_caption(page)),
        largest=sections.largest(page),
        noisy_note=paragraph(page.noisy_note),
        compared="" if page.noisy is not None else " hidden",
        method=isolated(page.method),
        facts=sections.facts(page),
        data=document(page),
        early=early,
        library=library,
        program=program,
    )


@cache
def _read(name: str) -> str:
    return files("hubbub.reporting").joinpath("assets", *name.split("/")).read_text(encoding="utf-8")


@cache
def _joined() -> str:
    """Return the scripts as one, in a scope of its own: nothing of it can be reached from outside."""
    parts = "\n".join(_read(f"{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}\n}})();\n'


def _check(page: Page) -> None:
    """Refuse a page whose parts are not about the same values: it would show numbers beside the wrong names."""
    many = len(page.domain)
    sets = (
        {"centre": page.sets.centre, "matrix": page.sets.matrix}
        if isinstance(page.sets, Covariance)
        else {"low of sets": page.sets.low, "high of sets": page.sets.high}
    )
    for name, needed in {"estimate": page.estimate, **(sets if isinstance(page.sets, Covariance) else {})}.items():
        if not np.isfinite(needed).all():
            raise HubbubError(
                "a number of the page is not finite",
                where=f"Page({name}=)",
                got=f"{int((~np.isfinite(needed)).sum()):,} of {needed.size:,} entries",
                expected="finite numbers; only bounds may be unknown (NaN)",
                remedy="leave out intervals that could not be computed: give Bounds instead of a Covariance",
            )
    parts = {"estimate": page.estimate, "low": page.low, "high": page.high, "noisy": page.noisy, **sets}
    for name, found in parts.items():
        expected = (many, many) if name == "matrix" else (many,)
        if found is not None and found.shape != expected:
            raise HubbubError(
                "a part of the page is not about the values of its domain",
                where=f"Page({name}=)",
                got=f"shape {found.shape}",
                expected=f"shape {expected}: {page.domain.describe()}",
                remedy="give one number for each value, in the order of domain.labels",
            )
