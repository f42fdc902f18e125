"""The maximum and its certificate: more than 600 random problems, judged by a gap that is computed a second time.

`problems` writes every likelihood down again from its formula, in extended precision, before any merging or scaling.
Nothing may be called solved that this second computation does not call solved.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hubbub as hb
import problems as own
import strategies
from hubbub.likelihood import Likelihood, Point
from hubbub.rendering import upper_text
from hubbub.solvers import SOLVERS
from hubbub.solvers import maximum_likelihood as maximum
from hubbub.solvers import newton_systems as systems
from problems import Problem

Floats = NDArray[np.float64]

TOL = 1e-9
STATUS = re.compile(
    r"(solved; |almost solved: |no further progress: |stopped at the iteration limit of [\d,]+: )gap (\S+?)"
    r"(?:, up to \S+ of it rounding)?(?:; (not the only maximum))?(?:; approximate: .*)?"
)
SKEW = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])  # invertible, not symmetric


# The second computation takes most of the time: the gate judges a few problems of each kind, make slow all of them.
GATE_SEEDS = 8
SEEDS = [pytest.param(GATE_SEEDS, id="few"), pytest.param(own.SEEDS, marks=pytest.mark.slow, id="all")]


@cache
def drawn(name: str, seed: int) -> Problem:
    """A problem of the study; building one takes longer than solving it."""
    return own.problem(name, seed)


def mle(problem: Problem, **keywords: Any) -> hb.Estimate:
    return hb.estimate(problem.reports, "mle", **keywords)


def check(problem: Problem, found: hb.Estimate, tol: float = TOL) -> bool:
    """Fail unless the estimate tells the truth about itself; return whether it is solved."""
    assert (found.probabilities >= 0).all()
    assert found.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    again = problem.gap(found.probabilities)
    told = STATUS.fullmatch(found.status)
    assert told is not None, found.status
    solved = told[1] == "solved; "
    assert found.converged == solved
    assert again <= tol * (1 + 1e-3) + 1e-13 or not solved, f"falsely solved: {again} for {found}"
    assert math.isfinite(found.gap)
    # Of hundreds of outputs for each user, the sum of their logarithms may round as much as that.
    assert found.gap - again <= 1e-10 + 0.01 * again, f"{found.gap} is not {again}"
    assert again <= found.gap + 1e-17, f"{again} is above what {found.gap} certifies"
    assert told[2] == upper_text(found.gap)
    assert found.gap <= max(1000 * tol, 1e-5) or not told[1].startswith("almost")
    return solved


def agree(problem: Problem, one: hb.Estimate, other: hb.Estimate) -> None:
    """Two certified answers differ in log-likelihood by no more than their certificates allow."""
    apart = abs(problem.value(one.probabilities) - problem.value(other.probabilities))
    assert apart <= max(one.gap, other.gap) * (1 + 1e-3) + 1e-13


def matrix_problem(rows: object, counts: list[int]) -> Problem:
    table = np.asarray(rows, dtype=np.float64)
    outputs = [f"out {column}" for column in range(table.shape[1])]
    return own.counted(hb.Matrix(hb.Integers(1, len(table)), outputs, table), np.array(counts))


# -- the study --------------------------------------------------------------------------------------------


def test_the_study_has_more_than_five_hundred_problems() -> None:
    assert sum(len(own.seeds(name)) for name in own.KINDS) >= 500


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in own.FEW else name for name in own.KINDS]
)
@pytest.mark.parametrize("most", SEEDS)
def test_nothing_is_falsely_called_solved_and_nearly_all_is_solved(name: str, most: int) -> None:
    unsolved = []
    seeds = own.seeds(name)[:most]
    for seed in seeds:
        problem = drawn(name, seed)
        estimate = mle(problem)
        if not check(problem, estimate):
            unsolved.append(f"seed {seed}: {estimate.status}, {dict(estimate.settings)}")
    # 95 of 100 of every kind are at least that of all.
    count = len(seeds)
    assert len(unsolved) <= 0.05 * count, f"{count - len(unsolved)} of {count} solved; not: {unsolved}"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", own.KINDS)
def test_the_same_reports_give_the_same_bits(name: str) -> None:
    first, second = (mle(own.problem(name, 3)) for _ in range(2))  # built twice
    assert first.probabilities.tobytes() == second.probabilities.tobytes()
    assert (first.status, first.log_likelihood, first.gap, first.iterations) == (
        second.status,
        second.log_likelihood,
        second.gap,
        second.iterations,
    )


@pytest.mark.parametrize("name", [name for name in own.KINDS if name not in own.FEW])
@pytest.mark.parametrize("most", SEEDS)
def test_other_maxima_exist_where_they_are_said_to(name: str, most: int) -> None:
    """Rows of values with mass that depend on each other: mass moves along the dependence, and all fits as before."""
    for seed in own.seeds(name)[:most:2]:
        problem = drawn(name, seed)
        estimate = mle(problem)
        if "not the only maximum" not in estimate.status:
            continue
        theta = estimate.probabilities
        held = np.flatnonzero(theta > 1e-5)
        columns, _ = problem.merged()
        rows = columns[held]
        direction = np.zeros_like(theta)
        direction[held] = np.linalg.svd(rows / np.linalg.norm(rows, axis=1, keepdims=True))[0][:, -1]
        direction[held] /= np.linalg.norm(rows, axis=1)
        falling = direction < 0
        length = 0.5 * float((theta[falling] / -direction[falling]).min())
        other = theta + length * direction
        assert np.abs(other / other.sum() - theta).max() > 1e-6
        assert problem.gap(other) <= 2 * TOL
        # What fits equally well need not be a maximum: it must still be so with what the tolerance left open decided.
        closer = mle(problem, tol=1e-13)
        if closer.converged:
            assert "not the only maximum" in closer.status, f"seed {seed}: {estimate.status}; {closer.status}"


# -- the second computation, checked ----------------------------------------------------------------------


def exact_gap(problem: Problem, theta: Floats) -> Any:
    """Return the gap with forty digits."""
    with mpmath.workdps(40):
        near = problem.logs.astype(np.float64)
        with np.errstate(invalid="ignore"):
            rest = np.where(np.isfinite(near), problem.logs - near, 0).astype(np.float64)
        zero = mpmath.mpf(0)
        table = [
            [mpmath.exp(mpmath.mpf(a) + b) if math.isfinite(a) else zero for a, b in zip(logs, more, strict=True)]
            for logs, more in zip(near.tolist(), rest.tolist(), strict=True)
        ]
        weights = [mpmath.mpf(int(weight)) for weight in problem.weights]
        shares = [mpmath.mpf(share) for share in theta.tolist()]
        total = mpmath.fsum(shares)
        columns = range(len(weights))
        fitted = [mpmath.fsum(s * row[i] for s, row in zip(shares, table, strict=True)) / total for i in columns]
        users = mpmath.fsum(weights)
        top = max(mpmath.fsum(weights[i] * row[i] / fitted[i] for i in columns) for row in table)
        return mpmath.log(top / users) * users / problem.reports.users


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", own.KINDS)
def test_extended_precision_agrees_with_forty_digits(name: str) -> None:
    checked = 0
    for seed in own.seeds(name):
        problem = drawn(name, seed)
        if problem.logs.size > 1000 and not (seed == 0 and problem.logs.size <= 8000):
            continue
        theta = mle(problem).probabilities
        assert problem.gap(theta) == pytest.approx(float(exact_gap(problem, theta)), rel=1e-6, abs=1e-15)
        checked += 1
        if checked == 3:
            break


def test_tiny_entries_are_taken_as_they_are() -> None:
    """1e-300 and 1 in one matrix: forty digits, from the matrix itself."""
    for seed in own.seeds("entries as small as 1e-300"):
        problem = drawn("entries as small as 1e-300", seed)
        (mechanism,) = problem.reports.mechanisms
        (block,) = problem.reports.blocks
        estimate = mle(problem)
        with mpmath.workdps(40):
            table = mechanism.matrix()[:, mechanism.output_space.encode(problem_outputs(problem))].tolist()
            theta = [mpmath.mpf(share) for share in estimate.probabilities.tolist()]
            weights = [mpmath.mpf(weight) for weight in block.weights.tolist()]
            fitted = [mpmath.fsum(t * row[i] for t, row in zip(theta, table, strict=True)) for i in range(len(weights))]
            prices = [w / f for w, f in zip(weights, fitted, strict=True)]
            top = max(mpmath.fsum(p * g for p, g in zip(prices, row, strict=True)) for row in table)
            gap = mpmath.log(top * mpmath.fsum(theta) / mpmath.fsum(weights))
        assert abs(estimate.gap - float(gap)) <= 1e-12 + 0.01 * float(gap)
        assert gap <= TOL * (1 + 1e-3) + 1e-13 or not estimate.converged


def problem_outputs(problem: Problem) -> Any:
    """The outputs of a problem with one mechanism, in the order of the reports' patterns."""
    (block,) = problem.reports.blocks
    (mechanism,) = problem.reports.mechanisms
    return mechanism.output_space.decode(block.codes)  # type: ignore[attr-defined]


