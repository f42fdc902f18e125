"""Mechanisms with memory besides RAPPOR: likelihoods by summing over permanent responses, and what reports spend.

References are built from published formulas of the two stages, never from the library's whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse, stats

import hubbub as hb
import strategies as own
from hubbub.auditing.privacy_budget import privacy_budget
from hubbub.client import MAX_BUCKETS, Client, ClientError, bucket_of, default_memory_buckets
from hubbub.goodness_of_fit.api import fit_test
from hubbub.intake.study import parse_study
from hubbub.mechanisms.longitudinal import Longitudinal
from hubbub.planning.candidates import candidates_from

Floats = NDArray[np.float64]
ABC, DIGITS = hb.Categories(["a", "b", "c"]), hb.Integers(0, 9)
LEVEL = 1e-8


# -- references -------------------------------------------------------------------------------------------


def response(size: int, epsilon: float) -> Floats:
    other = 1 / (math.exp(epsilon) + size - 1)
    return np.where(np.eye(size, dtype=bool), math.exp(epsilon) * other, other)


def responses(size: int, epsilon: float, first: float) -> tuple[Floats, Floats]:
    """Return the matrices of both stages: k-RR with epsilon, and what makes k-RR with `first` of it."""
    kept = response(size, epsilon)
    return kept, np.linalg.solve(kept, response(size, first)).astype(np.float64)


@cache
def bit_stages(epsilon: float, first: float, kinds: tuple[str, str]) -> tuple[Floats, Floats]:
    """Return P(permanent one | other, own) and P(one | permanent zero, one): the second by a quadratic equation."""
    with mpmath.workdps(60):
        a, b = mpmath.exp(mpmath.mpf(epsilon)), mpmath.exp(mpmath.mpf(first))
        root, half = mpmath.sqrt(a), mpmath.mpf(1) / 2
        p1, q1 = (root / (1 + root), 1 / (1 + root)) if kinds[0] == "sue" else (half, 1 / (1 + a))
        at, slope = (1, -1) if kinds[1] == "sue" else (half, 0)  # p2 = at + slope q2
        (t0, t1), (f0, f1) = ((one * at, one * slope + 1 - one) for one in (p1, q1))  # of a one, own and other
        square = (b - 1) * t1 * f1
        linear = t1 * (1 - f0) - t0 * f1 - b * ((1 - t0) * f1 - t1 * f0)
        constant = t0 * (1 - f0) - b * (1 - t0) * f0
        roots = [-constant / linear]
        if abs(square) > mpmath.mpf("1e-40"):
            spread = mpmath.sqrt(linear**2 - 4 * square * constant)
            roots = [(-linear + sign * spread) / (2 * square) for sign in (1, -1)]
        (q2,) = [root for root in roots if 0 < root < half]
        return np.array([float(q1), float(p1)]), np.array([float(q2), float(at + slope * q2)])


def chance_of_bits(bits: Sequence[int], ones: Floats) -> float:
    return float(math.prod(one if bit else 1 - one for bit, one in zip(bits, ones, strict=True)))


def by_hand(mechanism: Longitudinal, sent: Sequence[Any]) -> list[float]:
    """Return P(reports | value) for every value, by the sum over all permanent responses."""
    size = len(mechanism.domain)
    if isinstance(mechanism, hb.LongitudinalUnary):
        kinds = mechanism.permanent_bits, mechanism.instantaneous_bits
        kept, again = bit_stages(mechanism.epsilon, mechanism.first, kinds)
        rows = list(product((0, 1), repeat=size))
        return [
            sum(
                chance_of_bits(row, kept[[int(place == value) for place in range(size)]])
                * math.prod(chance_of_bits(bits, again[list(row)]) for bits in sent)
                for row in rows
            )
            for value in range(size)
        ]
    if isinstance(mechanism, hb.LongitudinalResponse):
        kept, again = responses(size, mechanism.epsilon, mechanism.first)
        codes = mechanism.domain.index(sent)
        return [float(row @ again[:, codes].prod(axis=1)) for row in kept]
    assert isinstance(mechanism, hb.LongitudinalHashing)
    buckets = int(mechanism.buckets or 0)
    kept, again = responses(buckets, mechanism.epsilon, mechanism.first)
    chances = []
    for value in range(size):
        chance = 1.0
        for seed in {seed for seed, _ in sent}:
            own_reports = [bucket for other, bucket in sent if other == seed]
            chance *= float(kept[bucket_of(seed, value, buckets)] @ again[:, own_reports].prod(axis=1))
        chances.append(chance)
    return chances


def any_output(mechanism: Longitudinal, data: st.DataObject) -> Any:
    size = len(mechanism.domain)
    if isinstance(mechanism, hb.LongitudinalUnary):
        return tuple(data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size)))
    if isinstance(mechanism, hb.LongitudinalResponse):
        return mechanism.domain.labels.tolist()[data.draw(st.integers(0, size - 1))]
    assert isinstance(mechanism, hb.LongitudinalHashing)
    return data.draw(st.sampled_from([7, 4711])), data.draw(st.integers(0, int(mechanism.buckets or 2) - 1))


def of_users(mechanism: hb.Mechanism, users: Sequence[Sequence[Any]]) -> hb.Reports:
    def output(sent: Any) -> Any:
        return np.array(sent) if isinstance(mechanism, hb.LongitudinalUnary) else sent

    return hb.Reports.from_users([[(mechanism, output(sent)) for sent in user] for user in users])


def all_patterns(mechanism: Longitudinal, reports: int) -> Floats:
    """Return the joint log-likelihoods of all that a user can send (under one seed that keeps the values apart)."""
    if isinstance(mechanism, hb.LongitudinalHashing):
        buckets = int(mechanism.buckets or 2)
        apart = (seed for seed in range(100_000) if bucket_of(seed, 0, buckets) != bucket_of(seed, 1, buckets))
        codes = np.stack([np.full(buckets, next(apart)), np.arange(buckets)], axis=1).astype(np.uint64)
    else:
        codes = mechanism.output_space.encode(mechanism.outputs)
    patterns = list(product(range(len(codes)), repeat=reports))
    rows = np.repeat(np.arange(len(patterns)), reports)
    table = sparse.coo_array((np.ones(rows.size, dtype=np.int64), (rows, np.ravel(patterns))))
    return mechanism.joint_log_columns(codes, sparse.csr_array(table))


# -- likelihoods ------------------------------------------------------------------------------------------


@own.examples(90)
@given(own.with_memory(4), st.data())
def test_the_joint_likelihood_sums_over_all_permanent_responses(mechanism: Longitudinal, data: st.DataObject) -> None:
    size = len(mechanism.domain)
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    users = [[any_output(mechanism, data) for _ in range(length)] for length in lengths]
    theta = data.draw(own.distributions(size, full=True))
    expected = [float(theta @ by_hand(mechanism, user)) for user in users]
    reports = of_users(mechanism, users)
    assert hb.log_likelihood(reports, theta) == pytest.approx(sum(map(math.log, expected)), rel=1e-9, abs=1e-12)
    kept = sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1)))
    part = np.zeros(size)
    part[kept] = theta[kept] / theta[kept].sum()
    restricted = reports.restrict(mechanism.domain.labels[kept])
    assert hb.log_likelihood(restricted, part[kept]) == pytest.approx(hb.log_likelihood(reports, part), rel=1e-12)


@own.examples(60)
@given(own.with_memory(4))
def test_single_reports_have_first(mechanism: Longitudinal) -> None:
    """One report is that of the mechanism without memory, where there is one."""
    if isinstance(mechanism, hb.LongitudinalResponse):
        np.testing.assert_allclose(
            mechanism.matrix(), hb.RandomizedResponse(mechanism.domain, mechanism.first).matrix(), rtol=1e-14
        )
    elif isinstance(mechanism, hb.LongitudinalHashing):
        plain = hb.LocalHashing(mechanism.domain, mechanism.first, mechanism.buckets)
        np.testing.assert_allclose(mechanism.matrix(5), plain.matrix(5), rtol=1e-14)
    else:
        bits = [by_hand(mechanism, [row]) for row in product((0, 1), repeat=len(mechanism.domain))]
        np.testing.assert_allclose(mechanism.matrix(), np.array(bits).T, rtol=1e-9)


def test_symmetric_bits_twice_are_rappor_with_memory() -> None:
    rappor = hb.LongitudinalRappor(DIGITS, 3.0, 1.0)
    unary = hb.LongitudinalUnary(DIGITS, 3.0, 1.0, "sue", "sue")
    rng = np.random.default_rng(1)
    users = rng.integers(0, 2, size=(40, 5, 10))
    sent = [[np.array(row) for row in user] for user in users]
    logs = [of_users(each, sent).channel.log_dense() for each in (rappor, unary)]
    np.testing.assert_allclose(np.sort(logs[0].sum(axis=0)), np.sort(logs[1].sum(axis=0)), rtol=1e-13)
    assert [rappor.spent(count) for count in (1, 2, 9)] == pytest.approx([unary.spent(count) for count in (1, 2, 9)])


@pytest.mark.parametrize(("epsilon", "first"), [(2.0, 0.8), (1.0, 0.5), (5.0, 2.0), (0.3, 0.1)])
def test_the_second_stages_are_the_published_ones(epsilon: float, first: float) -> None:
    """L-OSUE and L-OUE as their authors solve them (Arcolezi et al. 2022), in the floats of their formulas."""
    a, b = math.exp(epsilon), math.exp(first)
    osue = hb.LongitudinalUnary(ABC, epsilon, first)
    assert 1 - float(osue.stages.lost) == pytest.approx((1 - a * b) / (b - a - a * b + 1), rel=1e-12)
    oue = hb.LongitudinalUnary(ABC, epsilon, first, "oue", "oue")
    inside = 0.1 * b + 0.05 * b**2 + 0.3 * a + 0.45 * a**2 - a * b - 0.7 * b * a**2 + 0.3 * b**2 * a
    inside += 0.45 * a**2 * b**2 + 0.05
    q2 = (-1.11803398874989 * math.sqrt(inside) - 0.25 * b - 0.25 * a + 0.75 * a * b - 0.25) / a / (b - 1)
    assert float(oue.stages.raised) == pytest.approx(q2, rel=1e-8)
    assert float(oue.stages.lost) == 0.5


def test_the_published_second_stage_of_responses_hides_more_than_it_says() -> None:
    """It solves for two values, where it is ours; with more a report spends less than `first`, and tells less."""
    epsilon, first = 2.0, 1.0
    a, b = math.exp(epsilon), math.exp(first)
    for size in (2, 3, 10):
        p1 = a / (a + size - 1)
        q1 = (1 - p1) / (size - 1)
        p2 = (q1 - b * p1) / (-p1 * b + size * q1 * b - q1 * b - p1 * (size - 1) + q1)
        published = np.where(np.eye(size, dtype=bool), p2, (1 - p2) / (size - 1))
        once = response(size, epsilon) @ published
        told = math.log(once[0, 0] / once[0, 1])
        assert told == pytest.approx({2: 1.0, 3: 0.948, 10: 0.699}[size], abs=1e-3)
        ours = hb.LongitudinalResponse(hb.Integers(1, size), epsilon, first).matrix()
        assert math.log(ours[0, 0] / ours[0, 1]) == pytest.approx(first)


@own.examples(200)
@given(st.floats(0.01, 12.0), st.floats(0.01, 0.99))
def test_the_best_number_of_buckets_is_the_published_one(epsilon: float, share: float) -> None:
    """OLOLOHA (Arcolezi et al. 2023), with digits to spare: no float decides where a border lies."""
    first = share * epsilon
    with mpmath.workdps(60):
        a, b = mpmath.exp(mpmath.mpf(epsilon)), mpmath.exp(mpmath.mpf(first))
        root = mpmath.sqrt(a**4 - 14 * a**2 + 12 * a * b * (1 - a * b) + 12 * a**3 * b + 1)
        best = (1 - a**2 + root) / (6 * (a - b))
        expected = 1 + max(1, int(mpmath.floor(best + mpmath.mpf(1) / 2)))
    assert default_memory_buckets(epsilon, first) == expected
    assert hb.LongitudinalHashing(ABC, epsilon, first).buckets == expected


def test_the_number_of_buckets_is_decided_at_its_extremes() -> None:
    assert default_memory_buckets(500.0, 499.0) == MAX_BUCKETS
    assert default_memory_buckets(2e-12, 1e-12) == 2
    assert default_memory_buckets(500.0, 1e-12) == 2


# -- what reports spend -----------------------------------------------------------------------------------


@own.examples(60)
@given(own.with_memory(3), st.integers(1, 3))
def test_what_reports_spend_is_what_they_can_tell(mechanism: Longitudinal, reports: int) -> None:
    """The largest log-ratio over all that a user can send, and no less."""
    logs = all_patterns(mechanism, reports)
    realised = float((logs.max(axis=0) - logs.min(axis=0)).max())
    assert mechanism.spent(reports) == pytest.approx(realised, rel=1e-9, abs=1e-13)
    assert mechanism.spent(reports) <= mechanism.epsilon
    assert mechanism.spent(0) == 0.0
    assert mechanism.spent(1) == mechanism.first


def test_two_reports_can_tell_more_than_twice_what_one_does() -> None:
    """Adding up `first` would promise too much: by L-GRR with more than two values, and by L-OUE."""
    response = hb.LongitudinalResponse(DIGITS, 1.0, 0.1)
    logs = all_patterns(response, 2)
    assert (logs.max(axis=0) - logs.min(axis=0)).max() > 0.23
    assert response.spent(2) == pytest.approx(0.23298722946528283, rel=1e-12)
    assert hb.LongitudinalUnary(ABC, 8.0, 0.5, "oue", "oue").spent(2) > 1.02
    coin = hb.LongitudinalResponse(hb.Categories(["yes", "no"]), 1.0, 0.1)
    symmetric = hb.LongitudinalUnary(ABC, 8.0, 0.5)
    for fair in (coin, symmetric, hb.LongitudinalUnary(ABC, 8.0, 0.5, "sue", "oue")):
        assert all(fair.spent(count) <= count * fair.first * (1 + 1e-12) for count in range(1, 50))


def test_thousands_of_reports_tell_the_permanent_response_and_no_more() -> None:
    for mechanism, plain in (
        (hb.LongitudinalResponse(DIGITS, 2.0, 0.5), hb.RandomizedResponse(DIGITS, 2.0)),
        (hb.LongitudinalUnary(DIGITS, 2.0, 0.5), hb.OptimizedUnary(DIGITS, 2.0)),
        (hb.LongitudinalHashing(DIGITS, 2.0, 0.5, 4), hb.LocalHashing(DIGITS, 2.0, 4)),
    ):
        kept = mechanism.permanent([3], rng=1)
        sent = mechanism.instantaneous(np.repeat(kept, 4_000, axis=0), rng=2)
        reports = hb.Reports.from_users([[(mechanism, each) for each in sent]])
        columns, expected = reports.channel.log_dense()[:, 0], plain.channel(kept).log_dense()[:, 0]
        np.testing.assert_allclose(columns - columns[0], expected - expected[0], atol=1e-9)
        assert reports.epsilon_per_user() == (2.0, 0.0)
        assert mechanism.spent(10**18) == 2.0


@pytest.mark.parametrize(("epsilon", "first"), [(1e-9, 1e-10), (500.0, 499.0), (500.0, 1e-9), (30.0, 29.999999)])
def test_extreme_epsilons_stay_exact(epsilon: float, first: float) -> None:
    response = hb.LongitudinalResponse(DIGITS, epsilon, first)
    with mpmath.workdps(600):
        a, b = mpmath.exp(mpmath.mpf(epsilon)), mpmath.exp(mpmath.mpf(first))
        odds = (b * (a + 8) - 9) / (a - b)  # e^L
        for reports in (1, 2, 7):
            told = mpmath.log((odds**reports * a + 9) / (odds**reports + a + 8))
            assert response.spent(reports) == pytest.approx(float(told), rel=1e-12)
    for stages in own.UNARY_STAGES[:2]:
        if stages[1] == "oue" and first > 0.5 * epsilon:
            continue
        unary = hb.LongitudinalUnary(DIGITS, epsilon, first, *stages)
        np.testing.assert_allclose(np.exp(unary.log_bits[0]) + np.exp(unary.log_bits[1]), 1.0, rtol=1e-15)
        ratio = unary.log_bits.own_one - unary.log_bits.other_one + unary.log_bits.other_zero - unary.log_bits.own_zero
        assert ratio == pytest.approx(first, rel=1e-9, abs=1e-15)
        gain = unary.log_ones(3)[1]
        assert gain[3] - gain[0] == pytest.approx(unary.spent(3), rel=1e-9)


def test_a_worst_mix_of_mechanisms_takes_dearer_second_reports_into_account() -> None:
    dear, coin = hb.LongitudinalResponse(DIGITS, 1.0, 0.1), hb.RandomizedResponse(DIGITS, 0.12)
    for reports in range(1, 9):
        worst = max(dear.spent(count) + coin.spent(reports - count) for count in range(reports + 1))
        told = privacy_budget([dear, coin], reports).plain
        assert told is not None
        assert worst * (1 - 1e-12) <= told <= worst * 1.2
    assert privacy_budget([dear], 2).plain == dear.spent(2)
    assert privacy_budget([coin, hb.RandomizedResponse(DIGITS, 0.3)], 7).plain == pytest.approx(2.1)
    assert privacy_budget([dear, coin], 1_000_000).plain == pytest.approx(1.0 + 120_000.0)
    rappor = hb.LongitudinalRappor(DIGITS, 1.0, 0.1)
    both = max(rappor.spent(count) + coin.spent(30 - count) for count in range(31))
    assert privacy_budget([rappor, coin], 30).plain == pytest.approx(both, rel=1e-9)


def test_changing_values_spend_by_permanent_responses() -> None:
    assert hb.LongitudinalRappor(DIGITS, 2.0, 0.5).spent_over_values(3) == 6.0
    assert hb.LongitudinalResponse(DIGITS, 2.0, 0.5).spent_over_values(99) == 20.0
    assert hb.LongitudinalHashing(DIGITS, 2.0, 0.5, 3).spent_over_values(99) == 6.0
    assert hb.LongitudinalHashing(DIGITS, 2.0, 0.5, 300).spent_over_values(99) == 20.0
    assert hb.DBitFlip(DIGITS, 2.0, 5, 3).spent_over_values(99) == 8.0
    assert hb.DBitFlip(DIGITS, 2.0).spent_over_values(99) == 20.0
    assert hb.DBitFlip(DIGITS, 2.0).spent_over_values(1) == 2.0


@pytest.mark.parametrize(
    "mechanism",
    [
        hb.LongitudinalResponse(DIGITS, 2.0, 0.5),
        *(hb.LongitudinalUnary(DIGITS, 2.0, 0.5, *stages) for stages in own.UNARY_STAGES),
        hb.LongitudinalHashing(DIGITS, 2.0, 0.5),
        hb.DBitFlip(DIGITS, 2.0, 5, 3),
        hb.DBitFlip(DIGITS, 2.0, 5, 1),
        hb.DBitFlip(DIGITS, 2.0),
    ],
    ids=repr,
)
def test_the_audit_proves_both_promises(mechanism: Longitudinal) -> None:
    audit = hb.audit(mechanism, draws=2_000, reports_per_user=3)
    assert audit.exact is not None
    assert audit.one_report is not None
    assert audit.holds
    assert float(audit.exact.high) == pytest.approx(2.0)
    assert float(audit.one_report.high) == pytest.approx(mechanism.first)
    assert audit.budget.plain == mechanism.spent(3)
    assert "A single report" in audit.explain()
    assert audit.realised_share == pytest.approx(1.0, rel=1e-9)


def test_an_audit_finds_a_louder_second_stage() -> None:
    for louder, loud in (
        (hb.LongitudinalResponse(DIGITS, 2.0, 0.5), hb.LongitudinalResponse(DIGITS, 2.0, 0.51)),
        (hb.LongitudinalUnary(DIGITS, 2.0, 0.5), hb.LongitudinalUnary(DIGITS, 2.0, 0.51)),
        (hb.LongitudinalHashing(DIGITS, 2.0, 0.5, 3), hb.LongitudinalHashing(DIGITS, 2.0, 0.51, 3)),
    ):
        object.__setattr__(louder, "law", loud.law)
        assert hb.audit(louder, draws=200).holds is False


# -- estimates --------------------------------------------------------------------------------------------


def forgetful(kind: type[Any]) -> type[Any]:
    """Return the mechanism as somebody collects it who multiplies the likelihoods of one user's reports."""
    return dataclass(frozen=True, init=False)(
        type("Forgetful", (kind,), {"joint_log_columns": hb.Mechanism.joint_log_columns, "__annotations__": {}})
    )


