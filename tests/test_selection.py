"""`auto` and `ems`: penalties, fields, paths, shapes, thinning, weights, and the choice itself, written again."""

from __future__ import annotations

import json
import pickle
from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, stats

import hubbub as hb
import strategies as own
from hubbub.channels import Channel, DenseChannel
from hubbub.core.progress import Progress, finish
from hubbub.domains import Subset
from hubbub.estimators import estimate, estimate_many
from hubbub.estimators.auto import Selection, Shape, again, extreme
from hubbub.estimators.auto import candidates as recipes
from hubbub.estimators.auto import fold_scores as select
from hubbub.estimators.auto.candidate_families import recipes_for, widths
from hubbub.estimators.auto.candidate_weights import CAUTION, FLOOR, LEAST, needed, passed, spread, weights_of
from hubbub.estimators.auto.candidates import AutoCandidate, Even, Field, Sample, Updates
from hubbub.estimators.auto.folds import Thinned, thin
from hubbub.solvers.em_path import Smoothed, em_path, smoothed_by
from hubbub.solvers.penalised_likelihood import Fields
from hubbub.solvers.penalties import Exceptions, Jumps, Penalty, Quadratic

mpl.use("Agg")

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

ABC = hb.Categories(["a", "b", "c", "d", "e", "f"])
LINE = hb.Integers(0, 7)
MAP = hb.Grid(3, 2, cell=1.0)
HOLED = hb.Grid(4, 3, cells=[0, 1, 3, 4, 6, 9, 11])


# -- helpers ---------------------------------------------------------------------------------------------


def skewed(rng: np.random.Generator, values: int, patterns: int) -> DenseChannel:
    """A channel that is far from symmetric."""
    matrix = rng.gamma(0.7, size=(values, patterns)) + 0.02
    return DenseChannel(matrix / matrix.sum(axis=1, keepdims=True), np.zeros(patterns))


def sent(mechanism: hb.Mechanism, positions: Whole, seed: int = 0) -> hb.Reports:
    """What users with these values send."""
    outputs = mechanism.privatize(mechanism.domain.labels[positions], rng=np.random.default_rng(seed))
    return hb.Reports.from_outputs(mechanism, outputs)


def bump(size: int, users: int, seed: int = 0) -> Whole:
    return np.random.default_rng(seed).binomial(size - 1, 0.4, users)


def tv(one: Floats, other: Floats) -> float:
    return float(0.5 * np.abs(one - other).sum())


def softmax(u: Floats) -> Floats:
    theta: Floats = np.exp(u - u.max(axis=-1, keepdims=True))
    theta /= theta.sum(axis=-1, keepdims=True)
    return theta


def em(matrix: Floats, weights: Floats, updates: int) -> Floats:
    """Plain EM from the uniform distribution."""
    theta = np.full(len(matrix), 1.0 / len(matrix))
    used = weights > 0
    for _ in range(updates):
        theta = theta * (matrix[:, used] @ (weights[used] / (theta @ matrix[:, used]))) / weights.sum()
    return theta


def check(found: hb.Estimate, reports: hb.Reports) -> None:
    """What holds for whatever `auto` returns."""
    p = found.probabilities
    assert p.shape == (len(reports.domain),)
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    assert found.method == "auto"
    assert found.users == reports.users
    assert found.converged or "iteration limit" in found.status
    assert found.gap == pytest.approx(hb.optimality_gap(reports, p), abs=1e-9)
    assert found.settings["rng"] == 0
    assert found.settings["chosen"]
    assert json.loads(found.to_json())["settings"]["chosen"] == found.settings["chosen"]
    if "selection" in found.settings:
        check_selection(found)


def check_selection(found: hb.Estimate) -> None:
    chosen = found.settings["selection"]
    assert isinstance(chosen, Selection)
    count = len(chosen.candidates)
    assert chosen.scores.shape == chosen.spreads.shape == chosen.weights.shape == (count,)
    assert chosen.candidates[0].family == "uniform"
    assert chosen.scores[0] == 0.0
    assert chosen.weights.sum() == pytest.approx(1.0)
    assert np.isfinite(chosen.scores).all()
    assert (chosen.spreads >= 0).all()
    assert found.settings["chosen"] == chosen.chosen.words
    assert found.settings["weight"] == chosen.weights.max()
    assert found.settings["runner_up"] == chosen.runner_up.words
    assert found.settings["folds"] == chosen.parts
    assert chosen.runner_up.family != chosen.chosen.family
    assert found.iterations == chosen.chosen.updates
    assert found.status.startswith(chosen.chosen.words)
    assert len({candidate.words for candidate in chosen.candidates}) == count  # `again` finds them by their words
    handicaps = np.array([candidate.handicap for candidate in chosen.candidates])
    if chosen.weights[0] == 0.0:  # uniform is refuted
        some = np.flatnonzero(chosen.weights)  # of few values, those that were scored once more
        assert chosen.scores[some].max() >= needed(len(found.domain))
        expected = written_weights((chosen.scores - handicaps)[some], chosen.spreads[some])
        rounding = 1e-9 + 1e-15 * chosen.scores.max()  # differences of large scores
        np.testing.assert_allclose(chosen.weights[some], expected, rtol=rounding, atol=1e-300)
    else:
        assert chosen.weights.tolist() == [1.0] + [0.0] * (count - 1)


