"""Single input: bounds on the probability of a wrong guess, against enumeration, simulation and closed forms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

import hubbub as hb
from hubbub.auditing.error_probability_bounds import MAX_MULTIPLICATIONS, error_probability
from hubbub.core.arrays import as_array
from strategies import examples, matrices

Floats = NDArray[np.float64]

RUNS = 4000  # simulated users for each case
ALLOWED = 4.0  # standard errors of the simulated share: one case in 30,000 fails by chance (the seeds are fixed)

FIVE = hb.Integers(0, 4)
SKEWED = hb.Matrix(
    hb.Categories(["a", "b", "c"]),
    ["u", "v", "w", "x"],
    [[0.5, 0.3, 0.2, 0.0], [0.2, 0.6, 0.1, 0.1], [0.1, 0.2, 0.3, 0.4]],
)
TWINS = hb.Matrix(
    hb.Integers(1, 4),
    ["u", "v", "w"],
    [[0.6, 0.3, 0.1], [0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]],
)


def chance_right(logs: Floats, position: int) -> Floats:
    """Return how likely the guess is right, given log-likelihoods (values first): uniform among the likeliest."""
    best = logs >= logs.max(axis=0) - 1e-9
    right: Floats = best[position] / best.sum(axis=0)
    return right


def simulated(mechanism: hb.Mechanism, position: int, count: int, seed: int) -> tuple[float, float]:
    """Return the share of wrong guesses among RUNS users, and its standard error."""
    value = mechanism.domain.labels[position]
    outputs = mechanism.privatize(as_array([value] * (RUNS * count)), rng=seed)
    logs = mechanism.channel(outputs).log_dense().reshape(len(mechanism.domain), RUNS, count).sum(axis=2)
    wrong = 1.0 - chance_right(logs, position)
    return float(wrong.mean()), float(wrong.std() / math.sqrt(RUNS))


def enumerated(table: Floats, position: int, count: int) -> float:
    """Return the exact probability of a wrong guess, over all sequences of `count` outputs."""
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    error = 0.0
    for sequence in itertools.product(np.flatnonzero(table[position] > 0), repeat=count):
        total = logs[:, sequence].sum(axis=1)
        error += float(np.exp(total[position])) * (1.0 - float(chance_right(total, position)))
    return error


def coefficient(first: Floats, second: Floats) -> float:
    """Return inf_s sum a^(1-s) a'^s by a search for the minimum, ends included."""
    both = (first > 0) & (second > 0)
    if not both.any():
        return 0.0
    a, b = np.log(first[both]), np.log(second[both])

    def value(s: float) -> float:
        return float(np.exp((1 - s) * a + s * b).sum())

    return min(float(minimize_scalar(value, bounds=(0, 1), method="bounded").fun), value(0.0), value(1.0))


# -- the guess itself -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", ["best", "union", "types"])
@pytest.mark.parametrize("count", [1, 2, 4, 6])
def test_exact_errors_stay_below_the_bounds(count: int, bound: str) -> None:
    two = hb.Matrix(hb.Categories(["a", "b"]), [0, 1, 2], [[0.7, 0.2, 0.1], [0.2, 0.3, 0.5]])
    for mechanism in (two, SKEWED, TWINS):
        errors = [enumerated(mechanism.matrix(), place, count) for place in range(len(mechanism.domain))]
        for label, error in zip(mechanism.domain.labels.tolist(), errors, strict=True):
            assert error <= error_probability(mechanism, count, value=label, bound=bound) + 1e-12
        assert max(errors) <= error_probability(mechanism, count, bound=bound) + 1e-12


def test_the_union_bound_has_the_right_exponent() -> None:
    """Chernoff: log P(error) / k tends to log M. By types of 3 outputs, exactly, up to 300 reports."""
    table = np.array([[0.5, 0.3, 0.2], [0.35, 0.25, 0.4]])
    mechanism = hb.Matrix(hb.Categories(["a", "b"]), [0, 1, 2], table)
    count = 300
    types, ways = types_of_three(count)
    logs = np.log(table) @ types
    exact = float(np.exp(ways + logs[0]) @ (1.0 - chance_right(logs, 0)))
    bound = error_probability(mechanism, count, value="a", bound="union")
    assert exact <= bound <= 20 * exact  # the bound lacks the factor of order 1 / sqrt(k), and nothing else
    assert math.log(bound) == pytest.approx(count * math.log(coefficient(table[0], table[1])), rel=0.01)


