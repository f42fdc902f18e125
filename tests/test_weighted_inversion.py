"""Inversion of any reports: exactly unbiased, weighted as generalised least squares, and honest where it is none."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import multinomial, norm

import hubbub as hb
import strategies as own
from hubbub.mechanisms import d_bit_flip, sketches
from hubbub.mechanisms.output_spaces import LabelOutputs
from hubbub.solvers import invert
from hubbub.solvers.inversion import null_deviations
from hubbub.solvers.output_weights import weights_of_outputs
from hubbub.solvers.repairs import base_cut, norm_cut, normalised, projected
from terminal import hubbub

Floats = NDArray[np.float64]

SIX = hb.Integers(0, 5)
TRUTH = np.array([0.4, 0.05, 0.25, 0.0, 0.1, 0.2])
EVEN = np.array([0.25, 0.2, 0.15, 0.15, 0.15, 0.1])
ABC = hb.Categories(["a", "b", "c"])
# Neither symmetric nor square: reading A for its transpose is not even possible without a mistake elsewhere.
WIDE = hb.Matrix(ABC, list("wxyz"), [[0.5, 0.3, 0.1, 0.1], [0.1, 0.2, 0.6, 0.1], [0.25, 0.05, 0.3, 0.4]])
SKEWED = hb.Matrix(ABC, list("xyz"), [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
PAIRED = hb.Matrix(ABC, ["u", "v"], [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
SPLIT = hb.Cloaking(ABC, ["r", "r", "s"])


def expected_reports(mechanism: hb.Mechanism, truth: Floats, users: int) -> hb.Reports:
    """What 10^12 users and more send on average: their outputs, as often as their probabilities say."""
    assert mechanism.outputs is not None
    counts = np.round(truth @ mechanism.matrix() * users).astype(np.int64)
    return hb.Reports.from_counts(mechanism, counts)


# -- unbiased -----------------------------------------------------------------------------------------------------


def every_count(users: int, kinds: int) -> Iterator[NDArray[np.int64]]:
    for chosen in combinations_with_replacement(range(kinds), users):
        yield np.bincount(chosen, minlength=kinds)


@pytest.mark.parametrize("pair", [(WIDE, SKEWED), (WIDE, PAIRED), (hb.RandomizedResponse(ABC, 1.0), PAIRED)])
def test_the_mean_over_all_possible_reports_is_the_truth(pair: tuple[hb.Mechanism, hb.Mechanism]) -> None:
    """Three users of one mechanism and two of another: every outcome, weighted with its probability."""
    truth, mean, total = np.array([0.6, 0.1, 0.3]), np.zeros(3), 0.0
    shares = [truth @ mechanism.matrix() for mechanism in pair]
    for first, second in product(every_count(3, shares[0].size), every_count(2, shares[1].size)):
        chance = float(multinomial.pmf(first, 3, shares[0]) * multinomial.pmf(second, 2, shares[1]))
        reports = hb.Reports.from_counts(pair[0], first) + hb.Reports.from_counts(pair[1], second)
        mean += chance * invert(reports)
        total += chance
    assert total == pytest.approx(1.0)
    np.testing.assert_allclose(mean, truth, atol=1e-10)


MIXTURES: dict[str, list[hb.Mechanism]] = {
    "k-RR at two epsilons": [hb.RandomizedResponse(SIX, 0.5), hb.RandomizedResponse(SIX, 3.0)],
    "k-RR and bits": [hb.RandomizedResponse(SIX, 1.0), hb.OptimizedUnary(SIX, 1.0)],
    "bits and noise": [hb.Rappor(SIX, 1.0), hb.TruncatedGeometric(SIX, 0.5)],
    "all kinds": [
        hb.SubsetSelection(SIX, 1.0),
        hb.OptimizedUnary(SIX, 2.0),
        hb.Exponential(SIX, 1.0),
        hb.Cloaking(SIX, list("aabbcc")),
    ],
    "half-blind ones": [hb.Cloaking(SIX, list("abcabc")), hb.Cloaking(SIX, list("aabbbb")), hb.Rappor(SIX, 0.3)],
    "more outputs than values": [
        hb.Matrix(SIX, list(range(9)), np.random.default_rng(1).dirichlet(np.ones(9), size=6)),
    ],
}


@pytest.mark.parametrize("name", MIXTURES)
def test_expected_reports_invert_to_the_truth(name: str) -> None:
    reports = [expected_reports(each, TRUTH, 10**13 // (place + 1)) for place, each in enumerate(MIXTURES[name])]
    np.testing.assert_allclose(invert(sum(reports[1:], reports[0])), TRUTH, atol=1e-9)


@pytest.mark.parametrize("domain", [hb.Integers(-2, 5), hb.Integers(10, 12)])
def test_endless_outputs_invert_as_those_that_are_clamped(domain: hb.Integers) -> None:
    """Beyond the domain all likelihoods are proportional: how far beyond says nothing."""
    rng = np.random.default_rng(2)
    endless, clamped = hb.Geometric(domain, 0.7), hb.TruncatedGeometric(domain, 0.7)
    outputs = np.append(endless.privatize(rng.integers(domain.low, domain.high + 1, 300), rng=rng), [-500, 900])
    inside = np.clip(outputs, domain.low, domain.high)
    far, near = hb.Reports.from_outputs(endless, outputs), hb.Reports.from_outputs(clamped, inside)
    np.testing.assert_allclose(invert(far), invert(near), atol=1e-10)
    assert abs(invert(far).sum() - 1.0) < 1e-10


@pytest.mark.parametrize("shape", [(6, 2), (6, 6), (6, 1)])
def test_answers_that_cannot_be_listed_invert_to_the_truth(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = hb.DBitFlip(SIX, 2.0, *shape)
    alone = expected_reports(mechanism, TRUTH, 10**12)
    beside = alone + expected_reports(hb.Rappor(SIX, 1.0), TRUTH, 10**12)
    monkeypatch.setattr(d_bit_flip, "MAX_LISTED_OUTPUTS", 0)
    np.testing.assert_allclose(invert(alone), TRUTH, atol=1e-8)
    np.testing.assert_allclose(invert(beside), TRUTH, atol=1e-8)


def test_many_answers_are_inverted_and_buckets_of_several_values_are_refused() -> None:
    line, rng = hb.Integers(0, 19), np.random.default_rng(4)
    truth = np.arange(20.0) / 190.0
    mechanism = hb.DBitFlip(line, 3.0, bits=8)
    assert mechanism.outputs is None
    sent = mechanism.privatize(rng.choice(20, size=200_000, p=truth), rng=5)
    reports = hb.Reports.from_outputs(mechanism, sent)
    deviations = null_deviations(reports)
    np.testing.assert_array_less(np.abs(invert(reports) - truth), 4.5 * deviations)
    twice = hb.Reports.from_users([[(mechanism, row), (mechanism, row)] for row in sent[:50]])
    once = hb.Reports.from_outputs(mechanism, sent[:50])
    np.testing.assert_allclose(invert(twice), invert(once))
    coarse = hb.DBitFlip(line, 3.0, buckets=19, bits=9)
    with pytest.raises(hb.EstimateError, match="cannot tell all values apart"):
        invert(hb.Reports.from_outputs(coarse, coarse.privatize(np.resize(line.labels, 500), rng=6)))


def test_noise_on_an_endless_lattice_is_unbiased() -> None:
    grid = hb.Grid(2, 2, cell=1.0)
    truth, mechanism = np.array([0.5, 0.1, 0.3, 0.1]), hb.PlanarGeometric(grid, 2.0, truncated=False)
    places = np.stack(np.meshgrid(np.arange(-12, 14), np.arange(-12, 14)), axis=-1).reshape(-1, 2)
    chances = truth @ np.exp(mechanism.log_columns(places))
    counts = np.round(chances * 1e12).astype(np.int64)
    sent = counts > 0
    reports = hb.Reports.from_counts(
        mechanism, dict(zip(map(tuple, places[sent].tolist()), counts[sent].tolist(), strict=True))
    )
    np.testing.assert_allclose(invert(reports), truth, atol=1e-8)


Z_LEVEL = 1e-4  # of all z-scores of one simulation together


def largest_z(estimates: Floats, truth: Floats) -> float:
    """Return the largest z-score of the means of simulated estimates."""
    errors = estimates.std(axis=0, ddof=1) / math.sqrt(len(estimates))
    return float(np.abs((estimates.mean(axis=0) - truth) / errors).max())


def simulated_mixtures(runs: int, estimate: Callable[[hb.Reports], Floats]) -> Floats:
    """Estimate simulated studies of 300 users each, who sent one, two or three outputs by two mechanisms."""
    rng = np.random.default_rng(7)
    first, second = hb.TruncatedGeometric(SIX, 0.7), hb.OptimizedUnary(SIX, 1.5)
    estimates = []
    for _ in range(runs):
        values = rng.choice(6, size=300, p=TRUTH)
        ones, twos, threes = (mechanism.privatize(values, rng=rng) for mechanism in (first, first, second))
        users: list[list[tuple[hb.Mechanism, object]]] = []
        for user, (one, two, three) in enumerate(zip(ones, twos, threes, strict=True)):
            sent = [(first, one), (first, two), (second, three)]
            users.append([sent[0:1], sent[1:3], sent[0:3]][user % 3])
        estimates.append(estimate(hb.Reports.from_users(users)))
    return np.array(estimates)


def test_simulated_mixtures_are_right_on_average_and_faults_are_noticed() -> None:
    limit = float(norm.isf(Z_LEVEL / 12))
    assert largest_z(simulated_mixtures(150, invert), TRUTH) < limit

    def transposed(reports: hb.Reports) -> Floats:
        """What inversion would be with the rows of a matrix taken for its columns (here of the noise's, normalised)."""
        shares = invert(reports)
        matrix = hb.TruncatedGeometric(SIX, 0.7).matrix()
        return shares @ matrix @ np.linalg.inv(matrix.T / matrix.T.sum(axis=1, keepdims=True))

    assert largest_z(simulated_mixtures(150, transposed), TRUTH) > limit


# -- the weights --------------------------------------------------------------------------------------------------


def dense_least_squares(parts: list[tuple[hb.Mechanism, NDArray[np.int64]]]) -> Floats:
    """Generalised least squares by pseudo-inverses of the covariances at equal shares, and shares that sum to 1."""
    size = len(parts[0][0].domain)
    information, right = np.zeros((size, size)), np.zeros(size)
    for mechanism, counts in parts:
        matrix = mechanism.matrix()
        fitted = matrix.mean(axis=0)
        precision = counts.sum() * np.linalg.pinv(np.diag(fitted) - np.outer(fitted, fitted))
        information += matrix @ precision @ matrix.T
        right += matrix @ precision @ (counts / counts.sum())
    bordered = np.block([[information, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
    solution: Floats = np.linalg.lstsq(bordered, np.append(right, 1.0), rcond=None)[0][:size]
    return solution


@own.examples(40)
@given(st.data())
def test_weights_are_those_of_generalised_least_squares(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 5))
    domain, rng = hb.Integers(1, size), np.random.default_rng(data.draw(st.integers(0, 10**6)))
    parts: list[tuple[hb.Mechanism, NDArray[np.int64]]] = []
    for _ in range(data.draw(st.integers(1, 3))):
        outputs = data.draw(st.integers(2, 7))
        matrix = 0.9 * rng.dirichlet(np.ones(outputs), size=size) + 0.1 / outputs
        parts.append((hb.Matrix(domain, list(range(outputs)), matrix), rng.integers(1, 400, outputs)))
    stacked = np.concatenate([mechanism.matrix() for mechanism, _ in parts], axis=1)
    if np.linalg.svd(stacked, compute_uv=False)[size - 1 :].min(initial=1.0) < 0.02 or stacked.shape[1] < size:
        return
    reports = [hb.Reports.from_counts(mechanism, counts) for mechanism, counts in parts]
    np.testing.assert_allclose(invert(sum(reports[1:], reports[0])), dense_least_squares(parts), atol=1e-7)


def test_pooling_outputs_or_counting_mechanisms_alike_would_be_noticed() -> None:
    parts: list[tuple[hb.Mechanism, NDArray[np.int64]]] = [
        (SKEWED, np.array([50, 30, 20])),
        (hb.Matrix(ABC, list("xyz"), 0.2 * SKEWED.probabilities + 0.8 / 3), np.array([200, 400, 300])),
    ]
    reports = sum((hb.Reports.from_counts(*part) for part in parts[1:]), hb.Reports.from_counts(*parts[0]))
    right = invert(reports)
    np.testing.assert_allclose(right, dense_least_squares(parts), atol=1e-9)
    alone = [np.linalg.solve(mechanism.matrix().T, counts / counts.sum()) for mechanism, counts in parts]
    assert np.abs(right - (0.1 * alone[0] + 0.9 * alone[1])).max() > 0.1  # by users alone
    pooled = (parts[0][1] + parts[1][1]) / 1000
    average = 0.1 * SKEWED.probabilities + 0.9 * parts[1][0].matrix()  # of the matrices, as in arXiv 2208.11268
    assert np.abs(right - np.linalg.solve(average.T, pooled)).max() > 0.1


def test_oracles_are_averaged_by_their_variances() -> None:
    light, heavy, bits = (
        hb.RandomizedResponse(SIX, 3.0),
        hb.RandomizedResponse(SIX, 0.5),
        hb.OptimizedUnary(SIX, 1.0),
    )
    rng = np.random.default_rng(4)
    mechanisms: list[hb.RandomizedResponse | hb.OptimizedUnary] = [light, heavy, bits]
    parts = [
        hb.Reports.from_outputs(each, each.privatize(rng.choice(6, size=users, p=TRUTH), rng=rng))
        for each, users in zip(mechanisms, (300, 900, 500), strict=True)
    ]
    weights = []
    for mechanism, part in zip(mechanisms, parts, strict=True):
        true, other = mechanism.support
        held = other + (true - other) / 6
        weights.append(part.users * (true - other) ** 2 / (held * (1 - held)))
    expected = np.average([invert(part) for part in parts], axis=0, weights=weights)
    np.testing.assert_allclose(invert(sum(parts[1:], parts[0])), expected, atol=1e-12)


def test_bits_beside_a_matrix_are_weighted_by_their_variance() -> None:
    bits, noise = hb.OptimizedUnary(SIX, 1.0), hb.TruncatedGeometric(SIX, 0.5)
    rng = np.random.default_rng(5)
    values = rng.choice(6, size=400, p=TRUTH)
    sums, other = (
        np.unpackbits(bits.privatize(values, rng=rng), axis=1, count=6).sum(axis=0),
        noise.privatize(values, rng=rng),
    )
    reports = hb.Reports.from_bit_counts(bits, sums, 400) + hb.Reports.from_outputs(noise, other)
    matrix, shares = noise.matrix(), np.bincount(other, minlength=6) / 400
    true, false = bits.support
    held = false + (true - false) / 6
    weight = (true - false) ** 2 / (held * (1 - held))
    information = (matrix / matrix.mean(axis=0)) @ matrix.T + weight * np.eye(6)
    right = matrix @ (shares / matrix.mean(axis=0)) + weight * (sums / 400 - false) / (true - false)
    np.testing.assert_allclose(invert(reports), np.linalg.solve(information, right), atol=1e-10)


@own.examples(60)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.floats(0.01, 50), st.floats(0, 1)), min_size=1, max_size=3).filter(
        lambda rows: sum(row[0] for row in rows) > 0
    )
)
def test_outputs_of_one_user_weigh_as_their_best_average(rows: list[tuple[int, float, float]]) -> None:
    """One value with variance 1, each output with its noise, partly in common: the precision of the best average."""
    numbers, noises, shared = (np.array(column) for column in zip(*rows, strict=True))
    weights = weights_of_outputs(numbers[None, :].astype(np.float64), list(noises), list(shared))[0]
    owner = np.repeat(np.arange(len(rows)), numbers)
    same = owner[:, None] == owner
    common = np.where(same, (noises * shared)[owner], 0.0)
    covariance = 1.0 + common + np.diag(noises[owner] * (1 - shared[owner]))
    best = np.linalg.pinv(covariance).sum(axis=1)  # the weight of each output in the sum of all users' averages
    # An output by itself has the weight 1 / (1 + noise): weights are relative to it.
    np.testing.assert_allclose((weights / (1 + noises))[owner], best, rtol=1e-6)