def simulated(mechanism: Longitudinal, shares: Sequence[float], users: int, reports: int, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    values = rng.choice(len(shares), size=users, p=shares)
    kept = mechanism.permanent(mechanism.domain.labels[values], rng=rng)
    return [mechanism.instantaneous(kept, rng=rng) for _ in range(reports)]


def joined(mechanism: hb.Mechanism, rounds: Sequence[Any]) -> hb.Reports:
    return hb.Reports.from_users([[(mechanism, sent) for sent in user] for user in zip(*rounds, strict=True)])


SHARES = [0.45, 0.25, 0.15, 0.1, 0.05, 0.0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kind", "arguments"),
    [(hb.LongitudinalResponse, (2.0, 1.0)), (hb.LongitudinalHashing, (3.0, 1.5))],
    ids=["response", "hashing"],
)
def test_estimates_from_several_reports_need_the_joint_likelihood(
    kind: Callable[..., Any], arguments: tuple[float, ...]
) -> None:
    mechanism = kind(hb.Integers(0, 5), *arguments)
    rounds = simulated(mechanism, SHARES, 2_500, 20, seed=5)
    naive = forgetful(type(mechanism))(hb.Integers(0, 5), *arguments)
    errors = []
    for each, right in ((mechanism, True), (naive, False)):
        reports = joined(each, rounds)
        errors.append(hb.total_variation(hb.estimate(reports, "mle").probabilities, SHARES))
        interval = hb.interval(reports, 0)
        assert (interval.low <= SHARES[0] <= interval.high) == right
    assert errors[0] < 0.07
    assert errors[1] > 1.5 * errors[0]


def test_repeated_answers_tell_nothing_new() -> None:
    mechanism = hb.DBitFlip(hb.Integers(0, 5), 3.0, 6, 3)
    sent = mechanism.permanent(np.arange(6).repeat(200), rng=2)
    once = hb.Reports.from_outputs(mechanism, sent)
    often = joined(mechanism, [mechanism.instantaneous(sent) for _ in range(7)])
    theta = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    assert hb.log_likelihood(often, theta) == pytest.approx(hb.log_likelihood(once, theta), rel=1e-12)
    np.testing.assert_allclose(
        hb.estimate(often, "mle").probabilities, hb.estimate(once, "mle").probabilities, atol=1e-6
    )
    assert often.epsilon_per_user() == once.epsilon_per_user() == (3.0, 0.0)
    other = mechanism.permanent(np.arange(6).repeat(200), rng=3)  # of a device that forgot: drawn anew
    both = hb.log_likelihood(joined(mechanism, [sent, other, sent]), theta)
    first, second = (mechanism.channel(each).log_dense() for each in (sent, other))
    second[:, (sent == other).all(axis=1)] = 0.0  # by chance the same answers
    assert both == pytest.approx(float(np.log(theta @ np.exp(first + second)).sum()), rel=1e-12)


def test_values_in_one_bucket_cannot_be_told_apart() -> None:
    mechanism = hb.DBitFlip(hb.Integers(0, 10), 4.0, 4, 2)
    assert mechanism.bucket_of(np.arange(11)).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(np.arange(11).repeat(50), rng=1))
    found = hb.identify(reports)
    assert not found.identifiable
    assert found.dimension == 7
    assert "cannot tell" in found.explain()
    whole = hb.DBitFlip(ABC, 2.0)
    assert hb.identify(hb.Reports.from_outputs(whole, whole.privatize(["a", "b", "c"] * 90, rng=1))).identifiable


