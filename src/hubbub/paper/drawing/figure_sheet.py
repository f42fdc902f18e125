"""The page of a figure: its title and legend above, panels, and the small print below.

Everything is placed by inches. A solver that arranges panels by itself would end at slightly other places each time.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Page
from matplotlib.legend_handler import HandlerTuple
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from hubbub.paper.drawing.captions import small_print
from hubbub.paper.drawing.plot_style import PLAIN_POINTS, SMALL_POINTS, TITLE_POINTS
from hubbub.paper.figure_specs import Figure
from hubbub.paper.results import Results
from hubbub.rendering.palette import INK

PAGE_INCHES, DOTS_PER_INCH = 11.5, 100  # inches, dots per inch: 1,150 pixels
MARGIN_INCHES = 0.12  # inches around everything
TITLE_INCHES, LINE_INCHES = 0.42, 0.22  # inches: of the title, and of a line of legend or small print
PANEL_TITLE_INCHES = 0.28  # inches of a panel's title...
SUBTITLE_INCHES = SMALL_POINTS * 1.3 / 72  # ...and of each smaller line under it
AXIS_LABEL_INCHES = 0.55  # inches under a panel, for marks and their name
COLOUR_BAR_INCHES = 0.95  # inches that a scale of colours takes on the right
LETTERS_PER_LINE = 165  # of small print that fit into one line
TICKS_PER_DECADE = ((1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9), (1, 2, 3, 5, 7), (1, 2, 5), (1,))  # fewer and fewer
MAX_TICKS = 8

Handles = Sequence[tuple[Any, str]]  # what stands in the legend, and its words


class Sheet:
    """A page of panels under a title and a legend, with the small print below."""

    def __init__(
        self,
        figure: Figure,
        results: Results,
        *,
        height: float,
        notes: Sequence[str] = (),
        legend: Handles = (),
        columns: int = 6,
    ) -> None:
        """Start a page with panels of `height` inches in all; a legend of so many columns stands under the title."""
        small = textwrap.wrap(". ".join([*small_print(figure, results), *notes]) + ".", LETTERS_PER_LINE)
        self._above = MARGIN_INCHES + TITLE_INCHES
        if legend:
            self._above += LINE_INCHES * -(-len(legend) // columns) + MARGIN_INCHES
        self._panels = height
        self.height = self._above + height + MARGIN_INCHES + LINE_INCHES * len(small)
        self.page = Page(figsize=(PAGE_INCHES, self.height), dpi=DOTS_PER_INCH, facecolor="white")
        self._write(MARGIN_INCHES, figure.title, va="top", fontsize=TITLE_POINTS, fontweight="bold")
        small_style = {"va": "bottom", "fontsize": SMALL_POINTS, "color": INK, "linespacing": 1.35}
        self._write(self.height - MARGIN_INCHES, "\n".join(small), **small_style)
        if legend:
            self.page.legend(
                *zip(*legend, strict=True),
                loc="upper left",
                bbox_to_anchor=(MARGIN_INCHES / PAGE_INCHES, 1.0 - (MARGIN_INCHES + TITLE_INCHES - 0.04) / self.height),
                borderaxespad=0.0,
                borderpad=0.0,
                ncols=columns,
                handlelength=2.2,
                columnspacing=1.6,
                handler_map={tuple: HandlerTuple(ndivide=1)},
            )

    def _write(self, down: float, text: str, **options: Any) -> None:
        """Write words at the left edge, so many inches from the top of the page."""
        place = (MARGIN_INCHES / PAGE_INCHES, 1.0 - down / self.height)
        self.page.text(*place, text, ha="left", parse_math=False, **options)

    def heading(self, row: int, rows: int, text: str) -> None:
        """Write words over a row of panels, from the left edge."""
        self._write(self._above + self._panels * row / rows + 0.02, text, va="top", fontsize=PLAIN_POINTS)

    def axes(self, left: float, top: float, width: float, height: float, **options: Any) -> Axes:
        """Return a panel so many inches from the left edge and from the top of the panels."""
        bottom = self.height - self._above - top - height
        share = ((MARGIN_INCHES + left) / PAGE_INCHES, bottom / self.height, width / PAGE_INCHES, height / self.height)
        return self.page.add_axes(share, **options)

    def panels(
        self,
        rows: int,
        columns: int,
        *,
        head: float,
        left: float = 0.75,
        between: float = 0.75,
        right: float = 0.1,
        under: float = AXIS_LABEL_INCHES,
        shared: bool = False,
    ) -> list[Axes]:
        """Return panels row by row: `head` inches are kept free above each, `under` below, `between` to the next.

        Shared panels have the axes of the first of their row, and the others of a row no marks of their own.
        """
        width = panel_width(columns, left=left, between=between, right=right)
        step = self._panels / rows
        panels: list[Axes] = []
        for place in range(rows * columns):
            row, column = divmod(place, columns)
            first = panels[row * columns] if shared and column else None
            box = (left + column * (width + between), row * step + head, width, step - head - under)
            axes = self.axes(*box, sharex=first, sharey=first)
            if first is not None:
                axes.tick_params(labelleft=False)
            panels.append(axes)
        return panels

    def scale(self, drawn: Any, label: str) -> None:
        """Draw the scale of colours on the right of all panels."""
        left = PAGE_INCHES - 2 * MARGIN_INCHES - COLOUR_BAR_INCHES + 0.15
        axes = self.axes(left, 0.35, 0.2, self._panels - 0.35 - AXIS_LABEL_INCHES)
        self.page.colorbar(drawn, cax=axes, label=label)


def panel_width(columns: int, *, left: float = 0.75, between: float = 0.75, right: float = 0.1) -> float:
    """Return how wide each of some panels in a row will be."""
    return (PAGE_INCHES - 2 * MARGIN_INCHES - left - right - between * (columns - 1)) / columns


def head_height(lines: int) -> float:
    """Return the inches over a panel that its title and so many smaller lines take."""
    return PANEL_TITLE_INCHES + SUBTITLE_INCHES * lines


def head(axes: Axes, title: str, *beneath: str) -> None:
    """Write a panel's title, and lines of smaller print between it and the panel."""
    step = 72 * SUBTITLE_INCHES
    axes.set_title(title, pad=4 + step * len(beneath), parse_math=False)
    for place, line in enumerate(reversed(beneath)):
        axes.annotate(
            line,
            (0.0, 1.0),
            xycoords="axes fraction",
            xytext=(0, 4 + step * place),
            textcoords="offset points",
            fontsize=SMALL_POINTS,
            color=INK,
            parse_math=False,
        )


def plain_ticks(axis: Any, low: float, high: float) -> None:
    """Mark a logarithmic axis at round numbers, written as people do: as many as there is room for."""
    inside: list[float] = []
    for steps in TICKS_PER_DECADE:
        marks = [float(f"{step}e{decade}") for decade in range(-12, 13) for step in steps]
        inside = [mark for mark in marks if low <= mark <= high]
        if len(inside) <= MAX_TICKS:
            break
    axis.set_major_locator(FixedLocator(inside))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