def test_many_outputs_do_not_make_more_people() -> None:
    coin = hb.RandomizedResponse(ABC, 5.0)
    sent: list[tuple[hb.Mechanism, object]] = [(coin, "a"), (coin, "b")]
    users = [sent[:1] * 50, *[sent[1:]] * 30]
    shares = hb.estimate(hb.Reports.from_users(users), "inv").probabilities
    assert shares[0] < 0.06  # one of 31 people, not 50 of 80 outputs
    assert shares[1] > 0.94


@pytest.mark.parametrize("pair", [(3.0, 1.0), (2.0, 1.9), (8.0, 0.2)])
def test_what_reports_from_one_permanent_response_have_in_common(pair: tuple[float, float]) -> None:
    """The covariance of a bit in two reports, given a value that is not its own, from the joint likelihood."""
    mechanism = hb.LongitudinalRappor(SIX, *pair)
    other = np.exp(mechanism.log_ones(2)[0])  # of no, one and two ones, in one order
    first = mechanism.support.other
    covariance = other[2] - first**2
    assert mechanism.shared_noise == pytest.approx(covariance / (first * (1 - first)), rel=1e-9)
    assert 0.0 < mechanism.shared_noise < 1.0
    assert hb.Rappor(SIX, 1.0).shared_noise == 0.0


