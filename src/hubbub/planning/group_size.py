"""Users per group: how many it takes to tell that a share differs between two groups, and the power of those there are.

A two-sided test at level alpha finds a difference d between the shares of two groups of n users each with power P if

    n = (z_{1 - alpha/2} + z_P)^2 (V_1 + V_2) / d^2.

Solved for the power of n users, P = Phi(d sqrt(n / (V_1 + V_2)) - z_{1 - alpha/2}): the probability of a significant
difference in the right direction.

This is the textbook's formula for two proportions, with V = p (1 - p) replaced by the variance of the share's estimate
from one user's reports. Let H be the information per user (`intervals.linear_scores`): Fisher's where outputs can be
listed, that of the best linear estimate for outputs that stand for sets. The variances are the diagonal of
H^-1 - theta theta'. For k-RR of two values V = lambda (1 - lambda) / (2p - 1)^2, with lambda the share of yes among the
answers. If a user sends m reports, only their noise is averaged: with D = diag(theta), H becomes
(D + (H^-1 - D) / m)^-1 = m H (1 + (m - 1) D H)^-1. The parts of a mixture add up.

One group has the assumed truth. In the other the share of the value is larger by d, or smaller by d if it would be
above 1, and all other shares change in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats, Positions, plain
from hubbub.core.progress import Progress
from hubbub.intervals.linear_scores import scores_of
from hubbub.intervals.set_intervals import normal_quantile
from hubbub.intervals.standard_errors import MAX_INFORMED_VALUES, variances_per_user
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.frequency_oracle import FrequencyOracle
from hubbub.mechanisms.sketches import Sketch
from hubbub.planning.answers import GROUP_USERS, POWER, Needed, Question
from hubbub.planning.candidates import Candidate
from hubbub.planning.truths import AssumedTruth
from hubbub.planning.validation import DEFAULT_POWER, refused

MAX_USERS = 1e15  # more is as good as never
LISTED_USERS = 1e6  # outputs without end are listed as far out as one of so many users gets
UNDETERMINED = "its reports do not determine the share of {value}, whatever the number of users"
NO_FORMULA = "there is no formula for its reports: {why}"


class HardestValue(NamedTuple):
    """The value whose difference is hardest to detect, with the sum of both groups' variances; or why none is known."""

    position: int
    variance: float
    reason: str


def detect_difference(
    question: Question, candidates: Sequence[Candidate], truths: Sequence[AssumedTruth], positions: Positions | None
) -> Generator[Progress, None, list[Needed]]:
    """Return the users per group that each candidate needs, or the power of each number of users.

    Answers for the truths follow each other; the hardest value counts.
    """
    cases = [(candidate, truth) for candidate in candidates for truth in truths]
    hardest = []
    for done, (candidate, truth) in enumerate(cases):
        yield Progress(done, len(cases), candidate.description)
        hardest.append(_hardest(question, candidate, truth, positions))
    needed = []
    for first in range(0, len(cases), len(truths)):
        own = slice(first, first + len(truths))
        for users in question.users or (None,):
            needed += [
                _needed(question, *case, value, users) for case, value in zip(cases[own], hardest[own], strict=True)
            ]
    return needed


def _hardest(
    question: Question, candidate: Candidate, truth: AssumedTruth, positions: Positions | None
) -> HardestValue:
    difference = question.difference or 0.0
    some = truth.representative_positions() if positions is None else positions
    pairs = {position: _shifted(truth.probabilities, position, difference) for position in some.tolist()}
    possible = {position: shifted for position, shifted in pairs.items() if shifted is not None}
    if not possible:
        raise refused(
            "no share can differ by that much from the assumed truth",
            "difference",
            difference,
            f"a difference that some share of the truth {truth.name!r} can rise or fall by",
            "pass a smaller difference, or another truth=",
        )
    hardest, variance, reason = next(iter(possible)), 0.0, _why_no_formula(candidate)
    power = question.power or DEFAULT_POWER
    for position, shifted in possible.items() if not reason else ():
        own = sum(_variance(candidate, theta, position) for theta in (truth.probabilities, shifted))
        if math.isnan(own) or own > variance:
            hardest, variance = position, own
        if not detecting_users(variance, difference, question.level, power) <= MAX_USERS:
            reason = UNDETERMINED.format(value=candidate.domain.title(hardest))
            break
    return HardestValue(hardest, variance, reason)


