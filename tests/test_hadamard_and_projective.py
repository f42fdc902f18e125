"""Hadamard response, projective response and sketches: sets and transforms against their definitions."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hubbub as hb
from exactly import rows_of
from hubbub import client
from hubbub.channels import structured_only
from hubbub.channels.hadamard_sums import signed_sums
from hubbub.channels.projective_sums import point_coordinates, point_numbers
from hubbub.mechanisms.frequency_oracle import FrequencyOracle
from hubbub.mechanisms.hadamard_response import ListedSets
from hubbub.mechanisms.sketches import Sketch
from hubbub.planning.support_simulation import draw_support
from strategies import examples, listed_sets, sketches

Floats = NDArray[np.float64]


def sylvester(size: int) -> NDArray[np.int64]:
    """Return a Hadamard matrix by doubling."""
    matrix = np.array([[1]])
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def all_points(prime: int, dimensions: int) -> list[tuple[int, ...]]:
    """Return the points whose last coordinate other than 0 is 1, in the order in which they are numbered."""
    vectors = [
        vector[::-1]
        for vector in itertools.product(range(prime), repeat=dimensions)
        if next((digit for digit in vector if digit), 0) == 1  # the first of those read backwards
    ]
    return sorted(vectors, key=lambda vector: vector[::-1])


def sets_by_definition(mechanism: ListedSets) -> NDArray[np.bool_]:
    """Return which outputs (columns) are in the set of which value (rows)."""
    values = len(mechanism.domain)
    inside = np.zeros((values, mechanism.output_count), dtype=bool)
    if isinstance(mechanism, hb.HadamardResponse):
        blocks, size = int(mechanism.blocks or 1), mechanism.size
        matrix = sylvester(size)
        for value in range(values):
            block, row = value % blocks, value // blocks + 1
            inside[value, block * size : (block + 1) * size] = matrix[row] == 1
        return inside
    assert isinstance(mechanism, hb.ProjectiveResponse)
    prime = int(mechanism.prime or 2)
    listed = all_points(prime, mechanism.dimensions)
    for value in range(values):
        own = listed[value][::-1]
        inside[value] = [sum(map(int.__mul__, own, point)) % prime == 0 for point in listed]
    return inside


@given(listed_sets())
@examples(80)
def test_sets_are_those_of_the_definition_in_client_and_library(mechanism: ListedSets) -> None:
    inside = sets_by_definition(mechanism)
    assert (inside.sum(axis=1) == mechanism.set_size).all()
    assert len({row.tobytes() for row in inside}) == len(inside)
    values, places = np.arange(len(mechanism.domain)), np.arange(mechanism.set_size)
    outputs = np.arange(mechanism.output_count)
    np.testing.assert_array_equal(mechanism.holds(outputs[None, :], values[:, None]), inside)
    np.testing.assert_array_equal(np.unpackbits(mechanism.sets(outputs), axis=1, count=values.size).T, inside)
    for value in values.tolist():
        members = mechanism.members(np.full(places.size, value), places)
        assert sorted(members.tolist()) == np.flatnonzero(inside[value]).tolist()
        if isinstance(mechanism, hb.HadamardResponse):
            blocks, size = int(mechanism.blocks or 1), mechanism.size
            alone = [client.block_member(value, place, blocks, size) for place in places.tolist()]
        else:
            assert isinstance(mechanism, hb.ProjectiveResponse)
            prime = int(mechanism.prime or 2)
            alone = [client.point_member(value, place, prime, mechanism.dimensions) for place in places.tolist()]
        assert alone == members.tolist()


@given(listed_sets())
@examples(40)
def test_the_matrix_is_that_of_the_sets(mechanism: ListedSets) -> None:
    inside, outputs, size = sets_by_definition(mechanism), mechanism.output_count, mechanism.set_size
    weight = size * math.exp(mechanism.epsilon) + outputs - size
    np.testing.assert_allclose(mechanism.matrix(), np.where(inside, math.exp(mechanism.epsilon), 1.0) / weight)
    exact = np.array(rows_of(mechanism.law, len(inside)), dtype=object)
    assert all(sum(row) == 1 for row in exact)
    np.testing.assert_allclose(exact.astype(np.float64), mechanism.matrix(), rtol=1e-12)


@given(sketches())
@examples(40)
def test_the_matrix_of_a_sketch_is_its_exact_law(mechanism: Sketch) -> None:
    outputs = mechanism.outputs
    if outputs is None or len(outputs) > 5000:
        return
    exact = np.array(rows_of(mechanism.law, len(mechanism.domain)), dtype=object)
    assert all(sum(row) == 1 for row in exact)
    np.testing.assert_allclose(exact.astype(np.float64), mechanism.matrix(), rtol=1e-11)


def test_published_numbers_of_blocks_and_points() -> None:
    """Acharya, Sun and Zhang: B the largest power of two below min(e^eps, 2k), b the least one from k / B + 1."""
    for values, epsilon in itertools.product((2, 3, 5, 100, 1000), (0.1, 1.0, 2.0, 4.0, 9.0)):
        mechanism = hb.HadamardResponse(hb.Integers(1, values), epsilon)
        blocks = int(mechanism.blocks or 1)
        assert blocks < min(math.exp(epsilon), 2 * values) <= 2 * blocks
        assert mechanism.size >= values / blocks + 1 > mechanism.size / 2
        assert mechanism.output_count < 6 * values + 2
    for values in (2, 3, 4, 7, 13, 14, 40, 41):
        mechanism_of_planes = hb.ProjectiveResponse(hb.Integers(1, values), 1.0, prime=3)
        assert mechanism_of_planes.output_count == (3**mechanism_of_planes.dimensions - 1) // 2
        assert mechanism_of_planes.output_count >= values
        assert mechanism_of_planes.dimensions == 2 or (3 ** (mechanism_of_planes.dimensions - 1) - 1) // 2 < values


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_signed_sums_are_those_of_the_matrix(size: int) -> None:
    rng, matrix = np.random.default_rng(size), sylvester(size)
    plus, minus = rng.random((3, size)), rng.random((3, size))
    found = signed_sums(plus, minus)
    for one, other, sums in ((plus, minus, found[0]), (minus, plus, found[1])):
        np.testing.assert_allclose(sums, one @ (matrix == 1) + other @ (matrix == -1), rtol=1e-14)


@pytest.mark.parametrize(("prime", "dimensions"), [(2, 2), (2, 5), (3, 3), (5, 3), (7, 2)])
def test_points_are_numbered_as_listed(prime: int, dimensions: int) -> None:
    listed = np.array(all_points(prime, dimensions)).T
    numbers = np.arange(client.points(prime, dimensions))
    np.testing.assert_array_equal(point_coordinates(numbers, prime, dimensions), listed)
    np.testing.assert_array_equal(point_numbers(listed, prime), numbers)
    for number in numbers.tolist():
        digits = client.point_digits(number, prime)
        assert [*digits, 1] == listed[: len(digits) + 1, number].tolist()


def oracles() -> st.SearchStrategy[FrequencyOracle]:
    return st.one_of(listed_sets(), sketches())


@given(oracles(), st.integers(0, 99))
@examples(60)
def test_unbiased_shares_have_the_true_shares_as_mean(mechanism: FrequencyOracle, seed: int) -> None:
    """The mean over all outputs, and its variance where there is a formula; refused where hashes are too few."""
    outputs = mechanism.outputs
    if outputs is None or len(outputs) > 3000:
        return
    size = len(mechanism.domain)
    codes, theta = mechanism.output_space.encode(outputs), np.random.default_rng(seed).dirichlet(np.ones(size))
    chances = theta @ mechanism.matrix()
    if isinstance(mechanism, Sketch):
        buckets = mechanism.buckets(np.arange(mechanism.hashes))
        shared = np.mean(buckets[:, :, None] == buckets[:, None, :], axis=0)
        if np.linalg.cond(shared) > 1e6:
            return
    found = mechanism.unbiased_shares(mechanism.support_counts(codes, chances), 1.0)
    np.testing.assert_allclose(found, theta, atol=1e-8 / -math.expm1(-mechanism.epsilon))
    if isinstance(mechanism, ListedSets) and mechanism.epsilon > 0.01:
        each = [mechanism.unbiased_shares(mechanism.support_counts(codes[[at]], np.ones(1)), 1.0) for at in codes]
        variance = chances @ np.array(each) ** 2 - theta**2
        np.testing.assert_allclose(mechanism.share_variance(theta), variance, rtol=1e-6)


@pytest.mark.parametrize(
    "mechanism",
    [
        hb.HadamardResponse(hb.Integers(0, 499), 1.0),
        hb.ProjectiveResponse(hb.Integers(0, 499), 1.0),
        hb.CountMeanSketch(hb.Integers(0, 499), 1.0, hashes=40, width=64),
        hb.HadamardCountMeanSketch(hb.Integers(0, 499), 1.0, hashes=40, width=64),
    ],
    ids=lambda each: type(each).__name__,
)
def test_support_counts_by_structure_are_those_of_the_sets(mechanism: FrequencyOracle) -> None:
    rng = np.random.default_rng(0)
    codes = mechanism.output_space.encode(mechanism.privatize(rng.integers(0, 500, 300), rng=rng))
    counts = rng.integers(1, 9, 300).astype(np.float64)
    with structured_only():
        found = mechanism.support_counts(codes, counts)
    assert isinstance(mechanism, ListedSets | Sketch)
    held = np.stack([mechanism.holds(codes, np.array(value)) for value in range(500)]) @ counts
    if isinstance(mechanism, hb.HadamardResponse):
        blocks = int(mechanism.blocks or 1)
        elsewhere = codes // mechanism.size != np.arange(500)[:, None] % blocks
        held = held + elsewhere @ counts / 2
    np.testing.assert_allclose(found, held, atol=1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "mechanism",
    [
        hb.HadamardResponse(hb.Integers(0, 29), 1.5),
        hb.ProjectiveResponse(hb.Integers(0, 29), 1.5),
        hb.CountMeanSketch(hb.Integers(0, 29), 1.5, hashes=20, width=16),
        hb.HadamardCountMeanSketch(hb.Integers(0, 29), 1.5, hashes=20, width=16),
    ],
    ids=lambda each: type(each).__name__,
)
def test_plans_draw_support_as_reports_have_it(mechanism: FrequencyOracle) -> None:
    """The same means and variances as from reports drawn user by user."""
    rng, truth = np.random.default_rng(1), np.random.default_rng(2).dirichlet(np.ones(30))
    runs, users = 400, 200
    drawn = draw_support(mechanism, users, truth, runs, rng)
    reported = []
    for _ in range(runs):
        codes = mechanism.output_space.encode(mechanism.privatize(rng.choice(30, users, p=truth), rng=rng))
        reported.append(mechanism.support_counts(codes, np.ones(users)))
    both = [np.array(drawn, dtype=np.float64), np.array(reported)]
    spread = np.sqrt(sum(each.var(axis=0) / runs for each in both))
    assert np.abs((both[0].mean(axis=0) - both[1].mean(axis=0)) / spread).max() < 5
    assert both[0].var(axis=0).mean() == pytest.approx(both[1].var(axis=0).mean(), rel=0.1)


def test_values_that_share_all_buckets_are_alike_and_cannot_be_inverted() -> None:
    mechanism = hb.CountMeanSketch(hb.Integers(0, 9), 1.0, hashes=1, width=2)
    codes = mechanism.output_space.encode(mechanism.privatize(np.arange(10), rng=0))
    buckets = mechanism.buckets(np.arange(1))[0]
    logs = mechanism.log_columns(codes)
    for value, other in itertools.combinations(range(10), 2):
        assert np.allclose(logs[value], logs[other]) == (buckets[value] == buckets[other])
    assert hb.audit(mechanism, draws=2_000).verdict == "proven"
    with pytest.raises(hb.EstimateError, match="tell all values apart"):
        hb.estimate(hb.Reports.from_outputs(mechanism, mechanism.privatize(np.arange(10), rng=0)), method="inv-n")


def test_the_exact_ratio_of_a_sketch_is_the_largest_one_of_its_table() -> None:
    for mechanism in (
        hb.CountMeanSketch(hb.Integers(0, 4), 1.2, hashes=2, width=4),
        hb.HadamardCountMeanSketch(hb.Integers(0, 4), 1.2, hashes=2, width=4),
    ):
        rows = rows_of(mechanism.law, 5)
        largest = max(one[at] / two[at] for one in rows for two in rows for at in range(len(one)))
        exact = hb.audit(mechanism, draws=2_000).exact
        assert exact is not None
        assert exact.ratio == largest <= Fraction(math.exp(1.2)) * (1 + Fraction(1, 10**12))


def test_error_probabilities_of_sketches_are_those_of_their_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    from hubbub.auditing import error_probability_bounds as bounds

    for mechanism in (
        hb.CountMeanSketch(hb.Integers(0, 5), 3.0, hashes=3, width=3),
        hb.HadamardCountMeanSketch(hb.Integers(0, 5), 3.0, hashes=3, width=4),
    ):
        found = hb.error_probability(mechanism, [1, 5, 40, 200], bound="union")
        with monkeypatch.context() as patched:
            patched.setattr(bounds, "Sketch", hb.Cloaking)
            listed = hb.error_probability(mechanism, [1, 5, 40, 200], bound="union")
        np.testing.assert_allclose(found, listed, rtol=1e-6)
    merged = hb.CountMeanSketch(hb.Integers(0, 9), 1.0, hashes=1, width=2)
    assert hb.error_probability(merged, 10_000) >= 0.75


def test_outputs_of_a_sketch_are_written_and_read() -> None:
    mechanism = hb.CountMeanSketch(hb.Integers(0, 9), 1.0, hashes=300, width=9)
    sent = mechanism.privatize(np.arange(10), rng=0)
    texts = [mechanism.output_space.write(row) for row in sent]
    assert [int(text.split(":")[0]) for text in texts] == sent["hash"].tolist()
    read = mechanism.output_space.encode([mechanism.output_space.parse(text) for text in texts])
    np.testing.assert_array_equal(mechanism.output_space.decode(read), sent)
    np.testing.assert_array_equal(mechanism.output_space.encode(texts), read)


def verdict(mechanism: hb.Mechanism, sender: hb.Mechanism) -> str:
    rng = np.random.default_rng(1)
    values = rng.integers(0, len(mechanism.domain), 40_000)
    return hb.audit_samples(mechanism, values, sender.privatize(values, rng=rng), level=0.999).verdict


LINE = hb.Integers(0, 9)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("mechanism", "wrong"),
    [
        (hb.HadamardResponse(LINE, 1.0), hb.HadamardResponse(LINE, 1.15)),
        (hb.HadamardResponse(LINE, 1.0), hb.HadamardResponse(LINE, 0.85)),
        (hb.ProjectiveResponse(LINE, 1.0), hb.ProjectiveResponse(LINE, 1.15)),
        (hb.CountMeanSketch(LINE, 1.0), hb.CountMeanSketch(LINE, 1.15)),
        (hb.CountMeanSketch(LINE, 1.0), hb.CountMeanSketch(LINE, 1.0, hashes=900)),
        (hb.HadamardCountMeanSketch(LINE, 1.0), hb.HadamardCountMeanSketch(LINE, 1.15)),
        (hb.HadamardCountMeanSketch(LINE, 1.0, hashes=64), hb.HadamardCountMeanSketch(LINE, 1.0, hashes=60)),
    ],
)
def test_samples_of_a_client_are_audited(mechanism: hb.Mechanism, wrong: hb.Mechanism) -> None:
    assert verdict(mechanism, mechanism) == "no fault found"
    assert verdict(mechanism, wrong) == "refuted"
