"""What an attacker guesses from the reports of one person: by definition, and by published values."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

import numpy as np
import pytest

import hubbub as hb
from hubbub.auditing.guess_measures import measure_guesses
from hubbub.core.arrays import Floats
from hubbub.core.progress import finish
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.local_hashing import hash_v1

FIVE, LINE = hb.Categories(list("abcde")), hb.Integers(0, 4)
SKEWED = np.array([0.1, 0.4, 0.05, 0.25, 0.2])
ZEROS = np.array([0.0, 0.6, 0.0, 0.4, 0.0])
UNIFORM = np.full(5, 0.2)
PRIORS = {"uniform": UNIFORM, "skewed": SKEWED, "zeros": ZEROS}


def drawn_matrix() -> hb.Matrix:
    rows = np.random.default_rng(3).dirichlet(np.full(4, 0.7), 5)
    return hb.Matrix(LINE, outputs=["p", "q", "r", "s"], probabilities=rows)


MECHANISMS: dict[str, Mechanism] = {
    "k-rr": hb.RandomizedResponse(FIVE, 1.0),
    "rappor": hb.Rappor(FIVE, 1.5),
    "oue": hb.OptimizedUnary(FIVE, 1.0),
    "subsets": hb.SubsetSelection(FIVE, 1.0, size=2),
    "oue on a line": hb.OptimizedUnary(LINE, 1.0),
    "geometric": hb.TruncatedGeometric(LINE, 0.7),
    "wave": hb.SquareWave(LINE, 1.0, reach=1),
    "matrix": drawn_matrix(),
    "daily": hb.LongitudinalResponse(FIVE, epsilon=2.0, first=1.0),
    "cloaking": hb.Cloaking(LINE, ["low", "low", "low", "high", "high"]),
}


def by_definition(matrix: Floats, prior: Floats, reports: int, distances: Floats) -> tuple[float, float]:
    """Return the vulnerability and the expected distance: a guess for each sequence of outputs."""
    right, missed = 0.0, 0.0
    for sequence in product(range(matrix.shape[1]), repeat=reports):
        joint = prior * matrix[:, list(sequence)].prod(axis=1)
        right += joint.max()
        missed += (distances @ joint).min()
    return right, missed


def distances_of(mechanism: Mechanism) -> Floats:
    places = np.arange(len(mechanism.domain))
    return mechanism.domain.distances_between(places, places)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_one_report_by_definition(name: str, prior: str) -> None:
    mechanism, shares = MECHANISMS[name], PRIORS[prior]
    right, missed = by_definition(mechanism.checked_matrix(), shares, 1, distances_of(mechanism))
    result = hb.attacker(mechanism, prior=shares)
    assert result.vulnerability == pytest.approx(right, rel=1e-12)
    assert result.distance == pytest.approx(missed, rel=1e-12)
    assert result.prior_vulnerability == shares.max()
    assert result.prior_distance == pytest.approx((distances_of(mechanism) @ shares).min())
    assert result.method != "simulated"


@pytest.mark.parametrize("reports", [2, 3])
@pytest.mark.parametrize("name", ["k-rr", "geometric", "matrix", "cloaking"])
def test_several_reports_by_definition(name: str, reports: int) -> None:
    mechanism = MECHANISMS[name]
    right, missed = by_definition(mechanism.checked_matrix(), SKEWED, reports, distances_of(mechanism))
    result = hb.attacker(mechanism, prior=SKEWED, reports_per_user=reports)
    assert result.method == "enumerated"
    assert result.vulnerability == pytest.approx(right, rel=1e-11)
    assert result.distance == pytest.approx(missed, rel=1e-11)


def test_unbounded_noise_tells_as_much_as_clamped_noise() -> None:
    free, clamped = hb.Geometric(LINE, 0.7), hb.TruncatedGeometric(LINE, 0.7)
    for reports in (1, 3):
        ours, other = (hb.attacker(each, prior=SKEWED, reports_per_user=reports) for each in (free, clamped))
        assert (ours.vulnerability, ours.distance) == (other.vulnerability, other.distance)


def test_reports_with_a_memory_by_definition() -> None:
    """All reports of a person come from one permanent response."""
    daily = hb.LongitudinalResponse(FIVE, epsilon=2.0, first=1.0)
    permanent = hb.RandomizedResponse(FIVE, 2.0).checked_matrix()
    # the second stage is k-RR, too, and both together are k-RR with `first`
    once = hb.RandomizedResponse(FIVE, 1.0).checked_matrix()
    second = np.linalg.solve(permanent, once)
    right = 0.0
    for one, two in product(range(5), repeat=2):
        right += (SKEWED * (permanent @ (second[:, one] * second[:, two]))).max()
    result = hb.attacker(daily, prior=SKEWED, reports_per_user=2)
    assert result.vulnerability == pytest.approx(right, rel=1e-6)  # the law is of whole numbers
    first = hb.attacker(daily, prior=SKEWED).vulnerability
    assert first == pytest.approx((SKEWED[:, None] * once).max(axis=0).sum())


def test_reports_of_one_device_are_those_that_it_can_send() -> None:
    """dBitFlip repeats its answers, and a cohort stays: lists that would need two devices have no probability."""
    usage = hb.DBitFlip(hb.Integers(0, 3), 2.0)
    once, often = hb.attacker(usage), hb.attacker(usage, reports_per_user=3)
    assert often.vulnerability == pytest.approx(once.vulnerability, rel=1e-12)
    assert often.distance == pytest.approx(once.distance, rel=1e-12)
    texts = hb.Categories(["aa", "bb", "cc"])
    start = hb.BloomRappor(texts, cohorts=2, bits=3, hashes=1, f=0.5, p=0.25, q=0.75)
    half, kept = 0.25, np.array(list(product((0, 1), repeat=3)))
    right = 0.0
    for cohort in range(2):
        filters = np.unpackbits(start.filters[cohort], axis=1, count=3)
        permanent = np.where(filters[:, None] == kept, 1 - half, half).prod(axis=2)  # values by permanent rows
        sent = np.where(kept[:, None] == 1, np.where(kept == 1, 0.75, 0.25), np.where(kept == 1, 0.25, 0.75)).prod(
            axis=2
        )
        pairs = (sent[:, :, None] * sent[:, None, :]).reshape(len(kept), -1)
        right += (permanent @ pairs / 3 / 2).max(axis=0).sum()
    assert hb.attacker(start, reports_per_user=2).vulnerability == pytest.approx(right, rel=1e-12)


def test_hashes_are_taken_to_be_random() -> None:
    hashed = hb.LocalHashing(FIVE, 1.5, buckets=3)
    formula = hb.attacker(hashed, prior=SKEWED).vulnerability
    seeds = np.random.default_rng(1).integers(0, 2**63, 40_000, dtype=np.uint64)
    buckets = hash_v1(seeds[:, None], np.arange(5)[None, :], 3)
    keep = math.exp(1.5) / (math.exp(1.5) + 2)
    each = np.zeros(seeds.size)
    for bucket in range(3):
        each += (SKEWED * np.where(buckets == bucket, keep, (1 - keep) / 2)).max(axis=1)
    error = each.std() / math.sqrt(seeds.size)
    assert abs(each.mean() - formula) < 5 * error
    # with the true hash, simulated
    found = finish(measure_guesses(hashed, SKEWED, 2, 0.999, np.random.default_rng(0)))
    assert found.method == "simulated"
    assert found.vulnerability[1] <= found.vulnerability[0] <= found.vulnerability[2]


@pytest.mark.parametrize("name", ["rappor", "geometric", "k-rr", "daily"])
def test_simulated_intervals_hold_the_exact_number(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = MECHANISMS[name]
    exact = hb.attacker(mechanism, prior=SKEWED, reports_per_user=2)
    assert exact.method == "enumerated"
    monkeypatch.setattr("hubbub.auditing.guess_measures.MAX_LISTS", 0)
    result = hb.attacker(mechanism, prior=SKEWED, reports_per_user=2, level=0.9999, rng=5)
    low, high = result.vulnerability_interval
    assert result.method == "simulated"
    assert low < exact.vulnerability < high
    assert high - low < 0.03
    assert result.distance_interval is not None
    assert exact.distance is not None
    assert result.distance_interval[0] < exact.distance < result.distance_interval[1]


@pytest.mark.slow
def test_hashed_reports_with_a_memory_tell_more_and_more() -> None:
    """They never tell more than the permanent response, given the seed."""
    daily = hb.LongitudinalHashing(FIVE, epsilon=2.0, first=1.0, buckets=3)
    found = [hb.attacker(daily, reports_per_user=reports).vulnerability for reports in (1, 2, 8, 200)]
    permanent = hb.attacker(hb.LocalHashing(FIVE, 2.0, buckets=3)).vulnerability
    assert found == sorted(found)
    assert found[-1] == pytest.approx(permanent, abs=0.01)


# -- what is published -------------------------------------------------------------------------------------


def test_a_deterministic_channel_leaks_the_logarithm_of_its_outputs() -> None:
    """Smith (2009): under a uniform prior, min-entropy leaks log2 of the number of outputs."""
    blocks = hb.Cloaking(hb.Integers(0, 7), [f"region {place // 2}" for place in range(8)])
    assert hb.attacker(blocks).min_entropy_leakage == pytest.approx(2.0)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_the_truncated_geometric_channel(epsilon: float) -> None:
    """Of k values with a = e^-epsilon, the ends are kept with 1 / (1 + a) and others with (1 - a) / (1 + a)."""
    alpha, size = math.exp(-epsilon), 9
    published = (2 + (size - 2) * (1 - alpha)) / (size * (1 + alpha))
    result = hb.attacker(hb.TruncatedGeometric(hb.Integers(1, size), epsilon))
    assert result.vulnerability == pytest.approx(published)


@pytest.mark.parametrize("values", [2, 7, 1000])
def test_randomized_response_reaches_the_bound_of_its_epsilon(values: int) -> None:
    """Alvim and others (2011): what has epsilon e over k values leaks at most k e^e / (k - 1 + e^e)."""
    domain = hb.Categories([str(place) for place in range(values)])
    bound = values * math.e / (values - 1 + math.e)
    assert hb.attacker(hb.RandomizedResponse(domain, 1.0)).leakage == pytest.approx(bound)
    kinds: list[Any] = [hb.Rappor, hb.OptimizedUnary, hb.LocalHashing, hb.SubsetSelection]
    for kind in kinds:
        assert 1.0 < hb.attacker(kind(domain, epsilon=1.0)).leakage <= bound * (1 + 1e-12)


def test_large_domains_have_formulas() -> None:
    """Of many values the own bit is what tells: a one there is e^epsilon times as likely."""
    domain = hb.Categories([str(place) for place in range(20_000)])
    found = hb.attacker(hb.OptimizedUnary(domain, 3.0))
    # all rows of bits have a one: own / other = (1 + e^3) / 2
    assert found.leakage == pytest.approx((1 + math.exp(3)) / 2)
    assert found.method == "formula"


# -- behaviour ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
def test_reports_never_help_less(name: str) -> None:
    results = [hb.attacker(MECHANISMS[name], prior=SKEWED, reports_per_user=reports) for reports in (1, 2)]
    first, second = (result.vulnerability for result in results)
    assert SKEWED.max() <= first * (1 + 1e-12)
    assert first <= second * (1 + 1e-9)
    for result in results:
        assert result.distance is not None
        assert result.prior_distance is not None
        assert result.distance <= result.prior_distance * (1 + 1e-12)


def test_a_prior_may_be_counts_or_an_estimate() -> None:
    coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), p=0.75)
    counts = hb.attacker(coin, prior={"yes": 80, "no": 20})
    assert counts.prior_vulnerability == 0.8
    assert counts.vulnerability == pytest.approx(0.8)  # one report changes no guess
    assert counts.min_entropy_leakage == pytest.approx(0.0)
    reports = hb.Reports.from_outputs(coin, ["yes"] * 70 + ["no"] * 30)
    estimate = hb.estimate(reports, method="mle")
    assert hb.attacker(coin, prior=estimate).prior_vulnerability == pytest.approx(estimate.probabilities.max())


def test_planted_faults_are_seen() -> None:
    """One row for all values, or a matrix that is transposed, has other numbers."""
    matrix = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.2, 0.6, 0.2]])
    domain = hb.Integers(0, 2)
    prior = np.array([0.2, 0.3, 0.5])
    own = hb.attacker(hb.Matrix(domain, ["a", "b", "c"], matrix), prior=prior)
    blind = hb.attacker(hb.Matrix(domain, ["a", "b", "c"], np.tile(matrix[0], (3, 1))), prior=prior)
    turned = matrix.T / matrix.T.sum(axis=1, keepdims=True)
    other = hb.attacker(hb.Matrix(domain, ["a", "b", "c"], turned), prior=prior)
    assert blind.leakage == pytest.approx(1.0)
    assert own.leakage > 1.05
    assert abs(own.vulnerability - other.vulnerability) > 0.005


def test_result_in_words_and_as_json() -> None:
    steps = hb.Laplace(LINE, 0.7)
    result = hb.attacker(steps, prior=SKEWED)
    text = result.explain()
    for word in ("frequencies you passed", f"{result.vulnerability:.4g}", "min-entropy", "misses by"):
        assert word in text
    document = json.loads(result.to_json())
    assert document == {"version": 1, "mechanism": "Laplace", **result.document()}
    assert document["vulnerability_low"] == document["vulnerability_high"] == document["vulnerability"]
    assert str(result) == text
    assert "Laplace" in result._repr_html_()
    assert "misses by" not in hb.attacker(MECHANISMS["k-rr"]).explain()  # the distance says the same