def written_weights(scores: Floats, spreads: Floats) -> Floats:
    """exp(score) / (spread + floor)^c: the floor is part of the geometric mean spread of what predicts well."""
    chances = np.exp(scores - scores.max())
    floor = FLOOR * np.prod((spreads + LEAST) ** (chances / chances.sum()))
    weights: Floats = chances / (spreads + floor) ** CAUTION
    weights /= weights.sum()
    return weights


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
    neighbours = Shape.of(hb.Grid(size // 2, 2)).neighbours
    return {
        "quadratic": Quadratic(precision(rng, size)),
        "jumps": Jumps(neighbours, size, scale, strength),
        "exceptions": Exceptions(scale, strength),
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
    line = Jumps(Shape.of(hb.Integers(0, 2)).neighbours, 3, 0.5, 2.0)
    assert line.value(u) == pytest.approx(2.0 * (np.log(1 + 4) + np.log(1 + 16)))
    around = Exceptions(0.5, 2.0)
    assert around.value(u) == pytest.approx(2.0 * sum(np.log1p(4 * d * d) for d in (-4 / 3, -1 / 3, 5 / 3)))
    assert Quadratic(np.diag([1.0, 2.0, 4.0])).value(u) == pytest.approx(1.0 + 18.0)


# -- fields ----------------------------------------------------------------------------------------------


def objective(channel: DenseChannel, weights: Floats, penalty: Penalty, u: Floats) -> float:
    return float(weights @ np.log(softmax(u) @ channel.matrix) - penalty.value(u))


def slope(channel: DenseChannel, weights: Floats, penalty: Penalty, u: Floats) -> Floats:
    theta = softmax(u)
    reached = channel.matrix @ (weights / (theta @ channel.matrix))
    result: Floats = theta * (reached - weights.sum()) - penalty.gradient(u)
    return result


def highest(channel: DenseChannel, weights: Floats, penalty: Penalty, start: Floats) -> Floats:
    """Where BFGS ends from a start."""
    ascent: Any = optimize.minimize
    found = ascent(
        lambda u: -objective(channel, weights, penalty, u),
        start,
        jac=lambda u: -slope(channel, weights, penalty, u),
        method="BFGS",
        options={"gtol": 1e-5, "maxiter": 500},
    )
    return np.asarray(found.x)


def climbed(channel: DenseChannel, weights: Floats, penalty: Penalty, start: Floats) -> float:
    return objective(channel, weights, penalty, highest(channel, weights, penalty, start))


def field_problem(seed: int, values: int = 7, patterns: int = 9) -> tuple[DenseChannel, Floats, Fields]:
    rng = np.random.default_rng(seed)
    channel = skewed(rng, values, patterns)
    truth = rng.dirichlet(np.ones(values))
    rows = np.stack([rng.multinomial(users, truth @ channel.matrix) for users in (3_000, 400, 40, 2_400)])
    weights = rows.astype(np.float64)
    return channel, weights, Fields(channel, weights, em(channel.matrix, weights[0], 40))


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
        alone = Fields(channel, row[None], em(channel.matrix, row, 40))
        assert tv(alone.fit(penalty, np.zeros((1, 7)))[1][0], theta) < 5e-3


def test_fields_whose_curvature_is_made_once_and_of_some_patterns_end_at_the_same_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from hubbub.solvers import penalised_likelihood as field

    channel, weights, exact = field_problem(6)
    penalty = Quadratic(precision(np.random.default_rng(6), 7, 1.0))
    _, expected = exact.fit(penalty, np.zeros((4, 7)))
    pilot = em(channel.matrix, weights[0], 40)
    monkeypatch.setattr(field, "MOST_WORK", 0.0)
    _, once = Fields(channel, weights, pilot).fit(penalty, np.zeros((4, 7)))
    monkeypatch.setattr(field, "MOST_PATTERNS", 7)
    monkeypatch.setattr(field, "LARGE", 2)  # and solved in threads
    _, rough = Fields(channel, weights, pilot).fit(penalty, np.zeros((4, 7)))
    for found in (once, rough):
        for row in range(4):
            assert tv(found[row], expected[row]) < 1e-2


def test_fields_leave_their_start_alone() -> None:
    _, _, fields = field_problem(1)
    start = np.zeros((4, 7))
    fields.fit(Quadratic(np.eye(7) - 1 / 7), start)
    assert not start.any()


# -- paths -----------------------------------------------------------------------------------------------


@given(st.integers(0, 9_999))
@own.examples(20)
def test_a_path_is_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    channel = skewed(rng, 5, 7)
    weights = rng.multinomial(200, np.full(7, 1 / 7), size=3).astype(np.float64)
    weights[1, :5] = 0.0
    weights[1, 5] += 1.0
    stops = [1, 2, 7, 30]
    seen = []
    for updates, thetas in em_path(channel, weights, stops):
        seen.append(updates)
        for theta, row in zip(thetas, weights, strict=True):
            np.testing.assert_allclose(theta, em(channel.matrix, row, updates), rtol=1e-9, atol=1e-15)
    assert seen == stops


def test_a_smoothed_path_is_em_behind_the_kernel() -> None:
    rng = np.random.default_rng(0)
    channel, shape = skewed(rng, 8, 9), Shape.of(LINE)
    weights = rng.multinomial(500, np.full(9, 1 / 9), size=2).astype(np.float64)
    kernel = shape.kernel(1.5)
    fits = Updates(1.5, (3, 20), "1.5 values").fits(Sample(channel, weights, shape))
    for candidate, thetas in fits:
        assert candidate.family == "EM smoothed over 1.5 values"
        for theta, row in zip(thetas, weights, strict=True):
            expected = em(kernel @ channel.matrix, row, candidate.updates) @ kernel
            np.testing.assert_allclose(theta, expected, rtol=1e-9)


def test_a_smoothed_path_on_a_lattice_is_em_behind_the_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "MOST_RICH", 5)
    rng = np.random.default_rng(0)
    channel, shape = skewed(rng, 6, 9), Shape.of(MAP)
    weights = rng.multinomial(500, np.full(9, 1 / 9), size=2).astype(np.float64)
    written = shape.smoothed(np.eye(6), 1.2)
    for candidate, thetas in Updates(1.2, (2, 11), "1.2 km").fits(Sample(channel, weights, shape)):
        for theta, row in zip(thetas, weights, strict=True):
            expected = em(written @ channel.matrix, row, candidate.updates) @ written
            np.testing.assert_allclose(theta, expected, rtol=1e-9)


def smoothed_channels() -> list[tuple[Channel, Floats]]:
    """Channels behind a smoothing, and what they are, written out."""
    rng = np.random.default_rng(1)
    line, box = Shape.of(hb.Bins([0, 1, 1.5, 4, 5, 9])), Shape.of(MAP)
    first, second = skewed(rng, 5, 8), skewed(rng, 6, 8)
    kernel, filtered = line.kernel(1.3), box.smoothed(np.eye(6), 1.3)
    assert not np.allclose(kernel, kernel.T)

    def smooth(rows: Floats) -> Floats:
        return box.smoothed(rows, 1.3)

    return [
        (smoothed_by(first, kernel), kernel @ first.matrix),
        (Smoothed(first, lambda rows: rows @ kernel, lambda rows: rows @ kernel.T), kernel @ first.matrix),
        (Smoothed(second, smooth, smooth), filtered @ second.matrix),
    ]


@pytest.mark.parametrize("which", range(3))
def test_smoothed_channels_are_their_matrices(which: int) -> None:
    channel, matrix = smoothed_channels()[which]
    rng = np.random.default_rng(2)
    theta, ratio = rng.dirichlet(np.ones(len(matrix)), size=3), rng.exponential(size=(3, 8))
    np.testing.assert_allclose(channel.forward(theta), theta @ matrix, rtol=1e-10)
    np.testing.assert_allclose(channel.backward(ratio), ratio @ matrix.T, rtol=1e-10)
    inner = np.einsum("bi,bi->b", channel.forward(theta), ratio)
    np.testing.assert_allclose(inner, np.einsum("bx,bx->b", theta, channel.backward(ratio)), rtol=1e-10)
    np.testing.assert_allclose(channel.dense(), matrix, rtol=1e-10)
    np.testing.assert_allclose(channel.squares(ratio[0]), matrix**2 @ ratio[0], rtol=1e-10)


def test_large_kernels_are_not_multiplied_out(monkeypatch: pytest.MonkeyPatch) -> None:
    from hubbub.solvers import em_path as paths

    monkeypatch.setattr(paths, "WRITTEN_UP_TO", 3)
    channel, kernel = skewed(np.random.default_rng(1), 8, 4), Shape.of(LINE).kernel(2.0)
    behind = smoothed_by(channel, kernel)
    assert isinstance(behind, Smoothed)
    np.testing.assert_allclose(behind.dense(), kernel @ channel.matrix, rtol=1e-12)
    np.testing.assert_allclose(behind.backward(np.eye(4)).T, kernel @ channel.matrix, rtol=1e-12)


@pytest.mark.parametrize("width", [0.0, 2.0])
def test_fields_start_from_em_smoothed_or_not(width: float) -> None:
    rng = np.random.default_rng(3)
    weights = rng.multinomial(500, np.full(9, 1 / 9), size=2).astype(np.float64)
    channel, shape = skewed(rng, 8, 9), Shape.of(LINE)
    kernel = shape.kernel(width) if width else np.eye(8)
    start = Sample(channel, weights, shape).start(width)
    for u, row in zip(start, weights, strict=True):
        assert u.mean() == pytest.approx(0.0, abs=1e-9)
        expected = em(kernel @ channel.matrix, row, recipes.START_UPDATES) @ kernel
        np.testing.assert_allclose(softmax(u), expected, rtol=1e-6, atol=1e-11)


@pytest.mark.parametrize("smooth", [False, True])
def test_each_field_starts_where_the_one_before_ended(smooth: bool) -> None:
    starts = []

    class Steps:
        def fit(self, penalty: Penalty, u: Floats) -> tuple[Floats, Floats]:
            starts.append(u.copy())
            return u + 1.0, softmax(u)

    sample = Sample(skewed(np.random.default_rng(0), 8, 9), np.ones((2, 9)), Shape.of(LINE))
    vars(sample)["fields"] = Steps()
    levels = [(f"number {place}", Exceptions(1.0, 1.0)) for place in range(3)]
    words = [candidate.words for candidate, _ in Field("steps", "more", levels, smooth=smooth).fits(sample)]
    assert words == ["steps (number 0)", "steps (number 1)", "steps (number 2)"]
    first = sample.start(recipes.START_WIDTH if smooth else 0.0)
    for place, start in enumerate(starts):
        np.testing.assert_allclose(start, first + place, rtol=1e-12)


# -- shapes ----------------------------------------------------------------------------------------------


def pairs_of(shape: Shape) -> set[tuple[int, int]]:
    first, second = shape.neighbours
    pairs = [tuple(sorted(pair)) for pair in zip(first.tolist(), second.tolist(), strict=True)]
    assert len(set(pairs)) == len(pairs)
    return {(one, other) for one, other in pairs}


@given(own.domains())
@own.examples(80)
def test_neighbours_are_those_with_a_common_side(domain: hb.Domain) -> None:
    shape = Shape.of(domain)
    whole = domain.whole if isinstance(domain, Subset) else domain
    kept = domain.positions if isinstance(domain, Subset) else np.arange(len(domain))
    expected: set[tuple[int, int]] = set()
    if isinstance(whole, hb.Grid) and len(domain) > 1:
        for one, a in enumerate(whole.labels[kept].tolist()):
            for other, b in enumerate(whole.labels[kept].tolist()):
                (row, column), (below, beside) = divmod(a, whole.columns), divmod(b, whole.columns)
                if one < other and abs(row - below) + abs(column - beside) == 1:
                    expected.add((one, other))
    elif isinstance(whole, hb.Integers | hb.Bins) and len(domain) > 1:
        expected = {(place, place + 1) for place in range(len(domain) - 1)}  # also over a gap
    assert pairs_of(shape) == expected


def test_lattices_are_full_even_and_in_order() -> None:
    assert Shape.of(LINE).lattice == (8,)
    assert Shape.of(MAP).lattice == (2, 3)
    assert Shape.of(hb.Grid(1, 5)).lattice == (5, 1)
    assert Shape.of(hb.Bins([0, 2, 4, 6])).lattice == (3,)
    assert Shape.of(hb.Bins([0, 2, 4, 7])).lattice is None
    assert Shape.of(HOLED).lattice is None
    assert Shape.of(ABC).lattice is None
    assert Shape.of(Subset(LINE, (2, 3, 4))).lattice == (3,)
    assert Shape.of(Subset(LINE, (2, 3, 5))).lattice is None
    assert Shape.of(Subset(LINE, (0, 2, 4))).lattice is None
    assert Shape.of(Subset(MAP, (1, 2, 4, 5))).lattice == (2, 2)
    assert Shape.of(Subset(MAP, (0, 1, 5))).lattice is None


def test_restricted_reports_have_the_shape_of_what_is_left() -> None:
    reports = sent(hb.Geometric(LINE, 0.5), bump(8, 50)).restrict([1, 2, 5, 6])
    shape = Shape.of(reports.domain)
    assert shape.places is not None
    assert shape.places.tolist() == [[1.0], [2.0], [5.0], [6.0]]
    assert pairs_of(shape) == {(0, 1), (1, 2), (2, 3)}
    assert shape.spacing == 1.0
    corner = Shape.of(sent(hb.PlanarGeometric(MAP, 1.0), bump(6, 50)).restrict([1, 2, 4]).domain)
    assert pairs_of(corner) == {(0, 1), (0, 2)}


def test_spacings_and_extents() -> None:
    assert Shape.of(hb.Bins([0, 10, 20, 30])).spacing == 10.0
    assert Shape.of(hb.Grid(4, 4, cell=(3.0, 3.0))).spacing == 3.0
    assert Shape.of(hb.Integers(0, 100)).extent == 100.0
    assert Shape.of(hb.Grid(4, 5, cell=2.0)).extent == 5.0
    assert widths(Shape.of(hb.Integers(0, 100))) == pytest.approx([1.0, 2.0, 4.0])
    assert widths(Shape.of(hb.Integers(0, 5))) == pytest.approx([1.0, 2.0])
    assert len(widths(Shape.of(hb.Integers(0, 10_000)))) == 4


@given(own.bins() | own.grids() | own.integers(), st.floats(0.3, 5.0))
@own.examples(40)
def test_kernels_keep_mass_and_fall_with_distance(domain: hb.Domain, width: float) -> None:
    shape = Shape.of(domain)
    kernel = shape.kernel(width)
    np.testing.assert_allclose(kernel.sum(axis=1), 1.0, rtol=1e-12)
    assert (kernel >= 0).all()
    unit = shape.spacing * width
    with np.errstate(divide="ignore"):
        logs = np.log(kernel / np.diag(kernel)[:, None])
    seen = kernel > 1e-200
    np.testing.assert_allclose(logs[seen], (-0.5 * (domain.distances() / unit) ** 2)[seen], rtol=1e-6, atol=1e-9)


THIRDS = np.array([[4, 2, 0], [1.5, 3, 1.5], [0, 2, 4]]) / 6


def test_averages_by_hand_on_a_line() -> None:
    by_hand = np.array(
        [
            [2 / 3, 1 / 3, 0, 0, 0],
            [1 / 4, 1 / 2, 1 / 4, 0, 0],
            [0, 1 / 4, 1 / 2, 1 / 4, 0],
            [0, 0, 1 / 4, 1 / 2, 1 / 4],
            [0, 0, 0, 1 / 3, 2 / 3],
        ]
    )
    theta = np.array([0.5, 0.1, 0.05, 0.05, 0.3])
    expected = by_hand @ theta
    for domain in (hb.Integers(3, 7), hb.Bins([0, 1, 5, 6, 8, 20]), hb.Grid(5, 1), hb.Grid(1, 5)):
        np.testing.assert_allclose(Shape.of(domain).averaged(theta), expected / expected.sum(), rtol=1e-12)


def test_averages_by_hand_on_a_map() -> None:
    theta = np.array([[0.4, 0.1, 0.05], [0.05, 0.1, 0.3]])
    halves = np.array([[2, 1], [1, 2]]) / 3
    expected = halves @ theta @ THIRDS.T
    found = Shape.of(MAP).averaged(theta.ravel())
    np.testing.assert_allclose(found, (expected / expected.sum()).ravel(), rtol=1e-12)


@given(own.domains(), st.data())
@own.examples(60)
def test_averages_are_distributions(domain: hb.Domain, data: st.DataObject) -> None:
    theta = data.draw(own.distributions(len(domain)))
    kept = theta.copy()
    shape = Shape.of(domain)
    found = shape.averaged(theta)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1.0)
    assert theta.tolist() == kept.tolist()
    even = np.full(len(domain), 1.0 / len(domain))
    np.testing.assert_allclose(shape.averaged(even), even, rtol=1e-12)
    if shape.steps is None:
        np.testing.assert_allclose(found, theta, rtol=1e-12)


@given(st.sampled_from([LINE, MAP, hb.Grid(1, 9), hb.Grid(5, 4), hb.Bins([0, 2, 4, 6])]), st.floats(0.4, 9.0))
@own.examples(25)
def test_filters_are_their_own_adjoints_and_keep_mass(domain: hb.Domain, width: float) -> None:
    shape = Shape.of(domain)
    matrix = shape.smoothed(np.eye(len(domain)), width)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-12)
    assert (matrix >= 0).all()
    assert width > 1.0 or matrix[0, 0] > matrix[0, -1]


