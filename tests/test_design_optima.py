"""Designs reach known optima: formulas from papers, programs over all columns, and SciPy's solvers on small domains."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from design_references import (
    Floats,
    Goal,
    cone_rays,
    least_value,
    line_columns,
    most_information,
    mutual_information,
    risk_goal,
    skewed,
    subset_selection_variance,
    two_level_columns,
    variance_goal,
    whole_columns,
    width_goal,
)
from hubbub.designing.built_in_columns import built_in_mechanisms
from hubbub.designing.information_goals import InformationGoal, RiskPart, basis_of_changes
from hubbub.designing.subset_information import subset_errors

USERS = 10_000  # the default
SAME = 1e-5  # relative: of formulas that invert matrices which the best widths leave nearly singular
NEAR = 1.5e-3  # relative: designs end within 1e-3 of the optimum, and so do references


def assert_optimal(design: hb.Design, optimum: float) -> None:
    """Check that a goal that is to be small has its optimum, and that the bound is one."""
    assert design.value == pytest.approx(optimum, rel=NEAR)
    assert design.bound <= optimum * (1 + 1e-6)
    assert design.status.startswith("certified"), design.status


@pytest.mark.sampled(2)
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("values", [2, 4, 7, 12])
def test_under_one_epsilon_the_least_variance_is_that_of_subset_selection(values: int, epsilon: float) -> None:
    design = hb.design(hb.Categories(list(range(values))), epsilon, goal="variance")
    formulas = [subset_selection_variance(values, epsilon, size, USERS) for size in range(1, values)]
    assert_optimal(design, min(formulas))


@pytest.mark.slow
def test_with_twenty_values_the_least_variance_is_that_of_subset_selection() -> None:
    design = hb.design(hb.Categories(list(range(20))), 1.0, goal="variance")
    assert_optimal(design, min(subset_selection_variance(20, 1.0, size, USERS) for size in range(1, 20)))


@pytest.mark.parametrize(("values", "epsilon"), [(2, 1.0), (5, 0.3), (30, 1.0), (400, 4.0)])
def test_what_subset_selection_tells_is_known_where_its_outputs_are_too_many(values: int, epsilon: float) -> None:
    part = RiskPart("variance", np.zeros((values - 1, values - 1)), basis_of_changes(values), np.ones(values), False)
    goal = InformationGoal(np.full(values, 1 / values), USERS, [part])
    formulas = [subset_selection_variance(values, epsilon, size, USERS) for size in range(1, values)]
    assert subset_errors(goal, epsilon) == pytest.approx([min(formulas)], rel=1e-9)


def test_at_a_large_epsilon_the_least_variance_is_that_of_randomized_response() -> None:
    design = hb.design(hb.Categories(list("abcdef")), 6.0, goal="variance")
    assert_optimal(design, subset_selection_variance(6, 6.0, 1, USERS))
    assert design.built_ins["randomized-response"] == pytest.approx(
        subset_selection_variance(6, 6.0, 1, USERS), rel=1e-9
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("values", [3, 4, 5, 6])
@pytest.mark.parametrize("shares", [None, skewed])
def test_the_most_information_is_that_of_the_best_staircase_mechanism(values: int, epsilon: float, shares: Any) -> None:
    prior = np.full(values, 1 / values) if shares is None else shares(values)
    design = hb.design(hb.Categories(list(range(values))), epsilon, goal="information", prior=prior)
    optimum = most_information(two_level_columns(values, epsilon), prior)
    assert design.value == pytest.approx(optimum, rel=NEAR)
    assert design.bound >= optimum * (1 - 1e-6)
    assert design.status.startswith("certified"), design.status


def test_the_most_information_of_very_uneven_shares_is_found() -> None:
    # The linear program's optimum has two columns, and prices that are not unique: rounds must not repeat.
    prior = np.array([0.999] + [0.001 / 7] * 7)
    design = hb.design(hb.Integers(0, 7), 1.0, goal="information", prior=prior)
    assert design.value == pytest.approx(most_information(two_level_columns(8, 1.0), prior), rel=NEAR)
    assert design.status.startswith("certified")


@pytest.mark.parametrize("values", [4, 6])
def test_at_a_small_epsilon_the_binary_mechanism_tells_most_and_at_a_large_one_randomized_response(values: int) -> None:
    # Kairouz, Oh, Viswanath (2014), theorems 5 and 6; with equal shares the binary mechanism splits the values in half.
    domain, even = hb.Categories(list(range(values))), np.full(values, 1 / values)
    high = 1 / (1 + math.exp(-0.1))
    half = np.where(np.arange(values) < values // 2, high, 1 - high)
    binary = mutual_information(np.array([half, 1 - half]), even)
    assert hb.design(domain, 0.1, goal="information").value == pytest.approx(binary, rel=NEAR)
    response = (1 + (math.exp(8.0) - 1) * np.eye(values)) / (math.exp(8.0) + values - 1)
    assert hb.design(domain, 8.0, goal="information").value == pytest.approx(
        mutual_information(response, even), rel=NEAR
    )


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_on_three_values_of_a_line_the_design_is_the_best_of_all_weights(epsilon: float) -> None:
    # Four columns, three sums: one number is free.
    prior = skewed(3)
    design = hb.design(hb.Integers(0, 2), epsilon, privacy="metric", goal="variance", prior=prior)
    columns = line_columns([epsilon, epsilon])
    some = np.linalg.lstsq(columns.T, np.ones(3), rcond=None)[0]
    free = np.linalg.svd(columns.T)[2][-1]
    goal = variance_goal(prior, USERS)
    ends = sorted(-some / free)
    tried = [some + length * free for length in np.linspace(ends[0], ends[-1], 4001)]
    assert_optimal(design, min(goal(columns * weights[:, None]) for weights in tried if weights.min() >= 0))


@pytest.mark.parametrize(("epsilon", "times"), [(0.25, 3.88), (0.5, 1.59), (1.0, 1.028), (2.0, 1.000)])
def test_on_eight_values_truncated_geometric_noise_needs_as_much_more_variance_as_first_trials_found(
    epsilon: float, times: float
) -> None:
    design = hb.design(hb.Integers(0, 7), epsilon, privacy="metric", goal="variance")
    assert design.built_ins["truncated-geometric"] / design.value == pytest.approx(times, rel=3e-3)


# -- SciPy over all columns ------------------------------------------------------------------------------


DISTRIBUTIONS = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.3, 0.4, 0.2, 0.1], [0.2, 0.2, 0.5, 0.1]])
CYCLE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
STAR = [("a", "b"), ("a", "c"), ("a", "d")]
POLICIES: dict[str, tuple[hb.Domain, float | None, Any]] = {
    "plain": (hb.Categories(list("abcd")), 1.2, "plain"),
    "line": (hb.Integers(0, 3), 0.7, "metric"),
    "uneven line": (hb.Bins([0, 1, 1.5, 4, 5]), 0.5, "metric"),
    "map": (hb.Grid(2, 2), 1.0, "metric"),
    "cycle": (hb.Categories(list("abcd")), 0.8, CYCLE),
    "star": (hb.Categories(list("abcd")), 0.8, STAR),
    "own bounds": (
        hb.Categories(list("abcd")),
        None,
        {("a", "b"): 0.5, ("b", "c"): 1.5, ("c", "d"): 0.7, ("a", "d"): 1.1},
    ),
}


def goal_with_arguments(name: str) -> tuple[Goal, dict[str, Any]]:
    shares = skewed(4)
    if name == "variance":
        return variance_goal(shares, USERS), {"goal": "variance", "prior": shares}
    if name == "width":
        weights = np.array([0.0, 1.0, 1.0, 0.0])
        return width_goal(shares, USERS, weights, 0.9), {"goal": "width", "prior": shares, "level": 0.9}
    return risk_goal(DISTRIBUTIONS, USERS), {"prior": list(DISTRIBUTIONS)}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("goal_name", ["variance", "width", "risk"])
@pytest.mark.parametrize("policy", POLICIES)
def test_designs_agree_with_scipy_over_all_rays(policy: str, goal_name: str) -> None:
    domain, epsilon, privacy = POLICIES[policy]
    goal, arguments = goal_with_arguments(goal_name)
    if goal_name == "width":
        arguments["of"] = domain.labels[1:3].tolist()
    design = hb.design(domain, epsilon, privacy=privacy, **arguments)
    rays = cone_rays(design.question.policy.bounds)
    optimum = least_value(rays, goal)
    unit = 1.0
    if goal_name == "risk":  # relative to the best built-in mechanism
        known = built_in_mechanisms(design.question.policy)
        unit = min(goal(np.asarray(known[name].matrix().T)) for name in design.question.built_ins)
    assert goal(whole_columns(design)) / unit == pytest.approx(design.value, rel=SAME)
    assert design.value <= optimum / unit * (1 + NEAR)
    assert design.bound <= optimum / unit * (1 + 1e-6)
    assert design.value >= optimum / unit * (1 - 1e-2)  # SciPy is not far above the optimum either


def test_five_values_on_a_line_agree_with_scipy() -> None:
    prior = skewed(5)
    design = hb.design(hb.Integers(0, 4), 0.4, privacy="metric", goal="variance", prior=prior)
    columns: Floats = line_columns([0.4] * 4)
    assert_optimal(design, least_value(columns, variance_goal(prior, USERS)))


def test_a_loss_that_is_limited_costs_what_scipy_says() -> None:
    prior = skewed(4)
    domain = hb.Integers(0, 3)
    least = hb.design(domain, 0.7, privacy="metric", goal="service-loss", prior=prior).value
    free = hb.design(domain, 0.7, privacy="metric", goal="variance", prior=prior)
    limit = (least + free.loss) / 2
    design = hb.design(domain, 0.7, privacy="metric", goal="variance", prior=prior, max_loss=limit)
    columns = line_columns([0.7] * 3)
    columns = columns / columns.mean(axis=1, keepdims=True)
    losses = (columns @ (prior[:, None] * domain.distances())).min(axis=1)
    variance = variance_goal(prior, USERS)
    # A penalty, exact for all that exceeds the limit once it is steep enough.
    steep = 20 * free.value / limit

    def goal(whole: Floats) -> float:
        weights = whole.mean(axis=1)
        return variance(whole) + steep * max(float(weights @ losses) - limit, 0.0)

    assert free.loss > limit
    assert design.loss <= limit * (1 + 1e-9)
    assert design.value >= free.value
    assert design.bound <= least_value(columns, goal) * (1 + 1e-6)
    assert design.status.startswith("certified")
