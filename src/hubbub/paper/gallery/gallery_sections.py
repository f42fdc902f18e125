"""The figures on the page: a sheet of small ones, then a section for each."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.paper.figure_specs import Figure
from hubbub.paper.gallery.claims_table import verdicts_of
from hubbub.paper.gallery.gallery_text import address, anchor, how_often, text
from hubbub.paper.gallery.medians_table import medians
from hubbub.paper.judging import Finding
from hubbub.paper.method_names import method_name
from hubbub.paper.paper_references import printed_place
from hubbub.paper.results import Results

# What one would see at first glance: the beginning of each picture's description.
PICTURES = {
    "place": "Heat map",
    "shapes": "Distributions as bars and lines, a panel for each method",
    "surfaces": "Contours over the triangle of all distributions on three values",
    "maps": "Heat maps side by side",
    "boxes": "Box plots by method",
    "guesses": "Curves over the number of reports",
    "paths": "Curves over the number of updates",
}


def sheet(figures: Sequence[Figure]) -> str:
    """Return all figures, small, as links to their sections."""
    return "\n".join(
        f'<li><a class="thumb" href="#{anchor("figure", figure.name)}">'
        f'<img src="{address("figures", figure.name + ".png")}" alt=""><span>{text(figure.title)}</span></a></li>'
        for figure in figures
    )


def section(figure: Figure, findings: Sequence[Finding], results: Results) -> str:
    """Return one figure with all that belongs to it."""
    picture, drawing = (address("figures", f"{figure.name}.{kind}") for kind in ("png", "svg"))
    links = [f'<a href="{drawing}">SVG</a>', f'<a href="{picture}">PNG</a>']
    links += [f'<a href="{address("runs", file)}">{text(what)} (CSV)</a>' for what, file in figure.tables]
    often = how_often(figure)
    pieces = [
        f'<section class="figure" id="{anchor("figure", figure.name)}" aria-labelledby="{_heading(figure)}">',
        f'<h3 id="{_heading(figure)}">{text(figure.title)}</h3>',
        f'<p class="where">{_where(figure)}</p>',
        f"<p>{text(figure.shows)}{' ' + text(often) if often else ''}</p>",
        f'<figure><a class="picture" href="{drawing}"><img src="{picture}" alt="{text(described(figure))}"></a>',
        f'<figcaption class="files">{" ".join(links)} <span>again: <code>hubbub reproduce {text(figure.name)}'
        "</code></span></figcaption></figure>",
        verdicts_of(figure, findings),
        medians(figure, results),
        "</section>",
    ]
    return "\n".join(piece for piece in pieces if piece)


def described(figure: Figure) -> str:
    """Return what the picture shows, for those who cannot see it."""
    said = f"{PICTURES[figure.kind]}: {figure.title}. {figure.shows}"
    if figure.show:
        said += f" Shown are {', '.join(method_name(method) for method in figure.show)}."
    if figure.settings:
        said += " The numbers are in the table of medians below."
    return said


def _where(figure: Figure) -> str:
    """Return where the figure stands in the paper; a few go beyond it, and their files say so."""
    if figure.where.startswith("beyond"):
        return f"{text(figure.where.capitalize())}."
    return f"In the paper: {text(printed_place(figure.where))}."


def _heading(figure: Figure) -> str:
    return anchor("title", figure.name)
