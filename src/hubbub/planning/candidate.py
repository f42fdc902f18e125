"""A way to report, and the privacy it costs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.core.errors import SettingError
from hubbub.core.portable import Portable
from hubbub.domains import Domain
from hubbub.mechanisms import Mechanism
from hubbub.planning.result import Privacy

Kind = type[Mechanism]
Parts = tuple[tuple[Mechanism, float], ...]


@dataclass(frozen=True)
class Candidate(Portable):
    """A way to report: each share of the users sends so many reports of one mechanism."""

    name: str
    epsilon: float | None  # of the mechanism; for kinds the plain budget of a user; None for mixtures of mechanisms
    parts: Parts
    reports_per_user: int
    privacy: Privacy
    kinds: bool = False  # made for a budget: another one makes other mechanisms
    radius: float | None = None  # that was stated

    @property
    def domain(self) -> Domain:
        """The values that users hold."""
        return self.parts[0][0].domain

    @property
    def words(self) -> str:
        """The name with what tells it from others of that name."""
        several = f", {self.reports_per_user} reports per user" if self.reports_per_user > 1 else ""
        return f"{self.name}{'' if self.epsilon is None else f', epsilon {self.epsilon:g}'}{several}"

    def at(self, epsilon: float) -> Candidate:
        """Return the same way to report with another epsilon."""
        if self.epsilon is None and len(self.parts) == 1:
            raise _without_epsilon(self.parts[0][0])
        if self.epsilon is None:
            raise SettingError(
                "a mixture of mechanisms has no one epsilon to look for",
                where="plan(users=, target=)",
                got=self.name,
                expected="mechanisms of one epsilon each, or kinds",
                remedy="give the mixture as kinds with epsilon=, or look for the number of users",
            )
        if self.kinds:
            kinds = [(type(mechanism), share) for mechanism, share in self.parts]
            return budgeted(self.name, kinds, self.domain, epsilon, self.radius, self.reports_per_user)
        parts = tuple((_scaled(mechanism, epsilon / self.epsilon), share) for mechanism, share in self.parts)
        return candidate_of(self.name, epsilon, parts, self.reports_per_user, self.radius)


def budgeted(
    name: str, kinds: Sequence[tuple[Kind, float]], domain: Domain, epsilon: float, radius: float | None, reports: int
) -> Candidate:
    """Return mechanisms that spend the plain `epsilon` with all reports together."""
    reach = domain.diameter if radius is None else float(radius)
    parts = []
    for kind, share in kinds:
        own = epsilon / reports / (reach if kind.metric else 1.0)
        parts.append((kind(domain, epsilon=own), share))  # type: ignore[call-arg]  # all kinds here take one
    return candidate_of(name, epsilon, tuple(parts), reports, radius, kinds=True)


def candidate_of(
    name: str, epsilon: float | None, parts: Parts, reports: int, radius: float | None, *, kinds: bool = False
) -> Candidate:
    """Return a way to report by these mechanisms, and what it spends."""
    if reports > 1:
        for mechanism, _ in parts:
            _check_memory(mechanism)
    told = epsilon if epsilon is None or math.isfinite(epsilon) else None
    return Candidate(name, told, parts, reports, _privacy(parts, reports, radius), kinds, radius)


def _check_memory(mechanism: Mechanism) -> None:
    """Several outputs of one user can be drawn where they are independent, or where it is known what they share."""
    if mechanism.remembers and not hasattr(mechanism, "draw_permanent"):
        raise SettingError(
            "how several outputs of one user hang together is not known",
            where="plan(reports_per_user=)",
            got=type(mechanism).__name__,
            expected="a mechanism whose outputs are independent given the value",
            remedy="plan with one report per user",
        )


def _privacy(parts: Parts, reports: int, radius: float | None) -> Privacy:
    """Return what the user spends who spends most: every user sends reports of one of the mechanisms."""
    domain = parts[0][0].domain
    plain = [mechanism.spent(reports) for mechanism, _ in parts if not mechanism.metric]
    metric = [mechanism.spent(reports) for mechanism, _ in parts if mechanism.metric]
    reach = None if not metric else domain.diameter if radius is None else float(radius)
    whole = max([*plain, *(spent * (reach or 0.0) for spent in metric)])
    return Privacy(
        ldp=_bounded(max(plain)) if plain else None,
        per_unit=_bounded(max(metric)) if metric else None,
        unit=domain.unit if metric else None,
        equivalent=_bounded(whole),
        radius=reach,
    )


def _bounded(spent: float) -> float | None:
    return spent if math.isfinite(spent) else None


def _scaled(mechanism: Mechanism, factor: float) -> Mechanism:
    """Return the mechanism with all its epsilons times a factor."""
    names = list(inspect.signature(type(mechanism)).parameters)
    if "epsilon" not in names or not math.isfinite(mechanism.epsilon):
        raise _without_epsilon(mechanism)
    changes = {name: getattr(mechanism, name) * factor for name in ("epsilon", "first") if name in names}
    given = {name: getattr(mechanism, name) for name in names} | changes
    return type(mechanism)(**given)


def _without_epsilon(mechanism: Mechanism) -> SettingError:
    return SettingError(
        "this mechanism has no epsilon that could be another",
        where="plan(users=, target=)",
        got=type(mechanism).__name__,
        expected="a mechanism with epsilon among its parameters",
        remedy="look for the number of users instead",
    )
