"""Candidates for a central target: kinds at the largest epsilon whose shuffled reports meet it."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass

from hubbub.amplification import largest_local_epsilon
from hubbub.amplification.validation import check_delta
from hubbub.core import validation
from hubbub.core.arrays import as_real
from hubbub.core.progress import Progress
from hubbub.domains import Domain
from hubbub.mechanisms import Mechanism
from hubbub.planning.candidates import Candidate, Kind, candidates_from, named_parts
from hubbub.planning.validation import as_list, check_radius, refused


@dataclass(frozen=True)
class CentralTarget:
    """The privacy that shuffled reports are to have."""

    epsilon: float
    delta: float
    users: int


def check_central(
    central_epsilon: object,
    delta: object,
    users: tuple[int, ...],
    *,
    epsilon: object,
    target: object,
    reports_per_user: object,
) -> CentralTarget | None:
    """Return the central target; None where there is none."""
    if central_epsilon is None:
        if delta is not None:
            expected, remedy = "no delta, which belongs to central_epsilon", "pass central_epsilon=, or leave delta out"
            raise refused("delta has no effect without a central epsilon", "delta", delta, expected, remedy)
        return None
    number = as_real(central_epsilon)
    if not (math.isfinite(number) and number > 0.0):
        remedy = "pass the epsilon that the shuffled reports may have, such as 0.5"
        raise validation.wrong(central_epsilon, "central_epsilon", "plan", "a positive number", remedy=remedy)
    if delta is None:
        expected = "a probability well below one in the number of users, such as 1e-9"
        raise refused("a central epsilon needs a delta", "delta", delta, expected, "pass delta=")
    if epsilon is not None:
        expected = "no epsilon: each kind gets the largest one that meets the central target"
        remedy = "leave epsilon out, or leave central_epsilon out; hb.amplify says what an epsilon becomes"
        raise refused("epsilon follows from the central target", "central_epsilon=, epsilon", epsilon, expected, remedy)
    if target is not None:
        expected = "no target: epsilon would be searched for by the error and by the central target"
        remedy = "leave target out, and try several numbers of users"
        raise refused("a target has no meaning here", "central_epsilon=, target", target, expected, remedy)
    if len(users) != 1:
        expected = "one number of users, among whom the reports are shuffled"
        remedy = "pass users=10_000; plan each number of users on its own"
        got = list(users) or None
        raise refused(
            "a central epsilon is that of one number of users", "central_epsilon=, users", got, expected, remedy
        )
    if [as_real(count) for count in as_list(reports_per_user)] != [1.0]:
        expected = "1: several reports of a person could be recognised as one person's"
        remedy = "leave reports_per_user out; in rounds that are shuffled apart, epsilons and deltas add up"
        raise refused(
            "shuffling hides one report of each user",
            "central_epsilon=, reports_per_user",
            reports_per_user,
            expected,
            remedy,
        )
    return CentralTarget(number, check_delta(delta, "plan"), users[0])


def central_candidates(
    mechanisms: object, target: CentralTarget, domain: object, radius: float | None
) -> Generator[Progress, None, tuple[Candidate, ...]]:
    """Return a candidate for each kind, at its own epsilon."""
    kinds = _kinds(mechanisms)
    if not isinstance(domain, Domain):
        expected = "the domain of the values, such as hubbub.Integers(0, 9)"
        raise refused("kinds of mechanisms need a domain", "domain", domain, expected, "pass domain=")
    check_radius(radius, domain)
    return _largest(kinds, target, domain, radius)


def _largest(
    kinds: list[tuple[str, Kind]], target: CentralTarget, domain: Domain, radius: float | None
) -> Generator[Progress, None, tuple[Candidate, ...]]:
    reach = domain.diameter if radius is None else float(radius)
    candidates: list[Candidate] = []
    for number, (name, kind) in enumerate(kinds):
        yield Progress(number, len(kinds), f"{name}: the epsilon that the central target allows")

        def build(epsilon: float, kind: Kind = kind) -> Mechanism:
            return kind(domain, epsilon=epsilon / (reach if kind.metric else 1.0))  # type: ignore[call-arg]

        local = largest_local_epsilon(build, target.users, target.delta, target.epsilon)
        candidates += candidates_from({name: kind}, domain=domain, epsilon=local, radius=radius)
    return tuple(candidates)


def _kinds(mechanisms: object) -> list[tuple[str, Kind]]:
    """Return kinds with their names; refuse built mechanisms, which have an epsilon, and mixtures."""
    kinds = []
    for name, parts in named_parts(mechanisms):
        part = parts[0][0]
        if len(parts) > 1 or isinstance(part, Mechanism):
            expected = "kinds, such as 'randomized-response', or 'all'"
            remedy = "pass kinds with domain=; hb.amplify gives the central epsilon of a mechanism that is built"
            what = "a central epsilon is planned for kinds, each of which everybody uses"
            raise refused(what, "central_epsilon=, mechanisms", name, expected, remedy)
        kinds.append((name, part))
    return kinds
