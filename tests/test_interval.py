"""Intervals, bands, quantiles and the check, as people call them."""

from __future__ import annotations

import functools
import itertools
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
import problems as own
from hubbub.core.progress import Progress
from hubbub.intervals import interval_endpoints as interval_band
from hubbub.intervals.deviance_cutoff import chi_square
from hubbub.intervals.interval_endpoints import LikelihoodRegion

Floats = NDArray[np.float64]

CLOSE = 2e-3  # of an interval's width: each end is certified, hence a little outside, by 0.001 of its distance at most

LETTERS = hb.Categories(list("abcdefghij"))
ANSWER = hb.RandomizedResponse(LETTERS, 1.5)
ZEROS = np.array([0.4, 0.3, 0.2, 0.1, *np.zeros(6)])  # six values that nobody has
EMPTY = list("efghij")


def drawn(mechanism: hb.Mechanism, truth: Floats, users: int, seed: int) -> hb.Reports:
    rng = np.random.default_rng(seed)
    values = mechanism.domain.labels[rng.choice(truth.size, size=users, p=truth)]
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


REPORTS = drawn(ANSWER, ZEROS, 4_000, 0)
LINE = hb.Integers(3, 12)
AGES = drawn(hb.TruncatedGeometric(LINE, 0.8), np.array([1, 2, 4, 6, 5, 4, 3, 2, 1, 1]) / 29, 1_500, 1)


@functools.cache
def interval_of(*letters: str) -> hb.Interval:
    """The interval for the joint share of some letters in REPORTS: several tests look at the same ones."""
    return hb.interval(REPORTS, letters)


def alike(one: hb.Interval, other: hb.Interval, sign: float = 1.0, offset: float = 0.0) -> None:
    """Whether both say the same, after `other` was multiplied by `sign` and moved."""
    ends = sorted([offset + sign * other.low, offset + sign * other.high])
    assert [one.low, one.high] == pytest.approx(ends, abs=CLOSE * (one.high - one.low) + 1e-12)


# -- what an interval is ------------------------------------------------------------------------------------


def binomial_ends(count: int, users: int, own_share: float, other: float, cutoff: float) -> tuple[float, float]:
    """Return the likelihood-ratio interval of a share, through the channel of two values, between 0 and 1."""
    from scipy.optimize import brentq

    def level(share: float) -> float:
        fitted = other + (own_share - other) * share
        return count * math.log(fitted) + (users - count) * math.log1p(-fitted)

    best = min(max((count / users - other) / (own_share - other), 0.0), 1.0)

    def lacking(share: float) -> float:
        return 2.0 * (level(best) - level(share)) - cutoff

    low = 0.0 if lacking(0.0) <= 0.0 else float(brentq(lacking, 0.0, best, xtol=1e-14))
    high = 1.0 if lacking(1.0) <= 0.0 else float(brentq(lacking, best, 1.0, xtol=1e-14))
    return low, high


@pytest.mark.parametrize("users", [20, 1_000, 10**6, 10**9])
@pytest.mark.parametrize("share", [0.3, 0.45, 0.62])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_coin(epsilon: float, share: float, users: int) -> None:
    """Two values: the interval of a binomial share, mapped through the channel, between 0 and 1."""
    coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon)
    count = round(share * users)
    bounds = hb.interval(hb.Reports.from_counts(coin, {"yes": count, "no": users - count}), "yes", simultaneous=True)
    cutoff = chi_square(1 - 0.05 / 2)
    assert bounds.cutoffs == (cutoff, cutoff)
    low, high = binomial_ends(count, users, *coin.support, cutoff)
    assert low - 1.1e-3 * (bounds.estimate - low) - 1e-12 <= bounds.low <= low + 1e-12
    assert high - 1e-12 <= bounds.high <= high + 1.1e-3 * (high - bounds.estimate) + 1e-12


def test_a_rare_value_among_many_users() -> None:
    """A share of 0.4%, seen by a milliard users, is far from 0."""
    coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), 2.0)
    own_share, other = coin.support
    count = round((other + (own_share - other) * 0.004) * 10**9)
    bounds = hb.interval(hb.Reports.from_counts(coin, {"yes": count, "no": 10**9 - count}), "yes")
    low, high = binomial_ends(count, 10**9, own_share, other, chi_square(0.95))
    assert (bounds.low, bounds.high) == pytest.approx((low, high), abs=CLOSE * (high - low))


