"""Extremes over likely distributions, and the law of the deviance: against another solver, closed forms and proofs.

What is rigorous is checked by points: no distribution that is likely, in extended precision, may lie beyond a limit.
What is tight is checked by another point: a likely one that comes as close to the limit as is promised.
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hubbub as hb
import problems as own
import strategies as sts
from hubbub.core import compiling
from hubbub.core.progress import finish
from hubbub.intervals import deviance_cutoff as calibrate
from hubbub.intervals.deviance_cutoff import DevianceSimulation, chi_square, draws_for, information_per_user
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.likelihood import Likelihood
from hubbub.solvers import boundary_deviance
from hubbub.solvers.boundary_deviance import ConePrograms, cone_minima
from hubbub.solvers.profile_extremes import Extreme

Floats = NDArray[np.float64]
Longs = NDArray[np.longdouble]
LONG = np.longdouble

TIGHT = 2e-3  # of the way from the estimate's own value to the limit: twice what is promised
ROUNDING = 1e-11  # of the statistic's range
EVEN = 1e-9  # of the range: extremes that are as close to the estimate's own value are not compared
CUTOFFS = (0.5, 3.84, 7.7)
PRECISE = 1e-3  # what a minimum over a cone may lack

# Another solver's warnings are not ours; that an answer may be inaccurate is for the comparison to say.
other_solver = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:Solution may be inaccurate"
)


# -- the same region, written again -----------------------------------------------------------------------


class Reference:
    """The likely distributions around a maximum, in extended precision."""

    def __init__(self, scaled: Longs, weights: Longs, top: Floats, cutoff: float) -> None:
        self.scaled, self.weights, self.total = scaled, weights, weights.sum()
        self.top = top.astype(LONG) / top.astype(LONG).sum()
        self.bound = self.mean(self.top) - LONG(cutoff) / (2 * self.total)

    def mean(self, theta: Longs) -> np.longdouble:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = LONG(self.weights @ np.log(theta @ self.scaled) / self.total)
        return value if np.isfinite(value) else LONG(-np.inf)

    def towards(self, theta: Floats | Longs) -> Longs:
        """Return the last likely distribution on the way from the maximum to `theta`."""
        goal = np.maximum(theta.astype(LONG), 0)
        goal /= goal.sum()
        if self.mean(goal) >= self.bound:
            return goal
        near, far = LONG(0), LONG(1)
        for _ in range(70):
            middle = (near + far) / 2
            near, far = (middle, far) if self.mean(self.mixed(goal, middle)) >= self.bound else (near, middle)
        return self.mixed(goal, near)

    def mixed(self, goal: Longs, share: np.longdouble) -> Longs:
        return np.asarray((1 - share) * self.top + share * goal)

    def certificate(self, theta: Floats, statistic: Floats) -> float:
        """Return the largest min_x (c_x - lambda D_x) + lambda rho over lambda, at `theta`."""
        point = theta.astype(LONG) / theta.astype(LONG).sum()
        gradient = self.scaled @ (self.weights / (point @ self.scaled)) / self.total
        slope = np.exp(self.bound - self.mean(point)) - gradient

        def value(log_price: np.longdouble) -> np.longdouble:
            return LONG((statistic + np.exp(log_price) * slope).min())

        low, high = LONG(-40), LONG(40)  # concave in lambda, hence with one peak in its logarithm
        for _ in range(250):
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (left, high) if value(left) < value(right) else (low, right)
        return float(max(value((low + high) / 2), statistic.min()))


def around(problem: own.Problem, likely: LikelihoodRegion, cutoff: float) -> Reference:
    return Reference(problem.scaled, problem.weights, likely.top.theta, cutoff)


def statistics(rng: np.random.Generator, size: int) -> list[Floats]:
    """A value, a set and a weighted sum, of either sign."""
    value, some = np.zeros(size), np.zeros(size)
    value[rng.integers(size)] = 1.0
    some[rng.permutation(size)[: rng.integers(1, size)]] = 1.0
    weights = rng.normal(size=size) * 10.0 ** rng.uniform(-3, 3)
    return [sign * one for sign, one in zip(rng.choice([-1.0, 1.0], 3), (value, some, weights), strict=True)]


def check_extreme(found: Extreme, statistic: Floats, reference: Reference, *others: Floats) -> None:
    """Likely distributions stay on this side of the limit, and one of them comes close."""
    span, mine = float(np.ptp(statistic)), float(statistic @ reference.top)
    points = [reference.towards(theta) for theta in (found.theta, *others)]
    reached = min(float(statistic.astype(LONG) @ point) for point in points)
    assert found.limit <= reached + ROUNDING * span
    assert found.limit >= statistic.min() - ROUNDING * span
    close = TIGHT * (mine - found.limit) + ROUNDING * span  # what counts as likely there lacks a little
    assert found.limit - close <= found.attained <= mine + ROUNDING * span
    if mine - reached > EVEN * span:
        assert reached - found.limit <= TIGHT * (mine - found.limit)
    # Proved once more: what is certified at the distribution it ended with.
    assert reference.certificate(found.theta, statistic) <= reached + ROUNDING * span


# -- the certified limit ----------------------------------------------------------------------------------

PROBLEMS = [
    pytest.param(name, seed, marks=[pytest.mark.slow] if seed else [])
    for name in own.KINDS
    for seed in (range(1) if name in own.FEW else range(3))
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "seed"), PROBLEMS)
def test_limits_are_certified_and_tight(name: str, seed: int) -> None:
    problem = own.problem(name, seed)
    if problem.size == 1:
        pytest.skip("one value has one distribution")
    rng, likely = np.random.default_rng(seed), LikelihoodRegion.of(problem.reports)
    for statistic, cutoff in zip(statistics(rng, problem.size), CUTOFFS, strict=True):
        endpoint = likely.least(statistic, cutoff)
        check_extreme(endpoint, statistic, around(problem, likely, cutoff))


MOST_USERS = 3e6  # a slack of 1e-7, which conic solvers still see
LONG_FOR_CONIC = ("map with Laplace noise", "map with geometric noise")
CONIC = [
    pytest.param(name, seed, marks=[pytest.mark.slow] if seed or name in LONG_FOR_CONIC else [])
    for name in own.KINDS
    for seed in range(3)
    if name not in ("entries as small as 1e-300",)
]


@pytest.mark.sampled(6)
@other_solver
@pytest.mark.parametrize(("name", "seed"), CONIC)
def test_a_conic_solver_finds_the_same_extremes(name: str, seed: int) -> None:
    problem = own.problem(name, seed)
    columns, shares = problem.merged()
    if problem.size == 1 or columns.size > 5_000 or problem.reports.users > MOST_USERS:
        pytest.skip("too large for a second opinion")
    cp: Any = importlib.import_module("cvxpy")  # slow to load
    rng, likely = np.random.default_rng([1, seed]), LikelihoodRegion.of(problem.reports)
    for statistic, cutoff in zip(statistics(rng, problem.size), CUTOFFS, strict=True):
        reference = around(problem, likely, cutoff)
        lowest, span = float(statistic.min()), float(np.ptp(statistic))
        theta = cp.Variable(problem.size, nonneg=True)
        program = cp.Problem(
            cp.Minimize(((statistic - lowest) / span) @ theta),
            [cp.sum(theta) == 1, shares @ cp.log(columns.T @ theta) >= float(reference.bound)],
        )
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        endpoint = likely.least(statistic, cutoff)
        assert endpoint.limit <= lowest + span * (program.value + 1e-7)
        check_extreme(endpoint, statistic, reference, np.asarray(theta.value, dtype=np.float64))


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_where_no_probability_is_zero(size: int, epsilon: float) -> None:
    """Inside the simplex the gradient of the likelihood and that of the sum are parallel at the maximum."""
    rng = np.random.default_rng([size, int(10 * epsilon)])
    domain = hb.Integers(0, size - 1)
    for mechanism in (hb.RandomizedResponse(domain, epsilon), hb.TruncatedGeometric(domain, epsilon)):
        for users in (300, 50_000):
            counts = np.round(users * (rng.dirichlet(np.full(size, 8.0)) @ mechanism.matrix())).astype(np.int64)
            problem = own.counted(mechanism, counts)
            likely = LikelihoodRegion.of(problem.reports)
            for statistic in statistics(rng, size):
                endpoint = likely.least(statistic, 3.84)
                check_extreme(endpoint, statistic, around(problem, likely, 3.84))
                assert endpoint.iterations < 60  # of the first start


@st.composite
def tables(draw: st.DrawFn) -> tuple[own.Problem, Floats]:
    """Non-symmetric matrices, some with equal rows, counts from 5 users to a milliard, and a statistic."""
    mechanism = draw(sts.matrices(most=5))
    table = mechanism.matrix()
    copies = draw(st.lists(st.integers(0, len(table) - 1), max_size=2))
    table = np.concatenate([table, table[copies]])
    outputs = [f"out {place}" for place in range(table.shape[1])]
    counts = draw(sts.counts(table.shape[1])) * draw(st.sampled_from([1, 100, 10**4, 10**7]))
    counts[int(counts.argmax())] += 5
    mechanism = hb.Matrix(hb.Integers(0, len(table) - 1), outputs, table)
    statistic = np.array(draw(st.lists(st.integers(-3, 3), min_size=len(table), max_size=len(table))), dtype=np.float64)
    statistic[0] += 1.0 if np.ptp(statistic) == 0 else 0.0
    return own.counted(mechanism, counts), statistic


@given(tables(), st.sampled_from([*CUTOFFS, 30.0]), st.integers(0, 2**32))
@sts.examples(60)
def test_no_likely_distribution_lies_beyond(drawn: tuple[own.Problem, Floats], cutoff: float, seed: int) -> None:
    problem, statistic = drawn
    likely, rng = LikelihoodRegion.of(problem.reports), np.random.default_rng(seed)
    reference = around(problem, likely, cutoff)
    endpoint = likely.least(statistic, cutoff)
    check_extreme(endpoint, statistic, reference)
    size, span = statistic.size, float(np.ptp(statistic))
    goals = [*np.eye(size), *rng.dirichlet(np.ones(size), 10), *rng.dirichlet(np.full(size, 0.1), 10)]
    for goal in goals:
        assert float(statistic @ reference.towards(goal)) >= endpoint.limit - ROUNDING * span


def test_patterns_that_nobody_sent_say_nothing() -> None:
    rng = np.random.default_rng(5)
    mechanism = hb.Matrix(hb.Integers(0, 4), list(range(7)), own.stochastic(rng, 5, 7, zeros=0.3))
    counts = np.array([40, 0, 25, 30, 0, 60, 45])
    whole = hb.Reports.from_counts(mechanism, counts + 1).channel  # with a column for every output
    some = LikelihoodRegion.of(hb.Reports.from_counts(mechanism, counts))
    every = finish(LikelihoodRegion.around(Likelihood(whole, counts.astype(np.float64), int(counts.sum()))))
    for statistic in statistics(rng, 5):
        one, other = (likely.least(statistic, 3.84) for likely in (some, every))
        assert one.limit == pytest.approx(other.limit, abs=TIGHT * np.ptp(statistic))


def test_extremes_where_nothing_is_left_to_move() -> None:
    """At its least already; and so few users that everything is likely."""
    mechanism = hb.RandomizedResponse(hb.Integers(0, 2), 3.0)
    sure = LikelihoodRegion.of(hb.Reports.from_counts(mechanism, [1_000, 0, 0]))
    assert sure.least(np.array([0.0, 1.0, 0.0]), 3.84).limit == 0.0
    few = LikelihoodRegion.of(hb.Reports.from_counts(hb.RandomizedResponse(hb.Integers(0, 2), 0.01), [3, 2, 1]))
    for statistic in (np.array([1.0, 0.0, 0.0]), np.array([-1.0, 2.0, 5.0])):
        assert few.least(statistic, 3.84).limit == pytest.approx(statistic.min(), abs=1e-9)
        assert few.least(-statistic, 3.84).limit == pytest.approx(-statistic.max(), abs=1e-9)


# -- quadratic programs over a cone -----------------------------------------------------------------------


def conic_minimum(hessian: Floats, score: Floats, lower: Floats, equal: Floats) -> float:
    cp: Any = importlib.import_module("cvxpy")
    step = cp.Variable(score.size)
    root = np.linalg.cholesky(hessian + 1e-12 * np.eye(score.size)).T
    limits = [step[place] >= lower[place] for place in np.flatnonzero(np.isfinite(lower))]
    goal = cp.Minimize(0.5 * cp.sum_squares(root @ step) - score @ step)
    program = cp.Problem(goal, [*limits, *([equal @ step == 0] if len(equal) else [])])
    program.solve(solver=cp.CLARABEL)
    return float(program.value)


@other_solver
@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(24))
def test_minima_as_a_conic_solver_finds_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 9)) if seed else 45
    root = rng.normal(size=(size, size + 2)) * 10.0 ** rng.uniform(-1, 1, (size, 1))
    hessian = root @ root.T
    scores = rng.normal(size=(4, size + 2)) @ root.T
    lower = np.choose(rng.integers(3, size=size), [np.full(size, -np.inf), np.zeros(size), -rng.gamma(1.0, size=size)])
    equation = [np.zeros(size), np.ones(size), rng.normal(size=size)][seed % 3]
    minima = cone_minima(hessian, scores, lower, equation)
    theirs = [conic_minimum(hessian, score, lower, equation[None]) for score in scores]
    assert minima == pytest.approx(np.minimum(theirs, 0.0), abs=3 * PRECISE, rel=1e-4)
    # With another sum held at 0, for all scores or the first few, and again from where it ended.
    held = [(rng.random(size) < 0.5).astype(np.float64), rng.normal(size=size)][seed % 2]
    both = np.stack([equation, held])
    without = np.minimum([conic_minimum(hessian, score, lower, both) for score in scores], 0.0)
    programs = ConePrograms(hessian, scores, equation)
    expected = 2.0 * (without - np.minimum(theirs, 0.0))
    for draws in (2, 4, 4):
        found = programs.deviances(lower, held, draws)
        assert found == pytest.approx(expected[:draws], abs=12 * PRECISE, rel=1e-3)


@pytest.mark.slow
@other_solver
def test_minima_where_reports_say_little() -> None:
    """Five users on 82 values: the information has rank five, and is ten orders smaller for some values than others."""
    mechanism = hb.TruncatedGeometric(hb.Integers(18, 99), 0.2)
    top = LikelihoodRegion.of(hb.Reports.from_outputs(mechanism, [34, 41, 29, 18, 36])).top
    rng, total = np.random.default_rng(8), np.ones(82)
    information = information_per_user(top, rng)
    eigenvalues, eigenvectors = np.linalg.eigh(information)
    scores = (rng.standard_normal((12, 82)) * np.sqrt(np.maximum(eigenvalues, 0.0))) @ eigenvectors.T
    lower = -np.sqrt(5.0) * np.where(top.theta > 1e-3, top.theta, 0.0)
    programs = ConePrograms(information, scores, total, users=5)
    for held in (np.eye(82)[20], np.arange(82.0)):
        both = np.stack([total, held])
        least = [[conic_minimum(information, score, lower, rows) for rows in (total[None], both)] for score in scores]
        expected = 2.0 * np.diff(np.minimum(least, 0.0), axis=1)[:, 0]
        assert programs.deviances(lower, held) == pytest.approx(expected, abs=5e-3, rel=1e-3)


def test_minima_in_closed_form() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(50, 6)) * 2.0
    lower = np.array([-np.inf, -np.inf, 0.0, 0.0, -0.5, -2.0])
    step = np.maximum(scores, lower)
    alone = (step**2 / 2 - scores * step).sum(axis=1)
    assert cone_minima(np.eye(6), scores, lower, np.zeros(6)) == pytest.approx(alone, abs=2 * PRECISE)
    # No limits and one equation: what the equation takes away from the full minimum.
    diagonal, free = np.array([1.0, 2.0, 0.5, 4.0, 3.0, 1.0]), np.full(6, -np.inf)
    full = (scores**2 / diagonal).sum(axis=1) - (scores / diagonal).sum(axis=1) ** 2 / (1 / diagonal).sum()
    minima = cone_minima(np.diag(diagonal), scores, free, np.ones(6))
    assert minima == pytest.approx(-full / 2, abs=2 * PRECISE)


def test_cones_without_an_inside() -> None:
    """An equation that holds bounded coordinates at 0 leaves the problem without them."""
    rng = np.random.default_rng(2)
    root = rng.normal(size=(5, 7))
    hessian, scores = root @ root.T, rng.normal(size=(30, 7)) @ root.T
    lower = np.array([0.0, 0.0, 0.0, -np.inf, -np.inf])
    pinned = np.array([1.0, 2.0, 1.0, 0.0, 0.0])
    rest = cone_minima(hessian[3:, 3:], scores[:, 3:], lower[3:], np.zeros(2))
    assert cone_minima(hessian, scores, lower, pinned) == pytest.approx(rest, abs=3 * PRECISE, rel=1e-3)
    nothing = cone_minima(hessian, scores, np.zeros(5), np.ones(5))
    assert nothing == pytest.approx(np.zeros(30), abs=2 * PRECISE)


@pytest.mark.slow  # loops for several threads are compiled apart
def test_minima_in_one_thread_and_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(30, 32))
    hessian, scores = root @ root.T, rng.normal(size=(60, 32)) @ root.T
    lower = np.where(rng.random(30) < 0.5, 0.0, -rng.gamma(1.0, size=30))
    alone = cone_minima(hessian, scores, lower, np.ones(30))
    monkeypatch.setattr(compiling, "MAX_SERIAL_STEPS", 0)
    assert cone_minima(hessian, scores, lower, np.ones(30)) == pytest.approx(alone, abs=1e-12)
    assert cone_minima(hessian, np.empty((0, 30)), lower, np.ones(30)).shape == (0,)
    assert (alone <= 0.0).all()


def test_a_value_that_loses_its_limit_is_not_in_the_kept_inverse() -> None:
    rng = np.random.default_rng(9)
    root = rng.normal(size=(12, 14))
    hessian, scores = root @ root.T, rng.normal(size=(30, 14)) @ root.T
    limited = np.where(rng.random(12) < 0.7, 0.0, -rng.gamma(1.0, size=12))
    unlimited = np.where(np.arange(12) < 6, -np.inf, limited)
    programs = ConePrograms(hessian, scores, np.ones(12))
    programs.minima(limited)
    assert programs.minima(unlimited) == pytest.approx(cone_minima(hessian, scores, unlimited, np.ones(12)), abs=1e-9)


@other_solver
def test_kept_inverses_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that go on from kept inverses, that compute them anew now and then, and that keep none."""
    rng = np.random.default_rng(6)
    root = rng.normal(size=(25, 27))
    hessian, scores = root @ root.T, rng.normal(size=(40, 27)) @ root.T
    limits = [np.where(rng.random(25) < 0.6, 0.0, -rng.gamma(1.0, size=25)) for _ in range(12)]
    held = (rng.random(25) < 0.4).astype(np.float64)

    def deviances() -> Floats:
        programs = ConePrograms(hessian, scores, np.ones(25))
        return np.stack([programs.deviances(lower, held) for lower in limits])

    kept = deviances()
    monkeypatch.setattr(boundary_deviance, "MAX_KEPT_ENTRIES", 0)
    assert deviances() == pytest.approx(kept, abs=1e-6)
    total = np.ones((1, 25))
    least, with_held = (
        conic_minimum(hessian, scores[0], limits[0], rows) for rows in (total, np.vstack([total, held]))
    )
    assert kept[0, 0] == pytest.approx(2.0 * (with_held - least), abs=12 * PRECISE)


