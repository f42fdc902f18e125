"""How much privacy users spent in all, in numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub.domains import Domain
from hubbub.estimation.result import finite
from hubbub.intake.study import Study
from hubbub.reports.spending import Spent

QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Total:
    """The total of one kind of epsilon over users: the largest, and quantiles."""

    largest: float
    quantiles: Mapping[float, float]
    above: int  # users above the study's limit


def totals(spent: Mapping[Spent, int], study: Study) -> tuple[Total, Total]:
    """Return plain epsilon, and epsilon per unit of distance: they are never added together."""
    limits = study.max_epsilon_per_user, study.max_epsilon_per_unit
    return (
        _total([one.plain for one in spent], list(spent.values()), limits[0]),
        _total([one.metric for one in spent], list(spent.values()), limits[1]),
    )


def _total(epsilons: list[float], users: list[int], limit: float | None) -> Total:
    """Return one kind's totals; the q-quantile is the smallest that at least a share q of the users do not exceed."""
    order = np.argsort(epsilons, kind="stable")
    sorted_, counts = np.array(epsilons)[order], np.array(users)[order]
    upto = np.cumsum(counts)
    places = [int(np.searchsorted(upto, math.ceil(q * upto[-1]))) for q in QUANTILES]
    above = 0 if limit is None else int(counts[sorted_ > limit].sum())
    quantiles = {q: float(sorted_[place]) for q, place in zip(QUANTILES, places, strict=True)}
    return Total(float(sorted_[-1]), quantiles, above)


def epsilon_document(spent: Mapping[Spent, int], study: Study) -> dict[str, Any]:
    """Return what users spent, for JSON: the largest totals, quantiles, and what is above the study's limits."""
    domain: Domain = study.domain
    plain, metric = totals(spent, study)
    unbounded = math.inf in (plain.largest, metric.largest)
    return {
        "ldp": finite(plain.largest),
        "per_unit": finite(metric.largest),
        "unit": domain.unit,
        "plain_equivalent": finite(metric.largest * domain.diameter),
        "quantiles": [
            {"share": q, "ldp": finite(plain.quantiles[q]), "per_unit": finite(metric.quantiles[q])} for q in QUANTILES
        ],
        "users_above_limit": _above(spent, study),
        "note": "some outputs tell values apart with certainty: no epsilon bounds them" if unbounded else None,
    }


def _above(spent: Mapping[Spent, int], study: Study) -> int | None:
    """Return how many users spent more than one of the study's limits, None where it has none."""
    plain, metric = study.max_epsilon_per_user, study.max_epsilon_per_unit
    if plain is None and metric is None:
        return None
    most = Spent(math.inf if plain is None else plain, math.inf if metric is None else metric)
    return sum(users for one, users in spent.items() if one.plain > most.plain or one.metric > most.metric)


def in_words(spent: Mapping[Spent, int], study: Study) -> list[str]:
    """Return sentences about what users spent; warnings start with 'warning'."""
    plain, metric = totals(spent, study)
    unit = f" per {study.domain.unit}" if study.domain.unit else " per unit of distance"
    lines = []
    for total, words, limit in (
        (plain, "", study.max_epsilon_per_user),
        (metric, unit, study.max_epsilon_per_unit),
    ):
        if total.largest == 0:
            continue
        median, most = (total.quantiles[q] for q in (0.5, 0.99))
        lines.append(
            f"epsilon{words} that a user spent in all: {_epsilon(median)} (median), {_epsilon(most)} (99 of 100 users "
            f"at most), {_epsilon(total.largest)} (most)"
        )
        if total.above:
            lines.append(
                f"warning: {total.above:,} user{'s' * (total.above != 1)} spent more than the study's limit of "
                f"{limit:g}{words}"
            )
    return lines


def _epsilon(value: float) -> str:
    return f"{value:g}" if math.isfinite(value) else "unbounded"
