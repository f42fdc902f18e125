"""Matrix inversion: solutions, projections, and the reports that cannot be inverted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hubbub as hb
import strategies as own
from hubbub.solvers import invert
from hubbub.solvers.repairs import projected

Floats = NDArray[np.float64]

# Not symmetric, not doubly stochastic, invertible: reading A for its transpose changes everything.
SKEW = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
ABC = hb.Categories(["a", "b", "c"])
SKEWED = hb.Matrix(ABC, ["x", "y", "z"], SKEW)


def simplex_by_bisection(point: Floats) -> Floats:
    """Return the nearest distribution, max(v - t, 0), with t found by halving."""
    low, high = point.min() - 1, point.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(point - middle, 0).sum() > 1 else (low, middle)
    nearest: Floats = np.maximum(point - (low + high) / 2, 0)
    return nearest


@own.examples(80)
@given(own.counted_matrices(square=True))
def test_inversion_solves_theta_times_matrix(drawn: tuple[hb.Matrix, NDArray[np.int64]]) -> None:
    mechanism, counts = drawn
    matrix = mechanism.matrix()
    assume(np.linalg.cond(matrix) < 1e5)
    solution = counts / counts.sum() @ np.linalg.inv(matrix)
    reports = hb.Reports.from_counts(mechanism, counts)
    np.testing.assert_allclose(invert(reports), solution, atol=1e-8)
    cut = np.maximum(solution, 0)
    np.testing.assert_allclose(hb.estimate(reports, "inv-n").probabilities, cut / cut.sum(), atol=1e-8)
    np.testing.assert_allclose(hb.estimate(reports, "inv-p").probabilities, simplex_by_bisection(solution), atol=1e-8)


def test_the_transpose_would_be_noticed() -> None:
    # The check above has teeth: with A where its transpose belongs the answer is another one.
    counts = np.array([50, 30, 20])
    right = invert(hb.Reports.from_counts(SKEWED, counts))
    wrong = np.linalg.solve(SKEW, counts / 100)
    assert np.abs(right - wrong).max() > 0.05
    np.testing.assert_allclose(right @ SKEW, counts / 100, atol=1e-12)


@own.examples(60)
@given(own.counted_matrices(square=True))
def test_inversion_of_exact_shares_gives_the_truth(drawn: tuple[hb.Matrix, NDArray[np.int64]]) -> None:
    mechanism, counts = drawn
    matrix = mechanism.matrix()
    assume(np.linalg.cond(matrix) < 1e4)
    truth = (counts[: len(matrix)] + 1) / (counts[: len(matrix)] + 1).sum()
    shares = np.round(truth @ matrix * 1e14).astype(np.int64)
    reports = hb.Reports.from_counts(mechanism, shares)
    for method in ("inv-n", "inv-p"):
        np.testing.assert_allclose(hb.estimate(reports, method).probabilities, truth, atol=1e-8)


@own.examples(150)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8).map(np.array), st.data())
def test_projection_is_the_nearest_distribution(point: Floats, data: st.DataObject) -> None:
    nearest = projected(point)
    assert (nearest >= 0).all()
    assert nearest.sum() == pytest.approx(1.0, abs=1e-12)
    # The condition of a projection on a convex set: no distribution lies on the point's side of it.
    assert ((point - nearest) @ (np.eye(point.size) - nearest).T).max() <= 1e-9
    other = data.draw(own.distributions(point.size))
    assert np.linalg.norm(point - nearest) <= np.linalg.norm(point - other) + 1e-9


def test_a_singular_matrix_tells_its_rank() -> None:
    table = hb.Matrix(ABC, ["x", "y", "z"], [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.3, 0.45, 0.25]])
    for method in ("inv-n", "inv-p"):
        with pytest.raises(hb.EstimateError, match="rank 2"):
            hb.estimate(hb.Reports.from_counts(table, [1, 2, 3]), method)
    assert hb.estimate(hb.Reports.from_counts(table, [1, 2, 3]), "ibu").converged


@pytest.mark.parametrize(
    "mechanism",
    [
        hb.Matrix(ABC, ["x", "y"], [[0.5, 0.5], [0.1, 0.9], [0.7, 0.3]]),
        hb.Cloaking(ABC, ["r", "r", "s"]),
        hb.Matrix(ABC, list("xyzu"), [[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25]]),
    ],
    ids=["two outputs", "regions", "four outputs"],
)
def test_values_that_look_alike_have_no_inverse(mechanism: hb.Mechanism) -> None:
    assert mechanism.outputs is not None
    reports = hb.Reports.from_counts(mechanism, [3, *range(1, len(mechanism.outputs))])
    for method in ("inv", "inv-n", "inv-p", "norm-cut", "base-cut"):
        with pytest.raises(hb.EstimateError, match="cannot tell all values apart") as caught:
            hb.estimate(reports, method)
        assert caught.value.got.startswith("rank 2 for 3 values")


POINTING: list[hb.RandomizedResponse | hb.Rappor | hb.OptimizedUnary | hb.SubsetSelection] = [
    hb.RandomizedResponse(hb.Integers(0, 5), 1.0),
    hb.Rappor(hb.Integers(0, 5), 1.5),
    hb.OptimizedUnary(hb.Integers(0, 5), 1.0),
    hb.SubsetSelection(hb.Integers(0, 5), 1.0),
    hb.SubsetSelection(hb.Integers(0, 5), 0.7, size=3),
]


@pytest.mark.parametrize("mechanism", POINTING, ids=lambda each: type(each).__name__)
def test_inversion_value_by_value_is_unbiased(mechanism: hb.Mechanism) -> None:
    truth = np.array([0.4, 0.05, 0.25, 0.0, 0.1, 0.2])
    outputs = mechanism.outputs
    assert outputs is not None
    # What 10^14 users send on average: inverted, it must be the truth itself.
    counts = np.round(truth @ mechanism.matrix() * 1e14).astype(np.int64)
    np.testing.assert_allclose(invert(hb.Reports.from_counts(mechanism, counts)), truth, atol=1e-9)


@pytest.mark.parametrize(
    "mechanism",
    [*POINTING, hb.LocalHashing(hb.Integers(0, 5), 1.0), hb.LocalHashing(hb.Integers(0, 5), 1.0, buckets=2)],
    ids=lambda each: type(each).__name__,
)
def test_inversion_of_many_reports_is_near_the_truth(
    mechanism: hb.RandomizedResponse | hb.Rappor | hb.OptimizedUnary | hb.SubsetSelection | hb.LocalHashing,
) -> None:
    users = 100_000
    truth = np.array([0.4, 0.05, 0.25, 0.0, 0.1, 0.2])
    values = np.repeat(np.arange(6), np.round(truth * users).astype(np.int64))
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=8))
    true, other = mechanism.support
    # Each value's share is a mean of indicators with variance at most 1/4.
    spread = 0.5 / math.sqrt(users) / (true - other)
    solution = invert(reports)
    assert np.abs(solution - truth).max() < 6 * spread  # six standard deviations; the seed is fixed
    assert np.abs(solution - truth).max() > 0  # and it is an estimate, not the truth
    for method in ("inv-n", "inv-p"):
        assert hb.total_variation(hb.estimate(reports, method).probabilities, truth) < 20 * spread