def test_answers_are_what_was_drawn() -> None:
    mechanism = hb.DBitFlip(hb.Integers(0, 19), 2.0, 10, 4)
    sent = mechanism.privatize(np.full(40_000, 7), rng=4)
    answers = mechanism.answers(sent)
    assert ((answers >= 0).sum(axis=1) == 4).all()
    asked = (answers >= 0).sum(axis=0)
    assert stats.chisquare(asked, np.full(10, 16_000.0)).pvalue > LEVEL  # dependent, so that the test is conservative
    right = 1 / (1 + math.exp(-1.0))
    for bucket in range(10):
        ones, total = int((answers[:, bucket] == 1).sum()), int(asked[bucket])
        assert stats.binomtest(ones, total, right if bucket == 3 else 1 - right).pvalue > LEVEL
    texts = [mechanism.output_space.write(row) for row in sent[:5]]
    np.testing.assert_array_equal(mechanism.output_space.encode(texts), sent[:5])


# -- trust ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [
        hb.LongitudinalResponse(hb.Integers(0, 5), 3.0, 1.5),
        hb.LongitudinalUnary(hb.Integers(0, 11), 2.0, 1.0),
        hb.LongitudinalUnary(hb.Integers(0, 11), 3.0, 1.5, "oue", "oue"),
        hb.LongitudinalHashing(hb.Integers(0, 11), 3.0, 1.5, 3),
    ],
    ids=repr,
)
def test_the_fit_of_honest_reports_is_good_and_devices_that_forget_are_found(mechanism: Longitudinal) -> None:
    size = len(mechanism.domain)
    name = f"two reports of one user, {type(mechanism).__name__}"
    honest = fit_test(joined(mechanism, simulated(mechanism, [1 / size] * size, 3_000, 3, seed=1)))
    assert not honest.rejected
    assert name in [part.name for part in honest.parts]
    values = mechanism.domain.labels[np.arange(3_000) % size]
    forgotten = fit_test(joined(mechanism, [mechanism.privatize(values, rng=seed) for seed in range(3)]))
    assert forgotten.rejected
    assert next(part.p_value for part in forgotten.parts if part.name == name) < 1e-6


