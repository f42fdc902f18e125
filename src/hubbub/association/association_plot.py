"""A picture of two attributes: where combinations are more or less frequent than independence makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.domains import Domain
from hubbub.rendering.picture_text import (
    MAP_TITLE_LETTERS,
    PictureText,
    legible,
    names_below,
    names_beside,
    set_title,
    tell_missing_letters,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hubbub.association.result import Independence

MAX_NAMED_VALUES = 30  # along an axis; of more, some have a name
MAX_WRITTEN_CELLS = 60  # with their number


def draw_association(result: Independence, axes: Axes) -> None:
    """Draw the shares of combinations less the products of their marginals, in percentage points."""
    points = 100.0 * (result.table - result.independent)
    largest = max(float(np.abs(points).max()), 1e-12)
    picture = axes.imshow(points, cmap="RdBu_r", vmin=-largest, vmax=largest, interpolation="nearest", aspect="auto")
    if points.size <= MAX_WRITTEN_CELLS:
        for (row, column), number in np.ndenumerate(points):
            colour = "white" if abs(number) > 0.6 * largest else "black"
            axes.text(column, row, f"{number:+.2g}", ha="center", va="center", color=colour, fontsize="small")
    first, second = result.domain.attributes.values()
    rows, columns = _places(len(first)), _places(len(second))
    beside, below = names_beside(_titles(first, rows)), names_below(_titles(second, columns))
    axes.set_yticks(rows, beside.texts, **beside.style)
    axes.set_xticks(columns, below.texts, **below.style)
    names: PictureText = legible(result.names)
    axes.set_ylabel(names.texts[0], **names.style)
    axes.set_xlabel(names.texts[1], **names.style)
    axes.figure.colorbar(picture, ax=axes, label="more than if independent, percentage points", shrink=0.8)
    set_title(axes, result.sentence, width=MAP_TITLE_LETTERS, fontsize="medium")
    tell_missing_letters(axes)


def _places(size: int) -> list[int]:
    return list(range(0, size, -(-size // MAX_NAMED_VALUES)))


def _titles(domain: Domain, places: list[int]) -> list[str]:
    return [domain.title(place) for place in places]
