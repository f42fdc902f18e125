"""Intervals of tables with more than 100 combinations: one number on every surface, and the solvers behind it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub import attribute_shares as tables
from hubbub.attribute_shares import AttributeShares, attribute_shares
from hubbub.core import compiling
from hubbub.core.progress import finish
from hubbub.exporting.json_documents import marginals_document
from hubbub.intervals import deviance_cutoff, interval_endpoints
from hubbub.intervals.attribute_statistics import every_value
from hubbub.intervals.deviance_cutoff import information_per_user
from hubbub.intervals.interval_endpoints import LikelihoodRegion
from hubbub.intervals.set_intervals import SetShares, set_shares
from hubbub.likelihood import Likelihood
from hubbub.solvers import deviance_programs, likeliest_point
from hubbub.solvers.boundary_deviance import ConePrograms
from hubbub.solvers.deviance_programs import DeviancePrograms, SeparatePrograms, programs_around
from hubbub.solvers.local_extremes import LocalRegion

Floats = NDArray[np.float64]
LEVEL = 0.95
PEOPLE = hb.Product(age=hb.Integers(1, 34), sex=hb.Categories(["f", "m", "x"]))  # 102 combinations
FEW_DRAWS = 99  # decide cutoffs here: what is compared does not depend on how many there are


@cache
def study(users: int = 20_000) -> hb.Reports:
    """Return reports about two attributes that depend on each other, with many rare combinations."""
    rng = np.random.default_rng(7)
    classes = [np.outer(rng.dirichlet(np.full(34, 0.3)), rng.dirichlet(np.full(3, 0.7))) for _ in range(4)]
    truth = np.mean(classes, axis=0).ravel()
    split = hb.Split({name: hb.RandomizedResponse(own, 3.0) for name, own in PEOPLE.attributes.items()})
    values = PEOPLE.labels[rng.choice(truth.size, users, p=truth)]
    return hb.Reports.from_outputs(split, split.privatize(values, rng=rng))


@pytest.fixture
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deviance_cutoff, "MIN_DRAWS", FEW_DRAWS)
    monkeypatch.setattr(deviance_cutoff, "MIN_DRAWS_BEYOND_CUTOFF", 1)
    monkeypatch.setattr(interval_endpoints, "COARSE_DRAWS", FEW_DRAWS)


# -- one number for one thing ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_few_draws")
def test_page_terminal_band_and_interval_agree() -> None:
    """Marginal and conditional shares of single values and of groups of values, whoever asks, and with whom."""
    reports = study()
    estimate = hb.estimate(reports, "mle")
    linear = set_shares(reports, estimate.probabilities)
    assert isinstance(linear, SetShares)
    page = attribute_shares(estimate, reports, LEVEL, linear=linear)
    assert page.notes == ()
    terminal = attribute_shares(estimate, reports, LEVEL, conditionals=False)
    document = {own["attribute"]: own["shares"] for own in marginals_document(estimate, terminal)}
    band = hb.band(reports, LEVEL, of="sex", estimate=estimate)
    for number, label in enumerate(["f", "m", "x"]):
        own = hb.interval(reports, {"sex": label}, LEVEL, estimate=estimate)
        shown = document["sex"][number]
        for found in (
            (band.low[number], band.high[number]),
            (page.marginals["sex"].low[number], page.marginals["sex"].high[number]),
            (shown["low"], shown["high"]),
        ):
            assert found == pytest.approx((own.low, own.high), abs=1e-6)
        assert own.low <= own.estimate <= own.high
    given = page.conditionals["sex", "age"]
    for place in (0, len(given) - 1):
        group = PEOPLE.attributes["age"].labels[page.groups["age"][place].positions].tolist()
        among = hb.band(reports, LEVEL, of="sex", given={"age": group}, estimate=estimate)
        np.testing.assert_allclose(given[place].low, among.low, atol=1e-6)
        np.testing.assert_allclose(given[place].high, among.high, atol=1e-6)
        one = hb.interval(reports, {"age": group}, LEVEL, estimate=estimate)
        ages = page.marginals["age"]
        assert (ages.low[place], ages.high[place]) == pytest.approx((one.low, one.high), abs=1e-6)
    every = [*page.marginals.values(), *(own for rows in page.conditionals.values() for own in rows)]
    for shares in every:
        assert ((shares.low <= shares.estimate) & (shares.estimate <= shares.high)).all()


@pytest.mark.usefixtures("_few_draws")
def test_where_time_runs_out_there_is_no_other_number(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = study()
    estimate = hb.estimate(reports, "mle")
    linear = set_shares(reports, estimate.probabilities)
    assert isinstance(linear, SetShares)

    def shown(quick: bool = False) -> AttributeShares:
        return attribute_shares(estimate, reports, LEVEL, linear=linear, quick=quick)

    monkeypatch.setattr(tables, "MAX_CONDITIONAL_WORK", 0)
    without = shown()
    assert without.notes[0].startswith("Intervals of conditional shares were not computed")
    assert np.isnan(without.conditionals["age", "sex"][0].low).all()
    assert np.isfinite(without.marginals["sex"].low).all()
    assert "quick page" in shown(quick=True).notes[0]
    monkeypatch.setattr(tables, "MAX_PROFILE_COMBINATIONS", 101)
    assert shown().notes == (
        "Intervals of attributes come from the unbiased linear estimate, not from the likelihood, because there are "
        "more than 101 combinations.",
    )


# -- ends of intervals ----------------------------------------------------------------------------------------------


def test_local_ends_are_those_of_the_interior_point() -> None:
    region = LikelihoodRegion.of(study())
    assert region.local is not None
    slack = 4.0 / (2.0 * region.users)
    top, found = region.top.theta, 0
    for statistic in every_value(PEOPLE, "sex", None).statistics:
        for sign in (1.0, -1.0):
            weights = sign * statistic.weights  # type: ignore[union-attr]  # marginal shares are linear
            near, other = region.local.least(weights, slack), region.region.least(weights, slack)
            if near is None:
                continue
            found += 1
            reach = float(weights @ top) - other.limit
            assert near.limit == pytest.approx(other.limit, abs=2e-3 * reach)
            assert near.limit <= near.attained <= float(weights @ top)
            # Its distribution is as likely as the cutoff allows, and no more.
            deviance = 2.0 * (region.top.log_likelihood - region.top.at(near.theta).log_likelihood)
            assert deviance == pytest.approx(4.0, abs=0.01)
    assert found >= 4


def test_the_likeliest_distribution_of_some_values() -> None:
    region = LikelihoodRegion.of(study())
    assert region.local is not None
    allowed = ~PEOPLE.having({"age": [3, 4, 5]}).astype(bool)
    near = region.local.likeliest(allowed, 1e-9, np.inf)
    assert near is not None
    assert not near.theta[~allowed].any()
    likelihood = region.top.likelihood
    part = Likelihood(likelihood.channel.part(np.flatnonzero(allowed)), likelihood.weights, likelihood.users)
    best = likeliest_point(part, 1e-10)
    assert near.log_likelihood == pytest.approx(best.log_likelihood, abs=1e-3)
    # With a bound on what is of interest, the search ends as soon as nothing can be within it.
    assert region.local.likeliest(allowed, 1e-9, 1e-9) is not None


def test_few_users_are_left_to_the_interior_point() -> None:
    """With a user for each third combination one curvature does not do; what the local search finds is proven."""
    region = LikelihoodRegion.of(study(30))
    local = LocalRegion(region.top, information_per_user(region.top))
    for weights in (PEOPLE.having({"sex": "f"}).astype(float), -PEOPLE.having({"age": 1}).astype(float)):
        found, other = local.least(weights, 2.0 / region.users), region.region.least(weights, 2.0 / region.users)
        assert found is None or found.limit <= other.attained + 1e-9


# -- simulated deviances --------------------------------------------------------------------------------------------


def drawn_programs(seed: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return an information, scores, and statistics with limits of their own, near common limits."""
    rng = np.random.default_rng(seed)
    size, ends = 14, 6
    root = rng.normal(size=(size, size + 3)) * 10.0 ** rng.uniform(-0.7, 0.7, (size, 1))
    information = root @ root.T
    scores = rng.normal(size=(40, size + 3)) @ root.T
    lower = np.where(rng.random(size) < (0.3, 0.8)[seed % 2], 0.0, -rng.gamma(1.0, size=size))
    lowers = lower * rng.uniform(0.5, 1.5, (ends, size))
    flips = rng.random((ends, size)) < 0.2
    lowers[flips] = np.where(lowers[flips] == 0.0, -1.0, 0.0)
    weights = np.where(rng.random((ends, size)) < 0.5, rng.normal(size=(ends, size)), 0.0)
    weights[1] = -2.0 * weights[0]  # both ends of one interval
    weights[2] = lowers[2] == 0.0  # holding it at 0 leaves these values no room
    return information, scores, lower, lowers, weights


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("condition", [0.0, np.inf])
def test_deviances_together_and_one_by_one(seed: int, condition: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both forms, by the information alone and by whichever basis is smaller, against programs of one statistic."""
    monkeypatch.setattr(deviance_programs, "MAX_CONDITION", condition)
    monkeypatch.setattr(DeviancePrograms, "_mend", lambda *_: None)  # nothing may be left to it
    information, scores, lower, lowers, weights = drawn_programs(seed)
    programs = DeviancePrograms(information, scores, lower, 1e6)
    expected = np.array(
        [
            ConePrograms(information, scores, np.ones(lower.size), 1e6).deviances(own, held)
            for own, held in zip(lowers, weights, strict=True)
        ]
    ).T
    for draws in (10, 40, 40):  # the second time from the bases of the first
        found = finish(programs.deviances(lowers, weights, np.zeros(len(weights)), draws))
        np.testing.assert_allclose(found, expected[:draws], atol=1e-5, rtol=1e-5)
    # Those below what is of interest are known to be below, no more; others are exact.
    enough = np.median(expected, axis=0)
    screened = finish(programs.deviances(lowers, weights, enough))
    np.testing.assert_allclose(screened[expected > enough], expected[expected > enough], atol=1e-5, rtol=1e-5)
    assert (screened[expected < enough - 1e-5] < (enough * np.ones_like(expected))[expected < enough - 1e-5]).all()


def test_few_values_are_solved_one_by_one() -> None:
    """The same deviances, without what takes long to compile: an interval of a small study is not kept waiting."""
    information, scores, lower, lowers, weights = drawn_programs(3)
    separate = programs_around(information, scores, lower, 1e6)
    assert isinstance(separate, SeparatePrograms)
    nothing = np.zeros(len(weights))
    expected = finish(DeviancePrograms(information, scores, lower, 1e6).deviances(lowers, weights, nothing))
    np.testing.assert_allclose(finish(separate.deviances(lowers, weights, nothing)), expected, atol=1e-5, rtol=1e-5)


def test_both_forms_are_used() -> None:
    forms = {type(DeviancePrograms(*drawn_programs(seed)[:3], 1e6)._form).__name__ for seed in range(4)}
    assert forms == {"_InformationForm", "_CovarianceForm"}


def test_programs_that_are_not_found_are_solved_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    information, scores, lower, lowers, weights = drawn_programs(1)
    programs = DeviancePrograms(information, scores, lower, 1e6)
    expected = finish(programs.deviances(lowers, weights, np.zeros(len(weights))))
    solve = DeviancePrograms._solve

    def spoilt(self: DeviancePrograms, own: Any, missing: Floats, costs: Floats, some: slice) -> None:
        solve(self, own, missing, costs, some)
        costs[::3, 1] = np.nan

    monkeypatch.setattr(DeviancePrograms, "_solve", spoilt)
    found = finish(programs.deviances(lowers, weights, np.zeros(len(weights))))
    np.testing.assert_allclose(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.slow  # loops for several threads are compiled apart
def test_deviances_in_one_thread_and_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    information, scores, lower, lowers, weights = drawn_programs(2)
    nothing = np.zeros(len(weights))
    alone = finish(DeviancePrograms(information, scores, lower, 1e6).deviances(lowers, weights, nothing))
    monkeypatch.setattr(compiling, "MAX_SERIAL_STEPS", 0)
    several = finish(DeviancePrograms(information, scores, lower, 1e6).deviances(lowers, weights, nothing))
    np.testing.assert_allclose(several, alone, atol=1e-9)