def test_survey_weights_count() -> None:
    outputs, weights = ["x", "y", "z", "x"], [1.0, 2.0, 3.0, 0.5]
    reports = hb.Reports.from_outputs(SKEWED, outputs, weights=weights)
    mixed = reports + hb.Reports.from_outputs(PAIRED, ["u"], weights=[1.0])
    shares = np.array([1.5, 2.0, 3.0]) / 6.5
    np.testing.assert_allclose(invert(reports), np.linalg.solve(SKEWED.probabilities.T, shares), atol=1e-12)
    assert abs(invert(mixed).sum() - 1.0) < 1e-12


def test_fewer_values_than_the_mechanism_knows() -> None:
    """Restricted to values that have all the mass, more outputs than values are left."""
    truth = np.array([0.5, 0.0, 0.5])
    reports = expected_reports(SKEWED, truth, 10**13).restrict(["a", "c"])
    np.testing.assert_allclose(invert(reports), [0.5, 0.5], atol=1e-10)
    bits = expected_reports(hb.OptimizedUnary(ABC, 1.0), truth, 10**13).restrict(["a", "c"])
    np.testing.assert_allclose(invert(bits), [0.5, 0.5], atol=1e-10)


def test_reports_that_lack_attributes_tell_what_they_have() -> None:
    domain = hb.Product(x=hb.Categories(["a", "b"]), y=ABC)
    both = hb.Split(x=hb.RandomizedResponse(domain.attributes["x"], 1.0), y=hb.RandomizedResponse(ABC, 1.0))
    truth = np.array([0.1, 0.2, 0.1, 0.3, 0.05, 0.25])
    whole = expected_reports(both, truth, 10**12)
    shares = truth.reshape(2, 3).sum(axis=1) @ both.parts["x"].matrix()
    part = hb.Reports.from_counts(
        both, {("a", None): round(shares[0] * 10**12), ("b", None): round(shares[1] * 10**12)}
    )
    np.testing.assert_allclose(invert(whole + part), truth, atol=1e-9)


