"""Candidates, the ways to report that a plan compares: a mechanism or a mixture of them, its reports, its privacy."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from hubbub.auditing.exact_epsilon import realised_share
from hubbub.client import SHORT_NAMES, short_name
from hubbub.core.arrays import as_real
from hubbub.core.errors import SettingError, shorten
from hubbub.core.serialization import Portable
from hubbub.core.text import kebab, nearest_name
from hubbub.domains import Domain
from hubbub.intake.study_entries import MECHANISMS, full_kind
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.longitudinal import Longitudinal
from hubbub.mechanisms.mechanism_kinds import find_kind, own_kinds
from hubbub.planning.answers import Privacy
from hubbub.planning.every_kind import missing_arguments
from hubbub.planning.validation import ROUNDING, check_budgets, check_radius, check_reports_per_user

FORMS = (
    "a mechanism, a kind such as 'randomized-response', a list of them, {name: mechanism}, or for a mixture across "
    "users [(mechanism, share), ...]"
)

Kind = type[Mechanism]
Parts = tuple[tuple[Mechanism, float], ...]
PartsOrKinds = list[tuple[Mechanism | Kind, float]]


@dataclass(frozen=True)
class Candidate(Portable):
    """A way to report: each share of the users sends `reports_per_user` reports of one mechanism.

    The name of this class and its fields decide the seeds of simulated studies: renaming them changes numbers.
    """

    name: str
    epsilon: float | None  # of the mechanism; for kinds the plain budget of a user; None for mixtures of mechanisms
    parts: Parts
    reports_per_user: int
    privacy: Privacy
    kinds: bool = False  # built for a budget: another budget builds other mechanisms
    radius: float | None = None  # as the caller gave it

    @property
    def key(self) -> tuple[str, float | None, int]:
        """What tells the candidates of a plan apart; answers have the same key."""
        return self.name, self.epsilon, self.reports_per_user

    @cached_property
    def realised_share(self) -> float | None:
        """The epsilon that is realised as a share of the claimed one, the largest of each; None if it is not known."""
        mechanisms = [mechanism for mechanism, _ in self.parts]
        shares = [realised_share(mechanism) for mechanism in mechanisms]
        if None in shares or len({mechanism.metric for mechanism in mechanisms}) > 1:
            return None
        realised = [mechanism.epsilon * (share or 0.0) for mechanism, share in zip(mechanisms, shares, strict=True)]
        return max(realised) / max(mechanism.epsilon for mechanism in mechanisms)

    @property
    def domain(self) -> Domain:
        """The values that users hold."""
        return self.parts[0][0].domain

    @property
    def description(self) -> str:
        """The name, with the epsilon and the number of reports."""
        epsilon = "" if self.epsilon is None else f", epsilon {self.epsilon:g}"
        reports = f", {self.reports_per_user} reports per user" if self.reports_per_user > 1 else ""
        return f"{self.name}{epsilon}{reports}"

    def at(self, epsilon: float) -> Candidate:
        """Return this candidate with another epsilon."""
        if self.epsilon is None:
            raise _without_epsilon(self)
        if self.kinds:
            kinds = [(type(mechanism), share) for mechanism, share in self.parts]
            return _with_budget(self.name, kinds, self.domain, epsilon, self.radius, self.reports_per_user)
        ((mechanism, share),) = self.parts  # only kinds are mixed at one epsilon
        names = list(inspect.signature(type(mechanism)).parameters)
        if "epsilon" not in names:
            raise _without_epsilon(self)
        factor = epsilon / self.epsilon
        arguments = {
            name: getattr(mechanism, name) for name in names if name not in ("f", "p", "q")
        }  # state epsilon, too
        scaled = {name: arguments[name] * factor for name in ("epsilon", "first") if name in names}
        parts = ((type(mechanism)(**(arguments | scaled)), share),)
        return _candidate(self.name, epsilon, parts, self.reports_per_user, self.radius)


def candidates_from(
    mechanisms: object,
    *,
    domain: Domain | None = None,
    epsilon: object = None,
    radius: float | None = None,
    reports_per_user: object = 1,
) -> tuple[Candidate, ...]:
    """Return the candidates: one for each entry of `mechanisms`, number of reports per user, and epsilon of a kind.

    Built mechanisms keep their own epsilon for each report. Kinds are built over `domain` for the plain budget
    `epsilon` of a user: with m reports each gets epsilon / m, and where a kind's epsilon is per unit of distance, that
    is divided by `radius`, or by the domain's diameter.
    """
    named = _named_parts(mechanisms)
    counts = check_reports_per_user(reports_per_user)
    built = [part for _, parts in named for part, _ in parts if isinstance(part, Mechanism)]
    has_kinds = len(built) < sum(len(parts) for _, parts in named)
    budgets = check_budgets(domain, epsilon, has_kinds=has_kinds)
    whole = domain or built[0].domain  # without a built mechanism check_budgets has seen to a domain
    check_radius(radius, whole)
    candidates: list[Candidate] = []
    for name, parts in named:
        kinds = [(part, share) for part, share in parts if isinstance(part, type)]
        own = tuple((part, share) for part, share in parts if isinstance(part, Mechanism))
        if kinds and own:
            raise _refused("a mixture combines either mechanisms or kinds", name, "pass all parts in the same form")
        different = [mechanism.domain for mechanism, _ in own if mechanism.domain != whole]
        if different:
            raise _refused(
                "mechanisms over different domains cannot be compared",
                shorten(different[0], 100),
                "build all mechanisms of a plan over one domain",
                where=f"plan(mechanisms), {name}",
                expected=shorten(whole, 100),
            )
        for count in counts:
            if kinds:
                candidates += [_with_budget(name, kinds, whole, budget, radius, count) for budget in budgets]
            else:
                candidates.append(_candidate(name, own[0][0].epsilon if len(own) == 1 else None, own, count, radius))
    return tuple(candidates)


# -- building ----------------------------------------------------------------------------------------------


def _with_budget(
    name: str, kinds: Sequence[tuple[Kind, float]], domain: Domain, epsilon: float, radius: float | None, reports: int
) -> Candidate:
    """Return the candidate whose users spend the plain `epsilon` with all reports together."""
    reach = domain.diameter if radius is None else float(radius)
    parts = []
    for kind, share in kinds:
        each = 1 if issubclass(kind, Longitudinal) else reports  # of reports that share one budget
        own = epsilon / each / (reach if kind.metric else 1.0)
        parts.append((kind(domain, epsilon=own), share))  # type: ignore[call-arg]  # all kinds here take one
    return _candidate(name, epsilon, tuple(parts), reports, radius, kinds=True)


def _candidate(
    name: str, epsilon: float | None, parts: Parts, reports: int, radius: float | None, *, kinds: bool = False
) -> Candidate:
    for mechanism, _ in parts:
        if reports > 1 and mechanism.remembers and not isinstance(mechanism, Longitudinal):
            raise _refused(
                "several reports of one user cannot be simulated for this mechanism",
                type(mechanism).__name__,
                "plan with one report per user",
                where="plan(reports_per_user=)",
                expected="a mechanism whose outputs are independent given the value",
            )
    bounded = None if epsilon is None else _finite(epsilon)
    return Candidate(name, bounded, parts, reports, _privacy(parts, reports, radius), kinds, radius)


def _privacy(parts: Parts, reports: int, radius: float | None) -> Privacy:
    """Return the largest spending of any user: each sends reports of one of the mechanisms."""
    domain = parts[0][0].domain
    plain = [mechanism.spent(reports) for mechanism, _ in parts if not mechanism.metric]
    metric = [mechanism.spent(reports) for mechanism, _ in parts if mechanism.metric]
    reach = None if not metric else domain.diameter if radius is None else float(radius)
    return Privacy(
        ldp=_finite(max(plain)) if plain else None,
        per_unit=_finite(max(metric)) if metric else None,
        unit=domain.unit if metric else None,
        equivalent=_finite(max([*plain, *(spent * (reach or 0.0) for spent in metric)])),
        radius=reach,
    )


def _finite(epsilon: float) -> float | None:
    return epsilon if math.isfinite(epsilon) else None


# -- reading what the caller passed ------------------------------------------------------------------------


def _named_parts(mechanisms: object) -> list[tuple[str, PartsOrKinds]]:
    if isinstance(mechanisms, Mapping):
        entries = [(str(name), entry) for name, entry in mechanisms.items()]
    elif isinstance(mechanisms, Mechanism | str | type):
        entries = [("", mechanisms)]
    elif isinstance(mechanisms, Iterable):
        items = list(mechanisms)
        entries = [("", entry) for entry in ([items] if _is_mixture(items) else items)]
    else:
        raise _refused("these are not mechanisms", shorten(mechanisms), "build a mechanism first, or name a kind")
    if not entries:
        raise _refused("there are no mechanisms to plan with", "no mechanism", "pass at least one")
    return _with_unique_names([(name, _parts(entry)) for name, entry in entries])


def _is_mixture(entries: Sequence[object]) -> bool:
    """Whether all entries are pairs of something and a number."""
    return bool(entries) and all(
        isinstance(entry, tuple | list) and len(entry) == 2 and not math.isnan(as_real(entry[1])) for entry in entries
    )


def _parts(entry: object) -> PartsOrKinds:
    if not isinstance(entry, tuple | list):
        return [(_mechanism_or_kind(entry), 1.0)]
    if not _is_mixture(entry):
        raise _refused("not a mixture", shorten(entry), "write a mixture as [(mechanism, share), ...]")
    parts = [(_mechanism_or_kind(part), as_real(share)) for part, share in entry]
    shares = [share for _, share in parts]
    if not all(0.0 < share <= 1.0 for share in shares) or abs(math.fsum(shares) - 1.0) > ROUNDING:
        remedy = "pass the share of users who send each mechanism: positive numbers that sum to 1"
        raise _refused("the shares of a mixture do not sum to 1", ", ".join(f"{share:g}" for share in shares), remedy)
    return parts


def _mechanism_or_kind(entry: object) -> Mechanism | Kind:
    if isinstance(entry, Mechanism):
        return entry
    name = full_kind(entry) if isinstance(entry, str) else ""
    kind: object = find_kind(name, "plan(mechanisms)") if isinstance(entry, str) else entry
    if kind is None and isinstance(entry, str):
        kinds = [name for name, kind in MECHANISMS.items() if not missing_arguments(kind)] + own_kinds()
        remedy = nearest_name(name, kinds, "check the spelling")
        if short := short_name(name):
            full, parameters = SHORT_NAMES[short]
            build = ", ".join(["domain", "epsilon", *(f"{key}={value}" for key, value in parameters.items())])
            remedy = f"build the mechanism: {MECHANISMS[full].__name__}({build})"
        raise _refused("no such kind of mechanism", shorten(entry), remedy, expected=", ".join(kinds))
    if not (isinstance(kind, type) and issubclass(kind, Mechanism)):
        raise _refused("this is not a mechanism", shorten(entry), "build a mechanism first, or name a kind")
    if missing := missing_arguments(kind):
        got = f"{kebab(kind.__name__)}, which needs {', '.join(missing)}"
        raise _refused("this kind needs more than an epsilon", got, f"build the mechanism: {kind.__name__}(...)")
    return kind


def _with_unique_names(named: Sequence[tuple[str, PartsOrKinds]]) -> list[tuple[str, PartsOrKinds]]:
    """Name what has no name; entries with equal name and epsilon are distinguished by parameters or numbers."""
    keys = [
        (name or _default_name(parts), tuple(getattr(part, "epsilon", None) for part, _ in parts))
        for name, parts in named
    ]
    used: set[object] = set()
    unique: list[tuple[str, PartsOrKinds]] = []
    for (short, epsilons), (_, parts) in zip(keys, named, strict=True):
        parameters = _parameters(parts[0][0]) if keys.count((short, epsilons)) > 1 and len(parts) == 1 else ""
        name, number = f"{short} ({parameters})" if parameters else short, 2
        while (name, epsilons) in used:
            name, number = f"{short} {number}", number + 1
        used.add((name, epsilons))
        unique.append((name, parts))
    return unique


def _parameters(mechanism: Mechanism | Kind) -> str:
    """Return the numbers that define a mechanism besides its epsilon."""
    names = [name for name in inspect.signature(type(mechanism)).parameters if name not in ("domain", "epsilon")]
    values = {name: getattr(mechanism, name, None) for name in names}
    return ", ".join(f"{name} {value}" for name, value in values.items() if isinstance(value, int | float | Fraction))


def _default_name(parts: PartsOrKinds) -> str:
    names = [kebab((part if isinstance(part, type) else type(part)).__name__) for part, _ in parts]
    if len(parts) == 1:
        return names[0]
    return " + ".join(
        f"{100 * share:.3g}% {name}{'' if isinstance(part, type) else f' {part.epsilon:g}'}"
        for name, (part, share) in zip(names, parts, strict=True)
    )


# -- refusing ----------------------------------------------------------------------------------------------


def _refused(what: str, got: str, remedy: str, *, where: str = "", expected: str = FORMS) -> SettingError:
    return SettingError(what, where=where or "plan(mechanisms)", got=got, expected=expected, remedy=remedy)


def _without_epsilon(candidate: Candidate) -> SettingError:
    what = "a mixture of mechanisms has no single epsilon to search for"
    got, expected = candidate.name, "mechanisms with one epsilon each, or kinds"
    remedy = "pass the mixture as kinds with epsilon=, or search for the number of users"
    if len(candidate.parts) == 1:
        what = "this mechanism has no epsilon that can be varied"
        got, expected = type(candidate.parts[0][0]).__name__, "a mechanism with epsilon among its parameters"
        remedy = "search for the number of users instead"
    return _refused(what, got, remedy, where="plan(users=, target=)", expected=expected)
