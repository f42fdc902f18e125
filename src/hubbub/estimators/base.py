"""What every method shares: its signature, the likelihood at a distribution, and the way to an `Estimate`."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.core.arrays import Floats, frozen
from hubbub.core.progress import Progress
from hubbub.core.serialization import ReadOnly
from hubbub.estimators.method_settings import MethodSettings
from hubbub.estimators.result import Estimate, History
from hubbub.likelihood import Evaluation, Likelihood, PooledLikelihood, ScatteredReports
from hubbub.rendering import upper_text
from hubbub.reports import Reports
from hubbub.solvers import Outcome, SolverProgress
from hubbub.solvers.loop import AnyPoint

APPROXIMATE = "; approximate: only sums of bits were kept, and bits are treated as independent"

MethodRun = Generator[SolverProgress | Progress, None, Estimate]


@dataclass(frozen=True)
class Method:
    """A way to estimate, and the keywords it takes."""

    run: Callable[[Any, MethodSettings], MethodRun]  # takes Reports; some methods take ScatteredReports, too
    keywords: frozenset[str]
    is_own: bool = False  # not hubbub's: registered, or of an installed package


def evaluate(reports: Reports | ScatteredReports, theta: Floats) -> Evaluation:
    """Return the likelihood of the reports at a distribution, wherever they are stored."""
    if isinstance(reports, ScatteredReports):
        return PooledLikelihood(reports).at(theta)
    return Likelihood.of(reports).at(theta)


def gap_text(point: Evaluation) -> str:
    """Return the certified gap, rounded up, for a status."""
    return f"gap {upper_text(point.gap)}"


def as_estimate(
    reports: Reports | ScatteredReports, method: str, outcome: Outcome[AnyPoint], status: str, settings: dict[str, Any]
) -> Estimate:
    """Return where a solver ended as an estimate, with the settings that were used."""
    if reports.approximate:
        status += APPROXIMATE
    if isinstance(reports, ScatteredReports):
        settings = {**settings, "parts": reports.parts}
    history = None
    if outcome.path:
        log_likelihoods, iterates = zip(*outcome.path, strict=True)
        history = History(frozen(np.array(log_likelihoods)), frozen(np.stack(iterates)))
    return Estimate(
        domain=reports.domain,
        probabilities=frozen(outcome.point.theta),  # made by a solver, or a copy of what the caller passed
        method=method,
        status=status,
        converged=outcome.met,
        log_likelihood=outcome.point.log_likelihood,
        gap=outcome.point.gap,
        iterations=outcome.iterations,
        users=reports.users,
        settings=ReadOnly(settings),
        history=history,
        effective_users=reports.effective_users if isinstance(reports, Reports) and reports.survey else None,
    )


def without_likelihood(
    reports: Reports, method: str, shares: Floats, status: str, settings: dict[str, Any]
) -> Estimate:
    """Return shares that are no distribution as an estimate: they have no likelihood, and no gap."""
    return Estimate(
        domain=reports.domain,
        probabilities=frozen(shares),
        method=method,
        status=status,
        converged=True,
        log_likelihood=math.nan,
        gap=math.nan,
        iterations=0,
        users=reports.users,
        settings=ReadOnly(settings),
        effective_users=reports.effective_users if reports.survey else None,
    )
