"""A picture of the words that were found: their shares with intervals, and what could have been missed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.core.text import one_line
from hubbub.rendering.palette import BLUE
from hubbub.rendering.picture_text import names_beside, set_title, tell_missing_letters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hubbub.discovery.result import Discovery


def draw_discovery(found: Discovery, axes: Axes, most: int) -> None:
    """Draw the most frequent words from top to bottom, in percent, and a line at the largest share of a missed one."""
    count = min(most, len(found.words))
    shares, low, high = (100.0 * each[:count] for each in (found.estimates, found.low, found.high))
    places = np.arange(count)
    reach = np.maximum(np.stack([shares - low, high - shares]), 0.0)
    axes.errorbar(shares, places, xerr=reach, fmt="o", color=BLUE, capsize=2, label="share and interval")
    axes.axvline(100.0 * found.missed_at_most, color="grey", linestyle="--", label="no missed word has more")
    names = names_beside([one_line(word, 30) for word in found.words[:count]])
    axes.set_yticks(places, names.texts, **names.style)
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.set_xlabel("share of people, %")
    axes.legend(loc="lower right", frameon=False)
    set_title(axes, found.sentence, fontsize="medium")
    tell_missing_letters(axes)
