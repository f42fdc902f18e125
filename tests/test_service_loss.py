"""The mechanism with the least service loss: known optima, libqif's, whole programs, and a proof that holds alone.

Numbers of libqif are in tests/reference/service_loss.json, beside the script that made them.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from hubbub.core.arrays import Floats
from hubbub.designing.dual_bound import OutputMultipliers, certified_bound
from hubbub.designing.privacy_edges import privacy_edges
from hubbub.designing.privacy_repair import largest_violation, repaired
from hubbub.designing.service_loss_program import LeastServiceLoss, least_service_loss
from strategies import examples

REFERENCES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "reference" / "service_loss.json").read_text(encoding="utf-8")
)
SEEDS = st.integers(0, 2**32 - 1)
PRIVACY_ROUNDING = 1e-12
BRUTE_FORCE_TOLERANCE = 1e-7  # relative, of the whole program's solver


def grid_distances(columns: int, rows: int) -> Floats:
    places = [(column, row) for row in range(rows) for column in range(columns)]
    return np.array([[math.dist(first, second) for second in places] for first in places])


def skewed_prior(places: int) -> Floats:
    weights = 1.0 + 7 * np.arange(places) % 11
    shares: Floats = weights / weights.sum()
    return shares


def whole_program(bounds: Floats, prior: Floats, losses: Floats) -> float:
    """Return the optimum of the program with one row for each pair and output, as HiGHS finds it."""
    places, outputs = losses.shape
    rows = [np.zeros(losses.size)]
    for first, second in np.argwhere(np.isfinite(bounds) & ~np.eye(places, dtype=bool)):
        for output in range(outputs):
            row = np.zeros((places, outputs))
            row[first, output], row[second, output] = 1.0, -math.exp(bounds[first, second])
            rows.append(row.ravel())
    sums = np.kron(np.eye(places), np.ones(outputs))
    costs = (prior[:, None] * losses).ravel()
    solution = linprog(costs, np.array(rows), np.zeros(len(rows)), sums, np.ones(places), method="highs-ds")
    return float(costs @ np.asarray(solution.x))


def assert_proven(least: LeastServiceLoss, bounds: Floats, prior: Floats, losses: Floats) -> None:
    """Check everything that is promised about a result without knowing the optimum."""
    assert least.is_optimal, least.status
    assert least.matrix.min() >= 0.0
    np.testing.assert_allclose(least.matrix.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    assert largest_violation(least.matrix, bounds) <= PRIVACY_ROUNDING
    assert least.loss == pytest.approx(float((prior[:, None] * losses * least.matrix).sum()), rel=1e-12, abs=1e-15)
    assert least.lower_bound <= least.loss


def random_problem(seed: int) -> tuple[Floats, Floats, Floats]:
    """Return a metric without symmetries, a prior and losses of more or fewer outputs than places."""
    rng = np.random.default_rng(seed)
    places, outputs = rng.integers(2, 7, size=2)
    points = rng.normal(size=(places, 2)) * rng.choice([0.1, 1.0, 3.0])
    bounds = np.hypot(*(points[:, None] - points[None, :]).transpose(2, 0, 1))
    return bounds, rng.dirichlet(np.ones(places)), rng.random((places, outputs))


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 15.0])
@pytest.mark.parametrize("places", [2, 7])
def test_randomized_response_is_optimal_for_exact_hits(places: int, epsilon: float) -> None:
    bounds, prior, losses = epsilon * (1 - np.eye(places)), np.full(places, 1 / places), 1 - np.eye(places)
    least = least_service_loss(bounds, prior, losses)
    assert_proven(least, bounds, prior, losses)
    expected = (places - 1) / (math.exp(epsilon) + places - 1)
    assert least.loss == pytest.approx(expected, rel=2e-8, abs=1e-11)
    if 0.1 <= epsilon <= 5.0:
        np.testing.assert_allclose(np.diag(least.matrix), 1 - expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("power", [0, 1, 2])
@pytest.mark.parametrize("prior", [np.full(9, 1 / 9), skewed_prior(9)], ids=["uniform", "skewed"])
def test_on_a_line_the_remapped_geometric_mechanism_is_optimal(prior: Floats, power: int) -> None:
    """Ghosh, Roughgarden, Sundararajan 2009: for any prior and any loss that grows with the distance."""
    places = np.arange(9.0)
    steps = np.abs(places[:, None] - places)
    losses = (steps > 0).astype(float) if power == 0 else steps**power
    for epsilon in (0.3, 1.0):
        ratio = math.exp(-epsilon)
        geometric = (1 - ratio) / (1 + ratio) * ratio**steps
        geometric[:, [0, -1]] = ratio ** steps[:, [0, -1]] / (1 + ratio)
        posterior_losses = geometric.T @ (prior[:, None] * losses)
        least = least_service_loss(epsilon * steps, prior, losses)
        assert_proven(least, epsilon * steps, prior, losses)
        assert least.loss == pytest.approx(posterior_losses.min(axis=1).sum(), rel=2e-8)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", REFERENCES, ids=str)
def test_libqif_finds_the_same_loss(case: dict[str, Any]) -> None:
    distances = grid_distances(case["columns"], case["rows"])
    places = len(distances)
    prior = np.full(places, 1 / places) if case["prior"] == "uniform" else skewed_prior(places)
    losses = distances if case["loss"] == "distance" else 1 - np.eye(places)
    bounds = case["epsilon"] * distances
    least = least_service_loss(bounds, prior, losses)
    assert_proven(least, bounds, prior, losses)
    assert least.loss == pytest.approx(case["least_loss"], rel=2e-8)
    assert least.lower_bound <= case["least_loss"] * (1 + 1e-10)


@given(SEEDS)
@examples(40)
def test_a_whole_program_has_the_same_optimum(seed: int) -> None:
    bounds, prior, losses = random_problem(seed)
    least = least_service_loss(bounds, prior, losses)
    assert_proven(least, bounds, prior, losses)
    optimum = whole_program(bounds, prior, losses)
    assert least.loss == pytest.approx(optimum, rel=BRUTE_FORCE_TOLERANCE, abs=1e-9)
    assert least.lower_bound <= optimum + BRUTE_FORCE_TOLERANCE * abs(optimum)


@given(SEEDS)
@examples(20)
def test_the_order_of_places_and_outputs_does_not_matter(seed: int) -> None:
    bounds, prior, losses = random_problem(seed)
    rng = np.random.default_rng(seed + 1)
    rows, columns = rng.permutation(losses.shape[0]), rng.permutation(losses.shape[1])
    least = least_service_loss(bounds, prior, losses)
    other = least_service_loss(bounds[np.ix_(rows, rows)], prior[rows], losses[np.ix_(rows, columns)])
    assert other.loss == pytest.approx(least.loss, rel=2e-8)


@given(SEEDS)
@examples(40)
def test_any_multipliers_give_a_lower_bound(seed: int) -> None:
    bounds, prior, losses = random_problem(seed)
    rng = np.random.default_rng(seed)
    edges, costs = privacy_edges(bounds), prior[:, None] * losses
    parts = [edges.part(np.flatnonzero(rng.random(edges.firsts.size) < 0.7)) for _ in range(costs.shape[1])]
    proofs = [
        OutputMultipliers(cost, part, rng.exponential(0.05, size=part.firsts.size))
        for cost, part in zip(costs.T, parts, strict=True)
    ]
    optimum = whole_program(bounds, prior, losses)
    assert certified_bound(rng.normal(scale=0.2, size=len(prior)), proofs) <= optimum + 1e-9


@given(SEEDS)
@examples(40)
def test_repairs_keep_all_bounds_and_stay_close(seed: int) -> None:
    bounds, prior, _ = random_problem(seed)
    rng = np.random.default_rng(seed)
    bounds = bounds * 10.0 ** rng.integers(-2, 3)
    exact = np.exp(-0.5 * bounds)  # rows normalised, it keeps the bounds
    exact /= exact.sum(axis=1, keepdims=True)
    noise = 1e-9
    matrix = repaired(exact + rng.normal(scale=noise, size=exact.shape), bounds, prior[:, None] * np.ones_like(exact))
    assert largest_violation(matrix, bounds) <= PRIVACY_ROUNDING
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    shortest = bounds[~np.eye(len(bounds), dtype=bool)].min()
    np.testing.assert_allclose(matrix, exact, rtol=0, atol=40 * noise / -math.expm1(-shortest))


def test_places_without_a_bound_between_them_are_told_apart() -> None:
    apart = np.full((4, 4), np.inf)
    apart[:2, :2] = apart[2:, 2:] = [[0.0, 1.0], [1.0, 0.0]]
    prior, losses = np.array([0.1, 0.2, 0.3, 0.4]), 1 - np.eye(4)
    least = least_service_loss(apart, prior, losses)
    assert_proven(least, apart, prior, losses)
    assert least.loss == pytest.approx(whole_program(apart, prior, losses), rel=BRUTE_FORCE_TOLERANCE)
    free = np.where(np.eye(4) > 0, 0.0, np.inf)
    assert least_service_loss(free, prior, losses).loss == pytest.approx(0.0, abs=1e-11)


def test_equal_places_share_a_row() -> None:
    points = np.array([0.0, 2.0, 0.0, 1.0, 2.0])
    bounds, prior = np.abs(points[:, None] - points), np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    losses = np.random.default_rng(5).random((5, 4))
    least = least_service_loss(bounds, prior, losses)
    assert_proven(least, bounds, prior, losses)
    np.testing.assert_array_equal(least.matrix[[0, 1]], least.matrix[[2, 4]])
    assert least.loss == pytest.approx(whole_program(bounds, prior, losses), rel=BRUTE_FORCE_TOLERANCE)


@pytest.mark.parametrize(
    ("bounds", "prior", "losses", "optimum"),
    [
        (np.zeros((1, 1)), np.ones(1), np.array([[3.0, 2.0]]), 2.0),
        (np.zeros((3, 3)), np.array([0.1, 0.2, 0.7]), 1 - np.eye(3), 0.3),
        (1 - np.eye(3), np.full(3, 1 / 3), np.zeros((3, 2)), 0.0),
        (1 - np.eye(3), np.array([0.0, 1.0, 0.0]), 1 - np.eye(3), 0.0),
        (400 * (1 - np.eye(3)), np.full(3, 1 / 3), 1 - np.eye(3), 0.0),
        (1 - np.eye(2), np.full(2, 0.5), np.array([[-1.0, 0.0], [-1.0, 0.0]]), -1.0),
    ],
    ids=["one place", "no information", "no losses", "a prior without doubt", "no privacy", "negative losses"],
)
def test_optima_that_need_no_computation(bounds: Floats, prior: Floats, losses: Floats, optimum: float) -> None:
    least = least_service_loss(bounds, prior, losses)
    assert_proven(least, bounds, prior, losses)
    assert least.loss == pytest.approx(optimum, rel=2e-8, abs=1e-11)


def test_edges_are_the_pairs_that_see_each_other() -> None:
    distances = grid_distances(5, 4)
    edges = privacy_edges(0.3 * distances)
    places = [(column, row) for row in range(4) for column in range(5)]
    visible = {
        (first, second)
        for first, (column, row) in enumerate(places)
        for second, (other_column, other_row) in enumerate(places)
        if math.gcd(column - other_column, row - other_row) == 1
    }
    assert set(zip(edges.firsts.tolist(), edges.seconds.tolist(), strict=True)) == visible


def test_without_enough_iterations_the_status_says_what_is_known() -> None:
    bounds = 0.7 * grid_distances(4, 4)
    prior = skewed_prior(16)
    least = least_service_loss(bounds, prior, bounds, max_iterations=5)
    optimum = least_service_loss(bounds, prior, bounds)
    assert not least.is_optimal
    assert least.status.startswith("almost optimal: this mechanism loses")
    assert least.iterations == 5
    assert least.lower_bound < optimum.loss < least.loss
    assert largest_violation(least.matrix, bounds) <= PRIVACY_ROUNDING
    assert optimum.status.startswith("optimal: no mechanism loses less than")


def test_progress_never_goes_back_and_names_the_gap() -> None:
    bounds = grid_distances(3, 3)
    steps = list(least_service_loss.steps(bounds, skewed_prior(9), bounds))
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[-1].done == steps[-1].total
    assert all(step.what.startswith("optimal mechanism: the loss is within") for step in steps)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [np.full(100, 0.01), skewed_prior(100)], ids=["uniform", "skewed"])
def test_a_hundred_places(prior: Floats) -> None:
    distances = grid_distances(10, 10)
    least = least_service_loss(0.7 * distances, prior, distances)
    assert_proven(least, 0.7 * distances, prior, distances)
