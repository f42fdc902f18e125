"""Maximum likelihood: which solver for which problem, and how the solvers hand over to each other."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hubbub.channels import DecayChannel
from hubbub.channels.kronecker import KroneckerChannel
from hubbub.channels.mixture import MixtureChannel
from hubbub.core.arrays import Floats
from hubbub.core.errors import SettingError
from hubbub.core.progress import finish, stepwise
from hubbub.likelihood import MAX_GAP_OF_WAY, Evaluation, Likelihood, Passed, Point
from hubbub.solvers.closed_form import closed_form
from hubbub.solvers.em_steps import accelerated_step, certified_rule, gap_rule
from hubbub.solvers.interior_point import InteriorPoint
from hubbub.solvers.loop import Outcome, Rule, SolverProgress, iterate
from hubbub.solvers.newton_systems import BandedSystem, DenseSystem, can_factorise, system_for
from hubbub.solvers.support_generation import SupportGeneration

CLOSED, INTERIOR, SUPPORT, EM = "closed form", "interior point", "support generation", "accelerated em"
SOLVERS = (CLOSED, INTERIOR, SUPPORT, EM)
DEFAULT_MAX_ITERATIONS = {CLOSED: 1, INTERIOR: 200, SUPPORT: 100, EM: 10_000}  # for support generation: rounds

MAX_INTERIOR_LINE_VALUES = 5_000  # longer lines are solved on their peaks first
MIN_SPARSE_VALUES = 5_000  # from which on most values have no mass at the maximum
MAX_PRICED_ENTRIES = 500_000_000  # of a matrix whose values are priced again and again
MIN_CLEAR_SHARE = 1e-3  # a share that is clearly not 0 at the maximum, if the gap is at most SUPPORT_GAP
ZERO_SINGULAR_VALUE = 1e-15  # 0 up to rounding, times the number of values
CLEAR_SINGULAR_VALUE = 1e-9  # clearly not 0
SUPPORT_GAP = 1e-13  # the largest gap at which the support of a point is taken for the maximum's...
MAX_REFINEMENTS = 30  # ...and how many more iterations may be spent to reach it
MAX_RANK_WORK = 1e9  # multiplications for the rank of the rows of the support
MAX_SOLVED_AGAIN = 1_500  # values of which support generation solves again for each gap
MAX_PASSED = 50  # distributions on a solver's way that are kept
MAX_POLISH_STEPS = 300  # of accelerated EM, where rounding has stopped the interior point


@dataclass(frozen=True)
class Maximum:
    """Where a solver ended, and which one it was."""

    outcome: Outcome[Point]
    settings: dict[str, Any]  # the solver and its linear algebra
    several: bool = False  # whether other distributions are known to be maxima as well


def maximise(
    likelihood: Likelihood,
    start: Floats,
    tol: float,
    *,
    solver: str | None,
    max_iter: int | None,
    keep: bool = False,
    certified: bool = False,
    way: WayTo | None = None,
) -> Generator[SolverProgress, None, Maximum]:
    """Maximise the likelihood to a gap of `tol`, or as far as possible; with `certified` the gap includes rounding."""
    rule = certified_rule(tol) if certified else gap_rule(tol)
    rule = rule if way is None else way.along(rule)
    closed = closed_form(likelihood, start) if solver in (None, CLOSED) else None
    if closed is not None:
        both = (likelihood.at(start), closed.point) if keep else ()
        path = tuple((point.log_likelihood, point.theta) for point in both)
        outcome = Outcome(closed.point, 0, met=rule(closed.point, closed.point), path=path)
        return Maximum(outcome, {"solver": CLOSED}, closed.several)
    if solver == CLOSED:
        raise SettingError(
            "there is no closed form for these reports",
            where="estimate(solver='closed form')",
            got=f"{likelihood.channel.patterns:,} distinct patterns over {likelihood.channel.values:,} values",
            expected="one randomized response with one output for each user, or users who all sent the same",
            remedy="leave solver out, so that the structure of the problem decides",
        )
    name = solver or choose_solver(likelihood)
    limit = max_iter or DEFAULT_MAX_ITERATIONS[name]
    settings: dict[str, Any] = {"solver": name}
    if name == EM:
        outcome = yield from iterate(likelihood.at(start), accelerated_step, rule, limit, keep=keep)
    elif name == SUPPORT:
        rounds = SupportGeneration(tol)
        outcome = yield from iterate(likelihood.at(start), rounds, rule, limit, keep=keep)
        settings |= {"support": int(np.count_nonzero(outcome.point.theta)), "inner iterations": rounds.inner}
    else:
        outcome, newton, settings["linear algebra"] = yield from _interior_point(likelihood, start, rule, limit, keep)
        if outcome.met and tol > SUPPORT_GAP and has_several_maxima(outcome.point):
            # Whether values that share almost no mass have any at the maximum shows only very close to it.
            closer = finish(iterate(outcome.point, newton, gap_rule(SUPPORT_GAP), MAX_REFINEMENTS))
            return Maximum(outcome, settings, has_several_maxima(closer.point, SUPPORT_GAP))
    if outcome.stalled and name != EM and outcome.iterations < limit:
        left = min(MAX_POLISH_STEPS, limit - outcome.iterations)
        more = yield from iterate(outcome.point, accelerated_step, rule, left, keep=keep)
        if more.point.measured_gap < outcome.point.measured_gap:
            outcome = replace(_continued(outcome, more), stalled=not more.met)
            settings |= {"polished by": EM}
    return Maximum(outcome, settings, has_several_maxima(outcome.point, SUPPORT_GAP))


class WayTo:
    """The distributions that a solver passes on its way to the maximum, each with a smaller gap than all before."""

    def __init__(self) -> None:
        self._passed: list[Passed] = []

    def along(self, rule: Rule) -> Rule:
        """Return the same rule, which takes down what it is asked about."""

        def is_met(before: Evaluation, after: Evaluation) -> bool:
            gap, least = after.measured_gap, self._passed[-1].gap if self._passed else math.inf
            if gap <= MAX_GAP_OF_WAY and gap < least and len(self._passed) <= MAX_PASSED:
                self._passed.append(Passed(gap, after.theta))
            return rule(before, after)

        return is_met

    @property
    def passed(self) -> tuple[Passed, ...]:
        """All of them; none where they are too many to keep."""
        return () if len(self._passed) > MAX_PASSED else tuple(self._passed)


@stepwise
def likeliest_point(likelihood: Likelihood, tol: float) -> Generator[SolverProgress, None, Point]:
    """Return where the likelihood is largest, to a gap of `tol`, by the solver that suits the problem.

    It depends on the likelihood and `tol` alone, not on whether a closer maximum is known already: cutoffs of intervals
    are simulated around this point, and jump where it moves by little. On its way to a closer one a solver passes it.
    Only the rounds of support generation, which are solved to a part of `tol`, do not: then it is searched for again,
    or, where values are too many for cutoffs to be simulated and searches take long, the closer one is as good.
    """
    known = likelihood.maxima.get(tol, likelihood)
    if known is not None:
        return known
    uniform, way = np.full(likelihood.channel.values, 1.0 / likelihood.channel.values), WayTo()
    maximum = yield from maximise(likelihood, uniform, tol, solver=None, max_iter=None, way=way)
    passed = way.passed
    if maximum.settings["solver"] == SUPPORT:
        passed = passed[-1:] if likelihood.channel.values > MAX_SOLVED_AGAIN else ()
    likelihood.maxima.put(tol, maximum.outcome.point, passed)
    return maximum.outcome.point


def _interior_point(
    likelihood: Likelihood, start: Floats, rule: Rule, limit: int, keep: bool
) -> Generator[SolverProgress, None, tuple[Outcome[Point], InteriorPoint, str]]:
    """Return where the interior point ended, its last state, and the name of its linear algebra."""
    system = system_for(likelihood.channel)
    newton, name = InteriorPoint(system), system.name
    outcome = yield from iterate(likelihood.at(start), newton, rule, limit, keep=keep)
    if outcome.stalled and isinstance(system, BandedSystem) and can_factorise(likelihood.channel):
        # Places that almost coincide cost the banded system its digits.
        newton, name = InteriorPoint(DenseSystem(likelihood.channel)), "banded, then dense"
        left = max(1, limit - outcome.iterations)
        outcome = _continued(outcome, (yield from iterate(outcome.point, newton, rule, left, keep=keep)))
    return outcome, newton, name


def _continued(first: Outcome[Point], more: Outcome[Point]) -> Outcome[Point]:
    """Return the outcome of two runs, one after the other, as that of one run."""
    return replace(more, iterations=first.iterations + more.iterations, path=first.path + more.path[1:])


def choose_solver(likelihood: Likelihood) -> str:
    """Return the solver for this channel's structure and size."""
    channel = likelihood.channel
    if isinstance(channel, DecayChannel) and channel.tridiagonal_form is not None:
        return INTERIOR if channel.values <= MAX_INTERIOR_LINE_VALUES else SUPPORT
    if can_factorise(channel):
        return INTERIOR
    if isinstance(channel, KroneckerChannel | MixtureChannel):
        return INTERIOR  # products by axes are so cheap that conjugate gradients on all values win
    # A maximum needs no more values than there are patterns; where neighbours are alike it needs far fewer.
    few = channel.local or channel.values > 2 * channel.patterns or channel.values > MIN_SPARSE_VALUES
    return SUPPORT if few and (channel.local or channel.entries <= MAX_PRICED_ENTRIES) else INTERIOR


def has_several_maxima(point: Point, max_gap: float = math.inf) -> bool:
    """Whether other distributions are known to fit as well: mass can move between values without changing f.

    False if the gap is larger than `max_gap`: the support of the maximum is then not known well enough.

    An interior point ends in the middle of all maxima, where every value that has mass in any of them has some. If
    the rows of these values are linearly dependent, moving along the dependence leaves every f_i as it is. Rows of a
    smooth channel are nearly dependent without being so: only singular values that drop from well above rounding
    directly to rounding are taken as proof.
    """
    channel = point.likelihood.channel
    held = np.flatnonzero(point.theta > MIN_CLEAR_SHARE)
    sent = point.likelihood.sent
    if held.size < 2 or point.measured_gap > max_gap:
        return False
    if held.size > int(np.count_nonzero(sent)):
        return True
    if held.size**2 * channel.patterns > MAX_RANK_WORK:
        return False
    rows = channel.rows(held)[:, sent]
    norms = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    scale = np.linalg.svd(rows / norms, compute_uv=False)
    scale = scale / scale[0]
    zero = ZERO_SINGULAR_VALUE * held.size
    return bool(scale[-1] < zero) and not ((scale > zero) & (scale < CLEAR_SINGULAR_VALUE)).any()
