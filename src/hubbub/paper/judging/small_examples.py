"""Judge claims about the paper's small examples: exact fractions, certificates, and EM itself."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.estimators import optimality_gap
from hubbub.identifiability import identify
from hubbub.metrics import total_variation
from hubbub.paper.claims import Claim
from hubbub.paper.figure_specs import Figure
from hubbub.paper.judging.finding import FAILS, HOLDS, Finding, number, undecided
from hubbub.paper.likelihood_surfaces import Surface, surfaces_of
from hubbub.paper.results import Results
from hubbub.rendering import upper_text

MIDDLE_CORNER = (0.0, 1.0, 0.0)
BOTH_ENDS = (0.5, 0.0, 0.5)
MAX_ROUNDING_GAP = 1e-9  # nats per user: a certified gap this small is rounding
MIN_DISTANCE = 0.01  # total variation: answers this far from each other are different
EM_UPDATES = 4_000  # updates of EM


def ridge(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:  # noqa: ARG001  # called alike
    """Judge whether the likelihood has many maxima, and EM finds another one from every start."""
    surface = surfaces_of(figures[claim.figure])[0]
    known = identify(surface.reports)
    gaps = {point: optimality_gap(surface.reports, point) for point in (MIDDLE_CORNER, BOTH_ENDS)}
    limits = _limits(surface)
    nearest = min(total_variation(a, b) for place, a in enumerate(limits) for b in limits[:place])
    several = not known.unique and known.dimension == 1 and max(gaps.values()) <= MAX_ROUNDING_GAP
    details = (
        ("maxima", f"unique: {known.unique}; dimension of the set of maxima: {known.dimension}"),
        *((f"certified gap at {_point_text(point)}", upper_text(gap)) for point, gap in gaps.items()),
        *(
            (f"EM from {_point_text(start)}", f"ends at {_point_text(end)}")
            for start, end in zip(surface.starts, limits, strict=True)
        ),
    )
    measured = (
        f"the maxima form a set of dimension {known.dimension}; (0, 1, 0) and (1/2, 0, 1/2) have certified gaps of "
        f"at most {upper_text(gaps[MIDDLE_CORNER])} and {upper_text(gaps[BOTH_ENDS])}; from {len(limits)} starts, EM "
        f"ends at points that are at least {number(nearest)} apart in total variation"
    )
    return Finding(claim, HOLDS if several and nearest >= MIN_DISTANCE else FAILS, measured, details)


def ideal(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:  # noqa: ARG001  # called alike
    """Judge whether EM misses the truth (0, 1, 0) though outputs have exactly the truth's frequencies."""
    surface = surfaces_of(figures[claim.figure])[0]
    total = sum(surface.counts)
    if tuple(Fraction(count, total) for count in surface.counts) != surface.matrix[1]:
        return undecided(claim, "the observations are not ideal: their frequencies are not those of the middle row")
    limits = _limits(surface)
    missed = [total_variation(limit, MIDDLE_CORNER) for limit in limits]
    to_ends = [total_variation(limit, BOTH_ENDS) for limit in limits]
    details = (
        *(
            (f"EM from {_point_text(start)}", f"ends at {_point_text(end)}")
            for start, end in zip(surface.starts, limits, strict=True)
        ),
        (
            "the paper's instance",
            f"(1/2, 0, 1/2) is not reached: EM never lowers the middle value; nearest {number(min(to_ends))}",
        ),
    )
    measured = f"EM ends {number(min(missed))} to {number(max(missed))} from (0, 1, 0), from {len(missed)} starts"
    return Finding(claim, HOLDS if max(missed) >= MIN_DISTANCE else FAILS, measured, details)


def only_maximum(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:  # noqa: ARG001
    """Judge whether (0, 1, 0) is the only maximum for the first observations."""
    judged = []
    for surface in surfaces_of(figures[claim.figure]):
        known, gap = identify(surface.reports), optimality_gap(surface.reports, MIDDLE_CORNER)
        judged.append((surface.name, bool(known.unique) and gap <= MAX_ROUNDING_GAP, known.unique, gap))
    details = tuple(
        (name, f"gap at (0, 1, 0): at most {upper_text(gap)}; only one: {unique}") for name, _, unique, gap in judged
    )
    name, _, only, gap = judged[0]
    measured = f"certified gap at (0, 1, 0) for {name}: at most {upper_text(gap)}; only one maximum: {only}"
    return Finding(claim, HOLDS if judged[0][1] else FAILS, measured, details)


def derivatives(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:  # noqa: ARG001
    """Judge whether the derivatives at (0, 1, 0) are -1/2, by exact fractions."""
    slopes = [(surface.name, tuple(surface.slopes_at(1).values())) for surface in surfaces_of(figures[claim.figure])]
    details = tuple((name, f"at (0, 1, 0): {first} and {third}") for name, (first, third) in slopes)
    measured = "; ".join(f"{name}: {first} and {third}" for name, (first, third) in slopes)
    holds = slopes[0][1] == (Fraction(-1, 2), Fraction(-1, 2))
    return Finding(claim, HOLDS if holds else FAILS, f"derivatives at (0, 1, 0), exactly: {measured}", details)


def border(claim: Claim, figures: Mapping[str, Figure], results: Results) -> Finding:  # noqa: ARG001  # called alike
    """Judge whether EM tends to a distribution with zeros: the only maximum has them, and EM keeps approaching it."""
    surface = surfaces_of(figures[claim.figure])[0]
    steps = (EM_UPDATES // 100, EM_UPDATES // 10, EM_UPDATES)
    ends = [_limits(surface, step) for step in steps]
    left = {
        start: [total_variation(end, MIDDLE_CORNER) for end in row]
        for start, row in zip(surface.starts, zip(*ends, strict=True), strict=True)
    }
    falls = all(row[2] < row[1] / 2 < row[0] / 4 for row in left.values())
    only = identify(surface.reports).unique and optimality_gap(surface.reports, MIDDLE_CORNER) <= MAX_ROUNDING_GAP
    said = ", ".join(f"{step:,}" for step in steps)
    details = tuple(
        (
            f"EM from {_point_text(start)}",
            f"distance from (0, 1, 0) after {said} updates: {', '.join(map(number, row))}",
        )
        for start, row in left.items()
    )
    worst = max(left.values(), key=lambda row: row[2])
    measured = f"distance of EM from (0, 1, 0) after {said} updates: at most {', '.join(map(number, worst))}"
    return Finding(claim, HOLDS if only and falls else FAILS, measured, details)


def _limits(surface: Surface, updates: int = EM_UPDATES) -> list[Floats]:
    """Return where EM is after many updates, from each start: the paper's rule for stopping would come too soon."""
    return [surface.em_way(start, updates)[-1] for start in surface.starts]


def _point_text(point: object) -> str:
    return f"({', '.join(f'{value:.3g}' for value in np.asarray(point, dtype=np.float64))})"