SIMULATED: list[tuple[str, hb.Mechanism, list[int]]] = [
    ("k-RR", hb.RandomizedResponse(FIVE, 1.5), [1, 5, 20, 60]),
    ("truncated geometric", hb.TruncatedGeometric(FIVE, 0.8), [1, 5, 20, 60]),
    ("geometric", hb.Geometric(FIVE, 0.8), [5, 20, 60]),
    ("rappor", hb.Rappor(FIVE, 2.0), [5, 20, 40]),
    ("optimized unary", hb.OptimizedUnary(FIVE, 2.0), [5, 20, 40]),
    ("local hashing", hb.LocalHashing(FIVE, 2.0), [5, 20, 40]),
    ("subset selection", hb.SubsetSelection(FIVE, 1.0, 2), [5, 20, 40]),
    ("planar", hb.PlanarGeometric(hb.Grid(3, 2, cell=1.0), 1.0), [10, 40]),
    ("planar, endless", hb.PlanarGeometric(hb.Grid(3, 2, cell=1.0), 1.0, truncated=False), [10, 40]),
    ("cloaking", hb.Cloaking(FIVE, ["low", "low", "mid", "high", "high"]), [1, 3]),
    ("skewed", SKEWED, [1, 5, 20, 60]),
    ("twins", TWINS, [1, 5, 20]),
]


