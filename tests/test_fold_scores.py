"""How `auto` deals users into folds, scores candidates on them and weights them, written again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import hubbub as hb
import strategies as own
from auto_studies import (
    ABC,
    SMOOTHED,
    Floats,
    all_deals,
    check_estimate,
    chosen_of,
    em,
    em_at,
    highest,
    sent,
    softmax,
    tv,
    written_weights,
)
from hubbub.channels import DenseChannel
from hubbub.domains.domain_shape import DomainShape
from hubbub.estimators import reestimate
from hubbub.estimators.auto import Selection
from hubbub.estimators.auto.bayesian_curves import BAYESIAN_CURVES, CurvePriors, average_curves
from hubbub.estimators.auto.candidate_families import families_for
from hubbub.estimators.auto.candidate_fits import (
    WeightedPatterns,
)
from hubbub.estimators.auto.candidate_weights import (
    SPREAD_POWER,
    can_stop_fit,
    can_stop_path,
    candidate_weights,
)
from hubbub.estimators.auto.fold_scores import deal_into_folds, jackknife_spread
from hubbub.estimators.auto.model_averaging import reaverage
from hubbub.solvers.em_path import MIN_FLOW_UPDATES
from hubbub.solvers.penalties import Quadratic

# -- folds -----------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12), st.integers(2, 5), st.integers(0, 99))
@own.examples(60)
def test_parts_add_up_and_are_equally_large(counts: list[int], parts: int, seed: int) -> None:
    weights = np.array(counts, dtype=np.float64)
    weights[0] += parts
    dealt = deal_into_folds(weights, parts, np.random.default_rng(seed))
    assert dealt.held_out.shape == (parts, weights.size)
    assert dealt.held_out.sum(axis=0).tolist() == weights.tolist()
    assert (dealt.held_out >= 0).all()
    assert (dealt.held_out == np.rint(dealt.held_out)).all()
    assert np.ptp(dealt.held_out.sum(axis=1)) <= 1
    assert dealt.fitted.shape == (parts + 1, weights.size)
    assert dealt.fitted[0].tolist() == weights.tolist()
    assert (dealt.fitted[1:] + dealt.held_out == weights).all()
    again_ = deal_into_folds(weights, parts, np.random.default_rng(seed))
    assert (again_.held_out == dealt.held_out).all()


@pytest.mark.parametrize("users", [100_000, 100_001, 10**9, 9 * 10**15])
def test_parts_of_many_users_add_up(users: int) -> None:
    counts = np.array([users // 2, 0, 1, users - users // 2 - 1 - 77, 77], dtype=np.float64)
    dealt = deal_into_folds(counts, 5, np.random.default_rng(0))
    assert (dealt.held_out.sum(axis=0) == counts).all()
    assert (dealt.fitted[1:] + dealt.held_out == counts).all()
    assert (dealt.fitted >= 0).all()
    sizes = dealt.held_out.sum(axis=1)
    assert np.abs(sizes - users / 5).max() < 6 * np.sqrt(users)


@pytest.mark.parametrize(("users", "freedom"), [(900, 4 * 8), (200_000, 5 * 8)])
def test_users_are_dealt_evenly(users: int, freedom: int) -> None:
    """Pearson's test of even dealing, over 200 seeds together, passes at a level of 1e-4 in either tail."""
    counts = np.full(5, users // 5)
    expected, total = counts / 9, 0.0
    for seed in range(200):
        dealt = deal_into_folds(counts.astype(np.float64), 9, np.random.default_rng(seed)).held_out
        total += float(((dealt - expected) ** 2 / expected).sum())
    if users <= 100_000:
        total *= (users - 1) / users  # both margins are fixed
    assert 1e-4 < stats.chi2.sf(total, 200 * freedom) < 1 - 1e-4


# -- weights ---------------------------------------------------------------------------------------------


@st.composite
def scored(draw: st.DrawFn) -> tuple[Floats, Floats]:
    size = draw(st.integers(2, 8))
    scores = draw(st.lists(st.floats(-40, 40), min_size=size, max_size=size))
    spreads = draw(st.lists(st.floats(0, 0.5), min_size=size, max_size=size))
    return np.array(scores), np.array(spreads)


@given(scored(), st.floats(-1e3, 1e3))
@own.examples(60)
def test_weights_are_their_formula(drawn: tuple[Floats, Floats], shift: float) -> None:
    scores, spreads = drawn
    found = candidate_weights(scores, spreads)
    assert found.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(found, written_weights(scores, spreads), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(candidate_weights(scores + shift, spreads), found, rtol=1e-9, atol=1e-12)


def test_what_spreads_more_counts_less() -> None:
    twice = candidate_weights(np.zeros(3), np.array([0.1, 0.1, 0.2]))
    assert twice[0] == twice[1]
    assert 5.0 < twice[0] / twice[2] < 2.0**SPREAD_POWER  # all gain the floor
    won = candidate_weights(np.array([0.0, 0.0, SPREAD_POWER * np.log(2)]), np.array([0.1, 0.1, 0.2]))
    assert won[2] > won[0]
    close = candidate_weights(np.array([0.0, 0.0, 1.5]), np.array([0.1, 0.1, 0.2]))
    assert close[2] < close[0]
    still = candidate_weights(np.array([0.0, -30.0]), np.zeros(2))
    assert still[0] == pytest.approx(1.0)


def test_spreads_are_the_jackknife() -> None:
    parts = np.random.default_rng(0).dirichlet(np.ones(6), size=5)
    total = 0.0
    for value in range(6):
        shares = parts[:, value].tolist()
        mean = sum(shares) / 5
        total += (4 / 5 * sum((share - mean) ** 2 for share in shares)) ** 0.5
    assert jackknife_spread(parts) == pytest.approx(total * (2 / np.pi) ** 0.5 / 2)
    assert jackknife_spread(np.tile(parts[0], (5, 1))) == pytest.approx(0.0, abs=1e-12)


def test_spreads_tell_how_far_shares_are_from_the_truth() -> None:
    """Where the estimate is a share of users, its mean error is known; 5 parts tell it with a bias of 6%."""
    rng = np.random.default_rng(0)
    truth = np.array([0.4, 0.3, 0.2, 0.1])
    told, errors = [], []
    for _ in range(400):
        counts = rng.multinomial(1_000, truth).astype(np.float64)
        rows = deal_into_folds(counts, 5, rng).fitted
        told.append(jackknife_spread(rows[1:] / rows[1:].sum(axis=1, keepdims=True)))
        errors.append(tv(counts / 1_000, truth))
    assert np.mean(told) / np.mean(errors) == pytest.approx(0.94, abs=0.06)


def test_fits_are_left_when_they_cannot_count() -> None:
    assert not can_stop_fit([0.0, 0.0, 0.0, 0.0], 500.0)  # too early to tell
    assert can_stop_fit([0.0, 0.0, 0.0, 0.0, 0.0], 500.0)
    assert can_stop_fit([0.0, 1.0, 2.0, 3.0, 4.0], 500.0)  # on its way, but too slowly
    assert not can_stop_fit([0.0, 20.0, 40.0, 60.0, 80.0], 500.0)
    assert not can_stop_fit([400.0, 0.0, 0.0, 0.0, 0.0, 0.0], 19.0)  # not far behind
    assert can_stop_fit([400.0, 0.0, 0.0, 0.0, 0.0, 0.0], 21.0)


def test_paths_are_left_when_they_cannot_count() -> None:
    assert not can_stop_path([5.0], 500.0)
    assert not can_stop_path([5.0, 6.0], 500.0)  # far behind, but on its way
    assert can_stop_path([6.0, 5.0], 500.0)
    assert not can_stop_path([6.0, 5.0], 24.0)
    assert not can_stop_path([9.0, 2.9, 2.8, 2.7, 2.6, 2.5], 9.0)  # not yet six since the best
    assert can_stop_path([9.0, 2.9, 2.8, 2.7, 2.6, 2.5, 2.4], 9.0)
    assert not can_stop_path([9.0, 8.9, 8.8, 8.7, 8.6, 8.5, 3.1], 9.0)  # but little lost
    assert not can_stop_path([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 8.0)


# -- the choice, written again ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "line" else pytest.mark.slow) for name in SMOOTHED]
)
def test_scores_spreads_and_the_average_are_what_they_say(name: str) -> None:
    reports, found = chosen_of(name)
    check_estimate(found, reports)
    selection = found.settings["selection"]
    matrix = reports.channel.dense()
    dealings = all_deals(reports, selection.deals)
    dealt = dealings[0]
    even = float(reports.weights @ np.log(np.full(len(matrix), 1 / len(matrix)) @ matrix))
    stops = {place: one.updates for place, one in enumerate(selection.candidates) if one.family == "EM"}
    assert len(stops) > 5
    deals = [
        [(part, em_at(matrix, reports.weights - part, list(stops.values()))) for part in deal.held_out]
        for deal in dealings
    ]
    for place, updates in stops.items():
        scores, spreads = [], []
        for deal in deals[: None if selection.weights[place] else 1]:
            scores.append(sum(float(part @ np.log(iterates[updates] @ matrix)) for part, iterates in deal) - even)
            spreads.append(jackknife_spread(np.stack([iterates[updates] for _, iterates in deal])))
        # Beyond 30 updates the path is followed in longer steps, which are a little off.
        exact = updates <= MIN_FLOW_UPDATES
        assert selection.scores[place] == pytest.approx(np.mean(scores), abs=1e-6 if exact else 0.1)
        assert selection.spreads[place] == pytest.approx(np.mean(spreads), rel=1e-6 if exact else 0.02)
    # The same candidates with the same weights, from all users.
    sample = WeightedPatterns(reports.channel, dealt.fitted, DomainShape.of(reports.domain))
    thetas = {
        candidate.description: thetas[0]
        for family in families_for(
            sample.shape, uses_newton=True, max_updates=selection.max_updates, unit=reports.domain.unit
        )
        for candidate, thetas in family.fits(sample)
    }
    curves = average_curves(reports.channel, reports.weights, CurvePriors.of(sample.shape))
    thetas[BAYESIAN_CURVES.description] = curves.probabilities
    average = sum(
        weight * thetas[candidate.description]
        for weight, candidate in zip(selection.weights, selection.candidates, strict=True)
    )
    np.testing.assert_allclose(found.probabilities, average, atol=2e-4)


@pytest.mark.parametrize("name", SMOOTHED)
def test_fields_are_scored_on_what_they_have_not_seen(name: str) -> None:
    reports, found = chosen_of(name)
    selection, matrix = found.settings["selection"], reports.channel.dense()
    places = [place for place, one in enumerate(selection.candidates) if one.family == "independent values"]
    even = float(reports.weights @ np.log(np.full(len(matrix), 1 / len(matrix)) @ matrix))
    channel = DenseChannel(matrix, reports.channel.log_scale)
    for place, deviation in zip(places, (1.0, 2.0), strict=False):
        size = len(matrix)
        penalty = Quadratic((np.eye(size) - 1 / size) / deviation**2)
        deals = all_deals(reports, selection.deals if selection.weights[place] else 1)
        score = -even
        for part in np.concatenate([deal.held_out for deal in deals]):
            u = highest(channel, reports.weights - part, penalty, np.zeros(size))
            score += float(part @ np.log(softmax(u) @ matrix)) / len(deals)
        assert selection.scores[place] == pytest.approx(score, abs=0.3)


@pytest.mark.parametrize("name", SMOOTHED)
def test_again_on_the_same_users_is_the_estimate_up_to_what_hardly_counts(name: str) -> None:
    reports, found = chosen_of(name)
    selection = found.settings["selection"]
    dropped = 1.0 - selection.weights[selection.counted].sum()
    rows = reaverage(reports.channel, reports.weights[None], reports.domain, selection)
    assert tv(rows[0], found.probabilities) <= dropped + 2e-3
    assert tv(reestimate(reports, reports.weights[None], found)[0], rows[0]) == 0.0
    # Several weightings at once are each on its own.
    rng = np.random.default_rng(1)
    drawn = rng.multinomial(reports.users, reports.weights / reports.users, size=3).astype(np.float64)
    many = reestimate(reports, np.concatenate([reports.weights[None], drawn]), found)
    np.testing.assert_allclose(many.sum(axis=1), 1.0, rtol=1e-12)
    assert (many >= 0).all()
    assert tv(many[0], rows[0]) < 2e-3
    for row, theta in zip(drawn, many[1:], strict=True):
        assert tv(reestimate(reports, row[None], found)[0], theta) < 5e-3
    assert max(tv(theta, many[0]) for theta in many[1:]) > 0.003


def test_again_needs_no_more_updates_than_what_counts() -> None:
    reports, found = chosen_of("line")
    selection = found.settings["selection"]
    only = np.array([float(one.description.startswith("EM stopped after 3 ")) for one in selection.candidates])
    assert only.sum() == 1.0
    three = Selection(
        selection.candidates, selection.paths, selection.scores, selection.spreads, only, 5, True, selection.max_updates
    )
    rows = reaverage(reports.channel, reports.weights[None], reports.domain, three)
    np.testing.assert_allclose(rows[0], em(reports.channel.dense(), reports.weights, 3), rtol=1e-9)


def test_again_where_nothing_counts_much() -> None:
    reports, found = chosen_of("line")
    selection = found.settings["selection"]
    flat = np.full(len(selection.candidates), 1.0 / (len(selection.candidates) - 1))
    flat[0] = 0.0  # the uniform distribution is no part of an average
    assert flat[1] < 0.01
    level = Selection(
        selection.candidates, selection.paths, selection.scores, selection.spreads, flat, 5, True, selection.max_updates
    )
    rows = reaverage(reports.channel, reports.weights[None], reports.domain, level)
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    assert level.explain().startswith(f"an average of {level.counted.size} estimates that predict")
    assert level.explain().endswith("with most weight on EM stopped after 1 update")


def test_estimates_of_extremes_are_made_again() -> None:
    few = sent(hb.RandomizedResponse(ABC, 2.0), np.array([1, 1, 3]))
    clear = sent(hb.RandomizedResponse(ABC, 12.0), np.arange(60) % 4)
    blind = sent(hb.RandomizedResponse(ABC, 1e-5), np.arange(60) % 4)
    for reports in (few, clear, blind):
        estimate = hb.estimate(reports)
        assert "selection" not in estimate.settings
        rows = reestimate(reports, np.tile(reports.weights, (2, 1)), estimate)
        np.testing.assert_allclose(rows, np.tile(estimate.probabilities, (2, 1)), atol=1e-9)


def test_the_bootstrap_draws_what_was_chosen() -> None:
    reports, found = chosen_of("categories")
    drawn = hb.interval(reports, "a", method="bootstrap", runs=40, rng=0)
    assert drawn.low < found.probabilities[0] < drawn.high
    assert drawn.high - drawn.low < 0.3
