"""Ways to report, at a stated privacy: what a plan compares."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hubbub.core.arrays import as_integer, as_real
from hubbub.core.errors import SettingError, shorten
from hubbub.domains import Domain
from hubbub.intake.study import MECHANISMS, kebab
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.parameters import check_epsilon
from hubbub.planning.candidate import Candidate, Kind, Parts, budgeted, candidate_of

__all__ = ["Candidate", "candidates_from"]

ALIKE = 1e-9  # by how much shares of users may miss a sum of 1
FORMS = (
    "a mechanism, a kind such as 'randomized-response', a list of them, {name: mechanism}, or for a mixture across "
    "users [(mechanism, share), ...]"
)

Part = tuple[Mechanism | Kind, float]


def candidates_from(
    mechanisms: object,
    *,
    domain: Domain | None = None,
    epsilon: object = None,
    radius: float | None = None,
    reports_per_user: object = 1,
) -> tuple[Candidate, ...]:
    """Return the ways to report that are meant, one for each epsilon and number of reports per user.

    `mechanisms` is a mechanism, a list of them, {name: mechanism}, or kinds: classes, or names as in study files. A
    list of pairs (mechanism, share) as an entry is a mixture across users. Mechanisms keep their own epsilon for each
    report. Kinds are made over `domain` for the plain budget `epsilon` of a user: with m reports each has epsilon / m,
    and where it is per unit of distance that is divided by `radius`, or by the domain's diameter.
    """
    named = _named(mechanisms)
    counts = _counts(reports_per_user)
    makes_kinds = any(isinstance(one, type) for _, parts in named for one, _ in parts)
    budgets = _budgets(domain, epsilon, makes_kinds)
    whole = domain or _first(named).domain  # kinds have one, _budgets has seen to it
    _check_radius(radius, whole)
    found: list[Candidate] = []
    for name, parts in named:
        kinds = [isinstance(one, type) for one, _ in parts]
        if any(kinds) and not all(kinds):
            raise _refused(
                "a mixture is of mechanisms or of kinds, not of both", name, "give all of it as one or other"
            )
        for count in counts:
            if all(kinds):
                made = [(one, share) for one, share in parts if isinstance(one, type)]
                found += [budgeted(name, made, whole, budget, radius, count) for budget in budgets]
            else:
                own: Parts = tuple((one, share) for one, share in parts if isinstance(one, Mechanism))
                _check_domains(name, own, whole)
                found.append(candidate_of(name, own[0][0].epsilon if len(own) == 1 else None, own, count, radius))
    return tuple(found)


# -- what was given ----------------------------------------------------------------------------------------


def _named(mechanisms: object) -> list[tuple[str, list[Part]]]:
    if isinstance(mechanisms, Mapping):
        named = [(str(name), _parts(entry)) for name, entry in mechanisms.items()]
    elif isinstance(mechanisms, Mechanism | str | type):
        named = [("", _parts(mechanisms))]
    elif isinstance(mechanisms, Iterable):
        entries = list(mechanisms)
        # A list of pairs (mechanism, share) at the top is one mixture.
        named = (
            [("", _parts(entries))] if entries and all(map(_is_pair, entries)) else [("", _parts(e)) for e in entries]
        )
    else:
        raise _refused("these are no mechanisms", shorten(mechanisms), "build one first, or name kinds")
    if not named:
        raise _refused("there is nothing to plan", "no mechanism", "give at least one")
    return _told_apart(named)


def _is_pair(entry: object) -> bool:
    return isinstance(entry, tuple | list) and len(entry) == 2 and not math.isnan(as_real(entry[1]))


def _parts(entry: object) -> list[Part]:
    if isinstance(entry, tuple | list):
        if not entry or not all(map(_is_pair, entry)):
            raise _refused("not a mixture", shorten(entry), "write a mixture as [(mechanism, share), ...]")
        parts = [(_mechanism(one), as_real(share)) for one, share in entry]
        total = math.fsum(share for _, share in parts)
        if not all(0.0 < share <= 1.0 for _, share in parts) or abs(total - 1.0) > ALIKE:
            raise _refused(
                "the shares of a mixture do not sum to 1",
                ", ".join(f"{share:g}" for _, share in parts),
                "give the share of the users who send each mechanism: above 0, with sum 1",
            )
        return parts
    return [(_mechanism(entry), 1.0)]


def _mechanism(entry: object) -> Mechanism | Kind:
    if isinstance(entry, Mechanism):
        return entry
    if isinstance(entry, str) and entry not in MECHANISMS:
        raise SettingError(
            "no such kind of mechanism",
            where="plan(mechanisms)",
            got=shorten(entry),
            expected=", ".join(name for name, one in MECHANISMS.items() if not _missing(one)),
            remedy="check its spelling: kinds are written as in study files",
        )
    named = MECHANISMS[entry] if isinstance(entry, str) else entry
    if not (isinstance(named, type) and issubclass(named, Mechanism)):
        raise _refused("this is no mechanism", shorten(entry), "build one first, or name a kind")
    kind: Kind = named
    if missing := _missing(kind):
        raise _refused(
            "this kind needs more than an epsilon",
            f"{kebab(kind.__name__)}, which needs {', '.join(missing)}",
            f"build the mechanism yourself: {kind.__name__}(...)",
        )
    return kind


def _missing(kind: Kind) -> list[str]:
    """Return what a kind needs besides a domain and an epsilon."""
    parameters = list(inspect.signature(kind).parameters.values())
    names = [one.name for one in parameters if one.default is one.empty and one.name not in ("domain", "epsilon")]
    return names if any(one.name == "epsilon" for one in parameters) else [*names, "no epsilon"]


def _told_apart(named: Sequence[tuple[str, list[Part]]]) -> list[tuple[str, list[Part]]]:
    """Give names to what has none; what would have the name and epsilon of another is told apart by its parameters."""
    found: list[tuple[str, list[Part]]] = []
    plain = [name or _short(parts) for name, parts in named]
    keys = [
        (name, *(getattr(one, "epsilon", None) for one, _ in parts))
        for name, (_, parts) in zip(plain, named, strict=True)
    ]
    used: set[tuple[Any, ...]] = set()
    for short, key, (_, parts) in zip(plain, keys, named, strict=True):
        others = _parameters(parts[0][0]) if keys.count(key) > 1 and len(parts) == 1 else ""
        name, number = f"{short} ({others})" if others else short, 2
        while (name, *key[1:]) in used:
            name, number = f"{short} {number}", number + 1
        used.add((name, *key[1:]))
        found.append((name, parts))
    return found


def _parameters(mechanism: Mechanism | Kind) -> str:
    """Return the numbers that define a mechanism besides its epsilon."""
    names = [name for name in inspect.signature(type(mechanism)).parameters if name not in ("domain", "epsilon")]
    found = {name: getattr(mechanism, name, None) for name in names}
    return ", ".join(f"{name} {value}" for name, value in found.items() if isinstance(value, int | float))


def _short(parts: Sequence[Part]) -> str:
    names = [kebab((one if isinstance(one, type) else type(one)).__name__) for one, _ in parts]
    if len(parts) == 1:
        return names[0]
    return " + ".join(
        f"{100 * share:.3g}% {name}{'' if isinstance(one, type) else f' {one.epsilon:g}'}"
        for name, (one, share) in zip(names, parts, strict=True)
    )


def _first(named: Sequence[tuple[str, list[Part]]]) -> Mechanism:
    return next(one for _, parts in named for one, _ in parts if isinstance(one, Mechanism))


def _counts(reports_per_user: object) -> list[int]:
    given = reports_per_user if isinstance(reports_per_user, tuple | list) else [reports_per_user]
    where = "plan(reports_per_user=)"
    counts = [as_integer(one, SettingError, where=where, expected="a whole number from 1") for one in given]
    if not counts or min(counts) < 1 or max(counts) > 1_000:
        raise SettingError(
            "so many reports per user cannot be planned",
            where=where,
            got=shorten(reports_per_user),
            expected="a whole number from 1 to 1,000, or several",
            remedy="every user sends at least one report",
        )
    return list(dict.fromkeys(counts))


def _budgets(domain: object, epsilon: object, makes_kinds: bool) -> list[float]:
    if not makes_kinds:
        if epsilon is not None:
            raise SettingError(
                "these mechanisms have an epsilon already",
                where="plan(epsilon=)",
                got=shorten(epsilon),
                expected="no epsilon: it belongs to kinds of mechanisms",
                remedy="leave it out, or name kinds, such as 'randomized-response', to plan with several epsilons",
            )
        return []
    if not isinstance(domain, Domain):
        raise SettingError(
            "kinds of mechanisms need a domain",
            where="plan(domain=)",
            got=shorten(domain),
            expected="the domain of the values, such as hubbub.Integers(0, 9)",
            remedy="pass domain= and epsilon=, or mechanisms that have both",
        )
    given = list(epsilon) if isinstance(epsilon, Iterable) and not isinstance(epsilon, str) else [epsilon]
    if epsilon is None or not given:
        raise SettingError(
            "kinds of mechanisms need an epsilon",
            where="plan(epsilon=)",
            got=shorten(epsilon),
            expected="the plain budget of a user, all reports together: a number or several",
            remedy="pass epsilon=, such as 1.0 or [0.5, 1, 2]",
        )
    return list(dict.fromkeys(check_epsilon(one, "plan") for one in given))


def _check_radius(radius: object, domain: Domain) -> None:
    if radius is None:
        return
    number = as_real(radius)
    if not 0.0 < number <= domain.diameter * (1.0 + ALIKE):
        raise SettingError(
            "the radius is no distance of this domain",
            where="plan(radius=)",
            got=shorten(radius),
            expected=f"a distance above 0, at most the diameter of {domain.diameter:g}",
            remedy="leave it out for the diameter: every two values are then as hard to tell apart as epsilon says",
        )


def _check_domains(name: str, parts: Parts, domain: Domain) -> None:
    for mechanism, _ in parts:
        if mechanism.domain != domain:
            raise SettingError(
                "mechanisms over different domains cannot be compared",
                where=f"plan(mechanisms), {name}",
                got=shorten(mechanism.domain, 100),
                expected=shorten(domain, 100),
                remedy="build all mechanisms of a plan over one domain",
            )


def _refused(what: str, got: str, remedy: str) -> SettingError:
    return SettingError(what, where="plan(mechanisms)", got=got, expected=FORMS, remedy=remedy)