# -- another solver ---------------------------------------------------------------------------------------

UNSUITED = {"entries as small as 1e-300", "hundreds of values", "part of the domain"}
SUITABLE = [name for name in own.KINDS if name not in UNSUITED]
COMPARED = [
    *((name, 0) for name in SUITABLE),
    *(pytest.param(name, 1, marks=pytest.mark.slow) for name in SUITABLE),
]


# Their warnings are not ours; that an answer may be inaccurate is for the comparison to say.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:Solution may be inaccurate")
@pytest.mark.parametrize(("name", "seed"), COMPARED)
def test_a_conic_solver_finds_the_same_maximum(name: str, seed: int) -> None:
    cp: Any = importlib.import_module("cvxpy")  # slow to load
    problem = drawn(name, seed)
    columns, shares = problem.merged()
    theta = cp.Variable(problem.size, nonneg=True)
    program = cp.Problem(cp.Maximize(shares @ cp.log(columns.T @ theta)), [cp.sum(theta) == 1])
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    theirs = np.maximum(np.asarray(theta.value, dtype=np.float64), 0.0)
    theirs /= theirs.sum()
    estimate = mle(problem)
    scale = float(problem.weights.sum()) / problem.reports.users  # sums of bits weigh more than their users
    assert problem.value(estimate.probabilities) == pytest.approx(problem.value(theirs), abs=1e-7 * scale)
    ours = hb.log_likelihood(problem.reports, theirs)
    assert abs(estimate.log_likelihood - ours) / problem.reports.users <= 1e-7 * scale + 1e-12 * abs(ours)


