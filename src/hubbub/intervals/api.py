"""`interval`: an interval for the true share of a value, of a set of values, or for any linear statistic."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from hubbub.core import validation
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import stepwise
from hubbub.core.threads import step_by_step
from hubbub.estimators import Estimate
from hubbub.estimators.validation import check_estimate, check_reports
from hubbub.intervals.bootstrap import bootstrap_interval
from hubbub.intervals.interval_endpoints import profile_interval
from hubbub.intervals.likelihood_region import LikelihoodRegion
from hubbub.intervals.linear_statistic import parse_statistic
from hubbub.intervals.result import Interval
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
) -> Generator[Any, None, Interval]:
    """Return an interval that holds the true share of `of` with probability `level`.

    ``method="profile"`` returns the lowest and the highest value of the statistic over all distributions whose
    deviance, twice how far the log-likelihood is below its maximum, is below a cutoff. Both endpoints are certified: no
    distribution in that set is beyond them, whether or not the maximum is unique. The cutoff is simulated
    (docs/trust.md), because zeros in the truth make that of chi-square too small; for a single value among more than
    100, with less than a fifth of the mass, it is that of chi-square with one degree of freedom.

    ``method="bootstrap"`` resamples the users and estimates again each time. It shows how the estimate varies, not how
    far it is from the truth: a regularised estimate has a bias, which `bias` guesses.

    Parameters
    ----------
    reports : Reports
        The reports to learn from.
    of : label, list or set of labels, or dict
        The statistic: the share of a value, the joint share of several values, or a weighted sum {value: weight}
        (a mean, a difference of regions).
    level : float
        The probability with which the interval holds the true value of the statistic.
    method : str
        ``"profile"`` (default) or ``"bootstrap"``.
    simultaneous : bool
        Make the statements for all values hold together: Bonferroni for single values; for other statistics chi-square
        with as many degrees of freedom as there are free probabilities, which covers all linear statistics at once.
    estimate : Estimate, optional
        The estimate to show in the interval; the maximum of the likelihood by default. Profile only.
    estimator : str, optional
        The method that the bootstrap runs: ``"auto"`` (default), ``"ibu"`` or ``"mle"``.
    runs : int, optional
        How often the bootstrap resamples the users (default 200).
    rng : numpy.random.Generator or int, optional
        The source of randomness, or a seed. By default the same reports give the same interval.

    Returns
    -------
    Interval
        With `low`, `estimate`, `high`, `note` and `explain()`.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> answer = hb.interval(hb.Reports.from_counts(coin, {"yes": 600, "no": 400}), "yes")
    >>> round(answer.low, 3), round(answer.estimate, 3), round(answer.high, 3)
    (0.65, 0.716, 0.781)
    """
    check_reports(reports, "interval")
    level = validation.level(level, "interval")
    statistic = parse_statistic(reports.domain, of, "interval")
    shown = check_estimate(estimate, reports, "interval")
    method = validation.one_of(method, METHODS, "method", "interval", default="'profile'")
    validation.boolean(simultaneous, "simultaneous", "interval")
    generator, _ = validation.generator(rng, "interval")
    _refuse(method, estimator=estimator, runs=runs, estimate=estimate, simultaneous=simultaneous or None)

    def steps() -> Generator[Any, None, Interval]:
        if method == "bootstrap":
            return (yield from bootstrap_interval(reports, statistic, level, estimator, runs, generator))
        region = yield from LikelihoodRegion.around(Likelihood.of(reports))
        run = profile_interval(region, reports, statistic, level, simultaneous=simultaneous, shown=shown, rng=generator)
        return (yield from run)

    return step_by_step(steps(), reports.weights.size * len(reports.domain))


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