def test_an_interval_holds_its_estimate() -> None:
    differences = [hb.interval(REPORTS, weights) for weights in ({"a": 1.0, "b": -1.0}, {"a": 0.5, "j": 3.0})]
    for found in (interval_of("a"), interval_of("e"), interval_of(*EMPTY), *differences):
        assert found.low <= found.estimate <= found.high
        assert not found.extended
        assert (found.confidence_low, found.confidence_high) == (found.low, found.high)
        assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301  # made here
    assert hb.interval(REPORTS, EMPTY) == interval_of(*EMPTY)  # the same reports give the same interval


def test_levels_are_nested() -> None:
    for of in ("b", EMPTY):
        found = [hb.interval(REPORTS, of, level) for level in (0.5, 0.8, 0.95, 0.99)]
        for inner, outer in itertools.pairwise(found):
            assert outer.low <= inner.low + 1e-12
            assert inner.high <= outer.high + 1e-12
            assert outer.high - outer.low > inner.high - inner.low


def test_calibrated_is_never_narrower() -> None:
    likely = LikelihoodRegion.of(REPORTS)
    for of in (EMPTY, ["a", "b"], ["c", "d", "e"], "a"):
        weights = np.isin(LETTERS.labels, np.atleast_1d(of)).astype(np.float64)
        bounds = interval_of(*of)
        assert bounds.cutoffs is not None
        assert min(bounds.cutoffs) >= chi_square(0.95)
        assert bounds.low <= likely.least(weights, chi_square(0.95)).limit + 1e-12
        assert bounds.high >= -likely.least(-weights, chi_square(0.95)).limit - 1e-12
    bounds = interval_of(*EMPTY)
    assert bounds.cutoffs is not None
    assert bounds.low == 0.0  # cannot move farther out: nothing is simulated there
    assert bounds.cutoffs[1] > 1.5 * chi_square(0.95)  # six empty values: 7.7 in the limit
    assert "simulated" in bounds.note


def test_clearly_present_values_need_no_simulation() -> None:
    bounds = hb.interval(hb.Reports.from_counts(ANSWER, [100_000] * 10), ["a", "b"])
    assert bounds.cutoffs == (chi_square(0.95), chi_square(0.95))
    assert "Every value is clearly present" in bounds.note


def test_ways_to_ask() -> None:
    """Nothing is simulated for simultaneous intervals, and those of single values have a cutoff of their own."""

    def interval(of: object) -> hb.Interval:
        return hb.interval(AGES, of, simultaneous=True)

    one = interval([4, 5, 6])
    same: list[object] = [{4, 5, 6}, (4, 5, 6), np.array([4, 5, 6]), range(4, 7), {4: 1, 5: 1.0, 6: 1}, [6, 4, 5, 5]]
    for of in same:
        assert interval(of) == one
    single = interval(5)
    for of in ([5], {5}, np.array([5]), np.int64(5), np.array(5), range(5, 6), {5: 1.0}):
        assert interval(of) == single
    assert (single.of, one.of) == ("5", "4, 5 and 6")


def test_the_sum_over_all_values_is_known() -> None:
    bounds = hb.interval(REPORTS, list("abcdefghij"))
    assert (bounds.low, bounds.estimate, bounds.high) == pytest.approx((1.0, 1.0, 1.0), abs=1e-12)
    alone = hb.interval(REPORTS.restrict(["a"]), "a")
    assert (alone.low, alone.high) == (1.0, 1.0)


def test_complements_mirror_each_other() -> None:
    for values in (["a", "e"], EMPTY, ["b", "c", "d", "j"]):
        others = [value for value in "abcdefghij" if value not in values]
        one, other = (hb.interval(REPORTS, of, simultaneous=True) for of in (values, others))
        alike(one, other, sign=-1.0, offset=1.0)


