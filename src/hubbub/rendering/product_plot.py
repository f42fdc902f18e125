"""The picture of several attributes: heat tables of two at a time with their marginals, or each attribute by itself."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import SettingError, shorten
from hubbub.domains import Product
from hubbub.domains.table_groups import attribute_groups, crossed_shares
from hubbub.rendering.new_figure import PICTURE_INCHES
from hubbub.rendering.palette import BLUE
from hubbub.rendering.picture_text import names_below, names_beside, set_title, tell_missing_letters, title_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_NUMBERED_CELLS = 100  # tables with more have colours alone
MAX_CROSSED_ATTRIBUTES = 4  # with more, each is shown by itself
PANELS_PER_ROW = 3
PANEL_INCHES = (4.2, 3.6)  # width and height
LIGHT = 0.45  # of the colour scale: cells above it have dark numbers


class ProductPlot:
    """What is drawn of an estimate over combinations of attributes."""

    def __init__(
        self, product: Product, shares: Floats, title: str, *, truth: Floats | None = None, view: str = "estimate"
    ) -> None:
        if view != "estimate":
            raise SettingError(
                "only maps have a view of how sure they are",
                where="plot(view=)",
                got=shorten(view),
                expected="an estimate over a grid",
                remedy="leave view out",
            )
        self._product, self._shares, self._title, self._truth = product, shares, title, truth
        self._names = list(product.attributes)
        self._groups = attribute_groups(product, shares)

    @property
    def _panels(self) -> list[tuple[str, ...]]:
        """The attributes of each panel: one, or two that are crossed."""
        if len(self._names) > MAX_CROSSED_ATTRIBUTES:
            return [(name,) for name in self._names]
        return list(combinations(self._names, 2))

    @property
    def inches(self) -> tuple[float, float]:
        """The size of a figure for all panels."""
        if len(self._names) == 2:
            return PICTURE_INCHES if self._truth is None else (2 * PANEL_INCHES[0], PANEL_INCHES[1])
        across, down = self._shape
        return (PANEL_INCHES[0] * across, PANEL_INCHES[1] * down)

    @property
    def _shape(self) -> tuple[int, int]:
        across = min(PANELS_PER_ROW, len(self._panels))
        return across, -(-len(self._panels) // across)

    def on_axes(self, axes: Axes) -> Axes:
        """Draw the first two attributes on one pair of axes; `marginal` chooses others."""
        if self._truth is not None:
            raise SettingError(
                "a table has no room for the truth",
                where="plot(axes, truth=)",
                got="one pair of axes for two tables",
                expected="no axes: each table gets its own",
                remedy="leave axes out, or plot the truth by itself",
            )
        self._draw_pair(axes, self._shares, *self._names[:2])
        set_title(axes, self._title, fontsize="medium")
        tell_missing_letters(axes)
        return axes

    def on_figure(self, figure: Figure) -> Axes:
        """Draw on an empty figure; return the axes of the first panel."""
        if len(self._names) == 2 and self._truth is None:
            return self._draw_with_marginals(figure)
        if len(self._names) == 2:
            both: list[Axes] = list(figure.subplots(1, 2))
            for axes, shares, word in zip(both, (self._shares, self._truth), ("estimate", "truth"), strict=True):
                self._draw_pair(axes, shares, *self._names, top=self._top(*self._names))
                axes.set_title(word, fontsize="medium")
            self._title_above(figure)
            return both[0]
        across, down = self._shape
        every: list[Axes] = list(figure.subplots(down, across, squeeze=False).flat)
        for axes, names in zip(every, self._panels, strict=False):
            if len(names) == 2:
                self._draw_pair(axes, self._shares, *names)
            else:
                self._draw_bars(axes, *names)
        for axes in every[len(self._panels) :]:
            axes.remove()
        self._title_above(figure)
        return every[0]

    def _title_above(self, figure: Figure) -> None:
        (text,), style = title_words(self._title)
        figure.suptitle(text, fontsize="medium", **style)

    def _draw_with_marginals(self, figure: Figure) -> Axes:
        """Draw one table, the shares of its columns above it, and those of its rows beside it."""
        rows, columns = self._names
        grid = figure.add_gridspec(2, 2, width_ratios=(4, 1), height_ratios=(1, 4))
        table = figure.add_subplot(grid[1, 0])
        above, beside = figure.add_subplot(grid[0, 0], sharex=table), figure.add_subplot(grid[1, 1], sharey=table)
        self._draw_pair(table, self._shares, rows, columns)
        for axes, name, draw in ((above, columns, above.bar), (beside, rows, beside.barh)):
            numbers = self._sums(name)
            draw(np.arange(numbers.size), numbers, 0.92, color=BLUE)
            axes.spines[["top", "right"]].set_visible(False)
        above.tick_params(axis="x", labelbottom=False)
        beside.tick_params(axis="y", labelleft=False)
        above.set_ylabel("share")
        beside.set_xlabel("share")
        set_title(above, self._title, fontsize="medium")
        tell_missing_letters(table)
        return table

    def _sums(self, name: str) -> Floats:
        margin = self._product.margin([name]).sums(self._shares)
        return np.array([margin[group.positions].sum() for group in self._groups[name]])

    def _table(self, shares: Floats, rows: str, columns: str) -> Floats:
        """Return the shares of two attributes by their groups; NaN where a combination is impossible."""
        crossed = crossed_shares(self._product, shares, (rows, self._groups[rows]), (columns, self._groups[columns]))
        return np.where(crossed.possible, crossed.joint, np.nan)

    def _top(self, rows: str, columns: str) -> float:
        every = [self._shares, *([] if self._truth is None else [self._truth])]
        return max(float(np.nanmax(self._table(shares, rows, columns))) for shares in every) or 1.0

    def _draw_pair(
        self, axes: Axes, shares: Floats | None, rows: str, columns: str, *, top: float | None = None
    ) -> None:
        from matplotlib.colors import PowerNorm

        assert shares is not None  # noqa: S101  # a truth that is drawn is there
        table = self._table(shares, rows, columns)
        # The square root of the colour scale keeps small shares visible beside large ones, as on maps.
        norm = PowerNorm(0.5, vmin=min(0.0, float(np.nanmin(table))), vmax=top or self._top(rows, columns))
        image = axes.imshow(table, cmap="cividis", norm=norm, aspect="auto", interpolation="nearest")
        is_numbered = table.size <= MAX_NUMBERED_CELLS
        if is_numbered:
            for (row, column), share in np.ndenumerate(table):
                if not np.isnan(share):
                    colour = "black" if norm(share) > LIGHT else "white"
                    axes.text(column, row, f"{share:.3f}", ha="center", va="center", color=colour, fontsize="small")
        elif axes.figure is not None:
            axes.figure.colorbar(image, ax=axes, label="share", shrink=0.8)
        names = names_below([group.title for group in self._groups[columns]])
        axes.set_xticks(np.arange(table.shape[1]), names.texts, **names.style)
        beside = names_beside([group.title for group in self._groups[rows]])
        axes.set_yticks(np.arange(table.shape[0]), beside.texts, **beside.style)
        axes.set_xlabel(columns)
        axes.set_ylabel(rows)

    def _draw_bars(self, axes: Axes, name: str) -> None:
        numbers, names = self._sums(name), names_below([group.title for group in self._groups[name]])
        axes.bar(np.arange(numbers.size), numbers, 0.92, color=BLUE)
        axes.set_xticks(np.arange(numbers.size), names.texts, **names.style)
        axes.set_xlabel(name)
        axes.set_ylabel("share")