# -- post-processing ----------------------------------------------------------------------------------------------

VECTORS = st.lists(st.floats(-1.5, 1.5, allow_subnormal=False), min_size=1, max_size=7).map(np.array)


def by_definition(shares: Floats, kept: NDArray[np.bool_]) -> Floats:
    """Keep some shares, divided by their sum; equal shares if there are none."""
    left = np.where(kept, np.maximum(shares, 0.0), 0.0)
    return left / left.sum() if left.sum() > 0 else np.full(left.size, 1 / left.size)


@own.examples(150)
@given(VECTORS)
def test_norm_sub_is_the_projection(shares: Floats) -> None:
    """Look for the number that, added before negative shares are set to 0, makes the sum 1."""
    low, high = -shares.max() - 1, 1 - shares.min()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(shares + middle, 0.0).sum() < 1.0 else (low, middle)
    np.testing.assert_allclose(projected(shares), np.maximum(shares + high, 0.0), atol=1e-12)


@own.examples(150)
@given(VECTORS)
def test_norm_cut_keeps_the_largest_up_to_a_sum_of_one(shares: Floats) -> None:
    """The smallest threshold at which what is left adds up to at most 1; the largest stay in any case."""
    positive = np.maximum(shares, 0.0)
    falling = np.sort(positive)[::-1]
    fits = [level for level in positive if falling[falling >= level].cumsum()[-1] <= 1.0 + 1e-9]
    kept = positive >= min(fits, default=np.inf)
    if not kept.any():
        kept = positive == positive.max()
    np.testing.assert_allclose(norm_cut(shares), by_definition(shares, kept), atol=1e-12)
    order = np.argsort(shares, kind="stable")
    np.testing.assert_allclose(norm_cut(shares[order]), norm_cut(shares)[order], atol=1e-12)  # no value is preferred