# -- one solver or another --------------------------------------------------------------------------------

SUITED = {
    "closed form": ["k-RR with values that nobody reported"],
    "interior point": [
        "line with epsilon close to 0",
        "map with geometric noise",
        "equal rows",
        "counts from one to a milliard",
        "several outputs for each user",
        "k-RR with values that nobody reported",
        "RAPPOR",
        "sums of bits",
        "part of the domain",
    ],
    "support generation": [
        "line with clamped noise",
        "map with Laplace noise",
        "equal columns",
        "fewer outputs than values",
        "local hashing",
        "several mechanisms",
    ],
    "accelerated em": ["values that give nothing that was seen", "zeros here and there", "optimized unary encoding"],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 9), marks=pytest.mark.slow)], ids=["few", "more"])
@pytest.mark.parametrize(("solver", "name"), [(solver, name) for solver, names in SUITED.items() for name in names])
def test_a_solver_that_is_asked_for_does_the_work(solver: str, name: str, seeds: range) -> None:
    solved = 0
    for seed in seeds:
        problem = drawn(name, seed)
        estimate = mle(problem, solver=solver)
        assert estimate.settings["solver"] == solver
        solved += check(problem, estimate)
        agree(problem, estimate, mle(problem))
    assert solved >= len(seeds) - 1 or solver == "accelerated em"