# -- the law of the deviance ------------------------------------------------------------------------------

RUNS = 6_000
TEN = hb.Integers(0, 9)
SPREAD = 3.5  # standard errors of a simulated quantile that are allowed


def limit_at(truth: Floats, epsilon: float = 1.5, users: int = 10**6) -> DevianceSimulation:
    """Return the limit around reports that are as expected."""
    mechanism = hb.RandomizedResponse(hb.Integers(0, truth.size - 1), epsilon)
    counts = np.round(users * (truth @ mechanism.matrix())).astype(np.int64)
    top = LikelihoodRegion.of(hb.Reports.from_counts(mechanism, counts)).top
    return DevianceSimulation(top, RUNS, np.random.default_rng(0))


@pytest.mark.slow  # simulates many studies
def test_inside_the_law_is_chi_square() -> None:
    truth = np.linspace(0.05, 0.15, 10)
    limit, weights = limit_at(truth), np.zeros(10)
    assert limit.is_away_from_border()
    weights[[1, 4, 5]] = 1.0
    density = math.exp(-3.84 / 2) / math.sqrt(2 * math.pi * 3.84)
    error = math.sqrt(0.05 * 0.95 / RUNS) / density
    assert limit.cutoff(truth, weights, 0.95) == pytest.approx(chi_square(0.95), abs=SPREAD * error)


