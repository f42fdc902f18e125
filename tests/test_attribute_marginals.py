"""`auto` for several attributes: the shares of single ones lean on what the reports say about each alone."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.domains.product_shape import ProductShape, shape_of
from hubbub.estimators.auto.attribute_marginals import AttributeEstimate, with_marginals
from hubbub.estimators.auto.model_averaging import reaverage
from hubbub.estimators.reestimation import maximum_likelihood, reestimate
from hubbub.likelihood import Likelihood
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.reports.attribute_reduction import reduced

Floats = NDArray[np.float64]
AGES, TOWNS = hb.Integers(1, 6), hb.Categories(list("abcde"))
PARTS: dict[str, hb.Mechanism] = {
    "age": hb.TruncatedGeometric(AGES, epsilon=0.8),
    "town": hb.RandomizedResponse(TOWNS, epsilon=1.5),
    "tea": hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0),
}
WAYS = pytest.mark.parametrize("way", [hb.Split, hb.SampleOne, hb.SampleOneWithFakes])
FEWER = {name: PARTS[name] for name in ("age", "town")}


def shares_of(domain: hb.Domain, seed: int = 3) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.full(len(domain), 0.6))


def sent_by(mechanism: SeveralAttributes, users: int, shares: Floats | None = None) -> NDArray[np.void]:
    rng = np.random.default_rng(1)
    positions = rng.choice(
        len(mechanism.domain), size=users, p=shares_of(mechanism.domain) if shares is None else shares
    )
    return mechanism.privatize(mechanism.domain.labels[positions], rng=rng)


@WAYS
@pytest.mark.parametrize("name", list(PARTS))
def test_one_attribute_has_the_likelihood_of_its_outputs(way: type[SeveralAttributes], name: str) -> None:
    mechanism = way(PARTS)  # type: ignore[call-arg]
    matrix, outputs = mechanism.matrix(), mechanism.outputs
    assert outputs is not None
    alone = mechanism.about_one(name)
    listed = np.array([entry is not None for entry in outputs[name].tolist()])
    entries = np.array([entry for entry in outputs[name].tolist() if entry is not None])
    expected = np.stack([matrix[:, listed][:, entries == own].sum(axis=1) for own in alone.domain.labels], axis=1)
    expected /= expected.sum(axis=1, keepdims=True)  # among those who report it
    places = mechanism.domain.margin([name]).places
    np.testing.assert_allclose(np.exp(alone.channel(alone.domain.labels).log_dense())[places], expected, rtol=1e-12)
    np.testing.assert_allclose(alone.matrix()[places], expected, rtol=1e-12)


def test_many_outputs_among_fakes_have_a_channel_without_a_matrix() -> None:
    words = hb.Categories([f"word {number}" for number in range(300)])
    part = hb.Rappor(words, epsilon=2.0)
    mechanism = hb.SampleOneWithFakes(word=part, age=PARTS["age"])
    outputs = part.privatize(words.labels[np.random.default_rng(1).integers(300, size=400)], rng=2)
    channel = mechanism.about_one("word").channel(outputs)
    truth = np.exp(part.channel(outputs).log_dense())
    np.testing.assert_allclose(np.exp(channel.log_dense()), 0.5 * truth + 0.5 * truth.mean(axis=0), rtol=1e-12)


@pytest.mark.sampled(3)
@WAYS
def test_marginals_lean_on_what_the_attribute_alone_gives(way: type[SeveralAttributes]) -> None:
    mechanism = way(PARTS)  # type: ignore[call-arg]
    independent: Floats = np.ones(1)
    for part in PARTS.values():
        independent = np.outer(independent, shares_of(part.domain)).ravel()
    sent = sent_by(mechanism, 20_000, independent)
    joint = hb.estimate(hb.Reports.from_outputs(mechanism, sent))
    assert "pulled" not in joint.settings
    parts = []
    for name in PARTS:
        column = [entry for entry in sent[name].tolist() if entry is not None]
        reports = hb.Reports.from_outputs(mechanism.about_one(name), column)
        cautious, likeliest = (hb.estimate(reports, method).probabilities for method in ("auto", "mle"))
        fits = [
            float(reports.weights @ np.log(shares @ np.exp(reports.channel.log_dense())))
            for shares in (likeliest, np.full(likeliest.size, 1 / likeliest.size))
        ]
        gain = max(fits[0] - fits[1] - (likeliest.size - 1) / 2, 0.0)  # half a nat for each parameter is by chance
        parts.append(gain / (gain + 3))
        assert joint.settings["attributes"].estimates[name].part == pytest.approx(parts[-1], rel=1e-3)
        part = joint.settings["attributes"].moved * parts[-1]
        more = 0.5 * gain / (gain + 1_000)  # beyond half, of maximum likelihood
        left = joint.marginal(name).probabilities - part * ((0.5 - more) * cautious + (0.5 + more) * likeliest)
        assert left.min() >= -1e-5  # what is left is a part of a distribution
        assert left.sum() == pytest.approx(1 - part, abs=1e-9)
    assert max(parts) > 0.5
    assert joint.settings["attributes"].moved > 0.0
    assert "; single attributes have the shares that the reports give to each alone" in joint.status


def test_the_joint_estimate_stays_where_it_knows_more_about_each_attribute() -> None:
    """Two attributes that are always alike: each has two outputs that tell about it, its own and the other's."""
    ages = hb.Integers(1, 8)
    mechanism = hb.Split({name: hb.RandomizedResponse(ages, epsilon=3.0) for name in ("first", "second")})
    values = np.random.default_rng(2).choice(ages.labels, 10_000, p=shares_of(ages))
    reports = hb.Reports.from_outputs(mechanism, mechanism.privatize({"first": values, "second": values}, rng=1))
    found = hb.estimate(reports)
    attributes = found.settings["attributes"]
    assert attributes.moved < 1.0
    assert "of the way" in attributes.explain() or not attributes.explain()
    shape = shape_of(mechanism.domain)
    assert isinstance(shape, ProductShape)
    alone = {name: own.estimate.probabilities[None] for name, own in attributes.estimates.items()}
    fits = [
        float(reports.weights @ np.log(theta @ np.exp(reports.channel.log_dense())))
        for theta in (found.probabilities, with_marginals(shape, found.probabilities[None], alone)[0])
    ]
    assert fits[0] > fits[1]