def test_the_names_of_the_solvers() -> None:
    assert set(SUITED) == set(SOLVERS)


@pytest.mark.parametrize("solver", ["newton", "", "Interior Point", 3, True, ["interior point"]])
def test_an_unknown_solver_is_refused(solver: Any) -> None:
    with pytest.raises(hb.SettingError, match="solver must be"):
        hb.estimate(matrix_problem(SKEW, [5, 3, 2]).reports, "mle", solver=solver)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.003, 0.05, 1.0])
@pytest.mark.parametrize("form", [hb.Geometric, hb.TruncatedGeometric, hb.Laplace])
def test_a_long_line_is_solved_with_few_diagonals(form: Callable[..., hb.Mechanism], epsilon: float) -> None:
    rng = np.random.default_rng(3)
    problem = own.drawn(rng, form(hb.Integers(0, 899), epsilon), 1500)
    estimate = mle(problem)
    assert estimate.settings["linear algebra"] == "banded"
    assert check(problem, estimate)


SMALLER = [
    "line with clamped noise",
    "map with geometric noise",
    "equal rows",
    "zeros here and there",
    "counts from one to a milliard",
    "several mechanisms",
    "several outputs for each user",
    "RAPPOR",
    "sums of bits",
    "regions and noise",
    "entries as small as 1e-300",
]


