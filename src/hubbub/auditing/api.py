"""Is the claimed epsilon true? Proven from whole numbers, tested by draws, and added up over reports."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import overload

from hubbub.auditing.draws_fit import fitting
from hubbub.auditing.empirical_bounds import DrawnOutputs, Sampler, drawing, testing
from hubbub.auditing.events import (
    Family,
    bit_pairs,
    hashed_bit,
    numbers_and_rows,
    packed_bit,
    plain_bit,
    sides_of_a_map,
)
from hubbub.auditing.exact_epsilon import of_one_report, proving
from hubbub.auditing.privacy_budget import budget_of, budget_of_claims
from hubbub.auditing.result import Audit
from hubbub.core import validation
from hubbub.core.arrays import Array, as_integer, as_real
from hubbub.core.errors import MechanismError, SettingError, shorten
from hubbub.core.progress import Progress, finish
from hubbub.domains import Domain
from hubbub.mechanisms import LocalHashing, Mechanism
from hubbub.mechanisms.packed_outputs import BitRowOutputs

DRAWS = 100_000  # of each value that is tried
FEWEST_DRAWS = 100
LEVEL = 0.99
SURE = 1 - 1e-6  # with which draws must refute a mechanism of the library
BITS = "the bit of {} is 1 and that of {} is 0"


@overload
def audit(
    mechanism: Mechanism, *, draws: int = ..., level: float = ..., reports_per_user: int | None = ...
) -> Audit: ...


@overload
def audit(
    mechanism: Callable[[Array], object],
    *,
    domain: Domain,
    epsilon: float,
    metric: bool = ...,
    draws: int = ...,
    level: float = ...,
    reports_per_user: int | None = ...,
) -> Audit: ...


def audit(
    mechanism: Mechanism | Callable[[Array], object],
    *,
    domain: Domain | None = None,
    epsilon: float | None = None,
    metric: bool = False,
    draws: int = DRAWS,
    level: float = LEVEL,
    reports_per_user: int | None = 1,
) -> Audit:
    """Check the epsilon that a mechanism claims, or a sampler of your own.

    1. Exact, for mechanisms: the largest ratio P(z | x) / P(z | x') over all pairs of values and all outputs, from
       the whole numbers that are really drawn from, compared with exp(epsilon), or exp(epsilon d(x, x')) where
       epsilon is per unit of distance, by interval arithmetic.
    2. Empirical: a lower bound on epsilon that holds with probability `level`, from `draws` outputs of each of a few
       values, drawn as real reports are; and whether these outputs follow the matrix.
    3. The budget: what a user spends who sends `reports_per_user` reports (None: as many as they like).

    A sampler is a function from an array of values to as many outputs, with the `domain` of the values and the
    `epsilon` it claims (`metric`: per unit of distance); then there is no proof, only 2 and 3.

    >>> from hubbub.domains import Integers
    >>> from hubbub.mechanisms import TruncatedGeometric
    >>> found = audit(TruncatedGeometric(Integers(0, 9), epsilon=1.0), draws=1000)
    >>> found.exact.holds, found.exact.high
    (True, Decimal('0.99999999999999912'))
    """
    run = auditing(
        mechanism,
        domain=domain,
        epsilon=epsilon,
        metric=metric,
        draws=draws,
        level=level,
        reports_per_user=reports_per_user,
    )
    return finish(run)


def auditing(
    mechanism: object,
    *,
    domain: object = None,
    epsilon: object = None,
    metric: object = False,
    draws: object = DRAWS,
    level: object = LEVEL,
    reports_per_user: object = 1,
) -> Generator[Progress, None, Audit]:
    """Do the same, and yield progress."""
    count, sure = check_draws(draws), validation.level(level, "audit")
    reports = check_reports_per_user(reports_per_user)
    if isinstance(mechanism, Mechanism):
        if domain is not None or epsilon is not None or metric is not False:
            raise SettingError(
                "a mechanism brings its own domain and epsilon",
                where="audit(mechanism)",
                got="domain=, epsilon= or metric= besides a mechanism",
                expected="the mechanism alone",
                remedy="leave them out; to test another claim, pass mechanism.privatize as a sampler",
            )
        return (yield from _of_mechanism(mechanism, count, sure, reports))
    if not callable(mechanism):
        raise SettingError(
            "neither a mechanism nor a sampler",
            where="audit(mechanism)",
            got=shorten(mechanism),
            expected="a hubbub mechanism, or a function from values to outputs",
            remedy="pass the mechanism itself, or a function together with domain= and epsilon=",
        )
    return (yield from _of_sampler(mechanism, domain, epsilon, metric, count, sure, reports))


def _of_mechanism(
    mechanism: Mechanism, draws: int, level: float, reports: int | None
) -> Generator[Progress, None, Audit]:
    exact, unproven = None, ""
    try:
        exact = yield from proving(mechanism)
    except MechanismError as error:  # too large, or a law of its own: the draws are tested all the same
        unproven = f"{error.what}: {error.got}"
    drawn = yield from drawing(mechanism.privatize, mechanism.domain, draws)
    families = _families(mechanism, mechanism.domain, drawn)
    empirical = testing(drawn, families, mechanism.domain, mechanism.spent(1), mechanism.metric, level, SURE)
    yield Progress(0, 0, "comparing outputs with the matrix")
    return Audit(
        name=type(mechanism).__name__,
        claim=mechanism.epsilon,
        metric=mechanism.metric,
        unit=mechanism.domain.unit if mechanism.metric else None,
        exact=exact,
        unproven=unproven,
        empirical=empirical,
        fit=fitting(mechanism, drawn),
        budget=budget_of([mechanism], reports),
        one_report=None if exact is None else of_one_report(mechanism),
    )


def _of_sampler(
    sampler: Sampler,
    domain: object,
    epsilon: object,
    metric: object,
    draws: int,
    level: float,
    reports: int | None,
) -> Generator[Progress, None, Audit]:
    validation.boolean(metric, "metric", "audit")
    if not isinstance(domain, Domain):
        raise SettingError(
            "a sampler needs the domain of its values",
            where="audit(domain=)",
            got=shorten(domain),
            expected="a hubbub domain",
            remedy="pass domain=hubbub.Integers(...), or whatever the values are",
        )
    claim = as_real(epsilon)
    if not claim > 0:
        raise SettingError(
            "a sampler needs the epsilon that it claims",
            where="audit(epsilon=)",
            got=shorten(epsilon),
            expected="a positive number",
            remedy="pass epsilon=, and metric=True where it is per unit of distance",
        )
    drawn = yield from drawing(sampler, domain, draws)
    by_unit = bool(metric)
    return Audit(
        name=getattr(sampler, "__name__", type(sampler).__name__),
        claim=claim,
        metric=by_unit,
        unit=domain.unit if by_unit else None,
        exact=None,
        unproven="a sampler can only be tried",
        empirical=testing(drawn, _families(None, domain, drawn), domain, claim, by_unit, level, level),
        fit=None,
        budget=budget_of_claims([(lambda count: count * claim, by_unit)], reports, domain),
    )


def _families(mechanism: Mechanism | None, domain: Domain, drawn: DrawnOutputs) -> Sequence[Family]:
    """Return the events that may tell values apart, by what outputs look like."""
    if isinstance(mechanism, LocalHashing):
        hashed = partial(hashed_bit, int(mechanism.buckets or 2))
        return [bit_pairs(domain, drawn.positions, hashed, "the bucket is that of {} and not that of {}")]
    if mechanism is not None and isinstance(mechanism.output_space, BitRowOutputs):
        return [bit_pairs(domain, drawn.positions, packed_bit, BITS)]
    families = numbers_and_rows(drawn.first)
    if all(part.ndim == 2 and part.shape[1] == len(domain) and part.dtype.kind in "biu" for part in drawn.first):
        families.append(bit_pairs(domain, drawn.positions, plain_bit, BITS))
    if domain.grid is not None and domain.among is None:
        families += sides_of_a_map(domain.grid, drawn.first)
    return families


def check_draws(draws: object) -> int:
    """Return how many outputs of each value are drawn."""
    number = as_integer(draws, SettingError, where="audit(draws=)", expected="a whole number")
    if number < FEWEST_DRAWS:
        raise SettingError(
            "too few draws",
            where="audit(draws=)",
            got=number,
            expected=f"{FEWEST_DRAWS} or more: they show nothing otherwise",
            remedy=f"leave it out for {DRAWS:,}",
        )
    return number


def check_reports_per_user(reports: object) -> int | None:
    """Return how many reports a user sends, None for no limit."""
    if reports is None:
        return None
    number = as_integer(reports, SettingError, where="audit(reports_per_user=)", expected="a whole number from 1")
    if number < 1:
        raise SettingError(
            "the number of reports is not a number of reports",
            where="audit(reports_per_user=)",
            got=number,
            expected="a whole number from 1, or None for no limit",
            remedy="leave it out for 1",
        )
    return number
