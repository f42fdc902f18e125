"""Intervals for the true share of a value, of a set of values, or for any linear statistic."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.errors import SettingError, shorten
from hubbub.core.portable import Portable
from hubbub.core.progress import Progress, finish
from hubbub.core.threads import step_by_step
from hubbub.estimators import Estimate
from hubbub.estimators.validation import check_estimate, check_reports
from hubbub.intervals.bootstrap import resampling
from hubbub.intervals.interval_endpoints import IntervalEndpoints
from hubbub.intervals.likelihood_region import LikelihoodRegion
from hubbub.intervals.linear_statistic import Statistic, statistic
from hubbub.rendering import Fact, facts_html
from hubbub.reports import Reports
from hubbub.sampling import Randomness

METHODS = ("profile", "bootstrap")
WHY_NOT = {
    "estimator": "it belongs to method='bootstrap'",
    "runs": "it belongs to method='bootstrap'",
    "estimate": "the estimator itself is run again; name it by estimator=",
    "simultaneous": "quantiles of all values at once would need far more runs; method='profile' has it",
}


@dataclass(frozen=True)
class Interval(Portable):
    """Where the true value of a statistic lies, and the estimate of it."""

    of: str
    low: float
    estimate: float
    high: float
    level: float
    method: str
    simultaneous: bool
    cutoffs: tuple[float, float] | None  # of the deviance, for the low and the high end; None for the bootstrap
    note: str
    bias: float | None = None  # the bootstrap's guess of the estimator's bias

    @property
    def outside(self) -> bool:
        """Whether the estimate lies outside its own interval: it was regularised by more than the data allow."""
        return not self.low <= self.estimate <= self.high

    def explain(self) -> str:
        """Return the interval as a sentence or two."""
        said = f"{self.of}: {self.estimate:.4g}, between {self.low:.4g} and {self.high:.4g} at {100 * self.level:g}%."
        if self.outside:
            said += " The estimate lies outside its interval: it is smoother, or more extreme, than the reports allow."
        return f"{said} {self.note}".strip()

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return facts_html(
            [
                Fact("of", self.of),
                Fact("estimate", f"{self.estimate:.4g}" + (" (outside its interval)" if self.outside else "")),
                Fact(f"{100 * self.level:g}% interval", f"{self.low:.4g} to {self.high:.4g}"),
                Fact("method", self.method + (", simultaneous" if self.simultaneous else "")),
                *([Fact("note", self.note)] if self.note else []),
            ]
        )


Run = Generator[Any, None, Interval]


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
) -> Interval:
    """Return an interval that holds the true share of `of` with probability `level`.

    `of` is a value, a list or set of values (their joint share) or {value: weight} (a mean, a difference of regions).

    ``method="profile"``: the lowest and the highest value of the statistic over all distributions whose deviance, twice
    what the log-likelihood lacks to its maximum, is below a cutoff. Both ends are certified: no distribution in
    that set lies beyond them, whether or not the maximum is unique. The cutoff is simulated (docs/trust.md), because
    zeros in the truth make that of chi-square too small; for a single value among more than 100, with less than a
    fifth of the mass, it is that of chi-square with one degree of freedom.

    ``method="bootstrap"``: users are drawn again, `runs` times, and estimated by `estimator` ("auto" by default). It
    shows how the estimate varies, not how far it is from the truth: a regularised estimate has a bias, which `bias`
    guesses.

    ``simultaneous=True`` makes the statements for all values hold together: Bonferroni for single values, chi-square
    with as many degrees of freedom as there are free probabilities for all others (which covers all linear
    statistics at once).

    `estimate` is placed in the interval; left out, the maximum of the likelihood. The same reports give the same
    answer.

    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> answer = hb.interval(hb.Reports.from_counts(coin, {"yes": 600, "no": 400}), "yes")
    >>> round(answer.low, 3), round(answer.estimate, 3), round(answer.high, 3)
    (0.65, 0.716, 0.781)
    """
    keywords = {"method": method, "simultaneous": simultaneous, "estimate": estimate, "estimator": estimator}
    return finish(intervals_of(reports, of, level, **keywords, runs=runs, rng=rng))


def intervals_of(reports: Reports, of: object, level: float = 0.95, **keywords: Any) -> Run:
    """Do what `interval` does, yielding progress on the way."""
    check_reports(reports, "interval")
    return step_by_step(_interval(reports, of, level, **keywords), reports.weights.size * len(reports.domain))


def _interval(
    reports: Reports,
    of: object,
    level: float,
    method: str = "profile",
    simultaneous: bool = False,
    estimate: Estimate | None = None,
    estimator: str | None = None,
    runs: int | None = None,
    rng: Randomness = None,
) -> Run:
    level = validation.level(level, "interval")
    asked = statistic(reports.domain, of, "interval")
    placed = check_estimate(estimate, reports, "interval")
    if not isinstance(method, str) or method not in METHODS:
        raise SettingError(
            "no such method",
            where="interval(method=)",
            got=shorten(method),
            expected="'profile' or 'bootstrap'",
            remedy="leave method out for 'profile'",
        )
    validation.boolean(simultaneous, "simultaneous", "interval")
    generator, _ = validation.generator(rng, "interval")
    refuse(
        method,
        {
            "estimator": (estimator, method == "profile"),
            "runs": (runs, method == "profile"),
            "estimate": (estimate, method == "bootstrap"),
            "simultaneous": (simultaneous or None, method == "bootstrap"),
        },
    )
    if method == "bootstrap":
        return (yield from _bootstrap(reports, asked, level, estimator, runs, generator))
    likely = yield from LikelihoodRegion.finding(reports)
    return (yield from profile(likely, reports, asked, level, simultaneous, placed, generator))


def refuse(method: str, keywords: dict[str, tuple[object, bool]]) -> None:
    """Refuse keywords that mean nothing to a method."""
    for name, (value, wrong) in keywords.items():
        if value is not None and wrong:
            raise SettingError(
                f"{name} means nothing to this method",
                where=f"interval(method={method!r}, {name}=)",
                got=shorten(value),
                expected=f"no {name}: {WHY_NOT[name]}",
                remedy=f"leave {name} out",
            )


def profile(
    likely: LikelihoodRegion,
    reports: Reports,
    asked: Statistic,
    level: float,
    simultaneous: bool,
    placed: Floats | None,
    rng: np.random.Generator | None = None,
) -> Generator[Progress, None, Interval]:
    """Return the interval of one statistic, given the maximum."""
    own = float(asked.weights @ likely.top.theta)
    share = own if placed is None else float(asked.weights @ placed)
    if np.ptp(asked.weights) == 0.0:  # the sum over all values
        return Interval(asked.words, own, share, own, level, "profile", simultaneous, (0.0, 0.0), "It is known.")
    yield Progress(0, 3, f"interval of {asked.words}")
    ends = IntervalEndpoints(likely, asked, level, simultaneous=simultaneous, rng=rng)
    yield Progress(1, 3, f"low end of {asked.words}")
    low, under = ends.least(1.0)
    yield Progress(2, 3, f"high end of {asked.words}")
    high, over = ends.least(-1.0)
    note = ends.note
    if reports.approximate:
        note += " Approximate: only sums of bits were kept, and bits are treated as independent."
    # The maximum itself is in the interval, up to rounding.
    return Interval(
        asked.words,
        min(low, own),
        share,
        max(-high, own),
        level,
        "profile",
        simultaneous,
        (under, over),
        note.strip(),
    )


def _bootstrap(
    reports: Reports,
    asked: Statistic,
    level: float,
    estimator: str | None,
    runs: int | None,
    rng: np.random.Generator,
) -> Run:
    drawn = yield from resampling(reports, estimator, runs, rng)
    share, sample = float(drawn.own @ asked.weights), drawn.sample @ asked.weights
    tail = (1.0 - level) / 2.0
    low, high = (float(edge) for edge in np.quantile(sample, [tail, 1.0 - tail]))
    bias = float(sample.mean()) - share
    spread = float(sample.std(ddof=1))
    note = (
        f"Bootstrap of {drawn.estimator!r}, {len(sample):,} runs: it shows how the estimate varies, not how far it is "
        f"from the truth. Drawing again moves it by {bias:+.2g} on average"
    )
    heavy = abs(bias) > spread / 2
    note += ": a bias that this interval does not make up for; use method='profile'." if heavy else "."
    return Interval(asked.words, low, share, high, level, "bootstrap", False, None, note, bias)
