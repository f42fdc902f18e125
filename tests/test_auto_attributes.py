"""`auto` for several attributes: models with fewer parameters than combinations, each against what it must be."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from hubbub.channels import DenseChannel
from hubbub.domains import Subset
from hubbub.domains.product_shape import ProductShape, shape_of
from hubbub.estimators.auto.attribute_candidates import (
    DELTA_RULE,
    INDEPENDENT,
    PAIRWISE,
    DirichletAroundModel,
    attribute_families,
    fitted_model,
)
from hubbub.estimators.auto.candidate_fits import WeightedPatterns
from hubbub.estimators.auto.candidate_weights import leaning
from hubbub.estimators.auto.told_interactions import told_model, untold
from hubbub.estimators.reestimation import reestimate
from hubbub.reports import Singles
from hubbub.solvers.em_path import em_path, spaced_stops
from hubbub.solvers.latent_classes import LatentClasses
from hubbub.solvers.log_linear_model import LogLinearModel

Floats = NDArray[np.float64]
SIDES = (4, 3, 2)
FULL = hb.Product(age=hb.Integers(1, 4), town=hb.Categories(list("abc")), sex=hb.Categories(list("fm")))
HOLED = hb.Product(dict(FULL.attributes), impossible=[{"age": [1, 2], "town": "c"}, {"age": 4, "sex": "m"}])
PAIR = hb.Product(age=hb.Integers(1, 6), town=hb.Categories(list("abcd")))
SINGLES, PAIRS = ((0,), (1,), (2,)), ((0, 1), (0, 2), (1, 2))
BOTH = pytest.mark.parametrize("domain", [FULL, HOLED])


def product_shape(domain: hb.Domain) -> ProductShape:
    shape = shape_of(domain)
    assert isinstance(shape, ProductShape)
    return shape


def drawn_shares(size: int, seed: int = 1, concentration: float = 1.0) -> Floats:
    return np.random.default_rng(seed).dirichlet(np.full(size, concentration))


def mechanism_over(domain: hb.Product, epsilon: float, kind: Callable[..., hb.Mechanism] = hb.Split) -> hb.Mechanism:
    return kind(domain, **{name: hb.RandomizedResponse(own, epsilon) for name, own in domain.attributes.items()})


def reports_of(mechanism: hb.Mechanism, shares: Floats, users: int, seed: int = 1) -> hb.Reports:
    rng = np.random.default_rng(seed)
    values = mechanism.domain.labels[np.repeat(np.arange(shares.size), rng.multinomial(users, shares))]
    return hb.Reports.from_outputs(mechanism, mechanism.privatize(values, rng=rng))


def noisy_channel(values: int, patterns: int, seed: int = 3) -> DenseChannel:
    """Return a drawn channel without any symmetry."""
    matrix = np.random.default_rng(seed).dirichlet(np.full(patterns, 2.0), values)
    return DenseChannel(matrix, np.zeros(patterns))


def log_likelihoods(channel: DenseChannel, weights: Floats, thetas: Floats) -> Floats:
    return np.asarray(np.einsum("bi,bi->b", weights, np.log(channel.forward(thetas))))


# -- the shape ---------------------------------------------------------------------------------------------------------


def test_a_box_is_smoothed_by_the_product_of_the_attributes_kernels() -> None:
    ages = shape_of(FULL.attributes["age"]).kernel(1.0)
    expected = np.kron(np.kron(ages, np.eye(3)), np.eye(2))
    assert np.allclose(product_shape(FULL).kernel(1.0), expected, rtol=0, atol=1e-15)


@BOTH
def test_smoothing_keeps_mass_and_has_its_adjoint(domain: hb.Product) -> None:
    shape, rng = product_shape(domain), np.random.default_rng(1)
    first, second = rng.random((2, 3, len(domain)))
    assert np.allclose(shape.smoothed(first, 1.0).sum(axis=1), first.sum(axis=1))
    there, back = shape.smoothed(first, 1.0) * second, first * shape.gathered(second, 1.0)
    assert np.allclose(there.sum(axis=1), back.sum(axis=1))


# -- log-linear models -------------------------------------------------------------------------------------------------


def test_independence_is_the_product_of_the_margins() -> None:
    theta = drawn_shares(24).reshape(SIDES)
    margins = [theta.sum(axis=others) for others in ((1, 2), (0, 2), (0, 1))]
    model, expected = LogLinearModel(product_shape(FULL), SINGLES), np.einsum("i,j,k->ijk", *margins).ravel()
    assert np.allclose(model.with_margins_of(theta.reshape(1, -1))[0], expected, rtol=1e-12)
    assert np.allclose(model.m_step(np.full((1, 24), 1 / 24), theta.reshape(1, -1))[0], expected, rtol=1e-12)  # at once


def fitted_by_hand(theta: Floats, margins: tuple[tuple[int, ...], ...], inside: Floats) -> Floats:
    """Iterative proportional fitting with loops over the cells of one margin at a time: the textbook's."""
    fitted: Floats = inside / inside.sum()
    for _ in range(200):
        for margin in margins:
            for at in np.ndindex(*(SIDES[place] for place in margin)):
                cell = tuple(at[margin.index(place)] if place in margin else slice(None) for place in range(3))
                if fitted[cell].sum() > 0:
                    fitted[cell] *= theta[cell].sum() / fitted[cell].sum()
    return fitted