def test_norm_cut_keeps_all_of_what_is_a_distribution() -> None:
    """The inverse of square channels adds up to 1 but for rounding, which is no reason to cut a tenth."""
    mechanism, kept = hb.RandomizedResponse(SIX, 2.0), 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(rng.choice(6, 20_000, p=EVEN), rng=rng))
        shares = invert(reports)
        assert shares.min() > 0
        np.testing.assert_allclose(hb.estimate(reports, "norm-cut").probabilities, shares, atol=1e-9)
        kept += math.fsum(shares) > 1.0 or float(np.cumsum(np.sort(shares)[::-1])[-1]) > 1.0
    assert kept  # of these, rounding would have cut one


@own.examples(100)
@given(VECTORS, st.floats(1e-3, 1.0))
def test_base_cut_keeps_what_is_significant(shares: Floats, deviation: float) -> None:
    threshold = float(norm.ppf(1 - 0.02 / shares.size)) * deviation
    made = base_cut(shares, np.full(shares.size, deviation))
    np.testing.assert_allclose(made, by_definition(shares, shares > threshold), atol=1e-9)


@pytest.mark.parametrize(
    ("mechanism", "users"),
    [
        (hb.RandomizedResponse(SIX, 1.0), 200),
        (hb.OptimizedUnary(SIX, 1.0), 200),
        (hb.LocalHashing(SIX, 1.0), 200),
        (hb.HadamardResponse(SIX, 4.0, blocks=2), 2_000),  # value 3 is in the frequent block
        (hb.CountMeanSketch(SIX, 1.0, hashes=2, width=8), 2_000),
        (hb.CountMeanSketch(SIX, 4.0, hashes=2, width=8), 2_000),
        (hb.HadamardCountMeanSketch(SIX, 2.0, hashes=2, width=8), 2_000),
    ],
)
def test_base_cut_knows_how_far_a_value_without_users_strays(mechanism: hb.Mechanism, users: int) -> None:
    rng, nobody = np.random.default_rng(9), 3
    spread = []
    for _ in range(300):
        outputs = mechanism.privatize(rng.choice(6, size=users, p=TRUTH), rng=rng)
        reports = hb.Reports.from_outputs(mechanism, outputs)
        spread.append(invert(reports)[nobody])
    # 300 draws know a standard deviation to 4.1%: four of these. Value 3 shares a bucket under each hash of the
    # sketches: its deviation is 1.36 to 1.63 times what random hashes would give.
    assert null_deviations(reports)[nobody] == pytest.approx(float(np.std(spread)), rel=0.165)


