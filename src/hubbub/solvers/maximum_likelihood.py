"""Maximum likelihood: which solver for which problem, and what becomes of it."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hubbub.channels import DecayChannel
from hubbub.core.arrays import Floats
from hubbub.core.errors import SettingError
from hubbub.core.progress import finish
from hubbub.likelihood import Likelihood, Point
from hubbub.solvers.closed_form import closed_form
from hubbub.solvers.em_steps import accelerated_step, certified_rule, gap_rule
from hubbub.solvers.interior_point import InteriorPoint
from hubbub.solvers.loop import Outcome, SolverProgress, iterate
from hubbub.solvers.newton_systems import BandedSystem, DenseSystem, fits, system_for
from hubbub.solvers.support_generation import SupportGeneration

CLOSED, INTERIOR, SUPPORT, EM = "closed form", "interior point", "support generation", "accelerated em"
SOLVERS = (CLOSED, INTERIOR, SUPPORT, EM)
LIMITS = {CLOSED: 1, INTERIOR: 200, SUPPORT: 100, EM: 10_000}  # iterations, or rounds, unless the caller says otherwise

LONG_LINE = 5_000  # values from which a line is solved on its peaks first
MANY = 5_000  # values from which most will have no mass at the maximum
MOST_PRICED = 500_000_000  # entries of a matrix whose values are priced again and again
HELD = 1e-3  # shares that are clearly not 0 at the maximum, if the gap is below KNOWN
ROUNDING = 1e-15  # singular values that are 0 up to rounding, for each value
CLEAR = 1e-9  # singular values that are clearly not
KNOWN = 1e-13  # the largest gap at which a maximum's support is taken for granted...
CLOSER = 30  # ...and how many more iterations may be spent on getting there
MOST_RANKED = 1e9  # multiplications for the rank of the rows of these values
POLISH = 300  # steps of accelerated EM where rounding has stopped the interior point


@dataclass(frozen=True)
class Maximum:
    """Where a solver ended, and how it went about it."""

    outcome: Outcome[Point]
    how: dict[str, Any]
    several: bool = False  # is it known that other distributions are maxima as well?


def maximise(
    likelihood: Likelihood,
    start: Floats,
    tol: float,
    *,
    solver: str | None,
    max_iter: int | None,
    keep: bool = False,
    certified: bool = False,
) -> Generator[SolverProgress, None, Maximum]:
    """Maximise the likelihood to a gap of `tol`, or as far as it goes; `certified` counts rounding in."""
    rule = certified_rule(tol) if certified else gap_rule(tol)
    closed = closed_form(likelihood, start) if solver in (None, CLOSED) else None
    if closed is not None:
        both = (likelihood.at(start), closed.point) if keep else ()
        path = tuple((point.log_likelihood, point.theta) for point in both)
        return Maximum(
            Outcome(closed.point, 0, met=rule(closed.point, closed.point), path=path),
            {"solver": CLOSED},
            closed.several,
        )
    if solver == CLOSED:
        raise SettingError(
            "there is no closed form for these reports",
            where="estimate(solver='closed form')",
            got=f"{likelihood.channel.patterns:,} distinct patterns over {likelihood.channel.values:,} values",
            expected="one mechanism of randomized response with one output each, or users who all sent the same",
            remedy="leave solver out: the structure of the problem then decides",
        )
    name = solver or choose(likelihood)
    limit = max_iter or LIMITS[name]
    how: dict[str, Any] = {"solver": name}
    if name == EM:
        outcome = yield from iterate(likelihood.at(start), accelerated_step, rule, limit, keep=keep)
    elif name == SUPPORT:
        rounds = SupportGeneration(tol)
        outcome = yield from iterate(likelihood.at(start), rounds, rule, limit, keep=keep)
        how |= {"support": int(np.count_nonzero(outcome.point.theta)), "inner iterations": rounds.inner}
    else:
        system = system_for(likelihood.channel)
        how |= {"linear algebra": system.name}
        newton = InteriorPoint(system)
        outcome = yield from iterate(likelihood.at(start), newton, rule, limit, keep=keep)
        if outcome.stalled and isinstance(system, BandedSystem) and fits(likelihood.channel):
            # Places that almost coincide cost the banded system its digits.
            newton = InteriorPoint(DenseSystem(likelihood.channel))
            how |= {"linear algebra": "banded, then dense"}
            left = max(1, limit - outcome.iterations)
            outcome = _after(outcome, (yield from iterate(outcome.point, newton, rule, left, keep=keep)))
        if outcome.met and tol > KNOWN and several_maxima(outcome.point):
            # Whether values that share almost no mass have any at the maximum shows only very close to it.
            closer = finish(iterate(outcome.point, newton, gap_rule(KNOWN), CLOSER))
            return Maximum(outcome, how, several_maxima(closer.point, KNOWN))
    if outcome.stalled and name != EM and outcome.iterations < limit:
        left = min(POLISH, limit - outcome.iterations)
        more = yield from iterate(outcome.point, accelerated_step, rule, left, keep=keep)
        if more.point.measured_gap < outcome.point.measured_gap:
            outcome = replace(_after(outcome, more), stalled=not more.met)
            how |= {"polished by": EM}
    return Maximum(outcome, how, several_maxima(outcome.point, KNOWN))


def _after(first: Outcome[Point], more: Outcome[Point]) -> Outcome[Point]:
    """Return where a second run ended, as one run."""
    return replace(more, iterations=first.iterations + more.iterations, path=first.path + more.path[1:])


def choose(likelihood: Likelihood) -> str:
    """Return the solver for this channel's structure and size."""
    channel = likelihood.channel
    if isinstance(channel, DecayChannel) and channel.tridiagonal_form is not None:
        return INTERIOR if channel.values <= LONG_LINE else SUPPORT
    if fits(channel):
        return INTERIOR
    # A maximum needs no more values than there are patterns; where neighbours are alike it needs far fewer.
    few = channel.local or channel.values > 2 * channel.patterns or channel.values > MANY
    return SUPPORT if few and (channel.local or channel.entries <= MOST_PRICED) else INTERIOR


def several_maxima(point: Point, known: float = math.inf) -> bool:
    """Whether it is known that other distributions fit as well: mass can move between values without changing f.

    Known needs a gap of at most `known`.

    An interior point ends in the middle of all maxima, where every value that has mass in any of them has some. If
    the rows of these values are linearly dependent, moving along the dependence leaves every f_i as it is. Rows of a
    smooth channel are nearly dependent without being so: only singular values that fall from well above
    rounding to rounding at one stroke are taken as proof.
    """
    channel = point.likelihood.channel
    held = np.flatnonzero(point.theta > HELD)
    sent = point.likelihood.sent
    if held.size < 2 or point.measured_gap > known:
        return False
    if held.size > int(np.count_nonzero(sent)):
        return True
    if held.size**2 * channel.patterns > MOST_RANKED:
        return False
    rows = channel.rows(held)[:, sent]
    norms = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    scale = np.linalg.svd(rows / norms, compute_uv=False)
    scale = scale / scale[0]
    return bool(scale[-1] < ROUNDING * held.size) and not ((scale > ROUNDING * held.size) & (scale < CLEAR)).any()
