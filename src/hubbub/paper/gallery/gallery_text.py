"""How the page says things: escaped text, names of methods, distances and settings."""

from __future__ import annotations

import html
import re
from urllib.parse import quote

from hubbub.paper.figure_specs import Figure
from hubbub.paper.method_names import method_name
from hubbub.paper.settings import Setting

DISTANCES = {"tv": "Total variation", "emd": "Earth mover's distance"}


def text(given: object) -> str:
    """Return it as text of the page, safe in attributes, too: nothing that was read can become markup."""
    return html.escape(str(given), quote=True)


def address(*parts: str) -> str:
    """Return a relative address: names are quoted, so that none of them leads elsewhere."""
    return text("/".join(quote(part, safe="") for part in parts))


def anchor(kind: str, name: str) -> str:
    """Return the id of a figure's or a claim's place on the page."""
    return f"{kind}-" + re.sub(r"[^A-Za-z0-9_-]+", "-", name)


def runs_in_words(count: int) -> str:
    """Return how many runs there are: "1 run", "100 runs"."""
    return f"{count:,} run" + ("" if count == 1 else "s")


def how_often(figure: Figure) -> str:
    """Return how many runs a figure has, and which methods were tried on the first of them alone."""
    if not figure.settings:
        return ""
    said = f"{runs_in_words(figure.runs)} of each setting"
    costly = tuple(dict.fromkeys(method for setting in figure.settings for method in setting.beyond))
    if costly and figure.beyond_runs < figure.runs:
        first = "the first run" if figure.beyond_runs == 1 else f"the first {figure.beyond_runs} runs"
        said += f"; {' and '.join(method_name(method) for method in costly)} on {first} alone"
    return said + "."


def setting_name(setting: Setting) -> str:
    """Return a setting in one line, for the rows of a table."""
    truth = setting.truth
    if truth.kind == "place":
        where = "the map"
    elif truth.kind == "binomial":
        where = f"binomial on 0..{truth.values - 1}"
    else:
        where = f"uniform on {truth.low}..{truth.high} of 0..{truth.values - 1}"
    way = f"{setting.mechanism}, epsilon {setting.epsilon:g}" if setting.plain else setting.mechanism
    return f"{where}: {way}" + (f", {setting.users:,} users" if setting.users else "")
