"""The methods "ibu", the paper's Algorithm 1, and "ems", EM with smoothing."""

from __future__ import annotations

from hubbub.core.errors import SettingError
from hubbub.domains.domain_shape import DomainShape
from hubbub.estimators.base import MethodRun, as_estimate, evaluate, gap_text
from hubbub.estimators.method_settings import MethodSettings
from hubbub.estimators.starting_points import starting_point
from hubbub.likelihood import Evaluation, ScatteredReports
from hubbub.reports import Reports
from hubbub.solvers import BatchedUpdates, Outcome, delta_rule, em_step, iterate, smoothed_step
from hubbub.solvers.loop import Step

IBU_DELTA = 0.1  # nats; the paper does not state the delta of its experiments, and this one comes close to its figures
EMS_DELTA = 1e-3  # nats; with smoothing EM comes to rest by itself (Li and others, 2020, use the same delta)
MAX_UPDATES = 100_000


def ibu(reports: Reports | ScatteredReports, settings: MethodSettings) -> MethodRun:
    """Run EM until the total log-likelihood changes by less than delta (the paper's Algorithm 1)."""
    delta = settings.checked_delta(IBU_DELTA)
    max_iter = settings.checked_max_iter(f"{MAX_UPDATES:,}") or MAX_UPDATES
    theta, start = starting_point(settings.start, reports)
    step = em_step if settings.history else BatchedUpdates(delta, max_iter)
    outcome = yield from iterate(evaluate(reports, theta), step, delta_rule(delta), max_iter, keep=settings.history)
    used = {"start": start, "delta": delta, "max_iter": max_iter, "solver": "em"}
    return as_estimate(reports, "ibu", outcome, _stop_reason(outcome, max_iter), used)


def ems(reports: Reports | ScatteredReports, settings: MethodSettings) -> MethodRun:
    """Run EM and average each value with its neighbours after each update, until the change is below delta."""
    shape = DomainShape.of(reports.domain)
    if shape.steps is None:
        raise SettingError(
            "there is nothing to smooth over: these values have no neighbours",
            where="estimate(method='ems')",
            got=reports.domain.describe(),
            expected="values on a line or a map: Integers, Bins or Grid",
            remedy="use method='auto', which also handles categories",
        )
    delta = settings.checked_delta(EMS_DELTA)
    max_iter = settings.checked_max_iter(f"{MAX_UPDATES:,}") or MAX_UPDATES
    theta, start = starting_point(settings.start, reports)
    step: Step[Evaluation] = smoothed_step(shape.averaged)
    outcome = yield from iterate(evaluate(reports, theta), step, delta_rule(delta), max_iter, keep=settings.history)
    used = {"start": start, "delta": delta, "max_iter": max_iter, "solver": "em with smoothing"}
    status = f"smoothed after each update; {_stop_reason(outcome, max_iter)}"
    return as_estimate(reports, "ems", outcome, status, used)


def _stop_reason(outcome: Outcome[Evaluation], max_iter: int) -> str:
    reason = "stopped by the delta rule" if outcome.met else f"stopped at the iteration limit of {max_iter:,}"
    return f"{reason}; {gap_text(outcome.point)}"
