"""The method "mle": the maximum of the likelihood, to a certified gap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hubbub.estimators.base import MethodRun, as_estimate, evaluate, gap_text
from hubbub.estimators.method_settings import MethodSettings
from hubbub.estimators.starting_points import starting_point
from hubbub.likelihood import Likelihood, ScatteredReports
from hubbub.rendering import upper_text
from hubbub.reports import Reports
from hubbub.solvers import DEFAULT_MAX_ITERATIONS, EM, Outcome, accelerated_step, certified_rule, iterate, maximise
from hubbub.solvers.loop import AnyPoint

MLE_TOL = 1e-9  # nats per user
MAX_ALMOST_SOLVED_GAP = 1e-5  # nats per user: a larger gap is never called almost solved, however lax the tolerance


def mle(reports: Reports | ScatteredReports, settings: MethodSettings) -> MethodRun:
    """Maximise the likelihood until its certified gap is at most tol."""
    tol = settings.checked_tol(MLE_TOL)
    max_iter = settings.checked_max_iter("the solver's own limit")
    solver = settings.checked_solver()
    theta, start = starting_point(settings.start, reports)
    used: dict[str, Any] = {"start": start, "tol": tol}
    if isinstance(reports, ScatteredReports):
        limit = max_iter or DEFAULT_MAX_ITERATIONS[EM]
        outcome = yield from iterate(
            evaluate(reports, theta), accelerated_step, certified_rule(tol), limit, keep=settings.history
        )
        outcome = _certified(outcome, tol)
        return as_estimate(reports, "mle", outcome, _verdict(outcome, tol), {**used, "max_iter": limit, "solver": EM})
    maximum = yield from maximise(
        Likelihood.of(reports), theta, tol, solver=solver, max_iter=max_iter, keep=settings.history, certified=True
    )
    used |= {"max_iter": max_iter or DEFAULT_MAX_ITERATIONS[maximum.settings["solver"]], **maximum.settings}
    certified = _certified(maximum.outcome, tol)
    return as_estimate(reports, "mle", certified, _verdict(certified, tol, several=maximum.several), used)


def _certified(outcome: Outcome[AnyPoint], tol: float) -> Outcome[AnyPoint]:
    """Return the outcome as met only if its certificate proves it: a solver's own rule may ignore rounding."""
    return replace(outcome, met=outcome.point.gap <= tol)


def _verdict(outcome: Outcome[AnyPoint], tol: float, *, several: bool = False) -> str:
    gap = gap_text(outcome.point)
    others = "; not the only maximum" if several else ""
    if outcome.met:
        return f"solved; {gap}{others}"
    if outcome.point.gap <= min(1000 * tol, MAX_ALMOST_SOLVED_GAP):
        rounding = outcome.point.gap - outcome.point.measured_gap
        part = f", up to {upper_text(rounding)} of it rounding" if outcome.point.measured_gap <= tol else ""
        return f"almost solved: {gap}{part}{others}"
    if outcome.stalled:
        return f"no further progress: {gap}"
    return f"stopped at the iteration limit of {outcome.iterations:,}: {gap}"
