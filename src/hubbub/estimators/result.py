"""`Estimate`: the result of every method, with the same fields."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats, frozen
from hubbub.core.errors import EstimateError, shorten
from hubbub.core.serialization import Portable, ReadOnly
from hubbub.core.text import listed
from hubbub.domains import Domain, Product
from hubbub.domains.product_labels import given_text, json_labels, label_columns
from hubbub.estimators.auto import Selection
from hubbub.rendering import (
    EstimatePlot,
    Fact,
    ProductPlot,
    crosstab_html,
    distribution_html,
    facts_text,
    geojson,
    picture_title,
    upper_text,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MAX_SUM_ERROR = 1e-9  # of shares that add up to 1: more than rounding, less than anybody sees
MAX_GAP_OF_MAXIMUM = 1e-6  # nats per user: below it, an estimate of `auto` is a maximum of the likelihood


@dataclass(frozen=True)
class History(Portable):
    """The iterates of a method: entry t is after t steps, entry 0 is the start.

    Attributes
    ----------
    log_likelihood : array of float
        The total log-likelihood after each step.
    probabilities : array of float
        The distribution after each step (steps by values).
    """

    log_likelihood: Floats
    probabilities: Floats


class ValueIntervals(NamedTuple):
    """The endpoints and the standard error of each value's share (NaN: none), and what the endpoints hold for."""

    low: Floats
    high: Floats
    standard_error: Floats
    level: float
    simultaneous: bool
    fakes: float

    def completed_by(self, before: ValueIntervals | None) -> ValueIntervals:
        """Return these intervals, and those of other values that were computed before if they are of the same kind."""
        if before is None or before[3:] != self[3:]:
            return self
        missing = np.isnan(self.low)
        low, high, errors = (np.where(missing, old, own) for own, old in zip(self[:3], before[:3], strict=True))
        return self._replace(low=frozen(low), high=frozen(high), standard_error=frozen(errors))


