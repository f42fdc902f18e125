"""Checks of the keywords of `plan`; each returns the value in its plain type or raises a message that names it."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from hubbub.client import as_whole
from hubbub.core import validation
from hubbub.core.arrays import Positions, as_array, as_real
from hubbub.core.errors import DomainError, SettingError, shorten
from hubbub.domains import Domain
from hubbub.estimators.api import find_method
from hubbub.mechanisms.parameters import check_epsilon
from hubbub.planning.answers import MEDIAN

MAX_USERS = 10**12
MIN_RUNS, MAX_RUNS = 2, 1_000_000
MAX_REPORTS_PER_USER = 1_000
ROUNDING = 1e-9  # relative error allowed in a radius, and in the sum of the shares of a mixture
ALL_VALUES = "all"
DEFAULT_POWER, MIN_POWER = 0.8, 0.5


def refused(what: str, keyword: str, got: object, expected: str, remedy: str) -> SettingError:
    """Return the error for a keyword of `plan`, where "must be ..." would not say what is wrong."""
    return SettingError(what, where=f"plan({keyword}=)", got=shorten(got), expected=expected, remedy=remedy)


def as_list(value: object) -> list[object]:
    """Return the items of an iterable, or a list of the one value; a text is one value."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]


def check_users(users: object) -> tuple[int, ...]:
    """Return the numbers of users in increasing order, each once; none for None."""
    return () if users is None else tuple(sorted(set(_whole_numbers(users, "users", MAX_USERS, "such as 10_000"))))


def check_reports_per_user(reports_per_user: object) -> list[int]:
    """Return the numbers of reports per user in the given order, each once."""
    example = "such as 1 or [1, 2]"
    return list(dict.fromkeys(_whole_numbers(reports_per_user, "reports_per_user", MAX_REPORTS_PER_USER, example)))


def _whole_numbers(value: object, name: str, largest: int, example: str) -> list[int]:
    items = as_list(value)
    numbers = [number for item in items if (number := as_whole(item)) is not None and 1 <= number <= largest]
    if not numbers or len(numbers) < len(items):
        expected = f"a whole number from 1 to {largest:,}, or several"
        raise validation.wrong(value, name, "plan", expected, remedy=f"pass whole numbers, {example}")
    return numbers


def check_method(method: str) -> str:
    """Return the name of a method whose estimates have a distance to the truth: any but plain inversion."""
    if method == "inv":
        what, expected = "plain inversion gives no distribution", "a method whose estimates are distributions"
        remedy = "plan with method='inv-p', the nearest distribution, or 'inv-n'"
        raise refused(what, "method", method, expected, remedy)
    find_method(method, "plan")
    return method


def check_target(target: object, distance: str) -> float | None:
    """Return the error to reach; None stays None."""
    if target is None:
        return None
    number = as_real(target)
    if not (math.isfinite(number) and number > 0 and (distance == "emd" or number < 1)):
        expected = "a total variation between 0 and 1" if distance == "tv" else "a positive number in the domain's unit"
        raise validation.wrong(target, "target", "plan", expected, remedy="pass the largest acceptable error")
    return number


def check_difference(
    difference: object, power: object, users: tuple[int, ...], **others: tuple[object, object]
) -> tuple[float | None, float | None]:
    """Return the difference to detect and the power; None for both without a difference, for the power with users.

    `others` are keywords, each with its default: none of them has a meaning for a difference.
    """
    if difference is None:
        if power is not None:
            expected = "no power, which is the probability of detecting a difference"
            remedy = "leave power out, or pass difference=; for the least difference that users can show, try several"
            raise refused("power has no effect without a difference", "power", power, expected, remedy)
        return None, None
    for name, (value, default) in others.items():
        if value != default:
            expected = f"no {name}: what a difference takes follows from a formula, and nothing is simulated"
            remedy = f"leave {name} out, or leave difference out"
            raise refused(f"{name} has no meaning for a difference", f"difference=, {name}", value, expected, remedy)
    size = as_real(difference)
    if not (math.isfinite(size) and 0.0 < size < 1.0):
        expected = "a difference of shares between 0 and 1, such as 0.05 for 5 percentage points"
        remedy = "divide percentage points by 100; in a command, 5% will do"
        raise validation.wrong(difference, "difference", "plan", expected, remedy=remedy)
    if users:
        if power is not None:
            expected = "no power: users= and difference= decide it"
            remedy = "leave power out to learn it, or leave users out for the users per group that this power takes"
            raise refused(
                "the power follows from users and difference", "difference=, users=, power", power, expected, remedy
            )
        return size, None
    probability = DEFAULT_POWER if power is None else as_real(power)
    if not MIN_POWER <= probability < 1.0:
        expected = f"a probability from {MIN_POWER:g} up to, not including, 1"
        raise validation.wrong(power, "power", "plan", expected, default=f"{DEFAULT_POWER:g}")
    return size, probability


