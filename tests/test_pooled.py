"""A likelihood in parts is the same likelihood: value, gradient, certificate, update, and all that follows."""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hubbub as hb
from hubbub.likelihood import (
    Likelihood,
    Point,
    PooledLikelihood,
    PooledPoint,
    ReportsInParts,
    ScatteredReports,
    Sums,
)
from hubbub.solvers import SolverProgress
from parts import KINDS, part
from strategies import counts, distributions, examples, stochastic

Floats = NDArray[np.float64]


def both(parts: list[hb.Reports], theta: Floats) -> tuple[Point, PooledPoint]:
    return Likelihood.of(reduce(add, parts)).at(theta), PooledLikelihood(ReportsInParts(parts)).at(theta)


def agree(one: Point, pooled: PooledPoint) -> None:
    assert pooled.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-12)
    assert pooled.gap == pytest.approx(one.gap, rel=1e-9, abs=1e-13)
    assert (pooled.total, pooled.users) == (one.total, one.users)
    np.testing.assert_allclose(pooled.gradient, one.gradient, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(pooled.update, one.update, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_a_point_is_the_same_in_parts(kind: str) -> None:
    parts = [part(kind, number) for number in range(4)]
    rng = np.random.default_rng(1)
    for theta in (np.full(40, 1 / 40), rng.dirichlet(np.ones(40)), 3.0 * rng.dirichlet(np.full(40, 0.05))):
        agree(*both(parts, theta))


def test_one_part_gives_the_same_bits() -> None:
    theta = np.random.default_rng(2).dirichlet(np.ones(40))
    one, pooled = both([part("rappor", 0)], theta)
    assert pooled.log_likelihood == one.log_likelihood
    assert pooled.gap == one.gap
    assert pooled.update.tolist() == one.update.tolist()


@st.composite
def dealt(draw: st.DrawFn) -> tuple[list[hb.Reports], Floats]:
    """Counts of a matrix with zeros, dealt into parts in which some outputs were not sent, and any distribution."""
    values, outputs = draw(st.integers(2, 5)), draw(st.integers(2, 5))
    table = draw(stochastic(values, outputs))
    mechanism = hb.Matrix(hb.Integers(1, values), list(range(outputs)), table)
    possible = (table > 0).any(axis=0)
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        own = draw(counts(outputs)) * possible
        own[int(np.argmax(possible))] += 1
        parts.append(hb.Reports.from_counts(mechanism, own))
    return parts, draw(distributions(values))


@examples(150)
@given(dealt())
def test_any_channel_in_any_parts(drawn: tuple[list[hb.Reports], Floats]) -> None:
    """Where a report has probability 0, both say -inf and that nothing is known of the maximum."""
    parts, theta = drawn
    one, pooled = both(parts, theta)
    if math.isfinite(one.log_likelihood):
        agree(one, pooled)
    else:
        assert pooled.log_likelihood == -math.inf
        assert pooled.gap == one.gap == math.inf


# -- underflow -------------------------------------------------------------------------------------------


def far_apart() -> list[hb.Reports]:
    """Users near both ends of a long line, each end in a part of its own, so that a spike there is far from one."""
    mechanism = hb.Geometric(hb.Integers(0, 2_000), 1.0)
    outputs = ([0, 1, 3, 3], [1_999, 2_000, 2_004], [1_000, 1_001])
    return [hb.Reports.from_outputs(mechanism, np.array(own)) for own in outputs]


@pytest.mark.parametrize("places", [(0,), (1_000,), (0, 2_000), (3, 1_200), (900, 1_100)])
def test_patterns_whose_probability_underflows(places: tuple[int, ...]) -> None:
    theta = np.zeros(2_001)
    theta[list(places)] = 1 / len(places)
    parts = far_apart()
    one, pooled = both(parts, theta)
    assert one.underflow is not None, "nothing is tested otherwise"
    assert pooled.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-12)
    assert math.isfinite(pooled.log_likelihood)
    assert pooled.gap == pytest.approx(one.gap, rel=1e-10)
    held = one.gradient < 1e290  # beyond, rounding decides what is still a float
    assert (pooled.gradient[~held] > 1e289).all()
    np.testing.assert_allclose(pooled.gradient[held], one.gradient[held], rtol=1e-9)
    np.testing.assert_allclose(pooled.update, one.update, rtol=1e-9, atol=1e-300)


def test_patterns_that_underflow_in_several_parts_add_up() -> None:
    theta = np.zeros(2_001)
    theta[1_000] = 1.0
    single = [Likelihood.of(own).at(theta).sums() for own in far_apart()]
    assert [own.underflow is None for own in single] == [False, False, True]
    left, right = (single[0] + single[1]) + single[2], single[0] + (single[1] + single[2])
    assert left.underflow is not None
    assert right.underflow is not None
    np.testing.assert_allclose(left.underflow.log_gradient, right.underflow.log_gradient, rtol=1e-12)
    assert left.total == right.total == 9.0


def test_sums_of_an_impossible_report_stay_impossible() -> None:
    mechanism = hb.Matrix(hb.Integers(1, 2), ["x", "y"], [[1.0, 0.0], [0.5, 0.5]])
    parts = [hb.Reports.from_counts(mechanism, [3, 0]), hb.Reports.from_counts(mechanism, [1, 2])]
    pooled = PooledLikelihood(ReportsInParts(parts)).at(np.array([1.0, 0.0]))
    assert pooled.log_likelihood == -math.inf
    assert pooled.gap == math.inf


# -- estimates -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["ibu", "ems", "mle"])
def test_estimates_are_the_same_in_parts(kind: str, method: str) -> None:
    parts = [part(kind, number) for number in range(3)]
    keywords: dict[str, Any] = {"tol": 1e-6, "solver": "accelerated em"} if method == "mle" else {}
    one = hb.estimate(reduce(add, parts), method, max_iter=40, **keywords)
    pooled = hb.estimate(ReportsInParts(parts), method, max_iter=40, **keywords)
    np.testing.assert_allclose(pooled.probabilities, one.probabilities, rtol=0, atol=1e-10)
    assert pooled.status == one.status
    assert (pooled.iterations, pooled.converged, pooled.users) == (one.iterations, one.converged, one.users)
    assert pooled.log_likelihood == pytest.approx(one.log_likelihood, rel=1e-12)
    assert pooled.gap == pytest.approx(one.gap, rel=1e-6)
    assert dict(pooled.settings) == {**one.settings, "parts": 3}


def test_the_maximum_is_the_one_that_other_solvers_find() -> None:
    parts = [part("several", number) for number in range(3)]
    pooled = hb.estimate(ReportsInParts(parts), "mle", tol=1e-8)
    best = hb.estimate(reduce(add, parts), "mle", tol=1e-12)
    assert pooled.status.startswith("solved; gap")
    assert 0 <= best.log_likelihood - pooled.log_likelihood + 1e-8 <= 1e-8 * pooled.users + 2e-8
    assert hb.optimality_gap(reduce(add, parts), pooled.probabilities) <= 1e-8 * (1 + 1e-6)


def test_history_is_the_same_in_parts() -> None:
    parts = [part("matrix", number) for number in range(2)]
    one = hb.estimate(reduce(add, parts), "ibu", max_iter=7, history=True).history
    pooled = hb.estimate(ReportsInParts(parts), "ibu", max_iter=7, history=True).history
    assert one is not None
    assert pooled is not None
    np.testing.assert_allclose(pooled.probabilities, one.probabilities, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(pooled.log_likelihood, one.log_likelihood, rtol=1e-11, atol=1e-14)


def test_value_and_gap_of_any_distribution() -> None:
    parts = [part("rappor", number) for number in range(2)]
    theta = np.random.default_rng(3).dirichlet(np.ones(40))
    for question in (hb.log_likelihood, hb.optimality_gap):
        assert question(ReportsInParts(parts), theta) == pytest.approx(question(reduce(add, parts), theta), rel=1e-12)


class Counting(ReportsInParts):
    """Reports in parts that count how often theta was sent to them."""

    asked = 0

    def evaluate(self, theta: Floats) -> Sums:
        self.asked += 1
        return super().evaluate(theta)


def test_theta_is_sent_once_for_each_point() -> None:
    reports = Counting([part("unary", number) for number in range(2)])
    hb.estimate(reports, "ibu", max_iter=10, delta=1e-9)
    assert reports.asked == 11
    reports = Counting([part("unary", number) for number in range(2)])
    hb.estimate(reports, "mle", max_iter=10, tol=1e-14)
    assert reports.asked == 31  # two updates and the extrapolation


def test_progress_is_yielded(monkeypatch: pytest.MonkeyPatch) -> None:
    from hubbub.estimators import estimate
    from hubbub.solvers import loop

    monkeypatch.setattr(loop, "PROGRESS_SECONDS", 0.0)
    run = estimate.steps(ReportsInParts([part("unary", 0)]), "mle", max_iter=3, tol=1e-14)
    told = [step for step in run if isinstance(step, SolverProgress)]
    assert [(step.iteration, step.max_iter) for step in told] == [(1, 3), (2, 3), (3, 3)]


def test_reports_in_parts_merge_again() -> None:
    parts = [part("mixed", number) for number in range(3)]
    scattered: ScatteredReports = ReportsInParts(parts)
    assert scattered.merged() == parts[0] + parts[1] + parts[2]
    assert (scattered.users, scattered.parts, scattered.approximate) == (450, 3, False)
    assert ReportsInParts([part("sums", 0)]).approximate
