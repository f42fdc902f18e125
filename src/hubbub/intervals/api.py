"""`interval`, `band` and `quantile`: how precisely the reports determine shares, and the quantiles that follow."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats, Positions, as_array, frozen
from hubbub.core.errors import EstimateError, SettingError, shorten
from hubbub.core.progress import Progress, stepwise
from hubbub.core.threads import limit_threads_per_step
from hubbub.estimators import Estimate
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.estimators.validation import check_estimate, check_reports, refuse_weights
from hubbub.intervals.bootstrap import bootstrap_interval
from hubbub.intervals.deviance_cutoff import chi_square
from hubbub.intervals.exact_binomial import TwoOutputs
from hubbub.intervals.interval_endpoints import Endpoints, LikelihoodRegion, exact_endpoints, profile_endpoints
from hubbub.intervals.linear_statistic import Statistic, parse_statistic
from hubbub.intervals.result import Band, Interval, Quantile, joined_notes
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
ROUNDING = 1e-12  # of a sum of probabilities


@stepwise
def interval(
    reports: Reports,
    of: object,
    level: float = 0.95,
    *,
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
        (a mean, a difference of regions).
    level : float, default 0.95
        The probability with which the interval holds the true value of the statistic.
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
        takes into account.

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
    statistic = parse_statistic(reports.domain, of)
    check_estimate(estimate, reports, "interval")
    method = validation.one_of(method, METHODS, "method", "interval", default="'profile'")
    validation.boolean(simultaneous, "simultaneous", "interval")
    generator, _ = validation.generator(rng, "interval")
    _refuse(method, estimator=estimator, runs=runs, estimate=estimate, simultaneous=simultaneous or None)
    fakes = check_fakes(fakes, method, "interval")
    if method == "bootstrap" or fakes:
        refuse_weights(reports, "interval", "use method='profile', without fakes")

    def steps() -> Generator[Any, None, Interval]:
        if method == "bootstrap":
            return (yield from bootstrap_interval(reports, statistic, level, estimator, runs, generator))
        shown = yield from shown_estimate(reports, estimate, "interval")
        region = yield from LikelihoodRegion.around(Likelihood.of(reports))
        allowed = FakesAllowed.of(reports, region, fakes) if fakes else None
        run = statistic_endpoints(
            reports, region, [statistic], level, allowed, simultaneous=simultaneous, rng=generator
        )
        (ends,) = yield from run
        share, likeliest = (float(statistic.weights @ theta) for theta in (shown.probabilities, region.top.theta))
        note = f"{ends.note} {APPROXIMATE}" if reports.approximate else ends.note
        errors = standard_errors(reports, shown.probabilities, [statistic.weights])
        return Interval(
            statistic.title,
            ends.low,
            share,
            ends.high,
            level,
            "profile",
            simultaneous,
            ends.cutoffs,
            note,
            likeliest=likeliest,
            fakes=fakes,
            standard_error=float(errors.numbers[0]),
            standard_error_reason=errors.reasons[0],
        )

    return limit_threads_per_step(steps(), reports.weights.size * len(reports.domain))


def statistic_endpoints(
    reports: Reports,
    region: LikelihoodRegion,
    statistics: list[Statistic],
    level: float,
    allowed: FakesAllowed | None = None,
    *,
    simultaneous: bool = False,
    rng: np.random.Generator | None = None,
) -> Generator[Progress, None, list[Endpoints]]:
    """Return the intervals of some statistics: exact in the simplest study, by the profile likelihood in others.

    Fakes widen them.
    """
    study = None if simultaneous else TwoOutputs.of(reports)
    if study is not None:
        plain = exact_endpoints(study, statistics, level)
    else:
        plain = yield from profile_endpoints(region, statistics, level, simultaneous=simultaneous, rng=rng)
    if allowed is None:
        return plain
    widened = []
    for done, (ends, statistic) in enumerate(zip(plain, statistics, strict=True)):
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
    values: object = None,
    simultaneous: bool = False,
    estimate: Estimate | None = None,
    fakes: float = 0.0,
) -> Generator[Any, None, Band]:
    """Return an interval for the share of every value of the domain, or of some `values`.

    Each is that of `interval`, by the profile likelihood. The estimate keeps them: its table and its pictures show them
    from then on.

    Parameters
    ----------
    reports : Reports
        The reports to learn from.
    level : float, default 0.95
        The probability with which each interval holds its value's true share.
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
        `plot()`.

    Raises
    ------
    DomainError
        If `values` are not all in the domain.
    SettingError
        If a keyword has a wrong value, or the estimate is over another domain.
    EstimateError
        If `reports` are not reports in this process, or have survey weights, which `fakes` does not take into account.

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
    size = len(reports.domain)
    positions = np.arange(size) if values is None else np.unique(np.atleast_1d(reports.domain.index(as_array(values))))
    if fakes:
        refuse_weights(reports, "band", "leave fakes out")
    run = _band(reports, positions, level, simultaneous, estimate, check_fakes(fakes, "profile", "band"))
    return limit_threads_per_step(run, reports.weights.size * size)


