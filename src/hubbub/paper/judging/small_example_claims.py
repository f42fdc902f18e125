"""Judge claims about the paper's small examples: exact fractions, certificates, and EM itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.estimators import optimality_gap
from hubbub.identifiability import identify
from hubbub.metrics import total_variation
from hubbub.paper.judging.claim_evidence import FAILS, HOLDS, ClaimEvidence, Finding, number
from hubbub.paper.likelihood_surfaces import Surface, surfaces_of
from hubbub.rendering import upper_text

MIDDLE_CORNER = (0.0, 1.0, 0.0)
BOTH_ENDS = (0.5, 0.0, 0.5)
MAX_ROUNDING_GAP = 1e-9  # nats per user: a certified gap this small is rounding
MIN_DISTANCE = 0.01  # total variation: answers this far from each other are different
EM_UPDATES = 4_000  # updates of EM


def ridge(evidence: ClaimEvidence) -> Finding:
    """Judge whether the likelihood has many maxima, and EM finds another one from every start."""
    surface = surfaces_of(evidence.figure)[0]
    known = identify(surface.reports)
    gaps = {point: optimality_gap(surface.reports, point) for point in (MIDDLE_CORNER, BOTH_ENDS)}
    limits = _limits(surface)
    nearest = min(total_variation(a, b) for place, a in enumerate(limits) for b in limits[:place])
    several = not known.unique and known.dimension == 1 and max(gaps.values()) <= MAX_ROUNDING_GAP
    details = (
        ("maxima", f"unique: {known.unique}; dimension of the set of maxima: {known.dimension}"),
        *((f"certified gap at {_point_text(point)}", upper_text(gap)) for point, gap in gaps.items()),
        *_ends(surface, limits),
    )
    measured = (
        f"the maxima form a set of dimension {known.dimension}; (0, 1, 0) and (1/2, 0, 1/2) have certified gaps of "
        f"at most {upper_text(gaps[MIDDLE_CORNER])} and {upper_text(gaps[BOTH_ENDS])}; from {len(limits)} starts, EM "
        f"ends at points that are at least {number(nearest)} apart in total variation"
    )
    return evidence.finding(HOLDS if several and nearest >= MIN_DISTANCE else FAILS, measured, details)


def ideal(evidence: ClaimEvidence) -> Finding:
    """Judge whether EM misses the truth (0, 1, 0) though outputs have exactly the truth's frequencies."""
    surface = surfaces_of(evidence.figure)[0]
    total = sum(surface.counts)
    if tuple(Fraction(count, total) for count in surface.counts) != surface.matrix[1]:
        return evidence.undecided("the observations are not ideal: their frequencies are not those of the middle row")
    limits = _limits(surface)
    missed = [total_variation(limit, MIDDLE_CORNER) for limit in limits]
    to_ends = [total_variation(limit, BOTH_ENDS) for limit in limits]
    instance = f"(1/2, 0, 1/2) is not reached: EM never lowers the middle value; nearest {number(min(to_ends))}"
    details = (*_ends(surface, limits), ("the paper's instance", instance))
    measured = f"EM ends {number(min(missed))} to {number(max(missed))} from (0, 1, 0), from {len(missed)} starts"
    return evidence.finding(HOLDS if max(missed) >= MIN_DISTANCE else FAILS, measured, details)


def only_maximum(evidence: ClaimEvidence) -> Finding:
    """Judge whether (0, 1, 0) is the only maximum for the first observations."""
    surfaces = surfaces_of(evidence.figure)
    known = [(identify(surface.reports).unique, optimality_gap(surface.reports, MIDDLE_CORNER)) for surface in surfaces]
    details = [
        (surface.name, f"gap at (0, 1, 0): at most {upper_text(gap)}; only one: {unique}")
        for surface, (unique, gap) in zip(surfaces, known, strict=True)
    ]
    unique, gap = known[0]
    measured = (
        f"certified gap at (0, 1, 0) for {surfaces[0].name}: at most {upper_text(gap)}; only one maximum: {unique}"
    )
    return evidence.finding(HOLDS if unique and gap <= MAX_ROUNDING_GAP else FAILS, measured, details)


def derivatives(evidence: ClaimEvidence) -> Finding:
    """Judge whether the derivatives at (0, 1, 0) are -1/2, by exact fractions."""
    slopes = [(surface.name, tuple(surface.slopes_at(1).values())) for surface in surfaces_of(evidence.figure)]
    details = tuple((name, f"at (0, 1, 0): {first} and {third}") for name, (first, third) in slopes)
    measured = "; ".join(f"{name}: {first} and {third}" for name, (first, third) in slopes)
    holds = slopes[0][1] == (Fraction(-1, 2), Fraction(-1, 2))
    return evidence.finding(HOLDS if holds else FAILS, f"derivatives at (0, 1, 0), exactly: {measured}", details)


def border(evidence: ClaimEvidence) -> Finding:
    """Judge whether EM tends to a distribution with zeros: the only maximum has them, and EM keeps approaching it."""
    surface = surfaces_of(evidence.figure)[0]
    steps = (EM_UPDATES // 100, EM_UPDATES // 10, EM_UPDATES)
    ends = [_limits(surface, step) for step in steps]
    left = {
        start: [total_variation(end, MIDDLE_CORNER) for end in row]
        for start, row in zip(surface.starts, zip(*ends, strict=True), strict=True)
    }
    falls = all(row[2] < row[1] / 2 < row[0] / 4 for row in left.values())
    only = identify(surface.reports).unique and optimality_gap(surface.reports, MIDDLE_CORNER) <= MAX_ROUNDING_GAP
    after = f"after {', '.join(f'{step:,}' for step in steps)} updates"
    details = [
        (f"EM from {_point_text(start)}", f"distance from (0, 1, 0) {after}: {', '.join(map(number, row))}")
        for start, row in left.items()
    ]
    worst = max(left.values(), key=lambda row: row[2])
    measured = f"distance of EM from (0, 1, 0) {after}: at most {', '.join(map(number, worst))}"
    return evidence.finding(HOLDS if only and falls else FAILS, measured, details)


def _limits(surface: Surface, updates: int = EM_UPDATES) -> list[Floats]:
    """Return where EM is after many updates, from each start: the paper's rule for stopping would come too soon."""
    return [surface.em_iterates(start, updates)[-1] for start in surface.starts]


def _ends(surface: Surface, limits: list[Floats]) -> list[tuple[str, str]]:
    return [
        (f"EM from {_point_text(start)}", f"ends at {_point_text(end)}")
        for start, end in zip(surface.starts, limits, strict=True)
    ]


def _point_text(point: object) -> str:
    return f"({', '.join(f'{value:.3g}' for value in np.asarray(point, dtype=np.float64))})"


CHECKS = (ridge, ideal, only_maximum, derivatives, border)
