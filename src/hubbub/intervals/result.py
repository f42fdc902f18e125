"""The results of this package: an interval, a band of intervals, and a quantile."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.core.serialization import Portable
from hubbub.core.text import plural, whole_percent
from hubbub.domains import Domain
from hubbub.domains.product_labels import label_columns
from hubbub.estimators.result import Estimate, ValueIntervals
from hubbub.intervals.standard_errors import StandardErrors
from hubbub.rendering import EstimatePlot, Fact, facts_html, most_probable, picture_title, table_html

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_ROWS_IN_NOTEBOOK = 20
WITHOUT_SIGNS = "A standard error is that of an estimate that may be negative; intervals use that no share is."
SMALLEST_PLAIN_ERROR = 0.0005  # below, four decimals would leave less than one digit


def extended_note(count: int) -> str:
    """Return the sentence about intervals that were extended, the same wherever people read it.

    >>> extended_note(1)
    '1 interval was extended to the estimate, which is smoother there than the confidence interval alone allows.'
    """
    intervals = "1 interval was" if count == 1 else f"{count:,} intervals were"
    return f"{intervals} extended to the estimate, which is smoother there than the confidence interval alone allows."


def joined_notes(notes: Sequence[str]) -> str:
    """Return the notes of several intervals, each once, and to how many of them it applies.

    >>> joined_notes(["Exact.", "", "Exact.", "Wide."])
    '2 of them: Exact. 1 of them: Wide.'
    """
    counts = Counter(note for note in notes if note)
    return " ".join(text if count == len(notes) else f"{count:,} of them: {text}" for text, count in counts.items())


def errors_note(errors: Floats, reasons: Sequence[str], widths: Floats) -> str:
    """Return what to know about standard errors: how many there are not, and why; empty if there are all.

    `widths` are those of the intervals beside them.
    """
    counts = Counter(reason for reason in reasons if reason)
    notes = [f"None for {plural(count, 'value')}: {reason}" for reason, count in counts.items()]
    if (errors > widths).any():  # which would puzzle a reader
        notes.append(WITHOUT_SIGNS)
    return " ".join(notes)


def extend(low: Floats, high: Floats, estimate: Floats) -> tuple[Floats, Floats]:
    """Return intervals that hold their estimates; what is not known (NaN) stays so.

    >>> extend(np.array([0.2, np.nan]), np.array([0.4, np.nan]), np.array([0.1, 0.5]))
    (array([0.1, nan]), array([0.4, nan]))
    """
    return np.minimum(low, estimate), np.maximum(high, estimate)


def error_text(error: float) -> str:
    """Return a standard error for a table, with four decimals as shares have, or a short power; "-" if there is none.

    >>> [error_text(error) for error in (0.01234, 0.00001234, math.nan)]
    ['0.0123', '1.2e-05', '-']
    """
    if math.isnan(error):
        return "-"
    return f"{error:.4f}" if error >= SMALLEST_PLAIN_ERROR or error == 0.0 else f"{error:.1e}"


@dataclass(frozen=True)
class Interval(Portable):
    """The range that the reports leave open for a share or another statistic, and its estimate.

    Attributes
    ----------
    of : str
        The statistic in words: a value, a list of values, or a weighted sum.
    low, high : float
        The endpoints of what is shown: the confidence interval, extended to the estimate where that is outside it.
    estimate : float
        The statistic of the estimate that is shown: the one that was passed, or that of ``hubbub.estimate``.
    level : float
        The probability with which the confidence interval, and so all the more what is shown, holds the true value.
    method : str
        ``"profile"`` or ``"bootstrap"``.
    simultaneous : bool
        Whether the level holds for all values, or all linear statistics, at once.
    cutoffs : tuple of float, or None
        The cutoffs of the deviance at the low and the high endpoint; None where the ends come from something else: the
        bootstrap, all outcomes of a small yes/no study, or a linear estimate that allows for fakes.
    note : str
        How the cutoff was chosen, and what limits the interval.
    bias : float or None
        The bootstrap's guess of the estimator's bias; None for the profile likelihood.
    likeliest : float or None
        The statistic of the likeliest distribution, the maximum of the likelihood; None for the bootstrap.
    confidence_low, confidence_high : float
        The endpoints of the confidence interval itself.
    fakes : float
        The share of users who may have sent anything; 0 if all are taken to be honest.
    standard_error : float
        The standard error, from the Fisher information of the reports at the estimate (see the page on intervals); NaN
        if there is none. Fakes do not change it.
    standard_error_reason : str
        Why there is no standard error; empty if there is one.

    Examples
    --------
    >>> import hubbub as hb
    >>> travel = hb.RandomizedResponse(hb.Categories(["car", "train", "bike"]), epsilon=2.0)
    >>> answer = hb.interval(hb.Reports.from_counts(travel, {"car": 500, "train": 300, "bike": 200}), "train")
    >>> print(answer.explain())
    train: 0.2843, between 0.2434 and 0.3268 at 95%. Standard error 0.0213. Every value is clearly present: the
    chi-square cutoff applies.
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
    likeliest: float | None = None
    confidence_low: float = math.nan
    confidence_high: float = math.nan
    fakes: float = 0.0
    standard_error: float = math.nan
    standard_error_reason: str = ""

    def __post_init__(self) -> None:
        """Keep the endpoints of the confidence interval, and extend what is shown to the estimate."""
        for name, own in (("confidence_low", self.low), ("confidence_high", self.high)):
            if math.isnan(getattr(self, name)):
                object.__setattr__(self, name, own)
        object.__setattr__(self, "low", min(self.confidence_low, self.estimate))
        object.__setattr__(self, "high", max(self.confidence_high, self.estimate))

    @property
    def extended(self) -> bool:
        """Whether the confidence interval was extended to the estimate, which is smoother than it alone allows.

        Then `low` or `high` is the estimate, and `confidence_low` and `confidence_high` are the endpoints.
        """
        return self.low < self.confidence_low or self.high > self.confidence_high

    def explain(self) -> str:
        """Return the interval in sentences, with the standard error and the note.

        Returns
        -------
        str
            What printing shows, too.
        """
        text = (
            f"{self.of}: {self.estimate:.4g}, between {self.low:.4g} and {self.high:.4g} "
            f"at {whole_percent(self.level)}."
        )
        if not math.isnan(self.standard_error):
            text += f" Standard error {self.standard_error:.4g}."
        if self.extended:
            text += (
                f" The confidence interval, {self._confidence()}, was extended to the estimate, which "
                "is smoother, or more extreme, than it alone allows."
            )
        return f"{text} {self.note}".strip()

    def _confidence(self) -> str:
        return f"{self.confidence_low:.4g} to {self.confidence_high:.4g}"

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        known = not self.standard_error_reason
        return facts_html(
            [
                Fact("of", self.of),
                Fact("estimate", f"{self.estimate:.4g}"),
                Fact(f"{whole_percent(self.level)} interval", f"{self.low:.4g} to {self.high:.4g}"),
                *([Fact("without the estimate", self._confidence())] if self.extended else []),
                Fact(
                    "standard error", f"{self.standard_error:.4g}" if known else f"none: {self.standard_error_reason}"
                ),
                *([] if self.likeliest is None else [Fact("likeliest", f"{self.likeliest:.4g}")]),
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
        The endpoints of each value's interval: the confidence interval, extended to the estimate where that is outside.
    estimate : array
        The share of each value in the estimate that is shown: the one that was passed, or that of ``hubbub.estimate``.
    level : float
        The probability with which each interval holds its true share.
    simultaneous : bool
        Whether the level holds for all intervals at once.
    note : str
        What applies to some or all of the intervals.
    likeliest : array
        The share of each value in the likeliest distribution, the maximum of the likelihood.
    confidence_low, confidence_high : array
        The endpoints of each confidence interval itself.
    standard_error : array
        The standard error of each share, from the Fisher information of the reports at the estimate (see the
        page on intervals); NaN if there is none. Fakes do not change it.
    standard_error_reasons : tuple of str
        For each value why there is no standard error; empty if there is one, or if the value was not asked for.
    fakes : float
        The share of users who may have sent anything; 0 if all are taken to be honest.

    Examples
    --------
    >>> import hubbub as hb
    >>> travel = hb.RandomizedResponse(hb.Categories(["car", "train", "bike"]), epsilon=2.0)
    >>> intervals = hb.band(hb.Reports.from_counts(travel, {"car": 500, "train": 300, "bike": 200}), simultaneous=True)
    >>> intervals
    Band(3 of 3 values, level=0.95, simultaneous)
    >>> intervals.low.round(3), intervals.high.round(3)
    (array([0.523, 0.235, 0.095]), array([0.634, 0.336, 0.184]))
    """

    domain: Domain
    low: Floats
    estimate: Floats
    high: Floats
    level: float
    simultaneous: bool
    note: str
    likeliest: Floats
    confidence_low: Floats
    confidence_high: Floats
    standard_error: Floats
    standard_error_reasons: tuple[str, ...]
    fakes: float = 0.0

    @classmethod
    def around(
        cls,
        domain: Domain,
        estimate: Floats,
        confidence: tuple[Floats, Floats],
        *,
        level: float,
        simultaneous: bool,
        note: str,
        likeliest: Floats,
        errors: StandardErrors,
        fakes: float = 0.0,
    ) -> Band:
        """Return the band of some confidence intervals, each extended to its estimate.

        Parameters
        ----------
        domain : Domain
            The values.
        estimate : array
            The share of each value in the estimate that is shown.
        confidence : pair of arrays
            The low and the high endpoint of each confidence interval; NaN for values without one.
        level : float
            The probability with which each interval holds its true share.
        simultaneous : bool
            Whether the level holds for all intervals at once.
        note : str
            What applies to some or all of the intervals.
        likeliest : array
            The share of each value in the likeliest distribution.
        errors : StandardErrors
            The standard errors of the values that have intervals.
        fakes : float, default 0.0
            The share of users who may have sent anything.

        Returns
        -------
        Band
            The intervals.
        """
        numbers, reasons = np.full(len(domain), np.nan), [""] * len(domain)
        for position, number, reason in zip(np.flatnonzero(~np.isnan(confidence[0])).tolist(), *errors, strict=True):
            numbers[position], reasons[position] = number, reason
        low, high = extend(*confidence, estimate)
        return cls(
            domain,
            frozen(low),
            frozen(estimate.copy()),
            frozen(high),
            level,
            simultaneous,
            note,
            frozen(likeliest.copy()),
            frozen(confidence[0]),
            frozen(confidence[1]),
            frozen(numbers),
            tuple(reasons),
            fakes,
        )

    @property
    def extended(self) -> NDArray[np.bool_]:
        """Which confidence intervals were extended to their estimates."""
        return np.asarray((self.low < self.confidence_low) | (self.high > self.confidence_high))

    def errors_note(self, positions: Positions | None = None) -> str:
        """Return what to know about the standard errors of some values: how many have none, and why.

        Parameters
        ----------
        positions : array of int, optional
            The positions of the values in the domain; all of them by default.

        Returns
        -------
        str
            A sentence or two; empty if all have standard errors.
        """
        some = np.arange(len(self.domain)) if positions is None else positions
        reasons = [self.standard_error_reasons[position] for position in some.tolist()]
        return errors_note(self.standard_error[some], reasons, (self.high - self.low)[some])

    def leave_with(self, estimate: Estimate) -> None:
        """Let an estimate show these intervals in its table and its pictures.

        Parameters
        ----------
        estimate : Estimate
            The estimate that the intervals are about.
        """
        kept = ValueIntervals(self.low, self.high, self.standard_error, self.level, self.simultaneous, self.fakes)
        estimate.remember_intervals(kept)

    @property
    def _computed(self) -> NDArray[np.int64]:
        return np.flatnonzero(~np.isnan(self.low))

    def to_frame(self) -> pd.DataFrame:
        """Return the intervals as a pandas table, with a row for each value.

        Returns
        -------
        pandas.DataFrame
            Columns ``value`` (for combinations, one for each attribute: its name, or ``value.NAME`` where the table has
            a column NAME of its own), ``low``, ``estimate``, ``high``,
            ``standard_error``, ``likeliest`` and ``extended``.
        """
        import pandas as pd

        names = ("low", "estimate", "high", "standard_error", "likeliest", "extended")
        return pd.DataFrame({**label_columns(self.domain, names), **{name: getattr(self, name) for name in names}})

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the estimate with its intervals, as `Estimate.plot` does.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; left out, a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.
        """
        title = picture_title(level=self.level)
        picture = EstimatePlot(self.domain, self.estimate, title, intervals=(self.low, self.high, self.level))
        if axes is not None:
            return picture.on_axes(axes)
        import matplotlib.pyplot as plt

        return picture.on_figure(plt.figure(figsize=picture.inches, layout="constrained"))

    def _repr_html_(self) -> str:
        computed = self._computed
        shown = computed[most_probable(self.domain, self.estimate[computed], MAX_ROWS_IN_NOTEBOOK)]
        rows = [
            [
                self.domain.title(int(position)),
                *(f"{numbers[position]:.4f}" for numbers in (self.low, self.estimate, self.high)),
                error_text(float(self.standard_error[position])),
                "extended" if self.extended[position] else "",
            ]
            for position in shown
        ]
        counted = f"{computed.size:,} of {len(self.domain):,} values, at {whole_percent(self.level)}"
        facts = [Fact("intervals", counted)]
        if self.simultaneous:
            facts.append(Fact("together", "all of them hold at once"))
        if self.note:
            facts.append(Fact("note", self.note))
        if note := self.errors_note():
            facts.append(Fact("standard errors", note))
        if computed.size > MAX_ROWS_IN_NOTEBOOK:
            facts.append(Fact("shown", f"{MAX_ROWS_IN_NOTEBOOK} of them; to_frame() has all"))
        return facts_html(facts) + table_html(["value", "low", "estimate", "high", "standard error", ""], rows)

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
        The endpoints of the interval, labels of the domain: the confidence interval, extended to the estimate where
        that is outside it.
    estimate : label
        The quantile of the estimate that is shown: the one that was passed, or that of ``hubbub.estimate``.
    level : float
        The probability with which the confidence interval holds the true quantile.
    likeliest : label
        The quantile of the likeliest distribution, the maximum of the likelihood.
    confidence_low, confidence_high : label
        The endpoints of the confidence interval itself.
    of : str
        The attribute; empty where values are not combinations.
    given : str
        In words, the values of other attributes that all have who are spoken of; empty for the whole population.

    Examples
    --------
    >>> import hubbub as hb
    >>> children = hb.RandomizedResponse(hb.Integers(0, 3), epsilon=3.0)
    >>> reports = hb.Reports.from_counts(children, [20, 30, 40, 10])
    >>> median = hb.quantile(reports, 0.5, estimate=hb.estimate(reports, "mle"))
    >>> median.low, median.estimate, median.high
    (1, 1, 2)
    """

    probability: float
    low: Any
    estimate: Any
    high: Any
    level: float
    likeliest: Any
    confidence_low: Any
    confidence_high: Any
    of: str = ""
    given: str = ""

    @property
    def extended(self) -> bool:
        """Whether the confidence interval was extended to the estimate."""
        return bool((self.low, self.high) != (self.confidence_low, self.confidence_high))

    def explain(self) -> str:
        """Return the quantile and its interval as a sentence.

        Returns
        -------
        str
            What printing shows, too.
        """
        return (
            f"{whole_percent(self.probability)} of {f'those with {self.given}' if self.given else 'the population'} "
            f"have {f'{self.of} ' if self.of else ''}at most {self.estimate}; "
            f"between {self.low} and {self.high} at {whole_percent(self.level)}."
        )

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return facts_html([Fact(f"quantile {self.probability:g}", self.explain())])
