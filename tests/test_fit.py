"""Tests of the fit: laws against enumeration, alarms on clean reports, what is found and what cannot be seen."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import hubbub as hb
import strategies as own
from hubbub.core.progress import Progress, finish
from hubbub.goodness_of_fit import ancillary_statistics as laws
from hubbub.goodness_of_fit import partial_tests as fit
from hubbub.goodness_of_fit.api import fit_test
from hubbub.goodness_of_fit.count_tables import MIN_CELL_USERS, BitMoments, CountTable, pools
from hubbub.goodness_of_fit.evidence import collect_evidence, moments_of
from hubbub.goodness_of_fit.reference_distribution import plausible_distribution, tail_probability
from hubbub.mechanisms.local_hashing import hash_v1
from hubbub.reports import Joint, Singles
from hubbub.reports.reports import assemble

Floats = NDArray[np.float64]

TWENTY = hb.Integers(0, 19)
KRR = hb.RandomizedResponse(TWENTY, 1.0)
OUE = hb.OptimizedUnary(TWENTY, 1.0)
OLH = hb.LocalHashing(TWENTY, 1.0)
ABC = hb.Categories(["a", "b", "c"])
# Not symmetric, more outputs than values: three degrees of freedom remain.
WIDE = hb.Matrix(
    ABC,
    list("pqrstu"),
    [[0.4, 0.2, 0.1, 0.1, 0.1, 0.1], [0.1, 0.3, 0.3, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.2, 0.2, 0.3]],
)
MANY = 100_000
FAKES = MANY // 100


def reports_of(mechanism: hb.Mechanism, positions: Any, rng: np.random.Generator) -> hb.Reports:
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(mechanism.domain.labels[positions], rng=rng))


def several(mechanisms: list[hb.Mechanism], positions: Any, rng: np.random.Generator, fakes: int = 0) -> hb.Reports:
    """One output of every mechanism for each user; the first users send value 7 each time."""
    encoded: dict[hb.Mechanism, Any] = {}
    users: dict[hb.Mechanism, Any] = {}
    domain = mechanisms[0].domain
    for mechanism in mechanisms:
        codes = mechanism.output_space.encode(mechanism.privatize(domain.labels[positions], rng=rng))
        if fakes:
            codes[:fakes] = 7
        encoded[mechanism] = np.concatenate([encoded[mechanism], codes]) if mechanism in encoded else codes
        number = np.arange(positions.size)
        users[mechanism] = np.concatenate([users[mechanism], number]) if mechanism in users else number
    return assemble(domain, encoded, users, positions.size)


def within(count: int, runs: int, level: float, errors: float = 4.0) -> bool:
    """Whether so many alarms can come from that level, or a lower one: four standard errors, 3 in 100,000."""
    return count <= runs * level + errors * math.sqrt(runs * level * (1 - level))


# -- known laws, by enumeration ------------------------------------------------------------------------------


def listed_bits(mechanism: Any) -> tuple[Floats, Floats]:
    """All outputs as rows of bits, and their probabilities for each value."""
    outputs = mechanism.outputs
    return np.unpackbits(outputs, axis=1, count=len(mechanism.domain)).astype(np.float64), mechanism.matrix()


SETS = [
    hb.Rappor(hb.Integers(0, 9), 1.3),
    hb.OptimizedUnary(hb.Integers(0, 10), 0.7),
    hb.SubsetSelection(hb.Integers(0, 13), 0.6, size=5),
]


@pytest.mark.parametrize("mechanism", SETS[:2], ids=lambda mechanism: type(mechanism).__name__)
def test_the_number_of_ones_has_the_law_of_all_outputs_whatever_the_value(mechanism: Any) -> None:
    bits, matrix = listed_bits(mechanism)
    law = laws.set_size_law(mechanism, laws.Outputs(mechanism.outputs, np.ones(len(bits))))
    assert law is not None
    for row in matrix:
        np.testing.assert_allclose(
            np.bincount(bits.sum(axis=1).astype(int), weights=row), law.probabilities, atol=1e-12
        )
    np.testing.assert_array_equal(law.counts, np.bincount(bits.sum(axis=1).astype(int)))


def test_the_size_of_hashed_sets_has_its_law_over_random_seeds() -> None:
    mechanism, rng = hb.LocalHashing(hb.Integers(0, 6), 1.0), np.random.default_rng(1)
    codes = mechanism.output_space.encode(mechanism.privatize(np.full(200_000, 3), rng=rng))
    law = laws.set_size_law(mechanism, laws.Outputs(codes, np.ones(len(codes))))
    assert law is not None
    expected = law.probabilities * len(codes)
    assert (
        stats.chisquare(
            law.counts[expected > 5],
            expected[expected > 5] * (law.counts[expected > 5].sum() / expected[expected > 5].sum()),
        ).pvalue
        > 1e-4
    )


@pytest.mark.parametrize("mechanism", SETS, ids=lambda mechanism: type(mechanism).__name__)
def test_moments_are_those_of_all_outputs(mechanism: Any) -> None:
    bits, matrix = listed_bits(mechanism)
    size = len(mechanism.domain)
    theta = np.random.default_rng(2).dirichlet(np.ones(size))
    ones = mechanism.support_counts(mechanism.outputs, np.ones(len(bits)))
    moments = moments_of(mechanism, ones, len(bits), None)
    probabilities = theta @ matrix
    mean = probabilities @ bits
    np.testing.assert_allclose(theta @ moments.probabilities, mean, atol=1e-12)
    np.testing.assert_allclose(
        moments._covariance(theta), (bits.T * probabilities) @ bits - np.outer(mean, mean), atol=1e-12
    )
    np.testing.assert_array_equal(moments.counts, bits.sum(axis=0))


def test_moments_of_a_restricted_domain() -> None:
    mechanism, kept = SETS[0], np.array([1, 4, 8])
    bits, matrix = listed_bits(mechanism)
    theta = np.array([0.2, 0.5, 0.3])
    moments = moments_of(mechanism, np.zeros(10), 1, kept)  # type: ignore[arg-type]
    probabilities = theta @ matrix[kept]
    mean = probabilities @ bits
    np.testing.assert_allclose(theta @ moments.probabilities, mean, atol=1e-12)
    np.testing.assert_allclose(
        moments._covariance(theta), (bits.T * probabilities) @ bits - np.outer(mean, mean), atol=1e-12
    )


@pytest.mark.parametrize("mechanism", SETS, ids=lambda mechanism: type(mechanism).__name__)
def test_probabilities_of_equal_reports_are_the_largest_over_all_distributions(mechanism: Any) -> None:
    matrix = mechanism.matrix()
    repeats = laws.repeats_of(mechanism, laws.Outputs(mechanism.outputs, np.ones(matrix.shape[1])))
    assert repeats is not None
    assert repeats.two == pytest.approx((matrix**2).sum(axis=1).max(), rel=1e-10)
    assert repeats.three == pytest.approx((matrix**3).sum(axis=1).max(), rel=1e-10)
    mixed = np.random.default_rng(3).dirichlet(np.ones(matrix.shape[0])) @ matrix
    assert (mixed**2).sum() <= repeats.two
    assert (mixed**3).sum() <= repeats.three
    assert repeats.pairs == 0


def test_pairs_of_equal_reports_are_counted() -> None:
    rows = np.zeros((6, 20), dtype=bool)
    rows[[0, 1, 2], 5] = True  # three pairs
    rows[[3, 4], 6] = True  # one
    found = collect_evidence(hb.Reports.from_outputs(OUE, rows), np.random.default_rng(0)).repeats[0]
    assert (found.pairs, found.most) == (4, 3)
    assert found.text == "00000100000000000000"


# -- tables --------------------------------------------------------------------------------------------------


@own.examples(200)
@given(st.lists(st.floats(0, 30), min_size=1, max_size=40))
def test_pools_hold_enough_and_leave_large_cells_alone(expected: list[float]) -> None:
    numbers = np.array(expected)
    pool = pools(numbers)
    sums = np.bincount(pool, weights=numbers)
    assert set(pool.tolist()) == set(range(sums.size))
    if numbers.sum() >= MIN_CELL_USERS:
        assert sums.min() >= MIN_CELL_USERS
    else:
        assert sums.size == 1
    for cell in np.flatnonzero(numbers >= MIN_CELL_USERS):
        mates = np.flatnonzero(pool == pool[cell])
        assert (numbers[mates[mates != cell]] < MIN_CELL_USERS).all()


@pytest.mark.parametrize(
    "mechanism",
    [
        KRR,
        WIDE,
        hb.Geometric(hb.Integers(-3, 8), 0.4),
        hb.TruncatedGeometric(TWENTY, 0.5),
        hb.PlanarGeometric(hb.Grid(4, 3, cell=0.5), 1.5, truncated=False),
        hb.PlanarGeometric(hb.Grid(4, 3, cell=0.5), 1.5),
        hb.Rappor(hb.Integers(0, 4), 1.0),
        hb.SubsetSelection(hb.Integers(0, 6), 1.0, size=2),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_tables_hold_all_outputs(mechanism: hb.Mechanism) -> None:
    rng = np.random.default_rng(4)
    positions = rng.integers(0, len(mechanism.domain), 3_000)
    for reports in (
        reports_of(mechanism, positions, rng),
        reports_of(mechanism, positions, rng).restrict(mechanism.domain.labels[1:3]),
    ):
        (table,) = collect_evidence(reports, rng).tables
        assert table.probabilities.shape[0] == len(reports.domain)
        np.testing.assert_allclose(table.probabilities.sum(axis=1), 1.0, atol=1e-9)
        assert table.counts.sum() == table.users == 3_000
        assert isinstance(table.cell_text(0), str)


def test_outputs_far_outside_are_counted_in_the_tails() -> None:
    line = hb.Geometric(hb.Integers(0, 9), 1.0)
    (table,) = collect_evidence(hb.Reports.from_outputs(line, [-4_000, -90, 3, 10**9]), np.random.default_rng(0)).tables
    assert table.counts[[0, -1]].tolist() == [2.0, 1.0]
    plane = hb.PlanarGeometric(hb.Grid(3, 3, cell=1.0), 1.0, truncated=False)
    (table,) = collect_evidence(hb.Reports.from_outputs(plane, [[1, 1], [9_999, 0]]), np.random.default_rng(0)).tables
    assert table.counts[-1] == 1
    assert table.cell_text(table.counts.size - 1) == "far away"


def test_pairs_of_one_mechanism_have_no_order_and_probabilities_of_products() -> None:
    matrix = WIDE.matrix()
    users = [[(WIDE, "p"), (WIDE, "q")], [(WIDE, "q"), (WIDE, "p")], [(WIDE, "u"), (WIDE, "u")]]
    (table,) = collect_evidence(hb.Reports.from_users(users), np.random.default_rng(0)).tables
    assert table.probabilities.shape == (3, 21)
    texts = [table.cell_text(cell) for cell in range(21)]
    assert table.counts[texts.index("p and q")] == 2
    assert table.counts[texts.index("u and u")] == 1
    np.testing.assert_allclose(table.probabilities[:, texts.index("p and q")], 2 * matrix[:, 0] * matrix[:, 1])
    np.testing.assert_allclose(table.probabilities[:, texts.index("u and u")], matrix[:, 5] ** 2)
    np.testing.assert_allclose(table.probabilities.sum(axis=1), 1.0)


def test_pairs_of_two_mechanisms_and_of_many_outputs() -> None:
    rng = np.random.default_rng(5)
    line = hb.Integers(0, 149)
    pair: list[hb.Mechanism] = [hb.RandomizedResponse(line, 1.0), hb.TruncatedGeometric(line, 0.2)]
    reports = several(pair, rng.integers(0, 150, 2_000), rng)
    (table,) = collect_evidence(reports, rng).tables
    assert table.probabilities.shape[1] <= 100 * 100
    np.testing.assert_allclose(table.probabilities.sum(axis=1), 1.0, atol=1e-9)
    assert table.counts.sum() == 2_000
    exact = pair[0].matrix()[7], pair[1].matrix()[7]
    # Groups are joined outputs: each side's sums over groups are sums of the mechanism's own columns.
    assert table.probabilities[7].max() <= exact[0].sum() * exact[1].sum()


def test_two_of_three_outputs_are_drawn_evenly_whatever_their_order() -> None:
    users = [[(WIDE, "u"), (WIDE, "p"), (WIDE, "u")]] * 6_000
    (table,) = collect_evidence(hb.Reports.from_users(users), np.random.default_rng(6)).tables
    texts = [table.cell_text(cell) for cell in range(21)]
    assert stats.binomtest(int(table.counts[texts.index("p and u")]), 6_000, 2 / 3).pvalue > 1e-4
    assert table.counts[texts.index("p and u")] + table.counts[texts.index("u and u")] == 6_000


def test_of_two_sets_one_is_drawn_evenly_whatever_their_order() -> None:
    low, high = np.zeros(20, dtype=bool), np.zeros(20, dtype=bool)
    low[19] = high[0] = True
    users = [[(OUE, low), (OUE, high)]] * 4_000
    evidence = collect_evidence(hb.Reports.from_users(users), np.random.default_rng(7))
    (moments,) = evidence.tables
    assert isinstance(moments, BitMoments)
    assert moments.users == 4_000
    assert stats.binomtest(int(moments.counts[0]), 4_000, 0.5).pvalue > 1e-4
    assert evidence.laws[0].counts[1] == 8_000  # all outputs follow the law of the number of ones


def test_outputs_that_can_be_listed_are_preferred() -> None:
    rng = np.random.default_rng(8)
    evidence = collect_evidence(several([OUE, KRR], rng.integers(0, 20, 500), rng), rng)
    (table,) = evidence.tables
    assert type(table) is CountTable
    assert table.probabilities.shape == (20, 20)
    assert evidence.laws[0].counts.sum() == 500


# -- the statistic and its reference -------------------------------------------------------------------------


def test_the_statistic_is_the_least_chi_square_over_distributions() -> None:
    counts = np.array([900, 400, 650, 300, 450, 300])
    fit_result = fit_test(hb.Reports.from_counts(WIDE, counts))
    theta_hat = hb.estimate(hb.Reports.from_counts(WIDE, counts), "mle").probabilities
    weights = 3_000 * theta_hat @ WIDE.matrix()
    cp: Any = importlib.import_module("cvxpy")  # slow to load
    theta = cp.Variable(3, nonneg=True)
    misfit = cp.sum_squares(cp.multiply(counts - 3_000 * (WIDE.matrix().T @ theta), 1 / np.sqrt(weights)))
    least = cp.Problem(cp.Minimize(misfit), [cp.sum(theta) == 1]).solve(solver="CLARABEL")
    assert fit_result.statistic == pytest.approx(least, rel=1e-4)
    assert fit_result.degrees == 3
    assert fit_result.p_value == pytest.approx(
        stats.chi2.sf(least, 3), rel=0.02
    )  # the truth is inside: signs add nothing


def test_the_statistic_of_mixed_evidence_has_one_distribution_for_all() -> None:
    # Weights by users, and a starting point that is not the minimum: an independent solver must find the same.
    rng = np.random.default_rng(26)
    domain = hb.Integers(0, 11)
    mechanisms = hb.RandomizedResponse(domain, 1.0), hb.OptimizedUnary(domain, 3.0)
    few, many = (reports_of(m, rng.choice([1, 2, 3], n), rng) for m, n in zip(mechanisms, (800, 5_000), strict=True))
    reports = few + many
    tables = collect_evidence(reports, rng).tables
    base = fit._maximum(tables)
    cp: Any = importlib.import_module("cvxpy")  # slow to load
    theta, misfit = cp.Variable(12, nonneg=True), 0.0
    for table in tables:
        mean = base @ table.probabilities
        covariance = (
            table._covariance(base) if isinstance(table, BitMoments) else np.diag(mean) - np.outer(mean, mean)
        ) / table.users
        sizes, axes = np.linalg.eigh(covariance)
        root = axes[:, sizes > 1e-12] / np.sqrt(sizes[sizes > 1e-12])
        misfit = misfit + cp.sum_squares(root.T @ (table.counts / table.users - table.probabilities.T @ theta))
    least = cp.Problem(cp.Minimize(misfit), [cp.sum(theta) == 1]).solve(solver="CLARABEL")
    part = next(part for part in fit_test(reports).parts if part.name == "shares of outputs")
    assert part.statistic == pytest.approx(least, rel=1e-4)
    assert part.degrees == 11 + 12 - 11


@pytest.mark.slow
def test_p_values_of_true_zeros_are_uniform() -> None:
    # A conservative test would have too few small p-values, a wrong one too many: both ends are held to four errors.
    # Where the estimate's own positive shares were taken for true ones, a quarter would lie below 0.1.
    runs, values = 120, []
    for number in range(runs):
        rng = np.random.default_rng([9, number])
        values.append(fit_test(reports_of(KRR, rng.choice([1, 4], 5_000), rng)).p_value)
    numbers = np.array(values, dtype=np.float64)
    for level in (0.1, 0.5):
        count = int((numbers <= level).sum())
        assert within(count, runs, level)
        assert within(runs - count, runs, 1 - level)


@pytest.mark.slow
@pytest.mark.parametrize("truth", ["inside", "two values"])
@pytest.mark.parametrize(
    "mechanisms",
    [
        [hb.RandomizedResponse(hb.Integers(0, 5), 1.0)],
        [hb.RandomizedResponse(hb.Integers(0, 5), 1.0)] * 2,
        [hb.OptimizedUnary(hb.Integers(0, 11), 1.0)],
        [hb.LocalHashing(hb.Integers(0, 11), 1.0)],
        [hb.SubsetSelection(hb.Integers(0, 11), 1.0, size=5)],
        [hb.TruncatedGeometric(hb.Integers(0, 7), 0.5)],
        [hb.Geometric(hb.Integers(0, 7), 0.5)],
        [hb.PlanarLaplace(hb.Grid(3, 2), 1.0)],
    ],
    ids=lambda mechanisms: f"{len(mechanisms)} {type(mechanisms[0]).__name__}",
)
def test_clean_reports_are_rarely_rejected(mechanisms: list[hb.Mechanism], truth: str) -> None:
    # Four standard errors around the level: a correct test fails here once in 30,000.
    size, runs, level, alarms = len(mechanisms[0].domain), 60, 0.1, 0
    for number in range(runs):
        rng = np.random.default_rng([10, number])
        shares = np.full(size, 1 / size) if truth == "inside" else np.eye(size)[[1, 2]].mean(axis=0)
        alarms += fit_test(several(mechanisms, rng.choice(size, 3_000, p=shares), rng), level).rejected
    assert within(alarms, runs, level)


def test_mixed_mechanisms_have_one_distribution() -> None:
    rng = np.random.default_rng(11)
    mechanisms = [KRR, hb.RandomizedResponse(TWENTY, 2.0), hb.TruncatedGeometric(TWENTY, 0.5), OUE]
    values = [rng.choice(20, 20_000, p=np.arange(20) / 190) for _ in mechanisms]
    parts = [reports_of(mechanism, chosen, rng) for mechanism, chosen in zip(mechanisms, values, strict=True)]
    assert not fit_test(sum(parts[1:], parts[0])).rejected
    other = reports_of(mechanisms[2], 19 - values[2], rng)  # users of one mechanism differ
    assert fit_test(sum([parts[1], other, parts[3]], parts[0])).rejected


def test_the_bound_beyond_simulations_holds_and_is_close() -> None:
    # One sign: B = max(0, Z)^2, so that P(B >= t) = Phi(-sqrt t) exactly; the bound may only be larger.
    signs = np.maximum(0.0, np.random.default_rng(12).standard_normal(1_000)) ** 2
    for statistic in (9.0, 16.0, 36.0):
        exact = stats.norm.sf(math.sqrt(statistic))
        p_value, _ = tail_probability(statistic, signs, 0)
        assert exact * 0.5 < p_value < exact * 20
    assert tail_probability(1.0, signs, 0)[0] == pytest.approx(stats.norm.sf(1.0), abs=0.05)
    mixed = tail_probability(5.0, signs, 2)[0]  # half chi-square of 2, half of 3 degrees
    assert mixed == pytest.approx((stats.chi2.sf(5.0, 2) + stats.chi2.sf(5.0, 3)) / 2, abs=0.01)


def test_doubtful_values_count_as_zeros_and_clear_ones_do_not() -> None:
    matrix = KRR.matrix()
    theta = np.zeros(20)
    theta[[2, 5, 9]] = [0.5, 0.3, 0.2]
    near = 0.98 * theta + 0.02 / 20  # each small share is a tenth of a standard error of 10,000 users
    information = (matrix / (near @ matrix)) @ matrix.T
    found = plausible_distribution(near, information, 10_000)
    assert set(np.flatnonzero(found).tolist()) <= {2, 5, 9}
    assert found.sum() == pytest.approx(1.0)
    clear = plausible_distribution(near, information, 1e12)
    np.testing.assert_array_equal(clear, near)


# -- what is found -------------------------------------------------------------------------------------------


def one_hot(rng: np.random.Generator) -> Any:
    bits = np.zeros((FAKES, 20), dtype=bool)
    bits[:, 7] = True
    return bits


def one_padded_pattern(rng: np.random.Generator) -> Any:
    bits = np.zeros((FAKES, 20), dtype=bool)
    bits[:, [1, 4, 7, 11, 15, 18]] = True  # as many ones as most honest reports
    return bits


def one_seed(rng: np.random.Generator) -> Any:
    seeds = np.full(FAKES, 12_345, dtype=np.uint64)
    return np.stack([seeds, hash_v1(seeds, np.full(FAKES, 7), int(OLH.buckets or 2))], axis=1)


def chosen_seeds(rng: np.random.Generator) -> Any:
    seeds = rng.integers(0, 2**63, (FAKES, 60), dtype=np.uint64)
    hashed = hash_v1(seeds[:, :, None], np.arange(20), int(OLH.buckets or 2))
    best = np.argmin((hashed == hashed[:, :, [7]]).sum(axis=2), axis=1)
    every = np.arange(FAKES)
    return np.stack([seeds[every, best], hashed[every, best, 7]], axis=1)


@pytest.mark.parametrize(
    ("mechanism", "fakes", "part"),
    [
        (OUE, one_hot, "number of ones, OptimizedUnary"),
        (OUE, one_padded_pattern, "repeated reports, OptimizedUnary"),
        (OLH, one_seed, "repeated seeds, LocalHashing"),
        (OLH, chosen_seeds, "size of sets, LocalHashing"),
    ],
)
def test_one_percent_of_clumsy_fakes_is_found(mechanism: Any, fakes: Callable[..., Any], part: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng([13, seed])
        honest = reports_of(mechanism, rng.integers(0, 20, MANY - FAKES), rng)
        fit_result = fit_test(honest + hb.Reports.from_outputs(mechanism, fakes(rng)))
        assert fit_result.rejected
        alone = next(each for each in fit_result.parts if each.name == part)
        assert alone.p_value <= fit_result.level / len(fit_result.parts)  # by this part, whatever the others see
        assert fit_result.worst[0].residual > 5


def test_users_who_send_the_target_twice_are_found() -> None:
    rng = np.random.default_rng(14)
    fit_result = fit_test(several([KRR, KRR], rng.integers(0, 20, MANY), rng, fakes=FAKES))
    assert fit_result.rejected
    assert fit_result.worst[0].text == "7 and 7"
    assert fit_result.worst[0].residual > 5


def test_a_wrong_epsilon_and_a_wrong_mechanism_are_found() -> None:
    rng = np.random.default_rng(15)
    three = rng.choice([2, 5, 9], MANY)
    used = hb.RandomizedResponse(TWENTY, 2.0).privatize(three, rng=rng)
    fit_result = fit_test(hb.Reports.from_outputs(hb.RandomizedResponse(TWENTY, 0.5), used))
    assert fit_result.rejected
    assert fit_result.degrees == 0
    assert {each.text for each in fit_result.worst[:3]} == {"2", "5", "9"}
    rappor, bits = hb.Rappor(TWENTY, 1.0), hb.OptimizedUnary(TWENTY, 1.0)
    for claimed, mechanism in ((rappor, bits), (bits, rappor)):
        assert fit_test(hb.Reports.from_outputs(claimed, mechanism.privatize(three, rng=rng))).rejected


def test_hashed_reports_counted_twice_are_found() -> None:
    rng = np.random.default_rng(16)
    reports = reports_of(OLH, rng.integers(0, 20, 5_000), rng)
    assert not fit_test(reports).rejected
    assert fit_test(reports + reports).rejected


def test_a_restricted_domain_that_leaves_the_truth_out_is_found() -> None:
    rng = np.random.default_rng(17)
    for mechanism in (KRR, OUE, OLH):
        reports = reports_of(mechanism, rng.choice([3, 4], 20_000), rng)
        assert not fit_test(reports.restrict([2, 3, 4])).rejected
        assert fit_test(reports.restrict([5, 6, 7])).rejected
        assert fit_test(reports.restrict([5])).rejected


def test_sums_of_bits_are_tested_as_far_as_they_go() -> None:
    rng = np.random.default_rng(18)
    reports = reports_of(OUE, rng.choice([2, 5, 9], 20_000), rng)
    (block,) = reports.blocks
    assert isinstance(block, Singles)
    ones = OUE.support_counts(block.codes, block.weights).astype(int)
    fit_result = fit_test(hb.Reports.from_bit_counts(OUE, ones, 20_000))
    assert not fit_result.rejected
    assert "only sums of bits" in fit_result.reason
    ones[4] = 0  # fewer than noise alone gives
    assert fit_test(hb.Reports.from_bit_counts(OUE, ones, 20_000)).worst[0].text == "sets with 4"


# -- what cannot be seen -------------------------------------------------------------------------------------


def padded(rng: np.random.Generator, count: int) -> Any:
    true, other = OUE.support
    keys = rng.random((count, 20))
    keys[:, 7] = -1.0
    number = (rng.random(count) < true) + rng.binomial(19, other, count)
    return np.argsort(np.argsort(keys, axis=1), axis=1) < number[:, None]


@pytest.mark.parametrize("kind", ["padded", "false value"])
def test_careful_fakes_cannot_be_seen_and_the_reason_says_so(kind: str) -> None:
    alarms, runs = 0, 25
    for number in range(runs):
        rng = np.random.default_rng([19, number])
        honest = reports_of(OUE, rng.integers(0, 20, 9_900), rng)
        fakes = padded(rng, 100) if kind == "padded" else OUE.privatize(np.full(100, 7), rng=rng)
        fit_result = fit_test(honest + hb.Reports.from_outputs(OUE, fakes), 0.05)
        alarms += fit_result.rejected
    assert within(alarms, runs, 0.05)
    assert "cannot detect users who run the mechanism on a false value" in fit_result.reason
    assert "a plausible number of ones" in fit_result.reason


def test_regions_can_explain_anything() -> None:
    regions = hb.Cloaking(hb.Integers(0, 3), ["low", "low", "high", "high"])
    fit_result = fit_test(hb.Reports.from_counts(regions, {"low": 700, "high": 300}))
    assert not fit_result.testable
    assert fit_result.p_value is None
    assert not fit_result.rejected
    assert (fit_result.statistic, fit_result.degrees, fit_result.parts, fit_result.worst) == (None, None, (), ())
    assert "the channel can explain any reports" in fit_result.reason
    assert fit_result.explain().startswith("Not testable")


def test_too_few_users_are_said_to_be_too_few() -> None:
    fit_result = fit_test(hb.Reports.from_counts(KRR, {3: 2, 4: 1}))
    assert not fit_result.testable
    assert "too few users" in fit_result.reason


def test_too_many_values_are_said_to_be_too_many() -> None:
    mechanism, rng = hb.OptimizedUnary(hb.Integers(0, 1_499), 1.0), np.random.default_rng(20)
    fit_result = fit_test(reports_of(mechanism, rng.integers(0, 1_500, 300), rng))
    assert fit_result.testable
    assert "at most 1,000 values" in fit_result.reason
    krr = hb.RandomizedResponse(hb.Integers(0, 1_499), 1.0)
    assert not fit_test(reports_of(krr, rng.integers(0, 1_500, 300), rng)).testable


# -- the result ----------------------------------------------------------------------------------------------


def test_the_same_reports_give_the_same_answer() -> None:
    rng = np.random.default_rng(21)
    reports = reports_of(KRR, rng.choice([2, 5], 3_000), rng)
    first = fit_test(reports)
    assert first == fit_test(reports) == fit_test(reports, rng=0)
    assert first.seed == 0
    assert fit_test(reports, rng=np.random.default_rng(0)).seed == "a generator"


def test_parts_are_joined_by_their_number() -> None:
    rng = np.random.default_rng(22)
    fit_result = fit_test(reports_of(OUE, rng.integers(0, 20, 5_000), rng), level=0.5)
    assert [part.name for part in fit_result.parts] == [
        "number of ones, OptimizedUnary",
        "repeated reports, OptimizedUnary",
        "shares of outputs",
    ]
    least = min(part.p_value for part in fit_result.parts)
    assert fit_result.p_value == pytest.approx(min(1.0, 3 * least))
    assert fit_result.p_value is not None
    assert fit_result.rejected == (fit_result.p_value <= 0.5)
    # Plain Python values: what comes out can be written as JSON.
    assert json.loads(json.dumps(asdict(fit_result)))["rejected"] == fit_result.rejected


def test_words_never_promise_too_much() -> None:
    rng = np.random.default_rng(23)
    clean = fit_test(reports_of(KRR, rng.integers(0, 20, 5_000), rng)).explain()
    assert clean.startswith("No evidence against the fit")
    assert "This test cannot detect" in clean
    bad = fit_test(hb.Reports.from_counts(KRR, {4: 5_000})).explain()
    assert bad.startswith("No distribution explains these reports")
    assert "worst: 4: 5,000 observed" in bad
    for text in (clean, bad):
        assert "pass" not in text


def test_progress_is_yielded() -> None:
    rng = np.random.default_rng(24)
    stages: list[Progress] = []
    reports = reports_of(hb.RandomizedResponse(hb.Integers(0, 9), 1.0), rng.choice([2, 5], 3_000), rng)
    assert finish(fit_test.steps(reports), stages.append) == fit_test(reports)
    assert all(stage.done <= stage.total for stage in stages)
    assert stages[0].what == "counting outputs"


@pytest.mark.parametrize(
    ("level", "rng", "where"),
    [(0.0, None, "level="), (1.0, None, "level="), ("1%", None, "level="), (0.01, -1, "rng="), (0.01, "seed", "rng=")],
)
def test_bad_settings_are_refused(level: Any, rng: Any, where: str) -> None:
    reports = hb.Reports.from_counts(KRR, {3: 200, 4: 100})
    with pytest.raises(hb.SettingError) as refused:
        fit_test(reports, level, rng=rng)
    assert where in refused.value.where


def test_what_is_not_reports_is_refused() -> None:
    with pytest.raises(hb.EstimateError, match="not reports"):
        fit_test([1, 2, 3])  # type: ignore[arg-type]


def test_many_outputs_of_each_user_are_split_once() -> None:
    rng = np.random.default_rng(25)
    reports = several([KRR, OUE, OLH, KRR], rng.integers(0, 20, 400), rng)
    assert isinstance(reports.blocks[0], Joint)
    evidence = collect_evidence(reports, rng)
    assert sum(table.users for table in evidence.tables) == 400
    assert not fit_test(reports).rejected


@pytest.mark.slow
@pytest.mark.parametrize(("values", "users"), [(10, 50), (20, 100)])
def test_small_clean_samples_raise_few_alarms(values: int, users: int) -> None:
    """Five users a cell, at the edge of pooling; were it decided by the same counts, 4 to 5% would be alarms at 1%."""
    mechanism = hb.RandomizedResponse(hb.Integers(0, values - 1), 0.01)
    shares = np.full(values, 1.0 / values) @ mechanism.matrix()
    rng = np.random.default_rng(17)
    sets = 150
    alarms = sum(
        hb.fit_test(hb.Reports.from_counts(mechanism, rng.multinomial(users, shares)), 0.05).rejected
        for _ in range(sets)
    )
    assert alarms / sets <= 0.05 + 3 * (0.05 * 0.95 / sets) ** 0.5
