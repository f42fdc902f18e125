"""How sure a share is: its margin, half the width of its interval relative to the share, in a few classes."""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.core.text import whole_percent

MARGIN_BOUNDS = (1.0, 0.5, 0.25, 0.1)  # between the classes, those that are known worst first
MARGIN_TEXTS = (
    f"over {whole_percent(MARGIN_BOUNDS[0])}",
    *(f"up to {whole_percent(bound)}" for bound in MARGIN_BOUNDS),
)
UNKNOWN_MARGIN = -1  # the class of values without an interval


def margins(shares: Floats, low: Floats, high: Floats) -> Floats:
    """Return half the width of each interval relative to the share; infinite if that is 0, NaN without an interval."""
    half = (high - low) / 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        relative: Floats = np.where(half == 0.0, 0.0, half / shares)
    return relative


def margin_classes(shares: Floats, low: Floats, high: Floats) -> Positions:
    """Return for each value the number of bounds that its margin does not exceed: 0 is known worst; -1 not at all.

    >>> margin_classes(np.array([0.5, 0.1, 0.0]), np.array([0.46, 0.0, 0.0]), np.array([0.54, 0.3, 0.01])).tolist()
    [4, 0, 0]
    """
    relative = margins(shares, low, high)
    classes = np.sum(relative[:, None] <= np.array(MARGIN_BOUNDS), axis=1)
    return np.where(np.isnan(relative), UNKNOWN_MARGIN, classes)
