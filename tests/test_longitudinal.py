"""RAPPOR with memory: two stages, reports that share a permanent response, what they spend and what they tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse, stats

import hubbub as hb
import strategies as own
from exactly import rows_of, violations, worst_excess
from hubbub.exporting.json_documents import tally_document
from hubbub.goodness_of_fit.api import fit_test
from hubbub.intake.study import parse_study
from hubbub.reports import Joint
from hubbub.sampling import TwoStageFlipLaw

Floats = NDArray[np.float64]
Rows = NDArray[np.uint8]

ABCD = hb.Categories(["a", "b", "c", "d"])
SIX = hb.Integers(0, 5)
LEVEL = 1e-8


@dataclass(frozen=True)
class Forgetful(hb.LongitudinalRappor):
    """The same mechanism, collected by somebody who takes one user's reports for independent."""

    joint_log_columns = hb.Mechanism.joint_log_columns


def contrasts(mechanism: hb.LongitudinalRappor) -> tuple[float, float]:
    """Return 2a - 1 and 2b - 1, from the definition: (2a - 1)(2b - 1) is the contrast of both stages together."""
    a, together = (math.exp(e / 2) / (1 + math.exp(e / 2)) for e in (mechanism.epsilon, mechanism.first))
    return 2 * a - 1, (2 * together - 1) / (2 * a - 1)


def chance(bits: Sequence[int], given: Sequence[int], kept: float) -> float:
    return math.prod(kept if bit == before else 1 - kept for bit, before in zip(bits, given, strict=True))


def brute_force(mechanism: hb.LongitudinalRappor, reports: Sequence[Sequence[int]]) -> list[float]:
    """Return P(reports | value) for every value: the sum over all permanent rows."""
    size = len(mechanism.domain)
    a, b = ((1 + contrast) / 2 for contrast in contrasts(mechanism))
    found = []
    for value in range(size):
        encoded = [int(place == value) for place in range(size)]
        found.append(
            sum(
                chance(row, encoded, a) * math.prod(chance(bits, row, b) for bits in reports)
                for row in product((0, 1), repeat=size)
            )
        )
    return found


def bits_of(size: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 1), min_size=size, max_size=size)


def simulated(
    mechanism: hb.LongitudinalRappor, shares: Sequence[float], users: int, reports: int, seed: int
) -> tuple[Rows, list[Rows]]:
    """Return the permanent responses of users who were drawn, and the rounds of their reports."""
    rng = np.random.default_rng(seed)
    values = rng.choice(len(shares), size=users, p=shares)
    rows = mechanism.permanent(mechanism.domain.labels[values], rng=rng)
    return rows, [mechanism.instantaneous(rows, rng=rng) for _ in range(reports)]


def of_users(mechanism: hb.Mechanism, rounds: Sequence[Rows]) -> hb.Reports:
    return hb.Reports.from_users([[(mechanism, row) for row in rows] for rows in zip(*rounds, strict=True)])


# -- two stages -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 4.0, 40.0, 500.0])
@pytest.mark.parametrize("share", [1e-9, 1e-3, 0.3, 0.5, 0.9, 1 - 1e-9])
def test_the_second_stage_is_solved_to_the_last_digits(epsilon: float, share: float) -> None:
    mechanism = hb.LongitudinalRappor(SIX, epsilon, max(share * epsilon, 1e-12))
    with mpmath.workdps(300):
        a, together = (1 / (1 + mpmath.exp(-mpmath.mpf(e) / 2)) for e in (mechanism.epsilon, mechanism.first))
        b = (together + a - 1) / (2 * a - 1)
        expected = mpmath.log(b / (1 - b))
    assert mechanism.log_odds == pytest.approx(float(expected), rel=1e-13, abs=0.0)


@own.examples(40)
@given(own.longitudinal())
def test_one_report_is_rappor_with_first(mechanism: hb.LongitudinalRappor) -> None:
    plain = hb.Rappor(mechanism.domain, mechanism.first)
    np.testing.assert_array_equal(mechanism.matrix(), plain.matrix())
    np.testing.assert_array_equal(mechanism.outputs, plain.outputs)
    assert mechanism.support == plain.support


