"""One look for all figures: each method has a colour, a hatch, a marker and a line of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import Any

import matplotlib as mpl
from matplotlib.colors import to_rgb

from hubbub.paper.wording import method_name
from hubbub.rendering.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION

SMALL_POINTS, PLAIN_POINTS, TITLE_POINTS = 9.0, 10.0, 14.0  # points; nothing is smaller than the first
STYLE_FILE = files("hubbub.paper.drawing").joinpath("paper_figures.mplstyle")
COLOUR_MAP = "cividis"
SEAM_POINTS = 0.4  # points around filled shapes that touch, in their own colour: browsers leave a gap there


@dataclass(frozen=True)
class Look:
    """How one method is drawn everywhere."""

    label: str
    colour: str
    hatch: str
    marker: str
    line: str | tuple[float, tuple[float, ...]]

    @property
    def light(self) -> tuple[float, float, float]:
        """The colour mixed with white: for methods that were tried on the first runs alone."""
        red, green, blue = (0.5 * part + 0.5 for part in to_rgb(self.colour))
        return red, green, blue


METHOD_LOOKS = {
    "noisy": Look(method_name("noisy"), GREY, "", "X", "-"),
    "inv-n": Look(method_name("inv-n"), ORANGE, "////", "v", (0, (5, 2))),
    "inv-p": Look(method_name("inv-p"), VERMILLION, "\\\\\\\\", "^", (0, (5, 2, 1, 2))),
    "mle": Look(method_name("mle"), GREEN, "xxxx", "D", (0, (4, 2))),
    "auto": Look(method_name("auto"), PURPLE, "++++", "P", (0, (1, 1.5))),
}
# The rule of the paper's figures is blue; every other delta is of the lighter blue, and told apart by its marker.
DELTA_HATCHES = {
    "1": ("OO", "d"),
    "0.3": ("**", "8"),
    "0.1": ("", "o"),
    "0.03": ("||", "<"),
    "0.01": ("---", ">"),
    "0.003": ("oo", "p"),
    "0.001": ("...", "s"),
    "0.0001": ("--", "*"),
}  # hatch and marker
PAPER_DELTA = "0.1"


def look(method: str) -> Look:
    """Return how a method is drawn.

    >>> look("em 0.1").label, look("em 0.1").colour
    ('EM (delta 0.1)', '#0072b2')
    """
    if not method.startswith("em "):
        return METHOD_LOOKS[method]
    delta = method.removeprefix("em ")
    hatch, marker = DELTA_HATCHES.get(delta, ("..", "H"))
    return Look(method_name(method), BLUE if delta == PAPER_DELTA else SKY, hatch, marker, "-")


@contextmanager
def styled() -> Iterator[None]:
    """Draw and save inside this: matplotlib's defaults and this style, whatever the user has set; then as before."""
    with mpl.rc_context():
        mpl.rcdefaults()
        with as_file(STYLE_FILE) as path:
            mpl.rcParams.update(mpl.rc_params_from_file(path, use_default_template=False))
        yield


def marker(shape: str, size: float, face: str, *, edge: float = 1.0, **more: Any) -> dict[str, Any]:
    """Return the style of markers with a black edge, without a line between them."""
    style = {"linestyle": "", "marker": shape, "markersize": size, "markerfacecolor": face}
    return {**style, "markeredgecolor": BLACK, "markeredgewidth": edge, **more}