@pytest.mark.parametrize("buckets", [(4, 2), (20, 7)], ids=["listed", "moments"])
def test_the_fit_of_answers(buckets: tuple[int, int]) -> None:
    mechanism = hb.DBitFlip(hb.Integers(0, 39), 2.0, *buckets)
    sent = mechanism.permanent(np.arange(4_000) % 40, rng=1)
    fit = fit_test(joined(mechanism, [sent, sent]))
    assert not fit.rejected
    assert "number of ones, DBitFlip" in [part.name for part in fit.parts]
    louder = hb.DBitFlip(hb.Integers(0, 39), 4.0, *buckets).permanent(np.full(4_000, 3), rng=2)
    assert fit_test(hb.Reports.from_outputs(mechanism, louder)).rejected
    other = mechanism.permanent(np.arange(4_000) % 40, rng=5)
    assert "differ: their values changed, or their devices forgot" in fit_test(joined(mechanism, [sent, other])).reason


def exact_error(mechanism: Longitudinal, reports: int) -> float:
    """Return how often the likeliest value is not the first, over all that can be sent, ties being lost."""
    chances = np.exp(all_patterns(mechanism, reports))
    return float(chances[0, (chances[1:].max(axis=0) >= chances[0] * (1 - 1e-9))].sum())


@pytest.mark.parametrize(
    "mechanism",
    [
        hb.LongitudinalResponse(hb.Integers(0, 2), 6.0, 3.0),
        hb.LongitudinalResponse(hb.Categories(["yes", "no"]), 4.0, 1.0),
        hb.LongitudinalUnary(hb.Integers(0, 2), 6.0, 3.0),
    ],
    ids=repr,
)
def test_error_probability_bounds_what_happens_and_does_not_vanish(mechanism: Longitudinal) -> None:
    bounds = np.asarray(hb.error_probability(mechanism, [1, 2, 3]))
    for count, bound in zip((1, 2, 3), bounds.tolist(), strict=True):
        assert exact_error(mechanism, count) <= bound
    assert (np.diff(bounds) <= 0).all()
    plain = hb.RandomizedResponse if isinstance(mechanism, hb.LongitudinalResponse) else hb.OptimizedUnary
    limit = hb.error_probability(plain(mechanism.domain, mechanism.epsilon), 1)
    assert limit <= bounds[2]
    assert hb.error_probability(mechanism, 10**9) == pytest.approx(limit, rel=1e-6)
    if isinstance(mechanism, hb.LongitudinalResponse):
        logs = all_patterns(mechanism, 2)  # with three values or fewer nothing is forgotten: the bound is exact
        overlap = (len(mechanism.domain) - 1) * float(np.exp((logs[0] + logs[1]) / 2).sum())
        assert hb.error_probability(mechanism, 2, bound="union") == pytest.approx(min(1.0, overlap), rel=1e-9)