def test_one_empty_value_has_half_a_chi_square() -> None:
    """The deviance is max(0, Z)^2: its 95% quantile is 1.645^2."""
    truth = np.array([0.0, *np.full(9, 1 / 9)])
    limit, weights = limit_at(truth), np.eye(10)[0]
    assert not limit.is_away_from_border()
    density = math.exp(-2.7055 / 2) / (2 * math.sqrt(2 * math.pi * 2.7055))
    error = math.sqrt(0.05 * 0.95 / RUNS) / density
    assert limit.cutoff(truth, weights, 0.95) == pytest.approx(2.7055, abs=SPREAD * error)


def empty_sum_deviances(truth: Floats, epsilon: float, runs: int, rng: np.random.Generator) -> Floats:
    """Return deviances of the joint share of all empty values, by the diagonal information of k-RR.

    With sum h = 0 the information is diagonal: twice the log-likelihood lacks (p - q)^2 sum (h - u)^2 / f, where u is
    the inversion of normal noise with the variances and the sum of a multinomial. Both maxima are h = u + t f, cut
    off at 0 or held there on the empty values, with t such that the sum is 0.
    """
    own_share, other = (
        math.exp(epsilon) / (math.exp(epsilon) + truth.size - 1),
        1 / (math.exp(epsilon) + truth.size - 1),
    )
    fitted = other + (own_share - other) * truth
    noise = rng.normal(size=(runs, truth.size)) * np.sqrt(fitted)
    u = (noise - noise.sum(axis=1, keepdims=True) * fitted) / (own_share - other)
    empty = truth == 0.0

    def lacking(step: Floats) -> Floats:
        return np.asarray((own_share - other) ** 2 * ((step - u) ** 2 / fitted).sum(axis=1))

    full = np.where(empty, 0.0, u)
    held = full - np.where(empty, 0.0, fitted) * (full.sum(axis=1, keepdims=True) / fitted[~empty].sum())
    low, high = np.full((runs, 1), -1e3), np.full((runs, 1), 1e3)
    for _ in range(60):
        middle = (low + high) / 2
        step = np.where(empty, np.maximum(u + middle * fitted, 0.0), u + middle * fitted)
        above = step.sum(axis=1, keepdims=True) > 0.0
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return lacking(held) - lacking(step)


