"""Checks of the arguments of `design`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np

from hubbub.client import MAX_EPSILON, MIN_EPSILON
from hubbub.core import validation
from hubbub.core.arrays import Floats, as_floats, as_real, plain
from hubbub.core.defaults import DESIGN_GOALS
from hubbub.core.errors import DomainError, SettingError, restated, shorten
from hubbub.core.text import plural
from hubbub.designing.privacy_policy import METRIC, PLAIN, PrivacyPolicy
from hubbub.domains import Domain
from hubbub.planning.truths import truths_from

WHERE = "design"
MIN_VALUES, MAX_VALUES = 2, 400
MAX_PLAIN_VALUES, MAX_SEARCHED_VALUES = 40, 100  # beyond, a search takes many minutes and thousands of outputs
GOALS = DESIGN_GOALS
RISK, VARIANCE, WIDTH, INFORMATION, SERVICE_LOSS, RATE_DISTORTION = GOALS
MIX_REMEDY = "mix it with equal shares: 0.99 * shares + 0.01 / len(shares)"


def check_domain(domain: object) -> Domain:
    """Return a domain with at least two values, and few enough to design for."""
    if not isinstance(domain, Domain):
        raise DomainError(
            "not a domain",
            where="design(domain)",
            got=shorten(domain),
            expected="a domain, such as hb.Integers(0, 15), hb.Grid(6, 6) or hb.Categories([...])",
            remedy="build the domain first; of a study it is study.domain",
        )
    if not MIN_VALUES <= len(domain) <= MAX_VALUES:
        raise DomainError(
            "a mechanism cannot be designed for so many values",
            where="design(domain)",
            got=plural(len(domain), "value"),
            expected=f"{MIN_VALUES} to {MAX_VALUES} values",
            remedy="design for a coarser domain, or use a built-in mechanism: hb.plan('all', ...) compares them",
        )
    return domain


def check_policy(domain: Domain, epsilon: object, privacy: object) -> PrivacyPolicy:
    """Return the privacy policy: plain, per unit of distance, or of pairs."""
    if isinstance(privacy, str):
        validation.one_of(privacy, (PLAIN, METRIC), "privacy", WHERE, default="'plain'")
        bound = _bound(epsilon, "design(epsilon)", "pass the privacy that every report keeps, such as 1.0")
        return PrivacyPolicy.metric(domain, bound) if privacy == METRIC else PrivacyPolicy.plain(domain, bound)
    if isinstance(privacy, Mapping):
        if epsilon is not None:
            raise SettingError(
                "epsilon was given twice",
                where="design(epsilon, privacy=)",
                got=f"epsilon {shorten(epsilon)}, and a bound for each pair",
                expected="epsilon=None where every pair has its own bound",
                remedy="pass None for epsilon, or a list of pairs that share one epsilon",
            )
        given = [(pair, bound) for pair, bound in privacy.items()]
    elif isinstance(privacy, list | tuple | Set):
        given = [(pair, epsilon) for pair in privacy]
    else:
        raise validation.wrong(
            privacy, "privacy", WHERE, "'plain', 'metric', a list of pairs of values, or {(value, other): bound}"
        )
    return _pair_policy(domain, given)


def check_size(policy: PrivacyPolicy, goal: str) -> None:
    """Refuse to search for columns where they are too many."""
    most = MAX_PLAIN_VALUES if policy.kind == PLAIN else MAX_SEARCHED_VALUES
    size = len(policy.domain)
    if goal in (SERVICE_LOSS, RATE_DISTORTION) or size <= most:
        return
    plain_remedy = "design for fewer values; where shares are alike, hb.SubsetSelection is nearly the best there is"
    raise DomainError(
        "a mechanism cannot be designed for so many values",
        where="design(domain)",
        got=f"{plural(size, 'value')}, {policy.kind} privacy, goal {goal!r}",
        expected=f"at most {most} values with this privacy; up to {MAX_VALUES} for goal {SERVICE_LOSS!r}",
        remedy=plain_remedy if policy.kind == PLAIN else "design for a coarser domain, or use a built-in mechanism",
    )


def check_goal(goal: object, keywords: Mapping[str, Any]) -> str:
    """Return the goal, if the keywords that were passed go with it."""
    goal = validation.one_of(goal, GOALS, "goal", WHERE, default=repr(RISK))
    takes = {
        "of": (WIDTH,),
        "loss": (RISK, VARIANCE, WIDTH, SERVICE_LOSS, RATE_DISTORTION),
        "max_loss": (RISK, VARIANCE, WIDTH),
        "outputs": (RISK, VARIANCE, WIDTH),
    }
    for name, goals in takes.items():
        if keywords.get(name) is not None and goal not in goals:
            raise SettingError(
                f"{name} has no meaning for this goal",
                where=f"design({name}=)",
                got=f"goal {goal!r}",
                expected=f"{name}= with goal {', '.join(map(repr, goals))}",
                remedy=f"leave {name} out, or choose another goal",
            )
    if goal == WIDTH and keywords.get("of") is None:
        raise SettingError(
            "nothing is said of what the interval is about",
            where="design(of=)",
            got="goal 'width' without of=",
            expected="a value, a list of values, {value: weight}, or a list of several of these",
            remedy="pass of= as to hb.interval; goal='variance' is about all shares",
        )
    return goal


def check_prior(prior: object, domain: Domain, *, positive: bool) -> Floats:
    """Return assumed distributions in rows: one for most priors, several for a list of them."""
    if prior is None:
        return np.full((1, len(domain)), 1.0 / len(domain))
    truths = truths_from(prior, domain, where="design(prior=)")
    rows = np.stack([truth.probabilities for truth in truths])
    centre = rows.mean(axis=0)
    if positive and centre.min() <= 0:
        place = int(np.argmin(centre))
        raise SettingError(
            "the prior says that a value never occurs",
            where="design(prior=)",
            got=f"probability 0 for {shorten(plain(domain.labels[place]))}",
            expected="a positive probability for every value",
            remedy=MIX_REMEDY,
        )
    return rows


def check_path(path: object, goal: str) -> Path | None:
    """Return the file that keeps columns; only searches have such."""
    if path is None:
        return None
    if not isinstance(path, str | Path):
        remedy = "pass a path, or leave it out"
        raise validation.wrong(path, "path", WHERE, "the name of a file", remedy=remedy)
    if goal in (SERVICE_LOSS, RATE_DISTORTION):
        raise SettingError(
            "path has no meaning for this goal",
            where="design(path=)",
            got=f"goal {goal!r}",
            expected="path= where columns are searched, round by round",
            remedy="leave path out: this goal is computed in one go",
        )
    return Path(path)


def check_losses(loss: object, domain: Domain) -> Floats:
    """Return the loss of each value (row) by each answer (column); by default the distance."""
    if loss is None:
        return domain.distances()
    losses = as_floats(loss)
    size = len(domain)
    expected = f"a table of {size} values x {size} answers, in the order of domain.labels"
    if losses is None or losses.shape != (size, size):
        got = shorten(loss) if losses is None else f"shape {losses.shape}"
        remedy = "give what a user of each value (row) loses by each answer (column)"
        raise SettingError(
            "the losses have the wrong shape", where="design(loss=)", got=got, expected=expected, remedy=remedy
        )
    good = np.isfinite(losses) & (losses >= 0)
    if not good.all():
        row, column = np.argwhere(~good)[0].tolist()
        raise SettingError(
            "a loss is negative or not finite",
            where=f"design(loss=), row {row}, column {column}",
            got=float(losses[row, column]),
            expected="losses of 0 or more",
            remedy="add a constant to all of them, or replace those that are not finite",
        )
    return losses


def _pair_policy(domain: Domain, given: list[tuple[object, object]]) -> PrivacyPolicy:
    where = "design(privacy=)"
    pairs: dict[tuple[int, int], float] = {}
    for pair, bound in given:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise SettingError(
                "not a pair of values",
                where=where,
                got=shorten(pair),
                expected="pairs such as (value, other)",
                remedy="write each pair in parentheses: [('a', 'b'), ('b', 'c')]",
            )
        first, second = _positions(domain, pair, where)
        if first == second:
            raise SettingError(
                "a pair has the same value twice",
                where=where,
                got=shorten(pair),
                expected="two different values",
                remedy="leave the pair out: a value cannot be told from itself",
            )
        key = min(first, second), max(first, second)
        number = _bound(bound, f"{where}, {shorten(pair)}", "give each pair the epsilon that may tell its values apart")
        if pairs.setdefault(key, number) != number:
            raise SettingError(
                "a pair has two bounds",
                where=where,
                got=f"{pairs[key]:g} and {number:g} for {shorten(pair)}, in one order or the other",
                expected="one bound for each pair: it holds in both directions",
                remedy="keep the smaller one",
            )
    if not pairs:
        remedy = "name the pairs that must not be told apart, or pass privacy='plain'"
        raise SettingError(
            "no pair is bounded", where=where, got="no pairs", expected="at least one pair", remedy=remedy
        )
    policy = PrivacyPolicy.of_pairs(domain, pairs)
    if not np.isfinite(policy.bounds).all():
        first, second = np.argwhere(~np.isfinite(policy.bounds))[0].tolist()
        labels: list[Hashable] = [plain(domain.labels[first]), plain(domain.labels[second])]
        raise SettingError(
            "no chain of pairs connects two values, so that their epsilon would be infinite",
            where=where,
            got=f"no chain from {shorten(labels[0])} to {shorten(labels[1])}",
            expected="pairs that connect all values, directly or by others",
            remedy="add a pair with a larger bound between the parts, or design for each part by itself",
        )
    return policy


def _positions(domain: Domain, pair: tuple[object, object], where: str) -> tuple[int, int]:
    try:
        first, second = (int(domain.index([value])[0]) for value in pair)
    except DomainError as error:
        raise restated(error, DomainError, where=f"{where}, {shorten(pair)}") from None
    return first, second


def _bound(value: object, where: str, remedy: str) -> float:
    number = as_real(value)
    if MIN_EPSILON <= number <= MAX_EPSILON:
        return number
    raise SettingError(
        "the bound on privacy is impossible",
        where=where,
        got=shorten(value),
        expected=f"a number from {MIN_EPSILON:g} to {MAX_EPSILON:g}",
        remedy=remedy,
    )
