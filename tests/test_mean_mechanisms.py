"""Unary encoding with any probabilities, Duchi's two answers, and staircase noise: against their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hubbub as hb
from hubbub.auditing.exact_epsilon import prove_epsilon
from hubbub.channels.base import structured_only
from hubbub.outputs.output_enumeration import enumerate_outputs
from hubbub.planning.candidates import candidates_from
from hubbub.planning.pattern_simulation import PatternTable
from strategies import examples, staircases

COLOURS = hb.Categories(["red", "green", "blue"])
LINE = hb.Integers(-2, 4)
HALVES = hb.Bins(np.arange(0.0, 4.0, 0.5))
SURE = 1 - 1e-6


def alike(one: Any, other: Any) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def listed(mechanism: hb.Mechanism) -> NDArray[Any]:
    outputs = mechanism.outputs
    assert outputs is not None
    return outputs


# -- unary encoding ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 7.0])
def test_the_unary_encodings_of_the_literature_are_cases_of_one(epsilon: float) -> None:
    """SUE keeps every bit with e^(eps/2) / (1 + e^(eps/2)); OUE has 1/2 and 1 / (1 + e^eps): law, channel, estimate."""
    kept = 1 / (1 + math.exp(-epsilon / 2))
    ones = [40, 55, 30]
    for known, p, q in (
        (hb.Rappor(COLOURS, epsilon), kept, 1 - kept),
        (hb.OptimizedUnary(COLOURS, epsilon), 0.5, 1 / (1 + math.exp(epsilon))),
    ):
        own = hb.Unary(COLOURS, p, q)
        alike(own.epsilon, epsilon)
        alike(own.matrix(), known.matrix())
        alike(own.support, known.support)
        rows = listed(own)
        alike(own.channel(rows).log_dense(), known.channel(rows).log_dense())
        law, known_law = own.law, known.law
        alike(float(law.own), known_law.own / 2**known_law.width)
        alike(float(law.other), known_law.other / 2**known_law.width)
        counts = np.arange(1, 9)
        estimates = [
            hb.estimate(hb.Reports.from_outputs(each, np.repeat(rows, counts, axis=0)), "mle").probabilities
            for each in (own, known)
        ]
        np.testing.assert_allclose(estimates[0], estimates[1], atol=1e-9)
        sums = [hb.Reports.from_bit_counts(each, ones, 90) for each in (own, known)]
        inverted = [hb.estimate(each, "inv-n").probabilities for each in sums]
        np.testing.assert_allclose(inverted[0], inverted[1], atol=1e-9)


def test_probabilities_are_taken_as_they_are_written() -> None:
    bits = hb.Unary(COLOURS, 0.7, "1/6")
    assert (bits.p, bits.q) == (Fraction(7, 10), Fraction(1, 6))
    assert bits == hb.Unary(COLOURS, Fraction(7, 10), Fraction(1, 6))
    ratio = Fraction(7, 10) * Fraction(5, 6) / (Fraction(1, 6) * Fraction(3, 10))
    assert bits.epsilon >= math.log(ratio) * (1 - 1e-15)
    assert prove_epsilon(bits).ratio == ratio


# -- two answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [LINE, HALVES, hb.Integers(0, 1)], ids=repr)
@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 2.0, 40.0])
def test_duchi_has_the_published_probabilities(domain: hb.Integers | hb.Bins, epsilon: float) -> None:
    places = domain.places
    t = 2 * (places - places[0]) / (places[-1] - places[0]) - 1
    slope = math.tanh(epsilon / 2) / 2  # (e^eps - 1) / (2 (e^eps + 1))
    duchi = hb.Duchi(domain, epsilon)
    np.testing.assert_allclose(duchi.matrix()[:, 1], 0.5 + t * slope, rtol=1e-12, atol=1e-15)
    assert duchi.outputs.tolist() == [-1, 1]
    np.testing.assert_allclose(duchi.matrix()[-1, 0], 1 / (1 + math.exp(epsilon)), rtol=1e-12)
    np.testing.assert_allclose([float(chance) for chance in duchi.law.chances], duchi.matrix()[:, 1], rtol=1e-12)
    proof = prove_epsilon(duchi)
    assert proof.holds
    assert float(proof.low) == pytest.approx(epsilon, rel=1e-9)


def test_two_values_are_randomized_response() -> None:
    two = hb.Integers(0, 1)
    alike(hb.Duchi(two, 1.3).matrix(), hb.RandomizedResponse(two, 1.3).matrix())


def test_the_mean_alone_is_identified() -> None:
    duchi = hb.Duchi(LINE, 2.0)
    spread, middle = np.full(7, 1 / 7), np.eye(7)[3]
    alike(spread @ duchi.matrix(), middle @ duchi.matrix())
    reports = hb.Reports.from_counts(duchi, {-1: 400, 1: 600})
    assert not hb.identify(reports).identifiable
    with pytest.raises(hb.SettingError, match="mean alone"):
        candidates_from("duchi", domain=LINE, epsilon=1.0)
    assert len(candidates_from("duchi", domain=hb.Integers(0, 1), epsilon=1.0)) == 1


# -- stairs -----------------------------------------------------------------------------------------------


def published(steps: int, epsilon: float, stair: int, near: int) -> float:
    """Return Geng and Viswanath's discrete law: a, e^-eps a, and then e^-eps of what `stair` steps before have."""
    b = math.exp(-epsilon)
    top = (1 - b) / (2 * near + 2 * b * (stair - near) - (1 - b))
    steps = abs(steps)
    if steps >= stair:
        return b * published(steps - stair, epsilon, stair, near)
    return top if steps < near else b * top