def test_error_probability_of_hashes_and_answers() -> None:
    hashed = hb.LongitudinalHashing(ABC, 6.0, 3.0, 50)
    bounds = np.asarray(hb.error_probability(hashed, [1, 3, 300]))
    assert bounds[0] >= bounds[1] > bounds[2]
    union = [hb.error_probability(hb.LocalHashing(ABC, epsilon, 50), 1, bound="union") for epsilon in (3.0, 6.0)]
    assert bounds[0] == pytest.approx(union[0])
    assert bounds[2] == pytest.approx(union[1], rel=1e-6)
    asked = hb.DBitFlip(hb.Integers(0, 9), 9.0, 5, 3)
    matrix = asked.matrix()
    overlap = float(np.sqrt(matrix[0] * matrix[4]).sum())  # of two values in different buckets of two each
    expected = (1 + min(1.0, 4 * overlap)) / 2
    np.testing.assert_allclose(hb.error_probability(asked, [1, 50]), expected, rtol=1e-12)


def test_fakes_send_what_favours_a_value() -> None:
    mechanism = hb.DBitFlip(hb.Integers(0, 5), 3.0, 6, 3)
    shift = hb.worst_case_shift(hb.Reports.from_outputs(mechanism, mechanism.privatize([0, 1, 2] * 300, rng=1)), 0.05)
    assert "a one for bucket" in shift.output


