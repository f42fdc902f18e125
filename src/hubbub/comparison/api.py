"""`compare`: what differs between two groups of users."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hubbub.comparison.difference_cutoffs import simulated_cutoff
from hubbub.comparison.difference_intervals import Difference, differences
from hubbub.comparison.distance_intervals import (
    IntervalEstimate,
    Potential,
    distance_interval,
    transport_potential,
    variation_potential,
)
from hubbub.comparison.equality_test import Equality, equality_test
from hubbub.comparison.populations import Populations
from hubbub.comparison.quantile_differences import check_quantiles, quantile_differences
from hubbub.comparison.result import Comparison
from hubbub.comparison.validation import check_estimates, check_groups, check_names
from hubbub.core import validation
from hubbub.core.arrays import Floats, frozen
from hubbub.core.progress import Progress, stepwise
from hubbub.core.threads import limit_threads_per_step
from hubbub.estimators import Estimate
from hubbub.estimators.result import finite
from hubbub.estimators.shown_estimate import shown_estimate
from hubbub.intervals.deviance_cutoff import chi_square
from hubbub.intervals.linear_statistic import VALUE, Statistics, parse_statistics
from hubbub.intervals.result import extend
from hubbub.intervals.standard_errors import StandardErrors, standard_errors
from hubbub.reports import Reports
from hubbub.sampling import Randomness

APPROXIMATE = "only sums of bits were kept, and bits are treated as independent"


@stepwise
def compare(
    a: Reports,
    b: Reports,
    *,
    of: object = None,
    level: float = 0.95,
    quantiles: Sequence[float] = (),
    names: Sequence[str] = ("a", "b"),
    estimates: Sequence[Estimate] | None = None,
    rng: Randomness = None,
) -> Generator[Any, None, Comparison]:
    """Compare two groups of users: what differs, by how much, and whether they differ at all.

    All differences are b minus a.

    The groups may have used different mechanisms, or other epsilons. Each interval is that of the profile likelihood
    of both groups at once: the differences of all pairs of distributions whose joint deviance is below a cutoff, which
    is simulated where shares may be 0. Equality of the two distributions is tested by the likelihood ratio; its p-value
    comes from dealing users to the groups at random, or from simulations where the groups used different
    mechanisms (see the page on comparing groups).

    Parameters
    ----------
    a, b : Reports
        The reports of both groups, over the same domain.
    of : label, list or set of labels, dict, or Regions, optional
        What to compare: the share of a value, the joint share of several values, or a weighted sum {value: weight}.
        Several sums with names, a row for each: the regions of a map, or {name: list or set of values}. By default
        every value.
    level : float, default 0.95
        The probability with which each interval holds its true difference; 1 - `level` is the level of all tests.
    quantiles : sequence of float, optional
        Quantiles to compare, of values on a line: ``[0.5]`` for the median. They take some seconds each.
    names : pair of str, default ("a", "b")
        What the groups are called in sentences, tables and pictures.
    estimates : pair of Estimate, optional
        The estimates to show; those of ``hubbub.estimate`` by default.
    rng : numpy.random.Generator or int, optional
        The source of randomness, or a seed. By default the same reports give the same answer.

    Returns
    -------
    Comparison
        With `p_value`, `to_frame()`, `explain()` and `plot()`.

    Raises
    ------
    ReportsError
        If the groups are over different domains.
    DomainError
        If `of` names a value that the domain does not have.
    SettingError
        If a keyword has a wrong value, or the domain has more than 1,500 values.
    EstimateError
        If `a` or `b` are not reports in this process.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=2.0)
    >>> men = hb.Reports.from_counts(coin, {"yes": 480, "no": 520})
    >>> women = hb.Reports.from_counts(coin, {"yes": 560, "no": 440})
    >>> print(hb.compare(men, women, names=("men", "women")).sentence)
    yes is more frequent in women than in men: by 4.7 to 16 percentage points.

    Sums with names of your own:

    >>> answers = hb.RandomizedResponse(hb.Categories(["never", "once", "often"]), epsilon=2.0)
    >>> before, after = (hb.Reports.from_counts(answers, own) for own in ([600, 250, 150], [480, 300, 220]))
    >>> drinking = hb.compare(before, after, of={"any": ["once", "often"], "often": ["often"]})
    >>> print(drinking.to_frame()[["value", "difference", "low", "high", "changed"]].round(2))
       value  difference   low  high  changed
    0    any        0.18  0.11  0.24     True
    1  often        0.10  0.05  0.15     True
    """
    groups = check_groups((a, b), "compare")
    level = validation.level(level, "compare")
    called = check_names(names, "compare")
    domain = groups[0].domain
    statistics = parse_statistics(domain, of)
    generator, _ = validation.generator(rng, "compare")
    given = check_estimates(estimates, groups, "compare")
    probabilities = check_quantiles(quantiles, domain, "compare")

    def steps() -> Generator[Any, None, Comparison]:
        shown = []
        for reports, estimate in zip(groups, given, strict=True):
            shown.append((yield from shown_estimate(reports, estimate, "compare")))
        shares = [estimate.probabilities for estimate in shown]
        comparison = yield from _compare(groups, statistics, level, called, shares, generator)
        own_quantiles = yield from quantile_differences(groups, shown, probabilities, level)
        return replace(comparison, quantiles=own_quantiles)

    return limit_threads_per_step(steps(), max(reports.weights.size for reports in groups) * len(domain))


def _compare(
    groups: list[Reports],
    statistics: Statistics,
    level: float,
    names: tuple[str, str],
    shown: list[Floats],
    rng: np.random.Generator,
) -> Generator[Any, None, Comparison]:
    domain = groups[0].domain
    populations = yield from Populations.of(groups)
    equality = yield from equality_test(populations, rng)
    rows = list(statistics.weights)
    places = domain.places
    own, note = yield from differences(
        populations, [*rows, *([] if places is None else [places])], level, equality, rng
    )
    first, second = (np.array([weights @ shares for weights in rows]) for shares in shown)
    low, high = (np.array([getattr(one, end) for one in own[: len(rows)]]) for end in ("low", "high"))
    hull_low, hull_high = extend(low, high, second - first)
    p_values = np.array([one.p_value for one in own[: len(rows)]])
    adjusted = _adjusted(p_values, statistics.kind, equality.p_value)
    holds_nothing = (hull_low <= 0.0) & (hull_high >= 0.0)
    move = shown[1] - shown[0]
    variation = mover = None
    if statistics.kind == VALUE:  # distances are those of whole distributions
        variation = yield from _distance(populations, variation_potential, move, equality, level, rng)
        potential = transport_potential(domain)
        mover = variation if domain.is_equidistant else None
        if potential is not None and mover is None:
            mover = yield from _distance(populations, potential, move, equality, level, rng)
    errors = _standard_errors(groups, shown, rows if places is None else [*rows, places])
    mean = None if places is None else _mean(own[-1], float(places @ move), float(errors.numbers[-1]))
    if mean is not None and mover is not None:  # masses move at least as far as the mean does
        mover = mover._replace(low=min(mover.estimate, max(mover.low, mean.low, -mean.high)))
    return Comparison(
        domain,
        names,
        (groups[0].users, groups[1].users),
        statistics.labels,
        frozen(first),
        frozen(second),
        frozen(second - first),
        frozen(hull_low),
        frozen(hull_high),
        frozen(low),
        frozen(high),
        frozen(errors.numbers[: len(rows)]),
        errors.reasons[: len(rows)],
        frozen(p_values),
        frozen(adjusted),
        frozen((adjusted <= 1.0 - level) & ~holds_nothing),
        level,
        equality,
        variation,
        mover,
        mean,
        f"{note}; {APPROXIMATE}" if any(reports.approximate for reports in groups) else note,
        statistics.are_shares,
        kind=statistics.kind,
        caveats=statistics.caveats,
        effective_users=(groups[0].effective_users, groups[1].effective_users) if populations.is_weighted else None,
    )


def _standard_errors(groups: list[Reports], shown: list[Floats], statistics: list[Floats]) -> StandardErrors:
    """Return those of the differences at the estimates that are shown: the groups are independent."""
    first, second = (
        standard_errors(reports, shares, statistics) for reports, shares in zip(groups, shown, strict=True)
    )
    return first.of_difference(second)


def _distance(
    populations: Populations,
    potential: Potential,
    move: Floats,
    equality: Equality,
    level: float,
    rng: np.random.Generator,
) -> Generator[Progress, None, IntervalEstimate]:
    """Return the interval of a distance; that of two values is the interval of their one difference."""
    shown = float(potential(move) @ move)
    rejecting = equality.cutoff(level) if equality.p_value <= 1.0 - level else None
    if populations.values == 2:
        return (yield from distance_interval(populations, potential, shown, rejecting, equality.cutoff(level)))
    cutoff = populations.largest_effect * chi_square(level)

    def simulated(weights: Floats) -> Generator[Progress, None, float]:
        return (yield from simulated_cutoff(populations, weights, level, equality.common, rng))

    return (yield from distance_interval(populations, potential, shown, rejecting, cutoff, simulated))


def _adjusted(p_values: Floats, kind: str, all_equal: float) -> Floats:
    """Adjust p-values for how many rows there are; values differ only if the groups do.

    Of two values, the second says the same as the first. Sums with names are few beside all values, of which the test
    of equality is: it has no say about them.
    """
    if kind != VALUE:
        return holm(p_values)
    return p_values if p_values.size <= 2 else np.maximum(holm(p_values), all_equal)


def _mean(difference: Difference, shown: float, error: float) -> IntervalEstimate:
    return IntervalEstimate(shown, min(difference.low, shown), max(difference.high, shown), finite(error))


def holm(p_values: Floats) -> Floats:
    """Return p-values adjusted for how many there are, by Holm's method.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * np.arange(p_values.size, 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return adjusted