@pytest.mark.sampled(3)
@pytest.mark.parametrize("domain", [LINE, HALVES, hb.Integers(5, 6)], ids=repr)
@pytest.mark.parametrize("epsilon", [0.4, 1.0, 4.0])
def test_the_stairs_are_the_published_ones(domain: hb.Integers | hb.Bins, epsilon: float) -> None:
    stair = len(domain) - 1
    for near in range(1, stair + 1):
        noise = hb.Staircase(domain, epsilon, Fraction(near, stair))
        assert noise.reach == near - 1
        outputs = listed(noise)
        wanted = [
            [published(output - own, epsilon, stair, near) for output in outputs.tolist()]
            for own in domain.labels.tolist()
        ]
        np.testing.assert_allclose(noise.matrix(), wanted, rtol=1e-11)
        proof = prove_epsilon(noise)
        assert proof.holds
        assert float(proof.low) == pytest.approx(epsilon, rel=1e-12)


def test_the_default_stairs_have_the_least_variance_of_all() -> None:
    for values in (2, 3, 8, 20):
        for epsilon in (0.2, 1.0, 3.0, 8.0):
            domain = hb.Integers(0, values - 1)
            noises = [hb.Staircase(domain, epsilon, Fraction(near, values - 1)) for near in range(1, values)]
            variances = [float(noise.matrix()[0] @ listed(noise).astype(float) ** 2) for noise in noises]
            assert hb.Staircase(domain, epsilon) == noises[int(np.argmin(variances))]


def test_shares_of_the_line_are_rounded_up() -> None:
    domain = hb.Integers(0, 10)
    for gamma, reach in ((1e-9, 0), (0.1, 0), (0.10001, 1), ("1/3", 3), (0.95, 9), (1, 9)):
        noise = hb.Staircase(domain, 1.0, gamma)
        assert noise.reach == reach, gamma
        assert hb.Staircase(domain, 1.0, noise.gamma) == noise


@examples(60)
@given(staircases(), st.data())
def test_sums_over_intervals_are_those_of_the_matrix(noise: hb.Staircase, data: st.DataObject) -> None:
    size = len(noise.domain)
    first = int(noise.domain.labels[0])
    codes = np.unique(data.draw(st.lists(st.integers(first - 9 * size, first + 9 * size), min_size=1, max_size=30)))
    among = np.unique(data.draw(st.lists(st.integers(0, size - 1), min_size=1))) if data.draw(st.booleans()) else None
    with structured_only():
        channel = noise.encoded_channel(codes, among)
    logs = noise.log_columns(codes, among)
    np.testing.assert_allclose(channel.log_dense(), logs, rtol=1e-12, atol=1e-12)
    stored = np.exp(logs - channel.log_scale)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    theta, weights = rng.dirichlet(np.ones(channel.values)), rng.random(codes.size)
    np.testing.assert_allclose(channel.forward(theta), theta @ stored, rtol=1e-12)
    np.testing.assert_allclose(channel.backward(weights), stored @ weights, rtol=1e-12)
    np.testing.assert_allclose(channel.squares(weights), stored**2 @ weights, rtol=1e-12)