# -- devices ----------------------------------------------------------------------------------------------

STUDY = "version = 1\n[domain]\nkind = 'integers'\nlow = 0\nhigh = 9\n[mechanisms.m]\n"
KINDS = {
    "longitudinal-unary": "epsilon = 3.0\nfirst = 1.0",
    "longitudinal-response": "epsilon = 3.0\nfirst = 1.0",
    "longitudinal-hashing": "epsilon = 3.0\nfirst = 1.0\nbuckets = 3",
    "d-bit-flip": "epsilon = 3.0\nbuckets = 5\nbits = 2",
}


def device(tmp_path: Path, kind: str) -> tuple[Client, Longitudinal]:
    path = tmp_path / "study.toml"
    path.write_text(f"{STUDY}kind = '{kind}'\n{KINDS[kind]}\n")
    described = hb.read_study(path).mechanisms["m"]
    assert isinstance(described, Longitudinal)
    return Client(path), described


@pytest.mark.parametrize("kind", KINDS)
def test_devices_draw_what_the_library_does(kind: str, tmp_path: Path) -> None:
    """Reports from kept responses are tested by the law of single reports: each response is used once."""
    client, described = device(tmp_path, kind)
    texts = [client.instantaneous(client.permanent(value)) for value in range(10) for _ in range(250)]
    values = np.repeat(np.arange(10), 250)
    order = np.random.default_rng(1).permutation(values.size)
    assert hb.audit_samples(described, values[order], [texts[at] for at in order]).verdict == "no fault found"
    kept = client.permanent(4)
    assert kept == client.permanent(4, earlier=[kept]) or kind in ("longitudinal-unary", "longitudinal-response")
    assert len({client.instantaneous(kept) for _ in range(60)}) > 1 or kind == "d-bit-flip"