@BOTH
@pytest.mark.parametrize("margins", [SINGLES, PAIRS])
def test_models_fit_their_margins_as_the_textbook_does(
    domain: hb.Product, margins: tuple[tuple[int, ...], ...]
) -> None:
    shape = product_shape(domain)
    theta = drawn_shares(len(domain))[None]
    inside = shape.boxed(np.ones_like(theta))[0]
    found = LogLinearModel(shape, margins).with_margins_of(theta)
    expected = fitted_by_hand(shape.boxed(theta)[0], margins, inside)
    assert np.allclose(shape.boxed(found)[0], expected, rtol=1e-7, atol=1e-12)


def test_pairs_have_no_interaction_of_three() -> None:
    found = LogLinearModel(product_shape(FULL), PAIRS).with_margins_of(drawn_shares(24)[None])
    logs = np.log(found.reshape(SIDES))
    for axis in range(3):
        logs = np.diff(logs, axis=axis)
    assert np.abs(logs).max() < 1e-9


@BOTH
@pytest.mark.parametrize("margins", [SINGLES, PAIRS])
def test_every_update_within_a_model_raises_the_likelihood(
    domain: hb.Product, margins: tuple[tuple[int, ...], ...]
) -> None:
    channel = noisy_channel(len(domain), 40)
    weights = np.random.default_rng(5).integers(0, 30, (2, 40)).astype(float)
    model = LogLinearModel(product_shape(domain), margins)
    path = [theta for _, theta in em_path(channel, weights, range(1, 25), m_step=model.m_step)]
    values = np.stack([log_likelihoods(channel, weights, theta) for theta in path])
    assert (np.diff(values, axis=0) > -1e-9).all()
    assert np.allclose(model.with_margins_of(path[-1]), path[-1], atol=1e-9)  # it is still in the model


@pytest.mark.parametrize("margins", [SINGLES, PAIRS])
def test_far_stops_are_where_single_updates_lead(margins: tuple[tuple[int, ...], ...]) -> None:
    reports = reports_of(mechanism_over(FULL, 1.0), drawn_shares(24), 5_000)
    channel, weights, model = reports.channel, reports.weights[None], LogLinearModel(product_shape(FULL), margins)
    *_, (_, flowed) = em_path(channel, weights, spaced_stops(500), m_step=model.m_step)
    *_, (_, single) = em_path(channel, weights, range(1, 501), m_step=model.m_step)
    assert hb.total_variation(flowed[0], single[0]) < 1e-3


@pytest.mark.parametrize(("title", "margins"), [(INDEPENDENT, SINGLES), (PAIRWISE, PAIRS)])
def test_without_noise_models_are_fitted_to_the_counts(title: str, margins: tuple[tuple[int, ...], ...]) -> None:
    reports = reports_of(mechanism_over(FULL, 30.0), drawn_shares(24), 5_000)
    block, counts = reports.blocks[0], np.zeros(24)
    assert isinstance(block, Singles)
    counts[FULL.index(block.mechanism.output_space.decode(block.codes))] = reports.weights
    patterns = WeightedPatterns(reports.channel, reports.weights[None], shape_of(FULL))
    found = fitted_model(LogLinearModel(product_shape(FULL), margins), patterns)[0]
    expected = fitted_by_hand(counts.reshape(SIDES) / 5_000, margins, np.ones(SIDES)).ravel()
    assert np.abs(found - expected).max() < 1e-6, title