@examples(40)
@given(staircases())
def test_folded_outputs_stand_for_all(noise: hb.Staircase) -> None:
    folded, factors = noise.folded_outputs()
    np.testing.assert_allclose(np.exp(noise.log_columns(folded) + factors).sum(axis=1), 1.0, rtol=1e-12)
    far = np.arange(folded[0] - 5 * len(noise.domain), folded[-1] + 5 * len(noise.domain))
    apart = noise.log_columns(far) - noise.log_columns(noise.fold(far))
    np.testing.assert_allclose(apart, np.broadcast_to(apart[0], apart.shape), atol=1e-9)
    assert (noise.fold(folded) == folded).all()
    assert noise.fold(far).min() >= folded[0]
    assert noise.fold(far).max() <= folded[-1]


def test_studies_by_folded_outputs_are_those_by_all_outputs() -> None:
    noise = hb.Staircase(hb.Integers(0, 8), 1.0)
    table = PatternTable.of(noise, 1)
    assert table is not None
    truth = np.random.default_rng(3).dirichlet(np.ones(9))
    outputs = listed(noise)
    assert len(table.codes) < len(outputs) / 5
    sent = np.bincount(noise.fold(outputs) - table.codes[0], truth @ noise.matrix(), minlength=len(table.codes))
    np.testing.assert_allclose(table.shares(truth), sent, rtol=1e-9, atol=1e-13)
    drawn = noise.privatize(np.repeat(np.arange(9), 300), rng=1)
    whole = hb.estimate(hb.Reports.from_outputs(noise, drawn), "mle").probabilities
    fewer = hb.estimate(hb.Reports.from_outputs(noise, noise.fold(drawn)), "mle").probabilities
    np.testing.assert_allclose(whole, fewer, atol=1e-8)
    every = enumerate_outputs(noise, 100, None)
    assert every is not None
    np.testing.assert_allclose(every.probabilities.sum(axis=1), 1.0, rtol=1e-12)


def test_outputs_far_away_keep_their_likelihoods() -> None:
    noise = hb.Staircase(hb.Integers(0, 3), 2.0)
    logs = noise.log_columns(np.array([2**61, 10**12, -(10**12)]))
    assert np.isfinite(logs).all()
    assert np.ptp(logs[:, 1]) == pytest.approx(2.0, abs=1e-3)


def test_with_fakes_the_stairs_keep_what_they_claim() -> None:
    ages, sex = hb.Integers(0, 3), hb.Categories(["f", "m"])
    for part in (hb.Staircase(ages, 1.0), hb.Duchi(ages, 1.0), hb.Unary(ages, 0.6, 0.3)):
        both = hb.SampleOneWithFakes(age=part, sex=hb.RandomizedResponse(sex, 1.0))
        assert prove_epsilon(both).holds
        assert prove_epsilon(hb.Split(age=part, sex=hb.RandomizedResponse(sex, 1.0))).holds


# -- clients of others ------------------------------------------------------------------------------------

FAULTS: dict[str, tuple[hb.Mechanism, Callable[[Any], Any]]] = {
    "continuous Laplace noise, rounded": (
        hb.Staircase(LINE, 2.0),
        lambda values: np.rint(values + np.random.default_rng(1).laplace(0, 3.0, values.size)).astype(np.int64),
    ),
    "stairs of the wrong length": (
        hb.Staircase(LINE, 2.0),
        lambda values: hb.Staircase(hb.Integers(-2, 5), 2.0).privatize(values, rng=1),
    ),
    "the nearer end": (
        hb.Duchi(LINE, 1.0),
        lambda values: hb.Duchi(LINE, 1.0).privatize(np.where(values > 0, 4, -2), rng=1),
    ),
    "p and q exchanged for the zeros": (
        hb.Unary(LINE, 0.6, 0.2),
        lambda values: hb.Unary(LINE, 0.8, 0.4).privatize(values, rng=1),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_samples_of_something_else_are_refuted(fault: str) -> None:
    mechanism, client = FAULTS[fault]
    values = np.random.default_rng(2).integers(-2, 5, 20_000)
    assert hb.audit_samples(mechanism, values, client(values)).verdict == "refuted"
    right = hb.audit_samples(mechanism, values, mechanism.privatize(values, rng=5), level=SURE)
    assert right.verdict == "no fault found", right.explain()
