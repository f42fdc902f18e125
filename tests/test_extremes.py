"""Numbers at the edge of what floats hold: no NaN is certified, nothing that is merely small counts as impossible."""

import math

import numpy as np
import pytest

import hubbub as hb
from hubbub.likelihood import Likelihood

LINE = hb.Geometric(hb.Integers(0, 2000), 1.0)


def test_a_tiny_start_is_no_certificate() -> None:
    split = hb.Matrix(hb.Integers(0, 1), ["a", "b"], np.eye(2))
    reports = hb.Reports.from_counts(split, [5, 5])
    shortfall = 0.5 * (math.log(0.25) - math.log(1e-320))
    assert hb.optimality_gap(reports, [1.0, 1e-320]) >= shortfall
    estimate = hb.estimate(reports, "mle", start=[1.0, 1e-320])
    assert estimate.probabilities == pytest.approx([0.5, 0.5])
    assert estimate.converged


@pytest.mark.parametrize("theta", [[math.nan, 0.5], [math.inf, 0.0], [math.nan, math.nan]])
def test_what_is_not_a_number_is_never_certified(theta: list[float]) -> None:
    reports = hb.Reports.from_counts(hb.RandomizedResponse(hb.Integers(0, 1), 1.0), [5, 5])
    with np.errstate(invalid="ignore"):
        point = Likelihood.of(reports).at(np.array(theta))
        assert not point.gap < math.inf
        assert not point.log_likelihood > -math.inf


def test_the_gap_of_a_vector_that_is_no_distribution_is_that_of_its_shape() -> None:
    reports = hb.Reports.from_counts(hb.RandomizedResponse(hb.Integers(0, 1), 1.0), [7, 5])
    likelihood = Likelihood.of(reports)
    theta = np.array([0.2, 0.8])
    assert likelihood.at(3 * theta).gap == pytest.approx(likelihood.at(theta).gap)


def test_a_pattern_that_nobody_sent_says_nothing() -> None:
    cloak = hb.Cloaking(hb.Integers(0, 2), ["a", "b", "c"])
    channel = cloak.channel(["a", "b", "c"])
    sent = Likelihood(channel, np.array([3.0, 4.0, 0.0]), 7).at(np.array([3 / 7, 4 / 7, 0.0]))
    assert sent.log_likelihood == pytest.approx(3 * math.log(3 / 7) + 4 * math.log(4 / 7))
    assert sent.gap == pytest.approx(0, abs=1e-12)
    assert np.isfinite(sent.gradient).all()


def test_certain_bits_are_not_impossible() -> None:
    reports = hb.Reports.from_bit_counts(hb.Rappor(hb.Integers(0, 3), 150.0), [10, 0, 0, 0], 10)
    assert hb.log_likelihood(reports, [1, 0, 0, 0]) == pytest.approx(0, abs=1e-20)
    assert reports.restrict([0]).users == 10


def test_far_outputs_of_one_user_multiply_without_vanishing() -> None:
    """100 twice and 1,000 once: the median, 100, is most likely, by hundreds of nats."""
    estimate = hb.estimate(hb.Reports.from_users([[(LINE, 100), (LINE, 100), (LINE, 1000)]]), "mle")
    assert estimate.probabilities[100] == 1
    assert estimate.log_likelihood == pytest.approx(3 * math.log(math.tanh(0.5)) - 900)


def test_far_outputs_of_several_users() -> None:
    reports = hb.Reports.from_users([[(LINE, 100), (LINE, 1700)], [(LINE, 5)]])
    for method in ("ibu", "mle"):
        estimate = hb.estimate(reports, method)
        assert np.isfinite(estimate.probabilities).all()
        assert math.isfinite(estimate.gap)


