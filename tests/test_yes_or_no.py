"""The simplest study, yes or no, as a textbook would have it: exact where it is small, and the same from all sides."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

import hubbub as hb
from hubbub.intervals.deviance_cutoff import chi_square
from hubbub.intervals.exact_binomial import MAX_USERS, TwoOutputs

ANSWERS = hb.Categories(["yes", "no"])
TRUTHS = np.array([0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.77, 1.0])
SLIP = 1e-9


def answers(epsilon: float, yes: int, users: int) -> hb.Reports:
    return hb.Reports.from_counts(hb.RandomizedResponse(ANSWERS, epsilon), {"yes": yes, "no": users - yes})


@pytest.mark.parametrize(("users", "epsilon"), [(5, 1.0), (20, 0.5), (20, 4.0), (60, 2.0)])
def test_coverage_by_enumeration(users: int, epsilon: float) -> None:
    """Every outcome of a small study, with its probability: whatever the truth is, 95% hold it."""
    own, other = hb.RandomizedResponse(ANSWERS, epsilon).support
    intervals = [hb.interval(answers(epsilon, yes, users), "yes") for yes in range(users + 1)]
    low, high = (np.array([getattr(each, name) for each in intervals]) for name in ("low", "high"))
    for truth in TRUTHS:
        held = (low <= truth + SLIP) & (truth - SLIP <= high)
        assert binom.pmf(np.arange(users + 1), users, other + (own - other) * truth)[held].sum() >= 0.95 - SLIP
    assert all(each.low <= each.estimate <= each.high for each in intervals)


@pytest.mark.parametrize("users", [100, 1_000])
def test_not_much_wider_than_a_normal_interval(users: int) -> None:
    yes, epsilon = round(0.6 * users), 1.0
    own, other = hb.RandomizedResponse(ANSWERS, epsilon).support
    found = hb.interval(answers(epsilon, yes, users), "yes")
    share = yes / users
    error = math.sqrt(share * (1 - share) / users) / (own - other)
    middle = (share - other) / (own - other)
    assert found.estimate == found.likeliest == pytest.approx(middle, abs=1e-9)
    wanted = middle - norm.ppf(0.975) * error, middle + norm.ppf(0.975) * error
    assert (found.low, found.high) == pytest.approx(wanted, abs=0.2 * error)
    assert "Exact" in found.note
    assert found.cutoffs is None


def test_exact_and_by_chi_square_agree_where_they_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = answers(2.0, 300, MAX_USERS)
    exact = hb.interval(reports, {"yes": 1.0, "no": -1.0})
    monkeypatch.setattr("hubbub.intervals.exact_binomial.MAX_USERS", 0)
    other = hb.interval(reports, {"yes": 1.0, "no": -1.0})
    assert other.cutoffs == (chi_square(0.95), chi_square(0.95))
    assert (exact.low, exact.high) == pytest.approx((other.low, other.high), abs=0.03 * (other.high - other.low))


def test_only_the_simplest_study_is_exact() -> None:
    assert TwoOutputs.of(answers(1.0, 3, 9)) is not None
    assert TwoOutputs.of(answers(1.0, 0, 9)) is not None  # an output that nobody sent
    assert TwoOutputs.of(answers(1.0, 3, MAX_USERS + 1)) is None
    bits = hb.Rappor(ANSWERS, 1.0)
    assert TwoOutputs.of(hb.Reports.from_outputs(bits, bits.privatize(["yes", "no", "no"], rng=1))) is None
    both = answers(1.0, 3, 9) + answers(2.0, 3, 9)
    assert TwoOutputs.of(both) is None
    three = hb.RandomizedResponse(hb.Categories(["yes", "no", "unsure"]), 1.0)
    assert TwoOutputs.of(hb.Reports.from_counts(three, [1, 2, 3])) is None


def test_an_unsymmetric_question() -> None:
    """Outputs in another order than values, and unequal noise: by the tail itself, at both ends."""
    table = np.array([[0.2, 0.8], [0.9, 0.1]])
    mechanism = hb.Matrix(ANSWERS, ["no", "yes"], table)
    reports = hb.Reports.from_counts(mechanism, [22, 18])
    found = hb.interval(reports, "yes")
    study = TwoOutputs.of(reports)
    assert study is not None
    assert 0.0 < found.low < found.high < 1.0
    for end, inwards in ((found.low, 1e-4), (found.high, -1e-4)):
        inside, outside = study.tail(np.array([end + inwards, end - inwards]))
        assert outside <= 0.05 < inside
