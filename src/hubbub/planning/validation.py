"""What may be asked of a plan: each keyword checked, with a message that names it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from hubbub.core.arrays import Positions, as_array, as_integer, as_real
from hubbub.core.errors import DomainError, SettingError, shorten
from hubbub.domains import Domain
from hubbub.estimators.api import METHODS
from hubbub.planning.candidates import Candidate
from hubbub.planning.question import DISTANCES

MOST_USERS = 10**12
MOST_RUNS = 1_000_000
HALF = 0.5  # of the studies: the median
ALL = "all"


def check_users(users: object, where: str = "plan(users=)") -> tuple[int, ...]:
    """Return numbers of users in order, each once; none where none are given."""
    if users is None:
        return ()
    several = isinstance(users, Iterable) and not isinstance(users, str | bytes)
    given = list(users) if several else [users]  # type: ignore[call-overload]
    expected = "a whole number from 1, or several"
    counts = [as_integer(one, SettingError, where=where, expected=expected) for one in given]
    if not counts or min(counts) < 1 or max(counts) > MOST_USERS:
        raise SettingError(
            "not a number of users",
            where=where,
            got=shorten(given),
            expected=f"{expected}, at most {MOST_USERS:,}",
            remedy="pass how many people will report, such as 10_000",
        )
    return tuple(sorted(set(counts)))


def check_values(values: object, domain: Domain) -> Positions | None:
    """Return the positions of the values whose widths are wanted, each once; None: a choice that suits their number."""
    if values is None:
        return None
    if isinstance(values, str) and values == ALL and ALL not in domain.labels.tolist():
        return np.arange(len(domain))
    several = isinstance(values, Iterable) and not isinstance(values, str | bytes)
    try:
        found = domain.index(as_array(list(values) if several else [values]))  # type: ignore[call-overload]
    except DomainError as error:
        raise SettingError(
            "not values of the domain",
            where="plan(values=)",
            got=shorten(values),
            expected=f"{error.expected}, several of these, or {ALL!r}",
            remedy="pass labels of the domain, or leave values out",
        ) from None
    return np.unique(found)


def check_distance(distance: object) -> None:
    """Refuse what is no distance of a plan."""
    if not isinstance(distance, str) or distance not in DISTANCES:
        raise SettingError(
            "no such distance",
            where="plan(distance=)",
            got=shorten(distance),
            expected="'tv' (total variation) or 'emd' (earth mover's distance)",
            remedy="leave distance out for 'tv'",
        )


def check_target(target: object, distance: str) -> float | None:
    """Return the error to reach, None where none is given."""
    check_distance(distance)
    if target is None:
        return None
    number = as_real(target)
    if not (math.isfinite(number) and number > 0 and (distance == "emd" or number < 1)):
        raise SettingError(
            "the target is no error that could be reached",
            where="plan(target=)",
            got=shorten(target),
            expected="a number between 0 and 1" if distance == "tv" else "a positive number, in the domain's unit",
            remedy="pass the largest error that is acceptable, such as 0.05",
        )
    return number


def check_method(method: object) -> None:
    """Refuse what is no method of `estimate`."""
    if not isinstance(method, str) or method not in METHODS:
        raise SettingError(
            "no such method",
            where="plan(method=)",
            got=shorten(method),
            expected=", ".join(map(repr, METHODS)),
            remedy="leave method out for 'auto'",
        )


def check_runs(runs: object) -> int:
    """Return how many studies to simulate."""
    expected = f"a whole number from 2 to {MOST_RUNS:,}"
    number = as_integer(runs, SettingError, where="plan(runs=)", expected=expected)
    if not 2 <= number <= MOST_RUNS:
        raise SettingError(
            "too few studies" if number < 2 else "too many studies",
            where="plan(runs=)",
            got=shorten(runs),
            expected=expected,
            remedy="leave runs out: as many are simulated as it takes",
        )
    return number


def check_meaning(
    candidates: Sequence[Candidate],
    *,
    radius: object,
    confidence: float,
    target: float | None,
) -> None:
    """Refuse keywords that would mean nothing here."""
    if radius is not None and all(one.privacy.per_unit is None for one in candidates):
        raise SettingError(
            "radius means nothing here",
            where="plan(radius=)",
            got=shorten(radius),
            expected="no radius: no epsilon here is per unit of distance",
            remedy="leave radius out",
        )
    if target is None and confidence != HALF:
        raise SettingError(
            "confidence means nothing without a target",
            where="plan(confidence=)",
            got=shorten(confidence),
            expected="no confidence: it is the share of studies that reach the target",
            remedy="leave confidence out, or pass target=",
        )
