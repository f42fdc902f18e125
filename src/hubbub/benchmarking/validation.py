"""Checks of the arguments of `benchmark`; planning checks those that both have, and this says whose they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from hubbub.benchmarking.contenders import Keywords, MethodChoice, Setup
from hubbub.benchmarking.paired_draws import CandidateDraws
from hubbub.core import validation
from hubbub.core.arrays import as_real
from hubbub.core.errors import HubbubError, MechanismError, SettingError, StudyError, restated, shorten
from hubbub.core.text import listed
from hubbub.domains import Domain
from hubbub.estimators.api import METHODS, find_method
from hubbub.planning.candidates import Candidate, candidates_from
from hubbub.planning.every_kind import EVERY_KIND, every_kind
from hubbub.planning.truths import AssumedTruth, truths_from
from hubbub.planning.validation import as_list, check_budgets, check_users

MAX_DRAWN_USERS = 20_000_000  # of one run whose reports are drawn one by one
MAX_USERS, MAX_RUNS = 10**9, 1_000_000
ALL_METHODS = "all"
OURS = {r"^plan\(mechanisms": "benchmark(mechanisms", r"^plan\(truth=": "benchmark(truths=", r"^plan\(": "benchmark("}

PLACES = {
    "what": "a text names a kind, and never code",
    "expected": "a kind of hubbub's own, of an installed package, or a registered one",
    "remedy": "import the class and pass it, or an object of it; or name the kind that register_mechanism gave it",
    "code": "",
}


@contextmanager
def said_of_benchmark() -> Iterator[None]:
    """Name the arguments of `benchmark` in the messages of planning."""
    try:
        yield
    except HubbubError as error:
        where = error.where
        for theirs, ours in OURS.items():
            where = re.sub(theirs, ours, where)
        if where == error.where:
            raise
        parts = PLACES if isinstance(error, StudyError) else {}  # these speak of a study, and here is none
        raise restated(error, SettingError if parts else type(error), where=where, **parts) from None


@contextmanager
def built_for_benchmark() -> Iterator[None]:
    """Say of an error that a class of one's own raises that it is about the mechanisms."""
    try:
        yield
    except HubbubError:
        raise
    except Exception as cause:
        raise MechanismError(
            "a mechanism of your own cannot be built",
            where="benchmark(mechanisms)",
            got=f"{type(cause).__name__}: {shorten(str(cause), 200)}",
            expected="classes that take this domain and this epsilon",
            remedy="correct the class, or leave it out",
        ) from cause


def check_candidates(
    mechanisms: object, domain: Domain | None, epsilon: object, radius: float | None
) -> tuple[Candidate, ...]:
    """Return the ways to report; "all", alone or in a list, stands for all kinds that the domain allows."""
    with said_of_benchmark(), built_for_benchmark():
        entries = list(mechanisms) if isinstance(mechanisms, list | tuple) else [mechanisms]
        if any(isinstance(entry, str) and entry == EVERY_KIND for entry in entries):
            mechanisms = [each for entry in entries for each in _expanded(entry, domain, epsilon, radius)]
        return candidates_from(mechanisms, domain=domain, epsilon=epsilon, radius=radius)


def _expanded(entry: object, domain: Domain | None, epsilon: object, radius: float | None) -> Sequence[object]:
    if not (isinstance(entry, str) and entry == EVERY_KIND):
        return [entry]
    budgets = check_budgets(domain, epsilon, has_kinds=True)
    assert domain is not None  # noqa: S101  # as was just checked
    several = [every_kind(domain, budget, domain.diameter if radius is None else float(radius)) for budget in budgets]
    return [kind for name, kind in several[0].kinds.items() if all(name in each.kinds for each in several)]


