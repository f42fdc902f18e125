"""Checks of parameters that all mechanisms share."""

from __future__ import annotations

import math

from hubbub.client import LARGEST_EPSILON, MAX_NATS, SMALLEST_EPSILON, SMALLEST_RATE, SMALLEST_STEP
from hubbub.core.arrays import as_real
from hubbub.core.errors import MechanismError, shorten
from hubbub.domains import Domain, Subset


def check_epsilon(epsilon: object, mechanism: str, name: str = "epsilon") -> float:
    """Return an epsilon, under the name it has there, as a float, or say why it cannot be one."""
    where = f"{mechanism}({name}=)"
    number = as_real(epsilon)
    if math.isnan(number):
        raise MechanismError(
            f"{name} is not a number",
            where=where,
            got=shorten(epsilon),
            expected="a positive number",
            remedy="typical values lie between 0.1 and 10",
        )
    if number <= 0:
        remedy = (
            f"with {name} 0 every value gives the same outputs and nothing can be learned; choose a small positive one"
            if number == 0
            else f"choose a positive {name}: smaller is more private"
        )
        raise MechanismError(
            f"{name} must be positive", where=where, got=shorten(epsilon), expected="a positive number", remedy=remedy
        )
    if number < SMALLEST_EPSILON:
        raise MechanismError(
            f"{name} is so small that nothing can be learned",
            where=where,
            got=shorten(epsilon),
            expected=f"at least {SMALLEST_EPSILON:g}",
            remedy=f"choose a larger {name}; where it is per unit of distance, a larger unit helps",
        )
    if number > LARGEST_EPSILON:
        raise MechanismError(
            f"{name} is so large that nothing is hidden",
            where=where,
            got=shorten(epsilon),
            expected=f"at most {LARGEST_EPSILON:g}",
            remedy=f"choose a smaller {name}, or use Cloaking if the values need not be hidden at all",
        )
    return number


def check_domain(domain: object, kind: type[Domain] | tuple[type[Domain], ...], mechanism: str, remedy: str) -> None:
    """Refuse a domain on which the mechanism is not defined."""
    if isinstance(domain, Subset):
        raise MechanismError(
            "a mechanism needs a whole domain",
            where=f"{mechanism}(domain)",
            got=shorten(domain),
            expected="a domain that is not restricted",
            remedy="restrict reports, not mechanisms; for fewer values build a domain of their own",
        )
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


def check_reach(rate: float, mechanism: str) -> None:
    """Refuse noise on an endless line or map that would take forever to draw."""
    if rate < SMALLEST_RATE:
        raise MechanismError(
            "epsilon is so small that the noise has no end",
            where=f"{mechanism}.privatize",
            got=f"epsilon {rate:g} for one step",
            expected=f"at least {SMALLEST_RATE:g}",
            remedy="choose a larger epsilon or larger steps; to simulate, pass rng=",
        )


def check_exact(nearest: float, farthest: float, mechanism: str) -> None:
    """Refuse exact probabilities that would need endless digits; epsilon times the distances is given."""
    if nearest < SMALLEST_STEP or farthest > MAX_NATS:
        small = nearest < SMALLEST_STEP
        raise MechanismError(
            "the values are too close for exact probabilities" if small else "there is no noise left to draw exactly",
            where=f"{mechanism}.privatize",
            got=f"epsilon times the distance {nearest if small else farthest:g}",
            expected=f"from {SMALLEST_STEP:g} to {MAX_NATS:,.0f}",
            remedy=f"choose a {'larger' if small else 'smaller'} epsilon: it is per unit of distance, so that the unit "
            "matters; to simulate, pass rng=",
        )


DOMAIN_REMEDY = "build the domain first, for example hubbub.Categories(['yes', 'no'])"
