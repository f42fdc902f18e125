"""The parts of the solvers: bursts, batches, systems, and what support generation asks of channels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hubbub as hb
from hubbub.channels import (
    ConcatenatedChannel,
    ConvolutionChannel,
    DecayChannel,
    DenseChannel,
    DiagonalPlusConstantChannel,
    RestrictedChannel,
    base,
    convolution,
)
from hubbub.core.progress import finish
from hubbub.core.threads import processors, threads_for
from hubbub.estimators import estimate
from hubbub.likelihood import Likelihood
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.solvers import BatchedUpdates, delta_rule, em_step, gap_rule, iterate
from hubbub.solvers import em_steps as steps
from hubbub.solvers.em_batch import em_batch
from hubbub.solvers.interior_point import InteriorPoint
from hubbub.solvers.newton_systems import (
    BandedSystem,
    DenseSystem,
    DiagonalPlusConstantSystem,
    OperatorSystem,
    System,
    system_for,
)
from strategies import examples

Floats = NDArray[np.float64]


def line(size: int = 30, epsilon: float = 0.3, users: int = 5_000) -> hb.Reports:
    mechanism = hb.TruncatedGeometric(hb.Integers(0, size - 1), epsilon)
    rng = np.random.default_rng(0)
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(rng.binomial(size - 1, 0.4, users), rng=rng))


def structured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_structured_only", True)


# -- bursts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [3.0, 0.01, 1e-5])
def test_bursts_stop_where_single_updates_stop(delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    likelihood = Likelihood.of(line())
    start = likelihood.at(np.full(30, 1 / 30))
    plain = finish(iterate(start, em_step, delta_rule(delta), 20_000))
    monkeypatch.setattr(steps, "MAX_SINGLE_UPDATES", 7)
    monkeypatch.setattr(steps, "ENTRIES_PER_BATCH", 30 * 900)
    quick = finish(iterate(start, BatchedUpdates(delta, 20_000), delta_rule(delta), 20_000))
    assert plain.met
    assert (quick.iterations, quick.met) == (plain.iterations, True)
    np.testing.assert_allclose(quick.point.theta, plain.point.theta, rtol=1e-9)


def test_bursts_respect_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_SINGLE_UPDATES", 5)
    answer = hb.estimate(line(), method="ibu", delta=1e-300, max_iter=123)
    assert answer.iterations == 123
    assert not answer.converged
    kept = hb.estimate(line(), method="ibu", delta=1e-300, max_iter=123, history=True)
    assert kept.history is not None
    assert len(kept.history.log_likelihood) == 124
    np.testing.assert_allclose(answer.probabilities, kept.probabilities, rtol=1e-10)


# -- batches ---------------------------------------------------------------------------------------------


def test_a_batch_is_its_single_runs() -> None:
    likelihood = Likelihood.of(line())
    channel = likelihood.channel
    rng = np.random.default_rng(1)
    weights = rng.multinomial(400, likelihood.shares, size=12).astype(np.float64)
    weights[3] = 0.0
    weights[3, :4] = 5.0, 1.0, 0.0, 2.0
    assert (weights == 0).any()
    starts = rng.dirichlet(np.full(30, 5.0), size=12)
    for start in (np.full(30, 1 / 30), starts):
        many = em_batch(channel, weights, start, delta=0.01, max_iter=500)
        for row, own in enumerate(weights):
            first = Likelihood(channel, own, int(own.sum())).at(start if start.ndim == 1 else start[row])
            alone = finish(iterate(first, em_step, delta_rule(0.01), 500))
            assert many.iterations[row] == alone.iterations
            assert many.met[row] == alone.met
            assert many.log_likelihoods[row] == pytest.approx(alone.point.log_likelihood, rel=1e-12)
            np.testing.assert_allclose(many.thetas[row], alone.point.theta, rtol=1e-9)


def test_a_batch_stops_at_its_limit() -> None:
    likelihood = Likelihood.of(line())
    weights = np.stack([likelihood.weights, likelihood.weights])
    many = em_batch(likelihood.channel, weights, np.full(30, 1 / 30), delta=1e-300, max_iter=9)
    assert many.iterations.tolist() == [9, 9]
    assert not many.met.any()
    nobody = em_batch(likelihood.channel, np.zeros((1, 30)), np.full(30, 1 / 30), delta=0.1, max_iter=9)
    assert nobody.thetas.tolist() == [[1 / 30] * 30]
    assert nobody.iterations.tolist() == [0]
    first = Likelihood.of(line()).at(np.full(30, 1 / 30))
    expected = finish(iterate(first, em_step, delta_rule(1e-300), 9)).point
    np.testing.assert_allclose(many.thetas[1], expected.theta, rtol=1e-12)


def test_a_batch_finds_its_way_where_probabilities_underflow() -> None:
    mechanism = hb.Geometric(hb.Integers(0, 3), 300.0)
    reports = hb.Reports.from_outputs(mechanism, [0, 3])
    likelihood = Likelihood.of(reports)
    start = np.array([1e-5, 1 - 3e-5, 1e-5, 1e-5])
    weights = np.array([[1.0, 1.0], [2.0, 1.0]])
    many = em_batch(likelihood.channel, weights, start, delta=0.1, max_iter=50)
    alone = finish(iterate(likelihood.at(start), em_step, delta_rule(0.1), 50))
    np.testing.assert_allclose(many.thetas[0], alone.point.theta, atol=1e-12)


# -- systems ---------------------------------------------------------------------------------------------


def systems(reports: hb.Reports) -> list[System]:
    channel = reports.channel
    made: list[System] = [DenseSystem(channel), OperatorSystem(channel)]
    if isinstance(channel, DecayChannel):
        assert channel.tridiagonal_form is not None
        made.append(BandedSystem(channel, channel.tridiagonal_form))
    return made


@given(st.integers(0, 999), st.floats(0.02, 3.0), st.sampled_from(["truncated", "geometric", "laplace", "bins"]))
@examples(40)
def test_all_systems_solve_the_same_equations(seed: int, epsilon: float, kind: str) -> None:
    rng = np.random.default_rng(seed)
    domain = hb.Integers(0, 19) if kind != "bins" else hb.Bins(np.cumsum(rng.uniform(0.2, 2.0, 21)))
    mechanism: hb.Mechanism
    if kind == "truncated":
        mechanism = hb.TruncatedGeometric(hb.Integers(0, 19), epsilon)
    elif kind == "geometric":
        mechanism = hb.Geometric(hb.Integers(0, 19), epsilon)
    else:
        mechanism = hb.Laplace(domain, epsilon)
    with pytest.MonkeyPatch.context() as patch:
        structured(patch)
        reports = hb.Reports.from_outputs(
            mechanism, mechanism.privatize(domain.labels[rng.integers(20, size=200)], rng=rng)
        )
        channel = reports.channel
    assert isinstance(channel, DecayChannel)
    curvature, barrier = rng.exponential(size=channel.patterns), rng.exponential(size=20) ** 3 + 1e-4
    right = rng.normal(size=20)
    matrix = channel.dense()
    expected = np.linalg.solve(matrix * curvature @ matrix.T + np.diag(barrier), right)
    for system in systems(reports):
        tolerance = 1e-2 if isinstance(system, OperatorSystem) else 1e-6
        found = system.factor(curvature, barrier)(right)
        assert np.linalg.norm(found - expected) <= tolerance * np.linalg.norm(expected), system.name


PEAKS = st.lists(st.integers(-1, 11), min_size=1, max_size=14)


@given(st.integers(0, 999), st.lists(st.tuples(st.floats(-3.0, 3.0), PEAKS), min_size=1, max_size=3))
@examples(60)
def test_the_system_of_spikes_solves_its_equations(seed: int, several: list[tuple[float, list[int]]]) -> None:
    """Peaks that repeat, values without one, peaks outside the domain, dents instead of peaks, and sums of these."""
    rng = np.random.default_rng(seed)
    parts = [
        DiagonalPlusConstantChannel(12, np.array(peaks), log_at=0.0, log_elsewhere=elsewhere)
        for elsewhere, peaks in several
    ]
    channel = ConcatenatedChannel(parts)
    curvature, barrier = rng.exponential(size=channel.patterns), rng.exponential(size=12) ** 3 + 1e-4
    right = rng.normal(size=12)
    matrix = channel.dense()
    expected = np.linalg.solve(matrix * curvature @ matrix.T + np.diag(barrier), right)
    system = system_for(channel)
    assert isinstance(system, DiagonalPlusConstantSystem)
    found = system.factor(curvature, barrier)(right)
    assert np.linalg.norm(found - expected) <= 1e-6 * np.linalg.norm(expected)


def test_values_that_are_locked_in_are_left_out_of_the_factorisation() -> None:
    channel = line(60).channel
    rng = np.random.default_rng(4)
    curvature = rng.exponential(size=channel.patterns)
    barrier = np.where(np.arange(60) % 4 == 0, 1e-3, 1e6)
    right = rng.normal(size=60)
    matrix = channel.dense()
    expected = np.linalg.solve(matrix * curvature @ matrix.T + np.diag(barrier), right)
    found = DenseSystem(channel).factor(curvature, barrier)(right)
    assert np.linalg.norm(found - expected) <= 1e-9 * np.linalg.norm(expected)


def test_many_values_and_few_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    from hubbub.solvers import newton_systems as module

    monkeypatch.setattr(module, "MAX_SQUARE_VALUES", 10)
    mechanism = hb.Laplace(hb.Integers(0, 99), 0.2)
    reports = hb.Reports.from_outputs(mechanism, [3, 50, 50, 80])
    likelihood = Likelihood.of(reports)
    system = DenseSystem(likelihood.channel)
    start = likelihood.at(np.full(100, 0.01))
    outcome = finish(iterate(start, InteriorPoint(system), gap_rule(1e-7), 60))
    assert outcome.met


# -- what support generation asks of channels ------------------------------------------------------------


def grid_channel(monkeypatch: pytest.MonkeyPatch, mechanism: hb.Mechanism) -> ConvolutionChannel:
    structured(monkeypatch)
    channel = mechanism.encoded_channel(np.arange(len(mechanism.domain)))
    assert isinstance(channel, ConvolutionChannel)
    return channel


def test_near_products_are_the_products_where_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "PRECONDITIONED_MASS", 1.0)
    channel = grid_channel(monkeypatch, hb.Exponential(hb.Grid(7, 7), 1.0))
    weights = np.random.default_rng(0).exponential(size=49)
    near = channel.near_products(weights)
    assert near is not None
    matrix = channel.dense()
    np.testing.assert_allclose(near.toarray(), matrix * weights @ matrix.T, rtol=1e-10)


def test_near_products_stay_positive_semidefinite_and_below_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = grid_channel(monkeypatch, hb.PlanarGeometric(hb.Grid(12, 9), 1.0))
    some = channel.part(np.array([0, 5, 17, 40, 41, 77, 107]))
    assert isinstance(some, DenseChannel)
    monkeypatch.setattr(ConvolutionChannel, "max_written_entries", 0)
    few = channel.part(np.array([0, 5, 17, 40, 41, 77, 107]))
    assert isinstance(few, ConvolutionChannel)
    weights = np.random.default_rng(0).exponential(size=108)
    near = few.near_products(weights)
    assert near is not None
    whole = some.dense() * weights @ some.dense().T
    assert np.linalg.eigvalsh(near.toarray()).min() > 0
    assert (near.toarray() <= whole * (1 + 1e-12)).all()
    inner = [2, 3, 4]  # at the edges, likelihoods collect what is remapped: more than the noise alone
    assert (near.diagonal()[inner] > 0.5 * np.diag(whole)[inner]).all()


def test_a_part_of_a_channel_is_rows_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    structured(monkeypatch)
    monkeypatch.setattr(ConvolutionChannel, "max_written_entries", 0)
    monkeypatch.setattr(ConcatenatedChannel, "max_written_entries", 0)
    grid, ages = hb.Grid(5, 4), hb.Integers(0, 19)
    for mechanisms in (
        [hb.PlanarGeometric(grid, 1.0)],
        [hb.Exponential(grid, 1.0)],
        [hb.Laplace(ages, 0.3)],
        [hb.Exponential(ages, 0.3)],
        [hb.PlanarGeometric(grid, 1.0), hb.PlanarGeometric(grid, 2.0), hb.RandomizedResponse(grid, 1.0)],
    ):
        parts = [mechanism.encoded_channel(np.arange(20)) for mechanism in mechanisms]
        whole = parts[0] if len(parts) == 1 else ConcatenatedChannel(parts)
        positions = np.array([0, 3, 4, 11, 19])
        part = whole.part(positions)
        assert not isinstance(part, DenseChannel)
        np.testing.assert_allclose(part.dense(), whole.dense()[positions], rtol=1e-12)
        np.testing.assert_array_equal(part.log_scale, whole.log_scale)
        theta, ratio = np.random.default_rng(0).dirichlet(np.ones(5)), np.linspace(1, 2, part.patterns)
        chosen = RestrictedChannel(whole, positions)
        np.testing.assert_allclose(part.forward(theta), chosen.forward(theta), rtol=1e-8)
        np.testing.assert_allclose(part.backward(ratio), chosen.backward(ratio), rtol=1e-10)
        np.testing.assert_allclose(part.squares(ratio), chosen.squares(ratio), rtol=1e-10)


def test_local_maxima() -> None:
    mechanism = hb.PlanarGeometric(hb.Grid(600, 2), 1.0)
    channel = mechanism.encoded_channel(np.arange(1200))
    assert isinstance(channel, ConvolutionChannel)
    scores = np.zeros(1200)
    scores[[5, 700]] = 1.0, 2.0
    peaks = channel.local_maxima(scores)
    assert {5, 700} <= set(peaks.tolist())
    assert not {4, 6, 604, 605, 606, 99, 100, 101} & set(peaks.tolist())
    ages = hb.TruncatedGeometric(hb.Integers(0, 999), 0.1).encoded_channel(np.arange(1000))
    rising = np.arange(1000.0)
    assert ages.local_maxima(rising).tolist() == [999]


@pytest.mark.parametrize("mixed", [False, True])
def test_support_generation_on_a_grid_finds_the_maximum(mixed: bool) -> None:
    grid = hb.Grid(30, 20, cell=0.5)
    rng = np.random.default_rng(0)
    reports = []
    for epsilon in (1.0, 3.0) if mixed else (1.0,):
        mechanism = hb.PlanarGeometric(grid, epsilon)
        places = np.clip(np.rint(rng.normal([9, 13], 3, (8_000, 2))), 0, [29, 19]).astype(np.int64)
        reports.append(
            hb.Reports.from_outputs(mechanism, mechanism.privatize(places[:, 1] * 30 + places[:, 0], rng=rng))
        )
    together = sum(reports[1:], reports[0])
    answer = hb.estimate(together, method="mle", solver="support generation")
    assert answer.converged
    assert answer.gap <= 1e-9
    assert hb.optimality_gap(together, answer.probabilities) == pytest.approx(answer.gap, abs=1e-12)
    assert 0 < answer.settings["support"] < 300
    other = hb.estimate(together, method="mle", solver="interior point")
    assert answer.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-8 * together.users)


def test_structure_decides_the_solver() -> None:
    def chosen(mechanism: hb.Mechanism, values: object) -> tuple[str, str | None]:
        reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=0))
        answer = hb.estimate(reports, method="mle", tol=1e-2)  # which solver it is does not depend on the tolerance
        assert answer.converged
        return answer.settings["solver"], answer.settings.get("linear algebra")

    some = np.random.default_rng(0).binomial(900, 0.5, 3000)
    assert chosen(hb.RandomizedResponse(hb.Integers(0, 999), 1.0), some) == ("closed form", None)
    assert chosen(hb.Laplace(hb.Integers(0, 99), 1.0), some % 100) == ("interior point", "dense")
    assert chosen(hb.Laplace(hb.Integers(0, 999), 0.01), some) == ("interior point", "banded")
    assert chosen(hb.TruncatedGeometric(hb.Integers(0, 9_999), 0.01), some)[0] == "support generation"
    assert chosen(hb.PlanarGeometric(hb.Grid(100, 100), 0.5), some)[0] == "support generation"
    assert chosen(hb.Rappor(hb.Integers(0, 999), 4.0), np.tile(some, 9)) == ("interior point", "conjugate gradients")


def test_the_system_follows_the_channel() -> None:
    assert isinstance(system_for(line().channel), DenseSystem)
    long = hb.TruncatedGeometric(hb.Integers(0, 1999), 0.1)
    assert isinstance(system_for(long.encoded_channel(np.arange(2000))), BandedSystem)
    many = hb.RandomizedResponse(hb.Integers(0, 1999), 0.1)
    assert isinstance(system_for(many.encoded_channel(np.arange(2000))), DiagonalPlusConstantSystem)


# -- codes and threads -----------------------------------------------------------------------------------


@given(st.integers(0, 9_999), st.integers(0, 60), st.integers(1, 30), st.sampled_from([np.uint8, np.int64, np.uint64]))
@examples(60)
def test_rows_of_codes_are_merged_whatever_their_order(
    seed: int, rows: int, width: int, kind: type[np.uint8] | type[np.int64] | type[np.uint64]
) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, size=(rows, width)).astype(kind)
    codes[rng.random(rows) < 0.3] = 0  # several equal ones
    distinct, back = index_codes(codes)
    np.testing.assert_array_equal(distinct[back], codes)
    assert len(distinct) == len({tuple(row) for row in codes.tolist()})
    mixed = rng.permutation(rows)
    np.testing.assert_array_equal(index_codes(codes[mixed])[0], distinct)


def test_threads_are_given_back() -> None:
    from threadpoolctl import threadpool_info

    def blas() -> list[int]:
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    before = blas()
    assert before
    with threads_for(10):
        assert set(blas()) == {1}
    assert blas() == before
    with threads_for(10**9):
        assert blas() == before
    # Runs that overlap, or are abandoned half-way, leave nothing behind.
    runs = [estimate.steps(line(), "mle", solver="accelerated em", tol=1e-15) for _ in range(3)]
    for run in runs:
        next(run)
        assert blas() == before
    finish(runs[1])
    finish(runs[0])
    runs[2].close()
    assert blas() == before
    assert processors() >= 1


# -- where digits are scarce -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
def test_bins_of_very_different_widths_are_solved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bins = hb.Bins(np.cumsum(10.0 ** rng.uniform(-5, 0, 601)))
    mechanism = hb.Exponential(bins, 1.0)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(rng.integers(600, size=3000), rng=rng))
    answer = hb.estimate(reports, method="mle")
    assert answer.converged, (answer.status, dict(answer.settings))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-10, 1e-6])
@pytest.mark.parametrize("equal", [True, False])
def test_randomized_response_that_says_almost_nothing(epsilon: float, equal: bool) -> None:
    mechanism = hb.RandomizedResponse(hb.Integers(0, 99_999), epsilon)
    counts = np.full(100_000, 3)
    counts[7] += 0 if equal else 2
    answer = hb.estimate(hb.Reports.from_counts(mechanism, counts), method="mle")
    assert answer.converged
    assert answer.settings["solver"] == "closed form"
    expected = np.full(100_000, 1e-5) if equal else np.arange(100_000) == 7
    np.testing.assert_allclose(answer.probabilities, expected, atol=1e-9)


@pytest.mark.parametrize("short", [1e-6, 1e-8])
def test_a_value_that_is_almost_as_good_is_no_second_maximum(short: float) -> None:
    rows = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.45 - short, 0.45 - short, 0.1 + 2 * short]]
    mechanism = hb.Matrix(hb.Integers(0, 2), ["a", "b", "c"], rows)
    answer = hb.estimate(hb.Reports.from_counts(mechanism, [5000, 5000, 0]), method="mle")
    assert answer.converged
    assert "not the only maximum" not in answer.status


def test_the_limit_that_is_named_is_the_one_that_was_set() -> None:
    answer = hb.estimate(line(60, 0.01), method="mle", max_iter=7, tol=1e-13)
    assert "iteration limit of 7" in answer.status
    assert answer.iterations == 7
