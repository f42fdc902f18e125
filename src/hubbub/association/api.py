"""`independence`: whether two attributes are related, and how strongly."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import numpy as np

from hubbub.association.association_sentences import NOT_SEEN
from hubbub.association.attribute_pair import AttributePair
from hubbub.association.independence_test import depends_on_marginals_alone, independence_test
from hubbub.association.independent_fit import independent_fit
from hubbub.association.odds_profile import odds_interval
from hubbub.association.result import Independence, OddsRatio, untested
from hubbub.association.strength_interval import Strengths, strength_interval
from hubbub.association.strength_measures import cramers_v, max_mutual_information, mutual_information, odds_ratio
from hubbub.association.validation import WHERE, check_exact, check_odds, check_size
from hubbub.comparison.distance_intervals import IntervalEstimate
from hubbub.core import validation
from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.core.progress import stepwise
from hubbub.core.threads import limit_threads_per_step
from hubbub.domains import Product
from hubbub.estimators import Estimate
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.estimators.validation import check_reports
from hubbub.intervals.deviance_cutoff import design_cutoff
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.likelihood import Point
from hubbub.reports import Reports
from hubbub.sampling import Randomness


@stepwise
def independence(
    reports: Reports,
    first: str,
    second: str,
    *,
    level: float = 0.95,
    odds: Mapping[str, Sequence[object]] | None = None,
    estimate: Estimate | None = None,
    rng: Randomness = None,
) -> Generator[Any, None, Independence]:
    """Test whether two attributes are related, and say how strongly.

    The test is the likelihood ratio of all joint distributions of the two attributes against those in which they are
    independent. Its p-value is simulated, so that it holds where shares are 0 and users few. Where the reports depend
    on the marginals alone, as those of `SampleOne` do, no test is possible and the result says so.

    Strengths are those of the estimate that is shown, with intervals that hold the true ones: Cramer's V, the mutual
    information, and the odds ratio of two values of each attribute (see the page on related attributes).

    Parameters
    ----------
    reports : Reports
        Reports about these attributes, and possibly others.
    first, second : str
        The two attributes.
    level : float, default 0.95
        1 - `level` is the level of the test; each interval holds its true number with this probability.
    odds : mapping, optional
        Two values of each attribute, such as ``{"sex": ("f", "m"), "tea": ("yes", "no")}``: the odds ratio to compute.
        Where both attributes have two values, it is theirs by default.
    estimate : Estimate, optional
        The estimate to show, over all attributes; that of ``hubbub.estimate`` by default.
    rng : numpy.random.Generator or int, optional
        The source of randomness, or a seed. By default the same reports give the same answer.

    Returns
    -------
    Independence
        With `p_value`, `testable`, `cramers_v`, `mutual_information`, `odds_ratio`, `explain()` and `plot()`.

    Raises
    ------
    ReportsError
        If the reports are not about several attributes, or there are others than these two, and a mechanism does not
        report attributes one by one.
    DomainError
        If a name is no attribute, or both are the same.
    SettingError
        If a keyword has a wrong value, or there are more than 1,500 combinations.
    EstimateError
        If `reports` are not reports in this process, or only sums of bits were kept.

    Examples
    --------
    >>> import hubbub as hb
    >>> tea, town = hb.Categories(["yes", "no"]), hb.Categories(["a", "b"])
    >>> parts = {"tea": hb.RandomizedResponse(tea, epsilon=2.0), "town": hb.RandomizedResponse(town, epsilon=2.0)}
    >>> counts = {("yes", "a"): 260, ("yes", "b"): 240, ("no", "a"): 240, ("no", "b"): 260}
    >>> reports = hb.Reports.from_counts(hb.Split(parts), counts)
    >>> print(hb.independence(reports, "tea", "town").sentence)
    No sign of dependence between tea and town (p = 0.20). An association with a Cramer's V of up to 0.184 could go
    unnoticed.

    Users who report one attribute each say nothing about the two together:

    >>> one = hb.SampleOne(parts)
    >>> told = hb.Reports.from_outputs(one, one.privatize([("yes", "a"), ("no", "b")] * 50, rng=1))
    >>> hb.independence(told, "tea", "town").testable
    False
    """
    check_reports(reports, WHERE)
    check_exact(reports)
    level = validation.level(level, WHERE)
    generator, _ = validation.generator(rng, WHERE)
    pair = AttributePair.of(reports, (first, second), f"{WHERE}(first, second)")
    check_size(pair)
    chosen = check_odds(odds, pair)
    work = _independence(reports, pair, (first, second), level, chosen, estimate, generator)
    return limit_threads_per_step(work, pair.reports.weights.size * len(pair.domain))


def _independence(
    reports: Reports,
    pair: AttributePair,
    names: tuple[str, str],
    level: float,
    odds: tuple[Positions, Positions] | None,
    estimate: Estimate | None,
    rng: np.random.Generator,
) -> Generator[Any, None, Independence]:
    domain = Product({name: pair.domain.attributes[name] for name in names})
    swapped = names != pair.names
    if reason := _why_untestable(pair):
        return untested(names, domain, pair.reports.users, level, reason)
    shown = yield from shown_estimate(reports, estimate, WHERE)
    table = shown.marginal(*pair.names).probabilities.reshape(pair.sides)
    top = (yield from LikelihoodRegion.around(pair.likelihood)).top
    even = tuple(np.full(side, 1.0 / side) for side in pair.sides)
    fit = yield from independent_fit(pair.likelihood, [pair.margins(top.theta), (even[0], even[1])])
    test, null = yield from independence_test(pair, fit, top.log_likelihood, rng)
    strengths = yield from strength_interval(test, null, top.theta.reshape(pair.sides), level)
    ratio = None
    if odds is not None:
        ratio = yield from _odds(pair, top, table, odds, level, swapped=swapped)
    return Independence(
        names,
        domain,
        pair.reports.users,
        level,
        True,
        "",
        test.statistic,
        test.deviance,
        test.p_value,
        test.note,
        frozen(table.T.copy() if swapped else table.copy()),
        _interval(mutual_information, table, strengths, max_mutual_information(table)),
        _interval(cramers_v, table, strengths, 1.0),
        strengths.strongest is not None,
        ratio,
    )


def _why_untestable(pair: AttributePair) -> str:
    """Return why the reports cannot tell whether the attributes are related; empty if they can."""
    if pair.domain.cells is not None:
        return "some of their combinations are impossible, so that one depends on the other whatever people report"
    return NOT_SEEN if depends_on_marginals_alone(pair) else ""


def _interval(
    measure: Callable[[Floats], float], table: Floats, strengths: Strengths, largest: float
) -> IntervalEstimate:
    """Return the measure of the estimate that is shown, and its interval, extended to the estimate if it is outside."""
    shown = measure(table)
    low = 0.0 if strengths.weakest is None else measure(strengths.weakest)
    high = largest if strengths.strongest is None else measure(strengths.strongest)
    return IntervalEstimate(shown, min(low, shown), max(high, shown))


def _odds(
    pair: AttributePair,
    top: Point,
    table: Floats,
    odds: tuple[Positions, Positions],
    level: float,
    *,
    swapped: bool,
) -> Generator[Any, None, OddsRatio]:
    cells = np.ix_(*odds)
    four = np.arange(table.size).reshape(table.shape)[cells].ravel()
    low, high = yield from odds_interval(top, four, design_cutoff(level, pair.reports.survey))
    shown = odds_ratio(table[cells])
    titles = [
        tuple(domain.title(int(place)) for place in places)
        for domain, places in zip(pair.domain.attributes.values(), odds, strict=True)
    ]
    known = None if np.isnan(shown) else shown
    if known is not None:
        low, high = min(low, known), max(high, known)
    first, second = reversed(titles) if swapped else titles
    return OddsRatio((first[0], first[1]), (second[0], second[1]), known, low, high)