def check_runs(runs: object) -> int | None:
    """Return how many studies to simulate for each number; None stays None."""
    number = None if runs is None else as_whole(runs)
    if runs is not None and (number is None or not MIN_RUNS <= number <= MAX_RUNS):
        expected = f"a whole number of studies from {MIN_RUNS} to {MAX_RUNS:,}"
        raise validation.wrong(runs, "runs", "plan", expected, default="as many studies as it takes")
    return number


def check_values(values: object, domain: Domain) -> Positions | None:
    """Return the positions of the values whose interval widths are wanted, each once; None stays None."""
    if values is None:
        return None
    if isinstance(values, str) and values == ALL_VALUES and ALL_VALUES not in domain.labels.tolist():
        return np.arange(len(domain))
    try:
        return np.unique(domain.index(as_array(as_list(values))))
    except DomainError as error:
        expected = f"values of the domain ({error.expected}), or {ALL_VALUES!r}"
        raise validation.wrong(values, "values", "plan", expected, default="a representative choice") from None


def check_radius(radius: object, domain: Domain) -> None:
    """Refuse a radius that is not a distance of the domain."""
    if radius is not None and not 0.0 < as_real(radius) <= domain.diameter * (1.0 + ROUNDING):
        expected = f"a positive distance, at most the domain's diameter of {domain.diameter:g}"
        raise validation.wrong(radius, "radius", "plan", expected, default="the diameter")


def check_budgets(domain: object, epsilon: object, *, has_kinds: bool) -> list[float]:
    """Return the epsilons for kinds of mechanisms, each once; none where there are only built mechanisms."""
    if not has_kinds:
        if epsilon is not None:
            raise refused(
                "these mechanisms already have an epsilon",
                "epsilon",
                epsilon,
                "no epsilon, which is for kinds of mechanisms",
                "leave epsilon out, or pass kinds, such as 'randomized-response', to compare several epsilons",
            )
        return []
    if not isinstance(domain, Domain):
        expected = "the domain of the values, such as hubbub.Integers(0, 9)"
        raise refused("kinds of mechanisms need a domain", "domain", domain, expected, "pass domain= and epsilon=")
    budgets = as_list(epsilon)
    if epsilon is None or not budgets:
        expected = "the plain epsilon that a user spends with all reports together: one number or several"
        remedy = "pass epsilon=, such as 1.0 or [0.5, 1, 2]"
        raise refused("kinds of mechanisms need an epsilon", "epsilon", epsilon, expected, remedy)
    return list(dict.fromkeys(check_epsilon(budget, "plan") for budget in budgets))


def check_combination(
    domain: Domain, *, distance: str, radius: object, is_metric: bool, confidence: float, target: float | None
) -> None:
    """Refuse keywords that have no meaning together."""
    if distance == "emd" and domain.unit is None:
        expected = "'tv': the earth mover's distance needs values with distances"
        raise refused("these values have no distances", "distance", distance, expected, "leave distance out")
    if radius is not None and not is_metric:
        expected = "no radius: no epsilon here is per unit of distance"
        raise refused("radius has no effect here", "radius", radius, expected, "leave radius out")
    if target is None and confidence != MEDIAN:
        expected = "no confidence, which is the share of studies that reach the target"
        remedy = "leave confidence out, or pass target="
        raise refused("confidence has no effect without a target", "confidence", confidence, expected, remedy)