def test_a_sum_of_empty_values() -> None:
    truth = np.array([0.4, 0.3, 0.2, 0.1, *np.zeros(6)])
    sample = empty_sum_deviances(truth, 1.5, 60_000, np.random.default_rng(4))
    expected = float(np.quantile(sample, 0.95))
    assert expected == pytest.approx(7.7, abs=0.2)  # as `calibrate` has it
    found = limit_at(truth).cutoff(truth, (truth == 0.0).astype(np.float64), 0.95)
    # The density at the quantile, from the sample itself.
    density = float(np.mean(np.abs(sample - expected) < 0.5))
    error = math.sqrt(0.05 * 0.95 * (1 / RUNS + 1 / sample.size)) / density
    assert found == pytest.approx(expected, abs=SPREAD * error)


def test_how_many_simulations() -> None:
    for level in (0.5, 0.8, 0.9, 0.95, 0.98, 0.99):
        runs = draws_for(level)
        beyond = (runs + 1) * (1.0 - level)
        assert beyond == pytest.approx(round(beyond), abs=1e-6)
        assert round(beyond) >= calibrate.MIN_DRAWS_BEYOND_CUTOFF
        assert runs >= calibrate.MIN_DRAWS
    assert draws_for(0.95) == 999
    assert draws_for(0.9999) == calibrate.MAX_DRAWS


