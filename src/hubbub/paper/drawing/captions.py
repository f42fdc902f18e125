"""What figures say, in plain words: truths, mechanisms, distances, numbers, and where it all comes from."""

from __future__ import annotations

from functools import cache

import numpy as np
from matplotlib.font_manager import findfont, get_font

from hubbub.core.arrays import Floats
from hubbub.core.text import plural
from hubbub.intake.study_entries import MECHANISMS
from hubbub.paper.figure_specs import Figure
from hubbub.paper.places import Place
from hubbub.paper.results import Results
from hubbub.paper.settings import MeasuredTruth, Setting
from hubbub.paper.wording import mechanism_name, method_name

MAX_NAME_LETTERS, MAX_TITLE_LETTERS = 48, 30  # characters of a name that came from elsewhere


def truth_name(truth: MeasuredTruth, place: Place) -> str:
    """Return what a truth is."""
    if truth.kind == "place":
        return drawable(place.name, MAX_TITLE_LETTERS)
    if truth.kind == "binomial":
        return f"binomial on 0 to {truth.values - 1}"
    return f"uniform on {truth.low} to {truth.high}, of 0 to {truth.values - 1}"


def epsilon_label(kind: str, truth: MeasuredTruth, place: Place) -> str:
    """Return "epsilon", and of what unit it is for noise that grows with the distance."""
    if not MECHANISMS[kind].metric:
        return "epsilon"
    return f"epsilon per {place.grid.unit}" if truth.kind == "place" else "epsilon per step"


def setting_caption(setting: Setting, place: Place) -> str:
    """Return a plain setting in two lines: who is asked, and how they answer."""
    kind = setting.mechanism
    unit = epsilon_label(kind, setting.truth, place).removeprefix("epsilon")
    return f"{truth_name(setting.truth, place)}\n{mechanism_name(kind)}, epsilon {setting.epsilon:g}{unit}"


def distance_label(distance: str, truth: MeasuredTruth, place: Place) -> str:
    """Return a distance's name, with its unit."""
    if distance == "tv":
        return "total variation"
    return f"earth mover's distance ({place.grid.unit if truth.kind == 'place' else 'steps'})"


def number(value: float) -> str:
    """Return a distance as people read it: three decimals, and no more than that of what is tiny.

    >>> number(0.45444), number(0.0198), number(7.386), number(0.00041)
    ('0.454', '0.020', '7.39', '0.0004')
    """
    if value >= 1.0:
        return f"{value:.3g}"
    return f"{value:.3f}" if value >= 0.001 or value == 0.0 else f"{value:.1g}"


def median_text(values: Floats) -> str:
    """Return the median and how far runs reach: the middle 90%; where there is but one run, nothing to add."""
    if len(values) == 1:
        return "a single run"
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
    return f"median {number(middle)} ({number(low)} to {number(high)})"


def small_print(figure: Figure, results: Results) -> list[str]:
    """Return the parts of the small print: data, runs and seed."""
    truths = {setting.truth.kind for setting in figure.settings}
    parts = []
    if figure.kind == "place" or "place" in truths:
        place = results.place
        about = ", synthetic" if place.synthetic else ""
        parts.append(f"Data: {drawable(place.name)}{about}, {place.users:,} people")
    if truths - {"place"}:
        users = sorted({setting.users for setting in figure.settings if setting.users})
        who = f"{users[0]:,}" + (f" to {users[-1]:,}" if len(users) > 1 else "")
        parts.append(f"{'On the line' if parts else 'Data'}: {who} inputs drawn in each run")
    if figure.runs:
        parts.append(f"{plural(figure.runs, 'run')}{_first_runs(figure, results)}")
    if figure.kind not in ("place", "surfaces"):
        parts.append(f"Seed {results.seed}")
    return parts


def measured_methods(figure: Figure, results: Results) -> tuple[str, ...]:
    """Return the shown methods that were measured in some setting, in the figure's order."""
    known = {method for setting in figure.settings for method in results.methods(figure, setting)}
    return tuple(method for method in figure.show if method in known)


def drawable(name: str, longest: int = MAX_NAME_LETTERS) -> str:
    """Return a name from elsewhere, shortened, with ? for what the font cannot draw."""
    text = "".join(letter if letter.isprintable() and _drawable(letter) else "?" for letter in name)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _first_runs(figure: Figure, results: Results) -> str:
    text = ""
    if figure.first_runs:
        text = f" ({' and '.join(map(method_name, figure.beyond))}: {figure.first_runs})"
    missing = [method_name(method) for method in figure.show if method not in measured_methods(figure, results)]
    return text + (f"; not measured here: {', '.join(missing)}" if missing else "")


@cache
def _drawable(letter: str) -> bool:
    return bool(get_font(findfont("DejaVu Sans")).get_char_index(ord(letter)))
