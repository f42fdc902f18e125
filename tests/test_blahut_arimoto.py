"""Rate-distortion channels: closed forms, the certificate against an optimum found otherwise, epsilon, and refusals.

Closed forms: Cover and Thomas, "Elements of Information Theory", 2006, section 10.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hubbub as hb
from hubbub.core.progress import Progress
from hubbub.designing.blahut_arimoto import (
    RateDistortion,
    blahut_arimoto,
    channel_of,
    epsilon_per_distance,
    solve_rate_distortion,
)
from strategies import examples

Floats = NDArray[np.float64]
BOTH = pytest.mark.parametrize("design", [blahut_arimoto, solve_rate_distortion])
Design = Callable[..., RateDistortion]


def entropy(*shares: float) -> float:
    """Return the entropy in nats."""
    return -sum(share * math.log(share) for share in shares if share > 0.0)


def plain_iteration(prior: Floats, distances: Floats, beta: float, updates: int) -> Floats:
    """Return output weights after some updates, written as in Blahut's paper: channel, then output, in turn."""
    weights = np.full(distances.shape[1], 1.0 / distances.shape[1])
    for _ in range(updates):
        channel = weights * np.exp(-beta * distances)
        channel /= channel.sum(axis=1, keepdims=True)
        weights = prior @ channel
    return weights


def objective(prior: Floats, distances: Floats, beta: float, channel: Floats) -> float:
    """Return the information of a channel plus beta times its distortion."""
    sent = prior @ channel
    held = channel > 0.0
    logs = np.zeros_like(channel)
    logs[held] = np.log((channel / sent)[held])
    return float(prior @ (channel * (logs + beta * distances)).sum(axis=1))


def drawn(seed: int, values: int = 6, outputs: int = 9) -> tuple[Floats, Floats]:
    """Return a prior with a value that nobody has, and distances that are neither square nor symmetric."""
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(values))
    prior[rng.integers(values)] = 0.0
    return prior / prior.sum(), rng.exponential(size=(values, outputs))


@BOTH
@pytest.mark.parametrize("share", [0.5, 0.3, 0.21])
def test_a_binary_source_has_its_rate(design: Design, share: float) -> None:
    # R(D) = H(p) - H(D), reached with D = 1 / (1 + e^beta) as long as that is less than min(p, 1 - p) = 0.21 or more
    result = design([share, 1.0 - share], 1.0 - np.eye(2), math.log(4.0), tol=1e-9)
    assert result.distortion == pytest.approx(0.2, abs=2e-4)
    distortion = result.distortion
    rate = entropy(share, 1.0 - share) - entropy(distortion, 1.0 - distortion)
    assert result.information == pytest.approx(rate, abs=1e-6)
    assert result.converged


@BOTH
def test_a_binary_source_is_told_nothing_about_beyond_its_largest_distortion(design: Design) -> None:
    # With D = min(p, 1 - p) = 0.1 the likelier value is always sent, and nothing is told.
    result = design([0.9, 0.1], 1.0 - np.eye(2), 1.0, tol=1e-9)
    assert result.outputs.tolist() == [0]
    assert result.channel.tolist() == [[1.0], [1.0]]
    assert (result.information, result.distortion) == pytest.approx((0.0, 0.1))


@BOTH
@pytest.mark.parametrize(("values", "beta"), [(3, 0.7), (8, 2.0), (20, 4.0)])
def test_a_uniform_source_has_its_rate(design: Design, values: int, beta: float) -> None:
    # R(D) = log k - H(D) - D log(k - 1), with D = (k - 1) / (k - 1 + e^beta)
    result = design(np.full(values, 1.0 / values), 1.0 - np.eye(values), beta, tol=1e-9)
    distortion = (values - 1.0) / (values - 1.0 + math.exp(beta))
    assert result.distortion == pytest.approx(distortion)
    rate = math.log(values) - entropy(distortion, 1.0 - distortion) - distortion * math.log(values - 1.0)
    assert result.information == pytest.approx(rate)
    assert result.weights == pytest.approx(1.0 / values)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("updates", [0, 1, 5, 60])
def test_updates_are_blahuts(seed: int, updates: int) -> None:
    prior, distances = drawn(seed)
    result = blahut_arimoto(prior, distances, 1.7, tol=0.0, max_iter=updates)
    assert result.outputs.size == 9
    assert result.weights == pytest.approx(plain_iteration(prior, distances, 1.7, updates), rel=1e-9)
    assert result.iterations == updates


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("beta", [0.5, 2.0, 6.0])
def test_the_gap_bounds_what_is_missing(seed: int, beta: float) -> None:
    prior, distances = drawn(seed)
    best = channel_of(plain_iteration(prior, distances, beta, 30_000) + 1e-300, distances, beta)
    least = objective(prior, distances, beta, best)
    for updates in (0, 1, 3, 10, 100):
        result = blahut_arimoto(prior, distances, beta, tol=0.0, max_iter=updates)
        reached = objective(prior, distances, beta, result.channel)
        assert reached == pytest.approx(result.information + beta * result.distortion)
        assert -1e-9 <= reached - least <= result.gap
    for exact in (
        solve_rate_distortion(prior, distances, beta),
        blahut_arimoto(prior, distances, beta, tol=1e-7, max_iter=10**6),
    ):
        assert exact.converged
        assert exact.gap <= 2e-7
        costs = distances[:, exact.outputs]
        assert abs(objective(prior, costs, beta, exact.channel) - least) < 1e-4  # the plain iteration is not done yet
        assert objective(prior, costs, beta, exact.channel) <= least + exact.gap


