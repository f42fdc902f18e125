"""The bootstrap: resample the users, estimate each time, and take the quantiles of a statistic."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.errors import EstimateError, SettingError
from hubbub.core.progress import Progress
from hubbub.estimators import estimate, reestimate
from hubbub.intervals.attribute_statistics import AnyStatistic
from hubbub.intervals.result import Interval
from hubbub.intervals.standard_errors import OF_BOOTSTRAP
from hubbub.reports import Reports

DEFAULT_RUNS = 200
MIN_RUNS = 20  # with fewer, the endpoints would be the extremes of a handful
MAX_WEIGHTS_DRAWN = 20_000_000  # at a time
ESTIMATORS = ("auto", "ibu", "mle")


def bootstrap_interval(
    reports: Reports,
    statistic: AnyStatistic,
    level: float,
    estimator: str | None,
    runs: int | None,
    rng: np.random.Generator,
) -> Generator[Any, None, Interval]:
    """Return the quantiles of the statistic over estimates from users drawn with replacement."""
    runs = DEFAULT_RUNS if runs is None else runs
    count = validation.whole(runs, "runs", "interval", at_least=MIN_RUNS, default=f"{DEFAULT_RUNS:,}")
    if reports.approximate:
        raise SettingError(
            "users cannot be resampled where only sums of bits were kept",
            where="interval(method='bootstrap')",
            got="reports from bit counts",
            expected="reports with one pattern for each user",
            remedy="use method='profile'",
        )
    estimator = "auto" if estimator is None else estimator
    name = validation.one_of(estimator, ESTIMATORS, "estimator", "interval", default="'auto'")
    original = estimate(reports, name)
    weights, samples = reports.weights, []
    step = max(1, min(count, MAX_WEIGHTS_DRAWN // weights.size))
    for first in range(0, count, step):
        yield Progress(first, count, f"bootstrap of {name}")
        size = min(step, count - first)
        drawn = rng.multinomial(reports.users, weights / weights.sum(), size=size).astype(np.float64)
        samples.append(reestimate(reports, drawn, original))
    share = statistic.value(original.probabilities)
    sample = np.array([statistic.value(theta) for theta in np.concatenate(samples)])
    if math.isnan(share) or np.isnan(sample).any():
        raise EstimateError(
            "some estimates of the bootstrap have nobody with the given values",
            where="interval(method='bootstrap', given=)",
            got=f"{np.count_nonzero(np.isnan(sample)):,} of {sample.size:,} estimates",
            expected="given values that every estimate has",
            remedy="use method='profile'",
        )
    tail = (1.0 - level) / 2.0
    low, high = (float(end) for end in np.quantile(sample, [tail, 1.0 - tail]))
    bias, spread = float(sample.mean()) - share, float(sample.std(ddof=1))
    note = (
        f"Bootstrap of {name!r}, {count:,} runs: it shows how the estimate varies, not how far it is from the truth. "
        f"Resampling moves it by {bias:+.2g} on average"
    )
    is_biased = abs(bias) > spread / 2
    note += ": a bias that this interval does not make up for; use method='profile'." if is_biased else "."
    return Interval(
        statistic.title,
        low,
        share,
        high,
        level,
        "bootstrap",
        False,
        None,
        note,
        bias,
        standard_error_reason=OF_BOOTSTRAP,
    )
