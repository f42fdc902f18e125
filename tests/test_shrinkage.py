"""Categories: the evidence on each share, the prior that all of it reveals, and how far the maximum is shrunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

import hubbub as hb
from auto_studies import skewed, tv
from hubbub.channels.base import structured_only
from hubbub.estimators import reestimate
from hubbub.estimators.auto import allowed_region, empirical_bayes, share_evidence
from hubbub.estimators.auto.empirical_bayes import posterior_means
from hubbub.estimators.auto.share_evidence import ShareEvidence
from hubbub.estimators.auto.shrinkage import shrink
from hubbub.likelihood import Likelihood

Floats = NDArray[np.float64]

FIVE = hb.Categories(list("abcde"))
SYMMETRIC: list[hb.Mechanism] = [
    hb.RandomizedResponse(FIVE, 1.0),
    hb.Rappor(FIVE, 1.5),
    hb.OptimizedUnary(FIVE, 1.0),
    hb.LocalHashing(FIVE, 1.0),
    hb.SubsetSelection(FIVE, 1.0, size=2),
]


def drawn(mechanism: hb.Mechanism, truth: Floats, users: int, seed: int) -> hb.Reports:
    rng = np.random.default_rng(seed)
    values = mechanism.domain.labels[rng.choice(len(truth), users, p=truth)]
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


def evidence_of(reports: hb.Reports) -> ShareEvidence:
    evidence = ShareEvidence.of(reports.channel, reports.weights)
    assert evidence is not None
    return evidence


def written_log_likelihood(reports: hb.Reports, value: int, share: float) -> float:
    """The value has its share and all others the same: the log-likelihood, up to what does not depend on the share."""
    matrix = reports.channel.dense()
    theta = np.full(len(matrix), (1.0 - share) / (len(matrix) - 1))
    theta[value] = share
    even = np.full(len(matrix), 1.0 / len(matrix))
    return float(reports.weights @ (np.log(theta @ matrix) - np.log(even @ matrix)))


# -- evidence --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", SYMMETRIC, ids=lambda mechanism: type(mechanism).__name__)
def test_the_evidence_on_a_share_is_its_likelihood_if_others_are_even(mechanism: hb.Mechanism) -> None:
    reports = drawn(mechanism, np.array([0.5, 0.2, 0.2, 0.1, 0.0]), 300, 1)
    evidence = evidence_of(reports)
    shares = np.array([0.0, 0.1, 0.2, 0.55, 0.9])
    found = evidence.log_likelihood(shares)[evidence.group]
    expected = [[written_log_likelihood(reports, value, share) for share in shares.tolist()] for value in range(5)]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    for value in range(5):
        best: Any = optimize.minimize_scalar(
            lambda share, value=value: -written_log_likelihood(reports, value, share), bounds=(0, 1), method="bounded"
        )
        assert evidence.likeliest[evidence.group][value] == pytest.approx(best.x, abs=1e-4)


@pytest.mark.parametrize("mechanism", SYMMETRIC, ids=lambda mechanism: type(mechanism).__name__)
def test_information_is_the_mean_curvature_of_the_likelihood(mechanism: hb.Mechanism) -> None:
    step, share = 1e-3, 0.3
    information, curvatures = [], []
    for seed in range(40):
        evidence = evidence_of(drawn(mechanism, np.array([share, 0.4, 0.2, 0.1, 0.0]), 500, seed))
        near = evidence.log_likelihood(np.array([share - step, share, share + step]))[evidence.group[0]]
        curvatures.append(-(near[0] - 2 * near[1] + near[2]) / step**2)
        information.append(evidence.information(np.array([share]))[0])
    assert np.mean(information) == pytest.approx(np.mean(curvatures), abs=4 * np.std(curvatures) / 40**0.5)
    if isinstance(mechanism, hb.RandomizedResponse):  # then all that counts is how many users sent the value
        other = 1 / (np.exp(1.0) + 4)
        sent = other + (np.exp(1.0) - 1) * other * share
        fisher = 500 * ((np.exp(1.0) - 1) * other) ** 2 / (sent * (1 - sent))
        np.testing.assert_allclose(information, fisher, rtol=1e-9)


@pytest.mark.parametrize("mechanism", SYMMETRIC[1:4], ids=lambda mechanism: type(mechanism).__name__)
def test_many_ratios_are_merged_without_a_trace(mechanism: hb.Mechanism, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = hb.Categories(list(range(12)))
    reports = drawn(type(mechanism)(domain, 1.0), np.full(12, 1 / 12), 2_000, 2)  # type: ignore[call-arg]
    shares = np.array([0.0, 0.05, 0.2, 0.6])
    merged = evidence_of(reports)
    assert reports.channel.patterns > share_evidence.MAX_DISTINCT_RATIOS
    assert merged.counts.any(axis=0).all()  # bins into which nobody falls are left out: sets have few ratios
    assert merged.ratios.shape[1] < 30
    monkeypatch.setattr(share_evidence, "MAX_DISTINCT_RATIOS", 10**6)
    exact = evidence_of(reports)
    np.testing.assert_allclose(merged.log_likelihood(shares), exact.log_likelihood(shares), atol=0.02)
    np.testing.assert_allclose(merged.likeliest, exact.likeliest, atol=1e-3)
    np.testing.assert_allclose(merged.information(shares), exact.information(shares), rtol=1e-2)


def test_hits_alone_are_the_same_evidence_as_the_matrix() -> None:
    reports = drawn(hb.RandomizedResponse(FIVE, 1.0), np.array([0.6, 0.1, 0.1, 0.1, 0.1]), 500, 3)
    with structured_only():
        structured = drawn(hb.RandomizedResponse(FIVE, 1.0), np.array([0.6, 0.1, 0.1, 0.1, 0.1]), 500, 3)
        hits = evidence_of(structured)
    shares = np.array([0.0, 0.2, 0.7])
    assert hits.ratios.shape[1] == 2
    exact = evidence_of(reports)
    np.testing.assert_allclose(
        hits.log_likelihood(shares)[hits.group], exact.log_likelihood(shares)[exact.group], atol=1e-9
    )
    # And these are binomial likelihoods of the users who sent a value.
    chance, other = np.exp(1.0) / (np.exp(1.0) + 4), 1 / (np.exp(1.0) + 4)
    sent = hits.counts[hits.group][:, 0]
    logs = stats.binom.logpmf(sent[:, None], 500, other + (chance - other) * shares)
    np.testing.assert_allclose(
        np.diff(hits.log_likelihood(shares)[hits.group], axis=1), np.diff(logs, axis=1), atol=1e-9
    )


def test_channels_too_large_to_be_gone_through_have_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    reports = drawn(hb.Rappor(FIVE, 1.0), np.full(5, 0.2), 300, 1)
    monkeypatch.setattr(share_evidence, "MAX_ENTRIES", 10)
    assert ShareEvidence.of(reports.channel, reports.weights) is None
    estimate = hb.estimate(reports)
    assert estimate.settings["empirical_bayes"] == 0.0


# -- the prior -------------------------------------------------------------------------------------------


def test_the_prior_is_the_likeliest_and_the_means_are_its_posterior() -> None:
    domain = hb.Categories(list(range(40)))
    truth = np.repeat([0.1, 0.4 / 36], [6, 34])
    reports = drawn(hb.RandomizedResponse(domain, 2.0), truth / truth.sum(), 20_000, 4)
    evidence = evidence_of(reports)
    found = posterior_means(evidence)[0]
    atoms = empirical_bayes._atoms(evidence)
    logs = evidence.log_likelihood(atoms)[evidence.group]
    table = np.exp(logs - logs.max(axis=1, keepdims=True))
    prior = np.full(atoms.size, 1 / atoms.size)
    for _ in range(20_000):  # plain EM
        prior = prior * (table.T @ (1 / (table @ prior))) / 40
    posterior = table * prior / (table @ prior)[:, None]
    means = posterior @ atoms
    errors = posterior @ atoms**2 - means**2 + (1 - posterior[:, 0]) / evidence.information(means)
    np.testing.assert_allclose(found.probabilities, means + (1 - means.sum()) * errors / errors.sum(), atol=2e-4)
    even = np.argmin(np.abs(atoms - 1 / 40))
    gain = 2 * float(np.sum(np.log(table @ prior) - np.log(table[:, even])))
    assert found.likelihood_ratio == pytest.approx(gain, abs=0.02)
    assert tv(found.probabilities, truth / truth.sum()) < 0.5 * tv(hb.estimate(reports, "mle").probabilities, truth)


def test_what_posterior_means_lack_goes_to_values_that_may_have_it() -> None:
    found = empirical_bayes._with_sum_1(np.array([0.6, 0.2, 0.0, 0.0]), np.array([0.03, 0.01, 0.0, 0.0]))
    np.testing.assert_allclose(found, [0.75, 0.25, 0.0, 0.0])
    too_much = empirical_bayes._with_sum_1(np.array([1.0, 0.01, 0.19, 0.0]), np.array([1.0, 1.0, 2.0, 1.0]))
    np.testing.assert_allclose(too_much, [1 - 0.19 / 3, 0.0, 0.19 / 3, 0.0], atol=1e-12)
    np.testing.assert_allclose(empirical_bayes._with_sum_1(np.zeros(4), np.zeros(4)), 0.25)


def test_a_word_that_all_say_is_found_among_a_thousand() -> None:
    words = hb.RandomizedResponse(hb.Categories(list(range(1_000))), 2.0)
    errors = []
    for seed in range(5):
        reports = drawn(words, np.eye(1_000)[7], 10_000, seed)
        errors.append(1.0 - float(hb.estimate(reports).probabilities[7]))
    assert np.mean(errors) < 0.05  # the maximum of the likelihood gives it about a half


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("values", "epsilon", "users"),
    [(5, 1.0, 2_000), (32, 1.0, 1_000), pytest.param(100, 4.0, 300, marks=pytest.mark.slow)],
)
def test_equal_shares_are_refuted_in_one_study_of_twenty_at_most(values: int, epsilon: float, users: int) -> None:
    mechanism, rng = hb.RandomizedResponse(hb.Categories(list(range(values))), epsilon), np.random.default_rng(5)
    gains = []
    for _ in range(120):
        counts = rng.multinomial(users, np.full(values, 1 / values))
        gains.append(posterior_means(evidence_of(hb.Reports.from_counts(mechanism, counts)))[0].likelihood_ratio)
    refuted = int(np.sum(np.array(gains) > 5.0))
    assert stats.binom.sf(refuted - 1, 120, 0.05) > 1e-3
    assert np.min(gains) > -3.0  # equal shares are one of the priors, or cannot be told from 0


# -- shrinkage -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [2, 3])
@pytest.mark.parametrize("users", [12, 50, 5_000])
def test_two_or_three_values_get_maximum_likelihood(values: int, users: int) -> None:
    rng = np.random.default_rng(users)
    for mechanism in (
        hb.RandomizedResponse(hb.Categories(list(range(values))), 1.5),
        hb.Rappor(hb.Categories(list(range(values))), 1.5),
        hb.RandomizedResponse(hb.Integers(1, values), 1.5),
    ):
        truth = rng.dirichlet(np.ones(values))
        reports = drawn(mechanism, truth, users, users)
        found, exact = hb.estimate(reports), hb.estimate(reports, "mle")
        assert found.probabilities.tolist() == exact.probabilities.tolist()
        assert found.status == f"maximum likelihood: with {values} values there is nothing to shrink"


def test_the_study_of_the_textbook() -> None:
    """36 yes and 14 no of 50 with epsilon 2: the share is what inverting the response gives."""
    reports = hb.Reports.from_counts(hb.RandomizedResponse(hb.Categories(["yes", "no"]), 2.0), [36, 14])
    truthful = np.exp(2.0) / (np.exp(2.0) + 1)
    expected = (36 / 50 - (1 - truthful)) / (2 * truthful - 1)
    estimate = hb.estimate(reports)
    assert estimate.probabilities[0] == pytest.approx(expected, abs=1e-9)
    interval = hb.interval(reports, "yes")
    assert interval.low < estimate.probabilities[0] < interval.high


@pytest.mark.parametrize("mechanism", [hb.OptimizedUnary, hb.RandomizedResponse], ids=["unary", "response"])
def test_two_values_get_it_however_little_the_reports_tell(mechanism: Any) -> None:
    two = mechanism(hb.Categories(["yes", "no"]), 0.05)
    reports = drawn(two, np.array([0.9, 0.1]), 50, 1)
    found, exact = hb.estimate(reports), hb.estimate(reports, "mle")
    assert found.probabilities.tolist() == exact.probabilities.tolist()
    assert "nothing can be learned" not in found.status


@pytest.mark.parametrize("seed", range(6))
def test_the_answer_is_a_mixture_that_the_reports_allow(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = int(rng.integers(4, 60))
    domain = hb.Categories(list(range(values)))
    truth = rng.dirichlet(np.full(values, rng.choice([0.05, 0.5, 5.0])))
    mechanism = [hb.RandomizedResponse, hb.Rappor, hb.LocalHashing][seed % 3](domain, float(rng.uniform(0.5, 3.0)))
    reports = drawn(mechanism, truth, int(rng.integers(20, 3_000)), seed)
    estimate, exact = hb.estimate(reports), hb.estimate(reports, "mle")
    parts = [estimate.settings[name] for name in ("equal_shares", "empirical_bayes", "maximum_likelihood")]
    assert sum(parts) == pytest.approx(1.0)
    assert min(parts) >= 0.0
    deviance = 2 * (exact.log_likelihood - estimate.log_likelihood)
    assert deviance <= stats.chi2.ppf(0.95, values - 1) + 1e-6
    assert estimate.settings["chosen"] in ("equal shares", "empirical Bayes", "maximum likelihood")
    again = reestimate(reports, np.tile(reports.weights, (2, 1)), estimate)
    np.testing.assert_allclose(again, np.tile(estimate.probabilities, (2, 1)), atol=1e-6)


def test_a_distribution_that_reports_refute_is_pulled_inside() -> None:
    reports = drawn(hb.RandomizedResponse(FIVE, 1.0), np.array([0.8, 0.2, 0.0, 0.0, 0.0]), 4_000, 1)
    likelihood = Likelihood.of(reports)
    maximum, uniform = hb.estimate(reports, "mle").probabilities, np.full(5, 0.2)
    limit = stats.chi2.ppf(0.95, 4)
    assert allowed_region.deviance(likelihood, uniform, maximum) > limit
    inside, part = allowed_region.pull_inside(likelihood, uniform, maximum)
    assert 0.0 < part < 1.0
    assert allowed_region.deviance(likelihood, inside, maximum) <= limit
    same, none = allowed_region.pull_inside(likelihood, inside, maximum)
    assert none == 0.0
    assert same.tolist() == inside.tolist()


def test_mechanisms_that_treat_values_differently_fall_back_on_the_maximum() -> None:
    """What the evidence assumes does not hold there: the deviance notices."""
    table = skewed(np.random.default_rng(1), 8, 8).matrix
    mechanism = hb.Matrix(hb.Categories(list(range(8))), list(range(8)), table)
    truth = np.array([0.5, 0.3, 0.1, 0.1, 0.0, 0.0, 0.0, 0.0])
    reports = drawn(mechanism, truth, 30_000, 1)
    shrunk = shrink(Likelihood.of(reports), hb.estimate(reports, "mle").probabilities)
    assert tv(shrunk.probabilities, truth) < 1.1 * tv(hb.estimate(reports, "mle").probabilities, truth)


@pytest.mark.parametrize(
    ("name", "kind", "epsilon"),
    [
        pytest.param("k-RR", hb.RandomizedResponse, 2.0, id="k-RR"),
        pytest.param("RAPPOR", hb.Rappor, 1.0, id="RAPPOR", marks=pytest.mark.slow),
        pytest.param("OLH", hb.LocalHashing, 1.0, id="OLH", marks=pytest.mark.slow),
    ],
)
def test_sparse_categories_are_found(name: str, kind: Any, epsilon: float) -> None:
    domain = hb.Categories(list(range(100)))
    truth = np.zeros(100)
    truth[[3, 17, 40, 41, 90]] = 0.2
    errors = {"auto": 0.0, "inv-p": 0.0, "mle": 0.0}
    for seed in range(3):
        reports = drawn(kind(domain, epsilon), truth, 10_000, seed)
        for method in errors:
            errors[method] += tv(hb.estimate(reports, method).probabilities, truth)
    assert errors["auto"] < 0.7 * min(errors["inv-p"], errors["mle"]), name


def test_what_was_shrunk_is_told() -> None:
    ten = hb.RandomizedResponse(hb.Categories(list(range(10))), 1.0)
    even = hb.estimate(hb.Reports.from_counts(ten, [100] * 10))
    assert even.status == "equal shares: the reports do not show that any value is more frequent than another"
    assert even.settings["chosen"] == "equal shares"
    clear = hb.estimate(hb.Reports.from_counts(ten, np.arange(1, 11) ** 2 * 10_000))
    assert clear.status == "maximum likelihood: the reports are clear enough to be taken as they are"
    between = hb.estimate(hb.Reports.from_counts(ten, [118, 92, 108, 88, 100, 112, 96, 84, 103, 99]))
    assert between.status.startswith("an average of equal shares (")
    assert "maximum likelihood (" in between.status
    for estimate in (even, clear, between):
        assert "gap" not in estimate.status