def test_a_likelihood_too_small_for_floats_is_not_zero() -> None:
    reports = hb.Reports.from_outputs(LINE, [0, 1, 2])
    theta = np.zeros(2001)
    theta[900] = 1.0
    expected = 3 * math.log(math.tanh(0.5)) - 900 - 899 - 898
    assert hb.log_likelihood(reports, theta) == pytest.approx(expected)
    best = hb.estimate(reports, "mle").log_likelihood
    assert hb.optimality_gap(reports, theta) >= (best - expected) / 3
    assert hb.optimality_gap(reports, theta) == pytest.approx(899 + math.log((1 + 2 * math.exp(-1)) / 3), abs=0.6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "mechanism",
    [
        hb.TruncatedGeometric(hb.Integers(0, 3000), 1.0),
        hb.Laplace(hb.Integers(0, 3000), 1.0),
        hb.Exponential(hb.Integers(0, 3000), 2.0),
        hb.PlanarGeometric(hb.Grid(3001, 1, cell=1.0), 1.0),
        hb.PlanarLaplace(hb.Grid(3001, 1, cell=1.0), 1.0),
        hb.PlanarGeometric(hb.Grid(3001, 1, cell=1.0), 1.0, truncated=False),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_far_values_stay_possible(mechanism: hb.Mechanism) -> None:
    """exp(-3000) is no float, but its logarithm is; and an update from there still moves."""
    free = isinstance(mechanism, hb.PlanarGeometric) and not mechanism.truncated
    outputs = [(3000, 0)] if free else [3000]
    far = hb.Reports.from_outputs(mechanism, outputs)
    theta = np.zeros(3001)
    theta[0] = 1.0
    assert -3100 < hb.log_likelihood(far, theta) < -2900
    kept = far.restrict([0, 1])
    assert hb.estimate(kept, "mle").probabilities == pytest.approx([0, 1])


def test_whole_numbers_that_floats_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(hb.DomainError, match="too far from 0"):
        hb.Integers(2**60, 2**60 + 9)
    assert hb.Integers(2**53 - 9, 2**53).distances().max() == 9


def test_a_restricted_domain_is_no_mechanisms_domain() -> None:
    restricted = hb.Reports.from_outputs(LINE, [5, 6]).restrict([5, 6, 7]).domain
    with pytest.raises(hb.MechanismError, match="whole domain"):
        hb.RandomizedResponse(restricted, 1.0)


def test_large_channels_are_not_built_to_look_at_one_pattern() -> None:
    """One hashed report over 20,000 values: a table of the square of that would be gigabytes."""
    mechanism = hb.LocalHashing(hb.Integers(0, 19_999), 1.0)
    estimate = hb.estimate(hb.Reports.from_outputs(mechanism, [(7, 1)]), "mle")
    assert estimate.converged
    assert "not the only maximum" in estimate.status


def test_long_cells_do_not_hang() -> None:
    thin = hb.PlanarGeometric(hb.Grid(1000, 2, cell=(1e-4, 100.0)), 1.0)
    assert thin.privatize([0], rng=1).shape == (1,)
    with pytest.raises(hb.MechanismError, match="too elongated"):
        hb.PlanarGeometric(hb.Grid(1000, 2, cell=(1e-9, 100.0)), 1.0).privatize([0], rng=1)


def test_bits_that_are_all_but_certain_keep_their_logarithms() -> None:
    """At epsilon 150 a kept bit has probability 1 in floats; a flipped one still has e^-75."""
    reports = hb.Reports.from_bit_counts(hb.Rappor(hb.Integers(0, 3), 150.0), [10, 0, 0, 0], 10)
    # Held by value 1, all ten ones of bit 0 and all ten zeros of bit 1 were flipped.
    assert hb.log_likelihood(reports, [0, 1, 0, 0]) == pytest.approx(-20 * 75)
    assert hb.estimate(reports.restrict([1, 2]), "ibu").converged


def test_what_is_not_remapped_needs_no_nearest_cell() -> None:
    land = hb.Grid(40, 40, cells=range(0, 1600, 2))
    with pytest.raises(hb.MechanismError, match="missing cells"):
        hb.PlanarGeometric(land, 0.01)
    with pytest.raises(hb.MechanismError, match="missing cells"):
        hb.PlanarLaplace(land, 0.01)
    free = hb.PlanarGeometric(land, 0.01, truncated=False)
    assert hb.Reports.from_outputs(free, free.privatize([0, 2], rng=1)).users == 2


def test_channels_are_linear_in_both_directions() -> None:
    """Solvers to come multiply by vectors of any sign: nothing may be clipped on the way."""
    domain = hb.Integers(0, 4)
    cloak = hb.Cloaking(domain, [0, 0, 1, 1, 1])
    unary = hb.Rappor(domain, 2.0)
    reports = (
        hb.Reports.from_counts(hb.RandomizedResponse(domain, 1.0), [3, 1, 0, 2, 5])
        + hb.Reports.from_outputs(unary, unary.privatize(domain.labels, rng=1))
        + hb.Reports.from_bit_counts(unary, [3, 2, 1, 0, 3], 3)
        + hb.Reports.from_users([[(cloak, 1), (hb.TruncatedGeometric(domain, 0.5), 4)]])
    )
    rng = np.random.default_rng(2)
    for channel in (reports.channel, reports.restrict([2, 4]).channel):
        dense = channel.dense()
        theta, ratio = rng.normal(size=(3, channel.values)), rng.normal(size=(3, channel.patterns))
        np.testing.assert_allclose(channel.forward(theta), theta @ dense, rtol=0, atol=1e-13)
        np.testing.assert_allclose(channel.backward(ratio), ratio @ dense.T, rtol=0, atol=1e-13)


def test_an_update_never_falls_below_zero() -> None:
    """Bits so certain that a value's gradient is all rounding."""
    reports = hb.Reports.from_bit_counts(hb.Rappor(hb.Integers(0, 3), 400.0), [7, 3, 0, 0], 10)
    estimate = hb.estimate(reports, "ibu", delta=1e-9, history=True)
    assert estimate.history is not None
    assert (estimate.history.probabilities >= 0).all()
    assert estimate.probabilities == pytest.approx([0.7, 0.3, 0, 0], abs=1e-8)
