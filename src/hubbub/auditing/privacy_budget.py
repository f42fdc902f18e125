"""The total epsilon that one user can spend; plain epsilon and epsilon per unit of distance are never added."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hubbub.core.text import plural
from hubbub.domains import Domain
from hubbub.estimators.result import finite
from hubbub.mechanisms import Mechanism
from hubbub.reports.privacy_accounting import is_above

MAX_MIXED_REPORTS = 100_000  # reports that are assigned to mechanisms one by one
UNLIMITED_REPORTS = 1 << 60
Spending = Callable[[int], float]  # the epsilon that a number of reports spends


@dataclass(frozen=True)
class Budget:
    """The most that a user spends with `reports` reports (None: any number of them, about one value).

    `plain` is the total if all reports have plain epsilon, `per_unit` if all have epsilon per unit of distance; None
    if there is no such mechanism. The two are never added. `plain_equivalent` is what the worst mix of reports spends
    if every distance counts as the domain's diameter, the largest there is.
    """

    reports: int | None
    plain: float | None
    per_unit: float | None
    unit: str | None
    plain_equivalent: float
    max_plain: float | None = None
    max_per_unit: float | None = None

    @property
    def exceeded(self) -> bool:
        """Whether a user can spend more than the study's limits."""
        return any(
            spent is not None and limit is not None and is_above(spent, limit)
            for spent, limit in ((self.plain, self.max_plain), (self.per_unit, self.max_per_unit))
        )

    def document(self) -> dict[str, Any]:
        """Return the budget for JSON; what has no bound is null."""
        return {
            "reports_per_user": self.reports,
            "ldp": None if self.plain is None else finite(self.plain),
            "per_unit": None if self.per_unit is None else finite(self.per_unit),
            "unit": self.unit,
            "plain_equivalent": finite(self.plain_equivalent),
            "bounded": math.isfinite(self.plain_equivalent),
            "max_epsilon_per_user": self.max_plain,
            "max_epsilon_per_unit": self.max_per_unit,
            "exceeded": self.exceeded,
        }

    def explain(self) -> str:
        """Return the budget in sentences."""
        if self.reports is None and math.isinf(self.plain_equivalent):
            return "With no limit on reports per user, there is no limit on the epsilon that a user spends."
        per_unit = f" per {self.unit}" if self.unit else " per unit of distance"
        totals = []
        for spent, limit, unit in ((self.plain, self.max_plain, ""), (self.per_unit, self.max_per_unit, per_unit)):
            if spent is None:
                continue
            if not math.isfinite(spent):
                return "A single report can rule out values: there is no bound on the epsilon that a user spends."
            total = f"epsilon {spent:g}{unit}"
            if limit is not None:
                total += f" ({'more than' if is_above(spent, limit) else 'within'} the study's limit of {limit:g})"
            totals.append(total)
        reports = "any number of reports about one value" if self.reports is None else plural(self.reports, "report")
        text = f"A user who sends {reports} spends at most {', or '.join(totals)}."
        if self.per_unit is not None and math.isfinite(self.plain_equivalent):
            text += f" Across the whole domain, that is a plain epsilon of {self.plain_equivalent:.6g}."
        return text


def privacy_budget(
    mechanisms: Sequence[Mechanism],
    reports: int | None,
    limits: tuple[float | None, float | None] = (None, None),
) -> Budget:
    """Return the most that a user spends with `reports` reports, each by any of these mechanisms."""
    spending = [(mechanism.spent, mechanism.metric) for mechanism in mechanisms]
    return budget_from_spending(spending, reports, mechanisms[0].domain, limits)


def budget_from_spending(
    spending: Sequence[tuple[Spending, bool]],
    reports: int | None,
    domain: Domain,
    limits: tuple[float | None, float | None] = (None, None),
) -> Budget:
    """Return the budget for spending functions, each with whether its epsilon is per unit of distance."""
    plain = [spend for spend, metric in spending if not metric]
    per_unit = [spend for spend, metric in spending if metric]

    def over_diameter(spend: Spending) -> Spending:
        return lambda count: spend(count) * domain.diameter

    return Budget(
        reports=reports,
        plain=_largest_total(plain, reports) if plain else None,
        per_unit=_largest_total(per_unit, reports) if per_unit else None,
        unit=domain.unit,
        plain_equivalent=_largest_total([*plain, *map(over_diameter, per_unit)], reports),
        max_plain=limits[0],
        max_per_unit=limits[1],
    )


def _largest_total(spending: Sequence[Spending], reports: int | None) -> float:
    """Return the most that `reports` reports spend, in the worst mix of mechanisms.

    What a further report by the same mechanism costs mostly never grows, so that the worst mix takes the dearest next
    report again and again. Where it grows for a while, as for two reports from one permanent response, the least
    concave function above the costs takes their place: the total is then an upper bound, unless there is but one
    mechanism. Beyond `MAX_MIXED_REPORTS` reports, mechanisms whose total is bounded are taken to spend all of it, and
    each report by another as much as the dearest first one. A total that no longer grows never grows again.
    """
    bounded = [spend(UNLIMITED_REPORTS) == spend(2 * UNLIMITED_REPORTS) for spend in spending]
    if reports is None:
        return sum(spend(UNLIMITED_REPORTS) for spend in spending) if all(bounded) else math.inf
    firsts = [spend(1) for spend in spending]
    if len(spending) == 1 or math.isinf(max(firsts)):
        return max(spend(reports) for spend in spending)
    if all(spend(reports) == reports * first for spend, first in zip(spending, firsts, strict=True)):
        return reports * max(firsts)
    if reports > MAX_MIXED_REPORTS:
        dearest = max((first for first, limit in zip(firsts, bounded, strict=True) if not limit), default=0.0)
        limited = sum(spend(reports) for spend, limit in zip(spending, bounded, strict=True) if limit)
        return limited + reports * dearest
    costs = [cost for spend in spending for cost in _falling_costs([spend(count) for count in range(reports + 1)])]
    return math.fsum(sorted(costs, reverse=True)[:reports])


def _falling_costs(totals: Sequence[float]) -> list[float]:
    """Return what each further report costs by the least concave function above the totals of 0, 1, ... reports."""
    corners = [0]
    for count, total in enumerate(totals):
        while len(corners) > 1 and _slope(totals, corners[-2], corners[-1]) <= (
            (total - totals[corners[-1]]) / max(1, count - corners[-1])
        ):
            corners.pop()
        if count:
            corners.append(count)
    return [_slope(totals, start, end) for start, end in pairwise(corners) for _ in range(start, end)]


def _slope(totals: Sequence[float], start: int, end: int) -> float:
    return (totals[end] - totals[start]) / (end - start)
