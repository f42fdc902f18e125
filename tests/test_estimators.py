"""Estimators on drawn, non-symmetric matrices: certificates, optimality, stopping rules, keywords."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize

import hubbub as hb
import strategies as own

Floats = NDArray[np.float64]

METHODS = ["auto", "ibu", "mle", "inv-n", "inv-p"]

# Not symmetric, not doubly stochastic, invertible: reading A for its transpose changes everything.
SKEW = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
ABC = hb.Categories(["a", "b", "c"])
SKEWED = hb.Matrix(ABC, ["x", "y", "z"], SKEW)


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
    sent = counts > 0
    columns, shares = np.ascontiguousarray(matrix[:, sent]), counts[sent] / counts.sum()
    for _ in range(steps):
        theta = theta * (columns @ (shares / (theta @ columns)))
    result: Floats = theta / theta.sum()
    return result


# -- what holds for every method --------------------------------------------------------------------------


@own.examples(60)
@given(own.counted_matrices(square=True), st.sampled_from(METHODS))
def test_estimates_are_distributions(drawn: tuple[hb.Matrix, NDArray[np.int64]], method: str) -> None:
    mechanism, counts = drawn
    assume(np.linalg.cond(mechanism.matrix()) < 1e6)
    estimate = hb.estimate(hb.Reports.from_counts(mechanism, counts), method)
    assert estimate.probabilities.shape == (len(mechanism.domain),)
    assert (estimate.probabilities >= 0).all()
    assert estimate.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert estimate.domain == mechanism.domain
    assert estimate.method == method
    assert estimate.users == counts.sum()
    with pytest.raises(ValueError, match="read-only"):
        estimate.probabilities[0] = 1.0


@own.examples(100)
@given(own.counted_matrices(), st.data())
def test_the_gap_is_the_largest_gradient(drawn: tuple[hb.Matrix, NDArray[np.int64]], data: st.DataObject) -> None:
    mechanism, counts = drawn
    theta = data.draw(own.distributions(len(mechanism.domain), full=True))
    reports = hb.Reports.from_counts(mechanism, counts)
    expected = math.log(max(1.0, gradient(mechanism.matrix(), counts, theta).max()))
    assert hb.optimality_gap(reports, theta) == pytest.approx(expected, abs=1e-12)
    likelihood = counts.sum() * mean_log_likelihood(mechanism.matrix(), counts, theta)
    assert hb.log_likelihood(reports, theta) == pytest.approx(likelihood, rel=1e-12, abs=1e-12)


@own.examples(40)
@given(own.counted_matrices(), st.data())
def test_the_gap_bounds_the_shortfall(drawn: tuple[hb.Matrix, NDArray[np.int64]], data: st.DataObject) -> None:
    mechanism, counts = drawn
    matrix, size = mechanism.matrix(), len(mechanism.domain)
    best = mean_log_likelihood(matrix, counts, em(matrix, counts, np.full(size, 1 / size), 3000))
    reports = hb.Reports.from_counts(mechanism, counts)
    for theta in (data.draw(own.distributions(size, full=True)), em(matrix, counts, np.full(size, 1 / size), 5)):
        shortfall = best - mean_log_likelihood(matrix, counts, theta)
        assert shortfall <= hb.optimality_gap(reports, theta) + 1e-12


@own.examples(40)
@given(own.counted_matrices(square=True), st.sampled_from(METHODS))
def test_every_estimate_carries_its_own_certificate(drawn: tuple[hb.Matrix, NDArray[np.int64]], method: str) -> None:
    mechanism, counts = drawn
    assume(np.linalg.cond(mechanism.matrix()) < 1e6)
    reports = hb.Reports.from_counts(mechanism, counts)
    estimate = hb.estimate(reports, method)
    assert estimate.gap == pytest.approx(hb.optimality_gap(reports, estimate.probabilities), abs=1e-12)
    assert estimate.log_likelihood == pytest.approx(hb.log_likelihood(reports, estimate.probabilities), rel=1e-12)


@own.examples(40)
@given(own.counted_matrices(), st.sampled_from(["ibu", "mle"]), st.randoms(use_true_random=False))
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
@given(own.counted_matrices())
def test_the_maximum_satisfies_its_conditions(drawn: tuple[hb.Matrix, NDArray[np.int64]]) -> None:
    mechanism, counts = drawn
    matrix, size = mechanism.matrix(), len(mechanism.domain)
    estimate = hb.estimate(hb.Reports.from_counts(mechanism, counts), "mle")
    assert estimate.converged == (estimate.gap <= 1e-9)
    if not estimate.converged:
        assert "solved" not in estimate.status.replace("almost solved", "")
    reached = gradient(matrix, counts, estimate.probabilities)
    # No direction improves, and mass lies only where D is 1 (up to what the gap allows: sum theta (1 - D) = 0).
    assert reached.max() <= math.exp(estimate.gap) + 1e-12
    assert (estimate.probabilities * (1 - reached)).max() <= max(estimate.gap, 1e-9) * 2
    # No point that we can find is better by more than the gap.
    start = np.full(size, 1 / size)
    ours = mean_log_likelihood(matrix, counts, em(matrix, counts, start, 3000))
    theirs = mean_log_likelihood(matrix, counts, estimate.probabilities)
    assert ours <= theirs + estimate.gap + 1e-12


@own.examples(30)
@given(own.matrices(positive=True), st.data())
def test_maximum_likelihood_against_a_general_solver(mechanism: hb.Matrix, data: st.DataObject) -> None:
    counts = data.draw(own.counts(len(mechanism.outputs)))
    matrix, size = mechanism.matrix(), len(mechanism.domain)

    def loss(logits: Floats) -> float:
        weights = np.exp(logits - logits.max())
        return -mean_log_likelihood(matrix, counts, weights / weights.sum())

    best = -optimize.minimize(loss, np.zeros(size), method="BFGS").fun
    estimate = hb.estimate(hb.Reports.from_counts(mechanism, counts), "mle")
    assert mean_log_likelihood(matrix, counts, estimate.probabilities) >= best - 1e-8


@own.examples(40)
@given(own.counted_matrices())
def test_ten_times_the_counts_give_the_same_maximum(drawn: tuple[hb.Matrix, NDArray[np.int64]]) -> None:
    mechanism, counts = drawn
    once = hb.estimate(hb.Reports.from_counts(mechanism, counts), "mle")
    tenfold = hb.estimate(hb.Reports.from_counts(mechanism, counts * 10), "mle")
    np.testing.assert_allclose(tenfold.probabilities, once.probabilities, atol=1e-7)
    assert tenfold.log_likelihood == pytest.approx(10 * once.log_likelihood, rel=1e-9)


def test_a_single_pattern_has_a_closed_form() -> None:
    table = hb.Matrix(ABC, ["x", "y"], [[0.8, 0.2], [0.8, 0.2], [0.3, 0.7]])
    reports = hb.Reports.from_outputs(table, ["x"] * 7)
    estimate = hb.estimate(reports, "mle", start=[0.1, 0.3, 0.6])
    np.testing.assert_allclose(estimate.probabilities, [0.25, 0.75, 0.0])
    assert estimate.gap == pytest.approx(0.0, abs=1e-12)
    assert "not the only maximum" in estimate.status
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
@given(own.counted_matrices(), st.sampled_from([0.1, 1e-3, 1e-5]), st.data())
def test_ibu_is_algorithm_1(drawn: tuple[hb.Matrix, NDArray[np.int64]], delta: float, data: st.DataObject) -> None:
    mechanism, counts = drawn
    size = len(mechanism.domain)
    start = data.draw(st.none() | own.distributions(size, full=True))
    reports = hb.Reports.from_counts(mechanism, counts)
    estimate = hb.estimate(reports, "ibu", delta=delta, start=start, max_iter=300)
    first = np.full(size, 1 / size) if start is None else start
    theta, steps, met = algorithm_1(mechanism.matrix(), counts, first, delta, 300)
    assert estimate.iterations == steps
    assert estimate.converged == met
    np.testing.assert_allclose(estimate.probabilities, theta, atol=1e-10)


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
    estimate = hb.estimate(reports, method, max_iter=2, **keyword)
    assert estimate.iterations == 2
    assert not estimate.converged
    assert "iteration limit" in estimate.status
    assert "2" in estimate.status


def test_history_has_the_start_and_every_step() -> None:
    counts = np.array([700, 100, 200])
    reports = hb.Reports.from_counts(SKEWED, counts)
    estimate = hb.estimate(reports, "ibu", history=True)
    assert estimate.history is not None
    assert len(estimate.history.log_likelihood) == estimate.iterations + 1
    np.testing.assert_allclose(estimate.history.probabilities[0], 1 / 3)
    np.testing.assert_array_equal(estimate.history.probabilities[-1], estimate.probabilities)
    assert (np.diff(estimate.history.log_likelihood) >= -1e-9).all()  # EM never loses
    for step in (1, 2):
        expected = em(SKEW, counts, np.full(3, 1 / 3), step)
        np.testing.assert_allclose(estimate.history.probabilities[step], expected, atol=1e-12)
    assert hb.estimate(reports, "ibu").history is None
    assert hb.estimate(reports, "mle", history=True).history is not None


def test_start_from_the_shares_of_the_outputs() -> None:
    coin = hb.RandomizedResponse(ABC, 1.0)
    reports = hb.Reports.from_counts(coin, {"a": 5, "b": 3, "c": 2})
    estimate = hb.estimate(reports, "ibu", start="empirical", history=True)
    assert estimate.history is not None
    np.testing.assert_allclose(estimate.history.probabilities[0], [0.5, 0.3, 0.2])
    assert estimate.settings["start"] == "empirical"


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
    "solver": "interior point",
}
ACCEPTED = {
    "auto": {"max_iter", "rng"},
    "ibu": {"start", "delta", "max_iter", "history"},
    "ems": {"start", "delta", "max_iter", "history"},
    "mle": {"start", "tol", "max_iter", "history", "solver"},
    "inv-n": set[str](),
    "inv-p": set[str](),
}


@pytest.mark.parametrize("method", ACCEPTED)
@pytest.mark.parametrize("keyword", KEYWORDS)
def test_keywords_that_mean_nothing_are_refused(method: str, keyword: str) -> None:
    on_a_line = hb.Matrix(hb.Integers(0, 2), ["x", "y", "z"], SKEW)  # where "ems" has neighbours to smooth over
    reports = hb.Reports.from_counts(on_a_line, [700, 100, 200])
    chosen = {keyword: KEYWORDS[keyword]}
    if keyword in ACCEPTED[method]:
        assert hb.estimate(reports, method, **chosen).method == method
    else:
        with pytest.raises(hb.SettingError, match=f"does not use {keyword}") as refused:
            hb.estimate(reports, method, **chosen)
        assert refused.value.where == f"estimate(method={method!r}, {keyword}=)"
        assert refused.value.remedy == f"leave {keyword} out"


@pytest.mark.parametrize("start", [[0.5, 0.5], [1.0, 0.0, 0.0], [0.5, 0.6, 0.1], "middle", "empirical"])
def test_starts_that_make_no_sense_are_refused(start: object) -> None:
    with pytest.raises(hb.SettingError):
        hb.estimate(hb.Reports.from_counts(SKEWED, [7, 1, 2]), "ibu", start=start)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(hb.SettingError, match="newton"):
        hb.estimate(hb.Reports.from_counts(SKEWED, [7, 1, 2]), "newton")
