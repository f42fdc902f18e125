"""What it costs that the reports choose the parts: the critical value of told parts, by simulating the choice.

Bounds for all rectangles at once cost more than necessary: of thousands only a few dozen are shown. So studies are
simulated around the estimate, with errors drawn from their normal law, and in each the division is made anew, as from
real reports. A study needs the critical value at which the intervals of all its told parts hold the simulated truth;
the quantile of what studies need is the critical value of told parts, but never more than that of all rectangles.

For the choice itself, sums count as told by a critical value that is fixed in advance. So choice and bounds do not
depend on each other: if the simulated value is larger, some of the chosen parts turn out not to be told.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress
from hubbub.resolution.rectangle_bounds import Criticals, RectangleSums, quantile
from hubbub.resolution.rectangle_cuts import cut

SIMULATIONS = 149
PROGRESS_EVERY = 10  # simulations
CHOICE_CRITICAL = 0.7  # relative to the critical value of all rectangles: about what simulations come to


def told_critical(
    sums: RectangleSums,
    expected: Floats,
    possible: NDArray[np.bool_],
    relative: float,
    criticals: Criticals,
    level: float,
) -> Generator[Progress, None, float]:
    """Return the critical value of parts chosen by `criticals`, if the shares of the cells were as expected."""
    truth, needed = sums.corner_sums(expected), np.zeros(SIMULATIONS)
    for study in range(SIMULATIONS):
        if study % PROGRESS_EVERY == 0:
            yield Progress(study, SIMULATIONS, "simulating the choice of parts")
        centre = expected + sums.draws[:, study]
        told, _ = cut(*sums.bounds(centre, criticals, relative), sums.corner_sums(centre), possible, relative)
        own = sums.needed(centre, truth)
        needed[study] = max((own[one] for one in told), default=0.0)
    return min(quantile(needed, level), criticals.other)
