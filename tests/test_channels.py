"""Every channel by structure does what its matrix does, forward and backward, to the last digits."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

import hubbub as hb
from hubbub import mechanisms
from hubbub.channels import (
    AskedBitsChannel,
    BitSetChannel,
    BitSketchChannel,
    BloomChannel,
    Channel,
    ConcatenatedChannel,
    ConvolutionChannel,
    DecayChannel,
    DenseChannel,
    DiagonalPlusConstantChannel,
    HadamardBlocksChannel,
    HashedSetChannel,
    HyperplaneChannel,
    ProductChannel,
    ReindexedChannel,
    SignSketchChannel,
    SparseChannel,
    StairChannel,
    WindowChannel,
    product_channel,
)
from hubbub.channels.lattice_window import LatticeWindow
from hubbub.likelihood import Likelihood
from hubbub.mechanisms import local_hashing as hashing
from hubbub.mechanisms.local_hashing import hash_v1
from strategies import examples
from strategies import mechanisms as every_mechanism

Floats = NDArray[np.float64]
pytestmark = pytest.mark.usefixtures("no_dense_channels")


def matrix_of(mechanism: hb.Mechanism, codes: NDArray[np.int64], among: NDArray[np.int64] | None) -> DenseChannel:
    values = len(mechanism.domain) if among is None else among.size
    return DenseChannel.from_logs(values, len(codes), lambda part: mechanism.log_columns(codes[part], among))


def assert_alike(channel: Channel, reference: Channel, seed: int = 0) -> None:
    """The same operator: on batches, on single vectors, for any sign; entries, rows and logarithms alike."""
    rng = np.random.default_rng(seed)
    assert (channel.values, channel.patterns) == (reference.values, reference.patterns)
    lift = np.exp(channel.log_scale - reference.log_scale)  # scales may differ: that of a pattern is a matter of taste
    theta = rng.dirichlet(np.full(channel.values, 0.5), size=3)
    # An FFT's error is relative to the likeliest pattern convolved with it, though never more than 1e-8 of any.
    fourier = isinstance(channel, ConvolutionChannel | ReindexedChannel)
    size = np.exp(reference.log_scale - reference.log_scale.max()) if fourier else 1.0
    expected = reference.forward(theta)
    for input_, wanted in ((theta, expected), (theta[0], expected[0])):
        found = channel.forward(input_) * lift
        np.testing.assert_allclose(found * size, wanted * size, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found, wanted, rtol=1e-8 if fourier else 1e-12, atol=1e-300)
    signed = rng.normal(size=(2, channel.values))
    found = channel.forward(signed) * lift
    np.testing.assert_allclose(found * size, reference.forward(signed) * size, rtol=0, atol=1e-12)
    ratio = rng.exponential(size=(3, channel.patterns))
    expected = reference.backward(ratio / lift)
    np.testing.assert_allclose(channel.backward(ratio), expected, rtol=1e-12, atol=1e-12 * expected.max())
    np.testing.assert_allclose(channel.backward(ratio[0]), expected[0], rtol=1e-12, atol=1e-12 * expected.max())
    signed = rng.normal(size=(2, channel.patterns))
    expected = reference.backward(signed / lift)
    np.testing.assert_allclose(channel.backward(signed), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    np.testing.assert_allclose(channel.dense() * lift, reference.dense(), rtol=1e-12, atol=1e-300)
    chosen = rng.permutation(channel.values)[: 1 + channel.values // 2]
    np.testing.assert_allclose(channel.rows(chosen) * lift, reference.rows(chosen), rtol=1e-12, atol=1e-300)
    some = rng.permutation(channel.patterns)[: 1 + channel.patterns // 2]
    np.testing.assert_allclose(channel.log_columns(some), reference.log_columns(some), rtol=1e-12, atol=1e-12)


def assert_squares(channel: Channel, reference: Channel) -> None:
    weights = np.random.default_rng(5).exponential(size=channel.patterns)
    lift = np.exp(channel.log_scale - reference.log_scale)
    expected = reference.dense() ** 2 @ (weights / lift**2)
    # As in `assert_alike`: the error of an FFT is relative to the likeliest pattern, but never more than 1e-8 of any.
    close = 1e-8 if isinstance(channel, ConvolutionChannel | ReindexedChannel) else 1e-11
    np.testing.assert_allclose(channel.squares(weights), expected, rtol=close, atol=1e-12 * expected.max())


@st.composite
def observed(draw: st.DrawFn) -> tuple[hb.Mechanism, NDArray[np.int64], NDArray[np.int64] | None]:
    """A mechanism, some of its outputs, and perhaps a part of its values."""
    mechanism = draw(every_mechanism())
    size = len(mechanism.domain)
    values = mechanism.domain.labels[draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=12))]
    outputs = mechanism.privatize(values, rng=draw(st.integers(0, 99)))
    codes = np.unique(mechanism.output_space.encode(outputs), axis=0)
    among = None
    if draw(st.booleans()):
        among = np.array(sorted(draw(st.sets(st.integers(0, size - 1), min_size=1))))
    return mechanism, codes, among


@given(observed(), st.integers(0, 99))
@examples(150)
def test_every_mechanisms_channel_is_its_matrix(
    case: tuple[hb.Mechanism, NDArray[np.int64], NDArray[np.int64] | None], seed: int
) -> None:
    mechanism, codes, among = case
    channel = mechanism.encoded_channel(codes, among)
    reference = matrix_of(mechanism, codes, among)
    assert_alike(channel, reference, seed)
    if getattr(mechanism.domain, "cells", None) is None:  # a pattern that collects cells has the sum of their squares
        assert_squares(channel, reference)


WORDS = hb.Categories([f"w{number}" for number in range(9)])
KINDS = [
    (hb.RandomizedResponse(hb.Categories(list(range(9))), 1.0), DiagonalPlusConstantChannel),
    (hb.Geometric(hb.Integers(-3, 12), 0.7), DecayChannel),
    (hb.TruncatedGeometric(hb.Integers(0, 15), 0.3), DecayChannel),
    (hb.Laplace(hb.Integers(0, 15), 0.4), DecayChannel),
    (hb.Laplace(hb.Bins([0.0, 0.5, 2.0, 2.1, 6.0, 7.0]), 0.9), DecayChannel),
    (hb.Exponential(hb.Bins([0.0, 0.5, 2.0, 2.1, 6.0, 7.0]), 0.9), DecayChannel),
    (hb.Exponential(hb.Grid(5, 3), 0.9), ConvolutionChannel),
    (hb.Exponential(hb.Grid(5, 3, cells=[0, 1, 2, 7, 9, 13]), 0.9), ConvolutionChannel),
    (hb.PlanarGeometric(hb.Grid(7, 4, cell=(0.5, 0.75)), 1.0), ConvolutionChannel),
    (hb.PlanarGeometric(hb.Grid(11, 1), 0.8), ConvolutionChannel),  # a line
    (hb.PlanarGeometric(hb.Grid(1, 11), 0.8), ConvolutionChannel),
    (hb.PlanarGeometric(hb.Grid(2, 2), 0.8), ConvolutionChannel),
    (hb.PlanarGeometric(hb.Grid(5, 4, cells=[0, 3, 4, 6, 11, 12, 19]), 2.0), ConvolutionChannel),
    (hb.PlanarGeometric(hb.Grid(4, 6), 0.8, truncated=False), ConvolutionChannel),
    (hb.PlanarLaplace(hb.Grid(6, 5), 0.8), ConvolutionChannel),
    (hb.Rappor(hb.Integers(0, 20), 1.0), BitSetChannel),
    (hb.LongitudinalRappor(hb.Integers(0, 20), 3.0, 1.0), BitSetChannel),
    (hb.LongitudinalUnary(hb.Integers(0, 20), 3.0, 1.0), BitSetChannel),
    (hb.LongitudinalResponse(hb.Categories(list(range(9))), 3.0, 1.0), DiagonalPlusConstantChannel),
    (hb.LongitudinalHashing(hb.Integers(0, 20), 3.0, 1.0), BitSetChannel),
    (hb.DBitFlip(hb.Integers(0, 20), 3.0, 9, 4), AskedBitsChannel),
    (hb.DBitFlip(hb.Integers(0, 20), 3.0), AskedBitsChannel),
    (hb.BloomRappor(WORDS, 5, 16, 2, f=0.5, p=0.5, q=0.75), BloomChannel),
    (hb.BloomRappor(WORDS, 3, 100, 16, epsilon=9.0, first=4.0, rest="w3"), BloomChannel),
    (hb.DBitFlip(hb.Integers(0, 20), 30.0, 5, 1), AskedBitsChannel),
    (hb.OptimizedUnary(hb.Integers(0, 20), 1.0), BitSetChannel),
    (hb.SubsetSelection(hb.Integers(0, 20), 1.0), BitSetChannel),
    (hb.LocalHashing(hb.Integers(0, 20), 1.0), BitSetChannel),
    (hb.SquareWave(hb.Integers(0, 20), 1.0), WindowChannel),
    (hb.SquareWave(hb.Bins([0.0, 0.5, 2.0, 2.1, 6.0, 7.0]), 1.0, reach=5), WindowChannel),
    (hb.Piecewise(hb.Integers(-5, 20), 2.0), WindowChannel),
    (hb.Staircase(hb.Integers(-5, 20), 2.0), StairChannel),
    (hb.Staircase(hb.Bins(np.arange(0.0, 6.0, 0.5)), 0.3, gamma=1), StairChannel),
    (hb.Staircase(hb.Integers(0, 30), 4.0, gamma="1/30"), StairChannel),
    (hb.Unary(hb.Integers(0, 20), 0.6, 0.3), BitSetChannel),
    (hb.HadamardResponse(hb.Integers(0, 20), 1.0), HadamardBlocksChannel),
    (hb.HadamardResponse(hb.Integers(0, 20), 4.0), HadamardBlocksChannel),
    (hb.HadamardResponse(hb.Integers(0, 20), 1.0, blocks=1), HadamardBlocksChannel),
    (hb.ProjectiveResponse(hb.Integers(0, 20), 1.0), HyperplaneChannel),
    (hb.ProjectiveResponse(hb.Integers(0, 20), 1.0, prime=2), HyperplaneChannel),
    (hb.ProjectiveResponse(hb.Integers(0, 20), 5.0), HyperplaneChannel),
    (hb.CountMeanSketch(hb.Integers(0, 20), 1.0, hashes=5, width=9), BitSketchChannel),
    (hb.HadamardCountMeanSketch(hb.Integers(0, 20), 1.0, hashes=5, width=16), SignSketchChannel),
    (hb.Cloaking(hb.Integers(0, 20), [place // 2 for place in range(21)]), SparseChannel),
    (
        hb.Matrix(hb.Integers(0, 19), list(range(20)), np.eye(20)[np.random.default_rng(0).permutation(20)]),
        SparseChannel,
    ),
]


@pytest.mark.parametrize(("mechanism", "kind"), KINDS, ids=lambda value: getattr(value, "__name__", repr(value)[:40]))
def test_structure_is_used_and_exact_in_every_mechanism(mechanism: hb.Mechanism, kind: type[Channel]) -> None:
    rng = np.random.default_rng(3)
    values = mechanism.domain.labels[rng.integers(len(mechanism.domain), size=200)]
    codes = np.unique(mechanism.output_space.encode(mechanism.privatize(values, rng=rng)), axis=0)
    for among in (None, np.array([0, 1, 3]), np.array([len(mechanism.domain) - 1])):
        channel = mechanism.encoded_channel(codes, among)
        assert isinstance(channel, kind) or (kind is ConvolutionChannel and isinstance(channel, ReindexedChannel))
        assert_alike(channel, matrix_of(mechanism, codes, among))
        twice = np.concatenate([codes, codes[::2], codes[:1]])  # outputs that occur several times
        assert_alike(mechanism.encoded_channel(twice, among), matrix_of(mechanism, twice, among))
        none = mechanism.encoded_channel(codes[:0], among)
        assert none.forward(np.full(none.values, 1 / none.values)).shape == (0,)
        assert not none.backward(np.zeros(0)).any()


def test_every_kind_of_mechanism_was_looked_at() -> None:
    of_two_values = {"CrosswiseModel", "ForcedResponse", "UnrelatedQuestion", "Warner"}  # they need no structure
    of_two_outputs = {"Duchi"}  # nor does this one
    of_products = {"SampleOne", "SampleOneWithFakes", "Split"}  # test_products.py and test_product_channels.py
    known = {type(mechanism).__name__ for mechanism, _ in KINDS}
    assert known == set(mechanisms.__all__) - {"Mechanism"} - of_two_values - of_two_outputs - of_products


@pytest.mark.parametrize("among", [None, np.array([0, 3, 4, 17])])
@pytest.mark.parametrize("gamma", ["1/4", 1])
def test_outputs_far_outside_say_what_others_say(gamma: str | int, among: NDArray[np.int64] | None) -> None:
    """Merged patterns have the same likelihood, up to a factor; and no two that are left are proportional."""
    mechanism = hb.Staircase(hb.Integers(0, 20), 1.0, gamma=gamma)
    codes = np.arange(-150, 171)
    channel = mechanism.encoded_channel(codes, among)
    merged = channel.merged()
    assert merged is not None
    fewer, places = merged
    assert fewer.patterns < channel.patterns / 2
    np.testing.assert_array_equal(fewer.dense()[:, places], channel.dense())
    assert len(np.unique(fewer.dense(), axis=1).T) == fewer.patterns or among is not None
    assert fewer.merged() is None
    assert mechanism.encoded_channel(np.array([7])).merged() is None


@pytest.mark.parametrize("buckets", [2, 3, 7, 1000])
def test_compiled_hash_is_the_published_one(buckets: int) -> None:
    rng = np.random.default_rng(buckets)
    codes = np.stack([rng.integers(2**63, size=400).astype(np.uint64), rng.integers(buckets, size=400)], axis=1)
    codes = codes.astype(np.uint64)
    mechanism = hb.LocalHashing(hb.Integers(0, 98), 1.0, buckets)
    expected = hash_v1(codes[:, :1], np.arange(99)[None, :], buckets) == codes[:, 1:]
    np.testing.assert_array_equal(mechanism.sets(codes), np.packbits(expected, axis=1))
    assert expected.any()
    for among in (None, np.array([1, 5, 6, 90])):
        hashed = HashedSetChannel(codes, 99, buckets=buckets, low=0.2, log_scale=np.zeros(400), among=among)
        bits = BitSetChannel(mechanism.sets(codes), 99, low=0.2, log_scale=np.zeros(400), among=among)
        assert_alike(hashed, bits)
        assert_squares(hashed, bits)


def test_hashing_goes_on_the_fly_where_bits_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = hb.LocalHashing(hb.Integers(0, 30), 1.5)
    outputs = mechanism.privatize(np.arange(31), rng=0)
    kept = hb.estimate(hb.Reports.from_outputs(mechanism, outputs), method="mle")
    monkeypatch.setattr(hashing, "MAX_SET_BITS", 0)
    reports = hb.Reports.from_outputs(mechanism, outputs)
    assert isinstance(reports.channel, HashedSetChannel)
    fresh = hb.estimate(reports, method="mle")
    assert fresh.converged
    assert abs(fresh.log_likelihood - kept.log_likelihood) < 1e-6


@given(st.integers(0, 10_000))
@examples(30)
def test_products_are_multiplied_anew(seed: int) -> None:
    rng = np.random.default_rng(seed)
    items = np.log(rng.random((7, 5)))
    items[rng.random(items.shape) < 0.1] = -np.inf
    repeats = sparse.csr_array(rng.integers(0, 4, size=(30, 5)))
    assert_alike(ProductChannel(items, repeats), product_channel(items, repeats), seed)
    assert_squares(ProductChannel(items, repeats), product_channel(items, repeats))


def test_products_in_several_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from hubbub.channels import composite as join

    rng = np.random.default_rng(0)
    items, repeats = np.log(rng.random((7, 5))), sparse.csr_array(rng.integers(0, 4, size=(30, 5)))
    monkeypatch.setattr(join, "CHUNK_ENTRIES", 50)
    assert_alike(ProductChannel(items, repeats), product_channel(items, repeats))
    monkeypatch.setattr(join, "MAX_KEPT_ENTRIES", 100)
    assert isinstance(product_channel(items, repeats), ProductChannel)


def test_channels_side_by_side() -> None:
    domain = hb.Integers(0, 9)
    parts = []
    for mechanism in (hb.Laplace(domain, 0.5), hb.RandomizedResponse(domain, 1.0), hb.Rappor(domain, 2.0)):
        codes = np.unique(mechanism.output_space.encode(mechanism.privatize(np.arange(10), rng=1)), axis=0)
        parts.append((mechanism.encoded_channel(codes), matrix_of(mechanism, codes, None)))
    assert_alike(ConcatenatedChannel([part for part, _ in parts]), ConcatenatedChannel([part for _, part in parts]))
    assert_squares(ConcatenatedChannel([part for part, _ in parts]), ConcatenatedChannel([part for _, part in parts]))


def test_a_convolution_keeps_the_digits_of_what_is_small() -> None:
    """All mass in one corner: the far corner's probability is far below an FFT's rounding."""
    grid = hb.Grid(40, 30, cell=1.0)
    mechanism = hb.PlanarGeometric(grid, 1.5)
    codes = np.arange(len(grid))
    channel = mechanism.encoded_channel(codes)
    assert isinstance(channel, ConvolutionChannel)
    theta = np.zeros(len(grid))
    theta[[0, 1]] = 0.25, 0.75
    expected = matrix_of(mechanism, codes, None).forward(theta)
    assert expected.min() < 1e-25
    np.testing.assert_allclose(channel.forward(theta), expected, rtol=1e-7)


def test_a_decay_keeps_the_digits_of_what_is_small() -> None:
    mechanism = hb.TruncatedGeometric(hb.Integers(0, 600), 1.0)
    codes = np.arange(601)
    theta = np.zeros(601)
    theta[0] = 1.0
    channel = mechanism.encoded_channel(codes)
    expected = matrix_of(mechanism, codes, None).forward(theta)
    assert expected.min() < 1e-250
    np.testing.assert_allclose(channel.forward(theta), expected, rtol=1e-11)


def test_bands_say_the_same_as_the_decay() -> None:
    """theta and f from u by three diagonals each: what the interior point factorises on lines."""
    rng = np.random.default_rng(2)
    for mechanism, kind in KINDS:
        if kind is not DecayChannel:
            continue
        outputs = mechanism.privatize(mechanism.domain.labels[rng.integers(len(mechanism.domain), size=99)], rng=rng)
        codes = np.unique(mechanism.output_space.encode(outputs), axis=0)
        for among in (None, np.array([0, 2, 3])):
            channel = mechanism.encoded_channel(codes, among)
            assert isinstance(channel, DecayChannel)
            assert channel.tridiagonal_form is not None
            u = np.concatenate([[0.0], rng.normal(size=channel.values), [0.0]])
            around = u[np.arange(channel.values)[:, None] + np.arange(3)]
            theta = (channel.tridiagonal_form.theta * around).sum(axis=1)
            fitted = (channel.tridiagonal_form.fitted * u[channel.tridiagonal_form.centre[:, None] + np.arange(3)]).sum(
                axis=1
            )
            np.testing.assert_allclose(channel.forward(theta), fitted, rtol=1e-9, atol=1e-9)


def test_a_planted_fault_is_noticed() -> None:
    """The comparison itself can fail: a convolution that forgets the remapped border."""
    grid = hb.Grid(6, 5)
    mechanism = hb.PlanarGeometric(grid, 1.0)
    codes = np.arange(len(grid))
    channel = mechanism.encoded_channel(codes)
    assert isinstance(channel, ConvolutionChannel)
    whole = channel.lattice
    bare = LatticeWindow(
        whole.columns, whole.rows, whole.log_table, False, whole.values, whole.cells, None, whole.patterns
    )
    with pytest.raises(AssertionError):
        assert_alike(
            ConvolutionChannel(bare, channel.log_scale, channel.log_columns), matrix_of(mechanism, codes, None)
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("far", [5, 30, 60, 400])
def test_one_output_far_outside_spoils_nothing(far: int) -> None:
    """Its likelihood is tiny for all values; convolved with the others, it would drown them in rounding."""
    grid = hb.Grid(20, 20, cell=1.0)
    mechanism = hb.PlanarGeometric(grid, 1.0, truncated=False)
    rng = np.random.default_rng(0)
    outputs = mechanism.privatize(rng.integers(400, size=5000), rng=rng)
    reports = hb.Reports.from_outputs(mechanism, np.concatenate([outputs, [[19 + far, 3]]]))
    assert_certified(reports)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", [hb.PlanarGeometric, hb.PlanarLaplace, hb.Exponential])
def test_restricted_to_a_corner_of_a_grid(kind: type[hb.PlanarGeometric]) -> None:
    """Most outputs are unlikely for every value that is kept."""
    grid = hb.Grid(30, 30, cell=1.0)
    mechanism = kind(grid, 1.5)
    rng = np.random.default_rng(0)
    outputs = mechanism.privatize(rng.integers(900, size=4000), rng=rng)
    corner = [grid.cell(column, row) for column in range(12) for row in range(12)]
    assert_certified(hb.Reports.from_outputs(mechanism, outputs).restrict(corner))


def assert_certified(reports: hb.Reports) -> None:
    """Structure gives the same likelihood, gap, EM and maximum as the matrix."""
    channel = reports.channel
    assert isinstance(channel, ConvolutionChannel | ReindexedChannel)
    every = np.arange(channel.patterns)
    matrix = DenseChannel.from_logs(channel.values, channel.patterns, lambda part: channel.log_columns(every[part]))
    dense = Likelihood(matrix, reports.weights, reports.users)
    uniform = np.full(channel.values, 1 / channel.values)
    rough = np.random.default_rng(0).dirichlet(np.full(channel.values, 0.3)) + 1e-12
    for theta in (uniform, rough / rough.sum()):
        measured = Likelihood.of(reports).at(theta).measured_gap
        assert measured == pytest.approx(dense.at(theta).measured_gap, rel=1e-9, abs=1e-12)
        assert dense.at(theta).measured_gap <= hb.optimality_gap(reports, theta) <= 1.01 * measured + 1e-11
        assert hb.log_likelihood(reports, theta) == pytest.approx(dense.at(theta).log_likelihood, rel=1e-10)
    steps = hb.estimate(reports, method="ibu", max_iter=30, delta=1e-9)
    point = dense.at(uniform)
    for _ in range(steps.iterations):
        point = dense.at(point.update)
    np.testing.assert_allclose(steps.probabilities, point.theta, rtol=1e-6, atol=1e-12)
    for solver in ("interior point", "support generation"):
        best = hb.estimate(reports, method="mle", solver=solver, tol=1e-7)
        assert best.converged, best.status
        assert dense.at(best.probabilities).gap <= 1.001e-7


@pytest.mark.parametrize("size", [400, 600])
def test_a_mechanism_of_ones_own_keeps_its_own_logarithms(size: int) -> None:
    """`log_columns` is overridden where a matrix would underflow, or cannot be built."""

    @dataclass(frozen=True)
    class Steep(hb.Mechanism):
        domain: hb.Integers
        epsilon: float = 40.0

        @property
        def outputs(self) -> NDArray[np.int64]:
            return self.domain.labels

        def matrix(self) -> Floats:
            raise RuntimeError("not to be built")

        def log_columns(self, codes: NDArray[np.int64], among: NDArray[np.int64] | None = None) -> Floats:
            values = np.arange(len(self.domain)) if among is None else among
            logs: Floats = -self.epsilon * np.abs(values[:, None] - codes[None, :]).astype(np.float64)
            return logs

    mechanism = Steep(hb.Integers(0, size - 1))
    reports = hb.Reports.from_counts(mechanism, np.ones(size, dtype=np.int64))
    theta = np.zeros(size)
    theta[0] = 1.0
    assert hb.log_likelihood(reports, theta) == pytest.approx(-40.0 * size * (size - 1) / 2)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_child_computes_after_its_parent_did() -> None:
    """With one thread that proves nothing; the threads of a parent must not be touched where there are several."""
    code = """
import os, numpy as np, hubbub as hb
mechanism = hb.Rappor(hb.Integers(0, 499), 2.0)
reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(np.arange(500).repeat(80), rng=0))
def update():
    return hb.estimate(reports, method="ibu", max_iter=1).probabilities
mine = update()
child = os.fork()
if child == 0:
    os._exit(0 if (update() == mine).all() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True)  # noqa: S603
    assert done.returncode == 0, done.stderr