def _band(
    reports: Reports,
    positions: Positions,
    level: float,
    simultaneous: bool,
    estimate: Estimate | None,
    fakes: float,
) -> Generator[Any, None, Band]:
    shown = yield from shown_estimate(reports, estimate, "band")
    region = yield from LikelihoodRegion.around(Likelihood.of(reports))
    allowed = FakesAllowed.of(reports, region, fakes) if fakes else None
    shares = [Statistic.share_of(reports.domain, [position]) for position in positions.tolist()]
    intervals = yield from statistic_endpoints(reports, region, shares, level, allowed, simultaneous=simultaneous)
    low, high = (np.full(len(reports.domain), np.nan) for _ in range(2))
    low[positions], high[positions] = [each.low for each in intervals], [each.high for each in intervals]
    note = joined_notes([each.note for each in intervals])
    if reports.approximate:
        note = f"{note} {APPROXIMATE}".strip()
    band = Band.around(
        reports.domain,
        shown.probabilities,
        (low, high),
        level=level,
        simultaneous=simultaneous,
        note=note,
        likeliest=region.top.theta,
        errors=standard_errors(reports, shown.probabilities, [share.weights for share in shares]),
        fakes=fakes,
    )
    band.leave_with(shown)
    return band


@stepwise
def quantile(
    reports: Reports, probability: float, level: float = 0.95, *, estimate: Estimate | None = None
) -> Generator[Any, None, Quantile]:
    """Return the smallest value v with F(v) >= `probability`, F being the share of values up to v, and its interval.

    The interval holds every value that the intervals of F do not exclude: from the first v at which F may reach
    `probability` (its high endpoint does) to the first at which it must (its low endpoint does). If F's intervals hold
    with probability `level`, so does this one.

    Parameters
    ----------
    reports : Reports
        Reports about ordered values (`Integers` or `Bins`).
    probability : float
        The share of the population, between 0 and 1: 0.5 for the median.
    level : float, default 0.95
        The probability with which the interval holds the true quantile.
    estimate : Estimate, optional
        The estimate whose quantile is shown; that of ``hubbub.estimate(reports)`` by default.

    Returns
    -------
    Quantile
        With `low`, `estimate` and `high`, labels of the domain.

    Raises
    ------
    EstimateError
        If the values have no order (`Categories`, `Grid`), or `reports` are not reports in this process.
    SettingError
        If `probability` or `level` is not between 0 and 1, or the estimate is over another domain.

    Examples
    --------
    >>> import hubbub as hb
    >>> children = hb.RandomizedResponse(hb.Integers(0, 3), epsilon=3.0)
    >>> reports = hb.Reports.from_counts(children, [20, 30, 40, 10])
    >>> print(hb.quantile(reports, 0.5, estimate=hb.estimate(reports, "mle")))
    50% of the population have at most 1; between 1 and 2 at 95%.
    """
    check_reports(reports, "quantile")
    probability = validation.share(
        probability, "probability", "quantile", expected="a probability between 0 and 1, such as 0.5 for the median"
    )
    level = validation.level(level, "quantile")
    check_estimate(estimate, reports, "quantile")
    if reports.domain.places is None:
        raise EstimateError(
            "these values have no order",
            where="quantile(reports)",
            got=reports.domain.describe(),
            expected="a domain on a line: Integers or Bins",
            remedy="ask for the share of a set of values with hubbub.interval",
        )
    entries = reports.weights.size * len(reports.domain)
    return limit_threads_per_step(_quantile(reports, probability, level, estimate), entries)


def _quantile(
    reports: Reports, probability: float, level: float, estimate: Estimate | None
) -> Generator[Any, None, Quantile]:
    shown = yield from shown_estimate(reports, estimate, "quantile")
    region = yield from LikelihoodRegion.around(Likelihood.of(reports))
    labels, cutoff = reports.domain.labels.tolist(), chi_square(level)
    last = len(labels) - 1

    def up_to(position: int) -> Floats:
        return np.where(np.arange(len(labels)) <= position, 1.0, 0.0)

    def may_reach(position: int) -> bool:
        return -region.least(-up_to(position), cutoff).limit >= probability

    def must_reach(position: int) -> bool:
        return region.least(up_to(position), cutoff).limit >= probability

    def calibrated(position: int) -> Generator[Progress, None, tuple[float, float]]:
        cumulative = Statistic(frozen(up_to(position)), "the distribution function")
        (around,) = yield from statistic_endpoints(reports, region, [cumulative], level)
        return around.low, around.high

    # The first positions that reach the probability; the last one always does, as F is 1.
    low = bisect_left(range(last), True, key=may_reach)
    yield Progress(1, 4, "quantile")
    high = bisect_left(range(last), True, key=must_reach)
    yield Progress(2, 4, "quantile")
    # The calibrated cutoff is never smaller than that of chi-square: endpoints only move outwards.
    while low > 0 and (yield from calibrated(low - 1))[1] >= probability:
        low -= 1
    yield Progress(3, 4, "quantile")
    while high < last and (yield from calibrated(high))[0] < probability:
        high += 1

    def position_in(theta: Floats) -> int:
        return min(int(np.searchsorted(np.cumsum(theta), probability - ROUNDING)), last)

    own = position_in(shown.probabilities)
    return Quantile(
        probability,
        labels[min(low, own)],
        labels[own],
        labels[max(high, own)],
        level,
        likeliest=labels[position_in(region.top.theta)],
        confidence_low=labels[low],
        confidence_high=labels[high],
    )
