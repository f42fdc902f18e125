"""The picture of an estimate: its shares, how far each is known, and the truth where somebody has it.

Bars have room for whiskers and marks. A map has none: cells fade as far as their shares are not known, and a figure
of its own gets a panel for the intervals and one for the truth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.errors import SettingError, shorten
from hubbub.core.text import whole_percent
from hubbub.domains import Domain
from hubbub.rendering.distribution_plot import draw_distribution, draw_margins, draw_marks, draw_whiskers
from hubbub.rendering.margins import margin_classes
from hubbub.rendering.new_figure import PICTURE_INCHES
from hubbub.rendering.picture_text import TITLE_LETTERS, set_title, tell_missing_letters

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VIEWS = ("estimate", "certainty")
MIN_OPACITY = 0.45  # of a cell whose interval is wider than twice its share
PANEL_INCHES = (5.0, 4.0)  # width and height
PANEL_TITLE_LETTERS = 44  # of one line over a map


class EstimatePlot:
    """What is drawn of an estimate: `intervals` are low ends, high ends and their level."""

    def __init__(
        self,
        domain: Domain,
        shares: Floats,
        title: str,
        *,
        intervals: tuple[Floats, Floats, float] | None = None,
        truth: Floats | None = None,
        view: str = "estimate",
    ) -> None:
        self._view = _checked_view(view, domain, intervals is not None)
        self._domain, self._shares, self._title = domain, shares, title
        self._intervals, self._truth = intervals, truth

    @property
    def _panels(self) -> int:
        if self._domain.chart != "map" or self._view == "certainty":
            return 1
        return 1 + (self._intervals is not None) + (self._truth is not None)

    @property
    def inches(self) -> tuple[float, float]:
        """The size of a figure for all panels."""
        return PICTURE_INCHES if self._panels == 1 else (PANEL_INCHES[0] * self._panels, PANEL_INCHES[1])

    def on_axes(self, axes: Axes) -> Axes:
        """Draw everything on one pair of axes."""
        if self._view == "certainty":
            return self._draw_certainty(axes)
        if self._domain.chart == "map" and self._truth is not None:
            raise SettingError(
                "a map has no room for the truth",
                where="plot(axes, truth=)",
                got="one pair of axes for two maps",
                expected="no axes: each map gets its own",
                remedy="leave axes out, or plot the truth by itself",
            )
        self._draw_shares(axes)
        return axes

    def on_figure(self, figure: Figure) -> Axes:
        """Draw on an empty figure; return the axes of the estimate."""
        if self._view == "certainty":
            return self._draw_certainty(figure.subplots())
        every: list[Axes] = list(figure.subplots(1, self._panels, squeeze=False)[0])
        self._draw_shares(every[0])
        if self._domain.chart != "map":
            return every[0]
        rest = iter(every[1:])
        if self._intervals is not None:
            low, high, level = self._intervals
            axes = next(rest)
            draw_distribution(self._domain, (high - low) / 2.0, axes, label="half of the interval")
            axes.set_title(f"half the width of the {whole_percent(level)} intervals", fontsize="medium")
        if self._truth is not None:
            axes = next(rest)
            draw_distribution(self._domain, self._truth, axes)
            axes.set_title("truth", fontsize="medium")
        return every[0]

    def _draw_certainty(self, axes: Axes) -> Axes:
        """Draw how sure the shares are."""
        assert self._intervals is not None  # noqa: S101  # `_checked_view` asks for them
        low, high, level = self._intervals
        draw_margins(self._domain, margin_classes(self._shares, low, high), axes)
        axes.set_title(
            f"how sure: half of each {whole_percent(level)} interval, relative to its share", fontsize="medium"
        )
        return axes

    def _draw_shares(self, axes: Axes) -> None:
        domain, is_map = self._domain, self._domain.chart == "map"
        opacity = None
        if self._intervals is not None and is_map:
            low, high, _ = self._intervals
            half = np.nan_to_num((high - low) / 2.0, nan=np.inf)
            with np.errstate(divide="ignore", invalid="ignore"):
                doubt = np.nan_to_num(half / self._shares, nan=1.0, posinf=1.0)
            opacity = 1.0 - (1.0 - MIN_OPACITY) * np.minimum(doubt, 1.0)
        draw_distribution(domain, self._shares, axes, opacity=opacity)
        faint = "" if opacity is None else "; faint: hardly known"
        width = PANEL_TITLE_LETTERS if is_map else TITLE_LETTERS
        set_title(axes, f"{self._title}{faint}", width=width, fontsize="medium")
        tell_missing_letters(axes)
        if is_map:
            return
        if self._intervals is not None:
            draw_whiskers(domain, *self._intervals[:2], axes)
        if self._truth is not None:
            draw_marks(domain, self._truth, axes, "truth")
        if self._intervals is not None or self._truth is not None:
            axes.legend()


def _checked_view(view: object, domain: Domain, has_intervals: bool) -> str:
    """Return the view; refuse one that cannot be drawn from an estimate, or not yet."""
    if view not in VIEWS:
        raise SettingError(
            "no such view of an estimate",
            where="plot(view=)",
            got=shorten(view),
            expected=" or ".join(map(repr, VIEWS)),
            remedy="leave view out; what the reports resolve is drawn by hubbub.resolve(reports).plot()",
        )
    if view == "certainty" and domain.chart != "map":
        raise SettingError(
            "only maps have a view of how sure they are",
            where="plot(view=)",
            got=shorten(view),
            expected="an estimate over a grid",
            remedy="leave view out: other charts have whiskers once there are intervals",
        )
    if view == "certainty" and not has_intervals:
        raise SettingError(
            "there are no intervals yet",
            where="plot(view=)",
            got=shorten(view),
            expected="intervals of the estimate",
            remedy="call hubbub.band(reports) or hubbub.check(reports) first, then estimate.plot(view='certainty')",
        )
    return str(view)
