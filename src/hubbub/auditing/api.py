"""`audit` and `audit_samples`: a claimed epsilon proven from whole numbers, tested by draws or a client's outputs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hubbub.auditing.attacker_result import Attacker
from hubbub.auditing.distinguishing_events import event_families
from hubbub.auditing.empirical_bounds import bound_from_draws, draw_outputs
from hubbub.auditing.exact_epsilon import (
    ExactEpsilon,
    prove_attribute_epsilons,
    prove_epsilon,
    prove_one_report_epsilon,
)
from hubbub.auditing.guessing_attacker import MAX_REPORTS, attacker, read_prior
from hubbub.auditing.pair_bounds import prove_pair_bounds, read_bounds
from hubbub.auditing.privacy_budget import Spending, budget_from_spending, privacy_budget
from hubbub.auditing.result import Audit, StudyAudit
from hubbub.auditing.sample_audit import Samples, audit_encoded, check_enough, encode_samples
from hubbub.auditing.sample_result import SampleAudit, StudySampleAudit
from hubbub.auditing.sampler_fit import compare_with_law
from hubbub.client import as_whole
from hubbub.core import validation
from hubbub.core.arrays import Array, as_real
from hubbub.core.defaults import DEFAULT_AUDIT_LEVEL, DEFAULT_DRAWS
from hubbub.core.errors import MechanismError, SettingError, shorten
from hubbub.core.progress import Progress, map_steps, stepwise
from hubbub.core.serialization import ReadOnly
from hubbub.domains import Domain
from hubbub.intake.client_outputs import read_client_outputs
from hubbub.intake.sources.column_names import OWN_NAMES, ColumnNames
from hubbub.intake.study import Study, check_study
from hubbub.mechanisms import Matrix, Mechanism

MIN_DRAWS = 100  # fewer show nothing
REFUTATION_LEVEL = 1 - 1e-6  # at which draws refute a mechanism of the library


@stepwise
def audit(
    mechanism: Mechanism | Callable[[Array], object],
    *,
    domain: Domain | None = None,
    epsilon: float | None = None,
    metric: bool = False,
    draws: int = DEFAULT_DRAWS,
    level: float = DEFAULT_AUDIT_LEVEL,
    reports_per_user: int | None = 1,
    pairs: Mapping[Any, Any] | None = None,
) -> Generator[Progress, None, Audit]:
    """Audit the epsilon that a mechanism, or a sampler of your own, claims.

    The audit has three parts:

    1. Exact, for mechanisms: the largest ratio P(z | x) / P(z | x') over all pairs of values and all outputs, from
       the whole numbers that reports are really drawn from; of several attributes, over pairs of possible
       combinations. Interval arithmetic compares it with exp(epsilon), or with exp(epsilon d(x, x')) if epsilon is
       per unit of distance.
    2. Empirical: a lower bound on epsilon from outputs of a few values, drawn as real reports are; and, for
       mechanisms, whether these outputs follow the matrix.
    3. The budget: the total epsilon that a user spends.

    With `pairs`, a policy of bounds for pairs of values of your own is proven or refuted, too, for mechanisms that are
    drawn from a table of probabilities (a `Matrix`, for example), by the same whole numbers.

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
    pairs
        Bounds for pairs of values: ``{(value, other): bound}``. The probabilities of any output under the two differ
        by a factor of at most e^bound, in both directions; infinity is no bound. Pairs that are not listed may do
        what they want.

    Returns
    -------
    Audit
        The findings; `explain` puts them into sentences.

    Raises
    ------
    SettingError
        If a keyword has a wrong value, a sampler comes without `domain` or `epsilon`, or a mechanism with them; if a
        sampler comes with `pairs`, or these are not pairs of different values with bounds from 0.
    DomainError
        If a value of a pair is not in the domain.
    MechanismError
        If a sampler does not return one output for each value, or pairs cannot be compared for a kind of mechanism.

    Examples
    --------
    >>> import hubbub as hb
    >>> digits = hb.Integers(0, 9)
    >>> result = hb.audit(hb.TruncatedGeometric(digits, epsilon=1.0), draws=1000)
    >>> result.verdict, result.exact.high
    ('proven', Decimal('0.99999999999999912'))
    >>> hb.audit(lambda values: values, domain=digits, epsilon=1.0, draws=1000).verdict
    'refuted'

    Yes and no may be told apart, and either hardly from a refusal:

    >>> answers = hb.Categories(["yes", "no", "refused"])
    >>> table = hb.Matrix(answers, ["A", "B"], [[0.6, 0.4], [0.4, 0.6], [0.5, 0.5]])
    >>> policy = {("yes", "no"): 1.0, ("yes", "refused"): 0.2, ("no", "refused"): 0.2}
    >>> pairs = hb.audit(table, pairs=policy, draws=1000).pairs
    >>> pairs.holds, pairs.worst.bound, pairs.worst.high
    (False, 0.2, Decimal('0.22314355131420971'))
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
        if pairs is not None:
            read_bounds(mechanism.domain, pairs)  # before what takes long
        return _audit(_Subject.of_mechanism(mechanism), draws, level, reports_per_user, pairs)
    if pairs is not None:
        raise SettingError(
            "pairs of values are proven for mechanisms alone",
            where="audit(pairs=)",
            got="a sampler",
            expected="a mechanism that is drawn from a table of probabilities, such as Matrix",
            remedy="leave pairs out, or write the sampler as a Matrix",
        )
    return _audit(_Subject.of_sampler(mechanism, domain, epsilon, metric), draws, level, reports_per_user)


def _whole(value: object, name: str, *, at_least: int, default: str) -> int:
    number = as_whole(value)  # 1e6 is a whole number, too
    checked = value if number is None else number
    return validation.whole(checked, name, "audit", at_least=at_least, default=default)


@dataclass(frozen=True)
class _Subject:
    """What is audited: a sampler and its claim, and the mechanism behind it, if there is one."""

    name: str
    sampler: Callable[[Array], object]
    domain: Domain
    claim: float
    metric: bool
    spent: Spending
    mechanism: Mechanism | None = None

    @classmethod
    def of_mechanism(cls, mechanism: Mechanism) -> _Subject:
        name, sampler = type(mechanism).__name__, mechanism.privatize
        return cls(name, sampler, mechanism.domain, mechanism.epsilon, mechanism.metric, mechanism.spent, mechanism)

    @classmethod
    def of_sampler(cls, sampler: object, domain: object, epsilon: object, metric: bool) -> _Subject:
        """Check what a sampler of the caller's own has to bring."""
        if not callable(sampler):
            raise SettingError(
                "neither a mechanism nor a sampler",
                where="audit(mechanism)",
                got=shorten(sampler),
                expected="a hubbub mechanism, or a function from values to outputs",
                remedy="pass the mechanism itself, or a function together with domain= and epsilon=",
            )
        validation.boolean(metric, "metric", "audit")
        if not isinstance(domain, Domain):
            remedy = "pass the domain of the sampler's values, such as domain=hubbub.Integers(0, 9)"
            raise validation.wrong(domain, "domain", "audit", "a hubbub domain", remedy=remedy)
        claim = as_real(epsilon)
        if not claim > 0:
            remedy = "pass the epsilon that the sampler claims, and metric=True if it is per unit of distance"
            raise validation.wrong(epsilon, "epsilon", "audit", "a positive number", remedy=remedy)
        name = getattr(sampler, "__name__", type(sampler).__name__)
        return cls(name, sampler, domain, claim, metric, lambda reports: reports * claim)


def _audit(
    subject: _Subject,
    draws: int,
    level: float,
    reports_per_user: int | None,
    pairs: Mapping[Any, Any] | None = None,
) -> Generator[Progress, None, Audit]:
    mechanism, domain, metric = subject.mechanism, subject.domain, subject.metric
    proven = None if mechanism is None or pairs is None else (yield from prove_pair_bounds.steps(mechanism, pairs))
    exact, unproven = yield from _prove(mechanism)
    attributes = None
    if mechanism is not None and exact is not None:
        attributes = yield from prove_attribute_epsilons.steps(mechanism)
    drawn = yield from draw_outputs(subject.sampler, domain, draws)
    empirical = bound_from_draws(
        drawn,
        event_families(mechanism, domain, drawn.positions, drawn.choosing),
        domain,
        subject.spent(1),
        metric=metric,
        level=level,
        refutation_level=level if mechanism is None else REFUTATION_LEVEL,
    )
    yield Progress(0, 0, "comparing outputs with the matrix")
    return Audit(
        name=subject.name,
        claim=subject.claim,
        metric=metric,
        unit=domain.unit if metric else None,
        exact=exact,
        unproven=unproven,
        empirical=empirical,
        fit=None if mechanism is None else compare_with_law(mechanism, drawn),
        budget=budget_from_spending([(subject.spent, metric)], reports_per_user, domain),
        domain=domain,
        attributes=attributes,
        one_report=None if mechanism is None or exact is None else prove_one_report_epsilon(mechanism),
        pairs=proven,
        origin=mechanism.origin if isinstance(mechanism, Matrix) else "",
    )


def _prove(mechanism: Mechanism | None) -> Generator[Progress, None, tuple[ExactEpsilon | None, str]]:
    """Return the exact epsilon, or None and why there is none."""
    if mechanism is None:
        return None, "a sampler can only be tested"
    try:
        return (yield from prove_epsilon.steps(mechanism)), ""
    except MechanismError as error:  # too large, or a law of its own: the draws are tested all the same
        return None, f"{error.what}: {error.got}"


@stepwise
def audit_study(
    study: Study,
    *,
    mechanism: str | None = None,
    draws: int = DEFAULT_DRAWS,
    level: float = DEFAULT_AUDIT_LEVEL,
    prior: object = None,
    prior_name: str | None = None,
) -> Generator[Progress, None, StudyAudit]:
    """Audit the mechanisms of a study, or one of them, with the number of reports that it allows each user.

    With a `prior`, as for `attacker`, how well somebody who knows it guesses a person's value is told, too.
    """
    check_study(study, "audit_study(study)")
    names = list(study.mechanisms)
    if mechanism is not None:
        names = [validation.one_of(mechanism, names, "mechanism", "audit_study", default="all mechanisms of the study")]

    def audit_one(name: str) -> Generator[Progress, None, Audit]:
        run = audit.steps(study.mechanisms[name], draws=draws, level=level, reports_per_user=study.max_reports_per_user)
        return map_steps(run, lambda step: step._replace(what=f"{name}: {step.what}"))

    known = None if prior is None else read_prior(prior, study.domain)
    audits = {}
    attackers: dict[str, Attacker | str] = {}
    for name in names:
        audits[name] = yield from audit_one(name)
        if known is not None:
            reports = study.max_reports_per_user or 1
            run = attacker.steps(study.mechanisms[name], prior=known[1], reports_per_user=min(reports, MAX_REPORTS))
            try:
                found = yield from run
            except MechanismError as error:  # too large to simulate: the audit holds all the same
                attackers[name] = f"{error.what}: {error.got}"
            else:
                attackers[name] = replace(found, prior=prior_name or known[0])
    limits = study.max_epsilon_per_user, study.max_epsilon_per_unit
    budget = privacy_budget(list(study.mechanisms.values()), study.max_reports_per_user, limits)
    return StudyAudit(study, ReadOnly(audits), budget, None if known is None else ReadOnly(attackers))


@stepwise
def audit_samples(
    mechanism: Mechanism, inputs: object, outputs: object, *, level: float = DEFAULT_AUDIT_LEVEL
) -> Generator[Progress, None, SampleAudit]:
    """Audit outputs that a client drew, whoever wrote it and in whatever language.

    The audit has two parts:

    1. The law: whether the outputs of each value have the probabilities that the mechanism gives them. Chi-square and
       binomial tests look at each value, at all values together, at the displacement from the value, at bits and pairs
       of bits, at buckets under their seeds, and at outputs that depend on earlier ones, or on their random numbers.
    2. The claim: a lower bound on epsilon, as in `audit`. A random half of the outputs chooses two values and an event,
       and the other half counts it, so that the choice costs nothing.

    A correct client is refuted with probability ``1 - level`` at most: half of it by all tests of the law together
    (the smallest p-value of each kind, times the number of tests and kinds), half by the bound.

    Parameters
    ----------
    mechanism
        The mechanism that the client claims to follow.
    inputs
        The values that were privatized: labels of the domain.
    outputs
        What the client sent for each of them, one output for each person, in the order in which they were drawn: as
        `Mechanism.privatize` returns them, or as texts. The order matters: do not sort them.
    level
        The probability with which a correct client passes.

    Returns
    -------
    SampleAudit
        The findings; `explain` puts them into sentences, and says which faults would have been found.

    Raises
    ------
    SettingError
        If `mechanism` is not a mechanism, or `level` is not between 0 and 1.
    DomainError
        If an input is not in the domain.
    OutputError
        If no output is one that the mechanism can send.
    ReportsError
        If there are fewer than 100 outputs, or not one for each input.

    Examples
    --------
    >>> import numpy as np
    >>> import hubbub as hb
    >>> colours = hb.RandomizedResponse(hb.Categories(["red", "green", "blue"]), epsilon=1.0)
    >>> inputs = colours.domain.labels[np.arange(9000) % 3]
    >>> result = hb.audit_samples(colours, inputs, colours.privatize(inputs, rng=1))
    >>> result.verdict, result.holds
    ('no fault found', None)
    >>> loud = hb.RandomizedResponse(colours.domain, epsilon=1.2)
    >>> hb.audit_samples(colours, inputs, loud.privatize(inputs, rng=1)).verdict
    'refuted'
    """
    if not isinstance(mechanism, Mechanism):
        raise SettingError(
            "not a mechanism",
            where="audit_samples(mechanism)",
            got=shorten(mechanism),
            expected="a hubbub mechanism: the one that the client claims to follow",
            remedy="pass one, such as study.mechanisms['NAME']; for a sampler without a law there is audit",
        )
    level = validation.level(level, "audit_samples")
    return audit_encoded(mechanism, encode_samples(mechanism, inputs, outputs), level)


@stepwise
def audit_study_samples(
    source: object,
    study: Study,
    *,
    mechanism: str | None = None,
    level: float = DEFAULT_AUDIT_LEVEL,
    columns: ColumnNames = OWN_NAMES,
) -> Generator[Progress, None, StudySampleAudit]:
    """Audit the outputs of a client in a file, mechanism by mechanism; `level` holds for all of them together."""
    check_study(study, "audit_study_samples(study)")
    level = validation.level(level, "audit_study_samples")
    read, notes = yield from read_client_outputs(source, study, mechanism=mechanism, columns=columns)
    own_level = 1 - (1 - level) / len(read)
    audits = {}
    for name, outputs in read.items():
        check_enough(len(outputs.codes) + outputs.impossible, f"the outputs of {name}")
        audits[name] = yield from audit_encoded(study.mechanisms[name], Samples(**vars(outputs)), own_level)
    return StudySampleAudit(study, ReadOnly(audits), notes)
