"""Log-likelihoods over all distributions on three values, and EM's way up."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Page
from matplotlib.lines import Line2D
from matplotlib.patheffects import Normal, Stroke
from matplotlib.tri import Triangulation

from hubbub.core.arrays import Floats
from hubbub.estimators import estimate
from hubbub.paper.drawing.figure_sheet import AXIS_LABEL_INCHES, PAGE_INCHES, PANEL_TITLE_INCHES, Handles, Sheet, head
from hubbub.paper.drawing.plot_style import COLOUR_MAP, SEAM_POINTS, SMALL_POINTS, marker
from hubbub.paper.figure_specs import Figure
from hubbub.paper.likelihood_surfaces import Surface, surfaces_of
from hubbub.paper.results import Results
from hubbub.rendering.palette import BLACK, VERMILLION

TRIANGLE_STEPS = 60  # points on each side of the triangle, seen from above; half of that in the landscape
SURFACE_INCHES = 4.6  # inches for each surface
CONTOUR_LEVELS = 16
EM_UPDATES = 5_000  # of EM, from each start
# A white line with black edges is seen on every colour of the map, and on white.
EM_WAY: dict[str, Any] = {
    "color": "white",
    "linewidth": 1.8,
    "path_effects": [Stroke(linewidth=3.2, foreground=BLACK), Normal()],
}
EM_START: dict[str, Any] = {"marker": "o", "markersize": 7, "markerfacecolor": "white", "markeredgecolor": BLACK}
EM_END = marker("D", 6, VERMILLION)
SUMMIT: dict[str, Any] = {
    "color": VERMILLION,
    "linewidth": 2.5,
    "marker": "*",
    "markersize": 15,
    "markeredgecolor": BLACK,
}
MAX_ROUNDING = 1e-9  # singular values below this are rounding


def draw_surfaces(figure: Figure, results: Results) -> Page:
    """Draw each surface twice: from above with EM's ways, and as a landscape."""
    surfaces = surfaces_of(figure)
    legend: Handles = [
        (Line2D([], [], **EM_WAY, **EM_START), "a start of EM, and its way"),
        (Line2D([], [], **EM_END), f"where EM is after {EM_UPDATES:,} updates"),
        (Line2D([], [], **SUMMIT), "maximum"),
    ]
    sheet = Sheet(
        figure,
        results,
        height=SURFACE_INCHES * len(surfaces),
        notes=["Colours: log-likelihood, brighter is higher", "θ₂ = 1 - θ₁ - θ₃", "Nothing here is random"],
        legend=legend,
    )
    for row, surface in enumerate(surfaces):
        top = row * SURFACE_INCHES
        side = SURFACE_INCHES - PANEL_TITLE_INCHES - AXIS_LABEL_INCHES
        _from_above(sheet.axes(0.75, top + PANEL_TITLE_INCHES, side, side), surface)
        _landscape(sheet.axes(side + 1.6, top, PAGE_INCHES - side - 2.4, SURFACE_INCHES, projection="3d"), surface)
    return sheet.page


def maxima(surface: Surface) -> Floats:
    """Return the ends of the set of maxima, one row each: one where the maximum is the only one.

    All theta with the same theta A have the same likelihood; along v with v A = 0 one may walk to the border.
    """
    corner = corner_of(surface)
    matrix = np.array(surface.matrix, dtype=np.float64)
    summit = estimate(surface.reports, "mle").probabilities if corner is None else np.eye(len(matrix))[corner]
    _, sizes, directions = np.linalg.svd(matrix.T)
    if sizes[-1] > MAX_ROUNDING:
        return np.array([summit])
    along = directions[-1]
    moving = [(step, -value / step) for value, step in zip(summit, along, strict=True) if abs(step) > MAX_ROUNDING]
    ends = (max(end for step, end in moving if step > 0), min(end for step, end in moving if step < 0))
    return np.array([summit + end * along for end in ends])


def corner_of(surface: Surface) -> int | None:
    """Return the corner that is a maximum, if one is. L is concave: it is where no derivative is above 0."""
    corners = range(len(surface.matrix))
    return next((corner for corner in corners if max(surface.slopes_at(corner).values()) <= 0), None)


def _from_above(axes: Axes, surface: Surface) -> None:
    first, third = _points(TRIANGLE_STEPS)
    heights = _heights(surface, first, third)
    axes.tricontourf(Triangulation(first, third), heights, levels=CONTOUR_LEVELS, cmap=COLOUR_MAP).set(
        edgecolor="face", linewidth=SEAM_POINTS
    )
    for start in surface.starts:
        way = surface.em_way(start, EM_UPDATES)
        axes.plot(way[:, 0], way[:, 2], **EM_WAY, zorder=3)
        axes.plot(way[0, 0], way[0, 2], **EM_START, zorder=5)
        axes.plot(way[-1, 0], way[-1, 2], **EM_END, clip_on=False, zorder=6)
    ends = maxima(surface)
    axes.plot(ends[:, 0], ends[:, 2], **SUMMIT, clip_on=False, zorder=4)
    axes.set_aspect("equal")
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("θ₁: share of value 1")
    axes.set_ylabel("θ₃: share of value 3")
    head(axes, surface.name)
    axes.text(0.98, 0.97, _facts(surface, ends), transform=axes.transAxes, ha="right", va="top", fontsize=SMALL_POINTS)


def _facts(surface: Surface, ends: Floats) -> str:
    """Return what stands in the free corner of the panel."""
    if len(ends) > 1:
        return "\n".join(["all of the line is maximal:", f"{_point(ends[0])} to", _point(ends[1])])
    corner = corner_of(surface)
    lines = [f"the only maximum: {_point(ends[0])}"]
    if corner is not None:
        slopes = surface.slopes_at(corner)
        lines += ["exact derivatives there:"]
        lines += [f"∂L/∂θ{'₁₂₃'[value]} = {slope}" for value, slope in slopes.items()]
    return "\n".join([*lines, *surface.note.splitlines()])


def _landscape(axes: Any, surface: Surface) -> None:
    first, third = _points(TRIANGLE_STEPS // 2)
    heights = _heights(surface, first, third)
    hills = axes.plot_trisurf(
        Triangulation(first, third), heights, cmap=COLOUR_MAP, linewidth=SEAM_POINTS, antialiased=False
    )
    hills.set_edgecolor("face")
    ends = maxima(surface)
    tops = surface.log_likelihood(ends)
    axes.plot(ends[:, 0], ends[:, 2], tops + 0.002 * np.ptp(heights), **{**SUMMIT, "markersize": 12}, zorder=10)
    axes.view_init(elev=32, azim=38)
    axes.set_xlabel("θ₁")
    axes.set_ylabel("θ₃")
    axes.set_zlabel("log-likelihood", labelpad=6)
    axes.set_xticks([0, 0.5, 1])
    axes.set_yticks([0, 0.5, 1])
    axes.locator_params(axis="z", nbins=4)
    axes.set_box_aspect(None, zoom=0.95)


def _points(steps: int) -> tuple[Floats, Floats]:
    """Return points all over the triangle theta_1 + theta_3 <= 1."""
    pairs = [(one / steps, three / steps) for one in range(steps + 1) for three in range(steps + 1 - one)]
    first, third = np.array(pairs).T
    return first, third


def _heights(surface: Surface, first: Floats, third: Floats) -> Floats:
    return surface.log_likelihood(np.stack([first, 1.0 - first - third, third], axis=1))


def _point(theta: Floats) -> str:
    return "(" + ", ".join(f"{abs(round(float(value), 3)):g}" for value in theta) + ")"
