"""The result of `compare_groups`: several groups side by side, and what sets each apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.comparison.comparison_sentences import number_sentence, p_text, row_sentence
from hubbub.comparison.equality_test import Equality
from hubbub.comparison.group_order import Ranked
from hubbub.comparison.partial_pooling import Pooled
from hubbub.core.arrays import Floats, largest_first
from hubbub.core.serialization import Portable
from hubbub.core.text import listed, plural, whole_percent
from hubbub.domains import Domain
from hubbub.domains.product_labels import json_value
from hubbub.estimators.result import finite
from hubbub.intervals.linear_statistic import VALUE
from hubbub.intervals.result import error_text
from hubbub.rendering import Fact, facts_html, table_html
from hubbub.rendering.new_figure import axes_or_new

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_NAMED_CHANGES = 3
MAX_ROWS_IN_NOTEBOOK = 30


class MeanDifference(NamedTuple):
    """The mean of a group minus that of the others, or of the reference.

    Attributes
    ----------
    group : str
        What the group is called.
    estimate, low, high : float
        The difference of the means, and its interval.
    p_value, adjusted : float
        How likely a difference as large is if there is none; the latter for looking at all groups (Holm).
    changed : bool
        Whether the means differ, however many groups were looked at.
    standard_error : float, or None
        The standard error of the difference; None where there is none.
    """

    group: str
    estimate: float
    low: float
    high: float
    p_value: float
    adjusted: float
    changed: bool
    standard_error: float | None = None


@dataclass(frozen=True, eq=False)
class GroupComparison(Portable):
    """Several groups: each against the others together, or against one of them.

    Attributes
    ----------
    domain : Domain
        The values of all groups.
    names : tuple of str
        What the groups are called.
    users : tuple of int
        How many users each group has.
    against : str or None
        The name of the group that all others are compared with; None if each is compared with all others together.
    shares : array
        The estimate of each group (groups by rows).
    pooled : Pooled
        Estimates drawn towards all groups together, as far as that predicts better.
    difference, low, high : array
        Each group's share minus that of what it is compared with, and the interval of the true difference.
    standard_error : array
        The standard error of each difference; NaN where there is none.
    standard_error_reasons : tuple of tuple of str
        Why there is none; empty where there is one, and for the reference.
    p_values, adjusted : array
        How likely a difference as large is if there is none; the latter for looking at all groups and rows (Holm).
    changed : array of bool
        Which differ, however many were looked at.
    level : float
        The probability with which each interval holds the true difference.
    equality : Equality
        The test of whether all groups have the same distribution.
    order : tuple of Ranked
        The groups in the order of `order_of`, with the ranks that each may have.
    order_of : str
        What the groups are ordered by.
    means : tuple of MeanDifference
        Each group's mean minus that of what it is compared with; of every value on a line.
    labels : array
        The value of each row, or the names of the statistics that were asked for.
    is_share : bool
        Whether rows are shares; False for a weighted sum.
    kind : str
        What the rows are: ``"value"`` if every value has one, ``"statistic"`` for the one that was asked for, ``"sum"``
        or ``"region"`` for several with names.
    caveats : tuple of str
        What to know about the rows, such as regions that lie partly outside the map.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=2.0)
    >>> counts = {"north": [90, 110], "south": [138, 62], "west": [94, 106]}
    >>> result = hb.compare_groups({name: hb.Reports.from_counts(coin, own) for name, own in counts.items()})
    >>> result.rejected
    True
    >>> [(group.name, group.first, group.last) for group in result.order]  # the ranks that each may have
    [('south', 1, 1), ('west', 2, 3), ('north', 2, 3)]
    """

    domain: Domain
    names: tuple[str, ...]
    users: tuple[int, ...]
    against: str | None
    shares: Floats
    pooled: Pooled
    difference: Floats
    low: Floats
    high: Floats
    standard_error: Floats
    standard_error_reasons: tuple[tuple[str, ...], ...]
    p_values: Floats
    adjusted: Floats
    changed: NDArray[np.bool_]
    level: float
    equality: Equality
    order: tuple[Ranked, ...]
    order_of: str
    means: tuple[MeanDifference, ...]
    labels: NDArray[np.object_]
    is_share: bool = True
    kind: str = VALUE
    caveats: tuple[str, ...] = ()

    @property
    def p_value(self) -> float:
        """How likely reports as different are if all groups have the same distribution."""
        return self.equality.p_value

    @property
    def rejected(self) -> bool:
        """Whether the reports show that not all groups are equal: `p_value` is at most 1 - `level`."""
        return self.p_value <= 1.0 - self.level

    @property
    def sentence(self) -> str:
        """What a reader should take away, in a few sentences."""
        count = plural(len(self.names), "group")
        if self.kind == VALUE and not self.rejected:
            return self._equality()
        other = "the rest" if self.against is None else self.against
        moved = sorted((mean for mean in self.means if mean.changed), key=lambda mean: -abs(mean.estimate))
        if moved:
            named = moved[:MAX_NAMED_CHANGES]
            told_means = [number_sentence((other, mean.group), "The mean", mean.low, mean.high) for mean in named]
            return " ".join([self._equality(), *told_means])
        groups, values = np.nonzero(self.changed)
        order = largest_first(np.abs(self.difference[groups, values]))
        told: list[str] = []
        for place in order.tolist():
            group, value = int(groups[place]), int(values[place])
            if self.kind == VALUE and len(self.domain) == 2 and value == 1:
                continue  # the first value says the same
            if len(told) < MAX_NAMED_CHANGES:
                pair, ends = (other, self.names[group]), (self.low[group, value], self.high[group, value])
                told.append(row_sentence(pair, self.title(value), *ends, kind=self.kind, is_share=self.is_share))
        if self.kind == VALUE:
            return " ".join([self._equality(), *told])
        if order.size > len(told):
            hidden = order.size - len(told)
            told.append(f"{plural(hidden, 'more difference')} {'is' if hidden == 1 else 'are'} certain.")
        if not told and self.rejected:
            return f"The {count} are not all equal, but no single {self.kind} differs for certain."
        rows = plural(self.labels.size, self.kind)
        return " ".join(told) or f"These reports do not show in any of {rows} that the {count} differ."

    def _equality(self) -> str:
        """Return what the test of equality says."""
        count = plural(len(self.names), "group")
        if self.rejected:
            return f"The {count} are not all equal ({p_text(self.p_value)})."
        return f"These reports do not show that the {count} differ ({p_text(self.p_value)})."

    def title(self, row: int) -> str:
        """Return what a row is called in sentences and tables.

        Parameters
        ----------
        row : int
            Its place in `labels`.

        Returns
        -------
        str
            The title of the value, or the name of the statistic.
        """
        return self.domain.title(row) if self.kind == VALUE else str(self.labels[row])

    def explain(self) -> str:
        """Return the comparison in plain sentences.

        Returns
        -------
        str
            What differs, how far groups are best pooled, and which has the most.
        """
        return " ".join([self.sentence, self._pooling(), self._ties()]).strip()

    def _pooling(self) -> str:
        if self.pooled.is_complete:
            return "Every group is best predicted by all of them together."
        if self.pooled.prior_users == 0.0:
            return "Every group is best predicted by its own reports."
        return f"Groups are best predicted if each borrows {self.pooled.prior_users:,.0f} users from all of them."

    def _ties(self) -> str:
        first = [ranked.name for ranked in self.order if ranked.first == 1]
        if len(first) == 1:
            return f"{first[0]} has the most of {self.order_of} for certain."
        names = listed(first, most=MAX_NAMED_CHANGES)
        return f"Which group has the most of {self.order_of} is not settled: {names} may."

    def facts(self) -> list[Fact]:
        """Return everything but the table, as labels with texts."""
        against = "the others together" if self.against is None else self.against
        equality = [] if self.kind == VALUE else [Fact("all values?", self._equality())]
        return [
            Fact("in short", self.sentence),
            *equality,
            Fact("test", f"likelihood ratio {self.equality.deviance:.4g}; p-value from {self.equality.note}"),
            Fact(
                "differences", f"to {against}; intervals each at {whole_percent(self.level)}; p-values adjusted by Holm"
            ),
            Fact("borrowing", self._pooling()),
            Fact("order", self._ties()),
            *(Fact("note", caveat) for caveat in self.caveats),
        ]

    def to_frame(self) -> pd.DataFrame:
        """Return the groups as a pandas table, with a row for each group and value, or statistic asked for.

        Returns
        -------
        pandas.DataFrame
            Columns ``group``, ``users``, ``value``, ``share``, ``pooled``, ``difference``, ``low``, ``high``,
            ``standard_error``, ``p_value``, ``adjusted`` and ``changed``.
        """
        import pandas as pd

        count, size = self.shares.shape
        columns = {
            "group": np.repeat(np.array(self.names, dtype=object), size),
            "users": np.repeat(self.users, size),
            "value": np.tile(self.labels, count),
        }
        names = ("difference", "low", "high", "standard_error", "p_value", "adjusted", "changed")
        errors = self.standard_error
        own = (self.difference, self.low, self.high, errors, self.p_values, self.adjusted, self.changed)
        shares = {"share": self.shares.ravel(), "pooled": self.pooled.shares.ravel()}
        return pd.DataFrame(
            {**columns, **shares, **{name: each.ravel() for name, each in zip(names, own, strict=True)}}
        )

    def document(self) -> dict[str, Any]:
        """Return the comparison as plain Python values, ready for JSON.

        Returns
        -------
        dict
            With a version, the groups in their order, the test and a row for each group and value.
        """
        frame = self.to_frame().drop(columns="users").to_dict("records")
        reasons = (reason or None for group in self.standard_error_reasons for reason in group)
        rows = [
            {name: finite(each) if isinstance(each, float) else each for name, each in row.items()}
            | {"value": json_value(row["value"], self.domain), "standard_error_reason": reason}
            for row, reason in zip(frame, reasons, strict=True)
        ]
        return {
            "version": 1,
            "groups": [{"group": name, "users": own} for name, own in zip(self.names, self.users, strict=True)],
            "against": self.against,
            "level": self.level,
            "p_value": self.p_value,
            "deviance": self.equality.deviance,
            "test": self.equality.note,
            "correction": "holm",
            "borrowed_users": self.pooled.prior_users,
            "caveats": list(self.caveats),
            "text": self.explain(),
            "of": self.kind,
            "order_of": self.order_of,
            "order": [ranked._asdict() for ranked in self.order],
            "means": [mean._asdict() for mean in self.means],
            "values": rows,
        }

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the groups in their order, with the ranks that each may have.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; left out, a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.
        """
        from hubbub.rendering.palette import BLUE, GREY
        from hubbub.rendering.picture_text import names_beside, tell_missing_letters

        axes = axes_or_new(axes)
        for row, ranked in enumerate(self.order):
            axes.hlines(row, ranked.first, ranked.last, color=GREY, linewidth=3)
            axes.plot(row + 1, row, "o", color=BLUE)
        names = names_beside([ranked.name for ranked in self.order])
        axes.set_yticks(range(len(self.order)), names.texts, **names.style)
        axes.invert_yaxis()
        axes.set_xlabel(f"rank by {self.order_of}, and the ranks that the reports leave open")
        tell_missing_letters(axes)
        return axes

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        return f"GroupComparison({len(self.names):,} groups, p={self.p_value:.3g})"

    def _repr_html_(self) -> str:
        frame = self.to_frame().iloc[:MAX_ROWS_IN_NOTEBOOK]
        rows = [
            [
                str(row.group),
                str(row.value),
                f"{row.share:.4f}",
                f"{row.difference:+.4f}",
                f"{row.low:+.4f} to {row.high:+.4f}",
                error_text(error),
                "differs" if row.changed else "",
            ]
            for row, error in zip(frame.itertuples(), self.standard_error.ravel().tolist(), strict=False)
        ]
        head = ["group", self.kind, "share", "difference", "interval", "std. error", ""]
        return facts_html(self.facts()) + table_html(head, rows)
