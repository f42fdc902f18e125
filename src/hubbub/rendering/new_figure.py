"""The figure of a result that is drawn by itself: as large in a notebook as in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE_INCHES = (8.0, 5.0)  # wide enough for the longest line of a title


def axes_or_new(axes: Axes | None) -> Axes:
    """Return the given axes, or those of a new figure."""
    if axes is not None:
        return axes
    import matplotlib.pyplot as plt

    return plt.figure(figsize=PICTURE_INCHES, layout="constrained").subplots()