def test_draws_are_those_of_the_two_stages() -> None:
    mechanism = hb.LongitudinalRappor(hb.Integers(0, 2), 3.0, 1.0)
    _, b = ((1 + contrast) / 2 for contrast in contrasts(mechanism))
    rows = mechanism.permanent(np.full(200_000, 1), rng=1)
    places = np.packbits(np.array(list(product((0, 1), repeat=3)), dtype=bool), axis=1)[:, 0]
    permanent = np.array([(rows[:, 0] == place).sum() for place in places])
    assert stats.chisquare(permanent, 200_000 * hb.Rappor(mechanism.domain, 3.0).matrix()[1]).pvalue > LEVEL
    for before in ((0, 0, 0), (1, 0, 1)):
        sent = mechanism.instantaneous(np.tile(before, (200_000, 1)), rng=2)
        counts = np.array([(sent[:, 0] == place).sum() for place in places])
        expected = np.array([chance(bits, before, b) for bits in product((0, 1), repeat=3)])
        assert stats.chisquare(counts, 200_000 * expected).pvalue > LEVEL


def pair_p_value(mechanism: hb.LongitudinalRappor, first: Rows, second: Rows) -> float:
    """Return the p-value of pairs of reports of users with the first of two values, against the brute force."""
    every = list(product((0, 1), repeat=2))
    expected = np.array([brute_force(mechanism, pair)[0] for pair in product(every, repeat=2)])
    places = (first[:, 0] >> 6).astype(np.int64) * 4 + (second[:, 0] >> 6)
    return float(stats.chisquare(np.bincount(places, minlength=16), first.shape[0] * expected).pvalue)


def test_two_reports_share_their_permanent_response() -> None:
    mechanism = hb.LongitudinalRappor(hb.Categories(["yes", "no"]), 2.0, 1.2)
    values = ["yes"] * 100_000
    rows = mechanism.permanent(values, rng=3)
    first, second = (mechanism.instantaneous(rows, rng=seed) for seed in (4, 5))
    assert pair_p_value(mechanism, first, second) > LEVEL
    forgotten = mechanism.privatize(values, rng=6)  # a permanent response of its own
    assert pair_p_value(mechanism, first, forgotten) < LEVEL


def test_permanent_rows_are_left_as_they_are() -> None:
    mechanism = hb.LongitudinalRappor(hb.Integers(0, 9), 1.0, 0.5)
    rows = mechanism.permanent([1, 2, 3], rng=0)
    before = rows.copy()
    sent = mechanism.instantaneous(rows, rng=1)
    np.testing.assert_array_equal(rows, before)
    assert (sent != rows).any()
    assert not (sent[:, -1] & 0b111111).any()  # beyond the last value nothing is turned
    with pytest.raises(hb.OutputError, match="wrong length"):
        mechanism.instantaneous([[1, 0, 1]])


# -- several reports of one user --------------------------------------------------------------------------


@own.examples(60)
@given(own.longitudinal(4), st.data())
def test_the_joint_likelihood_sums_over_all_permanent_rows(
    mechanism: hb.LongitudinalRappor, data: st.DataObject
) -> None:
    size = len(mechanism.domain)
    users = data.draw(st.lists(st.lists(bits_of(size), min_size=1, max_size=3), min_size=1, max_size=4))
    theta = data.draw(own.distributions(size, full=True))
    reports = hb.Reports.from_users([[(mechanism, np.array(bits)) for bits in user] for user in users])
    expected = [float(theta @ brute_force(mechanism, user)) for user in users]
    assert hb.log_likelihood(reports, theta) == pytest.approx(sum(map(math.log, expected)), rel=1e-9)
    kept = sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1)))
    part = np.zeros(size)
    part[kept] = theta[kept] / theta[kept].sum()
    restricted = reports.restrict(mechanism.domain.labels[kept])
    assert hb.log_likelihood(restricted, part[kept]) == pytest.approx(hb.log_likelihood(reports, part), rel=1e-12)


