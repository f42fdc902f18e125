"""How much privacy each user spent in total, for JSON and as sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.core.text import plural
from hubbub.domains import Domain
from hubbub.estimators.result import finite
from hubbub.intake.study import Study
from hubbub.reports.privacy_accounting import Spent, is_above

QUANTILES = (0.5, 0.9, 0.99)
NOBODY_NAMED = "rows do not say who sent them: each row is counted as one person"


@dataclass(frozen=True)
class EpsilonTotal:
    """One kind of epsilon, summed up for each user: the largest sum, and quantiles over users."""

    largest: float
    quantiles: Mapping[float, float]
    above: int  # users above the study's limit


def totals(spent: Mapping[Spent, int], study: Study) -> tuple[EpsilonTotal, EpsilonTotal]:
    """Return plain epsilon, and epsilon per unit of distance: they are never added together."""
    users, (plain_limit, metric_limit) = list(spent.values()), _limits(study)
    plain = _total([sums.plain for sums in spent], users, plain_limit)
    return plain, _total([sums.metric for sums in spent], users, metric_limit)


def _limits(study: Study) -> tuple[float | None, float | None]:
    """Return the study's limits on plain epsilon and on epsilon per unit of distance, as `Spent` has them."""
    return study.max_epsilon_per_user, study.max_epsilon_per_unit


def _total(epsilons: list[float], users: list[int], limit: float | None) -> EpsilonTotal:
    """Return one kind's totals; the q-quantile is the smallest that at least a share q of the users do not exceed."""
    order = np.argsort(epsilons, kind="stable")
    ordered, counts = np.array(epsilons)[order], np.array(users)[order]
    cumulated = np.cumsum(counts)
    places = [int(np.searchsorted(cumulated, math.ceil(q * cumulated[-1]))) for q in QUANTILES]
    above = 0 if limit is None else sum(n for own, n in zip(epsilons, users, strict=True) if is_above(own, limit))
    quantiles = {q: float(ordered[place]) for q, place in zip(QUANTILES, places, strict=True)}
    return EpsilonTotal(float(ordered[-1]), quantiles, above)


def epsilon_document(spent: Mapping[Spent, int], study: Study, *, users_named: bool) -> dict[str, Any]:
    """Return what users spent, for JSON: the largest totals, quantiles, and how many are above the study's limits.

    `users_named` says whether rows named their users; otherwise each row was counted as one person.
    """
    domain: Domain = study.domain
    plain, metric = totals(spent, study)
    unbounded = math.inf in (plain.largest, metric.largest)
    notes = ["some outputs tell values apart with certainty: no epsilon bounds them"] if unbounded else []
    if not users_named:
        notes.append(NOBODY_NAMED)
    return {
        "ldp": finite(plain.largest),
        "per_unit": finite(metric.largest),
        "unit": domain.unit,
        "plain_equivalent": finite(metric.largest * domain.diameter),
        "quantiles": [
            {"share": q, "ldp": finite(plain.quantiles[q]), "per_unit": finite(metric.quantiles[q])} for q in QUANTILES
        ],
        "users_above_limit": _above(spent, study),
        "users_named": users_named,
        "note": "; ".join(notes) or None,
    }


def _above(spent: Mapping[Spent, int], study: Study) -> int | None:
    """Return how many users spent more than one of the study's limits, None where it has none."""
    limits = [(kind, limit) for kind, limit in enumerate(_limits(study)) if limit is not None]
    if not limits:
        return None
    return sum(users for sums, users in spent.items() if any(is_above(sums[kind], limit) for kind, limit in limits))


def spending_lines(spent: Mapping[Spent, int], study: Study, *, users_named: bool) -> list[str]:
    """Return sentences about what users spent; warnings start with 'warning'.

    Where rows do not name their users, nobody knows what a person spent in total: the sentences are about rows.
    """
    who = "user" if users_named else "row"
    plain, metric = totals(spent, study)
    unit = f" per {study.domain.unit}" if study.domain.unit else " per unit of distance"
    lines = []
    for total, words, limit in (
        (plain, "", study.max_epsilon_per_user),
        (metric, unit, study.max_epsilon_per_unit),
    ):
        if total.largest == 0:
            continue
        median, nearly_all = (_epsilon(total.quantiles[q]) for q in (0.5, 0.99))
        lines.append(
            f"epsilon{words} spent by a {who}: median {median}; 99% of {who}s at most {nearly_all}; "
            f"largest {_epsilon(total.largest)}"
        )
        if total.above:
            spenders = plural(total.above, who)
            lines.append(f"warning: {spenders} spent more than the study's limit of {limit:g}{words}")
    return lines if users_named or not lines else [*lines, NOBODY_NAMED]


def _epsilon(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else "unbounded"
