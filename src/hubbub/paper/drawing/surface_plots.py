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
BLACK_EDGES = [Stroke(linewidth=3.2, foreground=BLACK), Normal()]
EM_WAY: dict[str, Any] = {"color": "white", "linewidth": 1.8, "path_effects": BLACK_EDGES}
EM_START: dict[str, Any] = {"marker": "o", "markersize": 7, "markerfacecolor": "white", "markeredgecolor": BLACK}
EM_END = marker("D", 6, VERMILLION)
SUMMIT = marker("*", 15, VERMILLION, linestyle="-", color=VERMILLION, linewidth=2.5)
MAX_ROUNDING = 1e-9  # singular values below this are rounding


def draw_surfaces(figure: Figure, results: Results) -> Page:
    """Draw each surface twice: from above with EM's ways, and as a landscape."""
    surfaces = surfaces_of(figure)
    legend: Handles = [
        (Line2D([], [], **EM_WAY, **EM_START), "a start of EM, and its path"),
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
    contours = axes.tricontourf(*_mesh(surface, TRIANGLE_STEPS), levels=CONTOUR_LEVELS, cmap=COLOUR_MAP)
    contours.set(edgecolor="face", linewidth=SEAM_POINTS)
    for start in surface.starts:
        way = surface.em_iterates(start, EM_UPDATES)
        axes.plot(way[:, 0], way[:, 2], **EM_WAY, zorder=3)
        axes.plot(way[0, 0], way[0, 2], **EM_START, zorder=5)
        axes.plot(way[-1, 0], way[-1, 2], **EM_END, clip_on=False, zorder=6)
    ends = maxima(surface)
    axes.plot(ends[:, 0], ends[:, 2], **SUMMIT, clip_on=False, zorder=4)
    axes.set(aspect="equal", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set(xlabel="θ₁: share of value 1", ylabel="θ₃: share of value 3")
    head(axes, surface.name)
    axes.text(0.98, 0.97, _facts(surface, ends), transform=axes.transAxes, ha="right", va="top", fontsize=SMALL_POINTS)


def _facts(surface: Surface, ends: Floats) -> str:
    """Return what stands in the free corner of the panel."""
    if len(ends) > 1:
        return "\n".join(["every point of the line is a maximum:", f"{_point(ends[0])} to", _point(ends[1])])
    corner = corner_of(surface)
    lines = [f"the only maximum: {_point(ends[0])}"]
    if corner is not None:
        slopes = surface.slopes_at(corner)
        lines += ["exact derivatives there:", *(f"∂L/∂θ{'₁₂₃'[value]} = {slope}" for value, slope in slopes.items())]
    return "\n".join([*lines, *surface.note.splitlines()])


def _landscape(axes: Any, surface: Surface) -> None:
    triangles, heights = _mesh(surface, TRIANGLE_STEPS // 2)
    hills = axes.plot_trisurf(triangles, heights, cmap=COLOUR_MAP, linewidth=SEAM_POINTS, antialiased=False)
    hills.set_edgecolor("face")
    ends = maxima(surface)
    tops = surface.log_likelihood(ends)
    axes.plot(ends[:, 0], ends[:, 2], tops + 0.002 * np.ptp(heights), **{**SUMMIT, "markersize": 12}, zorder=10)
    axes.view_init(elev=32, azim=38)
    axes.set(xlabel="θ₁", ylabel="θ₃", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    axes.set_zlabel("log-likelihood", labelpad=6)
    axes.locator_params(axis="z", nbins=4)
    axes.set_box_aspect(None, zoom=0.95)


def _mesh(surface: Surface, steps: int) -> tuple[Triangulation, Floats]:
    """Return points all over the triangle theta_1 + theta_3 <= 1, and the log-likelihood there."""
    pairs = [(row / steps, column / steps) for row in range(steps + 1) for column in range(steps + 1 - row)]
    first, third = np.array(pairs).T
    return Triangulation(first, third), surface.log_likelihood(np.stack([first, 1.0 - first - third, third], axis=1))


def _point(theta: Floats) -> str:
    return "(" + ", ".join(f"{abs(round(float(value), 3)):g}" for value in theta) + ")"
