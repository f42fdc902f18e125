"""The picture of a design: how it compares with the built-in mechanisms that come nearest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.mechanisms import Matrix
from hubbub.rendering.palette import INK, PALETTE
from hubbub.rendering.picture_text import set_title, tell_missing_letters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_BARS = 8


def draw_design(mechanism: Matrix, rows: Sequence[dict[str, Any]], value_name: str, axes: Axes) -> None:
    """Draw how the design compares with the built-in mechanisms that come nearest."""
    finite = [row for row in rows if row["value"] is not None and np.isfinite(row["value"])][:MAX_BARS]
    names = [str(row["mechanism"]) for row in finite]
    values = [float(row["value"]) for row in finite]
    colours = [PALETTE[0] if name == "design" else INK for name in names]
    places = np.arange(len(names))[::-1]
    axes.barh(places, values, color=colours, height=0.6)
    axes.set_yticks(places, names)
    for place, value in zip(places, values, strict=True):
        axes.annotate(f" {value:.3g}", (value, place), va="center", fontsize="small")
    axes.set_xlabel(value_name)
    axes.margins(x=0.15)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    set_title(axes, f"{len(mechanism.labels)} outputs, {mechanism.domain.describe()}", fontsize="medium")
    tell_missing_letters(axes)
