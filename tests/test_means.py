"""Unbiased means: scores against enumeration, intervals against simulated studies."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import hubbub as hb
from hubbub.mechanisms import __all__ as names_of_mechanisms
from hubbub.sampling import source_of

LINE = hb.Integers(2, 7)
FAR = hb.Integers(10**9, 10**9 + 5)
EVEN = hb.Bins([0.0, 0.5, 1.0, 1.5, 2.0, 2.5])
UNEVEN = hb.Bins([0.0, 0.5, 2.0, 2.25, 6.0, 7.0])
SHARES = np.array([0.4, 0.25, 0.1, 0.05, 0.05, 0.15])
TWO = hb.Matrix(LINE, ["low", "high"], np.linspace([0.2, 0.8], [0.7, 0.3], 6))

SCORED: list[hb.Mechanism] = [
    hb.RandomizedResponse(LINE, 1.0),
    hb.RandomizedResponse(UNEVEN, p=0.5),
    hb.Geometric(LINE, 0.7),
    hb.TruncatedGeometric(LINE, 0.7),
    hb.TruncatedGeometric(FAR, 0.01),
    hb.Laplace(LINE, 0.7),
    hb.Laplace(UNEVEN, 0.7),
    hb.Exponential(UNEVEN, 0.7),
    hb.Rappor(LINE, 1.0),
    hb.OptimizedUnary(UNEVEN, 1.0),
    hb.Unary(FAR, 0.6, 0.2),
    hb.LongitudinalRappor(LINE, 2.0, 1.0),
    hb.LongitudinalUnary(LINE, 2.0, 1.0),
    hb.LongitudinalResponse(UNEVEN, 2.0, 1.0),
    hb.DBitFlip(LINE, 1.0),
    hb.HadamardResponse(LINE, 0.5),
    hb.HadamardResponse(UNEVEN, 2.0),
    hb.HadamardResponse(UNEVEN, 2.0, 8),
    hb.ProjectiveResponse(UNEVEN, 1.0),
    hb.CountMeanSketch(UNEVEN, 1.0, 4, 4),
    hb.HadamardCountMeanSketch(UNEVEN, 1.0, 4, 4),
    hb.DBitFlip(UNEVEN, 1.0, 5, 2),
    hb.DBitFlip(LINE, 1.0, 6, 1),
    hb.SubsetSelection(LINE, 1.0),
    hb.SquareWave(LINE, 1.0),
    hb.SquareWave(UNEVEN, 1.0),
    hb.Piecewise(EVEN, 1.0),
    hb.Duchi(EVEN, 1.0),
    hb.Duchi(FAR, 0.1),
    hb.Staircase(EVEN, 1.0),
    hb.Staircase(FAR, 2.0),
    TWO,
]
HASHED = [hb.LocalHashing(LINE, 1.0), hb.LongitudinalHashing(LINE, 2.0, 1.0)]
UNSCORED = [hb.DBitFlip(LINE, 1.0, 3, 2), hb.CountMeanSketch(LINE, 1.0, 1, 4), hb.Cloaking(LINE, [1, 1, 2, 2, 3, 3])]


def on_line(mechanism: hb.Mechanism) -> NDArray[np.float64]:
    places = mechanism.domain.places
    assert places is not None
    return places


@pytest.mark.parametrize("mechanism", SCORED, ids=lambda mechanism: type(mechanism).__name__)
def test_the_expected_score_is_the_value(mechanism: hb.Mechanism) -> None:
    """By enumeration of all outputs; what is not listed of endless noise is less than 1e-13."""
    score, places = mechanism.mean_score(), on_line(mechanism)
    assert score is not None
    scores = score(mechanism.output_space.encode(mechanism.outputs)) - places[0]
    np.testing.assert_allclose(mechanism.matrix() @ scores, places - places[0], atol=1e-7 if places[0] > 1e6 else 1e-11)


@pytest.mark.parametrize("mechanism", HASHED, ids=lambda mechanism: type(mechanism).__name__)
def test_the_expected_score_of_hashed_values_is_the_value(mechanism: hb.LocalHashing) -> None:
    """Within five standard errors, over a million seeds."""
    score = mechanism.mean_score()
    assert score is not None
    for place in (0, 3, 5):
        sent = mechanism.report(np.full(1_000_000, place), source_of(place))
        scores = score(sent)
        assert abs(scores.mean() - LINE.labels[place]) < 5 * scores.std() / 1_000


def test_every_kind_on_a_line_has_a_score_or_a_reason() -> None:
    of_other_domains = {"PlanarGeometric", "PlanarLaplace", "CrosswiseModel", "ForcedResponse", "UnrelatedQuestion"}
    of_other_domains |= {"Warner", "BloomRappor", "Split", "SampleOne", "SampleOneWithFakes"}
    known = {type(mechanism).__name__ for mechanism in (*SCORED, *HASHED, *UNSCORED)}
    assert known == set(names_of_mechanisms) - of_other_domains - {"Mechanism"}
    assert all(mechanism.mean_score() is None for mechanism in UNSCORED)


@pytest.mark.parametrize("mechanism", [*SCORED, *HASHED], ids=lambda mechanism: type(mechanism).__name__)
def test_the_mean_is_the_average_score_and_its_error_that_between_users(mechanism: hb.Mechanism) -> None:
    labels = mechanism.domain.labels
    values = np.random.default_rng(1).choice(labels, size=400, p=(SHARES[: len(labels)] / SHARES[: len(labels)].sum()))
    sent = mechanism.privatize(values, rng=2)
    answer = hb.mean(hb.Reports.from_outputs(mechanism, sent), level=0.9)
    score = mechanism.mean_score()
    assert score is not None
    scores = score(mechanism.output_space.encode(sent))
    assert answer.estimate == pytest.approx(scores.mean(), rel=1e-12)
    error = scores.std(ddof=1) / 20
    assert answer.standard_error == pytest.approx(error, rel=1e-9)
    reach = stats.t.ppf(0.95, 399) * error
    first, last = on_line(mechanism)[[0, -1]]
    assert answer.low == pytest.approx(min(max(scores.mean() - reach, first), scores.mean()))
    assert answer.high == pytest.approx(max(min(scores.mean() + reach, last), scores.mean()))


def covered(mechanism: hb.Mechanism, users: int, studies: int) -> int:
    rng, held = np.random.default_rng(7), 0
    places = on_line(mechanism)
    shares = SHARES[: len(places)] / SHARES[: len(places)].sum()
    truth = float(shares @ places)
    for _ in range(studies):
        values = rng.choice(mechanism.domain.labels, size=users, p=shares)
        answer = hb.mean(hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng)), level=0.9)
        held += answer.low <= truth <= answer.high
    return held


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [*SCORED, *HASHED], ids=lambda mechanism: type(mechanism).__name__)
def test_intervals_hold_the_mean_as_often_as_they_say(mechanism: hb.Mechanism) -> None:
    """90% of 1,000 studies of 500 users, at level 1e-6 for each mechanism."""
    held = covered(mechanism, 500, 1_000)
    assert stats.binom.ppf(5e-7, 1_000, 0.9) <= held <= stats.binom.ppf(1 - 5e-7, 1_000, 0.9)


def test_intervals_of_two_answers_hold_the_mean() -> None:
    """90% of 300 studies of 200 users, at level 1e-6: what is too narrow by a third fails."""
    held = covered(hb.Duchi(LINE, 1.0), 200, 300)
    low, high = (stats.binom.ppf(share, 300, 0.9) for share in (5e-7, 1 - 5e-7))
    assert low <= held <= high
    narrow = 2 * stats.norm.cdf(stats.norm.ppf(0.95) * 2 / 3) - 1
    assert stats.binom.cdf(low, 300, narrow) > 0.2  # a planted fault would be found


# -- several outputs, several mechanisms ------------------------------------------------------------------


def test_outputs_of_one_user_are_averaged() -> None:
    noise, memory = hb.Staircase(LINE, 1.0), hb.LongitudinalRappor(LINE, 4.0, 1.0)
    for mechanism in (noise, memory):
        score = mechanism.mean_score()
        assert score is not None
        rng = np.random.default_rng(3)
        values = rng.choice(LINE.labels, size=60, p=SHARES)
        sent = [mechanism.privatize(values, rng=rng) for _ in range(3)]
        reports = hb.Reports.from_users([[(mechanism, outputs[user]) for outputs in sent] for user in range(60)])
        scores = np.mean([score(mechanism.output_space.encode(outputs)) for outputs in sent], axis=0)
        answer = hb.mean(reports)
        assert answer.estimate == pytest.approx(scores.mean())
        assert answer.standard_error == pytest.approx(scores.std(ddof=1) / math.sqrt(60))


def halves(seed: int = 0) -> tuple[hb.Reports, hb.Reports]:
    rng = np.random.default_rng(seed)
    values = rng.choice(LINE.labels, size=(2, 300), p=SHARES)
    kinds = hb.Staircase(LINE, 4.0), hb.Duchi(LINE, 0.3)
    first, second = (
        hb.Reports.from_outputs(kind, kind.privatize(own, rng=rng)) for kind, own in zip(kinds, values, strict=True)
    )
    return first, second


def test_mechanisms_are_weighted_by_the_inverse_of_their_variance() -> None:
    first, second = halves()
    one, other, both = hb.mean(first), hb.mean(second), hb.mean(first + second)
    weights = np.array([one.standard_error**-2, other.standard_error**-2])
    assert both.estimate == pytest.approx(float(weights @ [one.estimate, other.estimate]) / weights.sum())
    assert both.standard_error == pytest.approx(weights.sum() ** -0.5)
    assert both.standard_error < min(one.standard_error, other.standard_error)
    assert "2 ways of reporting" in both.note
    assert (both.users, hb.mean(second + first)) == (600, both)


def test_few_users_of_a_mechanism_join_others() -> None:
    """A variance that is known from three users is no weight."""
    first, _ = halves()
    few = hb.Duchi(LINE, 3.0)
    joined = hb.mean(first + hb.Reports.from_outputs(few, [1, 1, -1]))
    score = few.mean_score()
    assert score is not None
    assert joined.estimate == pytest.approx((300 * hb.mean(first).estimate + score(np.array([1, 1, 0])).sum()) / 303)
    assert joined.note == ""


# -- sums of bits, survey weights -------------------------------------------------------------------------


def test_sums_of_bits_have_the_mean_and_nearly_the_error_of_whole_rows() -> None:
    for mechanism in (hb.Rappor(LINE, 2.0), hb.Unary(LINE, 0.95, 0.3)):
        values = np.random.default_rng(5).choice(LINE.labels, size=20_000, p=SHARES)
        rows = mechanism.privatize(values, rng=6)
        whole = hb.mean(hb.Reports.from_outputs(mechanism, rows))
        ones = np.unpackbits(rows, axis=1, count=6).sum(axis=0)
        sums = hb.mean(hb.Reports.from_bit_counts(mechanism, ones, 20_000))
        assert sums.estimate == pytest.approx(whole.estimate)
        assert sums.standard_error == pytest.approx(whole.standard_error, rel=0.02)


def weighted(
    weights: NDArray[np.float64] | None = None, *, seed: int = 1, clusters: object = None
) -> tuple[NDArray[np.float64], hb.Reports]:
    mechanism = hb.Staircase(LINE, 3.0)
    values = np.random.default_rng(seed).choice(LINE.labels, size=240, p=SHARES)
    sent = mechanism.privatize(values, rng=seed)
    return sent.astype(np.float64), hb.Reports.from_outputs(mechanism, sent, weights=weights, clusters=clusters)


def test_survey_weights_weight_the_scores() -> None:
    """The mean and the variance of a ratio, as textbooks have them for a sample with replacement."""
    weights = np.random.default_rng(2).uniform(0.5, 4.0, size=240)
    scores, reports = weighted(weights)
    answer = hb.mean(reports)
    centre = float(weights @ scores / weights.sum())
    assert answer.estimate == pytest.approx(centre)
    parts = weights * (scores - centre) / weights.sum()
    assert answer.standard_error == pytest.approx(math.sqrt(240 / 239 * float(parts @ parts)))
    equal = hb.mean(weighted(np.full(240, 3.0))[1])
    plain = hb.mean(weighted()[1])
    assert equal.estimate == pytest.approx(plain.estimate)
    assert equal.standard_error == pytest.approx(plain.standard_error)


def test_clusters_are_what_is_sampled() -> None:
    names = np.repeat(np.arange(24), 10)
    scores, reports = weighted(np.ones(240), clusters=names)
    sums = np.bincount(names, (scores - scores.mean()) / 240)
    assert hb.mean(reports).standard_error == pytest.approx(math.sqrt(24 / 23 * float(sums @ sums)))


# -- what is shown ----------------------------------------------------------------------------------------


def test_intervals_stay_on_the_line_and_hold_the_estimate() -> None:
    duchi = hb.Duchi(LINE, 0.5)
    beyond = hb.mean(hb.Reports.from_counts(duchi, {-1: 10, 1: 990}))
    assert beyond.estimate > 7
    assert beyond.low <= 7 <= beyond.high == beyond.estimate
    within = hb.mean(hb.Reports.from_counts(duchi, {-1: 4, 1: 6}))
    assert (within.low, within.high) == (2, 7)
    assert "only approximate" in within.note


def test_equal_scores_say_nothing_about_their_spread() -> None:
    answer = hb.mean(hb.Reports.from_counts(hb.Duchi(LINE, 0.5), {1: 40}))
    assert math.isnan(answer.standard_error)
    assert (answer.low, answer.high) == (2, answer.estimate)
    assert "All scores are equal" in answer.explain()
    assert json.loads(answer.to_json())["standard_error"] is None


def test_restricted_reports_have_the_line_of_the_values_that_are_left() -> None:
    reports = hb.Reports.from_counts(hb.Duchi(LINE, 0.5), {-1: 40, 1: 60}).restrict([3, 4, 5])
    whole = hb.mean(hb.Reports.from_counts(hb.Duchi(LINE, 0.5), {-1: 40, 1: 60}))
    answer = hb.mean(reports)
    assert answer.estimate == whole.estimate
    assert (answer.low, answer.high) == (max(3, whole.low), max(5, answer.estimate))


def test_a_mean_prints_and_is_written() -> None:
    answer = hb.mean(halves()[0])
    assert json.loads(answer.to_json()) == {
        "version": 1,
        "estimate": answer.estimate,
        "low": answer.low,
        "high": answer.high,
        "level": 0.95,
        "standard_error": answer.standard_error,
        "users": 300,
        "note": "",
    }
    assert str(answer) == answer.explain()
    assert "95% interval" in answer._repr_html_()


def test_large_samples_agree_with_the_likelihood() -> None:
    mechanism = hb.RandomizedResponse(LINE, 3.0)
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize(np.repeat(LINE.labels, 4_000), rng=3))
    scored, likely = hb.mean(reports), hb.moments(reports, estimate=hb.estimate(reports, "mle")).mean
    assert scored.estimate == pytest.approx(likely.estimate, abs=1e-6)
    assert scored.standard_error == pytest.approx(likely.standard_error, rel=0.01)
