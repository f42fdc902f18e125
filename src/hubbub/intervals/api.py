"""`interval` and `band`: how precisely the reports determine shares."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats, Positions
from hubbub.core.errors import EstimateError, SettingError, shorten
from hubbub.core.progress import Progress, stepwise
from hubbub.core.threads import limit_threads_per_step
from hubbub.estimators import Estimate
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.estimators.validation import check_estimate, check_reports, refuse_weights
from hubbub.intervals.attribute_statistics import AnyStatistic, Asked, every_value, parse_asked
from hubbub.intervals.bootstrap import bootstrap_interval
from hubbub.intervals.exact_binomial import TwoOutputs
from hubbub.intervals.interval_endpoints import Endpoints, LikelihoodRegion, exact_endpoints, profile_endpoints
from hubbub.intervals.linear_statistic import Statistic, positions_of
from hubbub.intervals.result import Band, Interval, joined_notes
from hubbub.intervals.robust_intervals import FakesAllowed, check_fakes
from hubbub.intervals.standard_errors import standard_errors
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.sampling import Randomness

METHODS = ("profile", "bootstrap")
# Keywords that a method does not take, and why.
REFUSED = {
    "profile": {
        "estimator": "it belongs to method='bootstrap'",
        "runs": "it belongs to method='bootstrap'",
    },
    "bootstrap": {
        "estimate": "the bootstrap runs the estimator itself; name it by estimator=",
        "simultaneous": "quantiles of all values at once would need far more runs; method='profile' has it",
    },
}
APPROXIMATE = "Approximate: only sums of bits were kept, and bits are treated as independent."


@stepwise
def interval(
    reports: Reports,
    of: object,
    level: float = 0.95,
    *,
    given: Mapping[str, object] | None = None,
    method: str = "profile",
    simultaneous: bool = False,
    estimate: Estimate | None = None,
    estimator: str | None = None,
    runs: int | None = None,
    rng: Randomness = None,
    fakes: float = 0.0,
) -> Generator[Any, None, Interval]:
    """Return an interval that holds the true share of `of` with probability `level`.

    ``method="profile"`` returns the lowest and the highest value of the statistic over all distributions whose
    deviance, twice how far the log-likelihood is below its maximum, is below a cutoff. Both endpoints are certified: no
    distribution in that set is beyond them, whether or not the maximum is unique. Where shares may be 0, the
    cutoff is simulated, because zeros in the truth make that of chi-square too small (see the page on intervals);
    otherwise, and for a single value among more than 100 with less than a fifth of the mass, it is that of chi-square
    with one degree of freedom. Where at most 1,000 users with one of two values sent one of two outputs each, all
    numbers of answers are enumerated instead. `note` says which. Where the estimate is outside, `low` or `high` is
    extended to it; `confidence_low` and `confidence_high` keep the endpoints.

    ``method="bootstrap"`` resamples the users and estimates again each time. It shows how the estimate varies, not how
    far it is from the truth: a regularised estimate has a bias, which `bias` guesses.

    Parameters
    ----------
    reports : Reports
        The reports to learn from.
    of : label, list or set of labels, or dict
        The statistic: the share of a value, the joint share of several values, or a weighted sum {value: weight}
        (a mean, a difference of regions). Of combinations of attributes also a slice: a value, a list of values or
        {value: weight} for some attributes, such as ``{"sex": "f", "age": [18, 19]}``.
    level : float, default 0.95
        The probability with which the interval holds the true value of the statistic.
    given : dict, optional
        Attributes, and a value or a list of values of each: the statistic among those who have them, such as
        ``given={"sex": "f"}``. If there may be nobody, the interval is everything that is possible, and `note` says so.
    method : {"profile", "bootstrap"}, default "profile"
        How to compute it, as above.
    simultaneous : bool, default False
        Make the statements for all values hold together: Bonferroni for single values; for other statistics chi-square
        with as many degrees of freedom as there are free probabilities, which covers all linear statistics at once.
    estimate : Estimate, optional
        The estimate to show in the interval; that of ``hubbub.estimate(reports)`` by default. Profile only.
    estimator : str, optional
        The method that the bootstrap runs: ``"auto"`` (default), ``"ibu"`` or ``"mle"``.
    runs : int, optional
        How often the bootstrap resamples the users (default 200).
    rng : numpy.random.Generator or int, optional
        The source of randomness, or a seed. By default the same reports give the same interval.
    fakes : float, default 0.0
        A share of the users who may be fake: the interval holds the honest users' statistic whatever these sent (see
        the page on fakes). Profile only.

    Returns
    -------
    Interval
        With `low`, `estimate`, `high`, `standard_error`, `likeliest`, `note` and `explain()`.

    Raises
    ------
    DomainError
        If `of` names a value that the domain does not have.
    SettingError
        If a keyword has a wrong value or does not belong to the method, or the estimate is over another domain.
    EstimateError
        If `reports` are not reports in this process, or have survey weights, which neither the bootstrap nor `fakes`
        takes into account; or if nobody is estimated to have the given values.

    Examples
    --------
    >>> import hubbub as hb
    >>> travel = hb.RandomizedResponse(hb.Categories(["car", "train", "bike"]), epsilon=2.0)
    >>> reports = hb.Reports.from_counts(travel, {"car": 500, "train": 300, "bike": 200})
    >>> answer = hb.interval(reports, "train")
    >>> round(answer.low, 3), round(answer.estimate, 3), round(answer.high, 3)
    (0.243, 0.284, 0.327)

    Several values together, and a difference of two shares:

    >>> round(hb.interval(reports, ["train", "bike"]).high, 3)
    0.467
    >>> round(hb.interval(reports, {"car": 1, "train": -1}).low, 3)
    0.214
    """
    check_reports(reports, "interval")
    level = validation.level(level, "interval")
    statistic = parse_asked(reports.domain, of, given)
    check_estimate(estimate, reports, "interval")
    method = validation.one_of(method, METHODS, "method", "interval", default="'profile'")
    validation.boolean(simultaneous, "simultaneous", "interval")
    generator, _ = validation.generator(rng, "interval")
    _refuse(method, estimator=estimator, runs=runs, estimate=estimate, simultaneous=simultaneous or None)
    fakes = check_fakes(fakes, method, "interval")
    if method == "bootstrap" or fakes:
        refuse_weights(reports, "interval", "use method='profile', without fakes")
    if fakes and given is not None:
        raise fakes_with_given(fakes, "interval")

    def steps() -> Generator[Any, None, Interval]:
        if method == "bootstrap":
            return (yield from bootstrap_interval(reports, statistic, level, estimator, runs, generator))
        shown = yield from shown_estimate(reports, estimate, "interval")
        check_group(statistic, shown, "interval")
        region = yield from LikelihoodRegion.around(Likelihood.of(reports))
        allowed = FakesAllowed.of(reports, region, fakes) if fakes else None
        run = statistic_endpoints(
            reports, region, [statistic], level, allowed, simultaneous=simultaneous, rng=generator
        )
        (ends,) = yield from run
        return shown_interval(
            reports, statistic, ends, shown, region, level=level, simultaneous=simultaneous, fakes=fakes
        )

    return limit_threads_per_step(steps(), reports.weights.size * len(reports.domain))


def shown_interval(
    reports: Reports,
    statistic: AnyStatistic,
    ends: Endpoints,
    shown: Estimate,
    region: LikelihoodRegion,
    *,
    level: float,
    simultaneous: bool = False,
    fakes: float = 0.0,
) -> Interval:
    """Return a profile interval with the estimate that is shown, its standard error and the likeliest value."""
    likeliest = statistic.value(region.top.theta)
    errors = standard_errors(reports, shown.probabilities, [slopes(statistic, shown.probabilities)])
    return Interval(
        statistic.title,
        ends.low,
        statistic.value(shown.probabilities),
        ends.high,
        level,
        "profile",
        simultaneous,
        ends.cutoffs,
        f"{ends.note} {APPROXIMATE}" if reports.approximate else ends.note,
        likeliest=None if math.isnan(likeliest) else likeliest,
        fakes=fakes,
        standard_error=float(errors.numbers[0]),
        standard_error_reason=errors.reasons[0],
    )


def slopes(statistic: AnyStatistic, theta: Floats) -> Floats:
    """Return the weights of a linear statistic, or the gradient of another, from which standard errors follow."""
    return statistic.weights if isinstance(statistic, Statistic) else statistic.gradient(theta)


def check_group(statistic: AnyStatistic, shown: Estimate, where: str) -> None:
    """Refuse a statistic of those with given values if the estimate says that there is nobody."""
    if isinstance(statistic, Statistic) or not np.isnan(statistic.gradient(shown.probabilities)).any():
        return
    is_empty = statistic.among is not None and not float(statistic.among @ shown.probabilities) > 0.0
    raise EstimateError(
        "nobody is estimated to have the given values" if is_empty else "everybody is estimated to have one value",
        where=f"{where}(given=)" if is_empty else f"{where}(of)",
        got=statistic.title,
        expected="values with a share above 0" if is_empty else "an attribute that differs between users",
        remedy="give more values, or fewer attributes" if is_empty else "ask for the shares of its values",
    )


def fakes_with_given(fakes: float, where: str) -> SettingError:
    """Return the refusal of fakes for statistics among those with given values."""
    return SettingError(
        "fakes are not allowed for in shares among those with given values",
        where=f"{where}(given=, fakes=)",
        got=shorten(fakes),
        expected="given or fakes, not both",
        remedy="ask for the share of the whole population, which allows for fakes, or leave fakes out",
    )


def statistic_endpoints(
    reports: Reports,
    region: LikelihoodRegion,
    statistics: Sequence[AnyStatistic],
    level: float,
    allowed: FakesAllowed | None = None,
    *,
    simultaneous: bool = False,
    rng: np.random.Generator | None = None,
) -> Generator[Progress, None, list[Endpoints]]:
    """Return the intervals of some statistics: exact in the simplest study, by the profile likelihood in others.

    Fakes widen those of linear statistics.
    """
    linear = [statistic for statistic in statistics if isinstance(statistic, Statistic)]
    study = None if simultaneous or len(linear) < len(statistics) else TwoOutputs.of(reports)
    if study is not None:
        plain = exact_endpoints(study, linear, level)
    else:
        plain = yield from profile_endpoints(region, statistics, level, simultaneous=simultaneous, rng=rng)
    if allowed is None:
        return plain
    widened = []
    for done, (ends, statistic) in enumerate(zip(plain, linear, strict=True)):
        yield Progress(done, len(statistics), "allowing for fakes")
        widened.append(allowed.widen(ends, statistic, level, simultaneous=simultaneous))
    return widened


def _refuse(method: str, **keywords: object) -> None:
    """Refuse keywords that the method does not take."""
    for name, reason in REFUSED[method].items():
        if keywords[name] is not None:
            raise SettingError(
                f"{name} has no meaning for method={method!r}",
                where=f"interval(method={method!r}, {name}=)",
                got=shorten(keywords[name]),
                expected=f"no {name}: {reason}",
                remedy=f"leave {name} out",
            )


@stepwise
def band(
    reports: Reports,
    level: float = 0.95,
    *,
    of: str | Sequence[str] | None = None,
    given: Mapping[str, object] | None = None,
    values: object = None,
    simultaneous: bool = False,
    estimate: Estimate | None = None,
    fakes: float = 0.0,
) -> Generator[Any, None, Band]:
    """Return an interval for the share of every value of the domain, or of some `values`.

    Each is that of `interval`, by the profile likelihood. The estimate keeps them: its table and its pictures show them
    from then on. Of combinations of attributes, `of` asks for the values of some attributes, whatever the others are,
    and `given` for shares among those who have given values.

    Parameters
    ----------
    reports : Reports
        The reports to learn from.
    level : float, default 0.95
        The probability with which each interval holds its value's true share.
    of : str or sequence of str, optional
        An attribute, or several, whose values (combinations) to compute intervals for.
    given : dict, optional
        Attributes, and a value or a list of values of each: intervals of shares among those who have them. Without
        `of`, the values are those of all other attributes.
    values : list of labels, optional
        The values to compute intervals for; all of them by default.
    simultaneous : bool, default False
        Make all intervals hold together with probability `level` (Bonferroni over the whole domain).
    estimate : Estimate, optional
        The estimate to show in the intervals; that of ``hubbub.estimate(reports)`` by default.
    fakes : float, default 0.0
        A share of the users who may be fake: intervals hold the honest users' shares whatever these sent.

    Returns
    -------
    Band
        With arrays `low`, `estimate`, `high` and `standard_error` in the order of ``domain.labels``, and `to_frame()`,
        `plot()`; its domain is that of the attributes that were asked for.

    Raises
    ------
    DomainError
        If `values` are not all in the domain.
    SettingError
        If a keyword has a wrong value, or the estimate is over another domain.
    EstimateError
        If `reports` are not reports in this process, or have survey weights, which `fakes` does not take into account;
        or if nobody is estimated to have the given values.

    Examples
    --------
    >>> import hubbub as hb
    >>> travel = hb.RandomizedResponse(hb.Categories(["car", "train", "bike"]), epsilon=2.0)
    >>> reports = hb.Reports.from_counts(travel, {"car": 500, "train": 300, "bike": 200})
    >>> print(hb.band(reports).to_frame()[["value", "low", "estimate", "high"]].round(3))
       value    low  estimate   high
    0    car  0.533     0.578  0.624
    1  train  0.243     0.284  0.327
    2   bike  0.102     0.137  0.175
    """
    check_reports(reports, "band")
    level = validation.level(level, "band")
    validation.boolean(simultaneous, "simultaneous", "band")
    check_estimate(estimate, reports, "band")
    asked = every_value(reports.domain, of, given)
    size = len(asked.domain)
    positions = np.arange(size) if values is None else positions_of(asked.domain, values)
    if fakes:
        refuse_weights(reports, "band", "leave fakes out")
    share = check_fakes(fakes, "profile", "band")
    if share and given is not None:
        raise fakes_with_given(share, "band")
    run = _band(reports, asked, positions, level, simultaneous, estimate, share)
    return limit_threads_per_step(run, reports.weights.size * len(reports.domain))


def _band(
    reports: Reports,
    asked: Asked,
    positions: Positions,
    level: float,
    simultaneous: bool,
    estimate: Estimate | None,
    fakes: float,
) -> Generator[Any, None, Band]:
    shown = yield from shown_estimate(reports, estimate, "band")
    statistics, size = [asked.statistics[position] for position in positions.tolist()], len(asked.domain)
    for statistic in statistics[:1]:
        check_group(statistic, shown, "band")
    region = yield from LikelihoodRegion.around(Likelihood.of(reports))
    allowed = FakesAllowed.of(reports, region, fakes) if fakes else None
    # Bonferroni over the values that are asked for: profile_endpoints knows those of the whole domain alone.
    is_margin = simultaneous and not asked.is_whole
    own_level = 1.0 - (1.0 - level) / size if is_margin else level
    run = statistic_endpoints(
        reports, region, statistics, own_level, allowed, simultaneous=simultaneous and asked.is_whole
    )
    intervals = yield from run
    low, high = (np.full(size, np.nan) for _ in range(2))
    low[positions], high[positions] = [each.low for each in intervals], [each.high for each in intervals]
    note = joined_notes([each.note for each in intervals])
    if is_margin:
        note = f"Holds for all {size:,} values at once (Bonferroni). {note}".strip()
    if reports.approximate:
        note = f"{note} {APPROXIMATE}".strip()
    band = Band.around(
        asked.domain,
        asked.shares(shown.probabilities),
        (low, high),
        level=level,
        simultaneous=simultaneous,
        note=note,
        likeliest=asked.shares(region.top.theta),
        errors=standard_errors(
            reports, shown.probabilities, [slopes(statistic, shown.probabilities) for statistic in statistics]
        ),
        fakes=fakes,
    )
    if asked.is_whole:
        band.leave_with(shown)
    return band
