"""`audit`: prove a claimed epsilon from whole numbers, test it by draws, and add it up over reports."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial

from hubbub.auditing.draws_fit import compare_with_matrix
from hubbub.auditing.empirical_bounds import DrawnOutputs, bound_from_draws, draw_outputs
from hubbub.auditing.events import (
    BIT_EVENT,
    BUCKET_EVENT,
    EventFamily,
    bit_pair_events,
    generic_events,
    hashed_bit,
    map_side_events,
    packed_bit,
    unpacked_bit,
)
from hubbub.auditing.exact_epsilon import prove_epsilon, prove_one_report_epsilon
from hubbub.auditing.privacy_budget import budget_from_spending, privacy_budget
from hubbub.auditing.result import Audit
from hubbub.client import as_whole
from hubbub.core import validation
from hubbub.core.arrays import Array, as_real
from hubbub.core.errors import MechanismError, SettingError, shorten
from hubbub.core.progress import Progress, stepwise
from hubbub.domains import Domain
from hubbub.mechanisms import LocalHashing, Mechanism
from hubbub.mechanisms.packed_outputs import BitRowOutputs

DEFAULT_DRAWS = 100_000  # of each audited value
MIN_DRAWS = 100  # fewer show nothing
DEFAULT_LEVEL = 0.99
REFUTATION_LEVEL = 1 - 1e-6  # at which draws refute a mechanism of the library


@stepwise
def audit(
    mechanism: Mechanism | Callable[[Array], object],
    *,
    domain: Domain | None = None,
    epsilon: float | None = None,
    metric: bool = False,
    draws: int = DEFAULT_DRAWS,
    level: float = DEFAULT_LEVEL,
    reports_per_user: int | None = 1,
) -> Generator[Progress, None, Audit]:
    """Audit the epsilon that a mechanism, or a sampler of your own, claims.

    The audit has three parts:

    1. Exact, for mechanisms: the largest ratio P(z | x) / P(z | x') over all pairs of values and all outputs, from
       the whole numbers that reports are really drawn from. Interval arithmetic compares it with exp(epsilon), or
       with exp(epsilon d(x, x')) if epsilon is per unit of distance.
    2. Empirical: a lower bound on epsilon from outputs of a few values, drawn as real reports are; and, for
       mechanisms, whether these outputs follow the matrix.
    3. The budget: the total epsilon that a user spends.

    Parameters
    ----------
    mechanism
        A mechanism, or a sampler: a function from an array of values to as many outputs. A sampler cannot be proven,
        only tested, and needs `domain` and `epsilon`.
    domain
        The domain of a sampler's values.
    epsilon
        The epsilon that a sampler claims.
    metric
        Whether a sampler's epsilon is per unit of distance.
    draws
        The number of outputs drawn for each audited value, at least 100.
    level
        The probability with which the empirical bound holds.
    reports_per_user
        The number of reports that a user sends; None for no limit.

    Returns
    -------
    Audit
        The findings; `explain` puts them into sentences.

    Examples
    --------
    >>> from hubbub.domains import Integers
    >>> from hubbub.mechanisms import TruncatedGeometric
    >>> result = audit(TruncatedGeometric(Integers(0, 9), epsilon=1.0), draws=1000)
    >>> result.exact.holds, result.exact.high
    (True, Decimal('0.99999999999999912'))
    """
    draws = _whole(draws, "draws", at_least=MIN_DRAWS, default=f"{DEFAULT_DRAWS:,}")
    level = validation.level(level, "audit")
    if reports_per_user is not None:
        reports_per_user = _whole(reports_per_user, "reports_per_user", at_least=1, default="1")
    if isinstance(mechanism, Mechanism):
        if domain is not None or epsilon is not None or metric is not False:
            raise SettingError(
                "a mechanism brings its own domain and epsilon",
                where="audit(mechanism)",
                got="domain=, epsilon= or metric= besides a mechanism",
                expected="the mechanism alone",
                remedy="leave them out; to test another claim, pass mechanism.privatize as a sampler",
            )
        return _audit_mechanism(mechanism, draws, level, reports_per_user)
    if not callable(mechanism):
        raise SettingError(
            "neither a mechanism nor a sampler",
            where="audit(mechanism)",
            got=shorten(mechanism),
            expected="a hubbub mechanism, or a function from values to outputs",
            remedy="pass the mechanism itself, or a function together with domain= and epsilon=",
        )
    validation.boolean(metric, "metric", "audit")
    if not isinstance(domain, Domain):
        raise SettingError(
            "a sampler needs the domain of its values",
            where="audit(domain=)",
            got=shorten(domain),
            expected="a hubbub domain",
            remedy="pass the domain of the values, such as domain=hubbub.Integers(0, 9)",
        )
    claim = as_real(epsilon)
    if not claim > 0:
        raise SettingError(
            "a sampler needs the epsilon that it claims",
            where="audit(epsilon=)",
            got=shorten(epsilon),
            expected="a positive number",
            remedy="pass epsilon=, and metric=True if it is per unit of distance",
        )
    return _audit_sampler(mechanism, domain, claim, metric, draws, level, reports_per_user)


def _whole(value: object, name: str, *, at_least: int, default: str) -> int:
    number = as_whole(value)  # 1e6 is a whole number, too
    checked = value if number is None else number
    return validation.whole(checked, name, "audit", at_least=at_least, default=default)


def _audit_mechanism(
    mechanism: Mechanism, draws: int, level: float, reports_per_user: int | None
) -> Generator[Progress, None, Audit]:
    exact, unproven = None, ""
    try:
        exact = yield from prove_epsilon.steps(mechanism)
    except MechanismError as error:  # too large, or a law of its own: the draws are tested all the same
        unproven = f"{error.what}: {error.got}"
    drawn = yield from draw_outputs(mechanism.privatize, mechanism.domain, draws)
    empirical = bound_from_draws(
        drawn,
        _event_families(mechanism, mechanism.domain, drawn),
        mechanism.domain,
        mechanism.spent(1),
        metric=mechanism.metric,
        level=level,
        refutation_level=REFUTATION_LEVEL,
    )
    yield Progress(0, 0, "comparing outputs with the matrix")
    return Audit(
        name=type(mechanism).__name__,
        claim=mechanism.epsilon,
        metric=mechanism.metric,
        unit=mechanism.domain.unit if mechanism.metric else None,
        exact=exact,
        unproven=unproven,
        empirical=empirical,
        fit=compare_with_matrix(mechanism, drawn),
        budget=privacy_budget([mechanism], reports_per_user),
        one_report=None if exact is None else prove_one_report_epsilon(mechanism),
    )


def _audit_sampler(
    sampler: Callable[[Array], object],
    domain: Domain,
    claim: float,
    metric: bool,
    draws: int,
    level: float,
    reports_per_user: int | None,
) -> Generator[Progress, None, Audit]:
    drawn = yield from draw_outputs(sampler, domain, draws)
    families = _event_families(None, domain, drawn)
    return Audit(
        name=getattr(sampler, "__name__", type(sampler).__name__),
        claim=claim,
        metric=metric,
        unit=domain.unit if metric else None,
        exact=None,
        unproven="a sampler can only be tested",
        empirical=bound_from_draws(drawn, families, domain, claim, metric=metric, level=level, refutation_level=level),
        fit=None,
        budget=budget_from_spending([(lambda count: count * claim, metric)], reports_per_user, domain),
    )


def _event_families(mechanism: Mechanism | None, domain: Domain, drawn: DrawnOutputs) -> Sequence[EventFamily]:
    """Return the events that may distinguish values, for outputs that look like these."""
    if isinstance(mechanism, LocalHashing):
        hashed = partial(hashed_bit, int(mechanism.buckets or 2))
        return [bit_pair_events(domain, drawn.positions, hashed, BUCKET_EVENT)]
    if mechanism is not None and isinstance(mechanism.output_space, BitRowOutputs):
        return [bit_pair_events(domain, drawn.positions, packed_bit, BIT_EVENT)]
    families = generic_events(drawn.choosing)
    if all(
        outputs.ndim == 2 and outputs.shape[1] == len(domain) and outputs.dtype.kind in "biu"
        for outputs in drawn.choosing
    ):
        families.append(bit_pair_events(domain, drawn.positions, unpacked_bit, BIT_EVENT))
    if domain.grid is not None and domain.among is None:
        families += map_side_events(domain.grid, drawn.choosing)
    return families
