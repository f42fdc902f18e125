"""Figures and settings in words: descriptions of pictures, places in the paper, numbers of runs."""

from __future__ import annotations

from hubbub.core.text import plural
from hubbub.paper.claims import Claim
from hubbub.paper.figure_specs import Figure
from hubbub.paper.method_names import method_name
from hubbub.paper.paper_references import printed_place
from hubbub.paper.settings import Setting

# What a picture looks like: the beginning of its description.
PICTURE_KINDS = {
    "place": "Heat map",
    "shapes": "Distributions as bars and lines, a panel for each method",
    "surfaces": "Contours over the triangle of all distributions on three values",
    "maps": "Heat maps side by side",
    "boxes": "Box plots by method",
    "guesses": "Curves over the number of reports",
    "paths": "Curves over the number of updates",
}


def described(figure: Figure) -> str:
    """Return what the picture shows, for readers who cannot see it."""
    text = f"{PICTURE_KINDS[figure.kind]}: {figure.title}. {figure.shows}"
    if figure.show:
        text += f" It shows {', '.join(method_name(method) for method in figure.show)}."
    if figure.settings:
        text += " The numbers are in the table of medians below."
    return text


def place_of_figure(figure: Figure) -> str:
    """Return where the figure is in the paper; a few go beyond it, and their files say so."""
    if figure.where.startswith("beyond"):
        return f"{figure.where.capitalize()}."
    return f"In the paper: {printed_place(figure.where)}."


def place_of_claim(claim: Claim) -> str:
    """Return where a claim is in the paper, as the beginning of a line."""
    place = printed_place(claim.where)
    return place[:1].upper() + place[1:]


def runs_of_figure(figure: Figure) -> str:
    """Return how many runs a figure has, and which methods were tried on the first of them only."""
    if not figure.settings:
        return ""
    text = f"{plural(figure.runs, 'run')} of each setting"
    if figure.first_runs:
        text += f"; {' and '.join(map(method_name, figure.beyond))} on the {figure.first_runs} only"
    return text + "."


def setting_name(setting: Setting) -> str:
    """Return a setting in one line, for the rows of a table."""
    truth = setting.truth
    if truth.kind == "place":
        values = "the map"
    elif truth.kind == "binomial":
        values = f"binomial on 0..{truth.values - 1}"
    else:
        values = f"uniform on {truth.low}..{truth.high} of 0..{truth.values - 1}"
    mechanism = f"{setting.mechanism}, epsilon {setting.epsilon:g}" if setting.plain else setting.mechanism
    return f"{values}: {mechanism}" + (f", {setting.users:,} users" if setting.users else "")
