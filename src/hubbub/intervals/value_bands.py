"""Intervals for all values: a band around the distribution."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core import validation
from hubbub.core.arrays import Floats, Positions, as_array, frozen
from hubbub.core.portable import Portable
from hubbub.core.progress import Progress, finish
from hubbub.core.threads import processors, step_by_step, threads_for
from hubbub.domains import Domain
from hubbub.estimators import Estimate
from hubbub.estimators.validation import check_estimate, check_reports
from hubbub.intervals.api import Interval, profile
from hubbub.intervals.likelihood_region import LikelihoodRegion
from hubbub.intervals.linear_statistic import Statistic
from hubbub.rendering import Fact, draw_distribution, draw_whiskers, facts_html, most_probable, table_html
from hubbub.reports import Reports

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

FEW, MANY = 50_000, 4_000_000  # entries between which products are long enough, and small enough, for threads of ours
SHOWN = 20  # values in a notebook
PARTS = 64  # reports of progress


@dataclass(frozen=True, eq=False)
class Band(Portable):
    """Where the true share of each value lies; NaN for values that were not asked for."""

    domain: Domain
    low: Floats
    estimate: Floats
    high: Floats
    level: float
    simultaneous: bool
    note: str = ""  # what holds for some or all of the intervals

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which values have an estimate outside their own interval."""
        return np.asarray((self.estimate < self.low) | (self.estimate > self.high))

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with columns value, low, estimate and high."""
        import pandas as pd

        return pd.DataFrame(
            {"value": self.domain.labels, "low": self.low, "estimate": self.estimate, "high": self.high}
        )

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the estimate with its intervals; on a map, which has no room for them, how wide they are."""
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(layout="constrained")
        title = f"{100 * self.level:g}% intervals"
        if self.domain.chart == "map":
            draw_distribution(self.domain, np.nan_to_num(self.high - self.low), axes)
            axes.set_title(f"width of the {title}")
        else:
            draw_distribution(self.domain, self.estimate, axes)
            draw_whiskers(self.domain, self.low, self.high, axes)
            axes.set_title(title)
        return axes

    def _repr_html_(self) -> str:
        asked = np.flatnonzero(~np.isnan(self.low))
        shown = asked[most_probable(self.domain, self.estimate[asked], SHOWN)]
        rows = [
            [
                self.domain.title(int(place)),
                *(f"{numbers[place]:.4f}" for numbers in (self.low, self.estimate, self.high)),
                "outside" if self.outside[place] else "",
            ]
            for place in shown
        ]
        facts = [Fact("intervals", f"{asked.size:,} of {len(self.domain):,} values, at {100 * self.level:g}%")]
        if self.simultaneous:
            facts.append(Fact("together", "all of them hold at once"))
        if self.note:
            facts.append(Fact("note", self.note))
        if asked.size > SHOWN:
            facts.append(Fact("shown", f"{SHOWN} of them; to_frame() has all"))
        return facts_html(facts) + table_html(["value", "low", "estimate", "high", ""], rows)

    def __repr__(self) -> str:
        asked = int(np.count_nonzero(~np.isnan(self.low)))
        together = ", simultaneous" if self.simultaneous else ""
        return f"Band({asked:,} of {len(self.domain):,} values, level={self.level:g}{together})"


def band(
    reports: Reports,
    level: float = 0.95,
    *,
    values: object = None,
    simultaneous: bool = False,
    estimate: Estimate | None = None,
) -> Band:
    """Return `interval` for every value of the domain, or for some `values`.

    Each interval holds its value's true share with probability `level`; with ``simultaneous=True`` all of them hold
    together with that probability (Bonferroni over the whole domain).
    """
    return finish(banding(reports, level, values=values, simultaneous=simultaneous, estimate=estimate))


def banding(
    reports: Reports,
    level: float = 0.95,
    *,
    values: object = None,
    simultaneous: bool = False,
    estimate: Estimate | None = None,
) -> Generator[Any, None, Band]:
    """Do what `band` does, yielding progress on the way."""
    check_reports(reports, "band")
    level = validation.level(level, "band")
    validation.boolean(simultaneous, "simultaneous", "band")
    placed = check_estimate(estimate, reports, "band")
    size = len(reports.domain)
    asked = np.arange(size) if values is None else np.unique(np.atleast_1d(reports.domain.index(as_array(values))))
    run = _banding(reports, asked, level, simultaneous, placed)
    return (yield from step_by_step(run, reports.weights.size * size))


def _banding(
    reports: Reports, asked: Positions, level: float, simultaneous: bool, placed: Floats | None
) -> Generator[Any, None, Band]:
    likely = yield from LikelihoodRegion.finding(reports)
    size = len(reports.domain)
    low, high, notes = np.full(size, np.nan), np.full(size, np.nan), dict[str, int]()
    entries = reports.weights.size * size
    workers = min(processors(), asked.size) if FEW <= entries <= MANY else 1

    def some(places: Positions) -> list[Interval]:
        own = LikelihoodRegion(likely.top)  # its linear algebra has a workspace of its own
        with threads_for(entries):
            shares = [_share(reports, int(place)) for place in places]
            return [finish(profile(own, reports, share, level, simultaneous, placed)) for share in shares]

    parts = np.array_split(asked, max(1, min(asked.size, PARTS)))
    with ThreadPoolExecutor(workers) as pool:
        waiting = [(places, pool.submit(some, places)) for places in parts]
        for done, (places, result) in enumerate(waiting):
            found = result.result()
            low[places], high[places] = [one.low for one in found], [one.high for one in found]
            for note in (one.note for one in found if one.note):
                notes[note] = notes.get(note, 0) + 1
            yield Progress(done + 1, len(parts), "intervals")
    share = likely.top.theta if placed is None else placed
    told = " ".join(note if many == asked.size else f"{many:,} of them: {note}" for note, many in notes.items())
    return Band(reports.domain, frozen(low), frozen(share.copy()), frozen(high), level, simultaneous, told)


def _share(reports: Reports, place: int) -> Statistic:
    weights = np.zeros(len(reports.domain))
    weights[place] = 1.0
    return Statistic(frozen(weights), reports.domain.title(place), place)
