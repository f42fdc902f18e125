"""`moments` and `correlation`: means, standard deviations and correlations of numeric attributes, with intervals."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats, frozen
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import stepwise
from hubbub.core.serialization import Portable
from hubbub.core.threads import limit_threads_per_step
from hubbub.domains.product import Margin
from hubbub.estimators import Estimate
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.estimators.validation import check_estimate, check_reports
from hubbub.intervals.api import check_group, shown_interval, statistic_endpoints
from hubbub.intervals.attribute_statistics import AnyStatistic, Group, parse_group, parse_numbers
from hubbub.intervals.conditional_shares import ConditionalShare
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.intervals.linear_statistic import Statistic
from hubbub.intervals.moment_statistics import Correlation, Variance
from hubbub.intervals.result import Interval
from hubbub.likelihood import Likelihood
from hubbub.rendering import Fact, facts_html
from hubbub.reports import Reports


@dataclass(frozen=True)
class Moments(Portable):
    """The mean and the standard deviation of a numeric attribute, each with its interval.

    Attributes
    ----------
    of : str
        What they are about, in words.
    mean : Interval
        The mean. Bins count with their centres.
    standard_deviation : Interval
        The standard deviation of the values themselves (not of an estimate).

    Examples
    --------
    >>> import hubbub as hb
    >>> children = hb.RandomizedResponse(hb.Integers(0, 3), epsilon=3.0)
    >>> numbers = hb.moments(hb.Reports.from_counts(children, [200, 300, 400, 100]))
    >>> round(numbers.mean.low, 2), round(numbers.mean.estimate, 2), round(numbers.mean.high, 2)
    (1.31, 1.38, 1.45)
    """

    of: str
    mean: Interval
    standard_deviation: Interval

    def explain(self) -> str:
        """Return both in sentences.

        Returns
        -------
        str
            What printing shows, too.
        """
        return f"{self.mean.explain()}\n{self.standard_deviation.explain()}"

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return facts_html([Fact(each.of, each.explain()) for each in (self.mean, self.standard_deviation)])


@stepwise
def moments(
    reports: Reports,
    of: str | None = None,
    level: float = 0.95,
    *,
    given: Mapping[str, object] | None = None,
    estimate: Estimate | None = None,
) -> Generator[Any, None, Moments]:
    """Return the mean and the standard deviation of a numeric attribute, with profile intervals.

    The mean is linear in the shares, and its interval that of `interval`; among those with given values it is a ratio.
    The variance is not linear: its ends are found by linear statistics that follow its gradient (see the page on
    intervals), with the cutoff of the last of them. Both intervals hold for each by itself.

    Parameters
    ----------
    reports : Reports
        Reports about numbers (`Integers` or `Bins`), or about combinations with such an attribute.
    of : str, optional
        The attribute, where values are combinations.
    level : float, default 0.95
        The probability with which each interval holds the true number.
    given : dict, optional
        Attributes, and a value or a list of values of each: the numbers of those who have them.
    estimate : Estimate, optional
        The estimate to show in the intervals; that of ``hubbub.estimate(reports)`` by default.

    Returns
    -------
    Moments
        With `mean` and `standard_deviation`, an `Interval` each.

    Raises
    ------
    EstimateError
        If the values have no order, `reports` are not reports in this process, or nobody is estimated to have the
        given values.
    DomainError
        If `of` or `given` names an attribute or a value that there is not.
    SettingError
        If a keyword has a wrong value, or the estimate is over another domain.

    Examples
    --------
    >>> import hubbub as hb
    >>> age, sex = hb.Integers(1, 4), hb.Categories(["f", "m"])
    >>> both = hb.Split(age=hb.RandomizedResponse(age, epsilon=3.0), sex=hb.RandomizedResponse(sex, epsilon=3.0))
    >>> people = [(1, "f"), (2, "f"), (3, "f"), (3, "m"), (4, "m")] * 400
    >>> reports = hb.Reports.from_outputs(both, both.privatize(people, rng=1))
    >>> numbers = hb.moments(reports, "age", given={"sex": "f"}, estimate=hb.estimate(reports, "mle"))
    >>> round(numbers.mean.low, 2), round(numbers.mean.high, 2)
    (1.93, 2.05)
    """
    check_reports(reports, "moments")
    level = validation.level(level, "moments")
    margin = parse_numbers(reports.domain, of, "moments")
    group = parse_group(reports.domain, given, "moments")
    check_estimate(estimate, reports, "moments")
    title = (of or "the values") + ("" if group is None else f", given {group.title}")
    numbers = _numbers(margin)
    plain = Statistic(frozen(numbers), f"mean of {of or 'the values'}", is_share=False)
    mean: AnyStatistic = plain if group is None else ConditionalShare.of(plain, group.among, group.title)
    variance = Variance(numbers, _among(group), f"standard deviation of {title}")

    def steps() -> Generator[Any, None, Moments]:
        shown = yield from shown_estimate(reports, estimate, "moments")
        check_group(mean, shown, "moments")
        region = yield from LikelihoodRegion.around(Likelihood.of(reports))
        (around,) = yield from statistic_endpoints(reports, region, [mean], level)
        (squared,) = yield from statistic_endpoints(reports, region, [variance], level)
        return Moments(
            title,
            shown_interval(reports, mean, around, shown, region, level=level),
            _root(shown_interval(reports, variance, squared, shown, region, level=level)),
        )

    return limit_threads_per_step(steps(), reports.weights.size * len(reports.domain))


@stepwise
def correlation(
    reports: Reports,
    first: str,
    second: str,
    level: float = 0.95,
    *,
    given: Mapping[str, object] | None = None,
    estimate: Estimate | None = None,
) -> Generator[Any, None, Interval]:
    """Return the correlation (Pearson's) of two numeric attributes, with a profile interval.

    The interval runs from the lowest to the highest correlation among likely distributions, found by linear statistics
    that follow its gradient, with the simulated cutoff of the last of them (see the page on intervals). Where reports
    say nothing about how attributes go together, as with one attribute of each user, it is wide.

    Parameters
    ----------
    reports : Reports
        Reports about combinations of attributes.
    first, second : str
        Two different attributes with numbers (`Integers` or `Bins`).
    level : float, default 0.95
        The probability with which the interval holds the true correlation.
    given : dict, optional
        Attributes, and a value or a list of values of each: the correlation among those who have them.
    estimate : Estimate, optional
        The estimate to show in the interval; that of ``hubbub.estimate(reports)`` by default.

    Returns
    -------
    Interval
        With `low`, `estimate`, `high`, `standard_error`, `likeliest`, `note` and `explain()`.

    Raises
    ------
    EstimateError
        If an attribute has no order, `reports` are not reports in this process, nobody is estimated to have the given
        values, or all are estimated to have the same number.
    DomainError
        If there is no such attribute or given value.
    SettingError
        If values are not combinations, both attributes are the same, a keyword has a wrong value, or the estimate is
        over another domain.

    Examples
    --------
    >>> import hubbub as hb
    >>> numbers = hb.RandomizedResponse(hb.Integers(1, 3), epsilon=3.0)
    >>> both = hb.Split(rooms=numbers, people=numbers)
    >>> homes = [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)] * 400
    >>> reports = hb.Reports.from_outputs(both, both.privatize(homes, rng=1))
    >>> answer = hb.correlation(reports, "rooms", "people", estimate=hb.estimate(reports, "mle"))
    >>> round(answer.low, 2), round(answer.high, 2)
    (0.72, 0.81)
    """
    check_reports(reports, "correlation")
    level = validation.level(level, "correlation")
    if first == second:
        raise SettingError(
            "both attributes are the same",
            where="correlation(first, second)",
            got=shorten(first),
            expected="two different attributes",
            remedy="name another one",
        )
    one, other = (
        _numbers(parse_numbers(reports.domain, name, "correlation", place))
        for name, place in ((_named(first, "first"), "first"), (_named(second, "second"), "second"))
    )
    group = parse_group(reports.domain, given, "correlation")
    check_estimate(estimate, reports, "correlation")
    title = f"correlation of {first} and {second}" + ("" if group is None else f", given {group.title}")
    statistic = Correlation(one, other, _among(group), title)

    def steps() -> Generator[Any, None, Interval]:
        shown = yield from shown_estimate(reports, estimate, "correlation")
        check_group(statistic, shown, "correlation")
        region = yield from LikelihoodRegion.around(Likelihood.of(reports))
        (ends,) = yield from statistic_endpoints(reports, region, [statistic], level)
        return shown_interval(reports, statistic, ends, shown, region, level=level)

    return limit_threads_per_step(steps(), reports.weights.size * len(reports.domain))


def _named(name: object, place: str) -> object:
    """Return the name of an attribute; there is no default."""
    if name is not None:
        return name
    raise validation.wrong(name, place, "correlation", "the name of an attribute", remedy="name a numeric attribute")


def _numbers(margin: Margin) -> Floats:
    """Return the number of each value."""
    assert margin.domain.places is not None  # noqa: S101  # parse_numbers refuses others
    return np.asarray(margin.domain.places[margin.places])


def _among(group: Group | None) -> Floats | None:
    return None if group is None else group.among


def _root(variance: Interval) -> Interval:
    """Return the interval of the square root."""
    estimate, likeliest = math.sqrt(variance.estimate), variance.likeliest
    low, high = math.sqrt(max(0.0, variance.confidence_low)), math.sqrt(variance.confidence_high)
    return replace(
        variance,
        low=low,
        high=high,
        confidence_low=low,
        confidence_high=high,
        estimate=estimate,
        likeliest=None if likeliest is None else math.sqrt(likeliest),
        standard_error=variance.standard_error / (2.0 * estimate) if estimate > 0.0 else math.nan,
    )
