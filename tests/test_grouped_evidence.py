"""Evidence on shares where a mechanism treats values in groups alike: Hadamard response in blocks."""

from __future__ import annotations

import numpy as np
import pytest

import hubbub as hb
from hubbub.estimators.auto.empirical_bayes import posterior_means
from hubbub.estimators.auto.share_evidence import GroupTotals, ShareEvidence

VALUES = 30


def drawn(mechanism: hb.HadamardResponse, theta: np.ndarray, users: int) -> hb.Reports:
    rng = np.random.default_rng(1)
    values = rng.choice(len(theta), users, p=theta)
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


def skewed(values: int) -> np.ndarray:
    theta = 1.0 / np.arange(1, values + 1)
    return np.asarray(theta / theta.sum())


def test_groups_are_the_blocks_with_several_values() -> None:
    for blocks, known in ((1, False), (4, True), (8, True), (32, False)):
        mechanism = hb.HadamardResponse(hb.Integers(0, VALUES - 1), 2.0, blocks=blocks)
        channel = mechanism.channel(np.arange(10))
        if not known:
            assert channel.value_groups is None
            continue
        assert channel.value_groups is not None
        assert channel.value_groups.tolist() == [value % blocks for value in range(VALUES)]
    assert hb.RandomizedResponse(hb.Integers(0, 9), 1.0).channel([1, 2]).value_groups is None


def test_totals_are_those_that_explain_outputs_best() -> None:
    """Counts as expected from shares that are equal within blocks: the totals are found exactly."""
    mechanism = hb.HadamardResponse(hb.Integers(0, VALUES - 1), 2.0, blocks=4)
    channel = mechanism.channel(mechanism.outputs)
    group = np.arange(VALUES) % 4
    totals = np.array([0.4, 0.3, 0.2, 0.1])
    theta = (totals / np.bincount(group))[group]
    found = GroupTotals.of(channel, theta @ mechanism.matrix() * 1e6, group)
    np.testing.assert_allclose(found.totals, totals, atol=1e-4)


@pytest.mark.parametrize("epsilon", [0.7, 2.0, 4.0])
def test_evidence_is_the_likelihood_given_the_totals_of_groups(epsilon: float) -> None:
    mechanism = hb.HadamardResponse(hb.Integers(0, VALUES - 1), epsilon, blocks=4)
    reports = drawn(mechanism, skewed(VALUES), 2_000)
    channel, weights = reports.channel, reports.weights
    evidence = ShareEvidence.of(channel, weights)
    assert evidence is not None
    assert evidence.alike is not None
    matrix, group = channel.dense(), evidence.alike.group
    even = evidence.alike.average_shares[group]
    shares = np.array([0.0, 0.01, 0.05])
    found = evidence.log_likelihood(shares)
    for value in (0, 5, 29):
        for place, share in enumerate(shares.tolist()):
            theta = even.copy()
            rest = group == group[value]
            rest[value] = False
            theta[rest] += (even[value] - share) / rest.sum()
            theta[value] = share
            expected = weights @ np.log((theta @ matrix) / (even @ matrix))
            assert found[value, place] == pytest.approx(expected, abs=1e-6 * reports.users)
        best = evidence.likeliest[value]
        nearby = evidence.log_likelihood(np.array([best, max(0.0, best - 1e-3), best + 1e-3]))[value]
        assert nearby[0] >= nearby.max() - 1e-9


def test_one_group_of_all_values_is_no_group() -> None:
    mechanism = hb.HadamardResponse(hb.Integers(0, VALUES - 1), 1.0, blocks=1)
    reports = drawn(mechanism, skewed(VALUES), 2_000)
    plain = ShareEvidence.of(reports.channel, reports.weights)
    reports.channel.value_groups = np.zeros(VALUES, dtype=np.int64)
    grouped = ShareEvidence.of(reports.channel, reports.weights)
    assert plain is not None
    assert grouped is not None
    shares = np.array([0.0, 0.02, 0.1])
    difference = grouped.log_likelihood(shares) - plain.log_likelihood(shares)
    np.testing.assert_allclose(difference, np.broadcast_to(difference[:, :1], difference.shape), atol=1e-8)
    np.testing.assert_allclose(grouped.likeliest, plain.likeliest, atol=1e-9)


def test_posterior_means_keep_the_totals_of_groups() -> None:
    mechanism = hb.HadamardResponse(hb.Integers(0, VALUES - 1), 2.0, blocks=4)
    reports = drawn(mechanism, skewed(VALUES), 2_000)
    evidence = ShareEvidence.of(reports.channel, reports.weights)
    assert evidence is not None
    assert evidence.alike is not None
    for found in posterior_means(evidence):
        totals = np.bincount(evidence.alike.group, weights=found.probabilities)
        np.testing.assert_allclose(totals, evidence.alike.totals, atol=1e-12)


def test_auto_is_no_worse_for_blocks() -> None:
    """Shares within a block as if the blocks' totals were noise came out twice as wrong."""
    theta = skewed(200)
    reports = drawn(hb.HadamardResponse(hb.Categories(list(range(200))), 3.0), theta, 20_000)
    whole = hb.total_variation(hb.estimate(reports, method="auto").probabilities, theta)
    reports.channel.value_groups = None
    ignored = hb.total_variation(hb.estimate(reports, method="auto").probabilities, theta)
    assert whole < 0.22
    assert whole < 0.85 * ignored