def test_mechanisms_with_and_without_memory_multiply() -> None:
    """One user's outputs of several mechanisms are independent; those of each one that remembers are not."""
    weekly, daily = hb.LongitudinalRappor(ABCD, 2.0, 1.0), hb.LongitudinalRappor(ABCD, 3.0, 0.4)
    coin, theta = hb.RandomizedResponse(ABCD, 1.0), np.array([0.4, 0.3, 0.2, 0.1])
    one, two, three = [1, 0, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0]
    users: list[list[tuple[hb.Mechanism, Any]]] = [
        [(weekly, one), (coin, "b"), (daily, two), (weekly, three), (coin, "b"), (daily, one), (weekly, one)],
        [(coin, "a"), (coin, "d")],
        [(daily, two), (daily, two), (coin, "a")],
    ]
    reports = hb.Reports.from_users([[(m, np.array(z) if m != coin else z) for m, z in user] for user in users])
    matrix = coin.matrix()
    first = np.multiply(brute_force(weekly, [one, three, one]), brute_force(daily, [two, one])) * matrix[:, 1] ** 2
    expected = [first, matrix[:, 0] * matrix[:, 3], np.multiply(brute_force(daily, [two, two]), matrix[:, 0])]
    found = sum(math.log(theta @ column) for column in expected)
    assert hb.log_likelihood(reports, theta) == pytest.approx(found, rel=1e-12)
    assert hb.log_likelihood(reports + reports, theta) == pytest.approx(2 * found, rel=1e-12)
    assert reports.epsilon_per_user() == pytest.approx((weekly.spent(3) + daily.spent(2) + 2.0, 0.0))


