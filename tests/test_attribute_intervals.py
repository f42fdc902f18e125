"""Intervals about several attributes: slices, conditional shares, margins, moments and correlation."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import xlogy
from scipy.stats import chi2

import hubbub as hb
from hubbub.intervals.conditional_shares import ConditionalShare
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.intervals.linear_statistic import parse_statistic
from hubbub.intervals.moment_statistics import Correlation, Variance
from hubbub.intervals.smooth_statistics import SmoothStatistic

Floats = NDArray[np.float64]
AGE, SEX = hb.Integers(1, 4), hb.Categories(["f", "m"])
PEOPLE = hb.Product(age=AGE, sex=SEX)
TRUTH = np.array([0.1, 0.2, 0.05, 0.15, 0.25, 0.05, 0.1, 0.1])
ROOMS = hb.Product(rooms=hb.Integers(1, 3), people=hb.Bins([0, 1, 2, 4, 8]))


def split(product: hb.Product, epsilon: float, kind: type = hb.Split) -> hb.Mechanism:
    parts = {name: hb.RandomizedResponse(own, epsilon) for name, own in product.attributes.items()}
    mechanism: hb.Mechanism = kind(**parts)
    return mechanism


def drawn(mechanism: hb.Mechanism, truth: Floats, users: int, seed: int = 1, **more: object) -> hb.Reports:
    rng = np.random.default_rng(seed)
    values = mechanism.domain.labels[rng.choice(truth.size, size=users, p=truth)]
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng), **more)  # type: ignore[arg-type]


REPORTS = drawn(split(PEOPLE, 2.0), TRUTH, 3_000)
LIKELIEST = hb.estimate(REPORTS, "mle")
HOMES = drawn(split(ROOMS, 2.0), np.array([6, 3, 1, 1, 2, 5, 2, 1, 0, 1, 4, 6]) / 32.0, 3_000, seed=2)


# -- against other ways to compute them ----------------------------------------------------------------------------


def profile_deviance(reports: hb.Reports, held: Floats) -> float:
    """Return the deviance of the likeliest distribution with `held` @ theta = 0, by a conic solver."""
    import cvxpy as cp

    block = reports.blocks[0]
    matrix = np.exp(block.mechanism.encoded_channel(block.codes, None).log_dense())  # type: ignore[union-attr]
    values = []
    for conditions in ([], [held]):
        theta = cp.Variable(len(reports.domain), nonneg=True)
        fitted = reports.weights @ cp.log(matrix.T @ theta)
        problem = cp.Problem(cp.Maximize(fitted), [cp.sum(theta) == 1, *(row @ theta == 0 for row in conditions)])
        values.append(float(problem.solve(solver=cp.CLARABEL)))
    return 2.0 * (values[0] - values[1])


@pytest.mark.parametrize(
    ("of", "given"),
    [
        ({"age": 1}, {"sex": "f"}),
        ({"age": [2, 3]}, {"sex": "m"}),
        ({"sex": "f"}, {"age": [3, 4]}),
        ({"age": {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}}, {"sex": "f"}),
    ],
)
def test_a_conditional_share_ends_where_its_profile_deviance_is_the_cutoff(
    of: dict[str, object], given: dict[str, object]
) -> None:
    found = hb.interval(REPORTS, of, given=given, estimate=LIKELIEST)
    among = PEOPLE.having(given).astype(float)
    numbers = np.array([age for age, _ in PEOPLE.labels.tolist()], dtype=float)
    weights = numbers if isinstance(of.get("age"), dict) else PEOPLE.having(of).astype(float)
    assert found.cutoffs is not None
    for end, cutoff in zip((found.low, found.high), found.cutoffs, strict=True):
        deviance = profile_deviance(REPORTS, (weights - end) * among)
        assert cutoff * 0.999 <= deviance <= cutoff * 1.02  # outer limits, by two thousandths of the width


def test_without_noise_a_conditional_share_is_a_binomial_one() -> None:
    plain = split(PEOPLE, 25.0)
    reports = drawn(plain, TRUTH, 2_000)
    outputs = {tuple(label): 0.0 for label in PEOPLE.labels.tolist()}
    codes = reports.blocks[0].mechanism.output_space.decode(reports.blocks[0].codes)  # type: ignore[union-attr]
    for output, weight in zip(codes, reports.weights, strict=True):
        outputs[tuple(output)] = float(weight)
    women = sum(count for (_, sex), count in outputs.items() if sex == "f")
    young = outputs[1, "f"]

    def deviance(share: float) -> float:
        logs = xlogy(young, share) + xlogy(women - young, 1.0 - share)
        best = xlogy(young, young / women) + xlogy(women - young, 1.0 - young / women)
        return float(2.0 * (best - logs) - chi2.ppf(0.95, 1))

    found = hb.interval(reports, {"age": 1}, given={"sex": "f"}, estimate=hb.estimate(reports, "mle"))
    ends = brentq(deviance, 1e-9, young / women), brentq(deviance, young / women, 1.0 - 1e-9)
    assert found.cutoffs == pytest.approx((chi2.ppf(0.95, 1),) * 2)
    width = ends[1] - ends[0]
    assert found.low == pytest.approx(ends[0], abs=2e-3 * width)
    assert found.high == pytest.approx(ends[1], abs=2e-3 * width)
    assert found.estimate == pytest.approx(young / women, abs=1e-6)
    # The delta method's standard error is the binomial one.
    assert found.standard_error == pytest.approx(np.sqrt(young / women * (1 - young / women) / women), rel=1e-3)


def statistics_of_homes() -> list[SmoothStatistic]:
    rooms, people = (ROOMS.margin([name]) for name in ("rooms", "people"))
    numbers = [np.asarray(own.domain.places[own.places]) for own in (rooms, people)]  # type: ignore[index]
    group = ROOMS.having({"rooms": [2, 3]}).astype(float)
    return [
        ConditionalShare(numbers[1], group, "a mean"),
        Variance(numbers[1], None, "a variance"),
        Variance(numbers[1], group, "a variance in a group"),
        Correlation(*numbers, None, "a correlation"),
        Correlation(*numbers, group, "a correlation in a group"),
    ]


@pytest.mark.parametrize("statistic", statistics_of_homes(), ids=lambda statistic: statistic.title)
def test_gradients_are_derivatives(statistic: SmoothStatistic) -> None:
    theta = np.random.default_rng(3).dirichlet(np.ones(12))
    direction = np.random.default_rng(4).normal(size=12)
    direction -= direction.mean()
    step = 1e-6 * direction
    slope = (statistic.value(theta + step) - statistic.value(theta - step)) / 2e-6
    assert float(statistic.gradient(theta) @ direction) == pytest.approx(slope, rel=1e-6)
    assert statistic.lowest <= statistic.value(theta) <= statistic.highest


def test_the_variance_has_the_ends_of_its_minimax_form() -> None:
    region = LikelihoodRegion.of(HOMES)
    numbers = np.tile([0.5, 1.5, 3.0, 6.0], 3)
    found = hb.moments(HOMES, "people", estimate=hb.estimate(HOMES, "mle")).standard_deviation
    assert found.cutoffs is not None

    def largest(centre: float) -> float:
        return -region.least(-((numbers - centre) ** 2), found.cutoffs[1]).limit  # type: ignore[index]

    def least(centre: float) -> float:
        return region.least((numbers - centre) ** 2, found.cutoffs[0]).limit  # type: ignore[index]

    high = minimize_scalar(largest, bounds=(0.5, 6.0), method="bounded", options={"xatol": 1e-4}).fun
    low = min(least(centre) for centre in np.linspace(1.5, 4.5, 61))
    width = np.sqrt(high) - np.sqrt(low)
    assert found.high == pytest.approx(np.sqrt(high), abs=4e-3 * width)
    assert found.low == pytest.approx(np.sqrt(low), abs=4e-3 * width)


def test_no_likely_distribution_found_by_chance_is_beyond_the_ends() -> None:
    found = hb.correlation(HOMES, "rooms", "people", estimate=hb.estimate(HOMES, "mle"))
    region, statistic = LikelihoodRegion.of(HOMES), statistics_of_homes()[3]
    assert found.cutoffs is not None
    rng = np.random.default_rng(5)
    reached = [
        statistic.value(region.least(slope, min(found.cutoffs)).theta)
        for slope in statistic.gradient(region.top.theta) + 0.3 * rng.normal(size=(40, 12))
    ]
    reached += [
        statistic.value(region.least(-slope, min(found.cutoffs)).theta)
        for slope in statistic.gradient(region.top.theta) + 0.3 * rng.normal(size=(40, 12))
    ]
    slack = 3e-3 * (found.high - found.low)
    assert found.low - slack <= min(reached) < found.low + 0.3 * (found.high - found.low)
    assert found.high + slack >= max(reached) > found.high - 0.3 * (found.high - found.low)


def test_what_one_attribute_of_each_user_cannot_tell_is_wide() -> None:
    """Reports of one attribute each fit every coupling of their margins, comonotone ones included."""
    reports = drawn(split(ROOMS, 3.0, hb.SampleOne), np.full(12, 1.0 / 12.0), 4_000)
    likeliest = hb.estimate(reports, "mle")
    rooms, people = (likeliest.marginal(name).probabilities for name in ("rooms", "people"))
    found = hb.correlation(reports, "rooms", "people", estimate=likeliest)
    for order in (1, -1):  # the largest and the least correlation with these margins
        cuts = np.unique(np.concatenate([np.cumsum(rooms), np.cumsum(people[::order])]).round(12))
        middles, masses = (cuts + np.r_[0.0, cuts[:-1]]) / 2.0, np.diff(np.r_[0.0, cuts])
        up = np.minimum(np.searchsorted(np.cumsum(rooms), middles), 2)
        along = np.minimum(np.searchsorted(np.cumsum(people[::order]), middles), 3)
        coupled = np.zeros((3, 4))
        np.add.at(coupled, (up, along if order == 1 else 3 - along), masses)
        extreme = statistics_of_homes()[3].value(coupled.ravel())
        assert found.low <= extreme <= found.high
    share = hb.interval(reports, {"rooms": 1}, given={"people": 3}, estimate=likeliest)
    assert (share.low, share.high) == (0.0, 1.0)


# -- the same thing, asked in other ways ---------------------------------------------------------------------------


def ends(found: hb.Interval) -> tuple[float, ...]:
    return found.low, found.estimate, found.high, found.standard_error


def test_a_slice_is_the_set_of_its_combinations() -> None:
    by_name = hb.interval(REPORTS, {"sex": "f", "age": [1, 2]}, estimate=LIKELIEST)
    assert ends(by_name) == ends(hb.interval(REPORTS, [(1, "f"), (2, "f")], estimate=LIKELIEST))
    assert ends(by_name) == ends(hb.interval(REPORTS, {(1, "f"): 1.0, (2, "f"): 1.0}, estimate=LIKELIEST))
    assert by_name.of == "sex f, age 1 or 2"
    one = hb.interval(REPORTS, {"sex": "f", "age": 1}, estimate=LIKELIEST)
    assert ends(one) == ends(hb.interval(REPORTS, (1, "f"), estimate=LIKELIEST))


def test_weights_of_an_attribute_are_its_mean() -> None:
    mean = hb.interval(REPORTS, {"age": {age: float(age) for age in range(1, 5)}}, estimate=LIKELIEST)
    assert ends(mean) == ends(hb.moments(REPORTS, "age", estimate=LIKELIEST).mean)
    of_women = hb.moments(REPORTS, "age", given={"sex": "f"}, estimate=LIKELIEST).mean
    assert of_women.estimate == pytest.approx(
        np.arange(1, 5) @ LIKELIEST.conditional("age", given={"sex": "f"}).probabilities
    )


def test_bands_are_intervals_of_each_value() -> None:
    ages = hb.band(REPORTS, of="age", estimate=LIKELIEST)
    assert ages.domain == AGE
    np.testing.assert_allclose(ages.estimate, LIKELIEST.marginal("age").probabilities)
    assert (ages.low[1], ages.high[1]) == pytest.approx(ends(hb.interval(REPORTS, {"age": 2}, estimate=LIKELIEST))[::2])
    women = hb.band(REPORTS, of="age", given={"sex": "f"}, values=[2, 3], estimate=LIKELIEST)
    own = hb.interval(REPORTS, {"age": 3}, given={"sex": "f"}, estimate=LIKELIEST)
    assert (women.low[2], women.high[2]) == pytest.approx((own.low, own.high))
    assert np.isnan(women.low[[0, 3]]).all()
    np.testing.assert_allclose(women.estimate, LIKELIEST.conditional("age", given={"sex": "f"}).probabilities)
    same = hb.band(REPORTS, given={"sex": "f"}, values=[2, 3], estimate=LIKELIEST)
    np.testing.assert_array_equal(same.low, women.low)
    together = hb.band(REPORTS, of="age", simultaneous=True, estimate=LIKELIEST)
    assert (together.low < ages.low).all()
    assert (together.high > ages.high).all()
    assert "all 4 values at once" in together.note
    assert LIKELIEST.intervals is None  # those of an attribute are not the joint estimate's


def test_frames_have_a_column_for_each_attribute() -> None:
    estimate = hb.estimate(REPORTS, "mle")
    frame = hb.band(REPORTS, estimate=estimate).to_frame()
    assert list(frame)[:2] == ["age", "sex"]
    assert list(frame["sex"][:2]) == ["f", "m"]
    assert list(estimate.to_frame()) == ["age", "sex", "probability", "low", "high", "standard_error"]
    assert "value" in hb.band(REPORTS, of="age", values=[1], estimate=LIKELIEST).to_frame()


def test_quantiles_of_an_attribute_follow_from_its_distribution_function() -> None:
    median = hb.quantile(REPORTS, 0.5, of="age", given={"sex": "m"}, estimate=LIKELIEST)
    for age in range(1, 5):
        share = hb.interval(REPORTS, {"age": range(1, age + 1)}, given={"sex": "m"}, estimate=LIKELIEST)
        assert (share.high >= 0.5) == (age >= median.confidence_low)
        assert (share.low >= 0.5) == (age >= median.confidence_high)
    assert str(median).startswith("50% of those with sex m have age at most")
    plain = hb.quantile(REPORTS, 0.3, of="age", estimate=LIKELIEST)
    assert plain.estimate == 1 + int(np.searchsorted(np.cumsum(LIKELIEST.marginal("age").probabilities), 0.3))


def test_numbers_without_attributes_have_moments() -> None:
    children = hb.RandomizedResponse(hb.Integers(0, 3), epsilon=3.0)
    reports = hb.Reports.from_counts(children, [200, 300, 400, 100])
    numbers, estimate = hb.moments(reports), hb.estimate(reports)
    mean = float(estimate.probabilities @ np.arange(4))
    assert numbers.mean.estimate == pytest.approx(mean)
    deviation = numbers.standard_deviation
    assert deviation.estimate == pytest.approx(np.sqrt(estimate.probabilities @ (np.arange(4) - mean) ** 2))
    assert deviation.low < deviation.estimate < deviation.high
    assert str(numbers).count("at 95%") == 2


# -- borders, weights, fakes -----------------------------------------------------------------------------------------


def test_where_nobody_may_have_the_given_values_everything_is_possible() -> None:
    truth = np.array([0.3, 0.2, 0.3, 0.2, 0.0, 0.0, 0.0, 0.0])
    reports = drawn(split(PEOPLE, 0.7), truth, 300, seed=4)
    even = hb.estimate(reports, "ibu", max_iter=1)  # gives everybody a share
    found = hb.interval(reports, {"sex": "f"}, given={"age": 4}, estimate=even)
    assert (found.low, found.high) == (0.0, 1.0)
    assert "do not show that anybody has the given values" in found.note
    spread = hb.moments(reports, "age", given={"age": [3, 4]}, estimate=even).standard_deviation
    assert (spread.low, spread.high) == (0.0, 0.5)
    known = hb.interval(reports, {"age": 4}, given={"age": 4}, estimate=even)
    assert (known.low, known.high, known.note) == (1.0, 1.0, "It is known.")


def test_nobody_in_the_estimate_is_told() -> None:
    young = replace(LIKELIEST, probabilities=np.array([0.25, 0.25, 0.25, 0.25, 0.0, 0.0, 0.0, 0.0]))
    with pytest.raises(hb.EstimateError, match="nobody is estimated") as caught:
        hb.interval(REPORTS, {"sex": "f"}, given={"age": 4}, estimate=young)
    assert caught.value.where == "interval(given=)"


def test_weights_widen_conditional_shares() -> None:
    weights = np.exp(np.random.default_rng(8).normal(0.0, 0.8, 1_000))
    plain, weighted = (drawn(split(PEOPLE, 2.0), TRUTH, 1_000, **more) for more in ({}, {"weights": weights}))
    widths = []
    for reports in (plain, weighted):
        found = hb.interval(reports, {"age": 3}, given={"sex": "f"}, estimate=hb.estimate(reports, "mle"))
        assert found.low < found.estimate < found.high
        widths.append(found.high - found.low)
    assert widths[1] > 1.15 * widths[0]  # the effective number of users is about half
    with pytest.raises(hb.EstimateError, match="weights"):
        hb.interval(weighted, {"age": 3}, given={"sex": "f"}, method="bootstrap")


def test_the_bootstrap_takes_slices_and_conditional_shares() -> None:
    keywords = {"method": "bootstrap", "estimator": "mle", "runs": 60, "rng": 1}
    for of, given in itertools.product([{"age": 3}], [None, {"sex": "f"}]):
        found = hb.interval(REPORTS, of, given=given, **keywords)  # type: ignore[arg-type]
        profile = hb.interval(REPORTS, of, given=given, estimate=LIKELIEST)
        assert found.estimate == pytest.approx(profile.estimate, abs=1e-4)
        assert found.high - found.low == pytest.approx(profile.high - profile.low, rel=0.4)


def test_simultaneous_and_fakes_widen() -> None:
    plain = hb.interval(REPORTS, {"sex": "f"}, estimate=LIKELIEST)
    fakes = hb.interval(REPORTS, {"sex": "f"}, estimate=LIKELIEST, fakes=0.01)
    assert fakes.low < plain.low < plain.high < fakes.high
    of, given = {"age": 3}, {"sex": "f"}
    alone, together = (
        hb.interval(REPORTS, of, given=given, estimate=LIKELIEST, simultaneous=simultaneous)
        for simultaneous in (False, True)
    )
    assert together.cutoffs == pytest.approx((chi2.ppf(0.95, 7),) * 2)
    assert together.low < alone.low < alone.high < together.high


# -- mistakes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "message", "where"),
    [
        (lambda: hb.interval(REPORTS, {"sexx": "f"}), "no such attribute", "interval(of)"),
        (lambda: hb.interval(REPORTS, {"sex": "x"}), "not in the domain", "interval(of), attribute sex"),
        (lambda: hb.interval(REPORTS, {"sex": []}), "empty", "interval(of), attribute sex"),
        (lambda: hb.interval(REPORTS, {"age": {1: "much"}}), "weight", "interval(of), value 1"),
        (lambda: hb.interval(REPORTS, {"sex": "f"}, given={}), "not named", "interval(given=)"),
        (lambda: hb.interval(REPORTS, {"sex": "f"}, given="f"), "not named", "interval(given=)"),
        (lambda: hb.interval(REPORTS, {"sex": "f"}, given={"town": 1}), "no such attribute", "interval(given=)"),
        (
            lambda: hb.interval(REPORTS, {"sex": "f"}, given={"age": {1: 1}}),
            "weights",
            "interval(given=), attribute age",
        ),
        (lambda: hb.interval(REPORTS, {"age": 1}, given={"sex": "f"}, fakes=0.1), "fakes", "interval(given=, fakes=)"),
        (lambda: hb.band(REPORTS, of="age", given={"sex": "f"}, fakes=0.1), "fakes", "band(given=, fakes=)"),
        (lambda: hb.band(REPORTS, of=3), "name attributes", "band(of=)"),  # type: ignore[arg-type]
        (lambda: hb.band(REPORTS, of="agee"), "no such attribute", "band(of=)"),
        (lambda: hb.band(REPORTS, of=("age", "age")), "twice", "band(of=)"),
        (lambda: hb.band(REPORTS, given={"age": 1, "sex": "f"}), "every attribute", "band(given=)"),
        (lambda: hb.band(REPORTS, of="age", values=[7]), "not in the domain", "values, position 0"),
        (lambda: hb.quantile(REPORTS, 0.5), "no order", "quantile(reports)"),
        (lambda: hb.quantile(REPORTS, 0.5, of="sex"), "no order", "quantile(of=)"),
        (lambda: hb.moments(REPORTS), "no order", "moments(reports)"),
        (lambda: hb.moments(REPORTS, ["age"]), "must name an attribute", "moments(of=)"),  # type: ignore[arg-type]
        (lambda: hb.moments(REPORTS, "age", estimate=7), "does not belong", "moments(estimate=)"),  # type: ignore[arg-type]
        (lambda: hb.correlation(REPORTS, "age", "sex"), "no order", "correlation(second=)"),
        (lambda: hb.correlation(REPORTS, "age", "age"), "the same", "correlation(first, second)"),
        (lambda: hb.correlation(REPORTS, None, "age"), "first", "correlation(first=)"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_are_told(ask: Callable[[], object], message: str, where: str) -> None:
    with pytest.raises(hb.HubbubError, match=message) as caught:
        ask()
    assert caught.value.where == where
    assert all([caught.value.got, caught.value.expected, caught.value.remedy])


def test_one_attribute_has_neither_slices_nor_groups() -> None:
    reports = hb.Reports.from_counts(hb.RandomizedResponse(SEX, 1.0), [60, 40])
    for ask in (
        lambda: hb.interval(reports, "f", given={"sex": "f"}),
        lambda: hb.band(reports, of="sex"),
        lambda: hb.moments(reports, "sex"),
        lambda: hb.correlation(reports, "sex", "age"),
    ):
        with pytest.raises(hb.SettingError, match="not combinations"):
            ask()


def test_impossible_slices_are_told() -> None:
    product = hb.Product(age=AGE, sex=SEX, impossible=[{"age": [1, 2], "sex": "m"}])
    with pytest.raises(hb.SettingError, match="no combination has these values"):
        parse_statistic(product, {"age": 1, "sex": "m"})
