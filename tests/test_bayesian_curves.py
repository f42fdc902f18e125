"""Bayesian curves: modes, evidence and averages, against integrals and optimisers written again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

import hubbub as hb
from auto_studies import HOLED, sent, softmax, tv
from hubbub.domains.domain_shape import DomainShape
from hubbub.estimators import reestimate
from hubbub.estimators.auto.bayesian_curves import SPIKE_PARTS, CurvePriors, average_curves, one_spike
from hubbub.estimators.auto.smoothing import HALF_GAIN, MAX_GAIN
from hubbub.solvers import laplace_evidence
from hubbub.solvers.laplace_evidence import fit_curves

Floats = NDArray[np.float64]

TWENTY = hb.Integers(0, 19)


def bell(users: int, seed: int, epsilon: float = 0.3) -> hb.Reports:
    rng = np.random.default_rng(seed)
    positions = np.clip(rng.normal(9, 2.5, users).round(), 0, 19).astype(np.int64)
    return sent(hb.TruncatedGeometric(TWENTY, epsilon), positions, seed)


def even(users: int, seed: int, epsilon: float) -> hb.Reports:
    return sent(hb.TruncatedGeometric(TWENTY, epsilon), np.random.default_rng(seed).integers(0, 20, users), seed)


# -- Laplace's method ------------------------------------------------------------------------------------


def test_evidence_is_the_integral_over_the_coefficients() -> None:
    reports = bell(120, 1)
    matrix, weights = reports.channel.dense(), reports.weights
    basis = CurvePriors.of(DomainShape.of(TWENTY)).basis[:, :2]
    variances = np.array([[0.25, 0.25], [4.0, 1.0], [0.0, 0.0]])
    alone = [fit_curves(reports.channel, weights, basis, row[None]) for row in variances]
    even_ = float(weights @ np.log(np.full(20, 0.05) @ matrix))

    for row, fit in zip(variances[:2], alone, strict=False):
        first, second = (np.linspace(-6, 6, 401) * deviation for deviation in np.sqrt(row))
        thetas = softmax(first[:, None, None] * basis[:, 0] + second[None, :, None] * basis[:, 1])
        logs = np.log(thetas @ matrix) @ weights - even_
        prior = np.outer(stats.norm.pdf(first, scale=np.sqrt(row[0])), stats.norm.pdf(second, scale=np.sqrt(row[1])))
        value = float((np.exp(logs) * prior).sum() * (first[1] - first[0]) * (second[1] - second[0]))
        assert fit.log_evidences[0] - even_ == pytest.approx(np.log(value), abs=0.2)
    np.testing.assert_allclose(alone[2].thetas[0], 0.05)  # no variance: the uniform distribution
    assert alone[2].log_evidences[0] == pytest.approx(even_)
    together = fit_curves(reports.channel, weights, basis, variances).log_evidences  # one curvature for all
    np.testing.assert_allclose(together, [fit.log_evidences[0] for fit in alone], atol=0.6)


@pytest.mark.parametrize("users", [60, 3_000])
def test_modes_are_where_another_solver_ends(users: int) -> None:
    reports = bell(users, 2)
    matrix, weights = reports.channel.dense(), reports.weights
    priors = CurvePriors.of(DomainShape.of(TWENTY))
    some = np.array([5, 17, 30])
    found = fit_curves(reports.channel, weights, priors.basis, priors.variances[some])
    descend: Any = optimize.minimize
    for theta, variances in zip(found.thetas, priors.variances[some], strict=True):
        scaled = priors.basis * np.sqrt(variances)

        def loss(b: Floats, scaled: Floats = scaled) -> tuple[float, Floats]:
            own = softmax(scaled @ b)
            fitted = own @ matrix
            pull = own * (matrix @ (weights / fitted) - weights.sum())
            return float(-(weights @ np.log(fitted)) + 0.5 * b @ b), b - pull @ scaled

        best = descend(loss, np.zeros(scaled.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 5_000})
        assert tv(softmax(scaled @ best.x), theta) < 5e-3


def test_a_sketch_of_the_curvature_is_as_good_as_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = hb.Integers(0, 149)
    positions = np.clip(np.random.default_rng(1).normal(60, 20, 300).round(), 0, 149).astype(np.int64)
    reports = sent(hb.TruncatedGeometric(domain, 0.05), positions)
    priors = CurvePriors.of(DomainShape.of(domain))
    some = priors.variances[::7]
    sketched = fit_curves(reports.channel, reports.weights, priors.basis, some)
    monkeypatch.setattr(laplace_evidence, "SKETCH_COLUMNS", 1_000)
    monkeypatch.setattr(laplace_evidence, "MIN_SINGULAR_SHARE", 1e-7)
    exact = fit_curves(reports.channel, reports.weights, priors.basis, some)
    np.testing.assert_allclose(sketched.log_evidences, exact.log_evidences, atol=0.02)
    assert max(tv(one, other) for one, other in zip(sketched.thetas, exact.thetas, strict=True)) < 2e-3


# -- priors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [3.0, 6.0])
def test_cosines_differ_as_the_field_does(length: float) -> None:
    """Matern 3/2: the variance of the difference of two values, up to a factor (a constant of u does not count)."""
    shape = DomainShape.of(hb.Integers(0, 59))
    priors = CurvePriors.of(shape)
    trends = shape.trends(2).shape[1] - 1
    scaled = np.sqrt(3.0) * np.arange(1, 20) / length
    expected = 1.0 - (1.0 + scaled) * np.exp(-scaled)
    off = []
    for row in priors.variances:
        covariance = (priors.basis[:, trends:] * row[trends:]) @ priors.basis[:, trends:].T
        there = 20 + np.arange(1, 20)
        differences = covariance[20, 20] + covariance[there, there] - 2 * covariance[20, there]
        off.append(np.ptp(np.log(np.maximum(differences, 1e-12) / expected)))
    assert min(off) < 0.2
    assert np.sum(np.array(off) < 0.2) == 8  # four deviations, with two trends each


@pytest.mark.parametrize("domain", [TWENTY, hb.Grid(6, 4), HOLED, hb.Grid(1, 9), hb.Bins([0, 1, 1.1, 5, 30])])
def test_every_domain_with_places_has_priors(domain: hb.Domain) -> None:
    priors = CurvePriors.of(DomainShape.of(domain))
    assert len(priors.basis) == len(domain)
    assert np.isfinite(priors.basis).all()
    assert (priors.variances >= 0).all()
    assert not priors.variances[0].any()  # the first is the uniform distribution
    assert priors.basis.shape[1] == priors.variances.shape[1]


def test_a_spike_is_the_mean_over_all_values_and_parts() -> None:
    reports = sent(hb.TruncatedGeometric(TWENTY, 0.5), np.repeat([13, 4, 9], [40, 5, 5]))
    matrix, weights, uniform = reports.channel.dense(), reports.weights, np.full(20, 0.05)
    total, mean = 0.0, np.zeros(20)
    base = float(weights @ np.log(uniform @ matrix))
    for value in range(20):
        for part in SPIKE_PARTS.tolist():
            theta = (1 - part) * uniform
            theta[value] += part
            chance = np.exp(float(weights @ np.log(theta @ matrix)) - base)
            total += chance
            mean += chance * theta
    found, gain = one_spike(reports.channel, weights, uniform)
    np.testing.assert_allclose(found, mean / total, atol=1e-9)
    assert gain == pytest.approx(np.log(total / (20 * SPIKE_PARTS.size)), abs=1e-9)
    assert found[12:14].sum() > 0.5


# -- the answer ------------------------------------------------------------------------------------------


def test_few_reports_are_answered_by_curves_without_chance() -> None:
    reports = bell(50, 3)
    answers = [hb.estimate(reports, rng=seed) for seed in (0, 1)]
    assert answers[0].settings["folds"] == 0
    assert answers[0].probabilities.tolist() == answers[1].probabilities.tolist()
    assert answers[0].status == (
        "a Bayesian average of smooth curves: the reports say too little to compare it with other estimates"
    )
    again = reestimate(reports, np.tile(reports.weights, (2, 1)), answers[0])
    assert max(tv(row, answers[0].probabilities) for row in again) < 0.03


def test_the_more_reports_say_the_less_curves_count() -> None:
    parts = []
    for users in (50, 400, 1_500, 20_000):
        estimate = hb.estimate(bell(users, 4))
        selection = estimate.settings["selection"]
        named = [one.family == "Bayesian curves" for one in selection.candidates]
        parts.append(float(selection.weights[named].sum()))
        if 0.0 < parts[-1] < 1.0:
            gain = float(selection.scores[named][0])
            assert parts[-1] == pytest.approx(1 / (1 + (gain / HALF_GAIN) ** 2))
            assert gain < MAX_GAIN + 10
    assert parts == sorted(parts, reverse=True)
    assert parts[0] == 1.0
    assert parts[-1] == 0.0


@pytest.mark.slow
def test_a_bell_is_seen_in_fifty_reports_and_an_even_line_stays_even() -> None:
    truth = stats.norm.pdf(np.arange(20), 9, 2.5)
    truth /= truth.sum()
    uniform = np.full(20, 0.05)
    bells = [tv(hb.estimate(bell(50, seed)).probabilities, truth) for seed in range(10)]
    assert np.mean(bells) < 0.25 < 0.45 < tv(uniform, truth)
    few = [tv(hb.estimate(even(50, seed, 1.0)).probabilities, uniform) for seed in range(10)]
    more = [tv(hb.estimate(even(500, seed, 1.0)).probabilities, uniform) for seed in range(10)]
    assert np.mean(few) < 0.13
    assert np.mean(more) < 0.03


def test_many_reports_of_an_even_line_give_exactly_equal_shares() -> None:
    counts = np.full(20, 10_000)
    estimate = hb.estimate(hb.Reports.from_counts(hb.RandomizedResponse(TWENTY, 1.0), counts))
    assert np.ptp(estimate.probabilities) == 0.0
    assert estimate.status.startswith("the uniform distribution: the reports do not show")
    average = average_curves(*weighted(even(100, 1, 1.0)))
    assert average.weights.sum() == pytest.approx(1.0)


def weighted(reports: hb.Reports) -> tuple[Any, Floats, CurvePriors]:
    return reports.channel, reports.weights, CurvePriors.of(DomainShape.of(reports.domain))
