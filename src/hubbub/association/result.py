"""The result of `independence`: whether two attributes are related, and how strongly."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hubbub.association.association_sentences import (
    odds_sentence,
    strength_sentence,
    untestable_sentence,
    verdict_sentence,
)
from hubbub.comparison.distance_intervals import IntervalEstimate
from hubbub.core.arrays import Floats, frozen, largest_first
from hubbub.core.errors import EstimateError
from hubbub.core.serialization import Portable
from hubbub.core.text import percent, whole_percent
from hubbub.domains import Product
from hubbub.domains.product_labels import json_labels, label_columns
from hubbub.estimators.result import finite
from hubbub.rendering import Fact, facts_html, table_html
from hubbub.rendering.new_figure import axes_or_new

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_ROWS_IN_NOTEBOOK = 20


class OddsRatio(NamedTuple):
    """The odds ratio of two values of each attribute: p_11 p_22 / (p_12 p_21).

    Attributes
    ----------
    first, second : tuple of str
        The two values of each attribute, as tables show them.
    estimate : float or None
        Of the estimate that is shown; None where it is 0 divided by 0.
    low, high : float
        The interval of the true one; 0 and infinity where it has no end.
    """

    first: tuple[str, str]
    second: tuple[str, str]
    estimate: float | None
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Independence(Portable):
    """Whether two attributes are related, and how strongly: what `hubbub.independence` returns.

    Attributes
    ----------
    names : tuple of str
        The two attributes.
    domain : Product
        Their combinations.
    users : int
        How many users reported at least one of the two.
    level : float
        1 - `level` is the level of the test; each interval holds its true number with this probability.
    testable : bool
        Whether the reports can tell; `reason` says why not.
    reason : str
        Why the reports cannot tell; empty where they can.
    statistic : float or None
        The likelihood ratio, computed near independence; None if not testable.
    deviance : float or None
        Twice what independence costs of the log-likelihood; nearly the same number.
    p_value : float or None
        How likely a statistic as large is if the attributes are independent.
    method : str
        How the p-value was found.
    table : array
        The estimated joint shares: a row for each value of the first attribute, a column for each of the second. NaN
        if not testable.
    mutual_information : IntervalEstimate or None
        In bits, with its interval; None if not testable.
    cramers_v : IntervalEstimate or None
        Cramer's V, from 0 (independent) to 1, with its interval; None if not testable.
    bounded : bool
        Whether the reports rule out the strongest associations. If not, the intervals end at the largest numbers.
    odds_ratio : OddsRatio or None
        Of two attributes with two values each, or of the values that were asked for.

    Examples
    --------
    >>> import hubbub as hb
    >>> tea, town = hb.Categories(["yes", "no"]), hb.Categories(["a", "b"])
    >>> both = hb.Split(tea=hb.RandomizedResponse(tea, epsilon=2.0), town=hb.RandomizedResponse(town, epsilon=2.0))
    >>> counts = {("yes", "a"): 400, ("yes", "b"): 150, ("no", "a"): 200, ("no", "b"): 250}
    >>> result = hb.independence(hb.Reports.from_counts(both, counts), "tea", "town")
    >>> result.related, result.p_value < 1e-6, round(result.cramers_v.estimate, 2)
    (True, True, 0.49)
    """

    names: tuple[str, str]
    domain: Product
    users: int
    level: float
    testable: bool
    reason: str
    statistic: float | None
    deviance: float | None
    p_value: float | None
    method: str
    table: Floats
    mutual_information: IntervalEstimate | None
    cramers_v: IntervalEstimate | None
    bounded: bool
    odds_ratio: OddsRatio | None

    @property
    def related(self) -> bool:
        """Whether the reports show that the attributes are related: `p_value` is at most 1 - `level`."""
        return self.p_value is not None and self.p_value <= 1.0 - self.level

    @property
    def independent(self) -> Floats:
        """The joint shares if the attributes had the estimated marginals, and were independent."""
        return np.outer(self.table.sum(axis=1), self.table.sum(axis=0))

    @property
    def sentence(self) -> str:
        """What a reader should take away."""
        if self.p_value is None or self.cramers_v is None:
            return untestable_sentence(self.names, self.reason)
        verdict = verdict_sentence(self.names, self.p_value, rejected=self.related)
        _, low, high, _ = self.cramers_v
        return f"{verdict} {strength_sentence(low, high, rejected=self.related, is_bounded=self.bounded)}"

    def explain(self) -> str:
        """Return the result in plain sentences.

        Returns
        -------
        str
            The test, the strength of the association, and the odds ratio where there is one; or why the reports cannot
            tell.
        """
        sentences = [self.sentence]
        if self.odds_ratio is not None:
            odds = self.odds_ratio
            sentences.append(odds_sentence(self.names, odds.first, odds.second, odds.low, odds.high))
        return " ".join(sentences)

    def facts(self) -> list[Fact]:
        """Return everything but the table, as labels with texts."""
        facts = [Fact("in short", self.sentence), Fact("users", f"{self.users:,}")]
        if self.p_value is None or self.cramers_v is None or self.mutual_information is None:
            return facts
        facts += [
            Fact("test", f"likelihood ratio {self.statistic:.4g}; p-value from {self.method}"),
            Fact("Cramer's V", _interval_text(self.cramers_v)),
            Fact("mutual information", f"{_interval_text(self.mutual_information)} bits"),
        ]
        if self.odds_ratio is not None:
            odds = self.odds_ratio
            text = odds_sentence(self.names, odds.first, odds.second, odds.low, odds.high)
            estimate = "no estimate: 0 divided by 0" if odds.estimate is None else f"{odds.estimate:.4g}"
            facts.append(Fact("odds ratio", f"{estimate}. {text}"))
        return [*facts, Fact("intervals", f"each at {whole_percent(self.level)}")]

    def to_frame(self) -> pd.DataFrame:
        """Return the joint shares as a pandas table, with a row for each combination.

        Returns
        -------
        pandas.DataFrame
            A column for each attribute (``value.NAME`` where the table has a column NAME of its own), ``share``,
            ``independent`` (the product of the marginals) and ``difference``, the first less the second.
        """
        import pandas as pd

        share, independent = self.table.ravel(), self.independent.ravel()
        columns = {"share": share, "independent": independent, "difference": share - independent}
        return pd.DataFrame({**label_columns(self.domain, columns), **columns})

    def document(self) -> dict[str, Any]:
        """Return what `to_json` writes, as plain Python values.

        Returns
        -------
        dict
            Numbers that are not finite are None.
        """
        shares = zip(self.table.ravel().tolist(), self.independent.ravel().tolist(), strict=True)
        strengths = {"mutual_information": self.mutual_information, "cramers_v": self.cramers_v}
        odds = self.odds_ratio
        return {
            "version": 1,
            "attributes": list(self.names),
            "users": self.users,
            "level": self.level,
            "testable": self.testable,
            "reason": self.reason or None,
            "statistic": self.statistic,
            "deviance": self.deviance,
            "p_value": self.p_value,
            "related": self.related,
            "method": self.method,
            "bounded": self.bounded,
            **{
                name: None if own is None else {"estimate": own.estimate, "low": own.low, "high": own.high}
                for name, own in strengths.items()
            },
            "odds_ratio": None
            if odds is None
            else {
                "values": {self.names[0]: list(odds.first), self.names[1]: list(odds.second)},
                "estimate": None if odds.estimate is None else finite(odds.estimate),
                "low": odds.low,
                "high": finite(odds.high),
            },
            "text": self.explain(),
            "values": [
                {"value": value, "share": finite(share), "independent": finite(product)}
                for value, (share, product) in zip(json_labels(self.domain), shares, strict=True)
            ],
        }

    def to_json(self) -> str:
        """Return the result as one JSON document, with a version.

        Returns
        -------
        str
            Numbers that are not finite are null.
        """
        return json.dumps(self.document(), allow_nan=False, ensure_ascii=False)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw where combinations are more frequent than if the attributes were independent, and where less.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; left out, a new figure is made.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.

        Raises
        ------
        EstimateError
            If the reports cannot tell.
        """
        from hubbub.association.association_plot import draw_association

        if not self.testable:
            raise EstimateError(
                "there is nothing to draw",
                where="Independence.plot",
                got=self.sentence,
                expected="reports that say something about both attributes together",
                remedy="draw each attribute by itself, with estimate.marginal(...).plot()",
            )
        axes = axes_or_new(axes)
        draw_association(self, axes)
        return axes

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        outcome = "not testable" if self.p_value is None else f"p={self.p_value:.3g}"
        return f"Independence({self.names[0]} and {self.names[1]}, {outcome})"

    def _repr_html_(self) -> str:
        if not self.testable:
            return facts_html(self.facts())
        frame = self.to_frame()
        order = largest_first(np.abs(frame["difference"].to_numpy()))[:MAX_ROWS_IN_NOTEBOOK]
        rows = [
            [
                self.domain.title(place),
                percent(frame["share"][place]),
                percent(frame["independent"][place]),
                f"{frame['difference'][place]:+.4f}",
            ]
            for place in order.tolist()
        ]
        return facts_html(self.facts()) + table_html(["value", "share", "if independent", "difference"], rows)


def _interval_text(own: IntervalEstimate) -> str:
    return f"{own.estimate:.4g}, between {own.low:.4g} and {own.high:.4g}"


def untested(names: tuple[str, str], domain: Product, users: int, level: float, reason: str) -> Independence:
    """Return the result where the reports cannot tell."""
    nothing = frozen(np.full(domain.sides, np.nan))
    return Independence(
        names, domain, users, level, False, reason, None, None, None, "", nothing, None, None, False, None
    )
