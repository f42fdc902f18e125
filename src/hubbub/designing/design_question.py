"""What `design` was asked: checked arguments, and the program that answers them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.errors import HubbubError, SettingError, restated, shorten
from hubbub.core.progress import Progress
from hubbub.core.serialization import Portable
from hubbub.core.text import plural
from hubbub.designing.built_in_columns import built_in_mechanisms, in_cone, least_bound, listed_columns
from hubbub.designing.column_costs import ColumnCost, LostInformation, ServiceLoss
from hubbub.designing.column_generation import DesignProgram
from hubbub.designing.information_goals import MEAN_ABSOLUTE, InformationGoal, RiskPart, basis_of_changes
from hubbub.designing.prior_families import given_family, prior_families
from hubbub.designing.privacy_policy import PrivacyPolicy
from hubbub.designing.service_loss_program import least_service_loss
from hubbub.designing.subset_information import subset_errors
from hubbub.designing.symmetries import symmetries_of
from hubbub.designing.validation import (
    INFORMATION,
    RATE_DISTORTION,
    RISK,
    SERVICE_LOSS,
    VARIANCE,
    WHERE,
    WIDTH,
    check_domain,
    check_goal,
    check_losses,
    check_policy,
    check_prior,
    check_size,
)
from hubbub.domains import Domain
from hubbub.intervals.linear_statistic import parse_statistic

SUBSETS = "subset-selection"
EQUAL_SHARES = 1e-12  # shares that differ by less are equal, up to rounding
WORST_COUNTS = 100.0  # the power of the mean over families: the worst of them, but differentiable


@dataclass(frozen=True, eq=False)
class DesignQuestion(Portable):
    """The arguments of `design`, checked. `prior` has a row for each plausible distribution."""

    policy: PrivacyPolicy
    goal: str
    prior: Floats
    users: int
    outputs: int | None
    statistics: Floats | None  # rows: weights of the values
    losses: Floats
    max_loss: float | None
    level: float
    seed: int | str

    @property
    def domain(self) -> Domain:
        """The values."""
        return self.policy.domain

    @cached_property
    def centre(self) -> Floats:
        """The mean of the plausible distributions."""
        return np.asarray(self.prior.mean(axis=0))

    @cached_property
    def budget_cost(self) -> ServiceLoss | None:
        """The loss that is limited, if one is."""
        return None if self.max_loss is None else ServiceLoss(self.centre, self.losses)

    @cached_property
    def built_ins(self) -> dict[str, Floats]:
        """The columns of the built-in mechanisms with this privacy whose outputs can be listed."""
        found: dict[str, Floats] = {}
        for name, mechanism in built_in_mechanisms(self.policy).items():
            columns = listed_columns(mechanism)
            if columns is not None:
                found[name] = columns
        return found

    @cached_property
    def information(self) -> InformationGoal | None:
        """The goal where it follows from how much reports tell, with the symmetries that it has."""
        if self.goal not in (RISK, VARIANCE, WIDTH):
            return None
        goal = InformationGoal(self.centre, self.users, self._parts(), power=WORST_COUNTS if self.goal == RISK else 1.0)
        if self.goal == RISK:
            goal = goal.replace(references=np.min(list(self.built_in_errors(goal).values()), axis=0))
        permutations = symmetries_of(self.policy, goal)
        if self.budget_cost is not None:
            permutations = permutations[:1]
        return goal.replace(permutations=permutations)

    def built_in_errors(self, goal: InformationGoal) -> dict[str, Floats]:
        """Return the error of each built-in mechanism in each part of the goal."""
        errors = {name: goal.errors_of(columns) for name, columns in self.built_ins.items()}
        if np.ptp(self.centre) < EQUAL_SHARES and SUBSETS not in errors:
            errors[SUBSETS] = subset_errors(goal, least_bound(self.policy))
        return errors

    def value_of(self, columns: Floats) -> float:
        """Return the goal's value for the whole columns of a mechanism."""
        if self.goal == INFORMATION:
            return -float(LostInformation(self.centre).costs(columns).sum())
        if self.goal in (SERVICE_LOSS, RATE_DISTORTION):
            cost: ColumnCost = ServiceLoss(self.centre, self.losses)
            if self.goal == RATE_DISTORTION:
                return -float(LostInformation(self.centre).costs(columns).sum())
            return float(cost.costs(columns).sum())
        goal = self.information
        assert goal is not None  # noqa: S101  # the other goals have returned
        return goal.value_of(columns)

    def program(self) -> Generator[Progress, None, tuple[DesignProgram, Floats]]:
        """Return the program, and columns to start with."""
        policy = self.policy
        size = len(self.domain)
        start = [np.exp(-policy.bounds), np.ones((1, size))]
        start += [in_cone(policy, columns) for columns in self.built_ins.values() if len(columns) <= 4 * size]
        cost: ColumnCost | None = self.budget_cost
        budget = np.inf
        if self.max_loss is not None:
            least = yield from least_service_loss.steps(policy.bounds, self.centre, self.losses)
            if least.loss > self.max_loss:
                raise SettingError(
                    "no mechanism with this privacy has so small a loss",
                    where="design(max_loss=)",
                    got=f"{self.max_loss:.6g}",
                    expected=f"at least {least.lower_bound:.6g}, the least loss that is possible",
                    remedy="allow a larger loss, or a larger epsilon",
                )
            budget = self.max_loss
            start.append(in_cone(policy, least.matrix.T[least.matrix.max(axis=0) > 0]))
        if self.goal == INFORMATION:
            cost = LostInformation(self.centre)
        return DesignProgram(policy, self.centre, self.information, cost, budget), np.vstack(start)

    def _parts(self) -> list[RiskPart]:
        size = len(self.domain)
        basis = basis_of_changes(size)
        if self.goal == RISK:
            if len(self.prior) > 1:
                families = [given_family(self.prior, self.centre)]
            else:
                families = prior_families(self.domain, self.centre)
            each = np.full(size, MEAN_ABSOLUTE / 2)  # the expected total variation, for normal errors
            precisions = [np.asarray(np.linalg.inv(basis.T @ own.covariance @ basis), dtype=float) for own in families]
            return [
                RiskPart(family.name, precision, basis, each, True)
                for family, precision in zip(families, precisions, strict=True)
            ]
        nothing = np.zeros((size - 1, size - 1))
        if self.goal == VARIANCE:
            return [RiskPart("the variance of all shares", nothing, basis, np.ones(size), False)]
        assert self.statistics is not None  # noqa: S101  # checked with the goal
        width = -2 * float(ndtri((1 - self.level) / 2)) / len(self.statistics)
        factors = np.full(len(self.statistics), width)
        return [RiskPart("the width of the interval", nothing, self.statistics @ basis, factors, True)]