def test_with_many_values_maximum_likelihood_counts_little() -> None:
    words = hb.Categories([f"word {number}" for number in range(64)])
    mechanism = hb.Split(word=hb.RandomizedResponse(words, epsilon=3.0), tea=PARTS["tea"])
    values = {"word": words.labels[np.repeat([3, 5, 7], 100)], "tea": np.repeat(["yes", "no"], 150)}
    found = hb.estimate(hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=1)))
    estimates = found.settings["attributes"].estimates
    assert [estimates[name].maximum_part for name in ("word", "tea")] == pytest.approx([1 / 8, 1 / 2], abs=0.2)
    assert 1 / 8 < estimates["word"].maximum_part < estimates["tea"].maximum_part


def test_where_reports_tell_very_much_maximum_likelihood_counts_most() -> None:
    channel = hb.RandomizedResponse(PARTS["tea"].domain, epsilon=30.0)
    reports = hb.Reports.from_outputs(channel, np.repeat(["yes", "no"], [100_000, 1]))
    found, likelihood = hb.estimate(reports), Likelihood.of(reports)
    own = AttributeEstimate.of(found, likelihood, found.probabilities)
    assert own.maximum_part > 0.98
    assert own.part > 0.9999


def test_a_mechanism_over_all_attributes_together_leaves_the_joint_estimate_as_it_is() -> None:
    product = hb.Product({name: part.domain for name, part in FEWER.items()})
    whole = hb.RandomizedResponse(product, epsilon=4.0)
    values = product.labels[np.random.default_rng(1).choice(len(product), size=500, p=shares_of(product))]
    found = hb.estimate(hb.Reports.from_outputs(whole, whole.privatize(values, rng=1)))
    assert "attributes" not in found.settings


