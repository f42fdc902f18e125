"""`plan`: which mechanism, which epsilon, how many users, before anybody reports."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from hubbub.core import validation
from hubbub.core.arrays import Positions
from hubbub.core.errors import SettingError
from hubbub.core.progress import Progress, stepwise
from hubbub.domains import Domain
from hubbub.intake.study import Study
from hubbub.mechanisms import Mechanism
from hubbub.planning.answers import DISTANCE_NAMES, MEDIAN, POWER, USERS, AnswerType, Needed, Question
from hubbub.planning.candidates import Candidate, candidates_from
from hubbub.planning.central_target import central_candidates, check_central
from hubbub.planning.every_kind import EVERY_KIND, every_kind
from hubbub.planning.expected_errors import expected_errors
from hubbub.planning.group_size import detect_difference
from hubbub.planning.parallel import as_part
from hubbub.planning.repeated_studies import SimulatedStudies
from hubbub.planning.result import Plan
from hubbub.planning.sample_size import search_requirements
from hubbub.planning.simulator import Simulator
from hubbub.planning.truths import AssumedTruth, truths_from
from hubbub.planning.validation import (
    check_budgets,
    check_combination,
    check_difference,
    check_method,
    check_radius,
    check_reports_per_user,
    check_runs,
    check_target,
    check_users,
    check_values,
)
from hubbub.sampling import Randomness


@stepwise
def plan(
    mechanisms: object,
    *,
    users: object = None,
    target: float | None = None,
    truth: object = "uniform",
    distance: str = "tv",
    reports_per_user: object = 1,
    method: str = "auto",
    runs: int | None = None,
    rng: Randomness = None,
    domain: Domain | None = None,
    epsilon: object = None,
    radius: float | None = None,
    confidence: float = 0.5,
    level: float = 0.95,
    values: object = None,
    difference: float | None = None,
    power: float | None = None,
    central_epsilon: float | None = None,
    delta: float | None = None,
) -> Generator[Progress, None, Plan]:
    """Plan a study before anybody reports: the errors to expect, or the users or epsilon that it takes.

    Studies are simulated as they would be run, from drawing users to the estimate.

    Pass `users` for the errors to expect, `target` for the users that each candidate needs to reach that error, or both
    for the epsilon it needs. Pass `difference` for the users that each of two groups needs to show that a share differs
    by as much, or `difference` with `users` per group for the power of showing it; both follow from a formula.
    ``plan.steps(...)`` yields progress.

    Parameters
    ----------
    mechanisms : Mechanism, list, mapping, Study, class or str
        The candidates: a mechanism, a list, {name: mechanism}, a study, a mixture across users [(mechanism, share),
        ...], or kinds, which are classes or names as in study files, with `domain` and `epsilon`; "all" stands for all
        kinds that the domain allows, of which those that are clearly worse are left after a few simulated studies.
        Built mechanisms keep their own epsilon for each report.
    users : int or list of int, optional
        One or several numbers of users; with `difference` the number in each of the two groups.
    target : float, optional
        The error to reach, in `distance`.
    truth : str, array, mapping, Estimate or list of these, default "uniform"
        The distribution to assume: a shape ("uniform", "bell", "bells", "zipf", "block", "dominant"), shares in the
        order of ``domain.labels``, {value: count}, an estimate, a list of these (the worst counts), or "worst" for all
        shapes.
    distance : {"tv", "emd"}, default "tv"
        "tv" for total variation, or "emd" for the earth mover's distance in the domain's unit.
    reports_per_user : int or list of int, default 1
        One or several numbers of reports that each user sends.
    method : str, default "auto"
        The method of `estimate`.
    runs : int, optional
        Number of simulated studies for each error; left out, studies are simulated until the median is known well
        enough.
    rng : int or numpy.random.Generator, optional
        A seed or generator; left out, a fixed and recorded seed.
    domain : Domain, optional
        For kinds: the domain of the values.
    epsilon : float or list of float, optional
        For kinds: one or several plain epsilons. This is the budget of a user, so that kinds are compared at equal
        privacy: all reports share it, and where a kind's epsilon is per unit of distance, it is divided by `radius`.
    radius : float, optional
        The distance over which epsilon per unit counts as plain epsilon; left out, the domain's diameter.
    confidence : float, default 0.5
        The share of studies that reach the target.
    level : float, default 0.95
        Level of the intervals whose widths are predicted; a difference is tested at level 1 - `level`, two-sided.
    values : list of labels or "all", optional
        The values whose interval widths are predicted, or whose shares may differ: a list, or "all"; left out, all of
        at most 32 values, and of more those with the largest, the median and the smallest share.
    difference : float, optional
        The difference to detect between the shares of one value in two groups: 0.05 for 5 percentage points. One group
        has the assumed truth. Of several values, the one that takes most users counts.
    power : float, optional
        The probability of detecting the difference, from 0.5; left out, 0.8. With `users` it is what you get.
    central_epsilon, delta : float, optional
        For kinds that are shuffled (see `amplify`): each gets the largest epsilon whose reports, shuffled among `users`
        (one number; with `difference` per group), are (central_epsilon, delta)-private. Not with `epsilon`.

    Returns
    -------
    Plan
        The answer as sentences, tables, JSON and a picture.

    Raises
    ------
    SettingError
        If a keyword has a wrong value or no meaning together with the others.
    MechanismError
        If a kind cannot be built over the domain with that epsilon.
    EstimateError
        If the method cannot estimate from these mechanisms.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> result = hb.plan(coin, users=1000, truth={"yes": 30, "no": 70}, method="inv-p", runs=100)
    >>> print(result.answers[0])
    With 1,000 users and epsilon 1, expect a total variation of about 0.026 (below 0.053 in 9 of 10 studies).

    How many people must be asked in each of two groups to notice a difference of 5 percentage points:

    >>> print(hb.plan(coin, difference=0.05).answers[0])
    With epsilon 1, you need about 7,300 users per group to detect a difference of 5 percentage points in one share with
    power 80%.

    If there are 2,000 people in each group, how likely they are to show it:

    >>> print(hb.plan(coin, difference=0.05, users=2_000).answers[0])
    With 2,000 users per group and epsilon 1, you detect a difference of 5 percentage points in one share with power
    31%.

    What people may send so that the shuffled reports of all of them are private enough:

    >>> kinds = ["randomized-response", "optimized-unary"]
    >>> yes = hb.Categories(["yes", "no"])
    >>> print(hb.plan(kinds, domain=yes, users=2_000, difference=0.05, central_epsilon=0.1, delta=1e-6).answers[0])
    With 2,000 users per group and central epsilon 0.1 (delta 1e-06), randomized-response at epsilon 0.981 detects a
    difference of 5 percentage points in one share with power 30%; optimized-unary with 25%.
    """
    counts = check_users(users)
    distance = validation.one_of(distance, DISTANCE_NAMES, "distance", "plan", default="'tv'")
    target = check_target(target, distance)
    difference, power = check_difference(
        difference,
        power,
        counts,
        target=(target, None),
        distance=(distance, "tv"),
        method=(method, "auto"),
        runs=(runs, None),
        rng=(rng, None),
        confidence=(confidence, MEDIAN),
    )
    if not counts and target is None and difference is None:
        raise SettingError(
            "neither users nor a target nor a difference was passed",
            where="plan(users=, target=, difference=)",
            got="none of them",
            expected="users= for the error to expect, target= for the users needed, both for the epsilon needed, "
            "difference= for the users per group, or difference= and users= for the power",
            remedy="pass users=10_000, target=0.05, or difference=0.05",
        )
    confidence = validation.share(confidence, "confidence", "plan")
    generator, seed = validation.generator(rng, "plan")
    if isinstance(mechanisms, Study):
        domain = mechanisms.domain if domain is None else domain  # a different one is refused with the mechanisms
        mechanisms = dict(mechanisms.mechanisms)
    refused_kinds = None
    central = check_central(
        central_epsilon, delta, counts, epsilon=epsilon, target=target, reports_per_user=reports_per_user
    )
    if mechanisms == EVERY_KIND:
        mechanisms, refused_kinds = _every_kind(
            domain, epsilon if central is None else central.epsilon, radius, reports_per_user
        )

    def answer(candidates: tuple[Candidate, ...]) -> Generator[Progress, None, Plan]:
        over = candidates[0].domain
        is_metric = any(candidate.privacy.per_unit is not None for candidate in candidates)
        check_combination(
            over, distance=distance, radius=radius, is_metric=is_metric, confidence=confidence, target=target
        )
        truths = truths_from(truth, over)
        question = Question(
            users=counts,
            target=target,
            truths=tuple(truth.name for truth in truths),
            method=check_method(method),
            distance=distance,
            confidence=confidence,
            level=validation.level(level, "plan"),
            runs=check_runs(runs),
            radius=radius,
            unit=over.unit,
            seed=seed,
            difference=difference,
            power=power,
            central_epsilon=None if central is None else central.epsilon,
            delta=None if central is None else central.delta,
            refused_kinds=refused_kinds,
        )
        return _answer(question, candidates, truths, generator, check_values(values, over))

    if central is not None:
        return _after(central_candidates(mechanisms, central, domain, radius), answer)
    return answer(
        candidates_from(mechanisms, domain=domain, epsilon=epsilon, radius=radius, reports_per_user=reports_per_user)
    )


def _after(
    search: Generator[Progress, None, tuple[Candidate, ...]],
    answer: Callable[[tuple[Candidate, ...]], Generator[Progress, None, Plan]],
) -> Generator[Progress, None, Plan]:
    """Answer for the candidates that a search returns."""
    candidates = yield from search
    return (yield from answer(candidates))


def _every_kind(
    domain: Domain | None, epsilon: object, radius: float | None, reports_per_user: object
) -> tuple[dict[str, type[Mechanism]], tuple[str, ...]]:
    """Return all kinds that the domain allows at these budgets, by name, and the names of the others."""
    budgets = check_budgets(domain, epsilon, has_kinds=True)
    assert domain is not None  # noqa: S101  # as was just checked
    check_radius(radius, domain)
    reach = domain.diameter if radius is None else float(radius)
    repeated = max(check_reports_per_user(reports_per_user)) > 1
    several = [every_kind(domain, budget, reach, repeated=repeated) for budget in budgets]
    refused = dict.fromkeys(name for each in several for name in each.refused)
    kinds = {name: kind for name, kind in several[0].kinds.items() if name not in refused}
    return kinds, tuple(refused)


def _answer(
    question: Question,
    candidates: Sequence[Candidate],
    truths: Sequence[AssumedTruth],
    generator: np.random.Generator,
    positions: Positions | None,
) -> Generator[Progress, None, Plan]:
    if question.difference is not None:
        answers = yield from detect_difference(question, candidates, truths, positions)
        needed = _worst_of_truths(answers, len(truths), _badness)
        return Plan(question, (), tuple(needed), tuple(truths))
    simulators = [Simulator(candidate, question.method) for candidate in candidates]

    def all_studies() -> list[list[SimulatedStudies]]:
        """Return the studies of each candidate, one for each truth."""
        seed = question.seed if isinstance(question.seed, int) else int(generator.integers(2**63))
        options: dict[str, Any] = {"distance": question.distance, "runs": question.runs}
        return [[SimulatedStudies(each, truth, seed, **options) for truth in truths] for each in simulators]

    needed = []
    searches: Sequence[int | None] = () if question.target is None else question.users or (None,)
    for number, users in enumerate(searches):
        search = search_requirements(question, chain(*all_studies()), users)
        results = yield from as_part(search, number, len(searches) + 1)
        needed += _worst_of_truths(results, len(truths), _badness)
    studies = all_studies()
    if question.looks_for == USERS:
        # The error with the number of users that was found, so that its spread and the intervals are known too.
        by_key = {(each.candidate.key, each.truth.name): each for each in chain(*studies)}
        reached = [need for need in needed if need.value is not None]
        tried = [(by_key[need.key, need.truth], math.ceil(need.value or 0.0)) for need in reached]
    else:
        tried = [(each, users) for own in studies for users in question.users for each in own]
    race = question.refused_kinds is not None and question.runs is None
    is_central = question.central_epsilon is not None
    last = expected_errors(tried, question.level, positions, race=race, same_privacy=is_central)
    settings = yield from as_part(last, len(searches), len(searches) + 1)
    if question.looks_for != USERS:
        settings = _worst_of_truths(settings, len(truths), lambda setting: question.error(setting).median)
    return Plan(question, tuple(settings), tuple(needed), tuple(truths))


def _badness(need: Needed) -> float:
    """Return what is larger for a worse answer; out of reach is worst."""
    if need.value is None:
        return math.inf
    return -need.value if need.what == POWER else need.value


def _worst_of_truths(
    answers: Sequence[AnswerType], truths: int, badness: Callable[[AnswerType], float]
) -> list[AnswerType]:
    """Return the worst of each `truths` consecutive answers, which keeps the rest as its `others`."""
    kept: list[AnswerType] = []
    for first in range(0, len(answers), truths):
        group = answers[first : first + truths]
        worst = max(group, key=badness)
        kept.append(replace(worst, others=tuple(answer for answer in group if answer is not worst)))
    return kept