def test_statistics_that_are_moved_and_stretched() -> None:
    weights = {"a": 1.0, "b": -1.0, "c": 0.5}
    one = hb.interval(REPORTS, weights)
    moved = hb.interval(REPORTS, {value: 3.0 - 20.0 * weights.get(value, 0.0) for value in "abcdefghij"})
    ends = (3.0 - 20.0 * one.high, 3.0 - 20.0 * one.low)
    assert (moved.low, moved.high) == pytest.approx(ends, abs=0.05 * 20 * (one.high - one.low))
    alike(
        hb.interval(REPORTS, weights, simultaneous=True),
        hb.interval(REPORTS, {value: -20.0 * weight for value, weight in weights.items()}, simultaneous=True),
        sign=-1 / 20,
    )


def test_names_and_order_play_no_part() -> None:
    order = np.random.default_rng(1).permutation(10)
    table = own.stochastic(np.random.default_rng(2), 10, 12)
    counts = np.random.default_rng(3).integers(5, 200, 12)
    one = hb.Reports.from_counts(hb.Matrix(LETTERS, list(range(12)), table), counts)
    other = hb.Reports.from_counts(
        hb.Matrix(
            hb.Categories([f"<{x}>" for x in order]), [f"out {x}" for x in range(12)][::-1], table[order][:, ::-1]
        ),
        counts[::-1],
    )
    for of in ([2], [1, 4, 7]):
        bounds = hb.interval(one, LETTERS.labels[of], simultaneous=True)
        alike(bounds, hb.interval(other, [f"<{x}>" for x in of], simultaneous=True))


def test_the_same_data_in_another_form() -> None:
    outputs = ANSWER.privatize(np.repeat(LETTERS.labels[:4], [400, 300, 200, 100]), rng=4)
    whole = hb.Reports.from_outputs(ANSWER, outputs)
    parts = hb.Reports.from_outputs(ANSWER, outputs[::2]) + hb.Reports.from_outputs(ANSWER, outputs[1::2])
    listed = hb.Reports.from_users([[(ANSWER, output)] for output in outputs])
    for reports in (parts, listed):
        assert hb.interval(reports, EMPTY) == hb.interval(whole, EMPTY)
    double = hb.interval(whole + whole, "b")
    single = hb.interval(whole, "b")
    assert (double.high - double.low) == pytest.approx((single.high - single.low) / math.sqrt(2), rel=0.05)


def test_simultaneous_is_wider() -> None:
    for of in ("b", EMPTY, {"a": 1.0, "b": -1.0}):
        plain, together = hb.interval(REPORTS, of), hb.interval(REPORTS, of, simultaneous=True)
        assert together.low <= plain.low + 1e-12
        assert together.high >= plain.high - 1e-12
        assert together.high - together.low > plain.high - plain.low
        assert "at once" in together.note
    assert hb.interval(REPORTS, "b", simultaneous=True).cutoffs == (chi_square(0.995), chi_square(0.995))
    assert hb.interval(REPORTS, EMPTY, simultaneous=True).cutoffs == (chi_square(0.95, 9), chi_square(0.95, 9))


def test_an_interval_is_extended_to_its_estimate() -> None:
    """An estimate stopped at once is still flat: far from a value with 40%."""
    flat = hb.estimate(REPORTS, "ibu", max_iter=1)
    bounds, plain = hb.interval(REPORTS, "a", estimate=flat), interval_of("a")
    assert bounds.estimate == bounds.low == flat.probabilities[0]
    assert bounds.extended
    assert "was extended to the estimate" in bounds.explain()
    assert (bounds.confidence_low, bounds.high) == (plain.confidence_low, plain.confidence_high)
    assert bounds.likeliest == plain.likeliest == pytest.approx(hb.estimate(REPORTS, "mle").probabilities[0], abs=1e-6)
    assert not hb.interval(REPORTS, "a", estimate=hb.estimate(REPORTS, "mle")).extended


def test_the_estimate_is_that_of_estimate() -> None:
    """One number for one thing: whatever is asked, the share is that of `hb.estimate`."""
    shares = hb.estimate(REPORTS).probabilities
    assert hb.interval(REPORTS, "a").estimate == shares[0]
    assert hb.band(REPORTS, values=["b"]).estimate.tolist() == shares.tolist()
    assert hb.check(REPORTS, fit=False).band.estimate.tolist() == shares.tolist()
    sums = np.cumsum(hb.estimate(AGES).probabilities)
    assert hb.quantile(AGES, 0.5).estimate == LINE.labels[int(np.argmax(sums >= 0.5))]