@dataclass(frozen=True, eq=False)
class Estimate(Portable):
    """The estimated distribution over the domain, with its status and certificate: what every method returns.

    Attributes
    ----------
    domain : Domain
        The values.
    probabilities : array of float
        The estimated share of each value, in the order of ``domain.labels``. Those of method ``"inv"`` may be negative
        or have another sum than 1: `is_distribution` says so.
    method : str
        The method that was asked for.
    status : str
        How the method ended, in a sentence.
    converged : bool
        Whether the method's own stopping rule was met.
    log_likelihood : float
        The total over users, in nats; NaN where the shares are no distribution.
    gap : float
        A certified bound on how far the mean log-likelihood is below its maximum, in nats per user, whatever the
        method; 0 exactly at a maximum, NaN where the shares are no distribution.
    iterations : int
        How many iterations were made.
    users : int
        How many users sent the reports.
    effective_users : float, or None
        How many users of equal weight would tell as much; None where users have no survey weights.
    settings : mapping
        The settings that were used, defaults included.
    history : History or None
        All iterates, where they were asked for.
    intervals : ValueIntervals or None
        The intervals that `hubbub.band` or `hubbub.check` computed for this estimate: all of the kind (level,
        simultaneous, fakes) that was asked for last.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> answer = hb.estimate(hb.Reports.from_counts(coin, {"yes": 600, "no": 400}))
    >>> print(answer.to_frame().round(4))
      value  probability
    0   yes       0.7164
    1    no       0.2836
    >>> answer.users, answer.converged
    (1000, True)
    >>> answer.status
    'maximum likelihood: with 2 values there is nothing to shrink'
    """

    domain: Domain
    probabilities: Floats
    method: str
    status: str
    converged: bool
    log_likelihood: float
    gap: float
    iterations: int
    users: int
    settings: Mapping[str, Any] = field(default_factory=lambda: ReadOnly({}))
    history: History | None = None
    intervals: ValueIntervals | None = field(default=None, repr=False)
    effective_users: float | None = None

    @property
    def is_distribution(self) -> bool:
        """Whether no share is negative and their sum is 1, as for every method but ``"inv"``."""
        return is_distribution(self.probabilities)

    def remember_intervals(self, intervals: ValueIntervals) -> None:
        """Keep intervals that were computed for this estimate, so that tables and pictures show them.

        `hubbub.band` and `hubbub.check` do this themselves.

        Parameters
        ----------
        intervals : ValueIntervals
            The intervals of all values, or of some.
        """
        object.__setattr__(self, "intervals", intervals.completed_by(self.intervals))

    def _gap_meaning(self) -> str:
        """Return what the gap is a measure of: a solver's error only where the maximum was looked for."""
        if self.method != "auto" or self.gap < MAX_GAP_OF_MAXIMUM:
            return "0 at a maximum"
        return "maximum likelihood fits these reports better, noise and all, often by far less: no error of the answer"

    def _users_text(self) -> str:
        effective = self.effective_users
        return f"{self.users:,}" + ("" if effective is None else f" ({effective:,.0f} effective, by their weights)")

    def facts(self) -> list[Fact]:
        """Return what printing shows: labels with texts, such as the method, the status and the gap."""
        return [
            Fact("method", self.method),
            Fact("status", self.status),
            Fact("users", self._users_text()),
            Fact("values", f"{len(self.domain):,}"),
            *self._likelihood_facts(),
            Fact("iterations", f"{self.iterations:,}"),
        ]

    def _likelihood_facts(self) -> list[Fact]:
        if math.isnan(self.gap):
            return [Fact("likelihood", "none: only a distribution has one")]
        return [
            Fact("log-likelihood", f"{self.log_likelihood:,.4f}"),
            Fact("gap", f"at most {upper_text(self.gap, 3)} nats per user ({self._gap_meaning()})"),
        ]

    def __repr__(self) -> str:
        return f"Estimate(method={self.method!r}, values={len(self.domain)}, status={self.status!r})"

    def __str__(self) -> str:
        return facts_text(self.facts())

    def _repr_html_(self) -> str:
        if self.domain.product is not None:
            return crosstab_html(self.facts(), self.domain.product, self.probabilities)
        return distribution_html(self.facts(), self.domain, self.probabilities)

    def to_frame(self) -> pd.DataFrame:
        """Return the shares as a pandas table, with a row for each value.

        Returns
        -------
        pandas.DataFrame
            Columns ``value`` (for combinations, one for each attribute) and ``probability``; ``low``, ``high`` and
            ``standard_error`` as well, once intervals were computed.
        """
        import pandas as pd

        columns = {"probability": self.probabilities}
        if self.intervals is not None:
            names = ("low", "high", "standard_error")
            columns |= {name: getattr(self.intervals, name) for name in names}
        return pd.DataFrame({**label_columns(self.domain, columns), **columns})

    def marginal(self, *names: str) -> Estimate:
        """Return the distribution of one attribute, or of several together, of a `Product`.

        Parameters
        ----------
        *names : str
            Attributes; with several, values are their combinations.

        Returns
        -------
        Estimate
            Over the domain of the attribute, or the product of several. Its log-likelihood and gap are those of the
            joint distribution.

        Raises
        ------
        EstimateError
            If values are not combinations of attributes.
        DomainError
            If a name is no attribute, or there twice.

        Examples
        --------
        >>> import hubbub as hb
        >>> tea, town = hb.Categories(["yes", "no"]), hb.Categories(["a", "b"])
        >>> both = hb.Split(tea=hb.RandomizedResponse(tea, epsilon=2.0), town=hb.RandomizedResponse(town, epsilon=2.0))
        >>> counts = {("yes", "a"): 40, ("yes", "b"): 10, ("no", "a"): 20, ("no", "b"): 30}
        >>> joint = hb.estimate(hb.Reports.from_counts(both, counts), "mle")
        >>> joint.marginal("town").probabilities.round(3)
        array([0.631, 0.369])
        >>> joint.conditional("tea", given={"town": "a"}).probabilities.round(3)
        array([0.773, 0.227])
        """
        margin = attributes_of(self.domain, "marginal").margin(names, "marginal(names)")
        return self._over(margin.domain, margin.sums(self.probabilities), f"marginal of {listed(list(names))}")

    def conditional(self, *names: str, given: Mapping[str, object]) -> Estimate:
        """Return the distribution of attributes among those who have given values of others.

        Parameters
        ----------
        *names : str
            Attributes.
        given : mapping
            Other attributes, and a value or a list of values of each, such as ``{"sex": "f"}``.

        Returns
        -------
        Estimate
            As in `marginal`.

        Raises
        ------
        EstimateError
            If values are not combinations of attributes, or nobody is estimated to have the given values.
        DomainError
            If a name is no attribute, or a value not one of its.
        """
        product = attributes_of(self.domain, "conditional")
        margin = product.margin(names, "conditional(names)")
        among = product.having(given, "conditional(given=)")
        if not among.any():
            raise EstimateError(
                "no combination has these values",
                where="conditional(given=)",
                got=shorten(dict(given)),
                expected="values of some attributes that can meet",
                remedy="ask for other values, or leave out what bars them in impossible=",
            )
        shares = np.where(among, self.probabilities, 0.0)
        if not shares.sum() > 0.0:
            raise EstimateError(
                "nobody is estimated to have the given values",
                where="conditional(given=)",
                got=shorten(dict(given)),
                expected="values with a share above 0",
                remedy="give more values, or fewer attributes",
            )
        status = f"{listed(list(names))}, given {given_text(given)}"
        return self._over(margin.domain, margin.sums(shares) / shares.sum(), status)

    def crosstab(self, rows: str, columns: str) -> pd.DataFrame:
        """Return the joint shares of two attributes as a table.

        Parameters
        ----------
        rows, columns : str
            Attributes.

        Returns
        -------
        pandas.DataFrame
            A row for each value of one, a column for each of the other; 0 where a combination is impossible.

        Raises
        ------
        EstimateError
            If values are not combinations of attributes.
        DomainError
            If a name is no attribute, or both are the same.
        """
        import pandas as pd

        product = attributes_of(self.domain, "crosstab")
        margin = product.margin([rows, columns], "crosstab(rows, columns)")
        up, along = product.attributes[rows], product.attributes[columns]
        table = np.zeros(len(up) * len(along))
        cells = cast("Product", margin.domain).cells
        table[slice(None) if cells is None else cells] = margin.sums(self.probabilities)
        index, names = pd.Index(up.labels, name=rows), pd.Index(along.labels, name=columns)
        return pd.DataFrame(table.reshape(len(up), len(along)), index=index, columns=names)

    def _over(self, domain: Domain, probabilities: Floats, what: str) -> Estimate:
        """Return what this estimate says about other values."""
        return replace(
            self,
            domain=domain,
            probabilities=frozen(probabilities),
            status=f"{what}; the joint estimate: {self.status}",
            history=None,
            intervals=None,
        )

    def document(self) -> dict[str, Any]:
        """Return what `to_json` writes, as plain Python values.

        Returns
        -------
        dict
            Numbers that are not finite are None.
        """
        return {
            "version": 1,
            "method": self.method,
            "status": self.status,
            "converged": self.converged,
            "users": self.users,
            "effective_users": self.effective_users,
            "log_likelihood": finite(self.log_likelihood),
            "gap": finite(self.gap),
            "iterations": self.iterations,
            "settings": {name: _json_value(value) for name, value in self.settings.items()},
            "estimate": [
                {"value": value, "probability": probability}
                for value, probability in zip(json_labels(self.domain), self.probabilities.tolist(), strict=True)
            ],
        }

    def to_json(self) -> str:
        """Return the estimate as one JSON document, with a version.

        Returns
        -------
        str
            Numbers that are not finite are null.
        """
        return json.dumps(self.document(), allow_nan=False, ensure_ascii=False)

    def to_geojson(self, *, low: Floats | None = None, high: Floats | None = None) -> str:
        """Return a GeoJSON document for map tools: each cell of a grid over the map, with its probability.

        A grid has a place on the map if it was made by `Grid.over`.

        Parameters
        ----------
        low, high : array of float, optional
            Endpoints of intervals to add to each cell, for example those of a `hubbub.band`.

        Returns
        -------
        str
            A FeatureCollection, with a polygon for each cell.

        Raises
        ------
        EstimateError
            If `low` or `high` is not one number for each cell.
        DomainError
            If the domain has no place on the map.
        """
        columns = {"probability": self.probabilities}
        for name, endpoints in (("low", low), ("high", high)):
            if endpoints is None:
                continue
            column = np.asarray(endpoints, dtype=np.float64)
            if column.shape != self.probabilities.shape:
                raise EstimateError(
                    f"{name} must be one number for each value",
                    where=f"to_geojson({name}=)",
                    got=f"shape {column.shape}",
                    expected=f"{len(self.domain):,} numbers, in the order of domain.labels",
                    remedy="pass low and high of hubbub.band for the same reports",
                )
            columns[name] = column
        return geojson(self.domain, columns)

    def plot(self, axes: Axes | None = None, *, truth: object = None, view: str = "estimate") -> Axes:
        """Draw the distribution as a map, a line or bars, depending on the domain, with intervals once there are any.

        Two attributes are a heat table with the shares of each beside it; three or four are such tables of each two,
        more are bars of each. ``estimate.marginal("age", "sex").plot()`` draws the two that you choose.

        Bars have whiskers. Cells of a map are the fainter the less is known about their shares; a figure of its own
        shows the widths of the intervals as a second map.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; left out, a new figure is made.
        truth : array of float, optional
            The true distribution, in the order of ``domain.labels``, to draw beside the estimate.
        view : {"estimate", "certainty"}, default "estimate"
            On a map, "certainty" shows how sure the shares are: half the width of each interval relative to its share.

        Returns
        -------
        matplotlib.axes.Axes
            The axes that were drawn on.

        Raises
        ------
        EstimateError
            If `truth` is not a distribution over the domain.
        SettingError
            If there is no such view of this estimate.
        """
        picture = self.picture(truth, view)
        if axes is not None:
            return picture.on_axes(axes)
        import matplotlib.pyplot as plt

        return picture.on_figure(plt.figure(figsize=picture.inches, layout="constrained"))

    def picture(self, truth: object = None, view: str = "estimate", *, study: str = "") -> EstimatePlot | ProductPlot:
        """Return what `plot` draws, before it is drawn.

        Parameters
        ----------
        truth : array of float, optional
            The true distribution, in the order of ``domain.labels``, to draw beside the estimate.
        view : {"estimate", "certainty"}, default "estimate"
            What to show on a map, as in `plot`.
        study : str, optional
            The study's name, for the title.

        Returns
        -------
        EstimatePlot or ProductPlot
            The picture, which can be drawn on a figure or on axes.
        """
        true = None
        if truth is not None:
            true = validation.distribution(truth, len(self.domain), "plot(truth=)", error=EstimateError)
        known = self.intervals
        level = None if known is None else known.level
        level = None if self.domain.product is not None else level  # tables show no intervals
        title = picture_title(study, users=self.users, method=self.method, level=level)
        ends = None if known is None else (known.low, known.high, known.level)
        if self.domain.product is not None:
            return ProductPlot(self.domain.product, self.probabilities, title, truth=true, view=view)
        return EstimatePlot(self.domain, self.probabilities, title, intervals=ends, truth=true, view=view)


def is_distribution(shares: Floats) -> bool:
    """Return whether no share is negative and their sum is 1, up to rounding."""
    return bool((shares >= 0.0).all()) and abs(float(shares.sum()) - 1.0) <= MAX_SUM_ERROR


def attributes_of(domain: Domain, where: str) -> Product:
    """Return the product whose attributes are asked for, or say that there are none."""
    if domain.product is not None:
        return domain.product
    restricted = domain.unrestricted.product is not None
    raise EstimateError(
        "some combinations were left out" if restricted else "the values are not combinations of attributes",
        where=where,
        got=domain.describe(),
        expected="an estimate over a Product, such as hubbub.Product(age=..., sex=...)",
        remedy="estimate from the reports before restrict(...)"
        if restricted
        else "use the estimate itself: it has one attribute",
    )


def finite(number: float) -> float | None:
    """Return the number, or None if it is not finite: JSON has no infinity."""
    return number if math.isfinite(number) else None


def _json_value(value: object) -> object:
    if isinstance(value, Selection):
        return value.rows()
    if isinstance(value, float):
        return finite(value)
    return value if isinstance(value, str | int | bool | None) else str(value)