def test_a_seed_and_the_responses_of_buckets_stay(tmp_path: Path) -> None:
    client, _ = device(tmp_path, "longitudinal-hashing")
    kept: dict[int, str] = {}
    for value in [*range(10), *range(10)]:
        kept[value] = client.permanent(value, earlier=list(kept.values()))
    seeds = {text.split(":")[0] for text in kept.values()}
    assert len(seeds) == 1
    owns = {value: bucket_of(int(next(iter(seeds))), value, 3) for value in range(10)}
    for first, second in product(range(10), repeat=2):
        assert (kept[first] == kept[second]) == (owns[first] == owns[second])
    assert len(set(kept.values())) <= 3
    assert client.permanent(1, earlier=kept[1]) == kept[1]  # a single text, too
    assert client.permanent(1) != kept[1]  # another person's


def test_what_is_asked_and_the_answers_stay(tmp_path: Path) -> None:
    client, described = device(tmp_path, "d-bit-flip")
    assert isinstance(described, hb.DBitFlip)
    kept: dict[int, str] = {}
    for value in range(10):
        kept[value] = client.permanent(value, earlier=list(kept.values()))
    sent = described.output_space.encode([client.instantaneous(text) for text in kept.values()])
    asked, _ = described.answered(sent)
    assert (asked == asked[0]).all()
    assert len(set(kept.values())) == 3  # two buckets that are asked, and all others
    for value, text in kept.items():
        bucket = value // 2
        assert text.endswith(f":{bucket}" if asked[0, bucket] else ":-1")