def test_the_noise_of_many_values_of_a_sketch_is_that_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    sketch = hb.CountMeanSketch(hb.Integers(0, 299), 2.0, hashes=64, width=16)
    shares = np.full(300, 1 / 300)
    exact = sketch.null_variance(shares)
    monkeypatch.setattr(sketches, "MAX_COVARIANCE_VALUES", 100)
    assert sketch.null_variance(shares).mean() == pytest.approx(exact.mean(), rel=0.05)
    assert exact.mean() > 1.2 * float(sketch.share_variance(np.zeros(1))[0])


def test_deviations_of_several_outputs_and_of_matrices() -> None:
    """By simulation of users with two outputs each, one mechanism of noise beside bits, and a tall matrix."""
    rng, bits = np.random.default_rng(10), hb.OptimizedUnary(SIX, 1.0)
    tall = hb.Matrix(SIX, list(range(8)), 0.9 * rng.dirichlet(np.full(8, 0.3), size=6) + 0.1 / 8)
    found: dict[str, list[Floats]] = {"twice": [], "tall": [], "both": []}
    said: dict[str, Floats] = {}
    for _ in range(300):
        values = rng.choice(6, size=200, p=TRUTH)
        one, two, three = (each.privatize(values, rng=rng) for each in (bits, bits, tall))
        made = {
            "twice": hb.Reports.from_users([[(bits, a), (bits, b)] for a, b in zip(one, two, strict=True)]),
            "tall": hb.Reports.from_outputs(tall, three),
            "both": hb.Reports.from_outputs(tall, three[:100]) + hb.Reports.from_outputs(bits, one[100:]),
        }
        for name, reports in made.items():
            found[name].append(invert(reports))
            said[name] = null_deviations(reports)
    assert said["twice"][3] == pytest.approx(float(np.std([each[3] for each in found["twice"]])), rel=0.165)
    for name in ("tall", "both"):  # these are known for each value as it is; the last study's are close to all studies'
        np.testing.assert_allclose(said[name], np.std(found[name], axis=0), rtol=0.25)