def test_a_prior_draws_shares_to_the_model() -> None:
    reports = reports_of(mechanism_over(FULL, 2.0), drawn_shares(24), 3_000)
    patterns = WeightedPatterns(reports.channel, reports.weights[None], shape_of(FULL))
    model = LogLinearModel(product_shape(FULL), SINGLES)
    centre = fitted_model(model, patterns)[0]
    apart = []
    for (_, thetas), users in zip(DirichletAroundModel(INDEPENDENT, model).fits(patterns), (64, 16), strict=False):
        theta, prior = thetas[0], 24 * users / (3_000 + 24 * users)
        expected = theta * reports.channel.backward(reports.weights / reports.channel.forward(theta)) / 3_000
        assert np.abs(theta - prior * centre - (1 - prior) * expected).max() < 1e-6  # where the derivative is zero
        apart.append(hb.total_variation(theta, centre))
    assert 0 < apart[0] < apart[1]


# -- latent classes ----------------------------------------------------------------------------------------------------


@BOTH
def test_every_update_of_classes_raises_the_likelihood(domain: hb.Product) -> None:
    channel = noisy_channel(len(domain), 40)
    weights = np.random.default_rng(5).integers(0, 30, (2, 40)).astype(float)
    model = LatentClasses(product_shape(domain), 2)
    starts = model.starts(1, np.random.default_rng(1))
    path = [theta for _, theta in model.path(channel, weights, starts, range(1, 25))]
    values = np.stack([log_likelihoods(channel, weights, theta) for theta in path])
    assert (np.diff(values, axis=0) > -1e-9).all()
    assert np.allclose(path[-1].sum(axis=1), 1.0)


def test_classes_have_a_low_rank_and_find_a_mixture() -> None:
    domain = hb.Product(first=hb.Categories(range(6)), second=hb.Categories(range(5)))
    rng = np.random.default_rng(2)
    truth = 0.6 * np.outer(rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(5)))
    truth += 0.4 * np.outer(rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(5)))
    model = LatentClasses(product_shape(domain), 2)
    starts = model.starts(4, np.random.default_rng(1))
    *_, (_, found) = model.path(DenseChannel(np.eye(30), np.zeros(30)), truth.reshape(1, -1), starts, (10_000,))
    assert np.linalg.matrix_rank(found.reshape(6, 5), tol=1e-12) == 2
    assert np.abs(found - truth.ravel()).max() < 1e-4


# -- what the reports tell ---------------------------------------------------------------------------------------------


@BOTH
def test_one_attribute_at_a_time_tells_no_interaction(domain: hb.Product) -> None:
    shares = np.full(len(domain), 1 / len(domain))
    for kind in (hb.SampleOne, hb.SampleOneWithFakes):
        told = told_model(reports_of(mechanism_over(domain, 1.0, kind), shares, 500).channel, product_shape(domain))
        assert told is not None
        assert told.margins == SINGLES
        assert untold(told) == (("age", "town"), ("age", "sex"), ("town", "sex"))
    assert told_model(reports_of(mechanism_over(domain, 1.0), shares, 500).channel, product_shape(domain)) is None


@BOTH
def test_pairs_that_nobody_reports_are_not_told(domain: hb.Product) -> None:
    mechanism = mechanism_over(domain, 1.0)
    outputs = mechanism.privatize(domain.labels[:10], rng=1)
    without = {}
    for left_out in domain.attributes:
        without[left_out] = np.empty(10, dtype=[(name, object) for name in domain.attributes])
        for name in domain.attributes:
            without[left_out][name] = None if name == left_out else outputs[name]
    some = hb.Reports.from_outputs(mechanism, without["age"]) + hb.Reports.from_outputs(mechanism, without["town"])
    told = told_model(some.channel, product_shape(domain))
    assert told is not None
    assert set(told.margins) == {(0, 2), (1, 2)}
    assert untold(told) == (("age", "town"),)
    told = told_model((some + hb.Reports.from_outputs(mechanism, without["sex"])).channel, product_shape(domain))
    assert told is not None
    assert set(told.margins) == set(PAIRS)
    assert untold(told) == (("age", "town", "sex"),)


@pytest.mark.parametrize("kind", [hb.SampleOne, hb.SampleOneWithFakes])
def test_where_only_margins_are_told_attributes_are_independent(
    kind: Callable[..., hb.Mechanism],
) -> None:
    truth = drawn_shares(24).reshape(6, 4)
    estimate = hb.estimate(reports_of(mechanism_over(PAIR, 2.0, kind), truth.ravel(), 20_000))
    found = estimate.probabilities.reshape(6, 4)
    assert np.allclose(found, np.outer(found.sum(axis=1), found.sum(axis=0)), rtol=1e-9)
    assert hb.total_variation(found.sum(axis=1), truth.sum(axis=1)) < 0.05
    untold_pair = "; the reports do not tell how age and town go together: as little as possible is assumed about it"
    assert untold_pair in estimate.status