def check_truths(truths: object, domain: Domain) -> tuple[AssumedTruth, ...]:
    """Return the distributions to draw from; {name: truth} names them."""
    with said_of_benchmark():
        if (
            isinstance(truths, Mapping)
            and truths
            and not any(as_real(each) == as_real(each) for each in truths.values())
        ):
            return tuple(
                AssumedTruth(str(name), each.probabilities)
                for name, entry in truths.items()
                for each in truths_from([entry], domain)[:1]
            )
        return truths_from(truths, domain)


def check_numbers(users: object) -> tuple[int, ...]:
    """Return the numbers of users."""
    with said_of_benchmark():
        counts = check_users(users)
    if counts and counts[-1] <= MAX_USERS:
        return counts
    expected = f"one or several whole numbers of users, at most {MAX_USERS:,}"
    raise validation.wrong(users, "users", "benchmark", expected, remedy="pass users=10_000, or [1_000, 10_000]")


def check_runs(runs: object) -> int:
    """Return how often each cell is simulated."""
    checked = validation.whole(runs, "runs", "benchmark", at_least=2)
    if checked <= MAX_RUNS:
        return checked
    raise validation.wrong(runs, "runs", "benchmark", f"a whole number from 2 to {MAX_RUNS:,}")


def check_methods(methods: object) -> tuple[MethodChoice, ...]:
    """Return the methods: a name, a list of names, "all", or {label: name or (name, {keyword: value})}."""
    if isinstance(methods, str) and methods == ALL_METHODS:
        methods = list(METHODS)
    if isinstance(methods, Mapping):
        choices = [_labelled(str(label), entry) for label, entry in methods.items()]
    else:
        choices = [_labelled("", entry) for entry in dict.fromkeys(map(_name, as_list(methods)))]
    if not choices:
        raise _no_method("no method", "pass at least one")
    return tuple(choices)


def _name(entry: object) -> str:
    if isinstance(entry, str):
        return entry
    if callable(entry):
        raise _no_method(shorten(entry), "register it: hubbub.register_estimator('mine', function), then name it")
    raise _no_method(shorten(entry), "pass names of methods")


def _labelled(label: str, entry: object) -> MethodChoice:
    keywords: Keywords = ()
    if isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[1], Mapping):
        keywords = tuple(sorted((str(name), value) for name, value in entry[1].items()))
        entry = entry[0]
    name = _name(entry)
    try:
        find_method(name, "benchmark")
    except SettingError as error:
        raise restated(error, SettingError, where="benchmark(methods)") from None
    return MethodChoice(label or name, name, keywords)


def _no_method(got: str, remedy: str) -> SettingError:
    return SettingError(
        "this is not a method of estimate",
        where="benchmark(methods)",
        got=got,
        expected="a name such as 'auto', a list of names, 'all', or {label: (name, {keyword: value})}",
        remedy=remedy,
    )


def check_drawable(setups: Sequence[Setup], draws: Mapping[tuple[str, float | None, int], CandidateDraws]) -> None:
    """Refuse more users than can be drawn one by one where a mechanism has too many outputs to count."""
    names = [
        setup.candidate.name
        for setup in setups
        if setup.users > MAX_DRAWN_USERS and not draws[setup.candidate.key].counts_suffice
    ]
    if names:
        raise SettingError(
            "too many users to draw their reports one by one",
            where="benchmark(users=)",
            got=f"{max(setup.users for setup in setups):,} users of {listed(list(dict.fromkeys(names)), most=3)}",
            expected=f"at most {MAX_DRAWN_USERS:,} users where a mechanism has too many outputs to count",
            remedy="pass fewer users, or leave these mechanisms out",
        )


def check_seed(rng: object, path: object) -> int:
    """Return the seed; a generator cannot be kept beside runs that a later call goes on with."""
    generator, seed = validation.generator(rng, "benchmark")
    if isinstance(seed, int):
        return seed
    if path is not None:
        raise SettingError(
            "runs that are kept need a seed",
            where="benchmark(rng=)",
            got=shorten(rng),
            expected="a whole number, or nothing: a later call must draw the same runs",
            remedy="pass a seed, or leave rng out",
        )
    return int(generator.integers(2**63))