def _needed(
    question: Question, candidate: Candidate, truth: AssumedTruth, hardest: HardestValue, users: int | None
) -> Needed:
    """Return the answer of one candidate: the users per group that it needs, or the power of as many users."""
    position, variance, reason = hardest
    difference, level = question.difference or 0.0, question.level
    if users is None:
        value = (
            float(math.ceil(detecting_users(variance, difference, level, question.power or 0.0)))
            if not reason
            else None
        )
    else:
        value = detecting_power(variance, difference, level, users) if not reason else None
    return Needed(
        candidate=candidate.name,
        epsilon=candidate.epsilon,
        privacy=candidate.privacy,
        reports_per_user=candidate.reports_per_user,
        realised_share=candidate.realised_share,
        truth=truth.name,
        what=GROUP_USERS if users is None else POWER,
        value=value,
        low=None,
        high=None,
        most=MAX_USERS if users is None else 1.0,
        users=users,
        reason=reason,
        hardest=plain(candidate.domain.labels[position]),
    )


def detecting_users(variance: float, difference: float, level: float, power: float) -> float:
    """Return the users per group, from the sum of both groups' variances of one user.

    >>> round(detecting_users(0.5 * 0.5 + 0.55 * 0.45, 0.05, level=0.95, power=0.8), 1)  # the textbook's 1,562
    1561.9
    """
    from scipy.special import ndtri

    return float((normal_quantile(level) + ndtri(power)) ** 2 * variance / difference**2)


def detecting_power(variance: float, difference: float, level: float, users: float) -> float:
    """Return the power of so many users per group, which `detecting_users` turns back into their number.

    >>> round(detecting_power(0.5 * 0.5 + 0.55 * 0.45, 0.05, level=0.95, users=1561.9), 3)
    0.8
    """
    from scipy.special import ndtr

    return float(ndtr(difference * math.sqrt(users / variance) - normal_quantile(level))) if variance else 1.0


def _shifted(theta: Floats, position: int, difference: float) -> Floats | None:
    """Return the shares of the other group; None if the share can neither rise nor fall by the difference."""
    share = float(theta[position])
    new = share + difference if share + difference <= 1.0 else share - difference
    if new < 0.0:
        return None
    rest = np.delete(theta, position)
    rest = rest / rest.sum() if rest.any() else np.full(rest.size, 1.0 / rest.size)
    return np.insert((1.0 - new) * rest, position, new)


def _why_no_formula(candidate: Candidate) -> str:
    """Return why the variances of a candidate are not known; empty if they are."""
    mechanisms = [mechanism for mechanism, _ in candidate.parts]
    if candidate.reports_per_user > 1 and any(mechanism.remembers for mechanism in mechanisms):
        return NO_FORMULA.format(why="several reports of one user depend on each other")
    if _oracle(candidate) is not None:
        return ""
    if len(candidate.domain) > MAX_INFORMED_VALUES:
        return NO_FORMULA.format(why=f"more than {MAX_INFORMED_VALUES:,} values are too many")
    reference = np.full(len(candidate.domain), 1.0 / len(candidate.domain))
    if any(_information(mechanism, reference) is None for mechanism in mechanisms):
        return NO_FORMULA.format(why="its outputs are too many to list")
    return ""


def _oracle(candidate: Candidate) -> FrequencyOracle | None:
    """Return the one mechanism of a candidate, if values are many and there is a formula for each of them."""
    mechanism = candidate.parts[0][0]
    is_large = len(candidate.parts) == 1 and len(candidate.domain) > MAX_INFORMED_VALUES
    return (
        mechanism if is_large and isinstance(mechanism, FrequencyOracle) and not isinstance(mechanism, Sketch) else None
    )


def _variance(candidate: Candidate, theta: Floats, position: int) -> float:
    """Return the variance of a share's estimate from one user; NaN if reports do not determine it."""
    reports, own = candidate.reports_per_user, float(theta[position] * (1.0 - theta[position]))
    oracle = _oracle(candidate)
    if oracle is not None:
        return own + (float(oracle.share_variance(theta)[position]) - own) / reports
    information = np.zeros((theta.size, theta.size))
    for mechanism, share in candidate.parts:
        single = _information(mechanism, theta)
        if single is None:
            return math.nan
        information += share * _of_several_reports(single, theta, reports)
    weights = np.zeros((1, theta.size))
    weights[0, position] = 1.0
    (variance,), (undetermined,) = variances_per_user(information, theta, weights)
    return math.nan if undetermined else float(variance)


def _information(mechanism: Mechanism, theta: Floats) -> Floats | None:
    scores = scores_of(mechanism, theta, LISTED_USERS, None)
    return None if scores is None else scores.information


def _of_several_reports(information: Floats, theta: Floats, reports: int) -> Floats:
    """Return the information in the average of a user's reports."""
    if reports == 1:
        return information
    mixed = np.eye(theta.size) + (reports - 1) * theta[:, None] * information
    return np.asarray(reports * np.linalg.solve(mixed.T, information.T).T)