NAMES = {"inv-n": normalised, "inv-p": projected, "norm-sub": projected, "norm-cut": norm_cut}


@pytest.mark.parametrize("name", [*NAMES, "base-cut"])
def test_methods_by_name_repair_the_inversion(name: str) -> None:
    reports = hb.Reports.from_counts(SKEWED, [80, 15, 5]) + hb.Reports.from_counts(WIDE, [4, 3, 0, 1])
    plain = hb.estimate(reports, "inv").probabilities
    assert plain.min() < 0.0
    repaired = hb.estimate(reports, name)
    expected = NAMES[name](plain) if name in NAMES else base_cut(plain, null_deviations(reports))
    np.testing.assert_allclose(repaired.probabilities, expected, atol=1e-15)
    assert repaired.method == name
    assert repaired.status.startswith("inverted; ")
    assert "gap" in repaired.status
    assert math.isfinite(repaired.gap)
    assert repaired.is_distribution
    assert repaired.settings["solver"] == "inversion"


# -- an estimate that is no distribution --------------------------------------------------------------------------


def thin(domain: hb.Domain) -> hb.Estimate:
    """An estimate with negative shares over any domain."""
    mechanism = hb.RandomizedResponse(domain, 0.5)
    return hb.estimate(hb.Reports.from_outputs(mechanism, domain.labels[[0, 0, 0, 1]]), "inv")