def test_an_attribute_that_nobody_reported_keeps_its_shares() -> None:
    mechanism = hb.Split(FEWER)
    rows = [(entry, None) for entry in PARTS["age"].privatize(np.repeat([1, 2, 3], 100), rng=1).tolist()]
    found = hb.estimate(hb.Reports.from_outputs(mechanism, rows))
    assert list(found.settings["attributes"].estimates) == ["age"]


def test_a_bootstrap_has_the_marginals_of_each_resample() -> None:
    mechanism = hb.Split(FEWER)
    reports = hb.Reports.from_outputs(mechanism, sent_by(mechanism, 2_000))
    found = hb.estimate(reports)
    resampled = np.random.default_rng(1).multinomial(2_000, reports.weights / 2_000).astype(float)
    weightings = np.stack([reports.weights, resampled])
    own, other = reestimate(reports, weightings, found)
    np.testing.assert_allclose(own, found.probabilities, atol=5e-4)  # candidates of little weight are left out
    thetas = reaverage(
        reports.channel, np.stack([reports.weights, resampled]), reports.domain, found.settings["selection"]
    )
    for name, alone in found.settings["attributes"].estimates.items():
        small, places = reduced(reports, [name], "here")
        both = np.stack([np.bincount(places, own, small.weights.size).astype(float) for own in weightings])
        margin = mechanism.domain.margin([name])
        own = reestimate(small, both, alone.estimate)[1]
        maximum = maximum_likelihood(small.channel, both[1])
        part = found.settings["attributes"].moved * alone.part
        mean = alone.maximum_part * maximum + (1 - alone.maximum_part) * own
        expected = part * mean + (1 - part) * margin.sums(thetas[1])
        np.testing.assert_allclose(margin.sums(other), expected, atol=1e-11)


@pytest.mark.parametrize("impossible", [(), [{"age": 1, "town": ["a", "b"]}, {"age": 6, "town": "e"}]])
def test_marginals_are_set_at_the_least_relative_entropy(impossible: object) -> None:
    cp: Any = importlib.import_module("cvxpy")  # slow to load

    product = hb.Product({name: part.domain for name, part in FEWER.items()}, impossible=impossible)
    shape = shape_of(product)
    assert isinstance(shape, ProductShape)
    theta, other = (shares_of(product, seed) for seed in (1, 2))
    margins = {name: product.margin([name]) for name in FEWER}
    wanted = {name: margin.sums(other) for name, margin in margins.items()}
    found = with_marginals(shape, theta[None], {name: own[None] for name, own in wanted.items()})[0]
    for name, margin in margins.items():
        np.testing.assert_allclose(margin.sums(found), wanted[name], atol=1e-11)
    free = cp.Variable(theta.size)
    sums = [np.eye(len(margin.domain))[margin.places].T @ free == wanted[name] for name, margin in margins.items()]
    cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(free, theta))), sums).solve()
    np.testing.assert_allclose(found, free.value, atol=1e-5)


def test_a_value_that_the_joint_estimate_lacks_gets_its_share() -> None:
    product = hb.Product({name: part.domain for name, part in FEWER.items()})
    shape = shape_of(product)
    assert isinstance(shape, ProductShape)
    table = np.full((6, 5), 1 / 25)
    table[0] = 0.0
    ages, towns = np.array([0.5, 0.1, 0.1, 0.1, 0.1, 0.1]), np.full(5, 0.2)
    found = with_marginals(shape, table.reshape(1, -1), {"age": ages[None], "town": towns[None]})
    np.testing.assert_allclose(found.reshape(6, 5), np.outer(ages, towns), atol=1e-11)
