"""The baselines of the accuracy study against answers found in other ways: by hand, or by a general optimiser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

import hubbub as hb
from benchmark_modules import benchmark

Floats = NDArray[np.float64]
WORDS, LINE = hb.Categories(range(6)), hb.Integers(0, 7)


@pytest.fixture(scope="module")
def rivals() -> Any:
    return benchmark("rivals")


@pytest.fixture(scope="module")
def unfolding() -> Any:
    return benchmark("unfolding")


def responses(counts: list[int], epsilon: float = 2.0) -> hb.Reports:
    return hb.Reports.from_counts(hb.RandomizedResponse(hb.Categories(range(len(counts))), epsilon), counts)


def on_a_line(users: int = 2_000, epsilon: float = 0.7) -> hb.Reports:
    mechanism = hb.TruncatedGeometric(LINE, epsilon)
    truth = np.array([1.0, 2.0, 5.0, 7.0, 4.0, 1.0, 0.5, 0.2])
    expected = users * (truth / truth.sum()) @ mechanism.matrix()
    return hb.Reports.from_counts(mechanism, np.random.default_rng(5).poisson(expected))


def minimum(function: Any, size: int, least: float | None) -> Floats:
    """Return where a function of numbers that add up to 1 is least, found by a general optimiser."""
    optimise: Any = minimize
    answer = optimise(
        function,
        np.full(size, 1.0 / size),
        bounds=[(least, None)] * size,
        constraints={"type": "eq", "fun": lambda theta: theta.sum() - 1.0},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 2_000},
    )
    return np.asarray(answer.x)


def maximum_on_simplex(function: Any, size: int) -> Floats:
    return minimum(lambda theta: -function(theta), size, least=1e-12)


def test_unbiased_shares_have_the_deviations_that_simulated_studies_have(rivals: Any) -> None:
    rng = np.random.default_rng(3)
    truth = np.array([0.5, 0.3, 0.1, 0.1, 0.0, 0.0, 0.0, 0.0])
    for mechanism in (hb.RandomizedResponse(LINE, 1.0), hb.TruncatedGeometric(LINE, 0.8)):
        drawn = [
            rivals.Unbiased.of(hb.Reports.from_counts(mechanism, rng.multinomial(4_000, truth @ mechanism.matrix())))
            for _ in range(600)
        ]
        scattered = np.std([one.shares for one in drawn], axis=0)
        said = np.mean([one.deviations for one in drawn], axis=0)
        # 600 draws know a standard deviation to 2.9%; eight values, two mechanisms: four of these.
        np.testing.assert_allclose(said, scattered, rtol=0.12)
        assert np.mean([one.shares for one in drawn], axis=0) == pytest.approx(truth, abs=0.01)


def test_norm_sub_is_the_nearest_distribution(rivals: Any) -> None:
    reports = responses([500, 160, 90, 60, 40, 30])
    unbiased = rivals.Unbiased.of(reports).shares
    assert unbiased.min() < 0.0
    nearest = maximum_on_simplex(lambda theta: -((theta - unbiased) ** 2).sum(), 6)
    assert rivals.norm_sub(reports) == pytest.approx(nearest, abs=1e-6)
    assert rivals.norm_sub(reports) == pytest.approx(hb.estimate(reports, "inv-p").probabilities, abs=1e-12)


def with_shares(
    rivals: Any, monkeypatch: pytest.MonkeyPatch, shares: list[float], deviation: float = 0.1
) -> hb.Reports:
    """Return any reports, for which inversion seems to have found these shares."""
    spread = np.full(len(shares), deviation)
    unbiased = rivals.Unbiased(np.array(shares), spread, spread)
    monkeypatch.setattr(rivals.Unbiased, "of", classmethod(lambda cls, reports: unbiased))
    return responses([1_000] + [0] * (len(shares) - 1))


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([0.5, 0.3, 0.15, 0.12, -0.07], [0.5 / 0.95, 0.3 / 0.95, 0.15 / 0.95, 0.0, 0.0]),
        ([0.5, 0.3, -0.1, -0.2, -0.3], [0.625, 0.375, 0.0, 0.0, 0.0]),  # less than 1: only scaled
        ([1.2, 0.1, -0.1, -0.1, -0.1], [1.0, 0.0, 0.0, 0.0, 0.0]),
    ],
)
def test_norm_cut_by_hand(
    rivals: Any, monkeypatch: pytest.MonkeyPatch, shares: list[float], expected: list[float]
) -> None:
    assert rivals.norm_cut(with_shares(rivals, monkeypatch, shares)) == pytest.approx(np.array(expected))


def test_base_cut_keeps_what_is_significant(rivals: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 0.1 * 2.6520698  # the normal quantile of 1 - 0.02 / 5, from a table
    reports = with_shares(rivals, monkeypatch, [0.6, limit + 1e-6, limit - 1e-6, 0.1, -0.1])
    total = 0.6 + limit
    assert rivals.base_cut(reports) == pytest.approx(np.array([0.6, limit, 0.0, 0.0, 0.0]) / total, abs=1e-5)
    nothing = with_shares(rivals, monkeypatch, [0.2] * 5)
    assert rivals.base_cut(nothing) == pytest.approx(np.full(5, 0.2))


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.2])
def test_the_power_prior_by_numerical_integration(rivals: Any, exponent: float) -> None:
    shares, deviations, least = np.array([0.4, 0.03, -0.01]), np.array([0.02, 0.02, 0.01]), 1e-3
    law = rivals.PowerLaw.of(rivals.Unbiased(shares, deviations, deviations), least)
    total = quad(lambda x: x**-exponent, least, 1.0)[0]

    def moment(order: int, share: float, deviation: float) -> float:
        density = norm(share, deviation).pdf
        return float(
            quad(lambda x: x ** (order - exponent) * density(x), least, 1.0, points=[max(least, share)], limit=400)[0]
        )

    masses, firsts = ([moment(order, *one) for one in zip(shares, deviations, strict=True)] for order in (0, 1))
    assert law.log_likelihood(exponent) == pytest.approx(np.log(np.array(masses) / total).sum(), abs=2e-3)
    assert law.expectations(exponent) == pytest.approx(np.array(firsts) / masses, rel=2e-3)


def test_power_takes_the_exponent_of_largest_likelihood(rivals: Any) -> None:
    reports = responses([500, 160, 90, 60, 40, 30])
    law = rivals.PowerLaw.of(rivals.Unbiased.of(reports), 1.0 / reports.users)
    low, high = rivals.EXPONENTS
    exponents = np.linspace(low, high, 2_001)
    best = exponents[np.argmax([law.log_likelihood(exponent) for exponent in exponents])]
    assert rivals.power(reports) == pytest.approx(rivals.scaled(law.expectations(best)), abs=1e-3)


def test_the_nonparametric_prior_is_a_maximum(rivals: Any) -> None:
    grid, estimates = np.linspace(0.0, 0.5, 9), np.array([-0.05, 0.02, 0.04, 0.3, 0.41])
    densities = norm.pdf(estimates, grid[:, None], 0.06)
    weights = rivals.mixture_weights(densities)
    brute = maximum_on_simplex(lambda theta: np.log(theta @ densities).sum(), 9)
    assert np.log(weights @ densities).sum() >= np.log(brute @ densities).sum() - 1e-9
    assert weights == pytest.approx(brute, abs=2e-4)
    assert (densities @ (1.0 / (weights @ densities))).max() <= 5.0 * (1.0 + 1e-6)  # the first-order conditions


def test_empirical_bayes_shrinks_alike_values_together(rivals: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Two groups ten deviations apart: each value gets the mean of its group, as a prior of two points would give.
    shares = [0.30, 0.31, 0.29, 0.02, 0.03, 0.01, 0.04]
    found = rivals.empirical_bayes(with_shares(rivals, monkeypatch, shares, deviation=0.027))
    assert found == pytest.approx(np.array([0.3] * 3 + [0.025] * 4), abs=2e-3)


def test_without_an_inverse_there_is_no_such_rival(rivals: Any) -> None:
    two = responses([50, 20, 30]) + responses([50, 20, 30], epsilon=1.0)
    for name in ("norm-sub", "norm-cut", "base-cut", "power", "empirical Bayes"):
        assert rivals.RIVALS[name](two) is None
    for name in ("spline", "Tikhonov", "Tikhonov SURE"):
        assert rivals.RIVALS[name](responses([50, 20, 30])) is None


def test_spline_unfolding_without_noise_counts(unfolding: Any) -> None:
    # An output tells its value: one update of EM, from wherever the spline is, gives the counts themselves.
    counts = np.array([5, 60, 200, 330, 220, 120, 40, 25])
    reports = hb.Reports.from_counts(hb.TruncatedGeometric(LINE, 40.0), counts)
    assert unfolding.spline_unfolding(reports) == pytest.approx(counts / counts.sum(), abs=1e-9)


def test_splines_are_as_close_as_counts_scatter(unfolding: Any) -> None:
    places = np.arange(60.0)
    smooth = 400.0 * np.exp(-0.5 * ((places - 30.0) / 9.0) ** 2) + 20.0
    counts = np.random.default_rng(1).poisson(smooth).astype(np.float64)
    fitted = counts.sum() * unfolding.splined(counts)
    assert ((fitted - counts) ** 2 / np.maximum(counts, 1.0)).sum() == pytest.approx(60.0, rel=0.03)


@pytest.mark.parametrize("relative", [1e-3, 1e-1, 10.0])
def test_tikhonov_minimises_its_sum(unfolding: Any, relative: float) -> None:
    response = unfolding.Response.of(on_a_line())
    problem = unfolding.Tikhonov.of(response, unfolding.curvature(LINE))
    strength = relative * problem.scale
    users = response.counts.sum()
    differences = np.diff(np.eye(8), n=2, axis=0)

    def loss(shares: Floats) -> float:
        misfit = (response.counts - users * shares @ response.matrix) ** 2 / np.maximum(response.counts, 1.0)
        return float(misfit.sum() + strength * ((users * differences @ shares) ** 2).sum())

    brute = minimum(loss, 8, least=None)
    assert problem.at(strength) / users == pytest.approx(brute, abs=2e-4)
    assert loss(problem.at(strength) / users) <= loss(brute) * (1.0 + 1e-9)


def test_the_corner_of_the_l_curve(unfolding: Any) -> None:
    problem = unfolding.Tikhonov.of(unfolding.Response.of(on_a_line()), unfolding.curvature(LINE))
    corner = np.log(problem.corner())

    def bend(place: float, step: float = 0.05) -> float:
        before, here, after = (np.array(problem.logs(np.exp(place + shift))) for shift in (-step, 0.0, step))
        first, second = (after - before) / (2 * step), (after - 2 * here + before) / step**2
        return float((first[0] * second[1] - second[0] * first[1]) / (first @ first) ** 1.5)

    places = np.log(problem.scale) + np.log(10.0) * np.linspace(-8.5, 4.5, 400)
    assert bend(corner) >= 0.95 * max(bend(place) for place in places)


@pytest.mark.parametrize("relative", [1e-4, 1e-1, 100.0])
def test_degrees_of_freedom_are_the_derivative_of_the_fit(unfolding: Any, relative: float) -> None:
    response = unfolding.Response.of(on_a_line())
    problem = unfolding.Tikhonov.of(response, unfolding.curvature(LINE))
    strength, weights = relative * problem.scale, 1.0 / np.maximum(response.counts, 1.0)

    def fit(counts: Floats) -> Floats:
        other = unfolding.Response(response.matrix, counts)
        projected = response.matrix @ (weights * counts)
        moved = unfolding.Tikhonov(other, problem.differences, problem.information, projected, problem.penalty)
        return np.asarray(moved.at(strength) @ response.matrix)

    slopes = [(fit(response.counts + one)[place] - fit(response.counts)[place]) for place, one in enumerate(np.eye(8))]
    assert problem.freedom(strength) == pytest.approx(sum(slopes), abs=1e-4)


def test_the_strength_of_least_risk(unfolding: Any) -> None:
    problem = unfolding.Tikhonov.of(unfolding.Response.of(on_a_line()), unfolding.curvature(LINE))
    chosen = problem.least_risk()

    def risk(strength: float) -> float:
        residual = problem.response.counts - problem.at(strength) @ problem.response.matrix
        misfit = (residual**2 / np.maximum(problem.response.counts, 1.0)).sum()
        return float(misfit + 2.0 * problem.freedom(strength))

    assert risk(chosen) <= min(risk(1.8 * chosen), risk(chosen / 1.8))
    assert problem.shares(chosen) == pytest.approx(unfolding.tikhonov_sure(on_a_line()))


def test_curvature_on_a_map_has_both_axes(unfolding: Any) -> None:
    grid = hb.Grid(4, 3, cell=1.0)
    bowl = np.array([[column**2 + 3.0 * row**2 for column in range(4)] for row in range(3)]).ravel()
    assert sorted(unfolding.curvature(grid) @ bowl) == [2.0] * 6 + [6.0] * 4
    tilted = np.array([[column + 5.0 * row for column in range(4)] for row in range(3)]).ravel()
    assert unfolding.curvature(grid) @ tilted == pytest.approx(np.zeros(10))


@pytest.mark.parametrize("alpha", [2.0, 50.0, 2_000.0])
def test_entropy_is_maximised(unfolding: Any, alpha: float) -> None:
    reports = on_a_line()
    problem = unfolding.Entropy(reports.channel.dense(), reports.weights)
    found = problem.maximum(alpha, np.full(8, 0.125))
    brute = maximum_on_simplex(lambda theta: problem.penalised(alpha, theta), 8)
    assert found.sum() == pytest.approx(1.0)
    assert problem.penalised(alpha, found) >= problem.penalised(alpha, brute) - 1e-6
    assert found == pytest.approx(brute, abs=2e-3)


def test_the_weight_of_the_entropy_is_that_of_largest_evidence(unfolding: Any) -> None:
    reports = on_a_line()
    problem = unfolding.Entropy(reports.channel.dense(), reports.weights)
    answer = unfolding.maximum_entropy(reports)

    def lacks(alpha: float) -> float:
        """Return the well-measured directions less twice the weighted entropy: 0 at the largest evidence."""
        theta = problem.maximum(alpha, np.full(8, 0.125))
        measured = problem.measured(theta)
        return float((measured / (alpha + measured)).sum() - 2.0 * alpha * theta @ np.log(8.0 * theta))

    weights = np.array([4.0 * reports.users * 0.5**power for power in range(20)])
    fits = [np.abs(problem.maximum(alpha, np.full(8, 0.125)) - answer).max() for alpha in weights]
    chosen = weights[int(np.argmin(fits))]
    assert min(fits) < 1e-4
    assert lacks(2.0 * chosen) < 0.0 < lacks(chosen / 2.0)


def test_entropy_of_even_reports_is_even(unfolding: Any) -> None:
    assert unfolding.maximum_entropy(responses([100] * 6)) == pytest.approx(np.full(6, 1 / 6), abs=1e-12)


def test_all_rivals_give_distributions(rivals: Any) -> None:
    mechanism = hb.PlanarGeometric(hb.Grid(5, 4, cell=1.0), 1.0)
    values = np.random.default_rng(2).integers(0, 20, 500) // 2
    on_a_map = hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=3))
    unary = hb.Rappor(WORDS, 1.0)
    bits = hb.Reports.from_outputs(unary, unary.privatize(np.arange(60) % 4, rng=4))
    for reports in (on_a_line(), on_a_map, responses([400, 100, 50, 20]), bits, on_a_line(epsilon=0.1)):
        for name, rival in rivals.RIVALS.items():
            shares = rival(reports)
            if shares is not None:
                assert shares.shape == (len(reports.domain),), name
                assert shares.min() >= 0.0, name
                assert shares.sum() == pytest.approx(1.0), name