def check_trends(domain: hb.Domain, planes: int, parabolas: int) -> None:
    shape = Shape.of(domain)
    assert shape.places is not None
    axes = [*shape.places.T]
    wanted = [np.ones(len(domain)), *axes]
    for degree, count in ((1, planes), (2, parabolas)):
        basis = shape.trends(degree)
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-10)
        assert basis.shape[1] == count
        for trend in wanted:
            np.testing.assert_allclose(basis @ (basis.T @ trend), trend, atol=1e-8)
        wanted += [one * other for one in axes for other in axes]


def test_trends_are_the_parabolas() -> None:
    check_trends(LINE, 2, 3)
    check_trends(hb.Bins([0, 1, 4, 9, 20, 21]), 2, 3)
    check_trends(hb.Grid(4, 5), 3, 6)
    check_trends(hb.Integers(0, 1), 2, 2)
    check_trends(Subset(LINE, (0, 1, 5, 7)), 2, 3)


@pytest.mark.parametrize(
    ("domain", "planes", "parabolas"),
    [(hb.Grid(1, 7), 2, 3), (hb.Grid(7, 1), 2, 3), (hb.Grid(2, 7), 3, 5), (hb.Grid(2, 2), 3, 4)],
    ids=["one column", "one row", "two columns", "four cells"],
)
def test_trends_of_narrow_maps_are_the_parabolas(domain: hb.Domain, planes: int, parabolas: int) -> None:
    check_trends(domain, planes, parabolas)


def test_a_column_of_cells_is_a_line() -> None:
    """k-RR knows no distances: only the smoothing does."""
    counts = np.bincount(bump(12, 900), minlength=12)
    line, column = (
        hb.estimate(hb.Reports.from_counts(hb.RandomizedResponse(domain, 1.5), counts)).settings["selection"]
        for domain in (hb.Integers(0, 11), hb.Grid(1, 12))
    )
    np.testing.assert_allclose(column.scores, line.scores, atol=1e-3)


def test_smooth_fields_cost_nothing_for_parabolas_and_much_for_noise() -> None:
    shape = Shape.of(hb.Integers(0, 19))
    assert shape.places is not None
    place = shape.places[:, 0]
    noise = np.random.default_rng(0).normal(size=20)
    smooth = [recipe for recipe in recipes_for(shape, rich=True, last=10) if isinstance(recipe, Field)]
    curves = [recipe for recipe in smooth if recipe.name.startswith("a smooth curve")]
    assert curves
    for recipe in curves:
        costs = [penalty.value(0.3 * place - 0.05 * place**2) for _, penalty in recipe.penalties]
        assert np.abs(costs).max() < 1e-4
        rough = [float(penalty.value(noise)) for _, penalty in recipe.penalties]
        assert min(rough) > 1.0
        assert rough == sorted(rough, reverse=True)  # from stiff to supple


# -- which candidates there are --------------------------------------------------------------------------


def test_categories_have_no_neighbours_to_smooth_over() -> None:
    names = {
        recipe.name if isinstance(recipe, Field) else type(recipe).__name__
        for recipe in recipes_for(Shape.of(ABC), rich=True, last=50)
    }
    assert names == {"Even", "Updates", "independent values", "pseudo-counts", "values alike but for exceptions"}


def test_candidates_of_lines_and_of_large_domains() -> None:
    shape = Shape.of(hb.Integers(0, 30))
    rich = recipes_for(shape, rich=True, last=50)
    assert isinstance(rich[0], Even)
    families = {recipe.family for recipe in rich if isinstance(recipe, Updates)}
    assert families == {"EM", "EM smoothed over 1 value", "EM smoothed over 2 values"}
    assert all(
        recipe.stops[0] == 1 and recipe.stops[-1] == 50 and list(recipe.stops) == sorted(set(recipe.stops))
        for recipe in rich
        if isinstance(recipe, Updates)
    )
    named = {recipe.name.split(" of length")[0] for recipe in rich if isinstance(recipe, Field)}
    assert named == {
        "independent values",
        "an exponential slope",
        "a bell",
        "a rough curve",
        "a smooth curve",
        "values alike but for exceptions",
        "flat pieces with jumps",
    }
    poor = recipes_for(shape, rich=False, last=50)
    assert not any(isinstance(recipe, Field) for recipe in poor)
    smoothed = [recipe for recipe in poor if isinstance(recipe, Updates) and recipe.width]
    assert smoothed
    assert len(poor) == 2 + len(smoothed)
    assert len(recipes_for(Shape.of(HOLED), rich=False, last=50)) == 2  # holes: no filter
    sample = Sample(skewed(np.random.default_rng(0), 31, 9), np.ones((2, 9)), shape)
    for recipe in rich:
        assert recipe.count == len(list(recipe.fits(sample)))


def test_lengths_are_in_the_unit_of_the_map() -> None:
    wide = hb.Grid(20, 20, cell=5.0, unit="m")
    recipe = recipes_for(Shape.of(wide), rich=False, last=5, unit=wide.unit)[2]
    assert isinstance(recipe, Updates)
    assert recipe.family == "EM smoothed over 5 m"


def test_lengths_on_bins_are_counted_in_values() -> None:
    tens = hb.Bins(np.arange(0, 101, 10))
    recipe = recipes_for(Shape.of(tens), rich=False, last=5, unit=tens.unit)[2]
    assert isinstance(recipe, Updates)
    assert recipe.family == "EM smoothed over 1 value"


# -- thinning --------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.integers(2, 5), st.integers(0, 99))
@own.examples(60)
def test_parts_add_up_and_are_equally_large(counts: list[int], parts: int, seed: int) -> None:
    weights = np.array(counts, dtype=np.float64)
    weights[0] += parts
    dealt = thin(weights, parts, np.random.default_rng(seed))
    assert dealt.kept_back.shape == (parts, weights.size)
    assert dealt.kept_back.sum(axis=0).tolist() == weights.tolist()
    assert (dealt.kept_back >= 0).all()
    assert (dealt.kept_back == np.rint(dealt.kept_back)).all()
    assert np.ptp(dealt.kept_back.sum(axis=1)) <= 1
    assert dealt.rows.shape == (parts + 1, weights.size)
    assert dealt.rows[0].tolist() == weights.tolist()
    assert (dealt.rows[1:] + dealt.kept_back == weights).all()
    again_ = thin(weights, parts, np.random.default_rng(seed))
    assert (again_.kept_back == dealt.kept_back).all()