@own.examples(40)
@given(own.longitudinal(4), st.integers(1, 3))
def test_what_reports_spend_is_what_they_can_tell(mechanism: hb.LongitudinalRappor, count: int) -> None:
    """Over all that a user can send, log-ratios reach 4 artanh(tanh(epsilon/4) tanh(m L/2)), and stay below `spent`."""
    size = len(mechanism.domain)
    patterns = list(product(product((0, 1), repeat=size), repeat=count))[:: max(1, 2 ** (size * count) // 512)]
    own_bit = [1] + [0] * (size - 1)
    patterns.append((tuple(own_bit),) * count)  # the worst: ones for one value, zeros for the other
    codes = np.packbits(np.array(patterns, dtype=bool).reshape(-1, size), axis=1)
    repeats = sparse.csr_array(np.kron(np.eye(len(patterns), dtype=np.int64), np.ones(count, dtype=np.int64)))
    logs = mechanism.joint_log_columns(codes, repeats)
    realised = float((logs.max(axis=0) - logs.min(axis=0)).max())
    exact = 4 * math.atanh(math.tanh(mechanism.epsilon / 4) * math.tanh(count * mechanism.log_odds / 2))
    assert realised == pytest.approx(exact, rel=1e-9)
    assert mechanism.spent(count) == pytest.approx(realised, rel=1e-9)
    assert mechanism.spent(count) <= min(count * mechanism.first, mechanism.epsilon) * (1 + 1e-12)
    if count == 1:
        assert realised == pytest.approx(mechanism.first, rel=1e-12)


def test_thousands_of_reports_of_a_user_tell_the_permanent_row_and_no_more() -> None:
    mechanism = hb.LongitudinalRappor(ABCD, 2.0, 0.5)
    row = np.array([[1, 0, 1, 0]], dtype=bool)
    rows = mechanism.instantaneous(np.tile(row, (5_000, 1)), rng=0)
    reports = hb.Reports.from_users([[(mechanism, each) for each in rows]])
    columns = reports.channel.log_dense()[:, 0]
    plain = hb.Rappor(ABCD, 2.0).channel(row).log_dense()[:, 0]
    np.testing.assert_allclose(columns - columns[0], plain - plain[0], atol=1e-9)
    assert reports.epsilon_per_user() == (2.0, 0.0)


@pytest.mark.parametrize(("epsilon", "first"), [(1e-9, 1e-10), (500.0, 499.0), (500.0, 1e-9), (30.0, 29.999999)])
def test_extreme_epsilons_stay_exact(epsilon: float, first: float) -> None:
    mechanism = hb.LongitudinalRappor(ABCD, epsilon, first)
    with mpmath.workdps(400):
        a = 1 / (1 + mpmath.exp(-mpmath.mpf(mechanism.epsilon) / 2))
        together = 1 / (1 + mpmath.exp(-mpmath.mpf(mechanism.first) / 2))
        b = (together + a - 1) / (2 * a - 1)
        for reports in (1, 2, 5):
            other, gain = mechanism.log_ones(reports)
            for ones in range(reports + 1):
                one = b**ones * (1 - b) ** (reports - ones)
                zero = (1 - b) ** ones * b ** (reports - ones)
                own_bit, others = a * one + (1 - a) * zero, (1 - a) * one + a * zero
                assert other[ones] == pytest.approx(float(mpmath.log(others)), rel=1e-12, abs=1e-15)
                assert gain[ones] == pytest.approx(float(mpmath.log(own_bit / others)), rel=1e-12, abs=1e-30)


# -- estimates --------------------------------------------------------------------------------------------


def test_estimates_from_several_reports_need_the_joint_likelihood() -> None:
    """Twenty reports of each user: as good as the permanent rows themselves; the plain product is sure and wrong."""
    shares = [0.45, 0.25, 0.15, 0.1, 0.05, 0.0]
    mechanism = hb.LongitudinalRappor(SIX, 3.0, 1.0)
    _, rounds = simulated(mechanism, shares, 3_000, 20, seed=5)
    known = hb.estimate(of_users(mechanism, rounds), "mle")
    naive = hb.estimate(of_users(Forgetful(SIX, 3.0, 1.0), rounds), "mle")
    assert known.converged
    assert naive.converged
    assert hb.total_variation(known.probabilities, shares) < 0.05
    assert hb.total_variation(naive.probabilities, shares) > 0.12
    # The interval must cover, too: the product would be certain of what is wrong.
    for reports, right in ((of_users(mechanism, rounds), True), (of_users(Forgetful(SIX, 3.0, 1.0), rounds), False)):
        interval = hb.interval(reports, 0)
        assert (interval.low <= shares[0] <= interval.high) == right


@pytest.mark.slow
def test_more_reports_help_until_the_permanent_response_is_known() -> None:
    shares = [0.4, 0.3, 0.1, 0.1, 0.05, 0.05]
    mechanism = hb.LongitudinalRappor(SIX, 3.0, 0.8)
    rows, rounds = simulated(mechanism, shares, 2_000, 60, seed=8)

    def width(reports: hb.Reports) -> float:
        interval = hb.interval(reports, 1)
        return interval.high - interval.low

    one, five, sixty = (width(of_users(mechanism, rounds[:reports])) for reports in (1, 5, 60))
    known = width(hb.Reports.from_outputs(hb.Rappor(SIX, 3.0), rows))  # as if the permanent rows had been sent
    assert one > 1.5 * five > 1.5 * sixty
    assert sixty == pytest.approx(known, rel=0.03)


def test_one_report_each_inverts_like_rappor() -> None:
    mechanism, plain = hb.LongitudinalRappor(SIX, 3.0, 1.0), hb.Rappor(SIX, 1.0)
    outputs = mechanism.privatize(np.arange(3_000) % 6, rng=3)
    for method in ("inv-n", "mle"):
        found, expected = (hb.estimate(hb.Reports.from_outputs(each, outputs), method) for each in (mechanism, plain))
        np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-9)
    ones = np.unpackbits(outputs, axis=1, count=6).sum(axis=0)
    sums = hb.Reports.from_bit_counts(mechanism, ones, 3_000)
    assert sums.epsilon_per_user() == (1.0, 0.0)
    np.testing.assert_allclose(
        hb.estimate(sums, "inv-p").probabilities,
        hb.estimate(hb.Reports.from_outputs(mechanism, outputs), "inv-p").probabilities,
        atol=1e-12,
    )
    twice = of_users(mechanism, [outputs, outputs])  # says the same: all users sent as many
    np.testing.assert_allclose(
        hb.estimate(twice, "inv").probabilities, hb.estimate(sums, "inv").probabilities, atol=1e-12
    )


# -- trust ------------------------------------------------------------------------------------------------


def test_the_fit_of_honest_reports_is_good_and_devices_that_forget_are_found() -> None:
    mechanism = hb.LongitudinalRappor(hb.Integers(0, 19), 2.0, 1.0)
    shares = np.full(20, 0.05).tolist()
    _, rounds = simulated(mechanism, shares, 4_000, 5, seed=1)
    honest = fit_test(of_users(mechanism, rounds))
    assert not honest.rejected
    assert "two reports of one user, LongitudinalRappor" in [part.name for part in honest.parts]
    assert "at most two LongitudinalRappor reports of each user are used" in honest.reason
    assert "fresh seeds" not in honest.reason  # which is about hashes
    values = np.arange(4_000) % 20
    forgotten = fit_test(of_users(mechanism, [mechanism.privatize(values, rng=seed) for seed in range(5)]))
    assert forgotten.rejected
    assert forgotten.worst[0].part == "two reports of one user, LongitudinalRappor"


def test_the_fit_of_honest_reports_is_rejected_as_often_as_said() -> None:
    """Each user's reports have ones in common: counted one by one they would ring the alarm far too often."""
    mechanism = hb.LongitudinalRappor(hb.Integers(0, 11), 0.5, 0.4)
    shares = np.full(12, 1 / 12).tolist()
    alarms = 0
    for seed in range(30):
        fit = fit_test(of_users(mechanism, simulated(mechanism, shares, 300, 8, seed)[1]), 0.05)
        alarms += fit.rejected
    assert alarms <= 6  # P(more of 30 at 5%) is about 1e-3


def test_shifts_by_fakes_use_the_joint_likelihood() -> None:
    mechanism = hb.LongitudinalRappor(ABCD, 2.0, 1.0)
    _, rounds = simulated(mechanism, [0.4, 0.3, 0.2, 0.1], 400, 3, seed=2)
    shift, naive = (
        hb.worst_case_shift(reports, 0.05, estimate=hb.estimate(reports, "mle"))
        for reports in (of_users(each, rounds) for each in (mechanism, Forgetful(ABCD, 2.0, 1.0)))
    )
    assert "3 times" in shift.output
    # What it says, by hand: twenty of 400 users' worth of fakes who repeat one row three times.
    bits = np.array([int(f"a one for {label} alone" in shift.output) for label in "abcd"])
    assert bits.sum() == 1
    block = of_users(mechanism, [np.packbits(bits[None], axis=1)] * 3)
    reports = sum([of_users(mechanism, rounds)] * 19 + [block] * 400)
    assert isinstance(reports, hb.Reports)
    after = hb.estimate(reports, "mle").probabilities[ABCD.index([shift.value])[0]]
    assert after == pytest.approx(shift.after, abs=0.02)  # fakes take the place of twenty users, not of 5% of each
    assert float(naive) != pytest.approx(float(shift), rel=0.01)


def test_identification_of_joint_reports() -> None:
    mechanism = hb.LongitudinalRappor(ABCD, 2.0, 1.0)
    _, rounds = simulated(mechanism, [0.4, 0.3, 0.2, 0.1], 300, 2, seed=2)
    identification = hb.identify(of_users(mechanism, rounds))
    assert identification.identifiable
    assert identification.unique
    same = hb.identify(of_users(mechanism, [np.packbits([[1, 1, 0, 0]], axis=1)] * 2))
    assert same.unique is False


def exact_error(mechanism: hb.LongitudinalRappor, count: int) -> float:
    """Return how often the likeliest value is not the first, over all that can be sent, ties being lost."""
    size = len(mechanism.domain)
    missed = 0.0
    for reports in product(product((0, 1), repeat=size), repeat=count):
        chances = brute_force(mechanism, reports)
        missed += chances[0] * (max(chances[1:]) >= chances[0] * (1 - 1e-9))
    return missed


def test_error_probability_bounds_what_happens_and_does_not_vanish() -> None:
    mechanism = hb.LongitudinalRappor(hb.Integers(0, 2), 6.0, 3.0)
    bounds = np.asarray(hb.error_probability(mechanism, [1, 2, 3]))
    for count, bound in zip((1, 2, 3), bounds.tolist(), strict=True):
        assert exact_error(mechanism, count) <= bound
    assert bounds[0] == pytest.approx(hb.error_probability(hb.Rappor(mechanism.domain, 3.0), 1))
    assert (np.diff(bounds) < 0).all()
    limit = hb.error_probability(hb.Rappor(mechanism.domain, 6.0), 1)
    assert limit < bounds[2]
    assert hb.error_probability(mechanism, 10_000) == pytest.approx(limit, rel=1e-6)
    assert hb.error_probability(mechanism, 10**12) == pytest.approx(limit, rel=1e-6)
    slow = hb.LongitudinalRappor(mechanism.domain, 6.0, 0.2)
    assert hb.error_probability(slow, 100_000) < 0.9 * hb.error_probability(slow, 100)
    # The union over values of Bhattacharyya's coefficients, over all that can be sent.
    every = list(product(product((0, 1), repeat=3), repeat=2))
    overlap = sum(math.sqrt(both[0] * both[1]) for both in (brute_force(mechanism, reports) for reports in every))
    assert hb.error_probability(mechanism, 2, bound="union") == pytest.approx(2 * overlap, rel=1e-9)


@dataclass(frozen=True)
class Lazy(hb.Mechanism):
    """A user's mechanism with memory: the first answer is sent again and again."""

    domain: hb.Domain
    epsilon: float

    @property
    def outputs(self) -> Any:
        return self.domain.labels

    def matrix(self) -> Floats:
        return hb.RandomizedResponse(self.domain, self.epsilon).matrix()

    def joint_log_columns(self, codes: Any, repeats: sparse.csr_array, among: Any = None) -> Floats:
        with np.errstate(divide="ignore"):
            different = np.log((np.diff(repeats.indptr) == 1).astype(float))
        return np.asarray(self.log_columns(codes[repeats.indices[repeats.indptr[:-1]]], among) + different)

    def spent(self, reports: int) -> float:
        return self.epsilon


def test_a_mechanism_of_ones_own_may_remember() -> None:
    lazy, coin = Lazy(ABCD, 1.0), hb.RandomizedResponse(ABCD, 1.0)
    assert lazy.remembers
    assert not coin.remembers
    both = [(coin, "a"), (coin, "d")]
    again = hb.Reports.from_users([[(lazy, "a")] * 3, [(lazy, "b")] * 2, [(lazy, "b"), (coin, "c")], both] * 20)
    once = hb.Reports.from_users([[(coin, "a")], [(coin, "b")], [(coin, "b"), (coin, "c")], both] * 20)
    theta = [0.4, 0.3, 0.2, 0.1]
    assert hb.log_likelihood(again, theta) == pytest.approx(hb.log_likelihood(once, theta), rel=1e-12)
    assert again.epsilon_per_user() == (2.0, 0.0)
    answers = lazy.privatize(["a", "b", "c", "d"] * 500, rng=0)
    fitted = fit_test(hb.Reports.from_users([[(lazy, answer)] * 2 for answer in answers]))
    assert fitted.testable
    assert not fitted.rejected  # equal pairs are no surprise
    with pytest.raises(hb.MechanismError, match="not independent given the value"):
        hb.error_probability(lazy, 2)
    assert hb.error_probability(lazy, 1) == pytest.approx(hb.error_probability(coin, 1), abs=1e-2)


# -- studies, files and what was spent --------------------------------------------------------------------

STUDY = {
    "version": 1,
    "max_epsilon_per_user": 1.8,
    "domain": {"kind": "integers", "low": 0, "high": 5},
    "mechanisms": {
        "daily": {"kind": "longitudinal-rappor", "epsilon": 2.0, "first": 0.5},
        "once": {"kind": "rappor", "epsilon": 1.0},
    },
}


def test_a_study_names_both_epsilons() -> None:
    study = parse_study(STUDY, "study")
    assert study.mechanisms["daily"] == hb.LongitudinalRappor(SIX, 2.0, 0.5)
    other = hb.Study(SIX, {**study.mechanisms, "daily": hb.LongitudinalRappor(SIX, 2.0, 0.6)})
    assert study.fingerprint != other.fingerprint
    missing = {**STUDY, "mechanisms": {"daily": {"kind": "longitudinal-rappor", "epsilon": 2.0}}}
    with pytest.raises(hb.StudyError, match="first is missing"):
        parse_study(missing, "study")


def test_reports_from_files_are_joined_and_their_budget_is_capped(tmp_path: Path) -> None:
    study = parse_study(STUDY, "study")
    daily, once = (study.mechanisms[name] for name in ("daily", "once"))
    assert isinstance(daily, hb.LongitudinalRappor)
    _, rounds = simulated(daily, [0.3, 0.3, 0.1, 0.1, 0.1, 0.1], 50, 6, seed=4)
    extra = once.privatize([2] * 10, rng=0)
    rows = [(user, "daily", row) for part in rounds for user, row in enumerate(part)]
    rows += [(user, "once", row) for user, row in enumerate(extra)]
    rows += [(100 + user, "daily", row) for user, row in enumerate(rounds[0][:7])]  # one report each
    text = daily.output_space.write
    frame = pd.DataFrame([(user, name, text(row)) for user, name, row in rows], columns=["user", "mechanism", "output"])
    users = [[(daily, part[user]) for part in rounds] for user in range(50)]
    for user in range(10):
        users[user].append((once, extra[user]))  # type: ignore[arg-type]
    users += [[(daily, row)] for row in rounds[0][:7]]
    expected = hb.Reports.from_users(users)
    reports = hb.read_reports(frame, study)
    assert reports == expected
    assert any(isinstance(block, Joint) for block in reports.blocks)
    most = daily.spent(6)  # six reports from one response: less than 2, and 1 for the other mechanism
    assert 1.8 < most < 2.0
    assert reports.epsilon_per_user() == (most + 1.0, 0.0)
    (tmp_path / "reports.csv").write_text(frame.sample(frac=1.0, random_state=1).to_csv(index=False))
    tally = hb.collect(study, tmp_path / "reports.csv", tmp_path / "one.tally.parquet")
    assert tally.reports == expected
    spent = {(one.plain, one.metric): users for one, users in tally.summary.spent.items()}
    assert spent == {(most + 1.0, 0.0): 10, (most, 0.0): 40, (0.5, 0.0): 7}
    document = tally_document(tally)["epsilon_per_user"]
    assert document["ldp"] == most + 1.0
    assert document["users_above_limit"] == 50


# -- real reports -----------------------------------------------------------------------------------------


def _sets(count: int, seed: int) -> list[hb.LongitudinalRappor]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        epsilon = float(np.exp(rng.uniform(math.log(0.01), math.log(20))))
        domain = hb.Integers(0, int(np.exp(rng.uniform(math.log(2), math.log(1000)))) - 1)
        found.append(hb.LongitudinalRappor(domain, epsilon, epsilon * float(rng.uniform(0.01, 0.999999))))
    return found


def test_both_promises_are_kept_exactly() -> None:
    for mechanism in _sets(200, 31):
        law = mechanism.law
        assert violations(mechanism, law.permanent) == [], mechanism
        assert violations(hb.Rappor(mechanism.domain, mechanism.first), law.once) == [], mechanism
        # One unit less of turning, and a single report would tell too much, or the rounding was too generous.
        least = 1 << (law.permanent.width - 200)
        loose = TwoStageFlipLaw(law.permanent, law.lost - least, law.raised - least).once
        assert violations(hb.Rappor(mechanism.domain, mechanism.first), loose) != [], mechanism


def test_a_single_report_has_the_matrix_of_both_stages() -> None:
    mechanism = hb.LongitudinalRappor(hb.Integers(0, 3), 1.7, 0.9)
    assert worst_excess(mechanism.matrix(), rows_of(mechanism.law.once, 4)) < 1e-13
    permanent = hb.Rappor(hb.Integers(0, 3), 1.7)
    assert worst_excess(permanent.matrix(), rows_of(mechanism.law.permanent, 4)) < 1e-13


def test_real_draws_of_both_stages() -> None:
    mechanism, users = hb.LongitudinalRappor(hb.Integers(0, 11), 2.0, 1.2), 200_000
    law = mechanism.law
    rows = mechanism.permanent(np.full(users, 9))
    sent = mechanism.instantaneous(rows)
    first = mechanism.privatize(np.full(users, 9))
    scale = float(1 << law.permanent.width)
    cases: list[tuple[Rows, float, float]] = [
        (rows, law.permanent.own / scale, law.permanent.other / scale),
        (np.bitwise_xor(rows, sent, dtype=np.uint8), law.lost / scale, law.raised / scale),
        (first, mechanism.support.true, mechanism.support.other),
    ]
    for drawn, mine, other in cases:
        ones = np.unpackbits(drawn, axis=1, count=12).sum(axis=0)
        chances = np.full(12, other)
        chances[9] = mine
        z = (ones - users * chances) / np.sqrt(users * chances * (1 - chances))
        assert np.abs(z).max() < 7  # 36 bits: a false alarm in 10^10 runs


def test_the_audit_proves_both_promises() -> None:
    audit = hb.audit(hb.LongitudinalRappor(SIX, 2.0, 0.5), draws=2_000)
    assert audit.exact is not None
    assert audit.one_report is not None
    assert audit.holds
    assert float(audit.exact.high) == pytest.approx(2.0)
    assert float(audit.one_report.high) == pytest.approx(0.5)
    assert "A single report" in audit.explain()
    assert audit.document()["one_report"]["holds"]
    mechanism = hb.LongitudinalRappor(SIX, 2.0, 0.5)
    for reports in (1, 3, 9):
        assert hb.audit(mechanism, draws=200, reports_per_user=reports).budget.plain == mechanism.spent(reports)
    object.__setattr__(louder := hb.LongitudinalRappor(SIX, 2.0, 0.5), "law", hb.LongitudinalRappor(SIX, 2.0, 0.6).law)
    assert hb.audit(louder, draws=2_000).holds is False
