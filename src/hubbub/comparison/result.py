"""The result of `compare`: differences between two groups, whether there are any, and how far apart they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hubbub.comparison.comparison_sentences import (
    distance_sentence,
    equality_sentence,
    none_differs_sentence,
    number_sentence,
    row_sentence,
)
from hubbub.comparison.distance_intervals import IntervalEstimate
from hubbub.comparison.equality_test import Equality
from hubbub.comparison.quantile_differences import QuantileDifference
from hubbub.core.arrays import Floats, largest_first
from hubbub.core.serialization import Portable
from hubbub.core.text import percent, plural, whole_percent
from hubbub.domains import Domain
from hubbub.domains.product_labels import json_value
from hubbub.estimators.result import finite
from hubbub.intervals.linear_statistic import VALUE
from hubbub.intervals.result import error_text, errors_note
from hubbub.rendering import Fact, facts_html, table_html
from hubbub.rendering.new_figure import axes_or_new

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_ROWS_IN_NOTEBOOK = 20
MAX_NAMED_CHANGES = 3  # in a sentence


@dataclass(frozen=True, eq=False)
class Comparison(Portable):
    """What differs between two groups, the second minus the first, and whether anything does.

    Attributes
    ----------
    domain : Domain
        The values of both groups.
    names : tuple of str
        What the groups are called.
    users : tuple of int
        How many users each group has.
    labels : array
        The value of each row, or the names of the statistics that were asked for.
    first, second : array
        The share of each row in the estimate of each group.
    difference : array
        The second share minus the first.
    low, high : array
        The interval of each true difference: the confidence interval, extended to `difference` where that is outside.
    confidence_low, confidence_high : array
        The endpoints of each confidence interval itself.
    standard_error : array
        The standard error of each difference, from the Fisher information of both groups at their estimates; NaN where
        there is none.
    standard_error_reasons : tuple of str
        Why there is none; empty where there is one.
    p_values : array
        How likely a difference as large is if the two groups are equal in this row.
    adjusted : array
        The same, adjusted for looking at all rows (Holm); for every value, never below that of the test of equality.
    changed : array of bool
        Which rows differ, however many there are: `adjusted` is at most 1 - `level`, and the interval does not hold 0.
    level : float
        The probability with which each interval holds the true difference.
    equality : Equality
        The test of whether both groups have the same distribution.
    total_variation, earth_mover : IntervalEstimate or None
        How far apart the groups are, with intervals; None if statistics were asked for, and the latter where it would
        take too long.
    mean : IntervalEstimate, or None
        The difference of the means, with its interval, if values are numbers.
    note : str
        How intervals were calibrated.
    is_share : bool
        Whether rows are shares; False for a weighted sum.
    kind : str
        What the rows are: ``"value"`` if every value has one, ``"statistic"`` for the one that was asked for, ``"sum"``
        or ``"region"`` for several with names.
    caveats : tuple of str
        What to know about the rows, such as regions that lie partly outside the map.
    quantiles : tuple of QuantileDifference
        The quantiles that were asked for, in both groups, and their differences with intervals.
    effective_users : tuple of float, or None
        How many users without weights would tell as much, in each group; None without survey weights.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=2.0)
    >>> men = hb.Reports.from_counts(coin, {"yes": 90, "no": 110})
    >>> women = hb.Reports.from_counts(coin, {"yes": 138, "no": 62})
    >>> result = hb.compare(men, women, names=("men", "women"))
    >>> result.rejected, result.p_value < 0.001
    (True, True)
    >>> print(result.to_frame()[["value", "difference", "low", "high", "standard_error"]].round(2))
      value  difference   low  high  standard_error
    0   yes        0.32  0.19  0.44            0.06
    1    no       -0.32 -0.44 -0.19            0.06
    """

    domain: Domain
    names: tuple[str, str]
    users: tuple[int, int]
    labels: NDArray[np.object_]
    first: Floats
    second: Floats
    difference: Floats
    low: Floats
    high: Floats
    confidence_low: Floats
    confidence_high: Floats
    standard_error: Floats
    standard_error_reasons: tuple[str, ...]
    p_values: Floats
    adjusted: Floats
    changed: NDArray[np.bool_]
    level: float
    equality: Equality
    total_variation: IntervalEstimate | None
    earth_mover: IntervalEstimate | None
    mean: IntervalEstimate | None
    note: str
    is_share: bool = True
    quantiles: tuple[QuantileDifference, ...] = ()
    kind: str = VALUE
    caveats: tuple[str, ...] = ()
    effective_users: tuple[float, float] | None = None

    @property
    def p_value(self) -> float:
        """How likely reports as different are if both groups have the same distribution."""
        return self.equality.p_value

    @property
    def rejected(self) -> bool:
        """Whether the reports show that the groups differ: `p_value` is at most 1 - `level`."""
        return self.p_value <= 1.0 - self.level

    @property
    def extended(self) -> NDArray[np.bool_]:
        """Which confidence intervals were extended to the difference that is shown."""
        return np.asarray((self.low < self.confidence_low) | (self.high > self.confidence_high))

    @property
    def sentence(self) -> str:
        """What a reader should take away, in a sentence or two."""
        if self.labels.size == 1 and not self.has_all_values:
            return self._row_sentence(0)
        if self.has_all_values and not self.rejected:
            return equality_sentence(self.names, self.p_value, rejected=False)
        places = np.flatnonzero(self.changed)
        order = places[largest_first(np.abs(self.difference[places]))]
        if self.has_all_values and len(self.domain) == 2:
            order = order[order == 0]  # the second value says the same
        mean = self.mean if self.has_all_values else None
        named = MAX_NAMED_CHANGES if mean is None else 0
        told = [] if mean is None else [number_sentence(self.names, "The mean", mean.low, mean.high)]
        told += [self._row_sentence(place) for place in order[:named].tolist()]
        if order.size > named:
            rest = plural(order.size - named, f"more {self.kind}" if named else self.kind)
            told.append(f"{rest} {'differs' if order.size - named == 1 else 'differ'} for certain.")
        if told:
            return " ".join(told)
        if not self.has_all_values:
            return none_differs_sentence(self.names, self.labels.size, self.kind, rejected=self.rejected)
        return equality_sentence(self.names, self.p_value, rejected=self.rejected)

    def _row_sentence(self, place: int) -> str:
        ends = float(self.low[place]), float(self.high[place])
        return row_sentence(self.names, str(self.labels[place]), *ends, kind=self.kind, is_share=self.is_share)

    @property
    def has_all_values(self) -> bool:
        """Whether there is a row for each value, rather than one for each statistic that was asked for."""
        return self.kind == VALUE

    def explain(self) -> str:
        """Return the comparison in plain sentences.

        Returns
        -------
        str
            What differs, the test of equality, and how far apart the groups are.
        """
        if not self.has_all_values:
            return self.sentence
        sentences = [self.sentence]
        equal = equality_sentence(self.names, self.p_value, rejected=self.rejected)
        if self.sentence != equal:
            sentences.append(equal)
        if self.total_variation is not None:
            sentences.append(distance_sentence("total variation", self.total_variation))
        if self.earth_mover is not None and not self.domain.is_equidistant:
            sentences.append(distance_sentence("earth mover's distance", self.earth_mover, _unit_text(self.domain)))
        sentences += [number_sentence(self.names, f"The {each.title}", each.low, each.high) for each in self.quantiles]
        return " ".join(sentences)

    def facts(self) -> list[Fact]:
        """Return everything but the table of values, as labels with texts."""
        facts = [
            Fact("in short", self.sentence),
            Fact("groups", " and ".join(f"{name} ({users})" for name, users in self._group_texts())),
            Fact(
                "equal?" if self.has_all_values else "all values?",
                equality_sentence(self.names, self.p_value, rejected=self.rejected),
            ),
            Fact("test", f"likelihood ratio {self.equality.deviance:.4g}; p-value from {self.equality.note}"),
        ]
        if self.total_variation is not None:
            facts.append(Fact("total variation", _interval(self.total_variation, "")))
        if self.earth_mover is not None and not self.domain.is_equidistant:
            facts.append(Fact("earth mover's distance", _interval(self.earth_mover, _unit_text(self.domain))))
        if self.mean is not None:
            error = self.mean.standard_error
            beside = "" if error is None else f" (standard error {error:.4g})"
            facts.append(Fact("difference of means", _interval(self.mean, "") + beside))
        for each in self.quantiles:
            between = f"{each.estimate:.4g} ({each.first:.4g} and {each.second:.4g})"
            facts.append(Fact(f"difference of {each.title}s", f"{between}, between {each.low:.4g} and {each.high:.4g}"))
        if self.labels.size > 1 and not (self.has_all_values and len(self.domain) == 2):
            count = int(self.changed.sum())
            told = f"{plural(count, self.kind)} of {self.labels.size:,}" if count else "none for certain"
            facts.append(Fact("differing", f"{told} (p-values adjusted for looking at all of them, by Holm)"))
        facts.append(Fact("intervals", f"each at {whole_percent(self.level)}; {self.note}"))
        if note := errors_note(self.standard_error, self.standard_error_reasons, self.high - self.low):
            facts.append(Fact("std. error", note))
        return [*facts, *(Fact("note", caveat) for caveat in self.caveats)]

    def _group_texts(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each group, and how many users it has."""
        for name, users, effective in zip(self.names, self.users, self.effective_users or (None, None), strict=True):
            weighted = "" if effective is None else f", {effective:,.0f} effective by their weights"
            yield name, f"{plural(users, 'user')}{weighted}"

    def to_frame(self) -> pd.DataFrame:
        """Return the differences as a pandas table, with a row for each value, or for each statistic asked for.

        Returns
        -------
        pandas.DataFrame
            Columns ``value``, ``first``, ``second``, ``difference``, ``low``, ``high``, ``standard_error``,
            ``p_value``, ``adjusted`` and ``changed``.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "value": self.labels,
                "first": self.first,
                "second": self.second,
                "difference": self.difference,
                "low": self.low,
                "high": self.high,
                "standard_error": self.standard_error,
                "p_value": self.p_values,
                "adjusted": self.adjusted,
                "changed": self.changed,
            }
        )

    def document(self) -> dict[str, Any]:
        """Return the comparison as plain Python values, ready for JSON.

        Returns
        -------
        dict
            With a version, both groups, the test, the distances and a row for each value.
        """
        columns = {
            "first": self.first,
            "second": self.second,
            "difference": self.difference,
            "low": self.low,
            "high": self.high,
            "confidence_low": self.confidence_low,
            "confidence_high": self.confidence_high,
            "standard_error": np.array([finite(error) for error in self.standard_error.tolist()], dtype=object),
            "standard_error_reason": np.array([reason or None for reason in self.standard_error_reasons], dtype=object),
            "p_value": self.p_values,
            "adjusted": self.adjusted,
            "changed": self.changed,
        }
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        distances = {"total_variation": self.total_variation, "earth_mover": self.earth_mover, "mean": self.mean}
        return {
            "version": 1,
            "groups": [
                {"group": name, "users": users, "effective_users": effective}
                for name, users, effective in zip(
                    self.names, self.users, self.effective_users or (None, None), strict=True
                )
            ],
            "level": self.level,
            "p_value": self.p_value,
            "deviance": self.equality.deviance,
            "test": self.equality.note,
            "correction": "holm",
            "note": self.note,
            "caveats": list(self.caveats),
            "text": self.explain(),
            "of": self.kind,
            **{name: None if distance is None else distance._asdict() for name, distance in distances.items()},
            "quantiles": [each._asdict() for each in self.quantiles],
            "values": [
                {"value": json_value(label, self.domain), **dict(zip(columns, row, strict=True))}
                for label, row in zip(self.labels.tolist(), rows, strict=True)
            ],
        }

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the differences with their intervals; on a map, the cells that have more and those that have less.

        Sums with names, and regions, have a line each.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; left out, a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.
        """
        from hubbub.comparison.comparison_plot import draw_comparison

        axes = axes_or_new(axes)
        draw_comparison(self, axes)
        return axes

    def largest(self, most: int) -> NDArray[np.int64]:
        """Return which rows to show first: those that changed, then those with the largest differences.

        Parameters
        ----------
        most : int
            How many rows at most.

        Returns
        -------
        array of int
            Their places among all rows.
        """
        order = largest_first(np.abs(self.difference))
        order = order[np.argsort(~self.changed[order], kind="stable")][:most]
        return np.sort(order) if self.has_all_values and self.domain.unit is not None else order

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        rows = plural(self.labels.size, "row")
        return f"Comparison({self.names[1]} minus {self.names[0]}, {rows}, p={self.p_value:.3g})"

    def _repr_html_(self) -> str:
        rows = [
            [
                str(self.labels[place]),
                percent(self.first[place]),
                percent(self.second[place]),
                f"{self.difference[place]:+.4f}",
                f"{self.low[place]:+.4f} to {self.high[place]:+.4f}",
                error_text(float(self.standard_error[place])),
                "differs" if self.changed[place] else "",
            ]
            for place in self.largest(MAX_ROWS_IN_NOTEBOOK).tolist()
        ]
        interval = f"{whole_percent(self.level)} interval"
        head = [self.kind, self.names[0], self.names[1], "difference", interval, "std. error", ""]
        return facts_html(self.facts()) + table_html(head, rows)


def _unit_text(domain: Domain) -> str:
    """Return the unit of distances; a line has no other unit than its numbers."""
    return "" if domain.unit in (None, "unit") else f" {domain.unit}"


def _interval(distance: IntervalEstimate, unit: str) -> str:
    return f"{distance.estimate:.4g}{unit}, between {distance.low:.4g} and {distance.high:.4g}"