# -- the choice --------------------------------------------------------------------------------------------------------


@cache
def independent_study() -> tuple[Floats, hb.Reports]:
    truth = np.einsum("i,j,k->ijk", *(drawn_shares(side, 4, 2.0) for side in SIDES)).ravel()
    return truth, reports_of(mechanism_over(FULL, 1.0), truth, 5_000)


def test_independent_attributes_are_recognized() -> None:
    truth, reports = independent_study()
    estimate = hb.estimate(reports)
    assert "the attributes as independent" in estimate.status
    error, other = (hb.total_variation(one.probabilities, truth) for one in (estimate, hb.estimate(reports, "mle")))
    assert error < 0.5 * other
    assert np.array_equal(hb.estimate(reports).probabilities, estimate.probabilities)


def test_where_held_out_reports_tell_little_a_rule_stops_em() -> None:
    reports = reports_of(mechanism_over(FULL, 0.5), drawn_shares(24), 500)
    estimate = hb.estimate(reports)
    selection = estimate.settings["selection"]
    assert selection.chosen == DELTA_RULE
    assert hb.total_variation(estimate.probabilities, hb.estimate(reports, "ibu").probabilities) < 0.02
    assert leaning(np.array([0.0, 1.0]), 0, 20.0).tolist() == [0.5, 0.5]
    assert leaning(np.array([0.0, 1.0]), 0, 0.0).tolist() == [1.0, 0.0]


def test_with_many_users_the_joint_shares_are_followed() -> None:
    truth = drawn_shares(24)
    reports = reports_of(mechanism_over(FULL, 3.0), truth, 100_000)
    ours, likeliest = hb.estimate(reports), hb.estimate(reports, "mle")
    independent = LogLinearModel(product_shape(FULL), SINGLES).with_margins_of(truth[None])[0]
    assert hb.total_variation(ours.probabilities, likeliest.probabilities) < 0.01
    assert hb.total_variation(ours.probabilities, independent) > 0.1


def test_impossible_and_left_out_combinations_have_no_share() -> None:
    truth = drawn_shares(len(HOLED))
    reports = reports_of(mechanism_over(HOLED, 2.0), truth, 20_000)
    estimate = hb.estimate(reports)
    assert estimate.probabilities.size == len(HOLED) == 17
    assert hb.total_variation(estimate.probabilities, truth) < 0.15
    kept = HOLED.labels[np.arange(0, 17, 2)]
    part = hb.estimate(reports.restrict(kept))
    assert isinstance(part.domain, Subset)
    assert part.probabilities.size == 9
    assert part.probabilities.sum() == pytest.approx(1.0)


def test_a_bootstrap_averages_the_same_candidates() -> None:
    _, reports = independent_study()
    estimate = hb.estimate(reports)
    again = reestimate(reports, np.stack([reports.weights, 2.0 * reports.weights]), estimate)
    assert hb.total_variation(again[0], estimate.probabilities) < 0.01
    assert hb.total_variation(again[1], estimate.probabilities) < 0.05


def test_families_suit_the_number_of_attributes_and_the_size() -> None:
    names = [
        family.name for family in attribute_families(product_shape(PAIR), uses_newton=True, max_updates=99, told=None)
    ]
    assert PAIRWISE not in names  # of two attributes, pairs are everything
    three = product_shape(FULL)
    names = [family.name for family in attribute_families(three, uses_newton=False, max_updates=99, told=None)]
    assert PAIRWISE in names
    assert not any("deviations" in name for name in names)
    told = LogLinearModel(three, SINGLES)
    titles = {
        family.name.split(",")[0] for family in attribute_families(three, uses_newton=True, max_updates=9, told=told)
    }
    assert titles == {"uniform", INDEPENDENT, DELTA_RULE.family}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("users", [1, *(pytest.param(users, marks=pytest.mark.slow) for users in (3, 10))])
def test_a_few_users_have_an_estimate(users: int) -> None:
    """The flow of EM overshoots for several classes and few reports: its steps are then made one by one."""
    people = hb.Product(age=hb.Integers(0, 5), smoker=hb.Categories(["no", "yes"]), region=hb.Categories(list("nesw")))
    for epsilon in (3.0, 12.0):
        both = hb.Split.with_budget(people, epsilon, hb.RandomizedResponse)
        for seed in range(2):
            rng = np.random.default_rng(seed)
            values = people.labels[rng.choice(len(people), users)]
            found = hb.estimate(hb.Reports.from_outputs(both, both.privatize(values, rng=rng)))
            assert np.isfinite(found.probabilities).all()
            assert found.probabilities.sum() == pytest.approx(1.0)
