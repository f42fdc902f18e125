"""The result of `trend`: periods side by side, where something changed, and estimates that are smoothed over time."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.comparison.comparison_sentences import p_text, row_change
from hubbub.core.arrays import Floats, Positions, largest_first, plain
from hubbub.core.serialization import Portable
from hubbub.core.text import plural, whole_percent
from hubbub.domains import Domain
from hubbub.estimators.result import finite
from hubbub.intervals.linear_statistic import NAMED, VALUE
from hubbub.rendering import Fact, facts_html, table_html
from hubbub.rendering.new_figure import axes_or_new
from hubbub.trends.change_search import StabilityTest
from hubbub.trends.time_smoothing import Smoothing

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_NAMED_CHANGES = 3  # in a sentence
MAX_NAMED_VALUES = 3  # of a change
MAX_ROWS_IN_NOTEBOOK = 30


@dataclass(frozen=True, eq=False)
class Change(Portable):
    """One change of a `Trend`: when it was, and what differs between the time before it and the time after it.

    Attributes
    ----------
    before, after : str
        The periods around the place where the change is most likely.
    first, last : str
        The change is for certain between these periods.
    p_value : float
        How likely a change as clear is if there is none, adjusted for looking everywhere.
    labels : array
        The value of each row, or the names of the statistics that were asked for.
    difference, low, high : array
        The share (or statistic) after the change minus that before it, and the interval of the true difference, which
        is longer the more places the change may have, and the more places there were to look for it.
    changed : array of bool
        Which rows differ, however many there are.
    is_share : bool
        Whether rows are shares.
    kind : str
        What the rows are, as in `Trend`.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=2.0)
    >>> may, june = (hb.Reports.from_counts(coin, counts) for counts in ([46, 54], [80, 20]))
    >>> change = hb.trend({"May": may, "June": june}, of="yes").changes[0]
    >>> change.before, change.after, change.p_value < 0.001
    ('May', 'June', True)
    >>> print(change)
    Between May and June yes became more frequent: by 27 to 61 percentage points.
    """

    before: str
    after: str
    first: str
    last: str
    p_value: float
    labels: NDArray[np.object_]
    difference: Floats
    low: Floats
    high: Floats
    changed: NDArray[np.bool_]
    is_share: bool
    kind: str = VALUE

    @property
    def sentence(self) -> str:
        """What changed, when, and by how much, in a sentence or two."""
        told = self._told()
        if not told:
            told = [f"something changed, but no single {self.kind} for certain."]
        place = f"Between {self.before} and {self.after} {told[0]}"
        return " ".join([place, *told[1:], *self._range()])

    def _told(self) -> list[str]:
        """Return what became more or less, the largest differences first."""
        if self.labels.size == 1:
            return [self._row_change(0)]
        places = np.flatnonzero(self.changed)
        order = places[largest_first(np.abs(self.difference[places]))]
        if self.kind == VALUE and self.labels.size == 2:
            order = order[order == 0]  # the second value says the same
        told = [self._row_change(place) for place in order[:MAX_NAMED_VALUES].tolist()]
        if told and self.kind in NAMED:  # "the share of" starts a sentence where it is not the first
            told[1:] = [text[0].upper() + text[1:] for text in told[1:]]
        hidden = order.size - len(told)
        if hidden > 0:
            told.append(f"{plural(hidden, f'more {self.kind}')} changed for certain.")
        return told

    def _row_change(self, place: int) -> str:
        ends = float(self.low[place]), float(self.high[place])
        return row_change(str(self.labels[place]), *ends, kind=self.kind, is_share=self.is_share)

    def _range(self) -> list[str]:
        if (self.before, self.after) == (self.first, self.last):
            return []
        return [f"It may have been at another time from {self.first} to {self.last}."]

    def document(self) -> dict[str, Any]:
        """Return the change as plain Python values, ready for JSON.

        Returns
        -------
        dict
            The periods around it, the adjusted p-value, and a row for each value.
        """
        columns = {"difference": self.difference, "low": self.low, "high": self.high, "changed": self.changed}
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return {
            **{name: getattr(self, name) for name in ("before", "after", "first", "last")},
            "adjusted": self.p_value,
            "text": self.sentence,
            "values": [
                {"value": plain(label), **dict(zip(columns, row, strict=True))}
                for label, row in zip(self.labels.tolist(), rows, strict=True)
            ],
        }

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True, eq=False)
class Trend(Portable):
    """Shares, or one statistic, over several periods, and where they changed.

    Attributes
    ----------
    domain : Domain
        The values of all periods.
    names : tuple of str
        What the periods are called, in the order of time.
    times : array
        When they were.
    users : tuple of int
        How many users reported in each.
    labels : array
        The values that are followed, or the names of the statistics that were asked for.
    estimate, low, high : array
        The estimate of each period by itself and its interval, as ``hubbub.interval`` has them (periods by labels).
    band_low, band_high : array
        Longer intervals, which hold the true values of all periods at once, for each label.
    smoothed : array
        The estimates smoothed over time, as far as that predicts better; `estimate` where it does not.
    smoothing : Smoothing
        What was chosen; `smoothing.sentence` says it in words.
    changes : tuple of Change
        Where something changed.
    test : StabilityTest
        The test of "no change at all".
    level : float
        The probability with which each interval holds, each band holds, and no change is named without there being one.
    is_share : bool
        Whether shares are followed; False for means, quantiles and weighted sums.
    epsilon : float
        What a user who reports in every period spends at most, in total; epsilon per unit of distance if `metric`.
    metric : bool
        Whether `epsilon` is per unit of distance.
    note : str
        What limits the numbers.
    kind : str
        What the labels are: ``"value"`` if every value is followed, ``"statistic"`` for one, ``"sum"`` or ``"region"``
        for several with names.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=2.0)
    >>> may, june = (hb.Reports.from_counts(coin, counts) for counts in ([46, 54], [52, 48]))
    >>> result = hb.trend({"May": may, "June": june}, of="yes")
    >>> result.rejected, len(result.changes)
    (False, 0)
    >>> print(result.to_frame()[["period", "estimate", "low", "high", "smoothed"]].round(2))
      period  estimate   low  high  smoothed
    0    May      0.45  0.32  0.58      0.49
    1   June      0.53  0.39  0.66      0.49
    """

    domain: Domain
    names: tuple[str, ...]
    times: Floats
    users: tuple[int, ...]
    labels: NDArray[np.object_]
    estimate: Floats
    low: Floats
    high: Floats
    band_low: Floats
    band_high: Floats
    smoothed: Floats
    smoothing: Smoothing
    changes: tuple[Change, ...]
    test: StabilityTest
    level: float
    is_share: bool
    epsilon: float
    metric: bool
    note: str = ""
    kind: str = VALUE

    @property
    def p_value(self) -> float:
        """How likely reports as different are if all periods have the same distribution."""
        return self.test.p_value

    @property
    def rejected(self) -> bool:
        """Whether the reports show that something changed: `p_value` is at most 1 - `level`."""
        return self.p_value <= 1.0 - self.level

    @property
    def sentence(self) -> str:
        """What a reader should take away: the changes, or that none is shown."""
        periods = plural(len(self.names), "period")
        if not self.changes:
            return f"These reports do not show any change over {periods} ({p_text(self.p_value)})."
        hidden = len(self.changes) - MAX_NAMED_CHANGES
        told = [change.sentence for change in self.changes[:MAX_NAMED_CHANGES]]
        if hidden > 0:
            told.append(f"There {'is 1 more change' if hidden == 1 else f'are {hidden} more changes'}.")
        return " ".join(told)

    @property
    def privacy(self) -> str:
        """What reporting in several periods costs users, in sentences."""
        unit = f" per {'unit' if self.domain.unit in (None, 'unit') else self.domain.unit}" if self.metric else ""
        total = (
            f"epsilon {self.epsilon:.4g}{unit}" if math.isfinite(self.epsilon) else "more than any epsilon: no limit"
        )
        return (
            "A user who reports in several periods spends privacy in each, and epsilons add up: at most "
            f"{total} in all {len(self.names):,}. These reports do not tell how many users did."
        )

    def explain(self) -> str:
        """Return the trend in plain sentences.

        Returns
        -------
        str
            The changes, the test, how periods were smoothed, and what users spend.
        """
        sentences = [self.sentence]
        if self.changes:
            sentences.append(self._test_sentence())
        return " ".join([*sentences, self.smoothing.sentence, self.privacy])

    def _test_sentence(self) -> str:
        return f"That nothing changed over {plural(len(self.names), 'period')} is rejected ({p_text(self.p_value)})."

    def facts(self) -> list[Fact]:
        """Return everything but the table, as labels with texts."""
        fewest, most = min(self.users), max(self.users)
        users = plural(most, "user") if fewest == most else f"{fewest:,} to {plural(most, 'user')}"
        percent = whole_percent(self.level)
        facts = [
            Fact("in short", self.sentence),
            Fact("periods", f"{len(self.names):,}, {self.names[0]} to {self.names[-1]}; {users} each"),
            Fact("test", f"{p_text(self.p_value)} of no change at all; {self._test_note()}"),
            Fact(
                "changes",
                f"at {percent} no change is named unless there is one; places are the likeliest, and differences "
                "those of the stretches of time before and after, with intervals that allow for the choice of these "
                "places",
            ),
            Fact("bands", f"intervals hold each at {percent}, bands for all periods at once (Bonferroni)"),
            Fact("smoothing", self.smoothing.sentence),
            Fact("privacy", self.privacy),
        ]
        return [*facts, Fact("note", self.note)] if self.note else facts

    def _test_note(self) -> str:
        note = self.test.any_difference.note
        if len(self.names) == 2:
            return f"p-value from {note}"
        return (
            f"the smaller p-value, doubled, of any difference ({p_text(self.test.any_difference.p_value)}) and of "
            f"earlier against later periods ({p_text(self.test.best_step.p_value)}), from {note}"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the trend as a pandas table, with a row for each period and value.

        Returns
        -------
        pandas.DataFrame
            Columns ``period``, ``value``, ``estimate``, ``low``, ``high``, ``band_low``, ``band_high`` and
            ``smoothed``.
        """
        import pandas as pd

        count, size = self.estimate.shape
        columns = ("estimate", "low", "high", "band_low", "band_high", "smoothed")
        return pd.DataFrame(
            {
                "period": np.repeat(np.array(self.names, dtype=object), size),
                "value": np.tile(self.labels, count),
                **{name: getattr(self, name).ravel() for name in columns},
            }
        )

    def document(self) -> dict[str, Any]:
        """Return what `to_json` writes, as plain Python values.

        Returns
        -------
        dict
            With a version, the periods, the tests, the changes and a row for each period and value.
        """
        frame = self.to_frame().to_dict("records")
        return {
            "version": 1,
            "periods": [
                {"period": name, "time": time, "users": users}
                for name, time, users in zip(self.names, self.times.tolist(), self.users, strict=True)
            ],
            "level": self.level,
            "p_value": self.p_value,
            "p_value_any_difference": self.test.any_difference.p_value,
            "p_value_best_step": self.test.best_step.p_value,
            "deviance": self.test.any_difference.deviance,
            "test": self.test.any_difference.note,
            "changes": [change.document() for change in self.changes],
            "smoothing": {
                "kind": self.smoothing.kind,
                "bandwidth": finite(self.smoothing.bandwidth),
                "held_out": self.smoothing.held_out,
                "text": self.smoothing.sentence,
            },
            "epsilon_in_all_periods": {"epsilon": finite(self.epsilon), "per_unit": self.metric},
            "note": self.note,
            "of": self.kind,
            "text": self.explain(),
            "values": [{name: plain(each) for name, each in row.items()} for row in frame],
        }

    def to_json(self) -> str:
        """Return the trend as one JSON document.

        Returns
        -------
        str
            Numbers that are not finite are null.
        """
        return json.dumps(self.document(), allow_nan=False)

    def most_changing(self, most: int) -> Positions:
        """Return the labels whose estimates change most over time, in the order of the domain; of two, the first.

        Parameters
        ----------
        most : int
            How many labels at most.

        Returns
        -------
        array of int
            Their places in `labels`.
        """
        if self.kind == VALUE and self.labels.size == 2:
            return np.zeros(1, dtype=np.int64)
        moved = np.ptp(self.smoothed, axis=0) + 1e-3 * np.ptp(self.estimate, axis=0)
        return np.sort(np.argsort(-moved, kind="stable")[:most])

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw lines over time with their bands; changes are marked.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; left out, a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.
        """
        from hubbub.trends.trend_plot import draw_trend

        axes = axes_or_new(axes)
        draw_trend(self, axes)
        return axes

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        changes = plural(len(self.changes), "change")
        return f"Trend({len(self.names):,} periods, {self.labels.size:,} rows each, {changes}, p={self.p_value:.3g})"

    def _repr_html_(self) -> str:
        head = ["period", self.kind, "estimate", f"{whole_percent(self.level)} interval", "band", "smoothed"]
        rows = [
            [
                str(row.period),
                str(row.value),
                f"{row.estimate:.4g}",
                f"{row.low:.4g} to {row.high:.4g}",
                f"{row.band_low:.4g} to {row.band_high:.4g}",
                f"{row.smoothed:.4g}",
            ]
            for row in self.to_frame().iloc[:MAX_ROWS_IN_NOTEBOOK].itertuples()
        ]
        return facts_html(self.facts()) + table_html(head, rows)