@pytest.mark.parametrize("users", [100_000, 100_001, 10**9, 9 * 10**15])
def test_parts_of_many_users_add_up(users: int) -> None:
    counts = np.array([users // 2, 0, 1, users - users // 2 - 1 - 77, 77], dtype=np.float64)
    dealt = thin(counts, 5, np.random.default_rng(0))
    assert (dealt.kept_back.sum(axis=0) == counts).all()
    assert (dealt.rows[1:] + dealt.kept_back == counts).all()
    assert (dealt.rows >= 0).all()
    sizes = dealt.kept_back.sum(axis=1)
    assert np.abs(sizes - users / 5).max() < 6 * np.sqrt(users)


@pytest.mark.parametrize(("users", "freedom"), [(900, 4 * 8), (200_000, 5 * 8)])
def test_users_are_dealt_evenly(users: int, freedom: int) -> None:
    """Pearson's test of even dealing, over 200 seeds together, passes at a level of 1e-4 in either tail."""
    counts = np.full(5, users // 5)
    expected, total = counts / 9, 0.0
    for seed in range(200):
        dealt = thin(counts.astype(np.float64), 9, np.random.default_rng(seed)).kept_back
        total += float(((dealt - expected) ** 2 / expected).sum())
    if users <= 100_000:
        total *= (users - 1) / users  # both margins are fixed
    assert 1e-4 < stats.chi2.sf(total, 200 * freedom) < 1 - 1e-4


# -- weights ---------------------------------------------------------------------------------------------


@st.composite
def scored(draw: st.DrawFn) -> tuple[Floats, Floats]:
    size = draw(st.integers(2, 8))
    scores = draw(st.lists(st.floats(-40, 40), min_size=size, max_size=size))
    spreads = draw(st.lists(st.floats(0, 0.5), min_size=size, max_size=size))
    return np.array(scores), np.array(spreads)


@given(scored(), st.floats(-1e3, 1e3))
@own.examples(60)
def test_weights_are_their_formula(drawn: tuple[Floats, Floats], shift: float) -> None:
    scores, spreads = drawn
    found = weights_of(scores, spreads)
    assert found.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(found, written_weights(scores, spreads), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(weights_of(scores + shift, spreads), found, rtol=1e-9, atol=1e-12)


def test_what_spreads_more_counts_less() -> None:
    twice = weights_of(np.zeros(3), np.array([0.1, 0.1, 0.2]))
    assert twice[0] == twice[1]
    assert 5.0 < twice[0] / twice[2] < 2.0**CAUTION  # all gain the floor
    won = weights_of(np.array([0.0, 0.0, CAUTION * np.log(2)]), np.array([0.1, 0.1, 0.2]))
    assert won[2] > won[0]
    close = weights_of(np.array([0.0, 0.0, 1.5]), np.array([0.1, 0.1, 0.2]))
    assert close[2] < close[0]
    still = weights_of(np.array([0.0, -30.0]), np.zeros(2))
    assert still[0] == pytest.approx(1.0)


def test_spreads_are_the_jackknife() -> None:
    parts = np.random.default_rng(0).dirichlet(np.ones(6), size=5)
    total = 0.0
    for value in range(6):
        shares = parts[:, value].tolist()
        mean = sum(shares) / 5
        total += (4 / 5 * sum((share - mean) ** 2 for share in shares)) ** 0.5
    assert spread(parts) == pytest.approx(total * (2 / np.pi) ** 0.5 / 2)
    assert spread(np.tile(parts[0], (5, 1))) == pytest.approx(0.0, abs=1e-12)


def test_spreads_tell_how_far_shares_are_from_the_truth() -> None:
    """Where the estimate is a share of users, its mean error is known; 5 parts tell it with a bias of 6%."""
    rng = np.random.default_rng(0)
    truth = np.array([0.4, 0.3, 0.2, 0.1])
    told, errors = [], []
    for _ in range(400):
        counts = rng.multinomial(1_000, truth).astype(np.float64)
        rows = thin(counts, 5, rng).rows
        told.append(spread(rows[1:] / rows[1:].sum(axis=1, keepdims=True)))
        errors.append(tv(counts / 1_000, truth))
    assert np.mean(told) / np.mean(errors) == pytest.approx(0.94, abs=0.06)


def test_paths_are_left_when_they_cannot_count() -> None:
    assert not passed([5.0], 500.0)
    assert not passed([5.0, 6.0], 500.0)  # far behind, but on its way
    assert passed([6.0, 5.0], 500.0)
    assert not passed([6.0, 5.0], 24.0)
    assert not passed([9.0, 2.9, 2.8, 2.7, 2.6, 2.5], 9.0)  # not yet six since the best
    assert passed([9.0, 2.9, 2.8, 2.7, 2.6, 2.5, 2.4], 9.0)
    assert not passed([9.0, 8.9, 8.8, 8.7, 8.6, 8.5, 3.1], 9.0)  # but little lost
    assert not passed([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 8.0)


# -- the choice, written again ---------------------------------------------------------------------------


def categorical() -> hb.Reports:
    rng = np.random.default_rng(5)
    truth = np.array([0.55, 0.3, 0.05, 0.05, 0.03, 0.02])
    return sent(hb.RandomizedResponse(ABC, 1.0), rng.choice(6, 1_500, p=truth))


def lined() -> hb.Reports:
    return sent(hb.TruncatedGeometric(hb.Integers(0, 19), 0.4), bump(20, 2_000))


def mapped() -> hb.Reports:
    rng = np.random.default_rng(2)
    return sent(hb.PlanarGeometric(hb.Grid(4, 3), 1.0), rng.choice(12, 2_000, p=np.arange(1, 13) / 78))


STUDIES = {"categories": categorical, "line": lined, "map": mapped}


@cache
def chosen_of(name: str) -> tuple[hb.Reports, hb.Estimate]:
    reports = STUDIES[name]()
    return reports, hb.estimate(reports)


def two_deals(reports: hb.Reports) -> tuple[Thinned, Thinned]:
    """What counts is scored in both, the rest in the first."""
    rng = np.random.default_rng(0)
    return thin(reports.weights, 5, rng), thin(reports.weights, 5, rng)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "line" else pytest.mark.slow) for name in STUDIES]
)
def test_scores_spreads_and_the_average_are_what_they_say(name: str) -> None:
    reports, found = chosen_of(name)
    check(found, reports)
    selection = found.settings["selection"]
    matrix = reports.channel.dense()
    dealt, second = two_deals(reports)
    even = float(reports.weights @ np.log(np.full(len(matrix), 1 / len(matrix)) @ matrix))
    seen = 0
    for place, candidate in enumerate(selection.candidates):
        if candidate.family != "EM":
            continue
        scores, spreads = [], []
        for held in (dealt.kept_back, second.kept_back)[: 2 if selection.weights[place] else 1]:
            parts = np.stack([em(matrix, reports.weights - part, candidate.updates) for part in held])
            score = sum(float(part @ np.log(theta @ matrix)) for part, theta in zip(held, parts, strict=True))
            scores.append(score - even)
            spreads.append(spread(parts))
        assert selection.scores[place] == pytest.approx(np.mean(scores), abs=1e-6)
        assert selection.spreads[place] == pytest.approx(np.mean(spreads), rel=1e-6)
        seen += 1
    assert seen > 5
    # The same candidates with the same weights, from all users.
    sample = Sample(reports.channel, dealt.rows, Shape.of(reports.domain))
    thetas = {
        candidate.words: thetas[0]
        for recipe in recipes_for(sample.shape, rich=True, last=selection.last, unit=reports.domain.unit)
        for candidate, thetas in recipe.fits(sample)
    }
    average = sum(
        weight * thetas[candidate.words]
        for weight, candidate in zip(selection.weights, selection.candidates, strict=True)
    )
    np.testing.assert_allclose(found.probabilities, average, atol=2e-4)


@pytest.mark.parametrize("name", STUDIES)
def test_fields_are_scored_on_what_they_have_not_seen(name: str) -> None:
    reports, found = chosen_of(name)
    selection, matrix = found.settings["selection"], reports.channel.dense()
    places = [place for place, one in enumerate(selection.candidates) if one.family == "independent values"]
    even = float(reports.weights @ np.log(np.full(len(matrix), 1 / len(matrix)) @ matrix))
    channel = DenseChannel(matrix, reports.channel.log_scale)
    for place, deviation in zip(places, (1.0, 2.0), strict=False):
        size = len(matrix)
        penalty = Quadratic((np.eye(size) - 1 / size) / deviation**2)
        deals = two_deals(reports)[: 2 if selection.weights[place] else 1]
        score = -even
        for part in np.concatenate([deal.kept_back for deal in deals]):
            u = highest(channel, reports.weights - part, penalty, np.zeros(size))
            score += float(part @ np.log(softmax(u) @ matrix)) / len(deals)
        assert selection.scores[place] == pytest.approx(score, abs=0.3)


@pytest.mark.parametrize("name", STUDIES)
def test_again_on_the_same_users_is_the_estimate_up_to_what_hardly_counts(name: str) -> None:
    reports, found = chosen_of(name)
    selection = found.settings["selection"]
    dropped = 1.0 - selection.weights[selection.counted].sum()
    rows = again(reports.channel, reports.weights[None], reports.domain, selection)
    assert tv(rows[0], found.probabilities) <= dropped + 2e-3
    assert tv(estimate_many(reports, reports.weights[None], found)[0], rows[0]) == 0.0
    # Several weightings at once are each on its own.
    rng = np.random.default_rng(1)
    drawn = rng.multinomial(reports.users, reports.weights / reports.users, size=3).astype(np.float64)
    many = estimate_many(reports, np.concatenate([reports.weights[None], drawn]), found)
    np.testing.assert_allclose(many.sum(axis=1), 1.0, rtol=1e-12)
    assert (many >= 0).all()
    assert tv(many[0], rows[0]) < 2e-3
    for row, theta in zip(drawn, many[1:], strict=True):
        assert tv(estimate_many(reports, row[None], found)[0], theta) < 5e-3
    assert max(tv(theta, many[0]) for theta in many[1:]) > 0.003


def test_again_needs_no_more_updates_than_what_counts() -> None:
    reports, found = chosen_of("categories")
    selection = found.settings["selection"]
    only = np.array([float(one.words.startswith("EM stopped after 3 ")) for one in selection.candidates])
    assert only.sum() == 1.0
    three = Selection(
        selection.candidates, selection.paths, selection.scores, selection.spreads, only, 5, True, selection.last
    )
    rows = again(reports.channel, reports.weights[None], reports.domain, three)
    np.testing.assert_allclose(rows[0], em(reports.channel.dense(), reports.weights, 3), rtol=1e-9)


def test_again_where_nothing_counts_much() -> None:
    reports, found = chosen_of("line")
    selection = found.settings["selection"]
    flat = np.full(len(selection.candidates), 1.0 / (len(selection.candidates) - 1))
    flat[0] = 0.0  # the uniform distribution is no part of an average
    assert flat[1] < 0.01
    level = Selection(
        selection.candidates, selection.paths, selection.scores, selection.spreads, flat, 5, True, selection.last
    )
    rows = again(reports.channel, reports.weights[None], reports.domain, level)
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    assert level.explain().startswith("EM stopped after 1 update")


def test_estimates_of_extremes_are_made_again() -> None:
    few = sent(hb.RandomizedResponse(ABC, 2.0), np.array([1, 1, 3]))
    clear = sent(hb.RandomizedResponse(ABC, 12.0), np.arange(60) % 4)
    blind = sent(hb.RandomizedResponse(ABC, 1e-5), np.arange(60) % 4)
    for reports in (few, clear, blind):
        found = hb.estimate(reports)
        assert "selection" not in found.settings
        rows = estimate_many(reports, np.tile(reports.weights, (2, 1)), found)
        np.testing.assert_allclose(rows, np.tile(found.probabilities, (2, 1)), atol=1e-9)


def test_the_bootstrap_draws_what_was_chosen() -> None:
    reports, found = chosen_of("categories")
    drawn = hb.interval(reports, "a", method="bootstrap", runs=40, rng=0)
    assert drawn.low < found.probabilities[0] < drawn.high
    assert drawn.high - drawn.low < 0.3


# -- determinism and invariance --------------------------------------------------------------------------


def test_the_same_reports_give_the_same_answer() -> None:
    reports, found = chosen_of("categories")
    sources: list[Any] = [None, 0, np.int64(0), np.random.default_rng(0)]
    for rng in sources:
        other = hb.estimate(STUDIES["categories"](), rng=rng)
        assert other.probabilities.tolist() == found.probabilities.tolist()
        assert other.settings["rng"] == ("a generator" if isinstance(rng, np.random.Generator) else 0)
    seventh = hb.estimate(reports, rng=7)
    assert seventh.settings["rng"] == 7
    assert seventh.settings["selection"].scores.tolist() != found.settings["selection"].scores.tolist()
    assert hb.estimate(reports, rng=7).probabilities.tolist() == seventh.probabilities.tolist()
    assert tv(seventh.probabilities, found.probabilities) < 0.06
    with pytest.raises(ValueError, match="read-only"):
        found.settings["selection"].weights[0] = 1.0


def test_equal_reports_in_whatever_order_give_the_same_answer() -> None:
    mechanism = hb.RandomizedResponse(ABC, 1.0)
    outputs = mechanism.privatize(ABC.labels[bump(6, 800)], rng=np.random.default_rng(3))
    found = hb.estimate(hb.Reports.from_outputs(mechanism, outputs))
    shuffled = np.random.default_rng(4).permutation(outputs)
    halves = hb.Reports.from_outputs(mechanism, shuffled[:300]) + hb.Reports.from_outputs(mechanism, shuffled[300:])
    names, counts = np.unique(outputs, return_counts=True)
    counted = hb.Reports.from_counts(mechanism, dict(zip(names.tolist(), counts.tolist(), strict=True)))
    alone = hb.Reports.from_users([[(mechanism, output)] for output in shuffled.tolist()])
    for reports in (halves, counted, alone):
        assert hb.estimate(reports).probabilities.tolist() == found.probabilities.tolist()


def skewed_counts(order: list[int], columns: list[int]) -> hb.Reports:
    """One study, with values in the given order and outputs in another."""
    rng = np.random.default_rng(8)
    table = skewed(rng, 6, 6).matrix
    counts = rng.multinomial(3_000, np.array([0.5, 0.3, 0.1, 0.05, 0.05, 0.0]) @ table)
    mechanism = hb.Matrix(
        hb.Categories([f"value {place}" for place in order]),
        [f"output {place}" for place in columns],
        table[np.ix_(order, columns)],
    )
    return hb.Reports.from_counts(mechanism, counts[columns])


def test_relabelling_categories_permutes_the_answer() -> None:
    """Users are dealt by the order of the outputs: where only values change places, nothing else changes."""
    as_they_are, order = [0, 1, 2, 3, 4, 5], [3, 0, 5, 1, 4, 2]
    found = hb.estimate(skewed_counts(as_they_are, as_they_are))
    moved = hb.estimate(skewed_counts(order, as_they_are))
    assert "selection" in found.settings
    np.testing.assert_allclose(moved.probabilities, found.probabilities[order], atol=1e-6)
    np.testing.assert_allclose(moved.settings["selection"].scores, found.settings["selection"].scores, atol=1e-5)
    # Where outputs change places others are kept back; what was chosen gives the same as before.
    reports = skewed_counts(order, [2, 4, 0, 1, 5, 3])
    same = estimate_many(reports, reports.weights[None], found)[0]
    before = skewed_counts(as_they_are, as_they_are)
    np.testing.assert_allclose(same, estimate_many(before, before.weights[None], found)[0][order], atol=1e-6)
    assert tv(hb.estimate(reports).probabilities, found.probabilities[order]) < 0.05


def test_turning_a_line_round_turns_the_answer_round() -> None:
    rng = np.random.default_rng(8)
    table = skewed(rng, 8, 8).matrix
    counts = rng.multinomial(3_000, np.array([0.3, 0.3, 0.2, 0.1, 0.1, 0, 0, 0]) @ table)
    names = [f"output {place}" for place in range(8)]
    one = hb.estimate(hb.Reports.from_counts(hb.Matrix(LINE, names, table), counts))
    other = hb.estimate(hb.Reports.from_counts(hb.Matrix(LINE, names, table[::-1]), counts))
    np.testing.assert_allclose(other.probabilities, one.probabilities[::-1], atol=1e-5)


def test_the_unit_of_length_does_not_matter() -> None:
    answers = []
    for side in (0.01, 1.0, 1_000.0):
        grid = hb.Grid(4, 3, cell=side, cells=[0, 1, 2, 4, 5, 6, 9, 11])
        reports = sent(hb.RandomizedResponse(grid, 2.0), bump(8, 800))
        answers.append(hb.estimate(reports).probabilities)
    np.testing.assert_allclose(answers[1], answers[0], atol=1e-6)
    np.testing.assert_allclose(answers[2], answers[0], atol=1e-6)


def test_the_unit_of_length_does_not_matter_between_islands() -> None:
    spacings = [Shape.of(hb.Grid(9, 9, cell=side, cells=[0, 4, 40, 76])).spacing / side for side in (0.01, 1.0, 1_000)]
    assert spacings == pytest.approx([spacings[1]] * 3)


# -- extremes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("users", [240, 24_000, 24 * 10**8])
@pytest.mark.parametrize("domain", [ABC, LINE, MAP, hb.Integers(0, 1)], ids=["abc", "line", "map", "two"])
def test_an_even_crowd_gives_an_even_answer(users: int, domain: hb.Domain) -> None:
    mechanism = hb.RandomizedResponse(domain, 1.5)
    even = np.full(len(domain), users // len(domain))
    reports = hb.Reports.from_counts(mechanism, even)
    found = hb.estimate(reports)
    check(found, reports)
    assert np.ptp(found.probabilities) == 0.0
    assert found.status.startswith("the uniform distribution: no candidate")
    assert found.settings["chosen"] == "the uniform distribution"
    assert found.settings["weight"] == 1.0


def test_crowds_that_are_even_but_for_chance_are_seldom_taken_for_others() -> None:
    rng, told = np.random.default_rng(0), 0
    mechanism = hb.RandomizedResponse(ABC, 1.0)
    for _ in range(25):
        found = hb.estimate(hb.Reports.from_counts(mechanism, rng.multinomial(2_000, np.full(6, 1 / 6))))
        told += found.settings["chosen"] != "the uniform distribution"
        assert np.ptp(found.probabilities) < 0.2
    assert told <= 2


ONE_POINT = {
    "k-RR": hb.RandomizedResponse(ABC, 1.0),
    "unary": hb.OptimizedUnary(ABC, 1.0),
    "geometric": hb.Geometric(hb.Integers(0, 19), 0.5),
    "map": hb.PlanarGeometric(hb.Grid(4, 4), 1.0),
}


@pytest.mark.parametrize("name", ONE_POINT)
def test_a_crowd_of_one_value_is_found(name: str) -> None:
    mechanism = ONE_POINT[name]
    place = len(mechanism.domain) // 2
    reports = sent(mechanism, np.full(4_000, place))
    found = hb.estimate(reports)
    check(found, reports)
    assert found.probabilities[place] > 0.95


@pytest.mark.parametrize("users", [4, 50, 3_000])
def test_where_reports_tell_the_values_the_answer_is_the_maximum(users: int) -> None:
    for mechanism in (
        hb.RandomizedResponse(ABC, 9.0),
        hb.Geometric(LINE, 7.0),
        hb.Cloaking(MAP, ["a", "b", "c", "d", "e", "f"]),
    ):
        reports = sent(mechanism, bump(len(mechanism.domain), users))
        assert extreme(reports.channel, reports.weights) == "plain"
        found, best = hb.estimate(reports), hb.estimate(reports, "mle")
        check(found, reports)
        np.testing.assert_allclose(found.probabilities, best.probabilities, atol=1e-12)
        assert "maximum likelihood" in found.status
        assert found.settings["chosen"] == "maximum likelihood"


def test_many_reports_of_each_user_tell_the_values() -> None:
    mechanism, rng = hb.RandomizedResponse(ABC, 1.0), np.random.default_rng(0)
    users = [
        [(mechanism, output) for output in mechanism.privatize([value] * 150, rng=rng)] for value in ["a", "b", "b"] * 5
    ]
    reports = hb.Reports.from_users(users)
    found = hb.estimate(reports)
    check(found, reports)
    np.testing.assert_allclose(found.probabilities, [1 / 3, 2 / 3, 0, 0, 0, 0], atol=1e-6)
    assert "maximum likelihood" in found.status


def test_with_enough_users_and_little_noise_the_answer_is_close_to_the_maximum() -> None:
    reports = sent(hb.RandomizedResponse(ABC, 4.0), np.random.default_rng(0).choice(6, 200_000, p=np.arange(6) / 15))
    assert extreme(reports.channel, reports.weights) is None
    assert tv(hb.estimate(reports).probabilities, hb.estimate(reports, "mle").probabilities) < 1e-3


@pytest.mark.parametrize(
    "mechanism",
    [hb.RandomizedResponse(ABC, 1e-4), hb.Geometric(LINE, 1e-5), hb.PlanarGeometric(MAP, 0.01), hb.Rappor(ABC, 1e-3)],
    ids=["k-RR", "geometric", "planar", "rappor"],
)
def test_where_nothing_can_be_learned_the_status_says_so(mechanism: hb.Mechanism) -> None:
    reports = sent(mechanism, np.zeros(500, dtype=np.int64))
    found = hb.estimate(reports)
    check(found, reports)
    assert extreme(reports.channel, reports.weights) == "blind"
    assert found.status.startswith("nothing can be learned")
    assert np.ptp(found.probabilities) == 0.0
    assert found.settings["chosen"] == "uniform"


def test_reports_that_could_show_something_are_not_called_blind() -> None:
    """What a crowd of one value could tell, at most, must reach what the best candidate must win by."""
    chance = np.exp(0.5) / (np.exp(0.5) + 5)
    other = (1 - chance) / 5
    per_user = ((6 * chance - 1) ** 2 + 5 * (6 * other - 1) ** 2) / 6
    for factor, kind in ((0.8, "blind"), (1.25, None)):
        each = round(factor * needed(6) / np.log1p(per_user) / 6)
        reports = hb.Reports.from_counts(hb.RandomizedResponse(ABC, 0.5), np.full(6, each))
        assert extreme(reports.channel, reports.weights) == kind


@pytest.mark.parametrize(
    "mechanism",
    [hb.Geometric(LINE, 0.5), hb.Geometric(LINE, 4.0), hb.RandomizedResponse(hb.Categories(range(1_000)), 8.0)],
    ids=["blurred", "nearly clear", "k-RR with many values"],
)
def test_one_user_says_nothing_of_a_crowd(mechanism: hb.Mechanism) -> None:
    reports = sent(mechanism, bump(8, 1))
    found = hb.estimate(reports)
    check(found, reports)
    assert found.status.startswith("nothing can be learned")


@pytest.mark.parametrize("users", [2, 3, 4, 5, 10])
@pytest.mark.parametrize(
    "mechanism",
    [hb.Geometric(hb.Integers(0, 29), 0.8), hb.RandomizedResponse(ABC, 3.0), hb.SubsetSelection(ABC, 3.0)],
    ids=["geometric", "k-RR", "subset"],
)
def test_a_handful_of_users(users: int, mechanism: hb.Mechanism) -> None:
    reports = sent(mechanism, bump(len(mechanism.domain), users))
    found = hb.estimate(reports)
    check(found, reports)
    assert found.settings.get("folds", min(users, 5)) == min(users, 5)


@pytest.mark.parametrize("domain", [ABC, LINE], ids=["categories", "line"])
def test_a_billion_users(domain: hb.Domain) -> None:
    mechanism = hb.RandomizedResponse(domain, 1.0)
    truth = np.arange(1.0, len(domain) + 1)
    truth /= truth.sum()
    counts = np.random.default_rng(0).multinomial(10**9, truth @ mechanism.matrix())
    reports = hb.Reports.from_counts(mechanism, counts)
    found = hb.estimate(reports)
    check(found, reports)
    assert tv(found.probabilities, truth) < 3e-4


# -- every mechanism -------------------------------------------------------------------------------------

SKEW = np.array([[0.6, 0.3, 0.1], [0.0, 0.8, 0.2], [0.3, 0.3, 0.4], [0.1, 0.1, 0.8]])
EVERY: list[hb.Mechanism] = [
    hb.RandomizedResponse(ABC, 1.0),
    hb.Rappor(ABC, 2.0),
    hb.OptimizedUnary(ABC, 2.0),
    hb.LongitudinalRappor(ABC, 3.0, 2.0),
    hb.LocalHashing(ABC, 1.5),
    hb.SubsetSelection(ABC, 1.0),
    hb.Geometric(LINE, 0.5),
    hb.TruncatedGeometric(LINE, 0.5),
    hb.Laplace(hb.Bins([0, 1, 1.1, 5, 30]), 0.5),
    hb.Exponential(HOLED, 1.0),
    hb.PlanarGeometric(MAP, 1.0),
    hb.PlanarGeometric(HOLED, 1.0, truncated=False),
    hb.PlanarLaplace(MAP, 1.0),
    hb.Cloaking(LINE, ["n", "n", "s", "s", "s", "e", "e", "e"]),
    hb.Matrix(hb.Categories(["a", "b", "c", "d"]), ["x", "y", "z"], SKEW),
]


def test_every_mechanism_is_tried() -> None:
    concrete = {
        kind
        for kind in (getattr(hb, name) for name in hb.__all__)
        if isinstance(kind, type) and issubclass(kind, hb.Mechanism) and kind is not hb.Mechanism
    }
    assert {type(mechanism) for mechanism in EVERY} == concrete


@pytest.mark.parametrize("mechanism", EVERY, ids=lambda mechanism: type(mechanism).__name__)
def test_every_mechanism(mechanism: hb.Mechanism) -> None:
    reports = sent(mechanism, bump(len(mechanism.domain), 1_500))
    found = hb.estimate(reports)
    check(found, reports)
    assert found.log_likelihood > hb.log_likelihood(reports, np.full(len(reports.domain), 1 / len(reports.domain)))


def test_mixed_mechanisms_several_reports_and_sums_of_bits() -> None:
    rng = np.random.default_rng(0)
    geometric, unary, answer = hb.Geometric(LINE, 0.5), hb.Rappor(LINE, 1.0), hb.RandomizedResponse(LINE, 1.0)
    truth = bump(8, 600)
    two = hb.Reports.from_users(
        [
            [(geometric, geometric.privatize([value], rng=rng)[0]), (answer, answer.privatize([value], rng=rng)[0])]
            for value in truth.tolist()
        ]
    )
    ones = np.array([np.sum(truth == value) for value in range(8)]) * 0.25 + 200
    bits = hb.Reports.from_bit_counts(unary, ones.astype(int), 600)
    for reports in (two, bits, two + bits + sent(geometric, truth, 1) + sent(unary, truth, 2)):
        found = hb.estimate(reports)
        check(found, reports)
        assert ("approximate" in found.status) == reports.approximate
    expected = np.bincount(truth, minlength=8) / 600
    assert tv(found.probabilities, expected) < 0.1


def test_restricted_reports() -> None:
    whole = sent(hb.Geometric(hb.Integers(0, 29), 0.5), 10 + bump(8, 1_500))
    for kept in (range(10, 18), [10, 11, 13, 16], [3, 25], [12]):
        reports = whole.restrict(list(kept))
        check(hb.estimate(reports), reports)
    islands = sent(hb.PlanarGeometric(hb.Grid(6, 6), 1.0), bump(36, 1_500)).restrict([0, 5, 14, 15, 30, 35])
    check(hb.estimate(islands), islands)


# -- unusual inputs --------------------------------------------------------------------------------------


@cache
def unusual() -> dict[str, hb.Reports]:
    rng = np.random.default_rng(1)
    blocks = hb.Matrix(
        hb.Integers(0, 3),
        ["a", "b", "c", "d"],
        [[0.5, 0.5, 0, 0], [0.3, 0.7, 0, 0], [0, 0, 0.5, 0.5], [0, 0, 0.2, 0.8]],
    )
    cyclic = hb.Matrix(LINE, list("abcdefgh"), 0.6 * np.eye(8) + 0.4 * np.roll(np.eye(8), 1, axis=1))
    hashed = hb.LocalHashing(hb.Categories(list(range(12))), 1.0)
    return {
        "two values": hb.Reports.from_counts(hb.RandomizedResponse(hb.Categories(["y", "n"]), 1.0), [600, 400]),
        "two places": sent(hb.Geometric(hb.Integers(0, 1), 0.7), np.repeat([0, 1], [400, 100])),
        "values without support": hb.Reports.from_counts(blocks, [300, 200, 0, 0]),
        "a value that one user supports": hb.Reports.from_counts(blocks, [300, 200, 1, 0]),
        "impossible outputs": hb.Reports.from_counts(cyclic, [30, 20, 3, 1, 0, 0, 2, 9]),
        "patterns of weight 0": hb.Reports.from_bit_counts(hb.Rappor(ABC, 1.0), [0, 0, 100, 1_000, 0, 3], 1_000),
        "unequal bins": sent(hb.Laplace(hb.Bins([0, 1e-3, 1e-2, 1, 100, 1e4]), 0.5), bump(5, 900)),
        "a bin without end": sent(hb.RandomizedResponse(hb.Bins([0, 1, 2, 3, 1e9]), 2.0), bump(4, 900)),
        "one column": sent(hb.PlanarGeometric(hb.Grid(1, 12), 0.7), bump(12, 900)),
        "one row": sent(hb.PlanarLaplace(hb.Grid(12, 1, cell=2.0), 0.7), bump(12, 900)),
        "islands": sent(hb.Exponential(hb.Grid(9, 9, cells=[0, 2, 4, 18, 20, 80]), 1.0), bump(6, 900)),
        "two islands": sent(hb.Exponential(hb.Grid(9, 9, cells=[0, 1, 9, 10, 70, 71, 79]), 1.0), bump(7, 900)),
        "one pattern": hb.Reports.from_outputs(hb.Geometric(hb.Integers(0, 9), 0.3), [7] * 500),
        "far outputs": hb.Reports.from_outputs(hb.Geometric(LINE, 0.5), [3] * 50 + [10**6] * 20 + [-(10**6)] * 3),
        "only far outputs": hb.Reports.from_outputs(hb.Geometric(LINE, 0.5), [10**6] * 20 + [10**5] * 30),
        "one region": sent(hb.Cloaking(LINE, ["all"] * 8), bump(8, 100)),
        "hashing": hb.Reports.from_outputs(hashed, hashed.privatize(rng.integers(0, 4, 3_000), rng=rng)),
        "the most users": hb.Reports.from_counts(hb.RandomizedResponse(ABC, 1.0), [2 * 10**15] + [10**15] * 5),
    }


@cache
def unusual_answer(name: str) -> hb.Estimate:
    return hb.estimate(unusual()[name])


@pytest.mark.parametrize("name", unusual())
def test_unusual_inputs(name: str) -> None:
    """Without a warning, too: these are errors in this suite."""
    check(unusual_answer(name), unusual()[name])


def test_values_without_support_get_nothing() -> None:
    found = unusual_answer("values without support")
    assert found.probabilities[2:].sum() < 1e-3
    far = unusual_answer("only far outputs")
    assert far.probabilities[-1] > 0.9
    assert unusual_answer("one region").status.startswith("nothing can be learned")
    one = unusual_answer("one pattern")
    assert one.probabilities[7] > 0.95


# -- accuracy --------------------------------------------------------------------------------------------


def flat_with_peaks() -> Floats:
    truth = np.full(12, 0.02)
    truth[[2, 7]] = 0.5, 0.3
    return np.asarray(truth / truth.sum())


def smooth_bump(size: int = 40) -> Floats:
    truth = np.exp(-0.5 * ((np.arange(size) - 0.4 * size) / (0.12 * size)) ** 2)
    return np.asarray(truth / truth.sum())


def two_quarters() -> Floats:
    x, y = np.meshgrid(np.arange(6), np.arange(6))
    truth = 0.2 + 3.0 * ((x < 3) & (y < 3)) + 1.0 * ((x >= 4) & (y >= 4))
    return np.asarray((truth / truth.sum()).ravel())


ACCURACY: dict[str, tuple[hb.Mechanism, Floats, int]] = {
    "line": (hb.Geometric(hb.Integers(0, 39), 0.2), smooth_bump(), 5_000),
    "categories": (hb.RandomizedResponse(hb.Categories(list(range(12))), 1.0), flat_with_peaks(), 4_000),
    "map": (hb.PlanarGeometric(hb.Grid(6, 6), 0.8), two_quarters(), 5_000),
}


@pytest.mark.parametrize("name", ACCURACY)
def test_the_answer_is_about_as_close_as_the_best_iterate_of_em(name: str) -> None:
    """The best iterate is known only to those who know the truth."""
    mechanism, truth, users = ACCURACY[name]
    rng = np.random.default_rng(11)
    reports = sent(mechanism, rng.choice(truth.size, users, p=truth))
    path = em_path(reports.channel, reports.weights[None], range(1, 1_001))
    best = min(tv(thetas[0], truth) for _, thetas in path)
    found = hb.estimate(reports)
    check(found, reports)
    assert tv(found.probabilities, truth) <= 1.5 * best
    assert tv(found.probabilities, truth) < 0.7 * tv(hb.estimate(reports, "mle").probabilities, truth)


# -- large domains, limits, progress, refusals -----------------------------------------------------------


def test_large_maps_are_for_em_alone() -> None:
    grid = hb.Grid(33, 31)
    reports = sent(hb.PlanarGeometric(grid, 1.0), np.random.default_rng(0).integers(0, 300, 4_000))
    found = hb.estimate(reports, max_iter=20)
    check(found, reports)
    selection = found.settings["selection"]
    assert not selection.rich
    assert selection.parts == 3
    assert selection.last == 20
    assert all(one.family == "uniform" or one.family.startswith("EM") for one in selection.candidates)
    assert any(one.family.startswith("EM smoothed") for one in selection.candidates)
    assert "only EM was tried" in found.status
    assert found.probabilities[:300].sum() > 0.7


def test_large_categories_are_for_em_alone() -> None:
    domain = hb.Categories(list(range(1_001)))
    reports = sent(hb.RandomizedResponse(domain, 6.0), bump(1_001, 5_000))
    found = hb.estimate(reports)
    check(found, reports)
    assert {one.family for one in found.settings["selection"].candidates} == {"uniform", "EM"}
    assert "only EM was tried" in found.status
    _, other = chosen_of("categories")
    assert other.settings["selection"].rich
    assert "only EM" not in other.status


def test_the_filter_on_a_lattice_does_what_the_kernel_does(monkeypatch: pytest.MonkeyPatch) -> None:
    reports, rich = chosen_of("line")
    monkeypatch.setattr(select, "MOST_RICH", 5)
    monkeypatch.setattr(recipes, "MOST_RICH", 5)
    found = hb.estimate(reports)
    check(found, reports)
    assert not found.settings["selection"].rich
    assert tv(found.probabilities, rich.probabilities) < 0.06


def test_updates_are_limited() -> None:
    reports, found = chosen_of("categories")
    assert found.settings["max_iter"] == select.UPDATES[0][1]
    short = hb.estimate(reports, max_iter=7)
    assert short.settings["max_iter"] == 7
    assert max(one.updates for one in short.settings["selection"].candidates) == 7
    assert hb.estimate(reports, max_iter=10**6).settings["max_iter"] == select.UPDATES[0][1]
    single = hb.estimate(reports, max_iter=1)
    assert sum(one.family == "EM" for one in single.settings["selection"].candidates) == 1
    with pytest.raises(hb.SettingError, match="max_iter"):
        hb.estimate(reports, max_iter=0)


def test_progress_is_told() -> None:
    reports, found = chosen_of("categories")
    told: list[Any] = []
    again_ = finish(estimate.steps(reports), told.append)
    assert again_.probabilities.tolist() == found.probabilities.tolist()
    assert all(isinstance(stage, Progress) for stage in told)
    assert len(told) > len(found.settings["selection"].candidates)
    assert [stage.done for stage in told] == sorted(stage.done for stage in told)
    assert len({stage.total for stage in told}) == 1
    assert told[0].done == 0
    assert told[-1].done <= told[-1].total
    families = [candidate.family for candidate in found.settings["selection"].candidates]
    names = [*(f"trying {name}" for name in dict.fromkeys(families)), "dealing again"]
    assert list(dict.fromkeys(stage.what for stage in told)) == names


@pytest.mark.parametrize(
    ("name", "value"),
    [("start", "uniform"), ("history", True), ("tol", 1e-6), ("delta", 0.1), ("solver", "interior point")],
)
def test_keywords_that_mean_nothing_are_refused(name: str, value: Any) -> None:
    reports, _ = chosen_of("categories")
    with pytest.raises(hb.SettingError, match=f"{name} means nothing") as refused:
        hb.estimate(reports, "auto", **{name: value})
    assert f"leave {name} out" in str(refused.value)


@pytest.mark.parametrize("rng", [-1, True, "seed", 1.5, [1]])
def test_what_is_no_randomness_is_refused(rng: Any) -> None:
    few = sent(hb.RandomizedResponse(ABC, 2.0), np.array([1, 1]))
    for reports in (chosen_of("categories")[0], few):
        with pytest.raises(hb.SettingError, match="not a source of randomness"):
            hb.estimate(reports, rng=rng)


# -- what is kept with the estimate ----------------------------------------------------------------------


@pytest.mark.parametrize("name", STUDIES)
def test_the_candidates_are_in_json_and_in_a_table(name: str) -> None:
    _, found = chosen_of(name)
    selection = found.settings["selection"]
    rows = json.loads(found.to_json())["settings"]["selection"]
    assert rows == selection.rows()
    assert [row["candidate"] for row in rows] == [one.words for one in selection.candidates]
    assert sum(row["weight"] for row in rows) == pytest.approx(1.0)
    assert set(rows[0]) == {"candidate", "family", "score", "spread", "weight"}
    table = selection.to_frame()
    assert list(table.columns) == ["candidate", "family", "score", "spread", "weight"]
    assert table["score"].tolist() == selection.scores.tolist()
    back = pickle.loads(pickle.dumps(found))  # noqa: S301
    assert back.settings["selection"].rows() == rows
    with pytest.raises(ValueError, match="read-only"):
        back.settings["selection"].weights[0] = 1.0
    assert selection.chosen.words in repr(selection)


@pytest.mark.parametrize("name", STUDIES)
def test_pictures_show_all_families_that_came_close(name: str) -> None:
    import matplotlib.pyplot as plt

    _, found = chosen_of(name)
    selection = found.settings["selection"]
    axes = selection.plot()
    close = selection.scores >= selection.scores.max() - 15.0
    shown = {text.get_text() for text in axes.get_legend().get_texts()}
    assert shown == {one.family for one, near in zip(selection.candidates, close, strict=True) if near}
    points = np.concatenate([np.asarray(marks.get_offsets()) for marks in axes.collections])
    assert len(points) == close.sum()
    heights, scores = np.sort(points[:, 1]), np.sort(selection.scores[close])
    np.testing.assert_allclose(heights - heights[-1], scores - scores[-1], atol=1e-9)  # from whichever level
    assert (points[:, 0] > 0).all()
    assert selection.plot(axes) is axes
    assert found.plot().get_title().startswith("auto")
    plt.close("all")


def test_a_picture_of_an_even_crowd() -> None:
    import matplotlib.pyplot as plt

    found = hb.estimate(hb.Reports.from_counts(hb.RandomizedResponse(ABC, 1.5), np.full(6, 100)))
    axes = found.settings["selection"].plot()
    assert "uniform" in {text.get_text() for text in axes.get_legend().get_texts()}
    plt.close("all")


def made_up(weights: list[float], *, rich: bool = True) -> Selection:
    names = ["uniform", "EM", "EM", "a rough curve"]
    candidates = tuple(
        AutoCandidate(name, f"{name} {place}", "more updates" if name == "EM" else "less smoothing", place)
        for place, name in enumerate(names)
    )
    scores = np.array([0.0, 7.0, 9.0, 8.0])
    paths = (0, 1, 1, 2)
    return Selection(candidates, paths, scores, np.array([0.0, 0.1, 0.2, 0.3]), np.array(weights), 5, rich, 100)


def test_what_was_chosen_is_told() -> None:
    made = made_up([0.001, 0.3, 0.4, 0.299])
    assert made.chosen.words == "EM 2"
    assert made.runner_up.words == "a rough curve 3"  # not of the same family
    assert made.counted.tolist() == [2, 1, 3]
    assert made.explain() == "EM 2, averaged with 2 others (the limit)"
    assert made_up([0.001, 0.998, 0.001, 0.0]).explain() == "EM 1: more updates would fit the noise"
    assert "only EM was tried" in made_up([0.1, 0.2, 0.7, 0.0], rich=False).explain()
    assert made_up([1.0, 0.0, 0.0, 0.0]).explain().startswith("uniform 0: no candidate predicts")


def test_a_candidate_that_wins_by_far_is_not_said_to_predict_no_better() -> None:
    assert "no candidate" not in made_up([0.0, 0.0, 1.0, 0.0]).explain()


# -- EM with smoothing -----------------------------------------------------------------------------------


def dense_average(domain: hb.Domain) -> Floats:
    """The smoothing as a matrix, from the labels alone."""
    if isinstance(domain, hb.Grid):
        places = [divmod(cell, domain.columns) for cell in domain.labels.tolist()]
    else:
        places = [(0, place) for place in range(len(domain))]
    whole = np.eye(len(places))
    for step in ((0, 1), (1, 0)):
        matrix = 2.0 * np.eye(len(places))
        for one, (row, column) in enumerate(places):
            for other, place in enumerate(places):
                if place in ((row + step[0], column + step[1]), (row - step[0], column - step[1])):
                    matrix[one, other] = 1.0
        whole = matrix / matrix.sum(axis=1, keepdims=True) @ whole
    return whole


def ems(reports: hb.Reports, updates: int) -> list[Floats]:
    matrix, average = reports.channel.dense(), dense_average(reports.domain)
    path = [np.full(len(matrix), 1.0 / len(matrix))]
    for _ in range(updates):
        theta = path[-1] * (matrix @ (reports.weights / (path[-1] @ matrix))) / reports.weights.sum()
        theta = average @ theta
        path.append(theta / theta.sum())
    return path


SMOOTHED: list[hb.Mechanism] = [
    hb.Geometric(LINE, 0.5),
    hb.RandomizedResponse(hb.Bins([0, 1, 5, 6, 9]), 1.0),
    hb.PlanarGeometric(MAP, 1.0),
    hb.Exponential(HOLED, 1.0),
]


@pytest.mark.parametrize("mechanism", SMOOTHED, ids=lambda mechanism: type(mechanism).__name__)
def test_ems_is_em_and_a_smoothing_after_each_update(mechanism: hb.Mechanism) -> None:
    reports = sent(mechanism, bump(len(mechanism.domain), 700))
    found = hb.estimate(reports, "ems", max_iter=25, delta=1e-300, history=True)
    assert found.history is not None
    path = ems(reports, 25)
    assert len(found.history.probabilities) == 26 or found.converged  # a fixed point may be reached to the last bit
    for theta, expected in zip(found.history.probabilities, path, strict=False):
        np.testing.assert_allclose(theta, expected, rtol=1e-9)
    for value, expected in zip(found.history.log_likelihood, path, strict=False):
        assert value == pytest.approx(hb.log_likelihood(reports, expected), rel=1e-12)
    alone = hb.estimate(reports, "ems", max_iter=25, delta=1e-300)
    assert alone.history is None
    np.testing.assert_allclose(alone.probabilities, found.probabilities, rtol=1e-12)


def test_ems_comes_to_rest() -> None:
    reports = lined()
    loose, tight = hb.estimate(reports, "ems", delta=1.0), hb.estimate(reports, "ems", delta=1e-9)
    usual = hb.estimate(reports, "ems")
    assert loose.iterations < usual.iterations < tight.iterations
    assert usual.settings["delta"] == 1e-3
    assert tight.converged
    matrix = reports.channel.dense()
    theta = tight.probabilities
    moved = dense_average(reports.domain) @ (
        theta * (matrix @ (reports.weights / (theta @ matrix))) / reports.weights.sum()
    )
    np.testing.assert_allclose(moved / moved.sum(), theta, atol=1e-5)
    assert np.abs(np.diff(theta, 2)).max() < np.abs(np.diff(hb.estimate(reports, "mle").probabilities, 2)).max()
    assert "smoothed after each update" in usual.status
    assert "stopped by the delta rule" in usual.status
    limited = hb.estimate(reports, "ems", max_iter=3, delta=1e-12)
    assert not limited.converged
    assert "iteration limit of 3" in limited.status
    assert limited.iterations == 3


def test_ems_stops_at_the_first_small_change() -> None:
    reports = sent(hb.Geometric(LINE, 0.5), bump(8, 700))
    found = hb.estimate(reports, "ems", delta=0.05)
    values = [hb.log_likelihood(reports, theta) for theta in ems(reports, found.iterations)]
    changes = np.abs(np.diff(values))
    assert changes[-1] < 0.05
    assert (changes[:-1] >= 0.05).all()


def test_ems_takes_a_start() -> None:
    reports = sent(hb.Geometric(LINE, 0.5), bump(8, 700))
    start = np.arange(1.0, 9.0) / 36
    found = hb.estimate(reports, "ems", start=start, max_iter=1, delta=1e-300)
    matrix = reports.channel.dense()
    update = start * (matrix @ (reports.weights / (start @ matrix))) / 700
    expected = dense_average(LINE) @ update
    np.testing.assert_allclose(found.probabilities, expected / expected.sum(), rtol=1e-10)
    assert found.settings["start"] == "given"


def test_ems_needs_neighbours() -> None:
    for reports in (categorical(), categorical().restrict(["a", "b", "c"])):
        with pytest.raises(hb.SettingError, match="no neighbours") as refused:
            hb.estimate(reports, "ems")
        assert "auto" in str(refused.value)
    restricted = sent(hb.Geometric(LINE, 0.5), bump(8, 700)).restrict([1, 2, 5])
    assert hb.estimate(restricted, "ems").probabilities.sum() == pytest.approx(1.0)
    for name, value in (("tol", 1e-3), ("rng", 1), ("solver", "interior point")):
        keywords: dict[str, Any] = {name: value}
        with pytest.raises(hb.SettingError, match=f"{name} means nothing"):
            hb.estimate(restricted, "ems", **keywords)


@pytest.mark.parametrize("edges", [[0.0, 1.0, 2.0, 3.0, 1e100], [1e-200 * edge for edge in range(11)]])
def test_bins_of_any_size(edges: list[float]) -> None:
    bins = hb.Bins(edges)
    counts = np.arange(1, len(bins) + 1) ** 2 * 100
    reports = hb.Reports.from_counts(hb.RandomizedResponse(bins, 2.0), counts)
    check(hb.estimate(reports), reports)
