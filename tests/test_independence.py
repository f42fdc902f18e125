"""Whether two attributes are related: textbook tables, other solvers, simulations, and reports that cannot tell."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq, minimize

import hubbub as hb
from hubbub.association.attribute_pair import AttributePair
from hubbub.association.independence_test import Independent, independence_test
from hubbub.association.independent_fit import IndependentFit, independent_fit
from hubbub.association.score_simulation import output_tables
from hubbub.association.strength_interval import TiltedPath
from hubbub.association.strength_measures import cramers_v, mutual_information
from hubbub.cli import independence as independence_command
from hubbub.core.progress import finish
from hubbub.likelihood import Likelihood, Point
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.reports.attribute_reduction import about_attributes
from hubbub.solvers.maximum_likelihood import likeliest_point

Floats = NDArray[np.float64]
TEA, TOWN, AGE = hb.Categories(["yes", "no"]), hb.Categories(["a", "b", "c"]), hb.Integers(1, 4)
PARTS: dict[str, hb.Mechanism] = {
    "tea": hb.RandomizedResponse(TEA, epsilon=1.2),
    "town": hb.RandomizedResponse(TOWN, epsilon=1.5),
    "age": hb.TruncatedGeometric(AGE, epsilon=0.8),
}
DEPENDENT = np.array([[0.32, 0.1, 0.08], [0.05, 0.15, 0.3]])


def plain(names: str, epsilon: float) -> hb.Split:
    """Two attributes with two values each, hardly any noise if epsilon is large."""
    return hb.Split({name: hb.RandomizedResponse(TEA, epsilon=epsilon) for name in names})


def drawn(mechanism: hb.Mechanism, table: Floats, users: int, seed: int) -> hb.Reports:
    rng = np.random.default_rng([seed, 26])
    positions = rng.choice(table.size, size=users, p=table.ravel() / table.sum())
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(mechanism.domain.labels[positions], rng=rng))


def fitted(reports: hb.Reports, *names: str) -> tuple[AttributePair, Point, IndependentFit]:
    pair = AttributePair.of(reports, (names[0], names[1]), "here")
    top = likeliest_point(pair.likelihood, 1e-10)
    return pair, top, finish(independent_fit(pair.likelihood, [pair.margins(top.theta)]))


def p_value(reports: hb.Reports, seed: int, draws: int = 199) -> float:
    pair, top, fit = fitted(reports, "tea", "town")
    rng = np.random.default_rng([seed, 27])
    return finish(independence_test(pair, fit, top.log_likelihood, rng, draws))[0].p_value


# -- reports about some attributes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [hb.Split, hb.SampleOneWithFakes])
def test_other_attributes_are_summed_over(kind: type[SeveralAttributes]) -> None:
    whole = kind(PARTS)  # type: ignore[call-arg]
    domain = whole.domain.margin(["tea", "age"]).domain
    assert isinstance(domain, hb.Product)
    smaller = whole.about(domain)
    sides = whole.domain.sides
    matrix = whole.matrix().reshape(*sides, *sides)  # k-RR and truncated noise answer in the domain
    summed = matrix.sum(axis=4).mean(axis=1)  # over outputs for town; whatever the town is
    assert np.ptp(matrix.sum(axis=4), axis=1).max() < 1e-15
    np.testing.assert_allclose(smaller.matrix(), summed.reshape(8, 8), rtol=1e-12)


def test_one_at_random_is_one_of_those_that_are_left() -> None:
    one = hb.SampleOne(PARTS, probabilities={"tea": 0.5, "town": 0.25, "age": 0.25})
    domain = one.domain.margin(["tea", "age"]).domain
    assert isinstance(domain, hb.Product)
    assert dict(one.about(domain).probabilities) == {"tea": pytest.approx(2 / 3), "age": pytest.approx(1 / 3)}
    fakes = hb.SampleOneWithFakes(PARTS)
    left = fakes.about(domain)
    assert left.all_fake == pytest.approx(1 / 3)
    ratios = left.matrix()
    assert left.epsilon == pytest.approx(float(np.log(ratios.max(axis=0) / ratios.min(axis=0)).max()))


def test_reports_are_reduced_with_their_users_and_weights() -> None:
    both, domain = hb.Split(PARTS), hb.Product(tea=TEA, age=AGE)
    pair = hb.Split(domain, tea=PARTS["tea"], age=PARTS["age"])
    rows = [("yes", "a", 1), ("no", None, 2), (None, "b", None), ("yes", "c", 1), ("no", "b", None)]
    kept = [("yes", 1), ("no", 2), ("yes", 1), ("no", None)]
    weights = [1.0, 2.0, 5.0, 3.0, 4.0]
    reduced = about_attributes(hb.Reports.from_outputs(both, rows, weights=weights), ["tea", "age"], "here")
    assert reduced == hb.Reports.from_outputs(pair, kept, weights=[1.0, 2.0, 3.0, 4.0])
    users = [[(both, rows[0]), (both, rows[1])], [(both, rows[2])], [(both, rows[2]), (both, rows[3])]]
    several = about_attributes(hb.Reports.from_users(users), ["tea", "age"], "here")
    direct = hb.Reports.from_users([[(pair, kept[0]), (pair, kept[1])], [(pair, kept[2])]])
    theta = np.random.default_rng(1).dirichlet(np.ones(8))
    assert several.users == 2
    assert Likelihood.of(several).at(theta).log_likelihood == pytest.approx(
        Likelihood.of(direct).at(theta).log_likelihood
    )


@pytest.mark.parametrize("kind", [hb.Split, hb.SampleOne, hb.SampleOneWithFakes])
def test_simulated_outputs_have_the_probabilities_of_the_channel(kind: type[SeveralAttributes]) -> None:
    mechanism = kind({name: PARTS[name] for name in ("tea", "town")})  # type: ignore[call-arg]
    reports = drawn(mechanism, DEPENDENT, 500, 3)
    tables = output_tables(reports)
    assert tables is not None
    assert sum(table.users for table in tables) == 500
    columns = np.concatenate([table.probabilities for table in tables], axis=1)
    np.testing.assert_allclose(sum(table.probabilities.sum(axis=1) for table in tables), len(tables), rtol=1e-12)
    ours, theirs = (own / own.sum(axis=0) for own in (columns, reports.channel.dense()))
    assert all(np.abs(ours - own[:, None]).max(axis=0).min() < 1e-12 for own in theirs.T)


# -- textbook tables ---------------------------------------------------------------------------------------------------

COUNTS = np.array([[43, 9], [44, 4]])  # right- and left-handed men and women, a common example


def test_without_noise_it_is_the_textbook() -> None:
    reports = hb.Reports.from_counts(plain("xy", 30.0), COUNTS.ravel())
    result = hb.independence(reports, "x", "y", estimate=hb.estimate(reports, "mle"))
    users = COUNTS.sum()
    pearson = stats.chi2_contingency(COUNTS, correction=False)
    likelihood_ratio = stats.chi2_contingency(COUNTS, correction=False, lambda_="log-likelihood")
    assert result.cramers_v is not None
    assert result.mutual_information is not None
    assert result.odds_ratio is not None
    assert result.p_value is not None
    assert result.statistic == pytest.approx(pearson.statistic, rel=1e-6)
    assert result.deviance == pytest.approx(likelihood_ratio.statistic, rel=1e-6)
    assert result.cramers_v.estimate == pytest.approx(stats.contingency.association(COUNTS, "cramer"), rel=1e-6)
    assert result.mutual_information.estimate == pytest.approx(
        likelihood_ratio.statistic / (2 * users * math.log(2)), rel=1e-6
    )
    assert result.p_value == pytest.approx(pearson.pvalue, abs=0.03)  # 100 users: not yet chi-square
    assert result.odds_ratio.estimate == pytest.approx(43 * 4 / (9 * 44), rel=1e-6)
    assert (result.odds_ratio.low, result.odds_ratio.high) == pytest.approx(textbook_odds(COUNTS, 0.95), rel=1e-3)


def textbook_odds(counts: NDArray[np.int64], level: float) -> tuple[float, float]:
    """The profile likelihood interval of a 2 x 2 table: for a given odds ratio the fit keeps the margins."""
    (a, b), (c, d) = counts.tolist()
    flat, users = counts.ravel(), counts.sum()

    def deviance(log_ratio: float) -> float:
        ratio = math.exp(log_ratio)

        def excess(x: float) -> float:
            return float(x * (d - a + x) - ratio * (a + b - x) * (a + c - x))

        x = brentq(excess, max(0, a - d) + 1e-12, min(a + b, a + c) - 1e-12, xtol=1e-14)
        fit = np.array([x, a + b - x, a + c - x, d - a + x])
        return float(2.0 * flat @ np.log(flat / fit)) - float(stats.chi2.ppf(level, 1))

    assert users > 0
    top = math.log(a * d / (b * c))
    return math.exp(brentq(deviance, top - 8, top)), math.exp(brentq(deviance, top, top + 8))


def test_an_odds_ratio_without_an_end_has_none() -> None:
    reports = hb.Reports.from_counts(plain("xy", 30.0), [50, 0, 20, 30])
    odds = hb.independence(reports, "x", "y", estimate=hb.estimate(reports, "mle")).odds_ratio
    assert odds is not None
    assert math.isinf(odds.high)
    assert odds.low > 1.0
    assert json.loads(hb.independence(reports, "x", "y").to_json())["odds_ratio"]["high"] is None


def test_odds_of_chosen_values_in_a_larger_table() -> None:
    """Without noise the other values do not matter: the textbook interval of the four counts alone."""
    mechanism = hb.Split({name: hb.RandomizedResponse(TOWN, epsilon=30.0) for name in "xy"})
    counts = np.array([[30, 12, 25], [20, 25, 10], [15, 40, 8]])
    reports = hb.Reports.from_counts(mechanism, counts.ravel())
    result = hb.independence(reports, "y", "x", odds={"x": ("a", "c"), "y": ("b", "a")})
    assert result.odds_ratio is not None
    assert (result.odds_ratio.first, result.odds_ratio.second) == (("b", "a"), ("a", "c"))
    four = counts[np.ix_([0, 2], [1, 0])]
    low, high = textbook_odds(four, 0.95)
    assert (result.odds_ratio.low, result.odds_ratio.high) == pytest.approx((low, high), rel=1e-3)


# -- the fit and the test ----------------------------------------------------------------------------------------------


def test_the_independent_fit_is_what_another_solver_finds() -> None:
    mechanism = hb.Split(tea=PARTS["tea"], town=PARTS["town"], age=PARTS["age"])
    reports = hb.Reports.from_outputs(
        mechanism, mechanism.privatize([("yes", "a", 1), ("no", "c", 4), ("yes", "b", 2)] * 60, rng=2)
    )
    pair, top, fit = fitted(reports, "town", "age")
    likelihood = pair.likelihood

    def cost(parameters: Floats) -> float:
        first, second = (np.exp(own - np.logaddexp.reduce(own)) for own in np.split(parameters, [3]))
        return -likelihood.at(np.outer(first, second).ravel()).log_likelihood

    found = min((minimize(cost, start, method="BFGS") for start in np.eye(2, 7)), key=lambda own: own.fun)
    assert fit.gap < 1e-6
    assert fit.point.log_likelihood == pytest.approx(-found.fun, abs=1e-4)
    assert fit.point.log_likelihood >= -found.fun - 1e-6
    assert fit.point.log_likelihood <= top.log_likelihood


def uniformity(p_values: list[float]) -> float:
    return float(stats.kstest(p_values, "uniform").pvalue)


@pytest.mark.slow
def test_p_values_are_even_under_independence_and_small_otherwise() -> None:
    """At level 1e-4, with a planted dependence that the same check must find."""
    mechanism = hb.Split({name: PARTS[name] for name in ("tea", "town")})
    table = np.outer([0.3, 0.7], [0.5, 0.45, 0.05])
    assert uniformity([p_value(drawn(mechanism, table, 600, seed), seed) for seed in range(60)]) > 1e-4
    assert uniformity([p_value(drawn(mechanism, DEPENDENT, 600, seed), seed) for seed in range(25)]) < 1e-4


def test_other_mechanisms_and_mixtures_are_tested() -> None:
    """A joint mechanism, bits, and users who differ in what they sent: dependence is found in each."""
    product = hb.Product(tea=TEA, town=TOWN)
    joint = hb.RandomizedResponse(product, epsilon=2.0)
    split = hb.Split(tea=hb.Rappor(TEA, epsilon=3.0), town=PARTS["town"])
    one = hb.SampleOne({name: PARTS[name] for name in ("tea", "town")})
    mixed = drawn(split, DEPENDENT, 1500, 1) + drawn(one, DEPENDENT, 200, 2)
    for reports in (drawn(joint, DEPENDENT, 1500, 3), mixed):
        assert p_value(reports, 1) < 0.01


def test_equal_weights_change_nothing() -> None:
    mechanism = hb.Split({name: PARTS[name] for name in ("tea", "town")})
    outputs = mechanism.privatize([("yes", "a"), ("no", "b"), ("no", "c"), ("yes", "b")] * 100, rng=3)
    sample = []
    for weights in (None, np.full(400, 2.5)):
        reports = hb.Reports.from_outputs(mechanism, outputs, weights=weights)
        pair, top, fit = fitted(reports, "tea", "town")
        test, _ = finish(independence_test(pair, fit, top.log_likelihood, np.random.default_rng(1), 999))
        sample.append((test.deviance, test.statistic, test.p_value))
    (deviance, statistic, p_plain), (weighted_deviance, weighted_statistic, p_weighted) = sample
    assert weighted_deviance == pytest.approx(deviance, rel=1e-6)
    assert weighted_statistic == pytest.approx(statistic, rel=0.05)  # the observed information, not the expected one
    assert p_weighted == pytest.approx(p_plain, abs=0.05)


# -- when reports cannot tell ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [hb.SampleOne, hb.SampleOneWithFakes])
def test_reports_that_depend_on_marginals_alone_cannot_tell(kind: type[SeveralAttributes]) -> None:
    one = kind(PARTS)  # type: ignore[call-arg]
    outputs = one.privatize([("yes", "a", 1), ("no", "c", 4)] * 200, rng=1)
    result = hb.independence(hb.Reports.from_outputs(one, outputs), "tea", "town")
    assert not result.testable
    assert (result.p_value, result.cramers_v, result.odds_ratio) == (None, None, None)
    assert "cannot tell whether tea and town are related" in result.explain()
    assert json.loads(result.to_json())["testable"] is False
    assert "cannot tell" in result._repr_html_()
    with pytest.raises(hb.EstimateError, match="nothing to draw"):
        result.plot()
    assert result.to_frame()["share"].isna().all()


def test_a_few_users_who_report_both_make_it_testable() -> None:
    pair = {name: PARTS[name] for name in ("tea", "town")}
    one = hb.SampleOne(pair)
    alone = hb.Reports.from_outputs(one, one.privatize([("yes", "a"), ("no", "c")] * 100, rng=1))
    both = hb.Split(pair)
    some = alone + hb.Reports.from_outputs(both, both.privatize([("yes", "a"), ("no", "c")] * 10, rng=1))
    assert hb.independence(some, "tea", "town", estimate=hb.estimate(some, "mle")).testable
    missing = hb.Reports.from_outputs(both, [("yes", None), (None, "a"), ("no", None)])
    assert not hb.independence(missing, "tea", "town").testable


def test_impossible_combinations_are_a_dependence_that_needs_no_test() -> None:
    product = hb.Product(tea=TEA, town=TOWN, impossible=[{"tea": "yes", "town": "b"}])
    both = hb.Split(product, **{name: PARTS[name] for name in ("tea", "town")})
    reports = hb.Reports.from_outputs(both, both.privatize([("yes", "a"), ("no", "b")] * 20, rng=1))
    assert "impossible" in hb.independence(reports, "tea", "town").reason


def test_the_terminal_shows_bins_by_their_ends(capsys: pytest.CaptureFixture[str]) -> None:
    parts = {"age": hb.RandomizedResponse(hb.Bins([18, 40, 65]), 3.0), "tea": PARTS["tea"]}
    outputs = [(0, "yes"), (1, "no"), (1, "yes")] * 40
    independence_command._show(hb.independence(hb.Reports.from_outputs(hb.Split(parts), outputs), "age", "tea"))
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.split("│")[1:3]] for line in lines if line.startswith("│")]
    ends = [parts["age"].domain.title(place) for place in range(2)]
    assert rows == [[end, tea] for end in ends for tea in PARTS["tea"].domain.labels.tolist()]
    assert "40" in ends[0]


# -- the result --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("table", "rejected"), [(DEPENDENT, True), (np.outer([0.4, 0.6], [0.5, 0.3, 0.2]), False)])
def test_one_answer_in_words_numbers_and_pictures(table: Floats, rejected: bool) -> None:
    mechanism = hb.Split({name: PARTS[name] for name in ("tea", "town")})
    reports = drawn(mechanism, table, 1200, 4)
    estimate = hb.estimate(reports, "mle")
    result = hb.independence(reports, "tea", "town", estimate=estimate)
    assert result.p_value is not None
    assert result.cramers_v is not None
    assert result.mutual_information is not None
    assert result.related is rejected
    assert (result.cramers_v.low > 0.0) is rejected
    for measure, own in ((cramers_v, result.cramers_v), (mutual_information, result.mutual_information)):
        assert own.estimate == pytest.approx(measure(estimate.crosstab("tea", "town").to_numpy()))
        assert own.low <= own.estimate <= own.high
        assert own.low - 1e-9 <= measure(table) <= own.high
    text = result.explain()
    assert ("are related" in text) is rejected
    assert "independent" not in text
    if not rejected:
        assert f"up to {result.cramers_v.high:.3g} could go unnoticed" in text
    assert str(result) == text
    assert json.loads(result.to_json())["text"] == text
    frame = result.to_frame()
    assert list(frame) == ["tea", "town", "share", "independent", "difference"]
    np.testing.assert_allclose(frame["difference"].sum(), 0.0, atol=1e-12)
    assert result.plot().get_xlabel() == "town"
    assert "Cramer&#x27;s V" in result._repr_html_()
    other = hb.independence(reports, "town", "tea", estimate=estimate)
    assert (other.p_value, other.cramers_v) == (result.p_value, result.cramers_v)
    np.testing.assert_array_equal(other.table, result.table.T)


def test_other_attributes_do_not_change_the_test() -> None:
    three, two = hb.Split(PARTS), hb.Split({name: PARTS[name] for name in ("tea", "age")})
    outputs = three.privatize([("yes", "a", 1), ("no", "c", 4), ("no", "a", 2)] * 60, rng=2)
    pairs = [(tea, age) for tea, _, age in outputs.tolist()]
    whole, reports = hb.Reports.from_outputs(three, outputs), hb.Reports.from_outputs(two, pairs)
    results = [hb.independence(own, "tea", "age", estimate=hb.estimate(own, "mle"), rng=5) for own in (whole, reports)]
    assert results[0].p_value == results[1].p_value
    assert results[0].statistic == results[1].statistic
    swapped = hb.independence(whole, "age", "tea", estimate=hb.estimate(whole, "mle"), rng=5)
    assert swapped.p_value == results[0].p_value


def test_the_path_of_strengths_keeps_marginals_and_grows() -> None:
    first, second = np.array([0.5, 0.0, 0.3, 0.2]), np.array([0.6, 0.3, 0.1])
    noise = np.random.default_rng(3).normal(size=(4, 3))
    path = TiltedPath(first, second, np.maximum(np.outer(first, second) * (1 + 0.3 * noise), 0.0))
    tables = [path.at(tilt) for tilt in (0.0, 0.5, 2.0, 8.0)]
    for table in tables:
        np.testing.assert_allclose(table.sum(axis=1), first, atol=1e-8)
        np.testing.assert_allclose(table.sum(axis=0), second, atol=1e-8)
    np.testing.assert_allclose(tables[0], np.outer(first, second), atol=1e-12)
    strengths = [mutual_information(table) for table in tables]
    assert strengths == sorted(strengths)


def test_doubtful_shares_are_simulated_as_nothing() -> None:
    """A town where nobody lives is estimated to have a few people half of the time; simulations leave it out."""
    mechanism = hb.Split({name: PARTS[name] for name in ("tea", "town")})
    table = np.outer([0.4, 0.6], [0.6, 0.4, 0.0])
    empty = []
    for seed in range(8):
        pair, _, fit = fitted(drawn(mechanism, table, 800, seed), "tea", "town")
        empty.append(Independent.of(pair, fit, np.random.default_rng(1), 99).second[2] == 0.0)
    assert sum(empty) >= 6  # all but the rarest: a share of more than its standard errors is kept
