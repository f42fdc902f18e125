"""Closed forms of matrix inversion, and when simulated studies can be compared with them."""

import math

import numpy as np
import pytest
from scipy import stats

import hubbub as hb
from hubbub.mechanisms.frequency_oracle import Support
from hubbub.planning.candidates import Candidate, candidates_from
from hubbub.planning.inversion_variance import InversionMap, deviation_ratio, support_kurtosis, support_variance
from hubbub.planning.pattern_simulation import PatternTable
from hubbub.planning.simulator import Simulator
from hubbub.planning.truths import truths_from
from hubbub.solvers import invert

TEN = hb.Integers(0, 9)
TOWN = hb.Grid(5, 4, cell=0.5)
SKEW = np.array([0.24, 0.2, 0.16, 0.12, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02])
LEVEL = 1e-4  # of the statistical tests here: all seeds are fixed


def candidate_of(mechanism: object) -> Candidate:
    (candidate,) = candidates_from(mechanism)
    return candidate


def test_the_closed_form_is_the_published_one() -> None:
    """Wang and others (2017), eq. 6 and section 4: variances for a value that nobody holds; and k-RR for any share."""
    users, e = 1_000, math.exp(1.3)
    nobody = np.array([1.0] + [0.0] * 9)
    oue = support_variance(hb.OptimizedUnary(TEN, 1.3).support, nobody, users)[1]
    assert oue == pytest.approx(4 * e / (users * (e - 1) ** 2))
    rappor = support_variance(hb.Rappor(TEN, 1.3).support, nobody, users)[1]
    assert rappor == pytest.approx(math.exp(0.65) / (users * (math.exp(0.65) - 1) ** 2))
    krr = support_variance(hb.RandomizedResponse(TEN, 1.3).support, nobody, users)[1]
    assert krr == pytest.approx((10 - 2 + e) / (users * (e - 1) ** 2))
    olh = support_variance(hb.LocalHashing(TEN, 1.3, buckets=5).support, nobody, users)[1]
    assert olh == pytest.approx((e - 1 + 5) ** 2 / (users * (e - 1) ** 2 * (5 - 1)))


@pytest.mark.parametrize("reports", ["k-RR", "RAPPOR", "OUE", "subsets", "OLH", "noise", "endless", "tall", "map"])
def test_inversion_spreads_as_its_closed_form_says(reports: str) -> None:
    mechanism = {
        "k-RR": hb.RandomizedResponse(TEN, 1.0),
        "RAPPOR": hb.Rappor(TEN, 1.0),
        "OUE": hb.OptimizedUnary(TEN, 1.0),
        "subsets": hb.SubsetSelection(TEN, 1.0),
        "OLH": hb.LocalHashing(TEN, 1.0),
        "noise": hb.TruncatedGeometric(TEN, 1.0),
        "endless": hb.Geometric(TEN, 1.0),
        "tall": hb.Matrix(TEN, list(range(14)), np.random.default_rng(3).dirichlet(np.full(14, 0.5), size=10)),
        "map": hb.PlanarGeometric(TOWN, 2.0),
    }[reports]
    truth = truths_from("zipf", mechanism.domain)[0].probabilities
    simulator = Simulator(candidate_of(mechanism), "inv-p")
    runs = 600
    batch = simulator.batch(2_000, truth, runs, np.random.default_rng(5))
    measured = simulator.deviation_ratio(batch.squares, truth, 2_000)
    # The mean of squares has this relative error; that of the root is half of it.
    error = float(batch.squares.std() / batch.squares.mean()) / math.sqrt(runs) / 2.0
    away = stats.norm.isf(LEVEL / 2) * error
    assert measured == pytest.approx(1.0, abs=away)
    wrong = simulator.variance(truth, 2_000)
    assert wrong is not None
    assert deviation_ratio(batch.squares, wrong * 0.8) != pytest.approx(1.0, abs=away)  # a planted fault
    if simulator.tables is not None and simulator.inversion is not None:
        counts = simulator.tables.draw(500, truth, 2, np.random.default_rng(6))
        inverted = [invert(simulator.tables.reports(own)) for own in counts]
        np.testing.assert_allclose(simulator.inversion.apply(counts.astype(float)), inverted, atol=1e-9)


@pytest.mark.parametrize("mechanism", [hb.RandomizedResponse(TEN, 8.0), hb.OptimizedUnary(hb.Integers(0, 19), 8.0)])
def test_closed_forms_are_not_compared_with_few_studies_of_rare_values(mechanism: hb.Mechanism) -> None:
    """Most studies then have no error at all: their mean is not that of the formula, and nothing is wrong."""
    truth = np.zeros(len(mechanism.domain))
    truth[:2] = 0.999, 0.001
    simulator = Simulator(candidate_of(mechanism), "inv-p")
    assert simulator.variance(truth, 10) is not None
    batch = simulator.batch(10, truth, 16, np.random.default_rng(1))
    assert simulator.deviation_ratio(batch.squares, truth, 10) is None
    many = simulator.batch(1_000_000, truth, 400, np.random.default_rng(1))
    assert simulator.deviation_ratio(many.squares, truth, 1_000_000) == pytest.approx(1.0, abs=0.15)


def test_the_kurtosis_of_one_users_error() -> None:
    """Of a coin: (1 - p)^4 p + p^4 (1 - p) over (p (1 - p))^2; of sets it is bounded."""
    coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), 1.0)
    table = PatternTable.of(coin, 1)
    assert table is not None
    inverse = InversionMap.of(table)
    assert inverse is not None
    truth = np.array([0.9, 0.1])
    p = coin.matrix()[0, 0] * 0.9 + coin.matrix()[1, 0] * 0.1
    exact = ((1 - p) ** 4 * p + p**4 * (1 - p)) / (p * (1 - p)) ** 2
    assert inverse.kurtosis(truth) == pytest.approx(exact)
    assert support_kurtosis(coin.support, truth) >= exact


def test_a_matrix_and_its_frequency_oracle_have_one_variance() -> None:
    krr = hb.RandomizedResponse(TEN, 0.9)
    twin = hb.Matrix(TEN, list(range(10)), krr.matrix())
    own, other = (PatternTable.of(mechanism, 1) for mechanism in (krr, twin))
    assert own is not None
    assert other is not None
    first, second = InversionMap.of(own), InversionMap.of(other)
    assert first is not None
    assert second is not None
    assert np.allclose(first.variance(SKEW, 77), second.variance(SKEW, 77))
    counts = np.arange(20.0).reshape(2, 10) + 1
    assert np.allclose(first.apply(counts), second.apply(counts))
    assert Support(0.5, 0.1) == (0.5, 0.1)
