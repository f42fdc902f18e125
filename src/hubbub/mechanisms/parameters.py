"""Checks of parameters that all mechanisms share."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from hubbub.client import (
    MAX_EPSILON,
    MAX_NATS,
    MIN_EPSILON,
    MIN_NOISE_RATE,
    MIN_STEP_NATS,
    as_probability,
    epsilon_of_ratio,
)
from hubbub.core.arrays import as_real
from hubbub.core.errors import MechanismError, shorten
from hubbub.domains import Bins, Domain, Integers, LineDomain

Probability = float | Fraction | Decimal | str  # taken exactly as it is written: 0.7 is 7/10, "1/6" is a sixth

DOMAIN_REMEDY = "build the domain first, for example hubbub.Categories(['yes', 'no'])"


def check_epsilon(epsilon: object, mechanism: str, name: str = "epsilon") -> float:
    """Return an epsilon as a float, or say why it cannot be one; `name` is the parameter's."""
    number, expected = as_real(epsilon), "a positive number"
    if MIN_EPSILON <= number <= MAX_EPSILON:
        return number
    if math.isnan(number):
        what, remedy = f"{name} is not a number", "typical values lie between 0.1 and 10"
    elif number == 0:
        what, remedy = f"{name} must be positive", f"with {name} 0 nothing can be learned: choose a small positive one"
    elif number < 0:
        what, remedy = f"{name} must be positive", f"choose a positive {name}: smaller is more private"
    elif number < MIN_EPSILON:
        what, expected = f"{name} is so small that nothing can be learned", f"at least {MIN_EPSILON:g}"
        remedy = f"choose a larger {name}; where it is per unit of distance, a larger unit helps"
    else:
        what, expected = f"{name} is so large that nothing is hidden", f"at most {MAX_EPSILON:g}"
        remedy = f"choose a smaller {name}, or use Cloaking if the values need not be hidden at all"
    raise MechanismError(what, where=f"{mechanism}({name}=)", got=shorten(epsilon), expected=expected, remedy=remedy)


def check_probability(value: object, mechanism: str, name: str) -> Fraction:
    """Return a probability exactly as it is written, or say why it cannot be one; `name` is the parameter's."""
    probability = as_probability(value)
    if probability is not None:
        return probability
    what, expected = f"{name} is not a probability", "a number from 0 to 1, or a fraction such as '1/6'"
    remedy = "divide a percentage by 100; write a fraction of at most 60 digits"
    raise MechanismError(what, where=f"{mechanism}({name}=)", got=shorten(value), expected=expected, remedy=remedy)


def check_ratio(ratio: Fraction | None, where: str) -> float:
    """Return the epsilon of the largest ratio of probabilities, infinity for None; refuse one that is out of range."""
    epsilon = epsilon_of_ratio(ratio)
    if ratio is None or MIN_EPSILON <= epsilon <= MAX_EPSILON:
        return epsilon
    small = epsilon < MIN_EPSILON
    why = "close that nothing can be learned" if small else "far apart that nothing is hidden"
    raise MechanismError(
        f"the probabilities of an answer are so {why}",
        where=where,
        got=f"epsilon {epsilon:g}",
        expected=f"an epsilon of at {f'least {MIN_EPSILON:g}' if small else f'most {MAX_EPSILON:g}'}",
        remedy="choose probabilities that differ more" if small else "choose probabilities further from 0 and 1",
    )


def check_domain(domain: object, kind: type[Domain] | tuple[type[Domain], ...], mechanism: str, remedy: str) -> None:
    """Refuse a domain on which the mechanism is not defined."""
    where = f"{mechanism}(domain)"
    if isinstance(domain, Domain) and domain.among is not None:
        what, expected = "a mechanism needs a whole domain", "a domain that is not restricted"
        remedy = "restrict reports, not mechanisms; for fewer values build a smaller domain"
        raise MechanismError(what, where=where, got=shorten(domain), expected=expected, remedy=remedy)
    if isinstance(domain, kind):
        return
    known = isinstance(domain, Domain)
    what = "this mechanism needs another domain" if known else "the first argument is not a domain"
    kinds = kind if isinstance(kind, tuple) else (kind,)
    expected = "a domain" if kinds == (Domain,) else " or ".join(each.__name__ for each in kinds)
    raise MechanismError(what, where=where, got=shorten(domain), expected=expected, remedy=remedy)


def check_even_line(domain: LineDomain, mechanism: str) -> None:
    """Refuse a domain that is no line of evenly spaced values."""
    remedy = "use Integers or Bins; for unordered values there is RandomizedResponse"
    check_domain(domain, (Integers, Bins), mechanism, remedy)
    if domain.step is None:
        raise MechanismError(
            "this mechanism needs an evenly spaced line",
            where=f"{mechanism}(domain)",
            got="bins of several widths",
            expected="Integers, or Bins of one width",
            remedy="use bins of one width, or SquareWave for the whole distribution",
        )


def check_reach(rate: float, mechanism: str) -> None:
    """Refuse noise on an endless line or map that would take forever to draw."""
    if rate < MIN_NOISE_RATE:
        what, where = "epsilon is too small: the noise would take forever to draw", f"{mechanism}.privatize"
        got, expected = f"epsilon {rate:g} for one step", f"at least {MIN_NOISE_RATE:g}"
        remedy = "choose a larger epsilon or larger steps; to simulate, pass rng="
        raise MechanismError(what, where=where, got=got, expected=expected, remedy=remedy)


def check_exact(nearest: float, farthest: float, mechanism: str) -> None:
    """Refuse exact probabilities that would need endless digits.

    `nearest` and `farthest` are epsilon times the smallest and the largest distance.
    """
    if nearest < MIN_STEP_NATS or farthest > MAX_NATS:
        small = nearest < MIN_STEP_NATS
        raise MechanismError(
            "the values are too close for exact probabilities" if small else "there is no noise left to draw exactly",
            where=f"{mechanism}.privatize",
            got=f"epsilon times the distance {nearest if small else farthest:g}",
            expected=f"from {MIN_STEP_NATS:g} to {MAX_NATS:,.0f}",
            remedy=f"choose a {'larger' if small else 'smaller'} epsilon: it is per unit of distance, so that the unit "
            "matters; to simulate, pass rng=",
        )
