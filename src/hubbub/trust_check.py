"""Everything that can be asked of an answer's trust, together."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Positions, as_array
from hubbub.core.portable import Portable
from hubbub.core.progress import finish
from hubbub.estimators import Estimate
from hubbub.estimators.validation import check_estimate, check_reports
from hubbub.goodness_of_fit.api import FitTest, fit_testing
from hubbub.identifiability.api import Identification, identifying
from hubbub.intervals.cutoff import runs_for
from hubbub.intervals.interval_endpoints import SINGLES
from hubbub.intervals.value_bands import Band, banding
from hubbub.poisoning.api import Shift, shifting
from hubbub.rendering import Fact, facts_html, facts_text
from hubbub.reports import Reports
from hubbub.solvers.newton_systems import system_for

SHARE = 0.01  # of fake users
NOT_YET = "This is about what fits best; how far the truth may be from it, the intervals say."
SHOWN = 5  # values whose intervals are told, where none are named
PATIENCE = 180.0  # seconds that all intervals of a table may take, by a rough guess
ITERATIONS = 12  # of the interior point, for one end of an interval
SPEED = 1e10  # multiplications a second
OVERHEAD = 2e-3  # seconds for each iteration, whatever the size
PROGRAMS = 160  # steps of quadratic programs in each of the runs, for a calibrated interval...
PROGRAM = 2e-6  # ...and seconds for each beside its multiplications
PRODUCTS = 60  # with the channel, for each iteration where nothing can be factorised


@dataclass(frozen=True, eq=False)
class Check(Portable):
    """How far the reports determine an answer, fit the study, resist fakes, and how wide the intervals are."""

    users: int
    identification: Identification
    fit: FitTest | None  # None: not asked for
    shift: Shift
    band: Band

    def facts(self) -> list[Fact]:
        """Return the verdicts, one for each question."""
        found = [Fact("one answer?", f"{_verdict(self.identification)}. {self.identification.explain()} {NOT_YET}")]
        if self.fit is not None:
            found.append(Fact("does it fit?", self.fit.explain()))
        found.append(Fact("fake users?", self.shift.explain()))
        found.append(Fact("how precise?", self._precision()))
        return found

    def _precision(self) -> str:
        asked = np.flatnonzero(~np.isnan(self.band.low))
        widths = (self.band.high - self.band.low)[asked]
        if asked.size == 0:
            return "No interval was asked for."
        widest = asked[int(np.argmax(widths))]
        title = self.band.domain.title(int(widest))
        told = (
            f"At {100 * self.band.level:g}%, the share of {title} lies between "
            f"{self.band.low[widest]:.2%} and {self.band.high[widest]:.2%}: the widest of "
            f"{asked.size:,} interval{'s' * (asked.size != 1)}."
        )
        outside = int(np.count_nonzero(self.band.outside[asked]))
        if outside:
            told += f" {outside:,} estimates lie outside their own interval: they were smoothed by more than that."
        return told

    def __str__(self) -> str:
        return facts_text(self.facts())

    def _repr_html_(self) -> str:
        return facts_html([Fact("users", f"{self.users:,}"), *self.facts()]) + self.band._repr_html_()

    def __repr__(self) -> str:
        return f"Check(unique={self.identification.unique}, shift={float(self.shift):.3g}, {self.band!r})"


def _verdict(found: Identification) -> str:
    if found.unique is None:
        return "Not decided"
    if not found.unique:
        return "No, several"
    if not found.identifiable:
        return "Yes, for these reports"
    return "Yes" if found.practical is not False else "In theory only"


def check(
    reports: Reports,
    level: float = 0.95,
    *,
    share: float = SHARE,
    estimate: Estimate | None = None,
    values: object = None,
    fit: bool = True,
) -> Check:
    """Return `identify`, `fit_test`, `worst_case_shift` and intervals of the largest values in one go.

    `share` is that of the fake users, `estimate` is what intervals are placed around (left out: the maximum of the
    likelihood), `values` are those whose intervals are wanted (left out: the five largest), ``fit=False`` leaves the
    test of the fit out.
    """
    return finish(checking(reports, level, share=share, estimate=estimate, values=values, fit=fit))


def checking(
    reports: Reports,
    level: float = 0.95,
    *,
    share: float = SHARE,
    estimate: Estimate | None = None,
    values: object = None,
    fit: bool = True,
) -> Generator[Any, None, Check]:
    """Do what `check` does, yielding progress on the way."""
    check_reports(reports, "check")
    level = validation.level(level, "check")
    share = validation.share(share, "share", "check")
    validation.boolean(fit, "fit", "check")
    check_estimate(estimate, reports, "check")
    identified = yield from identifying(reports)
    tested = (yield from fit_testing(reports)) if fit else None
    moved = yield from shifting(reports, share)
    if values is None:
        middle = identified.upper + identified.lower if estimate is None else estimate.probabilities
        values = reports.domain.labels[np.argsort(-middle, kind="stable")[:SHOWN]]
    found = yield from banding(reports, level, values=values, estimate=estimate)
    return Check(reports.users, identified, tested, moved, found)


def affordable(reports: Reports, wanted: object) -> Positions:
    """Return the positions of as many of the `wanted` values as intervals can be found for in a few minutes."""
    positions = np.atleast_1d(reports.domain.index(as_array(wanted)))
    values, patterns = len(reports.domain), reports.weights.size
    name = system_for(reports.channel).name
    work = {
        "dense": float(values) ** 2 * patterns,
        "conjugate gradients": 2.0 * PRODUCTS * values * patterns,
    }.get(name, 100.0 * (values + patterns))
    each = 2 * ITERATIONS * (work / SPEED + OVERHEAD)
    if values <= SINGLES:  # cutoffs are simulated: some programs over all values, for each of the runs
        each += PROGRAMS * runs_for(0.95, values) * (float(values) ** 3 / SPEED + PROGRAM)
    return positions[: max(1, int(PATIENCE / each))]
