"""The results of this package: an interval, a band of intervals, and a quantile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats
from hubbub.core.serialization import Portable
from hubbub.core.text import plural, whole_percent
from hubbub.domains import Domain
from hubbub.rendering import Fact, draw_distribution, draw_whiskers, facts_html, most_probable, table_html

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_ROWS_IN_NOTEBOOK = 20


def outside_note(count: int) -> str:
    """Return the sentence about estimates outside their own intervals, the same wherever people read it.

    >>> outside_note(1)
    '1 estimate is outside its own interval: smoother than the reports allow.'
    """
    where = "is outside its own interval" if count == 1 else "are outside their own intervals"
    return f"{plural(count, 'estimate')} {where}: smoother than the reports allow."


@dataclass(frozen=True)
class Interval(Portable):
    """The range of values that the reports leave open for a statistic, and its estimate.

    Attributes
    ----------
    of : str
        The statistic in words: a value, a list of values, or a weighted sum.
    low, high : float
        The endpoints.
    estimate : float
        The statistic of the estimate that was passed, or of the maximum of the likelihood.
    level : float
        The probability with which the interval holds the true value of the statistic.
    method : str
        ``"profile"`` or ``"bootstrap"``.
    simultaneous : bool
        Whether the level holds for all values, or all linear statistics, at once.
    cutoffs : tuple of float, or None
        The cutoffs of the deviance at the low and the high endpoint; None for the bootstrap.
    note : str
        How the cutoff was chosen, and what limits the interval.
    bias : float or None
        The bootstrap's guess of the estimator's bias; None for the profile likelihood.
    fakes : float
        The share of fake users whatever reports of whom the interval allows for; 0 for none.
    """

    of: str
    low: float
    estimate: float
    high: float
    level: float
    method: str
    simultaneous: bool
    cutoffs: tuple[float, float] | None
    note: str
    bias: float | None = None
    fakes: float = 0.0

    @property
    def outside(self) -> bool:
        """Whether the estimate is outside its own interval: it was regularised by more than the data allow."""
        return not self.low <= self.estimate <= self.high

    def explain(self) -> str:
        """Return the interval as a sentence or two."""
        text = (
            f"{self.of}: {self.estimate:.4g}, between {self.low:.4g} and {self.high:.4g} "
            f"at {whole_percent(self.level)}."
        )
        if self.outside:
            text += " The estimate is outside its interval: it is smoother, or more extreme, than the reports allow."
        return f"{text} {self.note}".strip()

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return facts_html(
            [
                Fact("of", self.of),
                Fact("estimate", f"{self.estimate:.4g}" + (" (outside its interval)" if self.outside else "")),
                Fact(f"{whole_percent(self.level)} interval", f"{self.low:.4g} to {self.high:.4g}"),
                Fact("method", self.method + (", simultaneous" if self.simultaneous else "")),
                *([Fact("note", self.note)] if self.note else []),
            ]
        )


@dataclass(frozen=True, eq=False)
class Band(Portable):
    """An interval for the true share of each value; NaN for values that were not asked for.

    Attributes
    ----------
    domain : Domain
        The values; the arrays are in the order of ``domain.labels``.
    low, high : array
        The endpoints of each value's interval.
    estimate : array
        The share of each value in the estimate that was passed, or in the maximum of the likelihood.
    level : float
        The probability with which each interval holds its true share.
    simultaneous : bool
        Whether the level holds for all intervals at once.
    note : str
        What applies to some or all of the intervals.
    fakes : float
        The share of fake users whatever reports of whom the intervals allow for; 0 for none.
    """

    domain: Domain
    low: Floats
    estimate: Floats
    high: Floats
    level: float
    simultaneous: bool
    note: str = ""
    fakes: float = 0.0

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which values have an estimate outside their own interval."""
        return np.asarray((self.estimate < self.low) | (self.estimate > self.high))

    @property
    def _computed(self) -> NDArray[np.int64]:
        return np.flatnonzero(~np.isnan(self.low))

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas table with columns value, low, estimate and high."""
        import pandas as pd

        return pd.DataFrame(
            {"value": self.domain.labels, "low": self.low, "estimate": self.estimate, "high": self.high}
        )

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the estimate with its intervals; on a map, which has no room for them, draw their widths."""
        if axes is None:
            import matplotlib.pyplot as plt

            _, axes = plt.subplots(layout="constrained")
        title = f"{whole_percent(self.level)} intervals"
        if self.domain.chart == "map":
            draw_distribution(self.domain, np.nan_to_num(self.high - self.low), axes)
            axes.set_title(f"width of the {title}")
        else:
            draw_distribution(self.domain, self.estimate, axes)
            draw_whiskers(self.domain, self.low, self.high, axes)
            axes.set_title(title)
        return axes

    def _repr_html_(self) -> str:
        computed = self._computed
        shown = computed[most_probable(self.domain, self.estimate[computed], MAX_ROWS_IN_NOTEBOOK)]
        rows = [
            [
                self.domain.title(int(position)),
                *(f"{numbers[position]:.4f}" for numbers in (self.low, self.estimate, self.high)),
                "outside" if self.outside[position] else "",
            ]
            for position in shown
        ]
        counted = f"{computed.size:,} of {len(self.domain):,} values, at {whole_percent(self.level)}"
        facts = [Fact("intervals", counted)]
        if self.simultaneous:
            facts.append(Fact("together", "all of them hold at once"))
        if self.note:
            facts.append(Fact("note", self.note))
        if computed.size > MAX_ROWS_IN_NOTEBOOK:
            facts.append(Fact("shown", f"{MAX_ROWS_IN_NOTEBOOK} of them; to_frame() has all"))
        return facts_html(facts) + table_html(["value", "low", "estimate", "high", ""], rows)

    def __repr__(self) -> str:
        together = ", simultaneous" if self.simultaneous else ""
        return f"Band({self._computed.size:,} of {len(self.domain):,} values, level={self.level:g}{together})"


@dataclass(frozen=True)
class Quantile(Portable):
    """The value that a share of the population does not exceed: its interval and its estimate.

    Attributes
    ----------
    probability : float
        The share of the population.
    low, high : label
        The endpoints of the interval, labels of the domain.
    estimate : label
        The quantile of the estimate that was passed, or of the maximum of the likelihood.
    level : float
        The probability with which the interval holds the true quantile.
    """

    probability: float
    low: Any
    estimate: Any
    high: Any
    level: float

    def explain(self) -> str:
        """Return the interval as a sentence."""
        return (
            f"{whole_percent(self.probability)} of the population have at most {self.estimate}; "
            f"between {self.low} and {self.high} at {whole_percent(self.level)}."
        )

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return facts_html([Fact(f"quantile {self.probability:g}", self.explain())])