def question_from(
    domain: object,
    epsilon: object,
    *,
    privacy: object,
    goal: object,
    prior: object,
    users: object,
    outputs: object,
    of: object,
    loss: object,
    max_loss: object,
    level: object,
    seed: int | str,
) -> DesignQuestion:
    """Return the checked question."""
    keywords: Mapping[str, Any] = {"of": of, "loss": loss, "max_loss": max_loss, "outputs": outputs}
    goal = check_goal(goal, keywords)
    if loss is not None and max_loss is None and goal in (RISK, VARIANCE, WIDTH):
        raise SettingError(
            "a loss was given, and no limit for it",
            where="design(loss=, max_loss=)",
            got=f"goal {goal!r} with loss= alone",
            expected="max_loss= beside loss=, or goal 'service-loss'",
            remedy="pass the largest expected loss as max_loss=",
        )
    checked = check_domain(domain)
    policy = check_policy(checked, epsilon, privacy)
    check_size(policy, goal)
    if goal == RATE_DISTORTION and policy.kind != "metric":
        raise SettingError(
            "this goal keeps an epsilon per unit of distance",
            where="design(goal=, privacy=)",
            got=f"goal {goal!r} with {policy.kind} privacy",
            expected="privacy='metric'",
            remedy="pass privacy='metric'; goal 'service-loss' takes any privacy",
        )
    most = None if outputs is None else validation.whole(outputs, "outputs", WHERE, at_least=2)
    if goal == VARIANCE and most is not None and most < len(checked):
        raise SettingError(
            "so few outputs cannot tell all shares",
            where="design(outputs=)",
            got=f"{plural(most, 'output')} for {plural(len(checked), 'value')}: the variance is infinite",
            expected=f"at least {len(checked)} outputs with goal {goal!r}",
            remedy="allow more outputs, or ask for less: goal 'risk', or 'width' with some shares",
        )
    return DesignQuestion(
        policy=policy,
        goal=goal,
        prior=check_prior(prior, checked, positive=goal not in (SERVICE_LOSS, RATE_DISTORTION)),
        users=validation.whole(users, "users", WHERE, default="10,000"),
        outputs=most,
        statistics=None if of is None else _statistics(checked, of),
        losses=check_losses(loss, checked),
        max_loss=None if max_loss is None else validation.positive(max_loss, "max_loss", WHERE),
        level=validation.level(level, WHERE),
        seed=seed,
    )


def _statistics(domain: Domain, of: object) -> Floats:
    """Return the weights of one statistic, or of several in rows."""
    several = isinstance(of, Sequence) and not isinstance(of, str) and len(of) > 0
    several = several and all(isinstance(each, list | set | frozenset | dict) for each in of)  # type: ignore[attr-defined]
    questions: list[object] = list(of) if several else [of]  # type: ignore[call-overload]
    try:
        weights = np.stack([parse_statistic(domain, question).weights for question in questions])
    except HubbubError as error:
        raise restated(error, type(error), where="design(of=)") from None
    for question, row in zip(questions, weights, strict=True):
        if np.ptp(row) == 0:
            raise SettingError(
                "the interval would be about something that is known without reports",
                where="design(of=)",
                got=f"{shorten(question)}: all values with one weight",
                expected="some of the values, or weights that differ",
                remedy="leave at least one value out",
            )
    return weights
