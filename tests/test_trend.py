"""Trends: periods by themselves, bands, where something changed, smoothing over time, and what is said about them."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from datetime import date
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2, chi2_contingency

import hubbub as hb
from hubbub.comparison.equality_test import EqualGroups, Equality
from hubbub.comparison.populations import Populations
from hubbub.core.progress import finish
from hubbub.trends.api import _selected_share
from hubbub.trends.change_search import ChangeSearch, FoundChange, Span, StabilityTest, _narrowest
from hubbub.trends.common_patterns import CommonPatterns
from hubbub.trends.small_periods import join_small_periods
from hubbub.trends.time_smoothing import choose_smoothing, smooth

Floats = NDArray[np.float64]
YES_NO, LETTERS = hb.Categories(["yes", "no"]), hb.Categories(list("abc"))
COIN = hb.RandomizedResponse(YES_NO, 2.0)


def periods(
    mechanism: hb.Mechanism, truth: Callable[[int], list[float]], count: int, users: int, seed: int
) -> dict[str, hb.Reports]:
    rng = np.random.default_rng([seed, count, users])
    matrix = mechanism.matrix()
    return {
        f"w{place + 1}": hb.Reports.from_counts(mechanism, rng.multinomial(users, np.array(truth(place)) @ matrix))
        for place in range(count)
    }


def searching(weeks: list[hb.Reports], seed: int) -> ChangeSearch:
    return ChangeSearch(finish(Populations.of(weeks)), CommonPatterns.of(weeks), 0.95, np.random.default_rng(seed))


def share(yes: float) -> list[float]:
    return [yes, 1.0 - yes]


@pytest.fixture(scope="module")
def step() -> tuple[dict[str, hb.Reports], hb.Trend]:
    """Six weeks of three letters, of which the first becomes more frequent after the fourth week."""
    mechanism = hb.RandomizedResponse(LETTERS, 2.0)
    weeks = periods(mechanism, lambda week: [0.3, 0.5, 0.2] if week < 4 else [0.42, 0.38, 0.2], 6, 1_500, 1)
    return weeks, hb.trend(weeks)


# -- one voice -------------------------------------------------------------------------------------------------


def test_each_period_has_the_numbers_of_its_own_band(step: tuple[dict[str, hb.Reports], hb.Trend]) -> None:
    weeks, trend = step
    for place, reports in enumerate(weeks.values()):
        alone, together = hb.band(reports), hb.band(reports, 1.0 - 0.05 / 6)
        assert trend.estimate[place].tolist() == hb.estimate(reports).probabilities.tolist()
        assert (trend.low[place].tolist(), trend.high[place].tolist()) == (alone.low.tolist(), alone.high.tolist())
        np.testing.assert_array_equal(trend.band_low[place], np.minimum(alone.low, together.low))
        np.testing.assert_array_equal(trend.band_high[place], np.maximum(alone.high, together.high))
    assert (trend.band_high - trend.band_low > trend.high - trend.low).all()


def test_a_planted_step_is_found_where_it_is(step: tuple[dict[str, hb.Reports], hb.Trend]) -> None:
    weeks, trend = step
    (change,) = trend.changes
    assert (change.before, change.after) == ("w4", "w5")
    assert trend.sentence.startswith("Between w4 and w5 ")
    assert "a became more frequent: by" in trend.sentence
    assert "b became less frequent: by" in trend.sentence
    reports = list(weeks.values())
    assert (change.first, change.last) == ("w4", "w5")
    pair = hb.compare(sum(reports[1:4], start=reports[0]), reports[4] + reports[5], level=1.0 - 0.05 / 5)
    for name in ("difference", "low", "high", "changed"):
        assert getattr(change, name).tolist() == getattr(pair, name).tolist()
    assert change.low[0] <= 0.12 <= change.high[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("yes", [[480, 520], [480, 521], [480, 522], [480, 523], [480, 524], [480, 560]])
def test_two_periods_change_if_and_only_if_they_differ_as_groups(yes: list[int]) -> None:
    first, second = (hb.Reports.from_counts(COIN, [count, 1_000 - count]) for count in yes)
    trend, pair = hb.trend({"before": first, "after": second}), hb.compare(first, second)
    assert trend.p_value == pair.p_value
    assert bool(trend.changes) == pair.rejected == trend.rejected
    for change in trend.changes:
        assert change.p_value == pair.p_value
        assert change.low.tolist() == pair.low.tolist()


def test_one_statistic_the_mean_and_quantiles_are_followed() -> None:
    ages = hb.Integers(0, 4)
    mechanism = hb.TruncatedGeometric(ages, 1.5)
    years = periods(
        mechanism, lambda year: [0.3, 0.3, 0.2, 0.1, 0.1] if year < 2 else [0.1, 0.1, 0.2, 0.3, 0.3], 3, 900, 2
    )
    reports = list(years.values())
    mean, median = hb.trend(years), hb.trend(years, quantile=0.5)
    for place, own in enumerate(reports):
        asked = hb.interval(own, {age: age for age in range(5)})
        assert (mean.estimate[place, 0], mean.low[place, 0]) == (asked.estimate, asked.low)
        half = hb.quantile(own, 0.5)
        assert (median.estimate[place, 0], median.low[place, 0], median.high[place, 0]) == (
            half.estimate,
            half.low,
            half.high,
        )
    (moved,), (shifted,) = mean.changes, median.changes
    assert moved.low[0] <= 1.2 <= moved.high[0]  # from a mean of 1.4 to one of 2.6
    assert shifted.low[0] <= 2 <= shifted.high[0]  # from a median of 1 to one of 3
    assert "the mean became higher" in mean.sentence
    assert "the median became higher" in median.sentence
    assert mean.p_value == median.p_value
    assert median.smoothed.tolist() == [[1.0], [1.0], [3.0]]


# -- the test of no change, against the textbook --------------------------------------------------------------


def test_without_noise_the_tests_are_those_of_tables() -> None:
    mechanism = hb.RandomizedResponse(LETTERS, 30.0)
    table = np.array([[400, 350, 250], [430, 330, 240], [390, 380, 230], [450, 300, 250]])
    reports = [hb.Reports.from_counts(mechanism, row) for row in table]
    null = finish(EqualGroups.of(finish(Populations.of(reports)), np.random.default_rng(1)))
    any_difference, best_step = finish(null.test([null.ratio.of, null.ratio.of_best_step]))
    assert any_difference.p_value == pytest.approx(chi2_contingency(table).pvalue, abs=0.02)
    steps = [chi2_contingency([table[:cut].sum(0), table[cut:].sum(0)], correction=False) for cut in (1, 2, 3)]
    best = max(step.statistic for step in steps)
    assert chi2.sf(best, 2) < best_step.p_value < 3 * chi2.sf(best, 2)
    # The statistic itself, at the observed table, is Pearson's chi-square of the best cut.
    from hubbub.comparison.score_sources import observed_scores

    assert null.ratio.of_best_step(observed_scores(null.points)[:, None])[0] == pytest.approx(best, rel=1e-6)


def test_rejected_spans_have_only_rejected_spans_around_them() -> None:
    weeks = list(periods(COIN, lambda week: share(0.3 if week < 4 else 0.42), 8, 800, 3).values())
    search = searching(weeks, 0)
    finish(search.test_all())
    finish(search.find())
    assert Span(0, 7) in search.adjusted
    for span, p_value in search.adjusted.items():
        assert span.first <= 3 < span.last  # all hold the one change
        assert p_value <= 0.05
        around = [other for other in search.adjusted if other.first <= span.first and span.last <= other.last]
        assert len(around) == (span.first + 1) * (8 - span.last)
        assert p_value >= max(search.adjusted[other] for other in around)


def test_spans_are_tested_at_their_share_of_the_level_and_inside_rejected_ones_only() -> None:
    p_values = {Span(0, 2): 0.03, Span(1, 3): 0.035, Span(0, 1): 1e-9, Span(1, 2): 1e-9, Span(2, 3): 1e-9}

    class Given(ChangeSearch):
        def _p_value(self, span: Span, level: float) -> Generator[Any, None, float]:
            yield from ()
            assert level == pytest.approx(0.05 * span.boundaries / 3)
            return p_values[span]

    weeks = list(periods(COIN, lambda _: share(0.3), 4, 100, 8).values())
    search = Given(finish(Populations.of(weeks)), CommonPatterns.of(weeks), 0.95, np.random.default_rng(0))
    search.adjusted[Span(0, 3)] = 0.04
    changes = finish(search.find())
    # 0.035 is above two thirds of 0.05, so nothing in the last three periods is rejected.
    assert search.adjusted == pytest.approx({Span(0, 3): 0.04, Span(0, 2): 0.045, Span(0, 1): 0.045})
    assert [change.span for change in changes] == [Span(0, 1)]


def test_the_smaller_of_two_p_values_is_doubled() -> None:
    any_difference, best_step = (
        Equality(5.0, p_value, 999, "", np.array([1.0]), np.array([1.0])) for p_value in (0.03, 0.2)
    )
    assert StabilityTest(any_difference, best_step).p_value == pytest.approx(0.06)
    assert StabilityTest(best_step, best_step).p_value == 0.2  # of two periods there is one test


def test_changes_are_placed_where_the_likelihood_is_largest() -> None:
    weeks = list(periods(COIN, lambda week: share((0.2, 0.5, 0.35)[(week > 1) + (week > 5)]), 8, 3_000, 9).values())
    search = searching(weeks, 0)
    assert finish(search._likeliest_places([Span(0, 7)])) == [1]
    assert finish(search._likeliest_places([Span(0, 4), Span(4, 7)])) == [1, 5]
    assert finish(search._likeliest_places([])) == []


def test_the_narrowest_spans_have_no_boundary_in_common() -> None:
    rejected = {
        Span(0, 5): 1e-6,
        Span(0, 4): 1e-5,
        Span(1, 5): 1e-5,
        Span(3, 4): 0.03,
        Span(0, 3): 0.02,
        Span(2, 4): 0.01,
    }
    assert _narrowest(rejected) == [Span(0, 3), Span(3, 4)]


@pytest.mark.slow
def test_nothing_is_named_where_nothing_changes() -> None:
    # 60 studies at 5%: more than 9 with a change have a probability of 0.1% (binomial).
    named = 0
    for seed in range(60):
        search = searching(list(periods(COIN, lambda _: share(0.3), 4, 150, seed).values()), seed)
        named += finish(search.test_all()).p_value <= 0.05
        assert bool(finish(search.find())) == bool(search.adjusted)
    assert named <= 9


def test_intervals_at_a_change_allow_for_all_places_where_it_was_looked_for() -> None:
    weeks = periods(COIN, lambda week: share(0.3 if week < 4 else 0.36), 8, 700, 12)
    (change,) = hb.trend(weeks, of="yes").changes
    names = list(weeks)
    places = names.index(change.last) - names.index(change.first)
    assert places > 1
    assert f"It may have been at another time from {change.first} to {change.last}." in change.sentence
    reports, after = list(weeks.values()), names.index(change.after)
    stretches = (sum(own[1:], start=own[0]) for own in (reports[:after], reports[after:]))
    pair = hb.compare(*stretches, of="yes", level=1.0 - 0.05 / max(places, len(weeks) - 1))
    assert (change.low[0], change.high[0]) == (pair.low[0], pair.high[0])


def test_the_share_of_misses_that_is_allowed_falls_with_places_and_rises_with_changes() -> None:
    at_once, in_doubt = FoundChange(Span(2, 3), 0.01, 2), FoundChange(Span(2, 8), 0.01, 4)
    assert _selected_share(at_once, 1, 2) == 1.0  # two periods: nothing was chosen
    assert _selected_share(at_once, 2, 12) == pytest.approx(2 / 11)
    assert _selected_share(in_doubt, 4, 12) == pytest.approx(1 / 6)


def test_several_changes_are_found_and_never_more_than_there_are() -> None:
    weeks = periods(COIN, lambda week: share((0.3, 0.45, 0.25)[week // 4]), 12, 2_000, 4)
    trend = hb.trend(weeks, of="yes")
    assert [(change.before, change.after) for change in trend.changes] == [("w4", "w5"), ("w8", "w9")]
    assert trend.estimate[0, 0] == hb.interval(weeks["w1"], "yes").estimate
    assert "became more frequent" in trend.changes[0].sentence
    assert "became less frequent" in trend.changes[1].sentence


def test_periods_with_unlike_mechanisms_are_followed() -> None:
    light = hb.RandomizedResponse(YES_NO, 4.0)
    weeks = {
        **periods(COIN, lambda _: share(0.3), 3, 1_000, 5),
        **{f"later {name}": own for name, own in periods(light, lambda _: share(0.5), 3, 1_000, 5).items()},
    }
    trend = hb.trend(weeks)
    assert [(change.before, change.after) for change in trend.changes] == [("w3", "later w1")]
    assert trend.epsilon == pytest.approx(3 * 2.0 + 3 * 4.0)
    assert "at most epsilon 18 in all 6" in trend.explain()


# -- smoothing -------------------------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("truth", "kind"),
    [
        (lambda _: share(0.3), "constant"),
        (lambda week: share(0.3 + 0.02 * week), "smooth"),
        (lambda week: share(0.3 if week % 2 else 0.6), "none"),
    ],
)
def test_smoothing_is_chosen_where_it_predicts_better(truth: Callable[[int], list[float]], kind: str) -> None:
    true = [truth(week)[0] for week in range(12)]
    kinds, errors = [], []
    for seed in range(3):
        evidence = CommonPatterns.of(list(periods(COIN, truth, 12, 2_000, seed).values()))
        assert evidence is not None
        one = np.zeros(12, dtype=np.int64)
        chosen = finish(choose_smoothing(evidence, np.arange(12.0), one, 0, np.random.default_rng(0)))
        kinds.append(chosen.kind)
        shares = [finish(smooth(evidence, weights))[:, 0] for weights in (chosen.weights, np.eye(12))]
        errors.append([float(np.square(own - true).mean()) for own in shares])
    assert kinds.count(kind) >= 2  # users who were left out are chance, too
    smoothed, raw = np.mean(errors, axis=0)
    assert smoothed < 0.6 * raw if kind != "none" else smoothed == raw


def test_what_is_smoothed_does_not_cross_a_change(step: tuple[dict[str, hb.Reports], hb.Trend]) -> None:
    weeks, trend = step
    assert trend.smoothing.kind == "steps"
    reports = list(weeks.values())
    before, after = sum(reports[1:4], start=reports[0]), reports[4] + reports[5]
    assert trend.smoothed[3].tolist() == hb.estimate(before).probabilities.tolist()
    assert trend.smoothed[4].tolist() == hb.estimate(after).probabilities.tolist()


def test_local_likelihood_of_equal_weights_is_that_of_all_reports_together() -> None:
    weeks = list(periods(hb.Rappor(LETTERS, 2.0), lambda _: [0.3, 0.5, 0.2], 3, 500, 7).values())
    evidence = CommonPatterns.of(weeks)
    assert evidence is not None
    pooled = hb.estimate(weeks[0] + weeks[1] + weeks[2], "mle")
    np.testing.assert_allclose(finish(smooth(evidence, np.ones((3, 3))))[0], pooled.probabilities, atol=1e-5)
    assert evidence.weights.sum(axis=1).tolist() == [500.0] * 3


# -- what is shown and refused ---------------------------------------------------------------------------------


def test_everything_is_shown(step: tuple[dict[str, hb.Reports], hb.Trend]) -> None:
    from matplotlib.figure import Figure

    _, trend = step
    frame = trend.to_frame()
    columns = ["period", "value", "estimate", "low", "high", "band_low", "band_high", "smoothed"]
    assert list(frame.columns) == columns
    assert len(frame) == 18
    document = json.loads(trend.to_json())
    assert document["changes"][0]["after"] == "w5"
    assert [row["estimate"] for row in document["values"]] == frame["estimate"].tolist()
    assert {fact.label for fact in trend.facts()} >= {"in short", "test", "smoothing", "privacy"}
    assert "spends privacy in each" in trend.explain()
    assert "w5" in trend._repr_html_()
    axes = trend.plot(Figure().subplots())
    assert "w4 and w5" in axes.get_title()
    assert repr(trend).startswith("Trend(6 periods, 3 rows each, 1 change, p=")


def test_the_same_reports_give_the_same_answer(step: tuple[dict[str, hb.Reports], hb.Trend]) -> None:
    weeks, trend = step
    again = hb.trend(list(weeks.items()))
    assert again.document() == trend.document()


def test_times_come_from_dates_in_names_or_from_times() -> None:
    reports = hb.Reports.from_counts(COIN, [30, 70])
    dates = hb.trend({"2026-01": reports, "2026-02": reports, "2026-04": reports})
    assert np.diff(dates.times).tolist() == [31.0, 59.0]
    given = hb.trend([("a", reports), ("b", reports)], times=[date(2026, 1, 1), date(2026, 1, 8)])
    assert np.diff(given.times).tolist() == [7.0]
    assert hb.trend({"early": reports, "late": reports}).times.tolist() == [0.0, 1.0]


def test_small_periods_are_joined_to_their_neighbours() -> None:
    sizes = {"2026-01-01": 5, "2026-01-02": 100, "2026-01-03": 60, "2026-01-04": 2}
    small = {name: hb.Reports.from_counts(COIN, [users, 0]) for name, users in sizes.items()}
    joined, notes = join_small_periods(small, 50)
    assert {name: own.users for name, own in joined.items()} == {
        "2026-01-01 to 2026-01-02": 105,
        "2026-01-03 to 2026-01-04": 62,
    }
    assert "2 periods joined" in notes[0]
    assert np.diff(hb.trend(joined).times).tolist() == [2.0]
    assert join_small_periods(small, 1) == (small, [])


REPORTS = hb.Reports.from_counts(COIN, [30, 70])
OTHER = hb.Reports.from_counts(hb.RandomizedResponse(LETTERS, 1.0), [1, 2, 3])


@pytest.mark.parametrize(
    ("given", "keywords", "message"),
    [
        ({"a": REPORTS}, {}, "there are not several periods"),
        ([REPORTS, REPORTS], {}, "there are not several periods"),
        ([("a", REPORTS), ("a", REPORTS)], {}, "two periods have the same name"),
        ({"a": REPORTS, "b": OTHER}, {}, "different domains"),
        ({"2026-02": REPORTS, "2026-01": REPORTS}, {}, "not in the order of time"),
        ({"a": REPORTS, "b": REPORTS}, {"times": [1.0]}, "not in the order of time"),
        ({"a": REPORTS, "b": REPORTS}, {"times": [2, 1]}, "not in the order of time"),
        ({"a": REPORTS, "b": REPORTS}, {"quantile": 0.5}, "these values have no order"),
        ({"a": REPORTS, "b": REPORTS}, {"of": "yes", "quantile": 0.5}, "one thing at a time"),
        ({"a": REPORTS, "b": REPORTS}, {"of": "maybe"}, "maybe"),
        ({"a": REPORTS, "b": REPORTS}, {"level": 1.5}, "level"),
    ],
)
def test_mistakes_are_explained(given: object, keywords: dict[str, object], message: str) -> None:
    with pytest.raises(hb.HubbubError, match=message) as caught:
        hb.trend(given, **keywords)  # type: ignore[arg-type]
    assert "remedy:" in str(caught.value)
