"""What one user spends in all: epsilons of several reports add up, plain ones and those per unit of distance apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hubbub.domains import Domain
from hubbub.estimators.result import finite
from hubbub.mechanisms import Mechanism

MOST_MIXED = 100_000  # reports that are dealt out one by one
ENDLESS = 1 << 60  # reports
Spending = Callable[[int], float]


@dataclass(frozen=True)
class Budget:
    """The most that a user spends by so many reports (None: any number of them, about one value).

    `plain` is the total if all reports are of plain epsilon, `per_unit` if all are of epsilon per unit of distance;
    None where there is no such mechanism. The two are never added; `plain_equivalent` is what the worst mix of reports
    spends if distances count as the domain's diameter, the largest there is.
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
        """Whether a user may spend more than the study's limits."""
        return any(
            spent is not None and limit is not None and spent > limit
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
            return "The number of reports of a user has no limit, and so has what a user spends in all."
        reports = (
            "any number of reports about one value"
            if self.reports is None
            else f"{self.reports:,} report{'s' * (self.reports != 1)}"
        )
        per = f"per {self.unit}" if self.unit else "per unit of distance"
        totals = []
        for spent, limit, words in ((self.plain, self.max_plain, ""), (self.per_unit, self.max_per_unit, f" {per}")):
            if spent is None:
                continue
            if not math.isfinite(spent):
                return "A single report may tell values apart: what a user spends has no bound."
            told = f"epsilon {spent:g}{words}"
            if limit is not None:
                told += f" ({'more than' if spent > limit else 'within'} the study's limit of {limit:g})"
            totals.append(told)
        text = f"A user who sends {reports} spends at most {', or '.join(totals)}."
        if self.per_unit is not None and math.isfinite(self.plain_equivalent):
            text += f" Over the whole domain that is a plain epsilon of {self.plain_equivalent:.6g}."
        return text


def budget_of(
    mechanisms: Sequence[Mechanism],
    reports: int | None,
    limits: tuple[float | None, float | None] = (None, None),
) -> Budget:
    """Return the most that a user spends who sends so many reports, each of any of these mechanisms."""
    claims = [(mechanism.spent, mechanism.metric) for mechanism in mechanisms]
    return budget_of_claims(claims, reports, mechanisms[0].domain, limits)


def budget_of_claims(
    claims: Sequence[tuple[Spending, bool]],
    reports: int | None,
    domain: Domain,
    limits: tuple[float | None, float | None] = (None, None),
) -> Budget:
    """Return the same for functions from a number of reports to what they spend, and whether that is per unit."""
    plain = [spend for spend, metric in claims if not metric]
    per_unit = [spend for spend, metric in claims if metric]

    def whole(spend: Spending) -> Spending:
        return lambda count: spend(count) * domain.diameter

    return Budget(
        reports=reports,
        plain=_worst_mix(plain, reports) if plain else None,
        per_unit=_worst_mix(per_unit, reports) if per_unit else None,
        unit=domain.unit,
        plain_equivalent=_worst_mix([*plain, *map(whole, per_unit)], reports),
        max_plain=limits[0],
        max_per_unit=limits[1],
    )


def _worst_mix(spending: Sequence[Spending], reports: int | None) -> float:
    """Return the most that `reports` reports spend, dealt out among mechanisms.

    What a further report of a mechanism costs never grows, so that the dearest next one, again and again, is the worst
    mix. Beyond `MOST_MIXED` reports each is taken to cost as much as the dearest first one. For the same reason what
    stands still once stands still for ever: it bounds any number of reports.
    """
    if reports is None:
        still = all(spend(ENDLESS) == spend(2 * ENDLESS) for spend in spending)
        return sum(spend(ENDLESS) for spend in spending) if still else math.inf
    first = max(spend(1) for spend in spending)
    if reports > MOST_MIXED or math.isinf(first):
        return reports * first
    alone = max(spend(reports) for spend in spending)
    if alone >= reports * first:
        return alone
    dealt = [0] * len(spending)
    for _ in range(reports):
        costs = [
            spend(count + 1) - spend(count) if count else spend(1) for spend, count in zip(spending, dealt, strict=True)
        ]
        dealt[costs.index(max(costs))] += 1
    return sum(spend(count) for spend, count in zip(spending, dealt, strict=True) if count)
