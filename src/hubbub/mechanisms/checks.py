"""Checks of parameters that all mechanisms share."""

from __future__ import annotations

import math
import numbers

from hubbub.domains import Domain
from hubbub.errors import MechanismError, shorten

LARGEST_EPSILON = 500.0  # exp(500) is still a number; no noise is left long before


def check_epsilon(epsilon: object, mechanism: str) -> float:
    """Return epsilon as a float, or say why it cannot be one."""
    where = f"{mechanism}(epsilon=)"
    if isinstance(epsilon, bool) or not isinstance(epsilon, numbers.Real):
        raise MechanismError(
            "epsilon is not a number",
            where=where,
            got=shorten(epsilon),
            expected="a positive number",
            remedy="typical values lie between 0.1 and 10",
        )
    number = float(epsilon)
    if math.isnan(number) or number <= 0:
        remedy = (
            "with epsilon 0 every value gives the same outputs and nothing can be learned; choose a small positive one"
            if number == 0
            else "choose a positive epsilon: smaller is more private"
        )
        raise MechanismError(
            "epsilon must be positive", where=where, got=number, expected="a positive number", remedy=remedy
        )
    if number > LARGEST_EPSILON:
        raise MechanismError(
            "epsilon is so large that nothing is hidden",
            where=where,
            got=number,
            expected=f"at most {LARGEST_EPSILON:g}",
            remedy="choose a smaller epsilon, or use Cloaking if the values need not be hidden at all",
        )
    return number


def check_domain(domain: object, kind: type[Domain] | tuple[type[Domain], ...], mechanism: str, remedy: str) -> None:
    """Refuse a domain on which the mechanism is not defined."""
    if isinstance(domain, kind):
        return
    kinds = kind if isinstance(kind, tuple) else (kind,)
    names = "a domain" if kinds == (Domain,) else " or ".join(each.__name__ for each in kinds)
    raise MechanismError(
        "this mechanism needs another domain" if isinstance(domain, Domain) else "the first argument is not a domain",
        where=f"{mechanism}(domain)",
        got=shorten(domain),
        expected=names,
        remedy=remedy,
    )


ANY_DOMAIN = "build the domain first, for example hubbub.Categories(['yes', 'no'])"