DOMAINS: dict[str, hb.Domain] = {
    "categories": ABC,
    "line": hb.Integers(0, 300),
    "bins": hb.Bins([0, 1, 3, 9]),
    "map": hb.Grid(4, 3),
    "two attributes": hb.Product(x=ABC, y=hb.Integers(0, 3)),
    "three attributes": hb.Product(x=ABC, y=hb.Integers(0, 3), z=hb.Categories(["p", "q"])),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_plain_inversion_is_shown_as_it_is(name: str) -> None:
    estimate = thin(DOMAINS[name])
    assert estimate.probabilities.min() < 0.0
    assert not estimate.is_distribution
    assert estimate.converged
    assert estimate.status.startswith("inverted; not a distribution: ")
    assert math.isnan(estimate.log_likelihood)
    assert math.isnan(estimate.gap)
    assert dict(estimate.facts())["likelihood"] == "none: only a distribution has one"
    document = json.loads(estimate.to_json())
    assert document["log_likelihood"] is None
    assert document["gap"] is None
    assert min(entry["probability"] for entry in document["estimate"]) < 0.0
    assert estimate.to_frame()["probability"].to_numpy().min() < 0.0
    assert "width:-" not in estimate._repr_html_()
    axes = estimate.plot()
    for image in axes.images:  # of a map or a table: its colours reach down to the smallest share
        assert image.norm.vmin == np.nanmin(np.asarray(image.get_array())) < 0.0
    plt.close("all")


def test_an_inversion_that_is_a_distribution_has_a_likelihood() -> None:
    reports = hb.Reports.from_counts(hb.RandomizedResponse(ABC, 2.0), [50, 30, 20])
    estimate = hb.estimate(reports, "inv")
    assert estimate.is_distribution
    assert estimate.log_likelihood == hb.log_likelihood(reports, estimate.probabilities)
    assert estimate.status.startswith("inverted; no share is negative; gap ")


def test_bits_may_add_up_to_another_sum() -> None:
    bits = hb.OptimizedUnary(ABC, 1.0)
    estimate = hb.estimate(hb.Reports.from_bit_counts(bits, [500, 400, 420], 1000), "inv")
    assert estimate.probabilities.min() > 0.0
    assert not estimate.is_distribution
    assert f"add up to {estimate.probabilities.sum():.4f}" in estimate.status


def test_marginals_of_a_plain_inversion_are_sums() -> None:
    estimate = thin(DOMAINS["two attributes"])
    sums = estimate.probabilities.reshape(3, 4).sum(axis=1)
    np.testing.assert_allclose(estimate.marginal("x").probabilities, sums, atol=1e-12)


@pytest.mark.parametrize(
    "ask",
    [
        lambda reports, estimate: hb.interval(reports, "a", estimate=estimate),
        lambda reports, estimate: hb.band(reports, estimate=estimate),
        lambda reports, estimate: hb.check(reports, estimate=estimate),
        lambda reports, estimate: hb.resolve(reports, estimate=estimate),
        lambda reports, estimate: hb.worst_case_shift(reports, 0.01, estimate=estimate),
        lambda reports, estimate: hb.compare(reports, reports, estimates=[estimate, estimate]),
        lambda reports, estimate: hb.report(estimate, "page.html"),
        lambda reports, estimate: hb.synthesize(estimate, 10),
        lambda reports, estimate: hb.plan(hb.RandomizedResponse(ABC, 1.0), users=10, truth=estimate),
    ],
)
def test_what_needs_a_distribution_refuses_anything_else(ask: Callable[[hb.Reports, hb.Estimate], object]) -> None:
    mechanism = hb.RandomizedResponse(ABC, 0.5)
    reports = hb.Reports.from_outputs(mechanism, ["a", "a", "a", "b"])
    with pytest.raises(hb.HubbubError, match="not a distribution"):
        ask(reports, hb.estimate(reports, "inv"))


STUDY = """version = 1
[domain]
kind = "categories"
labels = ["a", "b", "c"]
[mechanisms.light]
kind = "randomized-response"
epsilon = 2.0
[mechanisms.heavy]
kind = "randomized-response"
epsilon = 0.5
"""


def test_the_terminal_says_what_plain_inversion_is(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    rows = ["mechanism,output", *["light,a"] * 30, *["light,b"] * 3, *["heavy,a"] * 9, *["heavy,c"] * 2]
    (tmp_path / "r.csv").write_text("\n".join(rows) + "\n")
    shown = hubbub("estimate", "study.toml", "r.csv", "--method", "inv", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "No intervals and verdicts: these shares are no distribution" in shown.stderr
    assert "none: only a distribution has one" in shown.stdout
    assert "-0." in shown.stdout
    told = hubbub("estimate", "study.toml", "r.csv", "--method", "inv", "--json", cwd=tmp_path)
    document = json.loads(told.stdout)
    assert (document["log_likelihood"], document["gap"], document["interval"], document["unique"]) == (None,) * 4
    reports = hb.read_reports(tmp_path / "r.csv", tmp_path / "study.toml")
    shares = [entry["probability"] for entry in document["estimate"]]
    np.testing.assert_allclose(shares, hb.estimate(reports, "inv").probabilities, atol=1e-15)
    refused = hubbub("estimate", "study.toml", "r.csv", "--method", "inv", "--fakes", "1%", cwd=tmp_path)
    assert (refused.returncode, "not a distribution" in refused.stderr) == (2, True)
    page = hubbub("report", "study.toml", "r.csv", "--method", "inv", "-o", "p.html", cwd=tmp_path)
    assert (page.returncode, "not a distribution" in page.stderr) == (2, True)
    cut = hubbub("estimate", "study.toml", "r.csv", "--method", "norm-cut", "--json", cwd=tmp_path)
    assert json.loads(cut.stdout)["method"] == "norm-cut"
    assert (
        hubbub("plan", "study.toml", "--users", "50", "--method", "base-cut", "--runs", "5", cwd=tmp_path).returncode
        == 0
    )


def test_a_memory_without_a_formula_counts_as_one_output() -> None:
    class Remembering(hb.Mechanism):
        domain, epsilon = ABC, 1.0
        outputs = np.array(["x", "y", "z"])

        def matrix(self) -> Floats:
            return SKEWED.probabilities

        def joint_log_columns(self, codes: object, repeats: object, among: object = None) -> Floats:
            raise NotImplementedError

    assert Remembering().shared_noise == 1.0
    assert isinstance(Remembering().output_space, LabelOutputs)
