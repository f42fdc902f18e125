"""Penalties and penalised likelihoods, against finite differences and a general solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
import strategies as own
from auto_studies import (
    Floats,
    em,
    highest,
    objective,
    skewed,
    slope,
    softmax,
    tv,
)
from hubbub.channels import DenseChannel
from hubbub.domains.domain_shape import DomainShape
from hubbub.solvers import penalised_likelihood as solver
from hubbub.solvers.penalised_likelihood import PenalisedLikelihoods
from hubbub.solvers.penalties import DeviationsFromMean, DeviationsFromTrend, Jumps, Penalty, Quadratic

# -- penalties -------------------------------------------------------------------------------------------


def precision(rng: np.random.Generator, size: int, stiffness: float = 1.0) -> Floats:
    """A precision that says nothing of the mean."""
    root = rng.normal(size=(size, size))
    centre = np.eye(size) - 1.0 / size
    matrix: Floats = stiffness * centre @ (root @ root.T / size + 0.05 * np.eye(size)) @ centre
    return matrix


def penalties(seed: int, size: int = 6) -> dict[str, Penalty]:
    rng = np.random.default_rng(seed)
    scale, strength = float(rng.uniform(0.05, 1.5)), float(rng.uniform(0.3, 3.0))
    neighbours = DomainShape.of(hb.Grid(size // 2, 2)).neighbours
    return {
        "quadratic": Quadratic(precision(rng, size)),
        "jumps": Jumps(neighbours, size, scale, strength),
        "exceptions": DeviationsFromMean(scale, strength),
    }


KINDS = ["quadratic", "jumps", "exceptions"]


@given(st.integers(0, 9_999), st.sampled_from(KINDS))
@own.examples(30)
def test_gradients_of_penalties_are_those_of_their_values(seed: int, kind: str) -> None:
    penalty = penalties(seed)[kind]
    u = np.random.default_rng(seed + 1).normal(0, 2, 6)
    step = 1e-6
    slopes = [
        (penalty.value(u + step * side) - penalty.value(u - step * side)) / (2 * step) for side in np.eye(6)
    ]  # fmt: skip
    np.testing.assert_allclose(penalty.gradient(u), slopes, rtol=1e-5, atol=1e-5)


@given(st.integers(0, 9_999), st.sampled_from(KINDS), st.floats(0.01, 10.0))
@own.examples(60)
def test_parabolas_touch_penalties_from_above(seed: int, kind: str, far: float) -> None:
    penalty, rng = penalties(seed)[kind], np.random.default_rng(seed + 1)
    u = rng.normal(0, rng.choice([0.01, 0.3, 3.0]), 6)
    curvature = penalty.curvature(u)
    np.testing.assert_allclose(curvature, curvature.T, atol=1e-12)
    assert np.linalg.eigvalsh(curvature).min() >= -1e-9 * np.abs(curvature).max()

    def parabola(v: Floats) -> float:
        return float(penalty.value(u) + penalty.gradient(u) @ (v - u) + 0.5 * (v - u) @ curvature @ (v - u))

    for v in u + far * rng.normal(size=(20, 6)):
        assert penalty.value(v) <= parabola(v) + 1e-9 * (1 + abs(parabola(v)))
    # It touches at the mirror image too: a wider one would be above, and slower.
    assert parabola(-u) == pytest.approx(float(penalty.value(-u)), rel=1e-9)
    # At 0 it has the penalty's own curvature.
    flat, step = penalty.curvature(np.zeros(6)), 1e-5
    second = np.array([penalty.gradient(step * side) / step for side in np.eye(6)])
    np.testing.assert_allclose(flat, second, rtol=1e-4, atol=1e-4 * np.abs(flat).max())


@given(st.integers(0, 9_999), st.sampled_from(KINDS), st.floats(-50, 50))
@own.examples(30)
def test_penalties_do_not_see_a_constant(seed: int, kind: str, constant: float) -> None:
    penalty = penalties(seed)[kind]
    u = np.random.default_rng(seed + 1).normal(0, 2, 6)
    assert penalty.value(u + constant) == pytest.approx(float(penalty.value(u)), rel=1e-8, abs=1e-8)
    np.testing.assert_allclose(penalty.gradient(u + constant), penalty.gradient(u), atol=1e-8)
    np.testing.assert_allclose(penalty.curvature(u) @ np.ones(6), 0.0, atol=1e-7)
    assert penalty.gradient(u).sum() == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_penalties_of_a_batch_are_those_one_by_one(kind: str) -> None:
    penalty = penalties(3)[kind]
    rows = np.random.default_rng(4).normal(0, 2, (5, 6))
    np.testing.assert_allclose(penalty.value(rows), [penalty.value(u) for u in rows], rtol=1e-12)
    np.testing.assert_allclose(penalty.gradient(rows), [penalty.gradient(u) for u in rows], rtol=1e-12, atol=1e-12)


def test_penalties_by_hand() -> None:
    u = np.array([0.0, 1.0, 3.0])
    line = Jumps(DomainShape.of(hb.Integers(0, 2)).neighbours, 3, 0.5, 2.0)
    assert line.value(u) == pytest.approx(2.0 * (np.log(1 + 4) + np.log(1 + 16)))
    around = DeviationsFromMean(0.5, 2.0)
    assert around.value(u) == pytest.approx(2.0 * sum(np.log1p(4 * d * d) for d in (-4 / 3, -1 / 3, 5 / 3)))
    assert Quadratic(np.diag([1.0, 2.0, 4.0])).value(u) == pytest.approx(1.0 + 18.0)


# -- penalised likelihoods ----------------------------------------------------------------------------


def climbed(channel: DenseChannel, weights: Floats, penalty: Penalty, start: Floats) -> float:
    return objective(channel, weights, penalty, highest(channel, weights, penalty, start))


def field_problem(seed: int, values: int = 7, patterns: int = 9) -> tuple[DenseChannel, Floats, PenalisedLikelihoods]:
    rng = np.random.default_rng(seed)
    channel = skewed(rng, values, patterns)
    truth = rng.dirichlet(np.ones(values))
    rows = np.stack([rng.multinomial(users, truth @ channel.matrix) for users in (3_000, 400, 40, 2_400)])
    weights = rows.astype(np.float64)
    return channel, weights, PenalisedLikelihoods(channel, weights, em(channel.matrix, weights[0], 40))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("stiffness", [0.1, 1.0, 30.0])
def test_fields_reach_the_maximum_of_convex_penalties(seed: int, stiffness: float) -> None:
    channel, weights, fields = field_problem(seed)
    penalty = Quadratic(precision(np.random.default_rng(seed), 7, stiffness))
    u, theta = fields.fit(penalty, np.zeros((4, 7)))
    np.testing.assert_allclose(theta, softmax(u), rtol=1e-12)
    for own_u, row in zip(u, weights, strict=True):
        reached = objective(channel, row, penalty, own_u)
        best = max(climbed(channel, row, penalty, np.zeros(7)), climbed(channel, row, penalty, own_u))
        assert reached == pytest.approx(best, abs=0.01)  # nats, of thousands


@pytest.mark.parametrize("kind", ["jumps", "exceptions"])
@pytest.mark.parametrize("seed", range(4))
def test_fields_reach_a_maximum_of_heavy_penalties(kind: str, seed: int) -> None:
    channel, weights, fields = field_problem(seed, values=6)
    penalty = penalties(seed)[kind]
    start = np.log(np.stack([em(channel.matrix, row, 10) for row in weights]) + 1e-6)
    u, _ = fields.fit(penalty, start.copy())
    for own_u, own_start, row in zip(u, start, weights, strict=True):
        reached = objective(channel, row, penalty, own_u)
        assert reached >= objective(channel, row, penalty, own_start)
        assert climbed(channel, row, penalty, own_u) - reached < 0.1  # parabolas that are too steep make short steps
        before, after = (np.abs(slope(channel, row, penalty, place)).max() for place in (own_start, own_u))
        assert after < max(0.05 * before, 1.0)


@given(st.integers(0, 999), st.sampled_from(KINDS), st.floats(0.1, 6.0))
@own.examples(30)
def test_fields_are_never_worse_than_their_start(seed: int, kind: str, rough: float) -> None:
    channel, weights, fields = field_problem(seed, values=6)
    penalty = penalties(seed)[kind]
    start = np.random.default_rng(seed + 1).normal(0, rough, (4, 6))
    u, theta = fields.fit(penalty, start.copy())
    np.testing.assert_allclose(theta, softmax(u), rtol=1e-12)
    for own_u, own_start, row in zip(u, start, weights, strict=True):
        assert objective(channel, row, penalty, own_u) >= objective(channel, row, penalty, own_start) - 1e-9


def test_fields_of_a_batch_are_those_one_by_one() -> None:
    channel, weights, fields = field_problem(5)
    penalty = Quadratic(precision(np.random.default_rng(5), 7, 3.0))
    _, together = fields.fit(penalty, np.zeros((4, 7)))
    for row, theta in zip(weights, together, strict=True):
        alone = PenalisedLikelihoods(channel, row[None], em(channel.matrix, row, 40))
        assert tv(alone.fit(penalty, np.zeros((1, 7)))[1][0], theta) < 5e-3


def test_fields_whose_curvature_is_made_once_and_of_some_patterns_end_at_the_same_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channel, weights, exact = field_problem(6)
    penalty = Quadratic(precision(np.random.default_rng(6), 7, 1.0))
    _, expected = exact.fit(penalty, np.zeros((4, 7)))
    pilot = em(channel.matrix, weights[0], 40)
    monkeypatch.setattr(solver, "MAX_FITTED_CHANGE", np.inf)
    _, once = PenalisedLikelihoods(channel, weights, pilot).fit(penalty, np.zeros((4, 7)))
    monkeypatch.setattr(solver, "MAX_CURVATURE_PATTERNS", 7)
    monkeypatch.setattr(solver, "MAX_PATTERNS_PER_VALUE", 0)  # products with C instead of the channel
    _, rough = PenalisedLikelihoods(channel, weights, pilot).fit(penalty, np.zeros((4, 7)))
    for found in (once, rough):
        for row in range(4):
            assert tv(found[row], expected[row]) < 1e-2


# -- systems solved by structure --------------------------------------------------------------------------


def blurred_line(size: int = 60) -> tuple[hb.Reports, Floats, DomainShape]:
    """Reports through noise as wide as a tenth of a line, and two weightings of them that differ by chance."""
    rng = np.random.default_rng(1)
    mechanism = hb.TruncatedGeometric(hb.Integers(0, size - 1), 10.0 / size)
    values = np.concatenate([rng.binomial(size - 1, 0.3, 15_000), rng.integers(size // 2, size, 5_000)])
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))
    part = rng.binomial(reports.weights.astype(np.int64), 0.8).astype(np.float64)
    return reports, np.stack([reports.weights, part]), DomainShape.of(mechanism.domain)


def line_penalties(shape: DomainShape) -> dict[str, Penalty]:
    scaled = np.sqrt(3.0) * shape.distances / 8.0
    matern = (1.0 + scaled) * np.exp(-scaled) + 1e-6 * np.eye(shape.values)
    return {
        "field": Quadratic.field(matern, shape.trends(2), (1.0,))[0],
        "trend": DeviationsFromTrend(shape.trends(2), 0.1),
        "jumps": Jumps(shape.neighbours, shape.values, 0.5, 1.0),
        "exceptions": DeviationsFromMean(1.0, 1.0),
    }


@pytest.mark.parametrize("kind", ["field", "trend", "jumps", "exceptions"])
def test_modes_are_the_same_by_low_rank_by_one_factor_and_by_a_factor_for_each_row(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports, weights, shape = blurred_line()
    penalty = line_penalties(shape)[kind]
    matrix = reports.channel.dense()
    pilot = em(matrix, weights[0], 40)
    start = np.log(np.stack([em(matrix, row, 40) for row in weights]))
    conjugate_steps, channel = [], DenseChannel(matrix, reports.channel.log_scale)
    plain = solver.solve_by_conjugate_gradients

    def counted(*arguments: Any) -> tuple[Floats, int]:
        found = plain(*arguments)
        conjugate_steps.append(found[1])
        return found

    monkeypatch.setattr(solver, "solve_by_conjugate_gradients", counted)
    modes = {}
    for way, low_rank_from, separate_up_to in (("low rank", 2, 0), ("shared", 999, 0), ("each", 999, 999)):
        monkeypatch.setattr(solver, "MIN_LOW_RANK_VALUES", low_rank_from)
        monkeypatch.setattr(solver, "MAX_RELATIVE_RANK", 0.9)
        monkeypatch.setattr(solver, "MAX_LEFT_OUT_CURVATURE", 0.1)
        monkeypatch.setattr(solver, "MAX_RESIDUAL", 0.01)  # rough steps may lead to another of several maxima
        monkeypatch.setattr(solver, "MAX_SEPARATE_VALUES", separate_up_to)
        fits = PenalisedLikelihoods(channel, weights, pilot)
        assert (fits._low_rank is not None) == (way == "low rank")
        monkeypatch.setattr(fits, "_is_small", lambda _, way=way: way == "each")
        modes[way] = fits.fit(penalty, start.copy())[0]
    for row in range(2):
        values = {way: objective(channel, weights[row], penalty, u[row]) for way, u in modes.items()}
        assert max(values.values()) - min(values.values()) < 0.03  # nats, of 80,000
        for way in ("low rank", "shared"):
            assert tv(softmax(modes[way][row]), softmax(modes["each"][row])) < 3e-3
    assert 0 < np.mean(conjugate_steps) < 12  # the preconditioners are close to the matrices


def check_rough_inverse(penalty: Penalty, u: Floats, diagonal: Floats, rtol: float) -> None:
    """Compare with a dense system, for right sides on which the constant has no say."""
    inverse = penalty.rough_inverse(u, diagonal)
    assert inverse is not None
    rows = np.random.default_rng(0).normal(size=(3, u.size))
    rows -= rows.mean(axis=1, keepdims=True)
    found = inverse(rows)
    np.testing.assert_allclose(found @ (penalty.curvature(u) + np.diag(diagonal)), rows, rtol=rtol, atol=rtol)


def test_rough_inverses_are_inverses() -> None:
    _, _, shape = blurred_line(12)
    kinds, rng = line_penalties(shape), np.random.default_rng(3)
    u, some, none = rng.normal(size=12), rng.uniform(0.5, 2.0, 12), np.zeros(12)
    check_rough_inverse(kinds["jumps"], u, some, 1e-6)
    check_rough_inverse(kinds["jumps"], u, none, 1e-4)  # a ridge holds the constant
    away = np.eye(12) - shape.trends(2) @ shape.trends(2).T  # where the trends have no say
    for kind in ("field", "trend"):
        inverse = kinds[kind].rough_inverse(u, none)
        assert inverse is not None
        np.testing.assert_allclose(inverse(kinds[kind].curvature(u)) @ away, away, atol=1e-4)
    divided = kinds["exceptions"].rough_inverse(u, some)
    assert divided is not None
    product = divided(kinds["exceptions"].curvature(u) + np.diag(some))
    assert np.linalg.matrix_rank(product - np.eye(12), tol=1e-9) <= 2  # but for what the mean has a say in


def test_a_wrong_band_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, shape = blurred_line(12)
    jumps, u = line_penalties(shape)["jumps"], np.random.default_rng(3).normal(size=12)
    plain = Jumps._weights
    monkeypatch.setattr(
        Jumps, "rough_inverse", lambda self, u, diagonal: lambda rows: rows / (2 * plain(self, u).max())
    )
    with pytest.raises(AssertionError):
        check_rough_inverse(jumps, u, np.ones(12), 1e-6)


def test_neighbours_that_are_no_line_in_order_have_no_bands() -> None:
    neighbours = DomainShape.of(hb.Grid(3, 2)).neighbours
    assert Jumps(neighbours, 6, 1.0, 1.0).rough_inverse(np.zeros(6), np.ones(6)) is None


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_inverses_are_updated_by_woodbury(sign: float) -> None:
    rng = np.random.default_rng(0)
    diagonal, update, rows = rng.uniform(1.0, 2.0, 9), rng.normal(size=(3, 9)), rng.normal(size=(2, 9))
    found = solver.updated_inverse(lambda rows: rows / diagonal, update)(rows)
    expected = np.linalg.solve(np.diag(diagonal) + sign * update.T @ update, rows.T).T
    assert np.allclose(found, expected, atol=1e-9) == (sign > 0)  # the wrong sign would be noticed


@given(st.integers(0, 999))
@own.examples(20)
def test_products_with_curvatures_are_those_with_their_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = [*penalties(seed).values(), DeviationsFromTrend(np.full((6, 1), 6**-0.5), 0.4)]
    u, v = rng.normal(size=(2, 3, 6))
    for penalty in kinds:
        expected = [penalty.curvature(row) @ own_v for row, own_v in zip(u, v, strict=True)]
        np.testing.assert_allclose(penalty.curvature_product(u)(v), expected, atol=1e-9)
        np.testing.assert_allclose(Penalty.curvature_product(penalty, u)(v), expected, atol=1e-9)


def test_curves_fitted_to_observed_logarithms_are_the_minimum() -> None:
    _, _, shape = blurred_line(12)
    rng = np.random.default_rng(2)
    u, weights = rng.normal(size=(2, 12)), rng.uniform(0.1, 3.0, 12)
    for kind in ("field", "trend"):
        penalty = line_penalties(shape)[kind]
        v = penalty.fitted_to(u, weights)
        np.testing.assert_allclose(penalty.gradient(v) + weights * (v - u), 0.0, atol=1e-8)
    jumps = line_penalties(shape)["jumps"]
    assert jumps.fitted_to(u, weights) is u


def test_fits_are_given_up_when_told_to() -> None:
    channel, weights, fields = field_problem(2)
    penalty, asked = Quadratic(precision(np.random.default_rng(2), 7, 0.1)), []

    def after_two(fitted: Floats) -> bool:
        asked.append(fitted.shape)
        return len(asked) == 2

    u, _ = fields.fit(penalty, np.zeros((4, 7)), after_two)
    assert asked == [weights.shape] * 2
    assert objective(channel, weights[0], penalty, u[0]) > objective(channel, weights[0], penalty, np.zeros(7))


def test_fields_leave_their_start_alone() -> None:
    _, _, fields = field_problem(1)
    start = np.zeros((4, 7))
    fields.fit(Quadratic(np.eye(7) - 1 / 7), start)
    assert not start.any()