NOT_KEPT: dict[str, list[Any]] = {
    "longitudinal-unary": ["", "0x", "0xff", "0xffff", "zz", None, 4711],
    "longitudinal-response": ["", "10", "-1", "1.0", "0x1", " 1", None, 1],
    "longitudinal-hashing": ["", "1:2", "1:3:0", "1:0:3", "18446744073709551616:0:0", "1:0:0:0", "a:0:0", None, 7],
    "d-bit-flip": ["", "0xc080", "0xe080:0", "0xc008:0", "0xc080:2", "0xc080:-2", "0x0xc080:0", "0xc1c0:0", None],
}


@pytest.mark.parametrize("kind", KINDS)
def test_anything_but_a_permanent_response_is_refused_and_not_repeated(kind: str, tmp_path: Path) -> None:
    client, _ = device(tmp_path, kind)
    for text in NOT_KEPT[kind]:
        with pytest.raises(ClientError, match="not a permanent response") as caught:
            client.instantaneous(text)
        with pytest.raises(ClientError, match="not a permanent response") as also:
            client.permanent(3, earlier=[text])
        assert "earlier" in also.value.where
        assert not text or str(text) not in str(caught.value) or len(str(text)) < 5
    good = {"longitudinal-unary": "0xff80", "longitudinal-response": "9", "longitudinal-hashing": "1:2:0"}
    assert client.instantaneous(good.get(kind, "0xc080:0"))


# -- studies ----------------------------------------------------------------------------------------------


def test_short_names_say_what_they_stand_for() -> None:
    def built(**entries: Any) -> hb.Mechanism:
        document = {"version": 1, "domain": {"kind": "integers", "low": 0, "high": 9}, "mechanisms": {"m": entries}}
        return parse_study(document, "study").mechanisms["m"]

    two = {"epsilon": 3.0, "first": 1.0}
    assert built(kind="L-GRR", **two) == hb.LongitudinalResponse(DIGITS, 3.0, 1.0)
    assert built(kind="l-sue", **two) == hb.LongitudinalRappor(DIGITS, 3.0, 1.0)
    assert built(kind="l-osue", **two) == hb.LongitudinalUnary(DIGITS, 3.0, 1.0)
    assert built(kind="l-soue", **two) == hb.LongitudinalUnary(DIGITS, 3.0, 1.0, "sue", "oue")
    assert built(kind="L-OUE", **two) == hb.LongitudinalUnary(DIGITS, 3.0, 1.0, "oue", "oue")
    assert built(kind="LOLOHA", **two, buckets=4) == hb.LongitudinalHashing(DIGITS, 3.0, 1.0, 4)
    assert built(kind="ololoha", **two) == hb.LongitudinalHashing(DIGITS, 3.0, 1.0)
    assert built(kind="biloloha", **two) == hb.LongitudinalHashing(DIGITS, 3.0, 1.0, 2)
    assert built(kind="dBitFlip", epsilon=3.0, bits=2) == hb.DBitFlip(DIGITS, 3.0, 10, 2)
    with pytest.raises(hb.StudyError, match="buckets"):
        built(kind="biloloha", **two, buckets=3)
    assert len({hash(built(kind=kind, **two)) for kind in ("l-osue", "l-soue", "l-oue", "l-grr", "loloha")}) == 5


def test_a_budget_that_reports_share_is_not_divided() -> None:
    (candidate,) = candidates_from("dBitFlip", domain=ABC, epsilon=2.0, reports_per_user=4)
    assert candidate.parts[0][0] == hb.DBitFlip(ABC, 2.0)
    assert candidate.privacy.ldp == 2.0
    mechanisms = [hb.LongitudinalResponse(ABC, 2.0, 1.0), hb.LongitudinalHashing(ABC, 2.0, 1.0)]
    planned = hb.plan([*mechanisms, hb.DBitFlip(ABC, 2.0, 2, 1)], users=200, reports_per_user=3, runs=3, rng=1)
    assert len(planned.to_frame()) == 3
    with pytest.raises(hb.SettingError, match="needs more than an epsilon"):
        candidates_from("l-grr", domain=ABC, epsilon=2.0)
