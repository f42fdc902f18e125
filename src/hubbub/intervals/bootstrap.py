"""The bootstrap: draw the users again, and estimate each time."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.errors import SettingError, shorten
from hubbub.core.progress import Progress
from hubbub.estimators import estimate, reestimate
from hubbub.reports import Reports

RUNS = 200
FEWEST = 20  # runs below which the ends are the extremes of a handful
PART = 20_000_000  # weights drawn at a time


class Resample(NamedTuple):
    """Estimates from users drawn again."""

    own: Floats  # from the users themselves
    sample: Floats  # runs by values
    estimator: str


def resampling(
    reports: Reports, estimator: str | None, runs: int | None, rng: np.random.Generator
) -> Generator[Any, None, Resample]:
    """Return estimates from users drawn with replacement, some at a time."""
    count = RUNS if runs is None else validation.whole(runs, "runs", "interval", default=f"{RUNS:,}")
    if count < FEWEST:
        raise SettingError(
            "too few runs for an interval",
            where="interval(runs=)",
            got=shorten(runs),
            expected=f"{FEWEST} or more",
            remedy=f"leave runs out for {RUNS}",
        )
    if reports.approximate:
        raise SettingError(
            "users cannot be drawn again where only sums of bits were kept",
            where="interval(method='bootstrap')",
            got="reports from bit counts",
            expected="reports with one pattern for each user",
            remedy="use method='profile'",
        )
    name = "auto" if estimator is None else estimator
    if name not in ("auto", "ibu", "mle"):
        raise SettingError(
            "no such estimator for the bootstrap",
            where="interval(estimator=)",
            got=shorten(estimator),
            expected="'auto', 'ibu' or 'mle'",
            remedy="leave estimator out for 'auto'",
        )
    weights, parts = reports.weights, []
    step = max(1, min(count, PART // weights.size))
    own = estimate(reports, name)
    for first in range(0, count, step):
        yield Progress(first, count, f"bootstrap of {name}")
        some = min(step, count - first)
        drawn = rng.multinomial(reports.users, weights / weights.sum(), size=some).astype(np.float64)
        parts.append(reestimate(reports, drawn, own))
    return Resample(own.probabilities, np.concatenate(parts), name)