def test_words() -> None:
    bounds = interval_of("a")
    text = bounds.explain()
    assert text == str(bounds)
    assert text.startswith(f"a: {bounds.estimate:.4g}, between {bounds.low:.4g} and {bounds.high:.4g} at 95%.")
    assert interval_of(*EMPTY).of == "e, f, g, h and 2 more"
    assert hb.interval(REPORTS, {"a": 2.0, "b": 1.0}, simultaneous=True).of == "the weighted sum over a and b"


# -- all forms of reports -----------------------------------------------------------------------------------

FORMS = [
    "several outputs for each user",
    "several mechanisms",
    "part of the domain",
    "regions and noise",
    "sums of bits",
    "local hashing",
    "map with noise beyond its borders",
]


def last_likely(reports: hb.Reports, value: int) -> Floats:
    """Return the last likely distribution on the way from the maximum to all mass on one value, by halving."""
    top = hb.estimate(reports, "mle").probabilities
    goal = (np.arange(top.size) == value).astype(np.float64)
    least = hb.log_likelihood(reports, top) - chi_square(0.95) / 2
    near, far = 0.0, 1.0
    for _ in range(30):
        middle = (near + far) / 2
        likely = hb.log_likelihood(reports, (1 - middle) * top + middle * goal) >= least
        near, far = (middle, far) if likely else (near, middle)
    return np.asarray((1 - near) * top + near * goal)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_reports(name: str) -> None:
    problem = own.problem(name, 4)
    labels = problem.reports.domain.labels
    for of in (labels[0], labels[: problem.size // 2 + 1]):
        bounds = hb.interval(problem.reports, of)
        assert -1e-12 <= bounds.low <= bounds.estimate <= bounds.high <= 1.0 + 1e-12
        assert ("Approximate" in bounds.note) == (name == "sums of bits")
        weights = np.isin(labels, np.atleast_1d(of)).astype(np.float64)
        for value in range(min(problem.size, 12)):
            share = float(weights @ last_likely(problem.reports, value))
            assert bounds.low - 1e-9 <= share <= bounds.high + 1e-9


def test_twins_share_what_they_have() -> None:
    """Two values with the same row: either may have all that both have, or nothing."""
    table = own.stochastic(np.random.default_rng(7), 4, 6)
    table = table[[0, 1, 1, 2, 3]]
    mechanism = hb.Matrix(hb.Categories(["a", "twin", "other", "c", "d"]), list(range(6)), table)
    truth = np.array([0.3, 0.2, 0.15, 0.2, 0.15])
    reports = hb.Reports.from_counts(mechanism, np.round(20_000 * truth @ table).astype(np.int64))
    together = hb.interval(reports, ["twin", "other"])
    assert together.low <= 0.35 <= together.high
    assert together.low > 0.1
    for twin in ("twin", "other"):
        bounds = hb.interval(reports, twin)
        assert bounds.low == pytest.approx(0.0, abs=1e-6)
        assert bounds.high >= together.estimate
        assert bounds.high <= together.high + 0.05


# -- the bootstrap ------------------------------------------------------------------------------------------


def test_the_bootstrap() -> None:
    bounds = hb.interval(REPORTS, ["a", "b"], method="bootstrap", estimator="mle", runs=60)
    assert bounds == hb.interval(REPORTS, ["a", "b"], method="bootstrap", estimator="mle", runs=60)
    other = hb.interval(REPORTS, ["a", "b"], method="bootstrap", estimator="mle", runs=60, rng=1)
    assert (bounds.low, bounds.high) != (other.low, other.high)
    assert bounds.cutoffs is None
    assert bounds.bias is not None
    assert f"{bounds.bias:+.2g}" in bounds.note
    assert "60 runs" in bounds.note
    assert bounds.low < bounds.high
    assert bounds.estimate == pytest.approx(hb.estimate(REPORTS, "mle").probabilities[:2].sum(), abs=1e-6)
    profile = interval_of("a", "b")
    assert 0.4 < (bounds.high - bounds.low) / (profile.high - profile.low) < 1.3
    narrow = hb.interval(REPORTS, ["a", "b"], 0.5, method="bootstrap", estimator="mle", runs=60)
    assert bounds.low < narrow.low < narrow.high < bounds.high


def test_the_bootstrap_tells_a_bias() -> None:
    """A value without mass is pushed up by the border: drawing again moves it further."""
    bounds = hb.interval(REPORTS, EMPTY, method="bootstrap", estimator="mle", runs=60)
    assert bounds.bias is not None
    assert bounds.bias > 0.0
    assert "use method='profile'" in bounds.note


# -- bands --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("simultaneous", [False, True])
def test_a_band_is_an_interval_for_each_value(simultaneous: bool) -> None:
    positions = [0, 3, 4, 9]  # with much mass, with little, and with none
    band = hb.band(REPORTS, 0.9, values=None if simultaneous else LETTERS.labels[positions], simultaneous=simultaneous)
    for position in positions:
        single = hb.interval(REPORTS, LETTERS.labels[position], 0.9, simultaneous=simultaneous)
        ends = (band.low[position], band.estimate[position], band.high[position])
        assert ends == pytest.approx((single.low, single.estimate, single.high), abs=1e-9)
    assert not band.extended.any()
    frame = band.to_frame()
    assert frame.columns.tolist() == ["value", "low", "estimate", "high", "standard_error", "likeliest", "extended"]
    assert frame["value"].tolist() == list("abcdefghij")
    assert (
        repr(band)
        == f"Band({'10 of 10 values, level=0.9, simultaneous' if simultaneous else '4 of 10 values, level=0.9'})"
    )
    assert np.array_equal(pickle.loads(pickle.dumps(band)).low, band.low, equal_nan=True)  # noqa: S301  # made here


def test_a_band_of_some_values() -> None:
    flat = hb.estimate(REPORTS, "ibu", max_iter=1)
    band = hb.band(REPORTS, values=["j", "a"], estimate=flat)
    assert np.flatnonzero(~np.isnan(band.low)).tolist() == [0, 9]
    assert np.flatnonzero(~np.isnan(band.high)).tolist() == [0, 9]
    assert band.estimate.tolist() == flat.probabilities.tolist()
    assert np.flatnonzero(band.extended).tolist() == [0, 9]
    assert flat.to_frame()[["low", "high"]].equals(band.to_frame()[["low", "high"]])
    assert repr(band) == "Band(2 of 10 values, level=0.95)"
    assert band.confidence_low[0] == pytest.approx(interval_of("a").low, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("before", ["identify", "worst_case_shift", "check"])
def test_an_interval_does_not_depend_on_what_was_asked_before(before: str) -> None:
    """Cutoffs are simulated around the maximum: one that was solved more closely turned equal eigenvalues' vectors."""
    mechanism = hb.DBitFlip(hb.Integers(-2, 3), 2.0, buckets=6, bits=3)
    values = np.random.default_rng(3).choice(np.arange(-2, 4), 1_500, p=[0.35, 0.25, 0.15, 0.1, 0.1, 0.05])
    fresh, asked = (hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=3)) for _ in range(2))
    shown = hb.estimate(fresh, "ems")
    ask: dict[str, Callable[[], object]] = {
        "identify": lambda: hb.identify(asked),
        "worst_case_shift": lambda: hb.worst_case_shift(asked, 0.01, estimate=shown),
        "check": lambda: hb.check(asked, estimate=shown, fit=False, values=[-2]),
    }
    told = ask[before]()
    alone, after = hb.interval(fresh, -2, estimate=shown), hb.interval(asked, -2, estimate=shown)
    assert (after.low, after.high) == (alone.low, alone.high)
    both = hb.band(fresh, values=[-2], estimate=shown)
    assert (both.low[0], both.high[0]) == (alone.low, alone.high)
    if isinstance(told, hb.Check):
        assert (told.band.low[0], told.band.high[0]) == (alone.low, alone.high)


def test_a_band_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [3, 5, 7, 12]
    whole = hb.band(AGES, values=some)
    monkeypatch.setattr(interval_band, "MIN_THREADED_ENTRIES", 0)
    monkeypatch.setattr(interval_band, "processors", lambda: 3)
    again = hb.band(AGES, values=some)
    assert np.array_equal(again.low, whole.low, equal_nan=True)
    assert np.array_equal(again.high, whole.high, equal_nan=True)


# -- quantiles ----------------------------------------------------------------------------------------------


@functools.cache
def cumulative_intervals() -> list[hb.Interval]:
    """The intervals of the distribution function of AGES at each value."""
    return [hb.interval(AGES, list(range(3, value + 1))) for value in LINE.labels.tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("probability", [0.25, 0.5, 0.8])
def test_quantiles_invert_the_distribution_function(probability: float) -> None:
    quantile = hb.quantile(AGES, probability)
    labels = LINE.labels.tolist()
    ends = cumulative_intervals()
    assert quantile.low == next(value for value, one in zip(labels, ends, strict=True) if one.high >= probability)
    assert quantile.high == next(value for value, one in zip(labels, ends, strict=True) if one.low >= probability)
    sums = np.cumsum(hb.estimate(AGES).probabilities)
    assert quantile.estimate == labels[int(np.argmax(sums >= probability))]
    assert quantile.low <= quantile.estimate <= quantile.high
    assert type(quantile.estimate) is int


def test_a_known_median() -> None:
    """A value with two thirds of the mass and hardly any noise."""
    mechanism = hb.TruncatedGeometric(LINE, 4.0)
    truth = np.array([0, 0, 1, 5, 22, 4, 1, 0, 0, 0]) / 33
    reports = drawn(mechanism, truth, 20_000, 5)
    quantile = hb.quantile(reports, 0.5, 0.99)
    assert (quantile.low, quantile.estimate, quantile.high) == (7, 7, 7)
    assert quantile.explain() == "50% of the population have at most 7; between 7 and 7 at 99%."
    few = hb.quantile(drawn(hb.TruncatedGeometric(LINE, 0.1), truth, 15, 5), 0.5)
    assert (few.low, few.high) == (3, 12)
    kept = hb.quantile(reports.restrict([5, 7, 9]), 0.5)
    assert kept.estimate == 7


# -- the check ----------------------------------------------------------------------------------------------


def test_a_check_in_one_go() -> None:
    check = hb.check(REPORTS, 0.9, share=0.02)
    assert [fact.label for fact in check.facts()] == ["one answer?", "does it fit?", "fake users?", "how precise?"]
    assert np.count_nonzero(~np.isnan(check.band.low)) == 5
    assert {"a", "b", "c"} <= set(LETTERS.labels[~np.isnan(check.band.low)].tolist())
    assert (check.users, check.band.level, check.shift.share) == (4_000, 0.9, 0.02)
    assert check.identification.unique
    assert "At 90%" in str(check)
    less = hb.check(REPORTS, fit=False, values=["j"], estimate=hb.estimate(REPORTS, "ibu", max_iter=1))
    assert less.fit is None
    assert [fact.label for fact in less.facts()] == ["one answer?", "fake users?", "how precise?"]
    assert np.flatnonzero(~np.isnan(less.band.low)).tolist() == [9]
    assert "1 interval." in str(less)


def test_progress_is_told() -> None:
    reports = hb.Reports.from_counts(hb.TruncatedGeometric(hb.Integers(0, 2), 1.0), [50, 30, 20])
    for run in (
        hb.interval.steps(reports, [0, 1]),
        hb.band.steps(reports),
        hb.quantile.steps(reports, 0.5),
        hb.check.steps(reports, fit=False),
    ):
        stages = [progress for progress in run if isinstance(progress, Progress)]
        assert stages
        assert all(0 <= stage.done <= stage.total for stage in stages)


# -- does it hold? ------------------------------------------------------------------------------------------

SIMULATIONS = 150


@pytest.mark.slow
def test_six_empty_values_are_covered() -> None:
    """Coverage of a joint share that is 0 in truth: 95% calibrated, 76% by chi-square (of 1,000 runs made before).

    With 150 simulations the standard errors are 0.018 and 0.035: both bounds lie three of them away.
    """
    weights = np.isin(LETTERS.labels, EMPTY).astype(np.float64)
    covered, plain = 0, 0
    for seed in range(SIMULATIONS):
        counts = np.random.default_rng(seed).multinomial(4_000, ZEROS @ ANSWER.matrix())
        reports = hb.Reports.from_counts(ANSWER, counts)
        holds = LikelihoodRegion.of(reports).least(weights, chi_square(0.95)).limit <= 1e-9
        plain += holds
        # The calibrated interval holds that of chi-square: where the latter covers, there is nothing to compute.
        covered += holds or hb.interval(reports, EMPTY).low <= 1e-9
    assert covered / SIMULATIONS >= 0.90
    assert plain / SIMULATIONS <= 0.87


# -- threads ------------------------------------------------------------------------------------------------

ONE_THREAD = """
import sys
import numpy as np
from hubbub.core.threads import threads_for
assert "scipy.linalg" not in sys.modules
with threads_for(1):
    import scipy.linalg
    from threadpoolctl import threadpool_info
    scipy.linalg.solve(np.eye(3), np.ones(3))
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert pools and set(pools) == {1}, pools
after = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
assert len(after) == len(pools)
"""


def test_linear_algebra_that_is_loaded_late_has_one_thread_too() -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", ONE_THREAD], env=environment, capture_output=True, text=True)  # noqa: S603
    assert done.returncode == 0, done.stderr


# Of an output 1e12 away, floats hold the likelihoods' ratio to 1e-7 only: no interval can know better.
@pytest.mark.parametrize(
    ("epsilon", "far", "known"), [(0.001, 10**12, "1e-4"), (50.0, 10**9, "1e-9"), (0.5, 3, "1e-9")]
)
def test_a_billion_users_and_outputs_far_away(epsilon: float, far: int, known: str) -> None:
    """What rounding does to log-likelihoods of -1e11 must not move an end inwards; in 60 digits for comparison."""
    counts = {0: 500_000_000, 1: 333_333_333, far: 100_000_000, -far: 50_000_000}
    mechanism = hb.Geometric(hb.Integers(0, 1), epsilon)
    bounds = hb.interval(hb.Reports.from_counts(mechanism, counts), 0, simultaneous=True)
    assert bounds.cutoffs is not None
    with mpmath.workdps(60):
        decay = mpmath.exp(-mpmath.mpf(epsilon))

        def log_likelihood(share: Any) -> Any:
            return sum(
                count * mpmath.log(share * decay ** abs(output) + (1 - share) * decay ** abs(output - 1))
                for output, count in counts.items()
            )

        # L is concave in the share: thirds shrink towards the top, halves towards the ends.
        low, high = mpmath.mpf(0), mpmath.mpf(1)
        for _ in range(300):
            one, other = low + (high - low) / 3, high - (high - low) / 3
            low, high = (one, high) if log_likelihood(one) < log_likelihood(other) else (low, other)
        top = (low + high) / 2
        ends = []
        for edge in (mpmath.mpf(0), mpmath.mpf(1)):
            inside, outside = top, edge
            for _ in range(200):
                middle = (inside + outside) / 2
                likely = 2 * (log_likelihood(top) - log_likelihood(middle)) <= bounds.cutoffs[0]
                inside, outside = (middle, outside) if likely else (inside, middle)
            ends.append(inside)
        width = ends[1] - ends[0]
        assert bounds.low <= ends[0] + mpmath.mpf(known) * width
        assert bounds.high >= ends[1] - mpmath.mpf(known) * width
        assert ends[0] - bounds.low < width / 20
        assert bounds.high - ends[1] < width / 20


def test_levels_beyond_what_is_simulated_are_safe() -> None:
    reports = hb.Reports.from_counts(hb.RandomizedResponse(hb.Integers(0, 9), 1.5), [900, 700, 500, 300, *[150] * 6])
    empty = [4, 5, 6, 7, 8, 9]
    simulated, beyond = hb.interval(reports, empty, 0.99), hb.interval(reports, empty, 0.99999)
    together = hb.interval(reports, empty, 0.99999, simultaneous=True)
    assert "not simulated" in beyond.note
    assert beyond.low <= simulated.low
    assert beyond.high > simulated.high
    assert (beyond.low, beyond.high) == (together.low, together.high)


@pytest.mark.parametrize("nothing", [[], set(), np.array([])], ids=["list", "set", "array"])
def test_no_values_are_refused_whatever_holds_them(nothing: object) -> None:
    with pytest.raises(hb.SettingError, match="value"):
        hb.interval(REPORTS, nothing)