@pytest.mark.parametrize("name", SMALLER)
def test_conjugate_gradients_are_honest(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the matrix were too large to be factorised."""
    monkeypatch.setattr(systems, "MAX_FACTOR_WORK", 1e-9)
    for seed in range(4):
        problem = drawn(name, seed)
        if problem.reports.weights.size == 1:
            continue
        estimate = mle(problem, solver="interior point")
        by_structure = "diagonal and two dyads" if name == "sums of bits" else "conjugate gradients"
        assert estimate.settings["linear algebra"] == by_structure
        check(problem, estimate)


@pytest.mark.parametrize("name", SMALLER)
def test_support_generation_is_chosen_where_values_are_too_many(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if these matrices were too large to be factorised, though not to be priced."""
    monkeypatch.setattr(systems, "MAX_FACTOR_WORK", 1e-9)
    monkeypatch.setattr(maximum, "MIN_SPARSE_VALUES", 0)
    for seed in range(4):
        problem = drawn(name, seed)
        estimate = mle(problem)
        assert estimate.settings["solver"] in ("support generation", "closed form")
        check(problem, estimate)


# -- k-ary randomized response ----------------------------------------------------------------------------


@st.composite
def responses(draw: st.DrawFn) -> tuple[hb.RandomizedResponse, NDArray[np.int64], NDArray[np.int64]]:
    """A mechanism, counts with ties and zeros, and the values that are kept."""
    size = draw(st.integers(2, 12))
    epsilon = draw(st.floats(0.01, 20.0) | st.sampled_from([0.01, 20.0]))
    few = draw(st.lists(st.integers(0, 10 ** draw(st.integers(1, 8))), min_size=1, max_size=4))
    counts = np.array(draw(st.lists(st.sampled_from(few), min_size=size, max_size=size)))
    if not counts.any():
        counts[draw(st.integers(0, size - 1))] = 1
    kept = draw(st.just(set(range(size))) | st.sets(st.integers(0, size - 1), min_size=1))
    return hb.RandomizedResponse(hb.Integers(1, size), epsilon), counts, np.array(sorted(kept))


@strategies.examples(150)
@given(responses())
def test_the_closed_form_of_randomized_response(
    drawn: tuple[hb.RandomizedResponse, NDArray[np.int64], NDArray[np.int64]],
) -> None:
    mechanism, counts, kept = drawn
    problem = own.counted(mechanism, counts)
    if kept.size < counts.size:
        problem = problem.restricted(kept)
    estimate = mle(problem)
    assert estimate.settings["solver"] == "closed form"
    assert check(problem, estimate)
    assert estimate.gap <= 1e-13
    # The conditions themselves: f = max(b, w / c) with one c for all, where what was reported makes a difference.
    weights = counts[kept]
    if weights.any():
        low = math.exp(-mechanism.epsilon)
        fitted = low + (1 - low) * estimate.probabilities
        top = int(np.argmax(weights))
        np.testing.assert_allclose(fitted, np.maximum(low, weights * (fitted[top] / weights[top])), rtol=1e-12)
    assert (np.diff(estimate.probabilities[np.argsort(weights, kind="stable")]) >= 0).all()  # more reports, more mass
    other = mle(problem, solver="interior point")
    check(problem, other)
    agree(problem, estimate, other)


@strategies.examples(60)
@given(responses(), st.integers(2, 1000))
def test_randomized_response_depends_on_shares_alone(
    drawn: tuple[hb.RandomizedResponse, NDArray[np.int64], NDArray[np.int64]], times: int
) -> None:
    mechanism, counts, _ = drawn
    once, often = (hb.estimate(hb.Reports.from_counts(mechanism, c), "mle") for c in (counts, counts * times))
    np.testing.assert_allclose(often.probabilities, once.probabilities, rtol=1e-9, atol=1e-13)


# -- more than one maximum --------------------------------------------------------------------------------

COUNTS = [430, 330, 240]  # what SKEW makes of a distribution without zeros
CLOAK = hb.Cloaking(hb.Integers(0, 5), ["a", "a", "b", "b", "b", "c"])

SEVERAL = {
    "equal values": lambda: matrix_problem(SKEW[[0, 1, 2, 0]], COUNTS),
    "fewer outputs than values": lambda: matrix_problem([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8]], [50, 50]),
    "a row between others": lambda: matrix_problem([*SKEW, (SKEW[0] + SKEW[1] + SKEW[2]) / 3], COUNTS),
    "regions": lambda: own.counted(CLOAK, np.array([5, 3, 2])),
    "one pattern with several best values": lambda: own.counted(CLOAK, np.array([0, 3, 0])),
    "k-RR without any report of what is kept": lambda: own.counted(
        hb.RandomizedResponse(hb.Integers(0, 4), 1.0), np.array([5, 3, 0, 0, 0])
    ).restricted(np.array([2, 3, 4])),
}

