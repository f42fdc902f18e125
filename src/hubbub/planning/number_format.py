"""Numbers and epsilons of a plan as texts, with as many digits as the simulation knows."""

from __future__ import annotations

import math
from collections.abc import Callable

from hubbub.planning.answers import Privacy

MAX_DECIMALS = 6  # smaller numbers are written with an exponent
MIN_RANGE_RATIO = 1.5  # of the ends of an interval from which the range is written instead of a number


def two_digits(number: float) -> str:
    """Return a number rounded to two digits, with commas, and without an exponent unless it is tiny.

    >>> two_digits(41234), two_digits(0.08149), two_digits(1.4142), two_digits(99.7), two_digits(3e-9)
    ('41,000', '0.081', '1.4', '100', '3e-09')
    """
    if not math.isfinite(number):
        return str(number)
    rounded = float(f"{number:.1e}")
    if rounded == 0:
        return "0"
    decimals = 1 - math.floor(math.log10(abs(rounded)))
    if decimals > MAX_DECIMALS:
        return f"{rounded:.1e}".replace(".0e", "e")
    return f"{rounded:,.{max(decimals, 0)}f}"


def user_count(number: float) -> str:
    """Return a number of users: two digits, but exact below 100.

    >>> user_count(41234.5), user_count(2.3)
    ('41,000', '3')
    """
    return two_digits(number) if number > 99 else f"{math.ceil(number)}"


def approximately(number: float, low: float, high: float, as_text: Callable[[float], str] = two_digits) -> str:
    """Return "about 41,000", or the range where the simulation leaves it wide.

    >>> approximately(41234, 39500, 43100), approximately(41234, 20000, 81000), approximately(0.0, 0.0, 0.0)
    ('about 41,000', 'between 20,000 and 81,000', 'about 0')
    """
    if number <= 0:
        return f"about {as_text(number)}"
    if not math.isfinite(high):
        return f"at least {as_text(max(low, 1.0))}"
    if low <= 0:
        return f"at most {as_text(high)}"
    return f"about {as_text(number)}" if high / low < MIN_RANGE_RATIO else f"between {as_text(low)} and {as_text(high)}"


def power_text(power: float) -> str:
    """Return a power, which is known to a percent at best.

    >>> power_text(0.6913), power_text(0.9999)
    ('69%', 'over 99%')
    """
    return f"{power:.0%}" if power < 0.995 else "over 99%"


def privacy_text(privacy: Privacy, *, has_radius: bool) -> str:
    """Return what a user spends: "epsilon 1", or per unit of distance with its plain equivalent.

    `has_radius` says that the caller gave the radius; otherwise it is the domain's diameter.
    """
    text = " or ".join(_amounts(privacy, "epsilon ", " per "))
    if privacy.per_unit is not None and privacy.equivalent is not None:
        text += f" (plain epsilon {privacy.equivalent:.3g} {reach_text(privacy, has_radius=has_radius)})"
    return text or "no bound on epsilon"


def epsilon_cell(privacy: Privacy) -> str:
    """Return what a user spends for a table: plain, per unit, or both."""
    text = " or ".join(_amounts(privacy, "", "/"))
    if privacy.per_unit is not None and privacy.equivalent is not None:
        text += f" ({privacy.equivalent:.3g})"
    return text or "unbounded"


def per_unit_text(privacy: Privacy) -> str:
    """Return the epsilon per unit of distance."""
    return _amounts(privacy, "epsilon ", " per ")[-1]


def _amounts(privacy: Privacy, epsilon: str, per: str) -> list[str]:
    amounts = [] if privacy.ldp is None else [f"{epsilon}{privacy.ldp:.3g}"]
    if privacy.per_unit is not None:
        amounts.append(f"{epsilon}{privacy.per_unit:.3g}{per}{privacy.unit or 'unit'}")
    return amounts


def reach_text(privacy: Privacy, *, has_radius: bool) -> str:
    """Return the distance over which epsilon per unit counts as plain epsilon."""
    start = "within a distance" if has_radius else "over the domain's diameter"
    return f"{start} of {radius_text(privacy)}"


def radius_text(privacy: Privacy) -> str:
    """Return the radius with its unit."""
    return f"{privacy.radius:.3g}{'' if privacy.unit in (None, 'unit') else f' {privacy.unit}'}"
