"""`estimate` and its methods. Each method is a generator: it yields progress and returns an estimate."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Floats, frozen
from hubbub.core.errors import EstimateError, SettingError
from hubbub.core.portable import ReadOnly
from hubbub.core.progress import Progress, stepwise
from hubbub.core.threads import step_by_step
from hubbub.estimators.auto import Shape, extreme, selecting
from hubbub.estimators.method_settings import (
    Settings,
    check_where_they_lie,
    starting_point,
)
from hubbub.estimators.result import Estimate, History
from hubbub.estimators.validation import check_any_reports
from hubbub.likelihood import Evaluation, Likelihood, PooledLikelihood, ScatteredReports
from hubbub.rendering import upper_text
from hubbub.reports import Reports
from hubbub.sampling import Randomness
from hubbub.solvers import (
    EM,
    LIMITS,
    SOLVERS,
    Bursts,
    Outcome,
    SolverProgress,
    accelerated_step,
    certified_rule,
    delta_rule,
    em_step,
    invert,
    iterate,
    maximise,
    smoothed_step,
)
from hubbub.solvers.inversion import normalised, projected
from hubbub.solvers.loop import Q

Run = Generator[SolverProgress | Progress, None, Estimate]

DELTA = 0.1  # the paper's experiments do not state theirs; this one comes close to their figures
SMOOTH_DELTA = 1e-3  # of EM with smoothing, which comes to rest of itself (Li and others, 2020, use this one)
TOL = 1e-9
IBU_STEPS = 100_000
ALMOST = 1e-5  # the largest gap that may be called almost solved, however lax the tolerance


@dataclass(frozen=True)
class Method:
    """A way to estimate, and the keywords it takes."""

    run: Callable[[Any, Settings], Run]  # Reports; for some methods ScatteredReports, too
    accepts: frozenset[str]


@stepwise
def estimate(
    reports: Reports | ScatteredReports,
    method: str = "auto",
    *,
    start: object = None,
    tol: float | None = None,
    delta: float | None = None,
    max_iter: int | None = None,
    rng: Randomness = None,
    history: bool = False,
    solver: str | None = None,
) -> Generator[Progress | SolverProgress, None, Estimate]:
    """Return the distribution over the domain that the reports speak of.

    The methods are

    * ``"auto"``: the default, as close to the truth as the data allow. Many candidates (EM stopped early or late,
      smooth curves, flat pieces with jumps, ...) predict reports that were held back, and are averaged by how well they
      do and how stable they are. ``status`` says what counted most; ``settings["selection"]`` has all candidates and
      can be plotted.
    * ``"ibu"``: the paper's Algorithm 1, EM from `start` until the total log-likelihood changes by less than
      `delta` (default 0.1). Stopped early it is smooth and often close to the truth; it is not the maximum.
    * ``"ems"``: EM with smoothing after each update (on lines and maps), until the change is below `delta` (0.001).
    * ``"mle"``: the maximum of the likelihood, to a certified gap of at most `tol` (default 1e-9 nats per user).
    * ``"inv-n"``, ``"inv-p"``: matrix inversion, cut at 0 and normalised, or projected on the simplex.

    `solver` says how ``"mle"`` gets there: a ``"closed form"`` where there is one (k-RR; one pattern),
    ``"interior point"``, ``"support generation"`` (few values at a time, all priced) or ``"accelerated em"``. Left
    out, the structure and size of the problem decide; ``estimate.settings`` names the choice.

    `start` is "uniform" (default), "empirical" (the shares of the outputs, where these are values) or a
    distribution with full support. `max_iter` limits the iterations (for ``"auto"`` the updates of EM), `history` keeps
    them. A keyword that means nothing to a method is refused. The same reports give the same answer; `rng` (a seed or a
    generator) says how ``"auto"`` deals users into parts.

    Reports may lie elsewhere (`hubbub.cluster`): ``"ibu"``, ``"ems"``, and ``"mle"`` by accelerated EM then send theta
    to them and get sums of the domain's size back. All else is the same.

    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> answer = hb.estimate(hb.Reports.from_counts(coin, {"yes": 600, "no": 400}), method="mle")
    >>> answer.probabilities.round(4), answer.converged
    (array([0.7164, 0.2836]), True)
    """
    check_any_reports(reports, "estimate")
    method = validation.one_of(method, METHODS, "method", "estimate", default="'auto'")
    settings = Settings(start, tol, delta, max_iter, rng, history, solver)
    settings.refuse_all_but(METHODS[method].accepts, method)
    check_where_they_lie(reports, method, _solver(settings))
    patterns = 1 if isinstance(reports, ScatteredReports) else reports.weights.size
    return step_by_step(METHODS[method].run(reports, settings), patterns * len(reports.domain))


def log_likelihood(reports: Reports | ScatteredReports, probabilities: object) -> float:
    """Return the total log-likelihood over users, in nats; -inf if a report has probability 0."""
    return _point(reports, probabilities, "log_likelihood").log_likelihood


def optimality_gap(reports: Reports | ScatteredReports, probabilities: object) -> float:
    """Return a certified bound on how far the mean log-likelihood is below its maximum, in nats per user."""
    return _point(reports, probabilities, "optimality_gap").gap


def _point(reports: Reports | ScatteredReports, probabilities: object, where: str) -> Evaluation:
    check_any_reports(reports, where)
    theta = validation.distribution(probabilities, len(reports.domain), f"{where}(probabilities)", error=EstimateError)
    return _at(reports, theta)


def _at(reports: Reports | ScatteredReports, theta: Floats) -> Evaluation:
    if isinstance(reports, ScatteredReports):
        return PooledLikelihood(reports).at(theta)
    return Likelihood.of(reports).at(theta)


def _ibu(reports: Reports | ScatteredReports, settings: Settings) -> Run:
    delta = _positive(settings.delta, "delta", DELTA)
    max_iter = _max_iter(settings, f"{IBU_STEPS:,}") or IBU_STEPS
    theta, start = starting_point(settings.start, reports)
    step = em_step if settings.history else Bursts(delta, max_iter)
    outcome = yield from iterate(_at(reports, theta), step, delta_rule(delta), max_iter, keep=settings.history)
    reason = "stopped by the delta rule" if outcome.met else f"stopped at the iteration limit of {max_iter:,}"
    chosen = {"start": start, "delta": delta, "max_iter": max_iter, "solver": "em"}
    return _finish(reports, "ibu", outcome, f"{reason}; {_gap(outcome.point)}", chosen)


def _ems(reports: Reports | ScatteredReports, settings: Settings) -> Run:
    shape = Shape.of(reports.domain)
    if shape.steps is None:
        raise SettingError(
            "there is nothing to smooth over: these values have no neighbours",
            where="estimate(method='ems')",
            got=reports.domain.describe(),
            expected="values on a line or a map: Integers, Bins or Grid",
            remedy="use method='auto', which knows what to do with categories",
        )
    delta = _positive(settings.delta, "delta", SMOOTH_DELTA)
    max_iter = _max_iter(settings, f"{IBU_STEPS:,}") or IBU_STEPS
    theta, start = starting_point(settings.start, reports)
    outcome = yield from iterate(
        _at(reports, theta), smoothed_step(shape.averaged), delta_rule(delta), max_iter, keep=settings.history
    )
    reason = "stopped by the delta rule" if outcome.met else f"stopped at the iteration limit of {max_iter:,}"
    chosen = {"start": start, "delta": delta, "max_iter": max_iter, "solver": "em with smoothing"}
    return _finish(reports, "ems", outcome, f"smoothed after each update; {reason}; {_gap(outcome.point)}", chosen)


def _auto(reports: Reports, settings: Settings) -> Run:
    _, seed = validation.generator(settings.rng, "estimate")
    last = _max_iter(settings, "a limit that suits the size")
    likelihood = Likelihood.of(reports)
    kind = extreme(likelihood.channel, likelihood.weights)
    if kind == "plain":
        found = yield from _mle(reports, Settings(max_iter=last))
        chosen = {"chosen": "maximum likelihood", **found.settings, "rng": seed}
        status = f"the reports tell the values almost surely, nothing is smoothed: maximum likelihood; {found.status}"
        return replace(found, method="auto", status=status, settings=ReadOnly(chosen))
    if kind == "blind":
        even = likelihood.at(np.full(len(reports.domain), 1.0 / len(reports.domain)))
        status = (
            "nothing can be learned: with so few users and so much noise, not even a crowd that agrees on one value "
            f"could safely be told from an even one; {_gap(even)}"
        )
        return _finish(reports, "auto", Outcome(even, 0, met=True), status, {"chosen": "uniform", "rng": seed})
    rng = settings.rng if isinstance(settings.rng, np.random.Generator) else np.random.default_rng(int(seed))
    theta, selection = yield from selecting(likelihood.channel, likelihood.weights, reports.domain, rng, last)
    chosen = {
        "chosen": selection.chosen.words,
        "weight": float(selection.weights.max()),
        "runner_up": selection.runner_up.words,
        "folds": selection.parts,
        "max_iter": selection.last,
        "rng": seed,
        "selection": selection,
    }
    outcome = Outcome(likelihood.at(theta), selection.chosen.updates, met=True)
    return _finish(reports, "auto", outcome, f"{selection.explain()}; {_gap(outcome.point)}", chosen)


def _gap(point: Evaluation) -> str:
    return f"gap {upper_text(point.gap)}"


def _mle(reports: Reports | ScatteredReports, settings: Settings) -> Run:
    tol = _positive(settings.tol, "tol", TOL)
    max_iter = _max_iter(settings, "the solver's own limit")
    solver = _solver(settings)
    theta, start = starting_point(settings.start, reports)
    if isinstance(reports, ScatteredReports):
        limit = max_iter or LIMITS[EM]
        outcome = yield from iterate(
            _at(reports, theta), accelerated_step, certified_rule(tol), limit, keep=settings.history
        )
        chosen = {"start": start, "tol": tol, "max_iter": limit, "solver": EM}
        outcome = _certified(outcome, tol)
        return _finish(reports, "mle", outcome, _verdict(outcome, tol), chosen)
    found = yield from maximise(
        Likelihood.of(reports), theta, tol, solver=solver, max_iter=max_iter, keep=settings.history, certified=True
    )
    limit = max_iter or LIMITS[found.how["solver"]]
    chosen = {"start": start, "tol": tol, "max_iter": limit, **found.how}
    ended = _certified(found.outcome, tol)
    return _finish(reports, "mle", ended, _verdict(ended, tol, several=found.several), chosen)


def _certified(outcome: Outcome[Q], tol: float) -> Outcome[Q]:
    """Return the outcome as what its certificate proves: a solver that is content may be so up to rounding alone."""
    return replace(outcome, met=outcome.point.gap <= tol)


def _verdict(outcome: Outcome[Q], tol: float, *, several: bool = False) -> str:
    gap = _gap(outcome.point)
    others = "; not the only maximum" if several else ""
    if outcome.met:
        return f"solved; {gap}{others}"
    if outcome.point.gap <= min(1000 * tol, ALMOST):
        rounding = outcome.point.gap - outcome.point.measured_gap
        part = f", of which rounding may be {upper_text(rounding)}" if outcome.point.measured_gap <= tol else ""
        return f"almost solved: {gap}{part}{others}"
    if outcome.stalled:
        return f"no progress: {gap}"
    return f"stopped at the iteration limit of {outcome.iterations:,}: {gap}"


def _inversion(method: str, repair: Callable[[Floats], Floats], words: str) -> Callable[[Reports, Settings], Run]:
    def run(reports: Reports, settings: Settings) -> Run:  # noqa: ARG001  # inversion has none
        yield from ()  # done in one go, without progress
        point = Likelihood.of(reports).at(repair(invert(reports)))
        status = f"inverted, {words}; {_gap(point)}"
        return _finish(reports, method, Outcome(point, 0, met=True), status, {"solver": "inversion"})

    return run


def _finish(
    reports: Reports | ScatteredReports, method: str, outcome: Outcome[Q], status: str, chosen: dict[str, Any]
) -> Estimate:
    if reports.approximate:
        status += "; approximate: only sums of bits were kept, and bits are treated as independent"
    if isinstance(reports, ScatteredReports):
        chosen = {**chosen, "parts": reports.parts}
    probabilities = frozen(outcome.point.theta)  # made by a solver, or a copy of what the caller gave
    history = None
    if outcome.path:
        values, iterates = zip(*outcome.path, strict=True)
        history = History(frozen(np.array(values)), frozen(np.stack(iterates)))
    return Estimate(
        domain=reports.domain,
        probabilities=probabilities,
        method=method,
        status=status,
        converged=outcome.met,
        log_likelihood=outcome.point.log_likelihood,
        gap=outcome.point.gap,
        iterations=outcome.iterations,
        users=reports.users,
        settings=ReadOnly(chosen),
        history=history,
    )


METHODS = {
    "auto": Method(_auto, frozenset({"max_iter", "rng"})),
    "ibu": Method(_ibu, frozenset({"start", "delta", "max_iter", "history"})),
    "ems": Method(_ems, frozenset({"start", "delta", "max_iter", "history"})),
    "mle": Method(_mle, frozenset({"start", "tol", "max_iter", "history", "solver"})),
    "inv-n": Method(_inversion("inv-n", normalised, "negative shares cut to 0, normalised"), frozenset()),
    "inv-p": Method(_inversion("inv-p", projected, "projected to the nearest distribution"), frozenset()),
}


def _positive(value: float | None, name: str, default: float) -> float:
    return default if value is None else validation.positive(value, name, "estimate", default=f"{default:g}")


def _max_iter(settings: Settings, default: str) -> int | None:
    if settings.max_iter is None:
        return None
    return validation.whole(settings.max_iter, "max_iter", "estimate", default=default)


def _solver(settings: Settings) -> str | None:
    if settings.solver is None:
        return None
    return validation.one_of(
        settings.solver, SOLVERS, "solver", "estimate", default="the one that suits the structure of the problem"
    )
