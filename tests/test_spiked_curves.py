"""A smooth curve with spikes: the search for spikes, its formulas, and the family of candidates."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import hubbub as hb
from auto_studies import LINE, MAP, Floats, check_estimate, sent, tv
from hubbub.channels import DenseChannel
from hubbub.domains.domain_shape import DomainShape
from hubbub.estimators.auto import spiked_curves as module
from hubbub.estimators.auto.candidate_families import families_for
from hubbub.estimators.auto.candidate_fits import WeightedPatterns
from hubbub.estimators.auto.fold_scores import deal_into_folds
from hubbub.estimators.auto.model_averaging import reaverage
from hubbub.estimators.auto.spiked_curves import CURVES, SpikedCurves, curve_basis, spiked_curves
from hubbub.estimators.reestimation import reestimate
from hubbub.solvers.spiked_curve import MIN_SEPARATION, CurveBasis, SpikedCurve, SpikedLikelihood

HOURS = hb.Integers(0, 79)
SHAPE = DomainShape.of(HOURS)
PLACES = np.arange(80.0)
HEAPS = {20: 0.08, 35: 0.12, 40: 0.25}
MIN_GAIN = module.MIN_GAIN_NATS


def bell(centre: float, width: float) -> Floats:
    shape: Floats = np.exp(-0.5 * ((PLACES - centre) / width) ** 2)
    shape /= shape.sum()
    return shape


def heaped_hours() -> Floats:
    truth: Floats = (1.0 - sum(HEAPS.values())) * bell(35.0, 12.0)
    truth[list(HEAPS)] += list(HEAPS.values())
    return truth


def drawn(truth: Floats, users: int, seed: int, epsilon: float = 0.4) -> hb.Reports:
    positions = np.random.default_rng(seed).choice(truth.size, users, p=truth)
    return sent(hb.TruncatedGeometric(HOURS, epsilon), positions, seed + 10_000)  # noise of its own


def likelihood_of(reports: hb.Reports, basis: CurveBasis) -> SpikedLikelihood:
    return SpikedLikelihood(reports.channel, reports.weights, basis)


def stiff() -> CurveBasis:
    return curve_basis(SHAPE, SHAPE.extent / CURVES[0][1], CURVES[0][2])


def searched(reports: hb.Reports, basis: CurveBasis, min_gain: float = MIN_GAIN) -> SpikedCurve:
    return likelihood_of(reports, basis).fit(np.zeros(len(basis.rows)), min_gain)


def family() -> SpikedCurves:
    (only,) = spiked_curves(SHAPE)
    return only


@cache
def heaped_study() -> tuple[hb.Reports, hb.Estimate]:
    reports = drawn(heaped_hours(), 60_000, 3)
    return reports, hb.estimate(reports)


# -- finding spikes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("curve", range(len(CURVES)))
def test_planted_spikes_are_found_where_they_are(curve: int) -> None:
    """Exact expectations of many users: no chance, only blur."""
    truth, mechanism = heaped_hours(), hb.TruncatedGeometric(HOURS, 0.4)
    _, parts, deviation = CURVES[curve]
    expected = 1e6 * truth @ mechanism.matrix()
    channel = DenseChannel(mechanism.matrix(), np.zeros(expected.size))
    basis = curve_basis(SHAPE, SHAPE.extent / parts, deviation)
    fit = SpikedLikelihood(channel, expected, basis).fit(np.zeros(len(basis.rows)), MIN_GAIN)
    assert sorted(fit.places) == sorted(HEAPS)
    for place, mass in zip(fit.places, fit.masses, strict=True):
        assert mass == pytest.approx(HEAPS[place], abs=0.01)
    assert tv(fit.theta, truth) < 0.01


def test_planted_spikes_are_found_through_noise() -> None:
    reports, _ = heaped_study()
    fit = searched(reports, stiff())
    assert sorted(fit.places) == sorted(HEAPS)
    assert tv(fit.theta, heaped_hours()) < 0.05


def test_a_single_value_is_a_spike() -> None:
    point = np.zeros(80)
    point[17] = 1.0
    fit = searched(drawn(point, 5_000, 0), stiff())
    assert fit.places == (17,)
    assert fit.theta[17] > 0.9


@pytest.mark.parametrize("users", [300, 20_000])
def test_smooth_truths_hardly_ever_have_spikes(users: int) -> None:
    """At most 1 of 40 draws (each gain is above log 80 + 2 nats: a rate of about 1% where values were independent).

    If the rate were 1%, two draws or more of 40 would have a spike with a probability of 6%; the draws are fixed.
    """
    truths: list[Floats] = [bell(30.0, 10.0), np.full(80, 1 / 80), 1.0 / (1.0 + PLACES), binom.pmf(PLACES, 79, 0.6)]
    found = 0
    for number, truth in enumerate(truths):
        for seed in range(10):
            fit = searched(drawn(truth / truth.sum(), users, 100 * number + seed), stiff())
            found += bool(fit.places)
    assert found <= 1


def test_spikes_keep_a_distance() -> None:
    """A narrow bump is no group of spikes."""
    truth = 0.8 * bell(45.0, 18.0) + 0.2 * bell(30.0, 1.5)
    for basis in (stiff(), curve_basis(SHAPE, SHAPE.extent / CURVES[1][1], CURVES[1][2])):
        fit = searched(drawn(truth, 200_000, 4), basis)
        places = np.sort(fit.places)
        assert places.size
        assert (np.diff(places) >= MIN_SEPARATION).all()


def test_a_higher_threshold_finds_fewer_spikes() -> None:
    reports, _ = heaped_study()
    basis = stiff()
    counts = [len(searched(reports, basis, gain).places) for gain in (MIN_GAIN, 200.0, 1e6)]
    assert counts[0] == 3
    assert sorted(counts, reverse=True) == counts
    assert counts[-1] == 0


# -- formulas --------------------------------------------------------------------------------------------


def test_the_fit_is_a_maximum_of_the_penalised_likelihood() -> None:
    reports, _ = heaped_study()
    basis = stiff()
    likelihood, fit = likelihood_of(reports, basis), searched(reports, basis)

    def value(z: Floats, masses: Floats) -> float:
        u = z @ basis.rows
        curve = np.exp(u - u.max()) / np.exp(u - u.max()).sum()
        theta = (1 - masses.sum()) * curve
        for place, mass in zip(fit.places, masses, strict=True):
            theta[place] += mass
        fitted = reports.channel.forward(theta)
        return float(reports.weights @ np.log(fitted)) - 0.5 * float(basis.precision @ z**2)

    assert fit.value == pytest.approx(value(fit.z, fit.masses), rel=1e-12)
    around = likelihood._around(fit)
    assert float(around.slope @ around.inverse @ around.slope) < 0.01
    step = 1e-5
    for coordinate in range(fit.z.size):
        moved = step * np.eye(fit.z.size)[coordinate]
        slope = (value(fit.z + moved, fit.masses) - value(fit.z - moved, fit.masses)) / (2 * step)
        assert slope == pytest.approx(around.slope[coordinate], abs=0.02)
    for spike in range(fit.masses.size):
        moved = step * np.eye(fit.masses.size)[spike]
        slope = (value(fit.z, fit.masses + moved) - value(fit.z, fit.masses - moved)) / (2 * step)
        assert slope == pytest.approx(around.slope[fit.z.size + spike], rel=0.01, abs=1.0)


def test_proposed_gains_are_those_of_small_spikes_refitted() -> None:
    """To second order: so the spikes are small, and moves are to the next value."""
    truth = 0.985 * bell(40.0, 13.0)
    truth[50] += 0.015
    reports = drawn(truth, 200_000, 5)
    basis = stiff()
    likelihood = likelihood_of(reports, basis)
    plain, around = likelihood._climb(likelihood._at(np.zeros(len(basis.rows)), (), np.zeros(0)))
    gains = likelihood._proposals(plain, around).gains
    for place in (49, 50, 51):
        more, _ = likelihood._climb(likelihood._at(plain.z, (place,), np.array([0.005])))
        assert gains[place] == pytest.approx(more.value - plain.value, rel=0.1)
    fit, around = likelihood._climb(likelihood._at(plain.z, (50,), np.array([0.01])))
    proposals = likelihood._proposals(fit, around)
    assert proposals.losses[0] == pytest.approx(fit.value - plain.value, rel=0.1)
    for place in (48, 49, 51, 52):
        moved, _ = likelihood._climb(likelihood._at(fit.z, (place,), fit.masses))
        assert proposals.gains_of_moves[place, 0] == pytest.approx(moved.value - fit.value, rel=0.15, abs=0.3)


def test_a_basis_holds_parabolas_and_powers_of_the_distances_to_the_ends() -> None:
    rows, precision = stiff().rows, stiff().precision
    assert rows.shape == (precision.size, 80)
    assert (precision == 0).sum() == 2
    free = rows[precision == 0]
    for shape in (PLACES, PLACES**2):
        centred = shape - shape.mean()
        left = centred - free.T @ np.linalg.lstsq(free.T, centred, rcond=None)[0]
        assert np.abs(left).max() < 1e-6 * np.abs(centred).max()
    for shape in (np.log1p(PLACES), np.log1p(79 - PLACES)):
        assert min(np.abs(row - shape).max() for row in rows) < 1e-9
    # The field has the covariance that it should have, but for what happens between knots.
    field = rows[4:]
    covariance = field.T @ field
    scaled = math.sqrt(3.0) * np.abs(PLACES[:, None] - PLACES) * CURVES[0][1] / 79
    np.testing.assert_allclose(covariance, (1 + scaled) * np.exp(-scaled) * CURVES[0][2] ** 2, atol=0.08)


# -- the family ------------------------------------------------------------------------------------------


def test_lines_have_the_family_and_others_do_not() -> None:
    assert [one.name for one in families_for(SHAPE, uses_newton=True, max_updates=9)].count(SpikedCurves.name) == 1
    for shape in (DomainShape.of(MAP), DomainShape.of(LINE), DomainShape(40)):
        assert spiked_curves(shape) == []
    assert not any(isinstance(one, SpikedCurves) for one in families_for(SHAPE, uses_newton=False, max_updates=9))
    bins = DomainShape.of(hb.Bins(np.cumsum(np.r_[0.0, np.tile([1.0, 2.0, 0.5], 20)])))
    (unequal,) = spiked_curves(bins)
    assert np.isfinite(unequal.curves[0][1].rows).all()


def test_large_channels_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    reports, _ = heaped_study()
    monkeypatch.setattr(module, "MAX_SEARCHED_ENTRIES", 100)
    assert list(family().fits(WeightedPatterns(reports.channel, reports.weights[None], SHAPE))) == []


def leave_out_rows(reports: hb.Reports) -> Floats:
    return deal_into_folds(reports.weights, 5, np.random.default_rng(0)).fitted


def test_rows_are_distributions_with_names_of_their_own() -> None:
    reports, _ = heaped_study()
    fits = list(family().fits(WeightedPatterns(reports.channel, leave_out_rows(reports), SHAPE)))
    assert [candidate.description for candidate, _ in fits] == [f"{SpikedCurves.name} ({one[0]})" for one in CURVES]
    assert family().count == len(fits)
    for candidate, thetas in fits:
        assert candidate.family == SpikedCurves.name
        assert candidate.handicap == module.HANDICAP
        assert thetas.shape == (6, 80)
        assert (thetas >= 0).all()
        np.testing.assert_allclose(thetas.sum(axis=1), 1.0, rtol=1e-12)


def rows_alone(reports: hb.Reports, weightings: Floats) -> list[list[Floats]]:
    """Each row fitted by itself, curve by curve."""
    alone = [
        [thetas[0] for _, thetas in family().fits(WeightedPatterns(reports.channel, row[None], SHAPE))]
        for row in weightings
    ]
    return [list(curve) for curve in zip(*alone, strict=True)]


def test_each_row_is_fitted_from_its_own_weighting_only() -> None:
    """Rows of very different users, so that spikes of one weighting in another row would show."""
    reports, _ = heaped_study()
    elsewhere = 0.7 * bell(50.0, 10.0)
    elsewhere[60] += 0.3
    counts: NDArray[np.float64] = 40_000 * elsewhere @ hb.TruncatedGeometric(HOURS, 0.4).matrix()
    order = reports.channel.dense().argmax(axis=0)  # the pattern of each output
    weightings = np.stack([reports.weights, counts[order], 0.2 * reports.weights])
    fits = list(family().fits(WeightedPatterns(reports.channel, weightings, SHAPE)))
    for (_, thetas), alone in zip(fits, rows_alone(reports, weightings), strict=True):
        np.testing.assert_allclose(thetas, np.stack(alone), rtol=1e-6, atol=1e-9)
        assert thetas[0, 40] > 0.2
        assert thetas[1, 60] > 0.25
        assert thetas[0, 60] < 0.05
        assert thetas[1, 40] < 0.05


def test_a_fold_does_not_see_its_held_out_users() -> None:
    """Moving held-out users changes the row of all users, and none of the row that leaves them out."""
    reports, _ = heaped_study()
    folds = deal_into_folds(reports.weights, 5, np.random.default_rng(0))
    moved = folds.fitted.copy()
    moved[0] += 3.0 * np.roll(folds.held_out[0], 11)
    before = [thetas for _, thetas in family().fits(WeightedPatterns(reports.channel, folds.fitted, SHAPE))]
    after = [thetas for _, thetas in family().fits(WeightedPatterns(reports.channel, moved, SHAPE))]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one[1:], other[1:], rtol=1e-9, atol=1e-12)
        assert tv(one[0], other[0]) > 0.01


# -- in auto ---------------------------------------------------------------------------------------------


def test_auto_finds_heaped_hours() -> None:
    reports, answer = heaped_study()
    check_estimate(answer, reports)
    assert answer.settings["chosen"].startswith(SpikedCurves.name)
    assert tv(answer.probabilities, heaped_hours()) < 0.05
    assert SpikedCurves.name in answer.status


@pytest.mark.slow
def test_candidates_are_found_again_by_their_descriptions() -> None:
    reports, answer = heaped_study()
    selection = answer.settings["selection"]
    again = hb.estimate(reports).settings["selection"]
    assert again.candidates == selection.candidates
    np.testing.assert_array_equal(again.weights, selection.weights)
    rows = reaverage(reports.channel, reports.weights[None], reports.domain, selection)
    assert tv(rows[0], answer.probabilities) < 0.01
    resampled = np.random.default_rng(1).multinomial(reports.users, reports.weights / reports.users).astype(np.float64)
    theta = reestimate(reports, resampled[None], answer)[0]
    assert theta.sum() == pytest.approx(1.0)
    assert 0.2 < theta[40] < 0.35


def test_auto_leaves_smooth_truths_smooth() -> None:
    reports = drawn(bell(35.0, 9.0), 20_000, 1)
    answer = hb.estimate(reports)
    check_estimate(answer, reports)
    assert tv(answer.probabilities, bell(35.0, 9.0)) < 0.03
