"""All kinds of mechanisms that a domain allows at one plain epsilon, for plans that look for the best of them."""

from __future__ import annotations

import inspect
from typing import NamedTuple

from hubbub.core.errors import HubbubError
from hubbub.domains import Domain
from hubbub.intake.study_entries import MECHANISMS
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.longitudinal import Longitudinal
from hubbub.mechanisms.mechanism_kinds import find_kind, own_kinds

EVERY_KIND = "all"


class KindsOver(NamedTuple):
    """The kinds that can be built from a domain and an epsilon, and the names of those that this domain refuses."""

    kinds: dict[str, type[Mechanism]]
    refused: tuple[str, ...]


def missing_arguments(kind: type[Mechanism]) -> list[str]:
    """Return what a kind needs besides a domain and an epsilon."""
    parameters = list(inspect.signature(kind).parameters.values())
    names = [each.name for each in parameters if each.default is each.empty and each.name not in ("domain", "epsilon")]
    return names if any(each.name == "epsilon" for each in parameters) else [*names, "no epsilon"]


def every_kind(domain: Domain, epsilon: float, reach: float, *, repeated: bool = False) -> KindsOver:
    """Return the kinds over a domain; `epsilon` is plain, and per unit of distance it is divided by `reach`.

    Kinds with memory are for `repeated` reports: with one report each, another kind does the same with less noise.
    """
    kinds: dict[str, type[Mechanism]] = {}
    refused: list[str] = []
    for name in (*MECHANISMS, *own_kinds()):
        kind = find_kind(name, "plan(mechanisms)")
        if kind is None or missing_arguments(kind) or kind.means_only:
            continue  # they need more than an epsilon, or have none, or tell no distributions
        if issubclass(kind, Longitudinal) and not repeated:
            continue
        try:
            kind(domain, epsilon=epsilon / reach if kind.metric else epsilon)  # type: ignore[call-arg]
        except (HubbubError, TypeError, ValueError, AttributeError):  # a class of one's own may refuse in its own way
            refused.append(name)
        else:
            kinds[name] = kind
    return KindsOver(kinds, tuple(refused))