ONE = {
    "k-RR": lambda: own.counted(hb.RandomizedResponse(hb.Integers(0, 4), 1.0), np.array([50, 40, 30, 20, 30])),
    "k-RR with values that nobody reported": lambda: own.counted(
        hb.RandomizedResponse(hb.Integers(0, 4), 1.0), np.array([50, 0, 30, 0, 30])
    ),
    "an invertible matrix": lambda: matrix_problem(SKEW, COUNTS),
    "equal values without mass": lambda: matrix_problem(SKEW[[0, 1, 2, 2]], [80, 15, 5]),
    "regions of one value each": lambda: own.counted(hb.Cloaking(hb.Integers(0, 2), [1, 2, 3]), np.array([5, 3, 2])),
    "one pattern with one best value": lambda: own.counted(CLOAK, np.array([0, 0, 7])),
    "a line": lambda: own.drawn(np.random.default_rng(2), hb.Geometric(hb.Integers(0, 30), 1.0), 3000),
    "a line with much noise": lambda: own.drawn(np.random.default_rng(2), hb.Geometric(hb.Integers(0, 60), 0.01), 3000),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_it_is_said_where_other_maxima_are_known(name: str) -> None:
    problem = SEVERAL[name]()
    estimate = mle(problem)
    assert check(problem, estimate)
    assert estimate.status.endswith("; not the only maximum")


@pytest.mark.parametrize("name", ONE)
def test_other_maxima_are_not_made_up(name: str) -> None:
    problem = ONE[name]()
    estimate = mle(problem)
    assert check(problem, estimate)
    assert "not the only maximum" not in estimate.status


@pytest.mark.parametrize(
    "name",
    ["line with epsilon close to 0", "line with geometric noise", "k-RR with values that nobody reported"],
)
def test_other_maxima_are_never_made_up_on_lines_or_for_randomized_response(name: str) -> None:
    """Rows of a line's noise are nearly dependent, and are not."""
    for seed in own.seeds(name):
        assert "not the only maximum" not in mle(drawn(name, seed)).status


# -- limits, histories, starts ----------------------------------------------------------------------------

PLAIN = ["line with geometric noise", "map with geometric noise", "RAPPOR", "zeros here and there"]


@pytest.mark.parametrize("solver", [None, "interior point", "support generation", "accelerated em"])
@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("name", PLAIN)
def test_the_limit_of_iterations_is_kept_and_told(name: str, limit: int, solver: str | None) -> None:
    for seed in range(3):
        problem = drawn(name, seed)
        estimate = mle(problem, solver=solver, max_iter=limit)
        assert estimate.iterations <= limit
        assert estimate.settings["max_iter"] == limit
        if not check(problem, estimate) and estimate.gap > 1e-6:
            assert estimate.status.startswith((f"stopped at the iteration limit of {limit}: ", "no further progress: "))


def test_a_limit_that_cuts_short_is_named() -> None:
    problem = matrix_problem(SKEW, [700, 200, 100])
    for solver in ("interior point", "accelerated em"):
        estimate = mle(problem, solver=solver, max_iter=1)
        assert estimate.status.startswith("stopped at the iteration limit of 1: gap")
        assert not estimate.converged


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
@pytest.mark.parametrize("name", PLAIN)
def test_any_tolerance_is_honest(name: str, tol: float) -> None:
    for seed in range(4):
        problem = drawn(name, seed)
        estimate = mle(problem, tol=tol)
        assert check(problem, estimate, tol) == (estimate.gap <= tol)


@pytest.mark.parametrize("solver", [None, *SOLVERS[1:]])
def test_a_tolerance_out_of_reach_ends_without_a_crash(solver: str | None) -> None:
    for rows, counts in (
        ([[2 / 7, 5 / 7], [1.0, 0.0]], [6, 7]),
        ([[3 / 4, 1 / 4], [1 / 6, 5 / 6]], [4, 5]),
        (SKEW, [7, 2, 1]),
    ):
        problem = matrix_problem(rows, counts)
        estimate = mle(problem, tol=1e-18, solver=solver)
        check(problem, estimate, 1e-18)
        assert estimate.gap <= 1e-12 or solver == "accelerated em"


@pytest.mark.parametrize(("name", "seed"), [("one, two or three users", 155), ("zeros here and there", 215)])
def test_many_values_and_few_patterns_do_not_lose_the_maximum_again(name: str, seed: int) -> None:
    """Found among thousands: a last Newton step that rounding spoiled went far away from where it had been."""
    problem = drawn(name, seed)
    estimate = mle(problem, history=True)
    assert check(problem, estimate)
    assert estimate.history is not None
    gaps = [problem.gap(theta) for theta in estimate.history.probabilities]
    assert max(gaps[1:]) <= 10 * gaps[0]
    assert all(after <= 100 * before for before, after in pairwise(gaps))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("solver", [None, *SOLVERS[1:]])
@pytest.mark.parametrize("tol", [1e-9, 1e-18])
@pytest.mark.parametrize("name", [*PLAIN, "k-RR with values that nobody reported", "entries as small as 1e-300"])
def test_a_history_leads_from_the_start_to_the_answer(name: str, tol: float, solver: str | None) -> None:
    """Also where the tolerance is out of reach and the last steps lead nowhere."""
    for seed in range(3):
        problem = drawn(name, seed)
        estimate = mle(problem, history=True, solver=solver, tol=tol, max_iter=60)
        assert estimate.history is not None
        np.testing.assert_array_equal(estimate.history.probabilities[0], np.full(problem.size, 1 / problem.size))
        np.testing.assert_array_equal(estimate.history.probabilities[-1], estimate.probabilities)
        assert estimate.history.log_likelihood[-1] == estimate.log_likelihood
        assert len(estimate.history.log_likelihood) == len(estimate.history.probabilities)
        again = mle(problem, solver=solver, tol=tol, max_iter=60)
        assert again.history is None
        np.testing.assert_array_equal(again.probabilities, estimate.probabilities)  # looking on changes nothing


@pytest.mark.slow
@pytest.mark.parametrize("solver", [None, *SOLVERS])
@pytest.mark.parametrize("name", ["line with geometric noise", "equal rows", "k-RR with values that nobody reported"])
def test_any_start_leads_to_the_maximum(name: str, solver: str | None) -> None:
    if solver == "closed form" and not name.startswith("k-RR"):
        return
    rng = np.random.default_rng(1)
    for seed in range(4):
        problem = drawn(name, seed)
        uniform = mle(problem)
        for start in (rng.dirichlet(np.ones(problem.size)), 10.0 ** -rng.uniform(0, 200, problem.size)):
            estimate = mle(problem, start=start / start.sum(), solver=solver, history=True)
            assert estimate.settings["start"] == "given"
            assert estimate.history is not None
            np.testing.assert_allclose(estimate.history.probabilities[0], start / start.sum(), rtol=1e-12)
            check(problem, estimate)
            agree(problem, estimate, uniform)


# -- faults, planted --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["line with clamped noise", "map with geometric noise", "a milliard users", "RAPPOR"])
def test_mass_in_the_wrong_place_is_not_certified(name: str) -> None:
    """A ten-thousandth of the mass, from the largest value to another: no certificate, here or there."""
    noticed = 0
    for seed in range(GATE_SEEDS):
        problem = drawn(name, seed)
        estimate = mle(problem)
        moved = estimate.probabilities.copy()
        largest = int(np.argmax(moved))
        moved[largest] -= 1e-4
        moved[0 if largest else -1] += 1e-4
        noticed += problem.gap(moved) > 10 * TOL
        assert abs(hb.optimality_gap(problem.reports, moved) - problem.gap(moved)) <= 1e-12 + 0.01 * problem.gap(moved)
    assert noticed == GATE_SEEDS


def unsound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that is always given."""
    monkeypatch.setattr(Point, "gap", property(lambda point: 0.0))


def flattering(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate a hundred times too small."""
    honest = Point.gap.func  # type: ignore[attr-defined]
    monkeypatch.setattr(Point, "gap", property(lambda point: honest(point) / 100))


def unweighted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A likelihood that counts every pattern once."""
    monkeypatch.setattr(
        Likelihood, "of", classmethod(lambda cls, r: cls(r.channel, np.ones(r.weights.size), r.weights.size))
    )


def too_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise a little smaller than it is."""
    honest = hb.TruncatedGeometric.log_columns
    monkeypatch.setattr(
        hb.TruncatedGeometric, "log_columns", lambda self, codes, among=None: 1.001 * honest(self, codes, among)
    )


def off_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that lie where their neighbours should."""
    honest = hb.TruncatedGeometric.log_columns
    monkeypatch.setattr(hb.TruncatedGeometric, "log_columns", lambda *a, **k: np.roll(honest(*a, **k), 1, axis=0))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", [unsound, flattering, unweighted, too_quiet, off_by_one], ids=lambda f: f.__name__)
def test_a_planted_fault_is_caught(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the fault the study above finds nothing."""
    fault(monkeypatch)
    caught = 0
    for seed in range(10):
        problem = own.problem("line with clamped noise", seed)  # built anew: reports keep their channels
        try:
            check(problem, mle(problem))
        except AssertionError:
            caught += 1
    assert caught >= 9
