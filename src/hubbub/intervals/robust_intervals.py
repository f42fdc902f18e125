"""Intervals of the honest users' distribution that hold whatever a share of the users sent.

Two ways, by what the reports consist of: where every output stands for a set of values, an unbiased linear estimate
(`robust_scores`); otherwise the likelihood of honest users and fakes together (`contaminated_region`). Either interval
is widened to the plain one: fakes may also behave like honest users.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from hubbub.core import validation
from hubbub.core.arrays import as_real
from hubbub.core.errors import SettingError, shorten
from hubbub.core.text import whole_percent
from hubbub.intervals.contaminated_region import ContaminatedRegion
from hubbub.intervals.deviance_cutoff import chi_square
from hubbub.intervals.interval_endpoints import Endpoints, LikelihoodRegion
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.robust_scores import RobustScores, has_scores
from hubbub.reports import Reports

MAX_SHARE = 0.5  # of fakes: if most users may be fake, nothing is known about the others
SCORED = "a linear estimate with its normal error, and the most that fakes could move it"
RAISED = "the cutoff is raised by as much of the noise as fakes could explain"
EXPECTED_SHARE = "a share of fake users from 0 up to but not including 0.5, such as 0.01"


@dataclass(frozen=True)
class FakesAllowed:
    """Reports of whose users a share may be fake, prepared for any statistic."""

    share: float
    likely: ContaminatedRegion | RobustScores

    @classmethod
    def of(cls, reports: Reports, plain: LikelihoodRegion, share: float) -> FakesAllowed:
        """Prepare what all statistics have in common; `plain` is the region without fakes."""
        if has_scores(reports):
            return cls(share, RobustScores.of(reports, plain.top.theta))
        return cls(share, ContaminatedRegion.of(reports, plain.top, share))

    def widen(self, plain: Endpoints, statistic: Statistic, level: float, *, simultaneous: bool) -> Endpoints:
        """Return the plain interval of a statistic, widened by what fakes may have done."""
        if np.ptp(statistic.weights) == 0.0:
            return plain
        degrees = 1
        if simultaneous and statistic.single is not None:
            level = 1.0 - (1.0 - level) / statistic.weights.size  # Bonferroni
        elif simultaneous:
            degrees = max(1, statistic.weights.size - 1)  # for all linear statistics at once (Scheffe)
        if isinstance(self.likely, RobustScores):
            deviance = chi_square(level, degrees)
            low, high = self.likely.bounds(statistic.weights, 2.0 * float(ndtr(math.sqrt(deviance))) - 1.0, self.share)
            # The plain note is about a cutoff: it belongs to the ends of the plain interval, if one of them is used.
            notes = [plain.note if simultaneous or plain.low < low or plain.high > high else "", self._allowed(SCORED)]
            if statistic.single is None and self.likely.grows_with_sets:
                notes.append("What fakes can do grows with the size of a set.")
            cutoffs = None
        else:
            base = plain.cutoffs or (chi_square(level), chi_square(level))
            cutoffs = (self.likely.cutoff(base[0], level, degrees), self.likely.cutoff(base[1], level, degrees))
            low = self.likely.least(statistic.weights, cutoffs[0]).limit
            high = -self.likely.least(-statistic.weights, cutoffs[1]).limit
            notes = [plain.note, self._allowed(RAISED), self.likely.note]
        return Endpoints(min(low, plain.low), max(high, plain.high), cutoffs, " ".join(filter(None, notes)))

    def _allowed(self, how: str) -> str:
        return f"Holds if up to {whole_percent(self.share)} of the users are fake, whatever they sent: {how}."


def fakes_note(share: float) -> str:
    """Return what intervals allow for, as a sentence; nothing if there are no fakes.

    >>> fakes_note(0.01)
    'Intervals hold if up to 1% of the users are fake, whatever they sent.'
    """
    return f"Intervals hold if up to {whole_percent(share)} of the users are fake, whatever they sent." if share else ""


def check_fakes(fakes: object, method: str, where: str) -> float:
    """Return the share of fake users that an interval must hold against."""
    share = as_real(fakes)
    if not 0.0 <= share < MAX_SHARE:
        raise validation.wrong(fakes, "fakes", where, EXPECTED_SHARE, remedy="divide percentages by 100")
    if share > 0.0 and method == "bootstrap":
        raise SettingError(
            "fakes has no meaning for method='bootstrap'",
            where=f"{where}(method='bootstrap', fakes=)",
            got=shorten(fakes),
            expected="no fakes: the bootstrap shows how the estimate varies, not where the truth is",
            remedy="leave method out",
        )
    return share