def test_information_is_the_mean_outer_product() -> None:
    problem = own.problem("several outputs for each user", 1)
    top = LikelihoodRegion.of(problem.reports).top
    fitted = top.theta.astype(LONG) @ problem.scaled
    scaled = problem.scaled / fitted
    expected = (scaled * (problem.weights / problem.weights.sum())) @ scaled.T
    assert information_per_user(top, np.random.default_rng(0)) == pytest.approx(expected.astype(np.float64), rel=1e-9)


def test_information_from_some_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = hb.Rappor(TEN, 2.0)
    values = np.random.default_rng(1).integers(0, 10, 6_000)
    top = LikelihoodRegion.of(hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=2))).top
    whole = information_per_user(top, np.random.default_rng(0))
    patterns = 500
    assert top.likelihood.channel.patterns > patterns
    monkeypatch.setattr(calibrate, "MAX_INFORMATION_ENTRIES", patterns * 10)
    drawn = np.stack([information_per_user(top, np.random.default_rng(seed)) for seed in range(40)])
    scale = np.sqrt(np.outer(np.diag(whole), np.diag(whole)))
    assert np.abs(drawn[0] - whole).max() < (0.3 * scale).max()
    assert (np.abs(drawn.mean(axis=0) - whole) < SPREAD * 1.5 * drawn.std(axis=0) / math.sqrt(40)).all()