def test_the_gap_bounds_the_rate_at_the_same_distortion() -> None:
    prior, distances = drawn(3)
    curve = [solve_rate_distortion(prior, distances, beta) for beta in np.geomspace(0.3, 30.0, 200)]
    falling = sorted((point.distortion, point.information) for point in curve)
    at, rates = (np.array(column) for column in zip(*falling, strict=True))
    for updates in (2, 8, 30):
        early = blahut_arimoto(prior, distances, 2.0, tol=0.0, max_iter=updates)
        # A convex curve is below its chords: the rate between two points is at most the chord's.
        chord = float(np.interp(early.distortion, at, rates))
        assert early.information - early.gap <= chord + 1e-9


def test_more_is_told_where_distance_is_dearer() -> None:
    prior, distances = drawn(4)
    curve = [solve_rate_distortion(prior, distances, beta) for beta in (3.0, 5.0, 9.0, 20.0)]
    for cheap, dear in pairwise(curve):
        assert cheap.distortion > dear.distortion
        assert cheap.information < dear.information


@BOTH
def test_the_order_of_outputs_does_not_matter(design: Design) -> None:
    prior, distances = drawn(5)
    order = np.random.default_rng(5).permutation(9)
    first, second = design(prior, distances, 2.0, tol=1e-7), design(prior, distances[:, order], 2.0, tol=1e-7)
    assert first.information == pytest.approx(second.information, abs=1e-6)
    assert sorted(order[second.outputs].tolist()) == first.outputs.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_outputs_that_are_left_out_are_idle(seed: int) -> None:
    prior, distances = drawn(seed, values=5, outputs=30)
    result = solve_rate_distortion(prior, distances, 1.0)
    assert result.outputs.size <= 5  # no more than there are values, as of any maximum
    assert result.weights.sum() == pytest.approx(1.0)
    assert result.channel.sum(axis=1) == pytest.approx(1.0)
    scale = np.exp(-distances)
    prices = prior @ (scale / (scale[:, result.outputs] @ result.weights)[:, None])
    assert prices.max() <= 1.0 + 1e-8
    assert prices[result.outputs] == pytest.approx(1.0, abs=1e-6)


def test_long_distances_do_not_underflow() -> None:
    places = np.arange(4.0) * 1e4
    result = blahut_arimoto([0.4, 0.3, 0.2, 0.1], np.abs(places[:, None] - places), 1.0, max_iter=100)
    assert result.channel == pytest.approx(np.eye(4))
    assert result.information == pytest.approx(entropy(0.4, 0.3, 0.2, 0.1))


@examples(60)
@given(data=st.data(), values=st.integers(2, 12), beta=st.floats(0.05, 20.0), updates=st.integers(0, 30))
def test_epsilon_is_at_most_twice_beta(data: st.DataObject, values: int, beta: float, updates: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    places = rng.normal(size=(values, 2))
    apart = np.hypot(*(places[:, None, :] - places[None, :, :]).transpose(2, 0, 1))
    prior = rng.dirichlet(np.full(values, 0.3))
    early = blahut_arimoto(prior, apart, beta, tol=0.0, max_iter=updates)
    solved = solve_rate_distortion(prior, apart, beta)
    for result in (early, solved):
        if (result.channel > 0.0).all():  # underflow is not what the bound is about
            assert epsilon_per_distance(result.channel, apart) <= result.epsilon_bound * (1.0 + 1e-9) + 1e-9


def test_epsilon_can_come_close_to_twice_beta() -> None:
    # The ends of a line with most people in the middle of each half: the normalisers differ, too.
    grid = hb.Integers(0, 20)
    prior = np.full(21, 1e-6)
    prior[[0, 20]] = 0.5
    channel = solve_rate_distortion(prior / prior.sum(), grid.distances(), 0.5).channel
    assert epsilon_per_distance(channel, grid.distances()) > 0.9


def test_epsilon_of_noise_is_its_own() -> None:
    mechanism = hb.PlanarGeometric(hb.Grid(5, 3, cell=0.5), epsilon=1.3)
    assert epsilon_per_distance(mechanism.matrix(), mechanism.domain.distances()) == pytest.approx(1.3)
    half = np.array([[0.5, 0.5], [1.0, 0.0]])
    assert epsilon_per_distance(half, np.array([[0.0, 2.0], [2.0, 0.0]])) == math.inf


def test_progress_and_status() -> None:
    prior, distances = drawn(1, values=60, outputs=70)
    assert all(isinstance(step, Progress) for step in blahut_arimoto.steps(prior, distances, 1.0, tol=0.0))
    stopped = blahut_arimoto(prior, distances, 1.0, tol=1e-12, max_iter=3)
    assert not stopped.converged
    assert stopped.status.startswith("stopped before the tolerance was reached after 3 iterations")
    assert "interior point" in solve_rate_distortion(prior, distances, 1.0).status


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"prior": [0.5, 0.6]}, "not a distribution"),
        ({"prior": [1.0]}, "wrong number of probabilities"),
        ({"distances": [[0.0, -1.0], [1.0, 0.0]]}, "not a table of distances"),
        ({"distances": [0.0, 1.0]}, "not a table of distances"),
        ({"distances": "far"}, "not a table of distances"),
        ({"distances": [[0.0, math.inf], [1.0, 0.0]]}, "not a table of distances"),
        ({"beta": 0.0}, "beta"),
        ({"beta": math.nan}, "beta"),
        ({"tol": -1.0}, "tol"),
    ],
)
@BOTH
def test_mistakes_are_refused(design: Design, changed: dict[str, object], message: str) -> None:
    right = {"prior": [0.5, 0.5], "distances": [[0.0, 1.0], [1.0, 0.0]], "beta": 1.0}
    with pytest.raises(hb.SettingError, match=message):
        design(**{**right, **changed})
