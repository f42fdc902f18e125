"""Estimators on drawn, non-symmetric matrices: certificates, optimality, stopping rules, inversion, results."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

import hubbub as hb
import strategies as own
from hubbub.solvers import invert
from hubbub.solvers.inversion import projected

mpl.use("Agg")

Floats = NDArray[np.float64]

METHODS = ["auto", "ibu", "mle", "inv-n", "inv-p"]

# Not symmetric, not doubly stochastic, invertible: reading A for its transpose changes everything.
SKEW = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
ABC = hb.Categories(["a", "b", "c"])
SKEWED = hb.Matrix(ABC, ["x", "y", "z"], SKEW)


@st.composite
def counted(draw: st.DrawFn, *, square: bool = False) -> tuple[hb.Matrix, NDArray[np.int64]]:
    """A non-symmetric matrix and counts of its outputs."""
    mechanism = draw(own.matrices(square=square, positive=draw(st.booleans())))
    return mechanism, draw(own.counts(len(mechanism.outputs)))


# -- written again, densely -------------------------------------------------------------------------------


def mean_log_likelihood(matrix: Floats, counts: NDArray[np.int64], theta: Floats) -> float:
    sent = counts > 0
    return float(counts[sent] @ np.log(theta @ matrix[:, sent]) / counts.sum())


def gradient(matrix: Floats, counts: NDArray[np.int64], theta: Floats) -> Floats:
    """D_x = (1/n) sum_i w_i g_xi / f_i."""
    sent = counts > 0
    result: Floats = matrix[:, sent] @ (counts[sent] / (theta @ matrix[:, sent])) / counts.sum()
    return result


def em(matrix: Floats, counts: NDArray[np.int64], theta: Floats, steps: int) -> Floats:
    """Plain EM for a number of steps."""
    for _ in range(steps):
        theta = theta * gradient(matrix, counts, theta)
        theta = theta / theta.sum()
    return theta


# -- what holds for every method --------------------------------------------------------------------------


@own.examples(60)
@given(counted(square=True), st.sampled_from(METHODS))
def test_estimates_are_distributions(drawn: tuple[hb.Matrix, NDArray[np.int64]], method: str) -> None:
    mechanism, counts = drawn
    assume(np.linalg.cond(mechanism.matrix()) < 1e6)
    found = hb.estimate(hb.Reports.from_counts(mechanism, counts), method)
    assert found.probabilities.shape == (len(mechanism.domain),)
    assert (found.probabilities >= 0).all()
    assert found.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert found.domain == mechanism.domain
    assert found.method == method
    assert found.users == counts.sum()
    with pytest.raises(ValueError, match="read-only"):
        found.probabilities[0] = 1.0


@own.examples(100)
@given(counted(), st.data())
def test_the_gap_is_the_largest_gradient(drawn: tuple[hb.Matrix, NDArray[np.int64]], data: st.DataObject) -> None:
    mechanism, counts = drawn
    theta = data.draw(own.distributions(len(mechanism.domain), full=True))
    reports = hb.Reports.from_counts(mechanism, counts)
    expected = math.log(max(1.0, gradient(mechanism.matrix(), counts, theta).max()))
    assert hb.optimality_gap(reports, theta) == pytest.approx(expected, abs=1e-12)
    likelihood = counts.sum() * mean_log_likelihood(mechanism.matrix(), counts, theta)
    assert hb.log_likelihood(reports, theta) == pytest.approx(likelihood, rel=1e-12, abs=1e-12)


@own.examples(40)
@given(counted(), st.data())
def test_the_gap_bounds_the_shortfall(drawn: tuple[hb.Matrix, NDArray[np.int64]], data: st.DataObject) -> None:
    mechanism, counts = drawn
    matrix, size = mechanism.matrix(), len(mechanism.domain)
    best = mean_log_likelihood(matrix, counts, em(matrix, counts, np.full(size, 1 / size), 3000))
    reports = hb.Reports.from_counts(mechanism, counts)
    for theta in (data.draw(own.distributions(size, full=True)), em(matrix, counts, np.full(size, 1 / size), 5)):
        shortfall = best - mean_log_likelihood(matrix, counts, theta)
        assert shortfall <= hb.optimality_gap(reports, theta) + 1e-12


@own.examples(40)
@given(counted(square=True), st.sampled_from(METHODS))
def test_every_estimate_carries_its_own_certificate(drawn: tuple[hb.Matrix, NDArray[np.int64]], method: str) -> None:
    mechanism, counts = drawn
    assume(np.linalg.cond(mechanism.matrix()) < 1e6)
    reports = hb.Reports.from_counts(mechanism, counts)
    found = hb.estimate(reports, method)
    assert found.gap == pytest.approx(hb.optimality_gap(reports, found.probabilities), abs=1e-12)
    assert found.log_likelihood == pytest.approx(hb.log_likelihood(reports, found.probabilities), rel=1e-12)


@own.examples(40)
@given(counted(), st.sampled_from(["ibu", "mle"]), st.randoms(use_true_random=False))
def test_relabelling_values_and_outputs_relabels_the_estimate(
    drawn: tuple[hb.Matrix, NDArray[np.int64]], method: str, random: Any
) -> None:
    mechanism, counts = drawn
    matrix = mechanism.matrix()
    rows = random.sample(range(matrix.shape[0]), matrix.shape[0])
    columns = random.sample(range(matrix.shape[1]), matrix.shape[1])
    renamed = hb.Categories([f"value {place}" for place in rows])
    other = hb.Matrix(renamed, [f"new {place}" for place in columns], matrix[np.ix_(rows, columns)])
    keywords: dict[str, Any] = {"max_iter": 40}  # sums in another order differ in the last digits, which may add up
    first = hb.estimate(hb.Reports.from_counts(mechanism, counts), method, **keywords)
    second = hb.estimate(hb.Reports.from_counts(other, counts[columns]), method, **keywords)
    np.testing.assert_allclose(second.probabilities, first.probabilities[rows], atol=1e-6)
    assert second.log_likelihood == pytest.approx(first.log_likelihood, rel=1e-9, abs=1e-9)


# -- maximum likelihood -----------------------------------------------------------------------------------


@own.examples(30)
@given(counted())
def test_the_maximum_satisfies_its_conditions(drawn: tuple[hb.Matrix, NDArray[np.int64]]) -> None:
    mechanism, counts = drawn
    matrix, size = mechanism.matrix(), len(mechanism.domain)
    found = hb.estimate(hb.Reports.from_counts(mechanism, counts), "mle")
    assert found.converged == (found.gap <= 1e-9)
    if not found.converged:
        assert "solved" not in found.status.replace("almost solved", "")
    reached = gradient(matrix, counts, found.probabilities)
    # No direction improves, and mass lies only where D is 1 (up to what the gap allows: sum theta (1 - D) = 0).
    assert reached.max() <= math.exp(found.gap) + 1e-12
    assert (found.probabilities * (1 - reached)).max() <= max(found.gap, 1e-9) * 2
    # No point that we can find is better by more than the gap.
    start = np.full(size, 1 / size)
    ours = mean_log_likelihood(matrix, counts, em(matrix, counts, start, 3000))
    theirs = mean_log_likelihood(matrix, counts, found.probabilities)
    assert ours <= theirs + found.gap + 1e-12


@own.examples(30)
@given(own.matrices(positive=True), st.data())
def test_maximum_likelihood_against_a_general_solver(mechanism: hb.Matrix, data: st.DataObject) -> None:
    counts = data.draw(own.counts(len(mechanism.outputs)))
    matrix, size = mechanism.matrix(), len(mechanism.domain)

    def loss(logits: Floats) -> float:
        weights = np.exp(logits - logits.max())
        return -mean_log_likelihood(matrix, counts, weights / weights.sum())

    best = -optimize.minimize(loss, np.zeros(size), method="BFGS").fun
    found = hb.estimate(hb.Reports.from_counts(mechanism, counts), "mle")
    assert mean_log_likelihood(matrix, counts, found.probabilities) >= best - 1e-8


@own.examples(40)
@given(counted())
def test_ten_times_the_counts_give_the_same_maximum(drawn: tuple[hb.Matrix, NDArray[np.int64]]) -> None:
    mechanism, counts = drawn
    once = hb.estimate(hb.Reports.from_counts(mechanism, counts), "mle")
    tenfold = hb.estimate(hb.Reports.from_counts(mechanism, counts * 10), "mle")
    np.testing.assert_allclose(tenfold.probabilities, once.probabilities, atol=1e-7)
    assert tenfold.log_likelihood == pytest.approx(10 * once.log_likelihood, rel=1e-9)


def test_a_single_pattern_has_a_closed_form() -> None:
    table = hb.Matrix(ABC, ["x", "y"], [[0.8, 0.2], [0.8, 0.2], [0.3, 0.7]])
    reports = hb.Reports.from_outputs(table, ["x"] * 7)
    found = hb.estimate(reports, "mle", start=[0.1, 0.3, 0.6])
    np.testing.assert_allclose(found.probabilities, [0.25, 0.75, 0.0])
    assert found.gap == pytest.approx(0.0, abs=1e-12)
    assert "not the only maximum" in found.status
    only = hb.estimate(hb.Reports.from_outputs(table, ["y"]), "mle")
    assert only.probabilities.tolist() == [0, 0, 1]
    assert "not the only maximum" not in only.status


def test_a_looser_tolerance_stops_earlier() -> None:
    reports = hb.Reports.from_counts(SKEWED, [500, 300, 200])
    loose, tight = hb.estimate(reports, "mle", tol=1e-2), hb.estimate(reports, "mle", tol=1e-12)
    assert loose.iterations < tight.iterations
    assert loose.gap <= 1e-2
    assert tight.gap <= 1e-12
    assert loose.converged
    assert tight.converged


# -- the paper's Algorithm 1 ------------------------------------------------------------------------------


def algorithm_1(
    matrix: Floats, counts: NDArray[np.int64], theta: Floats, delta: float, most: int
) -> tuple[Floats, int, bool]:
    """Repeat theta_x <- (1/n) sum_i theta_x g_xi / sum_u theta_u g_ui until |L change| < delta."""
    total = int(counts.sum())
    before = total * mean_log_likelihood(matrix, counts, theta)
    for step in range(1, most + 1):
        updated = np.zeros_like(theta)
        for output, count in enumerate(counts.tolist()):
            if count:
                posterior = theta * matrix[:, output]
                updated += count * posterior / posterior.sum()
        theta = updated / total
        after = total * mean_log_likelihood(matrix, counts, theta)
        if abs(after - before) < delta:
            return theta, step, True
        before = after
    return theta, most, False


@own.examples(60)
@given(counted(), st.sampled_from([0.1, 1e-3, 1e-5]), st.data())
def test_ibu_is_algorithm_1(drawn: tuple[hb.Matrix, NDArray[np.int64]], delta: float, data: st.DataObject) -> None:
    mechanism, counts = drawn
    size = len(mechanism.domain)
    start = data.draw(st.none() | own.distributions(size, full=True))
    reports = hb.Reports.from_counts(mechanism, counts)
    found = hb.estimate(reports, "ibu", delta=delta, start=start, max_iter=300)
    first = np.full(size, 1 / size) if start is None else start
    theta, steps, met = algorithm_1(mechanism.matrix(), counts, first, delta, 300)
    assert found.iterations == steps
    assert found.converged == met
    np.testing.assert_allclose(found.probabilities, theta, atol=1e-10)


def test_ibu_uses_the_papers_delta_unless_told() -> None:
    reports = hb.Reports.from_counts(SKEWED, [700, 100, 200])
    default, same = hb.estimate(reports, "ibu"), hb.estimate(reports, "ibu", delta=0.1)
    assert default.iterations == same.iterations
    np.testing.assert_array_equal(default.probabilities, same.probabilities)
    assert "delta rule" in default.status
    assert default.settings["delta"] == 0.1
    assert hb.estimate(reports, "ibu", delta=1e-6).iterations > default.iterations


@pytest.mark.parametrize(("method", "keyword"), [("ibu", {"delta": 1e-12}), ("mle", {"tol": 1e-15})])
def test_the_iteration_limit_is_no_convergence(method: str, keyword: dict[str, Any]) -> None:
    reports = hb.Reports.from_counts(SKEWED, [700, 100, 200])
    found = hb.estimate(reports, method, max_iter=2, **keyword)
    assert found.iterations == 2
    assert not found.converged
    assert "iteration limit" in found.status
    assert "2" in found.status


def test_history_has_the_start_and_every_step() -> None:
    counts = np.array([700, 100, 200])
    reports = hb.Reports.from_counts(SKEWED, counts)
    found = hb.estimate(reports, "ibu", history=True)
    assert found.history is not None
    assert len(found.history.log_likelihood) == found.iterations + 1
    np.testing.assert_allclose(found.history.probabilities[0], 1 / 3)
    np.testing.assert_array_equal(found.history.probabilities[-1], found.probabilities)
    assert (np.diff(found.history.log_likelihood) >= -1e-9).all()  # EM never loses
    for step in (1, 2):
        expected = em(SKEW, counts, np.full(3, 1 / 3), step)
        np.testing.assert_allclose(found.history.probabilities[step], expected, atol=1e-12)
    assert hb.estimate(reports, "ibu").history is None
    assert hb.estimate(reports, "mle", history=True).history is not None


def test_start_from_the_shares_of_the_outputs() -> None:
    coin = hb.RandomizedResponse(ABC, 1.0)
    reports = hb.Reports.from_counts(coin, {"a": 5, "b": 3, "c": 2})
    found = hb.estimate(reports, "ibu", start="empirical", history=True)
    assert found.history is not None
    np.testing.assert_allclose(found.history.probabilities[0], [0.5, 0.3, 0.2])
    assert found.settings["start"] == "empirical"


def test_the_same_reports_give_the_same_answer() -> None:
    reports = hb.Reports.from_counts(SKEWED, [700, 100, 200])
    for method in METHODS:
        first, second = hb.estimate(reports, method), hb.estimate(reports, method)
        np.testing.assert_array_equal(first.probabilities, second.probabilities)
        assert first.status == second.status


# -- keywords ---------------------------------------------------------------------------------------------

KEYWORDS: dict[str, Any] = {
    "start": "uniform",
    "tol": 1e-6,
    "delta": 0.1,
    "max_iter": 50,
    "rng": 1,
    "history": True,
}
ACCEPTED = {
    "auto": {"max_iter", "rng"},
    "ibu": {"start", "delta", "max_iter", "history"},
    "mle": {"start", "tol", "max_iter", "history"},
    "inv-n": set[str](),
    "inv-p": set[str](),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("keyword", KEYWORDS)
def test_keywords_that_mean_nothing_are_refused(method: str, keyword: str) -> None:
    reports = hb.Reports.from_counts(SKEWED, [700, 100, 200])
    chosen = {keyword: KEYWORDS[keyword]}
    if keyword in ACCEPTED[method]:
        assert hb.estimate(reports, method, **chosen).method == method
    else:
        with pytest.raises(hb.SettingError, match=keyword):
            hb.estimate(reports, method, **chosen)


@pytest.mark.parametrize("start", [[0.5, 0.5], [1.0, 0.0, 0.0], [0.5, 0.6, 0.1], "middle", "empirical"])
def test_starts_that_make_no_sense_are_refused(start: object) -> None:
    with pytest.raises(hb.SettingError):
        hb.estimate(hb.Reports.from_counts(SKEWED, [7, 1, 2]), "ibu", start=start)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(hb.SettingError, match="newton"):
        hb.estimate(hb.Reports.from_counts(SKEWED, [7, 1, 2]), "newton")


# -- inversion --------------------------------------------------------------------------------------------


def simplex_by_bisection(point: Floats) -> Floats:
    """Return the nearest distribution, max(v - t, 0), with t found by halving."""
    low, high = point.min() - 1, point.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(point - middle, 0).sum() > 1 else (low, middle)
    nearest: Floats = np.maximum(point - (low + high) / 2, 0)
    return nearest


@own.examples(80)
@given(counted(square=True))
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
@given(counted(square=True))
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
    ("mechanism", "output"),
    [
        (hb.Matrix(ABC, ["x", "y"], [[0.5, 0.5], [0.1, 0.9], [0.7, 0.3]]), "x"),
        (hb.Geometric(hb.Integers(0, 3), 1.0), 2),
        (hb.PlanarGeometric(hb.Grid(2, 2), 1.0, truncated=False), (0, 1)),
        (hb.Cloaking(ABC, ["r", "r", "s"]), "r"),
    ],
)
def test_only_square_matrices_are_inverted(mechanism: hb.Mechanism, output: object) -> None:
    reports = hb.Reports.from_users([[(mechanism, output)]])
    for method in ("inv-n", "inv-p"):
        with pytest.raises(hb.EstimateError, match="square"):
            hb.estimate(reports, method)


def test_inversion_takes_one_mechanism_and_one_output_each() -> None:
    coin, dice = hb.RandomizedResponse(ABC, 1.0), hb.RandomizedResponse(ABC, 2.0)
    mixed = hb.Reports.from_outputs(coin, ["a"]) + hb.Reports.from_outputs(dice, ["b"])
    several = hb.Reports.from_users([[(coin, "a"), (coin, "b")]])
    part = hb.Reports.from_outputs(coin, ["a", "b"]).restrict(["a", "b"])
    for reports in (mixed, several, part):
        with pytest.raises(hb.EstimateError):
            hb.estimate(reports, "inv-n")


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


# -- results ----------------------------------------------------------------------------------------------


def test_json_tells_everything_once() -> None:
    found = hb.estimate(hb.Reports.from_counts(SKEWED, [700, 100, 200]), "mle")
    document = json.loads(found.to_json())
    assert document["method"] == "mle"
    assert document["status"] == found.status
    assert document["converged"] is True
    assert document["users"] == 1000
    assert document["log_likelihood"] == found.log_likelihood
    assert document["gap"] == found.gap
    assert document["iterations"] == found.iterations
    assert [entry["value"] for entry in document["estimate"]] == ["a", "b", "c"]
    assert [entry["probability"] for entry in document["estimate"]] == found.probabilities.tolist()


# Inverted, the first two values get 0.95 each, the third -0.95 and the last 0.05, which the projection cuts off: the
# one value that can send "w" is left with probability 0, though "w" was sent.
STRICT = hb.Matrix(
    hb.Categories(["a", "b", "c", "d"]),
    ["x", "y", "z", "w"],
    [[0.5, 0.5, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]],
)


def test_an_estimate_that_excludes_a_report_says_so_and_json_has_null() -> None:
    reports = hb.Reports.from_counts(STRICT, [1000, 1, 0, 50])
    found = hb.estimate(reports, "inv-p")
    assert found.probabilities[3] == 0
    assert found.log_likelihood == -math.inf
    assert found.gap == math.inf
    assert hb.log_likelihood(reports, found.probabilities) == -math.inf
    for each in (found, replace(found, gap=math.nan)):
        document = json.loads(each.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        assert document["log_likelihood"] is None
        assert document["gap"] is None
    assert "inf" in str(found)


def test_integer_labels_stay_integers_in_json() -> None:
    coin = hb.RandomizedResponse(hb.Integers(3, 5), 1.0)
    document = json.loads(hb.estimate(hb.Reports.from_counts(coin, [1, 2, 3])).to_json())
    assert [entry["value"] for entry in document["estimate"]] == [3, 4, 5]


def test_a_table_for_pandas() -> None:
    found = hb.estimate(hb.Reports.from_counts(SKEWED, [700, 100, 200]), "mle")
    frame = found.to_frame()
    assert frame.columns.tolist() == ["value", "probability"]
    assert frame["value"].tolist() == ["a", "b", "c"]
    assert frame["probability"].tolist() == found.probabilities.tolist()


@pytest.mark.parametrize(
    "domain",
    [ABC, hb.Integers(0, 5), hb.Bins([0, 1, 3, 4]), hb.Grid(3, 2), hb.Grid(3, 2, cells=[0, 4, 5])],
    ids=lambda each: type(each).__name__,
)
@pytest.mark.parametrize("restricted", [False, True])
def test_plots_return_their_axes(domain: hb.Domain, restricted: bool) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.axes import Axes

    reports = hb.Reports.from_outputs(hb.RandomizedResponse(domain, 1.0), domain.labels)
    if restricted:
        reports = reports.restrict(domain.labels[:2])
    found = hb.estimate(reports)
    axes = found.plot()
    try:
        assert isinstance(axes, Axes)
        assert "ibu" in axes.get_title() or "auto" in axes.get_title()
        assert len(axes.patches) + len(axes.images) > 0
        if axes.patches:
            heights = [bar.get_height() for bar in axes.patches]  # type: ignore[attr-defined]
            np.testing.assert_allclose(heights, found.probabilities)
        axes.figure.canvas.draw()
        given_axes = plt.subplots()[1]
        assert found.plot(given_axes) is given_axes
    finally:
        plt.close("all")


def test_html_escapes_labels() -> None:
    domain = hb.Categories(["<script>alert(1)</script>", "a & b", '"quoted"'])
    found = hb.estimate(hb.Reports.from_counts(hb.RandomizedResponse(domain, 1.0), [5, 3, 2]))
    html = found._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "a &amp; b" in html
    assert found.status in html


def test_html_of_many_values_is_cut() -> None:
    coin = hb.RandomizedResponse(hb.Integers(1, 500), 3.0)
    html = hb.estimate(hb.Reports.from_outputs(coin, [1, 1, 2]), "ibu")._repr_html_()
    assert html.count("<tr>") < 60
    assert "480 more" in html


def test_text_says_how_it_ended() -> None:
    found = hb.estimate(hb.Reports.from_counts(SKEWED, [700, 100, 200]), "mle")
    assert found.status in str(found)
    assert "1,000" in str(found)
    assert "mle" in repr(found)