@pytest.mark.parametrize(
    ("name", "mechanism", "counts"),
    [
        pytest.param(*case, id=case[0], marks=[pytest.mark.slow] if place % 4 else [])
        for place, case in enumerate(SIMULATED)
    ],
)
def test_simulated_errors_stay_below_the_bound(name: str, mechanism: hb.Mechanism, counts: list[int]) -> None:
    size = len(mechanism.domain)
    for count in counts:
        worst = error_probability(mechanism, count)
        for position in (0, size // 2, size - 1):
            bound = error_probability(mechanism, count, value=mechanism.domain.labels[position])
            share, error = simulated(mechanism, position, count, seed=100 * count + position)
            assert share <= bound + ALLOWED * error + 1e-9, (count, position)
            assert bound <= worst + 1e-12


def types_of_three(count: int) -> tuple[NDArray[np.int64], Floats]:
    """Return all ways to split `count` outputs among three, and the log of how many sequences have each."""
    first, second = np.meshgrid(np.arange(count + 1), np.arange(count + 1), indexing="ij")
    kept = first + second <= count
    types = np.stack([first[kept], second[kept], count - (first + second)[kept]])
    factorials = np.array([math.lgamma(number + 1) for number in range(count + 1)])
    return types, factorials[count] - factorials[types].sum(axis=0)


@pytest.mark.parametrize("count", [3, 10, 40])
def test_the_papers_convergence_rate(count: int) -> None:
    """Eq. conv_rate: P(KL(q || a) > delta) <= (1 + k)^|Z| 2^(-k delta), KL in bits.

    Exactly, over all types, where the right side is below 1 too; and the exact probabilities are those of RUNS
    simulated users, within ALLOWED standard errors.
    """
    row = np.array([0.7, 0.2, 0.1])
    mechanism = hb.Matrix(hb.Categories(["a", "b"]), [0, 1, 2], [row, row[::-1]])
    sent = mechanism.privatize(["a"] * (RUNS * count), rng=count).reshape(RUNS, count)
    simulated_counts = np.stack([(sent == output).sum(axis=1) for output in range(3)])
    types, ways = types_of_three(count)

    def divergence(counts: NDArray[np.int64]) -> Floats:
        shares = counts / count
        with np.errstate(divide="ignore", invalid="ignore"):
            terms: Floats = np.where(shares > 0, shares * np.log2(shares / row[:, None]), 0.0)
        return np.asarray(terms.sum(axis=0))

    chances = np.exp(ways + np.log(row) @ types)
    assert chances.sum() == pytest.approx(1.0)
    informative = 0
    for delta in np.linspace(0.0, 3.3, 67):
        exact = float(chances[divergence(types) > delta].sum())
        limit = (1 + count) ** 3 * 2.0 ** (-count * delta)
        assert exact <= limit
        informative += limit < 1 and exact > 0
        share = float((divergence(simulated_counts) > delta).mean())
        assert abs(share - exact) <= ALLOWED * math.sqrt(exact * max(0.0, 1 - exact) / RUNS) + 1 / RUNS
    assert informative > 10


# -- the bounds -------------------------------------------------------------------------------------------


def test_the_bounds_are_their_formulas() -> None:
    table = SKEWED.matrix()
    alike = np.array([[coefficient(a, b) for b in table] for a in table])
    others = ~np.eye(3, dtype=bool)
    for position, label in enumerate(SKEWED.domain.labels.tolist()):
        row = alike[position][others[position]]
        for count in (50, 200):
            union = error_probability(SKEWED, count, value=label, bound="union")
            types = error_probability(SKEWED, count, value=label, bound="types")
            assert math.log(union) == pytest.approx(math.log((row**count).sum()), rel=0.005)
            information = -math.log2(row.max())
            assert math.log2(types) == pytest.approx(
                min(0.0, 4 * math.log2(1 + count) - count * information), rel=0.005
            )
            assert error_probability(SKEWED, count, value=label) == min(union, types)


@given(mechanism=matrices(), count=st.integers(1, 50))
@examples(60)
def test_drawn_matrices(mechanism: hb.Matrix, count: int) -> None:
    """With zeros, equal rows and disjoint rows: the grid's exponents are those of a search, to one percent."""
    table = mechanism.matrix()
    for position, label in enumerate(mechanism.domain.labels.tolist()):
        equal = [bool(np.abs(row - table[position]).max() < 1e-12) for row in table]
        others = np.unique(table[~np.array(equal)].round(12), axis=0)
        row = np.array([coefficient(table[position], other) for other in others])
        twins = sum(equal)
        low, high = (float(min(1.0, (row**power).sum())) for power in (count, 0.99 * count))
        bound = error_probability(mechanism, count, value=label, bound="union")
        assert (twins - 1 + low) / twins - 1e-9 <= bound <= (twins - 1 + high) / twins + 1e-9
        if len(table) == 2 and table.shape[1] ** min(count, 3) <= 300:
            assert (
                enumerated(table, position, min(count, 3))
                <= error_probability(mechanism, min(count, 3), value=label) + 1e-12
            )


def test_bounds_fall_with_more_reports_and_never_reach_0() -> None:
    counts = np.array([1, 10, 100, 1_000, 10_000, 100_000, 1_000_000])
    for mechanism in (hb.RandomizedResponse(FIVE, 1.0), hb.TruncatedGeometric(FIVE, 0.5), SKEWED):
        for bound in ("union", "types", "best"):
            errors = np.asarray(error_probability(mechanism, counts, bound=bound))
            assert errors.shape == counts.shape
            assert (np.diff(errors) <= 0).all()
            assert 0.0 < errors[-1] < 1e-200  # possible, however unlikely
            assert errors.max() <= 1.0
            assert errors[3] == error_probability(mechanism, 1_000, bound=bound)


def test_rows_without_common_outputs_are_told_apart() -> None:
    certain = hb.Matrix(hb.Categories(["a", "b"]), [0, 1, 2], [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    for bound in ("union", "types", "best"):
        assert error_probability(certain, 1, bound=bound) == 0.0


def test_some_common_outputs() -> None:
    """An output that only x can send gives it away: what remains is all k outputs being common, s at its end."""
    partly = hb.Matrix(hb.Categories(["a", "b"]), [0, 1], [[0.5, 0.5], [1.0, 0.0]])
    assert error_probability(partly, 3, bound="union") == pytest.approx(0.5**3, rel=1e-9)
    assert enumerated(partly.matrix(), 0, 3) == pytest.approx(0.5**3)


def test_equal_rows_leave_a_constant() -> None:
    assert error_probability(TWINS, 1_000) == pytest.approx(2 / 3)
    assert error_probability(TWINS, 1_000, value=3) < 1e-9
    share, error = simulated(TWINS, 1, 30, seed=5)
    assert abs(share - 2 / 3) <= ALLOWED * error + 1e-3
    # Rounding must not tell twins apart: these rows differ in the last digits.
    third = np.array([0.1 * 3, 0.7]) / (0.1 * 3 + 0.7)
    close = hb.Matrix(hb.Categories(["a", "b"]), [0, 1], np.stack([np.array([0.3, 0.7]), third]))
    assert close.matrix()[0, 0] != close.matrix()[1, 0]
    assert error_probability(close, 10) == pytest.approx(0.5)
    # What differs beyond the accuracy of a table is not equal, and hardly told apart.
    apart = hb.Matrix(hb.Categories(["a", "b"]), [0, 1], [[0.3, 0.7], [0.3 + 1e-10, 0.7 - 1e-10]])
    assert error_probability(apart, 10) == 1.0
    cloaked = hb.Cloaking(FIVE, ["low", "low", "mid", "high", "high"])
    assert error_probability(cloaked, 1) == 0.5
    assert error_probability(cloaked, 1, value=2) == 0.0


def test_twins_of_others_count_once() -> None:
    shared = hb.Matrix(hb.Integers(0, 2), [0, 1], [[0.9, 0.1], [0.2, 0.8], [0.2, 0.8]])
    pair = hb.Matrix(hb.Integers(0, 1), [0, 1], [[0.9, 0.1], [0.2, 0.8]])
    assert error_probability(shared, 10, value=0) == pytest.approx(error_probability(pair, 10, value=0), rel=1e-12)


# -- closed forms -----------------------------------------------------------------------------------------

SMALL = [
    hb.RandomizedResponse(FIVE, 1.0),
    hb.RandomizedResponse(hb.Integers(0, 1), 3.0),
    hb.RandomizedResponse(FIVE, 0.01),
    hb.RandomizedResponse(FIVE, 20.0),
    hb.Rappor(FIVE, 1.0),
    hb.Rappor(hb.Integers(0, 5), 4.0),
    hb.OptimizedUnary(FIVE, 1.5),
    hb.SubsetSelection(FIVE, 0.7, 2),
    hb.SubsetSelection(FIVE, 3.0, 4),
    hb.SubsetSelection(hb.Integers(0, 6), 1.0, 1),
]


@pytest.mark.parametrize("mechanism", SMALL, ids=lambda mechanism: type(mechanism).__name__)
@pytest.mark.parametrize("bound", ["union", "types"])
def test_closed_forms_agree_with_the_matrix(mechanism: hb.Mechanism, bound: str) -> None:
    table = mechanism.matrix()
    explicit = hb.Matrix(mechanism.domain, list(range(table.shape[1])), table)
    counts = [1, 10, 100, 2_000]
    expected = error_probability(explicit, counts, bound=bound)
    assert error_probability(mechanism, counts, bound=bound) == pytest.approx(expected, rel=1e-8, abs=1e-290)


def test_hashing_is_the_mean_over_seeds() -> None:
    mechanism = hb.LocalHashing(FIVE, 1.5)
    seeds = 20_000
    roots = [np.sqrt(mechanism.matrix(seed)[[0, 3]]) for seed in range(seeds)]
    alike = np.array([float(root[0] @ root[1]) for root in roots])
    log = math.log(error_probability(mechanism, 200, bound="union") / 4) / 200
    assert math.exp(log) == pytest.approx(alike.mean(), abs=ALLOWED * alike.std() / math.sqrt(seeds))


def test_geometric_noise_is_that_of_the_clamped_outputs() -> None:
    """The explicit matrix over all integers within reach has the same coefficients."""
    mechanism = hb.Geometric(FIVE, 0.7)
    outputs = mechanism.outputs
    assert outputs is not None
    listed = hb.Matrix(FIVE, outputs, mechanism.matrix())
    counts = [1, 20, 100]
    expected = error_probability(listed, counts, bound="union")
    assert error_probability(mechanism, counts, bound="union") == pytest.approx(expected, rel=1e-6)
    clamped = error_probability(hb.TruncatedGeometric(FIVE, 0.7), [2_000], bound="types")
    assert clamped < 1e-3
    assert error_probability(mechanism, [2_000], bound="types") == clamped  # |Z| is that of the clamped outputs


def test_endless_planar_noise_is_close_to_its_listed_part() -> None:
    grid = hb.Grid(3, 2, cell=1.0)
    endless = hb.PlanarGeometric(grid, 2.0, truncated=False)
    outputs = endless.outputs
    assert outputs is not None
    table = endless.matrix()
    listed = hb.Matrix(grid, list(range(len(outputs))), table / table.sum(axis=1, keepdims=True))
    expected = error_probability(listed, 50, bound="union")
    assert expected <= error_probability(endless, 50, bound="union") <= expected * (1 + 1e-9)
    assert error_probability(endless, 50, bound="types") == 1.0


@pytest.mark.parametrize(
    "build",
    [
        lambda domain: hb.RandomizedResponse(domain, 8.0),
        lambda domain: hb.Rappor(domain, 8.0),
        lambda domain: hb.OptimizedUnary(domain, 8.0),
        lambda domain: hb.LocalHashing(domain, 8.0),
        lambda domain: hb.SubsetSelection(domain, 8.0),
        lambda domain: hb.SubsetSelection(domain, 0.1),
    ],
)
def test_huge_domains_have_closed_forms(build: Callable[[hb.Domain], hb.Mechanism]) -> None:
    mechanism = build(hb.Integers(1, 1_000_000))
    errors = np.asarray(error_probability(mechanism, [1, 100_000]))
    assert errors[0] == 1.0
    assert errors[1] < 1e-20


def test_extreme_epsilons() -> None:
    for epsilon in (1e-12, 500.0):
        for build in (hb.RandomizedResponse, hb.Rappor, hb.OptimizedUnary, hb.LocalHashing, hb.SubsetSelection):
            error = error_probability(build(FIVE, epsilon), 3)
            assert 0.0 < error <= 1.0
            # A fair coin for the own bit: all three may fall to 0, and then four others are as likely.
            fair = 4 * 0.5**3 if build is hb.OptimizedUnary else 0.0
            assert error == pytest.approx(1.0 if epsilon < 1 else fair, rel=1e-12, abs=1e-20)  # 2^31 buckets at most
    # Probabilities of e^-2000 are possible all the same.
    assert error_probability(hb.TruncatedGeometric(hb.Integers(0, 399), 5.0), 3, value=0) > 1e-9


def test_progress_is_told() -> None:
    stages = list(error_probability.steps(hb.TruncatedGeometric(FIVE, 1.0), 5))
    assert [stage.done for stage in stages] == list(range(stages[0].total))


# -- mistakes ---------------------------------------------------------------------------------------------

MISTAKES: list[tuple[Callable[[], object], type[hb.HubbubError], str, str]] = [
    (lambda: error_probability("k-RR", 3), hb.SettingError, "error_probability(mechanism)", "'k-RR'"),  # type: ignore[arg-type]
    (lambda: error_probability(SKEWED, 0), hb.SettingError, "error_probability(reports_per_user)", "0"),
    (lambda: error_probability(SKEWED, -1), hb.SettingError, "error_probability(reports_per_user)", "-1"),
    (lambda: error_probability(SKEWED, [1, -2, 3]), hb.SettingError, "error_probability(reports_per_user)", "-2"),
    (
        lambda: error_probability(SKEWED, 1.5),  # type: ignore[arg-type]
        hb.SettingError,
        "error_probability(reports_per_user), position 0",
        "1.5",
    ),
    (
        lambda: error_probability(SKEWED, True),
        hb.SettingError,
        "error_probability(reports_per_user), position 0",
        "True",
    ),
    (
        lambda: error_probability(SKEWED, "two"),  # type: ignore[arg-type]
        hb.SettingError,
        "error_probability(reports_per_user), position 0",
        "'two'",
    ),
    (lambda: error_probability(SKEWED, 1, bound="tight"), hb.SettingError, "error_probability(bound=)", "'tight'"),
    (lambda: error_probability(SKEWED, 1, bound=["best"]), hb.SettingError, "error_probability(bound=)", "['best']"),  # type: ignore[arg-type]
    (lambda: error_probability(SKEWED, 1, value="z"), hb.SettingError, "error_probability(value=)", "'z'"),
    (lambda: error_probability(SKEWED, 1, value=["a"]), hb.SettingError, "error_probability(value=)", "['a']"),
    (
        lambda: error_probability(hb.TruncatedGeometric(hb.Integers(0, 4_999), 1.0), 1),
        hb.MechanismError,
        "error_probability(mechanism)",
        "5,000 values x 5,000 outputs",
    ),
    (
        lambda: error_probability(hb.TruncatedGeometric(hb.Integers(0, 9_999), 1.0), 1, value=3),
        hb.MechanismError,
        "error_probability(mechanism)",
        "10,000 values x 10,000 outputs",
    ),
    (
        lambda: error_probability(hb.PlanarGeometric(hb.Grid(30, 30), 0.1, truncated=False), 1),
        hb.MechanismError,
        "error_probability(mechanism)",
        "PlanarGeometric",
    ),
]


@pytest.mark.parametrize(("call", "kind", "where", "got"), MISTAKES, ids=[case[2] + case[3] for case in MISTAKES])
def test_mistakes(call: Callable[[], object], kind: type[hb.HubbubError], where: str, got: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert type(error) is kind
    assert (error.where, error.got) == (where, got)
    assert error.what
    assert error.expected
    assert error.remedy


def test_one_value_is_compared_where_all_would_take_too_long() -> None:
    long = hb.TruncatedGeometric(hb.Integers(0, 2_099), 1.0)
    assert len(long.domain) ** 3 > MAX_MULTIPLICATIONS
    with pytest.raises(hb.MechanismError, match="value="):
        error_probability(long, 1_000)
    assert error_probability(long, 1_000, value=3) < 1e-9
