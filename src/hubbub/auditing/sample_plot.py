"""A picture of an audit of outputs: the p-value of each kind of test, on a logarithmic scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.rendering.palette import BLUE, GREY, VERMILLION
from hubbub.rendering.picture_text import names_beside, set_title, tell_missing_letters

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hubbub.auditing.sample_result import SampleAudit

SMALLEST_SHOWN = 1e-20


def draw_law_tests(audit: SampleAudit, axes: Axes) -> None:
    """Draw a bar from 1 to the p-value of each kind of test; those beyond the line refute the law."""
    places = np.arange(len(audit.tests))[::-1]
    p_values = np.maximum([test.p_value for test in audit.tests], SMALLEST_SHOWN)
    rejected = audit.rejected
    colours = [VERMILLION if test in rejected else BLUE for test in audit.tests]
    evidence = -np.log10(p_values)
    axes.barh(places, evidence, height=0.6, color=colours)
    axes.scatter(evidence, places, color=colours, s=18, zorder=3)
    limit = -np.log10(audit.error / max(1, len(audit.tests)))
    axes.axvline(limit, color=GREY, linestyle="--", linewidth=1)
    axes.set_xlim(0.0, max(1.25 * limit, float(evidence.max(initial=0.0)) * 1.05))
    ticks = [tick for tick in axes.get_xticks() if tick == int(tick) and 0 <= tick <= axes.get_xlim()[1]]
    axes.set_xticks(ticks, [f"1e-{tick:.0f}" if tick else "1" for tick in ticks])
    names = names_beside([test.about for test in audit.tests])
    axes.set_yticks(places, names.texts, **names.style, fontsize="small")
    axes.set_xlabel("p-value, corrected for the tests of its kind (beyond the dashed line: refuted)")
    set_title(axes, audit.summary(), fontsize="medium")
    tell_missing_letters(axes)
