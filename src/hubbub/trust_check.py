"""`check`: everything that can be asked about the trust in an answer, together."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Positions, as_array, largest_first
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import stepwise
from hubbub.core.serialization import Portable
from hubbub.core.text import percent, plural, whole_percent
from hubbub.estimators import Estimate
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.estimators.validation import check_reports
from hubbub.goodness_of_fit import FitTest, fit_test
from hubbub.identifiability import Identification, identify
from hubbub.intervals import Band, band
from hubbub.intervals.deviance_cutoff import draws_for
from hubbub.intervals.interval_endpoints import MAX_VALUES_ALL_SIMULATED
from hubbub.intervals.result import extended_note
from hubbub.intervals.robust_intervals import check_fakes, fakes_note
from hubbub.intervals.set_intervals import MAX_VALUES
from hubbub.intervals.window_intervals import window_band, windows_apply
from hubbub.poisoning import Shift, worst_case_shift
from hubbub.poisoning.api import EXPECTED_SHARE
from hubbub.polygons import Regions, RegionShares, region_shares
from hubbub.rendering import Fact, facts_html, facts_text
from hubbub.reports import Reports
from hubbub.solvers.newton_systems import system_for

DEFAULT_SHARE_OF_FAKES = 0.01
DEFAULT_INTERVALS = 5  # of the largest values, if none are named
CONTRADICTION = (
    "These reports contradict the study: no distribution explains them under its mechanisms. Perhaps clients used "
    "another epsilon or another mechanism, reports at the edge were dropped, or reports were made up or counted twice. "
    "Do not rely on the estimate until the cause is known."
)
BEST_FIT_ONLY = "This is about the best fit; the intervals say how far the truth may be from it."
MAX_WINDOW_VALUES = 500  # that get an interval where values are too many for all of them: some ten seconds
# A rough guess of how long intervals take.
MAX_SECONDS = 60.0  # for all intervals of a table
ITERATIONS_PER_ENDPOINT = 4  # of the interior point over all values, or as many as cost the same over few of them
MULTIPLICATIONS_PER_SECOND = 1e10
SECONDS_PER_ITERATION = 2e-3  # whatever the size
PROGRAMS_PER_DRAW = 3.5  # for a calibrated interval
SECONDS_PER_SQUARED_VALUE = 2e-9  # of a program
PRODUCTS_PER_ITERATION = 60  # with the channel, if nothing can be factorised


@dataclass(frozen=True, eq=False)
class Check(Portable):
    """How far to trust an answer: whether it is the only one, fits and resists fakes, and how precise it is.

    Attributes
    ----------
    users : int
        The number of users.
    identification : Identification
        Whether the reports determine one distribution (`identify`).
    fit : FitTest or None
        Whether any distribution explains the reports (`fit_test`); None if it was left out.
    shift : Shift
        How far fake users could move a share (`worst_case_shift`).
    band : Band
        Intervals of the largest values, or of those that were named (`band`).
    regions : RegionShares or None
        The shares of the regions that were asked for (``Regions.shares``).

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> trust = hb.check(hb.Reports.from_counts(coin, {"yes": 60, "no": 40}))
    >>> trust.identification.unique, trust.fit.rejected, trust.contradiction
    (True, False, '')
    >>> [fact.label for fact in trust.facts()]
    ['one answer?', 'does it fit?', 'fake users?', 'how precise?']
    """

    users: int
    identification: Identification
    fit: FitTest | None
    shift: Shift
    band: Band
    regions: RegionShares | None = None

    @property
    def contradiction(self) -> str:
        """What must be said before anything else: that the reports contradict the study. Empty if they do not."""
        return CONTRADICTION if self.fit is not None and self.fit.rejected else ""

    def facts(self) -> list[Fact]:
        """Return the verdicts as labels with texts, one for each question; printing shows them.

        Returns
        -------
        list of Fact
            The questions, and the answer to each in plain sentences.
        """
        verdict = f"{_verdict(self.identification)}. {self.identification.explain()} {BEST_FIT_ONLY}"
        return [
            Fact("one answer?", verdict),
            *([] if self.fit is None else [Fact("does it fit?", self.fit.explain())]),
            Fact("fake users?", self.shift.explain()),
            Fact("how precise?", self._precision()),
        ]

    def _precision(self) -> str:
        if self.regions is not None:
            return self.regions.precision()
        positions = np.flatnonzero(~np.isnan(self.band.low))
        if positions.size == 0:
            return "No interval was computed."
        widest = int(positions[np.argmax((self.band.high - self.band.low)[positions])])
        text = (
            f"At {whole_percent(self.band.level)}, the share of {self.band.domain.title(widest)} is between "
            f"{percent(self.band.low[widest])} and {percent(self.band.high[widest])}: the widest of "
            f"{plural(positions.size, 'interval')}."
        )
        text = f"{text} {fakes_note(self.band.fakes)}".strip()
        extended = int(np.count_nonzero(self.band.extended[positions]))
        if extended:
            text += f" {extended_note(extended)}"
        return text

    def __str__(self) -> str:
        return facts_text(self.facts())

    def _repr_html_(self) -> str:
        return facts_html([Fact("users", f"{self.users:,}"), *self.facts()]) + (self.regions or self.band)._repr_html_()

    def __repr__(self) -> str:
        return f"Check(unique={self.identification.unique}, shift={float(self.shift):.3g}, {self.band!r})"


def _verdict(identification: Identification) -> str:
    if identification.unique is None:
        return "Not decided"
    if not identification.unique:
        return "No, several"
    if not identification.identifiable:
        return "Yes, for these reports"
    return "Yes" if identification.practical is not False else "In theory only"


@stepwise
def check(
    reports: Reports,
    level: float = 0.95,
    *,
    share: float = DEFAULT_SHARE_OF_FAKES,
    estimate: Estimate | None = None,
    values: object = None,
    fit: bool = True,
    fakes: float = 0.0,
    regions: Regions | None = None,
    region_intervals: str = "auto",
) -> Generator[Any, None, Check]:
    """Check how far to trust an answer: `identify`, `fit_test`, `worst_case_shift` and some intervals together.

    Parameters
    ----------
    reports : Reports
        The reports to check.
    level : float, default 0.95
        The level of the intervals.
    share : float, default 0.01
        The share of fake users whose worst case is asked for.
    estimate : Estimate, optional
        The estimate that the verdicts and the intervals are about; that of ``hubbub.estimate(reports)`` by default.
    values : list of labels, optional
        The values to compute intervals for; the five largest by default.
    fit : bool, default True
        Whether to run the test of fit.
    fakes : float, default 0.0
        The share of fake users that the intervals must hold against, whatever these sent; 0 for plain intervals.
    regions : Regions, optional
        Districts of a map, from `hubbub.regions`: how precise the answer is is then told of them. Not with `fakes`.
    region_intervals : str, default "auto"
        How intervals of regions are computed: the `method` of ``Regions.shares``.

    Returns
    -------
    Check
        With `identification`, `fit`, `shift`, `band`, `regions` and `facts()`; printing it shows the verdicts.

    Raises
    ------
    DomainError
        If `values` are not all in the domain.
    SettingError
        If a keyword has a wrong value, or the estimate is over another domain.
    RegionsError
        If the regions belong to another grid.
    EstimateError
        If `reports` are not reports in this process, or have survey weights, which `fakes` does not take into account.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> trust = hb.check(hb.Reports.from_counts(coin, {"yes": 60, "no": 40}))
    >>> print(trust.facts()[-1].text)
    At 95%, the share of yes is between 50.0% and 90.6%: the widest of 2 intervals.
    """
    check_reports(reports, "check")
    level = validation.level(level, "check")
    share = validation.share(share, "share", "check", expected=EXPECTED_SHARE)
    validation.boolean(fit, "fit", "check")
    check_fakes(fakes, "profile", "check")
    if regions is not None:
        _check_regions(regions, reports, fakes)
    shown = yield from shown_estimate(reports, estimate, "check")
    identification = yield from identify.steps(reports)
    tested = (yield from fit_test.steps(reports)) if fit else None
    shift = yield from worst_case_shift.steps(reports, share, estimate=shown)
    if values is None:
        values = reports.domain.labels[largest_first(shown.probabilities)[:DEFAULT_INTERVALS]]
    intervals = yield from _intervals(reports, level, values, shown, fakes)
    shares = None
    if regions is not None:
        shares = yield from region_shares.steps(regions, reports, level=level, estimate=shown, method=region_intervals)
    return Check(reports.users, identification, tested, shift, intervals, shares)


def _check_regions(regions: object, reports: Reports, fakes: float) -> None:
    """Refuse what are no regions of these reports, before anything takes long; fakes, which they do not allow for."""
    if not isinstance(regions, Regions):
        raise SettingError(
            "regions must be what hubbub.regions returns",
            where="check(regions=)",
            got=shorten(regions),
            expected="regions of the reports' grid",
            remedy="pass hubbub.regions(reports.domain, 'districts.geojson')",
        )
    if fakes:
        raise SettingError(
            "intervals of regions do not allow for fakes",
            where="check(regions=, fakes=)",
            got=f"fakes={fakes:g}",
            expected="either of them",
            remedy="leave one out; hubbub.interval(reports, regions.of(name), fakes=0.01) allows for them",
        )
    regions.weights_over(reports.domain)


def _intervals(
    reports: Reports, level: float, values: object, shown: Estimate, fakes: float
) -> Generator[Any, None, Band]:
    """Return intervals by profile likelihood; where one of them would take minutes, by windows if that is possible."""
    if len(reports.domain) > MAX_VALUES and not fakes:
        positions = np.unique(np.atleast_1d(reports.domain.index(as_array(values))))
        found = yield from window_band(reports, positions, level, shown)
        if found is not None:
            return found
    return (yield from band.steps(reports, level, values=values, estimate=shown, fakes=fakes))


def affordable(reports: Reports, values: object) -> Positions:
    """Return the positions of as many of the values, from the first on, as have intervals within a few minutes."""
    positions = np.atleast_1d(reports.domain.index(as_array(values)))
    if len(reports.domain) > MAX_VALUES and windows_apply(reports):
        return positions[:MAX_WINDOW_VALUES]
    size, patterns = len(reports.domain), reports.weights.size
    multiplications = {
        "dense": float(size) ** 2 * patterns,
        "conjugate gradients": 2.0 * PRODUCTS_PER_ITERATION * size * patterns,
    }.get(system_for(reports.channel).name, 100.0 * (size + patterns))
    seconds = 2 * ITERATIONS_PER_ENDPOINT * (multiplications / MULTIPLICATIONS_PER_SECOND + SECONDS_PER_ITERATION)
    if size <= MAX_VALUES_ALL_SIMULATED:  # cutoffs are simulated: for each draw, some programs over all values
        seconds += PROGRAMS_PER_DRAW * draws_for(0.95) * SECONDS_PER_SQUARED_VALUE * float(size) ** 2
    return positions[: max(1, int(MAX_SECONDS / seconds))]
