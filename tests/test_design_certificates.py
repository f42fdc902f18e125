"""What proves designs: rays, derivatives, prices and bounds, against brute force and finite differences."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import hubbub as hb
from design_references import Floats, cone_rays, skewed
from hubbub.core.progress import finish
from hubbub.designing import column_generation, column_pricing, few_outputs, ray_families
from hubbub.designing.column_costs import LostInformation, ServiceLoss
from hubbub.designing.column_pricing import ColumnPrices, price_columns
from hubbub.designing.few_outputs import exact_weights, fewest_columns, merged_columns
from hubbub.designing.gain_bound import bound_gain
from hubbub.designing.information_goals import InformationGoal, RiskPart, basis_of_changes
from hubbub.designing.privacy_policy import PrivacyPolicy
from hubbub.designing.ray_families import PolytopeRays, RayFamily, TreeRays, TwoLevelRays, rays_of
from hubbub.designing.symmetries import symmetries_of
from strategies import examples

SEEDS = st.integers(0, 2**32 - 1)
EPSILONS = st.sampled_from([1e-3, 0.05, 0.5, 1.0, 2.0, 4.0, 8.0])
ROUNDING = 1e-9  # of a log-ratio


def categories(size: int) -> hb.Categories:
    return hb.Categories(list(range(size)))


def plain_policy(size: int, epsilon: float) -> PrivacyPolicy:
    return PrivacyPolicy.plain(categories(size), epsilon)


def line_policy(size: int, epsilon: float) -> PrivacyPolicy:
    return PrivacyPolicy.metric(hb.Integers(0, size - 1), epsilon)


def tree_policy(seed: int, size: int, *, largest: float = 2.0) -> PrivacyPolicy:
    """Return a random tree with its own bound on each edge, whose values are in no order."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(size)
    pairs = {
        (int(names[rng.integers(place)]), int(names[place])): rng.uniform(0.1, 1.0) * largest
        for place in range(1, size)
    }
    return PrivacyPolicy.of_pairs(categories(size), pairs)


def cycle_policy(size: int, epsilon: float) -> PrivacyPolicy:
    pairs = {(place, (place + 1) % size): epsilon for place in range(size)}
    return PrivacyPolicy.of_pairs(categories(size), pairs)


def random_prices(seed: int, size: int) -> ColumnPrices:
    """Return prices without symmetries; the price of information is positive semidefinite, of any rank."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((size, int(rng.integers(1, size + 1))))
    sums = rng.standard_normal(size) * 10.0 ** rng.uniform(-2, 2)
    return ColumnPrices(sums, half @ half.T, rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 10.0]))) + 1e-6)


def all_rays(rays: RayFamily) -> Floats:
    return np.vstack(list(rays.blocks()))


def assert_in_cone(policy: PrivacyPolicy, columns: Floats) -> None:
    """Check every pair by the definition."""
    assert columns.min() > 0
    logs = np.log(columns)
    assert (logs[:, :, None] - logs[:, None, :] <= policy.bounds + ROUNDING).all()
    np.testing.assert_allclose(columns.mean(axis=1), 1.0, rtol=1e-12)


def same_rows(left: Floats, right: Floats) -> bool:
    """Return whether two tables have the same rows, in any order."""
    keys = [np.unique(np.round(np.log(table), 6) + 0.0, axis=0) for table in (left, right)]
    return keys[0].shape == keys[1].shape and bool(np.allclose(keys[0], keys[1], atol=2e-6))


# -- rays ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [plain_policy(2, 1.0), plain_policy(4, 0.7), line_policy(4, 1.3), tree_policy(3, 4), tree_policy(4, 5)],
)
def test_listed_rays_are_all_extreme_rays_of_the_cone_and_distinct(policy: PrivacyPolicy) -> None:
    rays = rays_of(policy)
    listed = all_rays(rays)
    assert isinstance(rays, TwoLevelRays | TreeRays)
    assert len(listed) == rays.count == len(np.unique(np.round(listed, 9), axis=0))
    assert same_rows(listed, cone_rays(policy.bounds))


@pytest.mark.parametrize("policy", [plain_policy(14, 1.0), line_policy(15, 0.4), tree_policy(1, 14)])
def test_lists_of_many_rays_are_complete_in_blocks(policy: PrivacyPolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_families, "RAYS_PER_BLOCK", 1000)
    rays = rays_of(policy)
    listed = all_rays(rays)
    assert rays.count is not None
    assert len(np.unique(np.round(np.log(listed), 6), axis=0)) == rays.count
    assert_in_cone(policy, listed[:: len(listed) // 300])


@examples(60)
@given(SEEDS, st.integers(2, 9), st.sampled_from(["plain", "line", "tree"]), EPSILONS)
def test_the_best_ray_is_that_of_brute_force(seed: int, size: int, kind: str, epsilon: float) -> None:
    policies = {"plain": plain_policy(size, epsilon), "line": line_policy(size, epsilon)}
    rays = rays_of(policies[kind] if kind in policies else tree_policy(seed, size, largest=2 * epsilon + 0.1))
    slopes = np.random.default_rng(seed).standard_normal((50, size)) + 0.5
    best = rays.maximise(slopes)
    assert_in_cone(rays.policy, best)
    reached, most = (slopes * best).sum(axis=1), (slopes @ all_rays(rays).T).max(axis=1)
    np.testing.assert_allclose(reached, most, rtol=1e-9, atol=1e-9 * np.abs(slopes).max() * size)


def test_on_long_lines_at_a_large_epsilon_no_number_overflows() -> None:
    policy = line_policy(100, 8.0)  # e^792 is no number
    rays = rays_of(policy)
    best = rays.maximise(np.random.default_rng(1).standard_normal((20, 100)))
    assert_in_cone(policy, best)
    assert_in_cone(policy, rays.flipped(best[0]))


@pytest.mark.parametrize(
    "policy",
    [
        cycle_policy(4, 0.8),
        cycle_policy(5, 2.0),
        PrivacyPolicy.metric(hb.Grid(2, 2), 1.0),
        PrivacyPolicy.metric(hb.Grid(3, 3), 0.5),
        PrivacyPolicy.metric(hb.Grid(4, 4), 1e-3),
        PrivacyPolicy.metric(hb.Grid(4, 4), 20.0),
    ],
    ids=lambda policy: f"{policy.domain!r}, {policy.epsilon:g}",
)
def test_rays_of_maps_and_cycles_are_in_the_cone_and_better_than_other_columns(policy: PrivacyPolicy) -> None:
    rays = rays_of(policy)
    assert isinstance(rays, PolytopeRays)
    rng = np.random.default_rng(8)
    size = len(policy.domain)
    slopes = rng.standard_normal((10, size))
    slopes[0] = -np.eye(size)[0]  # a column that is small at one value, and not at all others
    best = rays.maximise(slopes)
    assert_in_cone(policy, best)
    # Any numbers, lowered into the cone; and the columns that fall away from one value as fast as they may.
    lowered = np.exp((rng.standard_normal((300, 1, size)) * policy.bounds.max() + policy.bounds).min(axis=2))
    others = np.vstack([lowered, np.exp(-policy.bounds), np.exp(policy.bounds - policy.bounds.max())])
    others = others / others.mean(axis=1, keepdims=True)
    reached = (slopes * best).sum(axis=1)
    spread = np.ptp(slopes @ others.T, axis=1)
    assert (reached >= (slopes @ others.T).max(axis=1) - 1e-5 * spread).all()


@pytest.mark.parametrize("policy", [cycle_policy(4, 0.8), PrivacyPolicy.metric(hb.Grid(2, 2), 1.0)])
def test_rays_of_small_maps_and_cycles_are_among_all_extreme_rays(policy: PrivacyPolicy) -> None:
    rays, every = rays_of(policy), cone_rays(policy.bounds)
    slopes = np.random.default_rng(2).standard_normal((30, 4))
    np.testing.assert_allclose((slopes * rays.maximise(slopes)).sum(axis=1), (slopes @ every.T).max(axis=1), rtol=1e-6)


@examples(30)
@given(SEEDS, st.integers(2, 7), st.booleans())
def test_single_steps_lead_to_neighbours_that_are_rays(seed: int, size: int, is_plain: bool) -> None:
    policy = plain_policy(size, 0.9) if is_plain else tree_policy(seed, size)
    rays = rays_of(policy)
    every = {tuple(row) for row in np.round(np.log(all_rays(rays)), 6) + 0.0}
    ray = rays.sample(1, np.random.default_rng(seed))[0]
    around = np.round(np.log(rays.flipped(ray)), 6) + 0.0
    assert len({tuple(row) for row in around}) == len(around)
    assert {tuple(row) for row in around} <= every or np.abs(around).max() < 1e-5
    assert_in_cone(policy, rays.flipped(ray)) if len(around) else None


# -- derivatives -----------------------------------------------------------------------------------------


def mirrored_goal(power: float, users: float = 40.0) -> InformationGoal:
    """Return a goal of three parts on five values that the mirror image keeps."""
    size = 5
    basis = basis_of_changes(size)
    shares = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    apart = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    smooth = 0.02 * np.exp(-apart / 3) + 1e-4 * np.eye(size)
    ends = np.array([[1.0, 0.0, 0.0, 0.0, 1.0]])
    nothing = np.zeros((size - 1, size - 1))
    parts = [
        RiskPart(
            "a curve",
            np.asarray(np.linalg.inv(basis.T @ smooth @ basis), dtype=np.float64),
            basis,
            np.full(size, 0.4),
            True,
        ),
        RiskPart("variances", nothing, basis, np.ones(size), False),
        RiskPart("ends", nothing, ends @ basis, np.array([2.0]), True),
    ]
    permutations = np.array([np.arange(size), np.arange(size)[::-1]])
    references = np.array([0.3, 0.05, 0.6])
    return InformationGoal(shares, users, parts, power=power, references=references, permutations=permutations)


def skewed_goal(power: float) -> InformationGoal:
    """Return a goal without symmetries."""
    goal = mirrored_goal(power)
    basis = goal.basis
    rows = np.random.default_rng(3).standard_normal((2, 5))
    parts = [*goal.parts[:2], RiskPart("two sums", np.zeros((4, 4)), rows @ basis, np.array([1.0, 0.5]), True)]
    return InformationGoal(skewed(5), 100.0, parts, power=power, references=goal.references)


@pytest.mark.parametrize("power", [1.0, 2.0, 24.0])
@pytest.mark.parametrize("make", [mirrored_goal, skewed_goal])
def test_gradient_hessian_and_price_are_those_of_finite_differences(make: Any, power: float) -> None:
    goal: InformationGoal = make(power)
    rng = np.random.default_rng(11)
    columns = all_rays(rays_of(line_policy(5, 0.9)))[[0, 3, 5, 6, 9, 10, 12]]
    weights = rng.uniform(0.1, 0.4, len(columns))
    features = goal.features(columns)

    def value(at: Floats) -> float:
        return goal.value(goal.information(features, at))

    here = goal.derivatives(features, weights)
    assert here.value == pytest.approx(value(weights), rel=1e-12)
    step = 1e-4
    moves = step * np.eye(len(weights))
    gradient = np.array([value(weights + move) - value(weights - move) for move in moves]) / (2 * step)
    np.testing.assert_allclose(here.gradient, gradient, rtol=1e-5, atol=1e-7 * np.abs(gradient).max())
    slopes = [goal.derivatives(features, weights + move).gradient for move in moves]
    lower = [goal.derivatives(features, weights - move).gradient for move in moves]
    hessian = (np.array(slopes) - np.array(lower)) / (2 * step)
    np.testing.assert_allclose(here.hessian, hessian, rtol=1e-4, atol=1e-6 * np.abs(hessian).max())
    # The price is about any column, known or not.
    for other in rng.uniform(0.5, 2.0, (4, 5)):
        more = np.vstack([columns, other])
        at = np.append(weights, 0.0)
        ahead = goal.value(goal.information(goal.features(more), at + step * np.eye(len(at))[-1]))
        behind = goal.value(goal.information(goal.features(more), at))
        told = (other[goal.permutations] @ here.price * other[goal.permutations]).sum(axis=1).mean()
        assert (ahead - behind) / step == pytest.approx(-told / (goal.centre @ other), rel=2e-3)


@examples(30)
@given(SEEDS, st.integers(2, 6))
def test_gains_lie_above_their_tangents_and_have_these_slopes(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    prices = random_prices(seed, size)
    cost = ServiceLoss(rng.dirichlet(np.ones(size)), rng.random((size, size)))
    prices = ColumnPrices(prices.sums, prices.information, prices.centre, rng.random(), cost)
    columns, others = rng.uniform(0.2, 3.0, (2, 20, size))
    slopes = prices.slopes(columns)
    gains = prices.gains(columns)
    size_of = np.abs(gains).max() + np.abs(slopes).max()
    np.testing.assert_allclose((slopes * columns).sum(axis=1), gains, rtol=1e-9, atol=1e-12 * size_of)  # homogeneous
    assert (prices.gains(others) >= (slopes * others).sum(axis=1) - 1e-10 * size_of).all()


@examples(20)
@given(SEEDS, st.integers(2, 6))
def test_lost_information_is_concave_homogeneous_and_has_these_slopes(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    cost = LostInformation(rng.dirichlet(np.ones(size)))
    columns, others = rng.uniform(0.1, 3.0, (2, 20, size))
    assert (cost.costs(others) <= (cost.slopes(columns) * others).sum(axis=1) + 1e-12).all()
    np.testing.assert_allclose(cost.costs(2 * columns), 2 * cost.costs(columns), rtol=1e-12)
    moves = 1e-6 * rng.standard_normal(columns.shape)
    changes = cost.costs(columns + moves) - cost.costs(columns - moves)
    np.testing.assert_allclose(changes, 2 * (cost.slopes(columns) * moves).sum(axis=1), rtol=1e-3, atol=1e-11)


# -- bounds ----------------------------------------------------------------------------------------------


@examples(60)
@given(SEEDS, st.integers(2, 9), st.sampled_from(["plain", "line", "tree"]), EPSILONS)
def test_no_column_gains_more_than_the_bound(seed: int, size: int, kind: str, epsilon: float) -> None:
    policies = {"plain": plain_policy(size, epsilon), "line": line_policy(size, epsilon)}
    policy = policies[kind] if kind in policies else tree_policy(seed, size, largest=epsilon)
    prices = random_prices(seed, size)
    rays = rays_of(policy)
    gains = prices.gains(all_rays(rays))
    bound = finish(bound_gain(policy, prices, 1e-4 * float(np.ptp(gains) + 1e-12)))
    assert np.isfinite(bound)
    assert bound >= gains.max()


@pytest.mark.parametrize(("size", "epsilon"), [(4, 1e-3), (4, 0.5), (4, 1.0), (4, 8.0), (8, 4.0), (8, 8.0)])
def test_the_bound_is_near_what_columns_gain_on_few_values_or_at_a_large_epsilon(size: int, epsilon: float) -> None:
    policy = line_policy(size, epsilon)
    rng = np.random.default_rng(size)
    centre = rng.dirichlet(np.full(size, 5.0))
    prices = ColumnPrices(rng.standard_normal(size), np.zeros((size, size)), centre)
    gains = prices.gains(all_rays(rays_of(policy)))
    spread = float(np.ptp(gains))
    assert finish(bound_gain(policy, prices, 1e-4 * spread)) <= gains.max() + 1e-2 * spread


@examples(20)
@given(SEEDS, st.sampled_from([(2, 2), (3, 2), (3, 3)]), EPSILONS)
def test_no_column_of_a_map_gains_more_than_the_bound(seed: int, shape: tuple[int, int], epsilon: float) -> None:
    policy = PrivacyPolicy.metric(hb.Grid(*shape), epsilon)
    prices = random_prices(seed, len(policy.domain))
    rays = rays_of(policy)
    generator = np.random.default_rng(seed)
    known = np.exp(-policy.bounds)
    known = known / known.mean(axis=1, keepdims=True)
    priced = finish(price_columns(rays, prices, known, generator, starts=5))
    assert finish(bound_gain(policy, prices, 1e-4 * abs(priced.largest_gain))) >= priced.largest_gain


def test_too_many_values_and_costs_have_no_bound() -> None:
    prices = random_prices(1, 41)
    assert finish(bound_gain(line_policy(41, 0.5), prices, 0.1)) == np.inf
    four = random_prices(1, 4)
    linear = ColumnPrices(four.sums, None, four.centre, 1.0, LostInformation(four.centre))
    assert finish(bound_gain(line_policy(4, 0.5), linear, 0.1)) == np.inf


@pytest.mark.sampled(4)
@pytest.mark.parametrize("values", [6, 10, pytest.param(14, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("privacy", "epsilon"), [("metric", 0.4), ("metric", 2.0), ("plain", 1.0)])
@pytest.mark.parametrize("goal", ["variance", "risk"])
def test_searching_finds_what_comparing_all_columns_finds_and_the_bound_is_none_too_high(
    goal: str, privacy: str, epsilon: float, values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = hb.Integers(0, values - 1)
    prior = skewed(values)
    compared = hb.design(domain, epsilon, privacy=privacy, goal=goal, prior=prior)
    monkeypatch.setattr(ray_families, "MAX_LISTED_VALUES", 1)
    searched = hb.design(domain, epsilon, privacy=privacy, goal=goal, prior=prior)
    assert compared.complete
    assert not searched.complete
    assert searched.bound <= compared.value * (1 + 1e-9)
    assert compared.bound <= searched.value * (1 + 1e-9)
    assert searched.value == pytest.approx(compared.value, rel=2e-3)


@pytest.mark.parametrize("listed", [20, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("privacy", "epsilon"), [("metric", 0.3), ("metric", 1.0), ("plain", 0.5)])
@pytest.mark.parametrize("goal", ["variance", "information"])
def test_bounds_hold_where_the_search_ends_early(
    goal: str, privacy: str, epsilon: float, listed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain, prior = hb.Integers(0, 6), skewed(7)
    best = hb.design(domain, epsilon, privacy=privacy, goal=goal, prior=prior)
    monkeypatch.setattr(ray_families, "MAX_LISTED_VALUES", listed)
    for rounds in (1, 2, 3):
        monkeypatch.setattr(column_generation, "MAX_ROUNDS", rounds)
        early = hb.design(domain, epsilon, privacy=privacy, goal=goal, prior=prior)
        if goal == "information":
            assert early.bound >= best.value * (1 - 1e-6)
        else:
            assert early.bound <= best.value * (1 + 1e-6)


@examples(30)
@given(SEEDS, st.integers(3, 8), st.booleans())
def test_the_search_never_claims_a_gain_that_is_not_there(seed: int, size: int, is_plain: bool) -> None:
    policy = plain_policy(size, 1.0) if is_plain else line_policy(size, 0.7)
    prices, rays = random_prices(seed, size), rays_of(policy)
    listed = finish(price_columns(rays, prices, np.ones((1, size)), np.random.default_rng(seed), starts=20))
    assert listed.complete
    assert listed.largest_gain == pytest.approx(prices.gains(all_rays(rays)).max(), rel=1e-12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray_families, "MAX_LISTED_VALUES", 1)
        found = finish(price_columns(rays, prices, np.ones((1, size)), np.random.default_rng(seed), starts=20))
    assert not found.complete
    assert_in_cone(policy, found.columns)
    assert found.largest_gain == pytest.approx(prices.gains(found.columns).max(), rel=1e-12)
    assert found.largest_gain <= listed.largest_gain + 1e-9 * abs(listed.largest_gain)
    assert len(found.columns) <= column_pricing.NEW_COLUMNS


# -- symmetries and fewer columns ------------------------------------------------------------------------


def test_symmetries_are_kept_where_policy_shares_and_goal_have_them_alone() -> None:
    goal = mirrored_goal(1.0).replace(permutations=np.arange(5)[None, :])
    line = line_policy(5, 0.5)
    assert symmetries_of(line, goal).tolist() == [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0]]
    assert len(symmetries_of(line, skewed_goal(1.0))) == 1
    uneven = PrivacyPolicy.metric(hb.Bins([0, 1, 2, 3, 4, 9]), 0.5)
    assert len(symmetries_of(uneven, goal)) == 1
    assert len(symmetries_of(plain_policy(5, 0.5), goal)) == 2  # the mirror image; shifts change the shares
    variance = InformationGoal(np.full(5, 0.2), 1.0, goal.parts[1:2])
    assert len(symmetries_of(plain_policy(5, 0.5), variance)) == 5
    square = InformationGoal(
        np.full(4, 0.25), 1.0, [RiskPart("", np.zeros((3, 3)), basis_of_changes(4), np.ones(4), False)]
    )
    assert len(symmetries_of(PrivacyPolicy.metric(hb.Grid(2, 2), 1.0), square)) == 8


def test_two_of_three_values_have_no_symmetry() -> None:
    rows = np.eye(3)[:2] @ basis_of_changes(3)
    two = InformationGoal(np.full(3, 1 / 3), 1.0, [RiskPart("two", np.zeros((2, 2)), rows, np.ones(2), True)])
    assert len(symmetries_of(plain_policy(3, 0.5), two)) == 1
    design = hb.design(hb.Integers(0, 2), 0.9, goal="width", of=[[0], [1]])
    assert design.value <= min(design.built_ins.values()) * 1.001
    assert design.status.startswith("certified")


def test_precise_knowledge_without_the_symmetry_is_noticed() -> None:
    # Where far more is known than reports tell, errors depend little on the information.
    basis = basis_of_changes(5)
    direction = np.array([3.0, -1.0, -1.0, -2.0, 1.0])
    known = 1e-10 * (np.outer(direction, direction) + 0.1 * np.eye(5))
    part = RiskPart(
        "known", np.asarray(np.linalg.inv(basis.T @ known @ basis), dtype=np.float64), basis, np.ones(5), True
    )
    goal = InformationGoal(np.full(5, 0.2), 1.0, [part])
    assert len(symmetries_of(line_policy(5, 0.5), goal)) == 1
    assert len(symmetries_of(plain_policy(5, 0.5), goal)) == 1


@examples(30)
@given(SEEDS, st.integers(3, 6), st.sampled_from([1e-3, 0.5, 3.0]))
def test_fewer_columns_tell_the_same_and_keep_their_sums(seed: int, size: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    rays = all_rays(rays_of(line_policy(size, epsilon)))
    mirrored = np.vstack([rays, rays[:, ::-1]])
    # Pairs of a column and what lacks to 1 are a mechanism.
    light = mirrored / (3 * mirrored.max(axis=1, keepdims=True))
    columns = np.vstack([light, 1 - light])
    weights = rng.dirichlet(np.ones(len(light)))
    weights = np.concatenate([weights, weights])
    means = columns.mean(axis=1)
    columns, weights = columns / means[:, None], weights * means
    goal = skewed_goal(1.0) if size == 5 else InformationGoal(skewed(size), 10.0, [])
    kept, fewer = fewest_columns(goal, columns, weights, rng)
    needed = size * (size - 1) // 2 + size
    assert len(fewer) <= max(needed, 1) or len(weights) <= needed
    assert np.abs(kept.T @ fewer - 1).max() <= 1e-13
    left, right = (goal.information(goal.features(each), by) for each, by in ((columns, weights), (kept, fewer)))
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-6 * np.abs(left).max())


def test_what_a_solver_leaves_of_the_sums_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    def roughly(*arguments: Any, **keywords: Any) -> Any:
        solved = linprog(*arguments, **keywords)
        solved.x = solved.x * (1 + 1e-7 * np.arange(solved.x.size))
        return solved

    monkeypatch.setattr(few_outputs, "linprog", roughly)
    domain = hb.Integers(0, 5)
    design = hb.design(domain, 1.0, privacy="metric", goal="variance", prior=skewed(6))
    assert design.keeps_privacy
    rays = all_rays(rays_of(line_policy(4, 1.0)))
    rays = np.vstack([rays, np.ones((8, 4))])
    generator = np.random.default_rng(0)
    even = exact_weights(rays, np.asarray(np.linalg.lstsq(rays.T, np.ones(4), rcond=None)[0], dtype=np.float64))
    assert even is not None
    kept, fewer = fewest_columns(InformationGoal(skewed(4), 10.0, []), rays, even, generator)
    assert len(fewer) < len(even)
    assert np.abs(kept.T @ fewer - 1).max() <= 1e-13


def test_weights_are_repaired_to_the_last_digits_or_refused() -> None:
    columns = all_rays(rays_of(line_policy(4, 1.0)))
    even = np.linalg.lstsq(columns.T, np.ones(4), rcond=None)[0]
    repaired = exact_weights(columns, even * (1 + 1e-6 * np.arange(len(even))))
    assert repaired is not None
    assert np.abs(columns.T @ repaired - 1).max() <= 1e-13
    assert exact_weights(columns[:2], np.ones(2)) is None


@examples(20)
@given(SEEDS, st.integers(3, 6))
def test_merged_columns_are_sums_of_columns_and_the_first_merge_loses_least(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.dirichlet(np.ones(7), size).T
    centre = rng.dirichlet(np.full(size, 5.0))
    half = rng.standard_normal((size, size))
    price = half @ half.T
    merged = merged_columns(columns, centre, price, 6)

    def told(table: Floats) -> float:
        return float(sum(row @ price @ row / (centre @ row) for row in table))

    tried = []
    for first, second in itertools.combinations(range(7), 2):
        rest = np.delete(columns, [first, second], axis=0)
        tried.append(told(np.vstack([rest, columns[first] + columns[second]])))
    assert told(merged) == pytest.approx(max(tried), rel=1e-9)
    fewest = merged_columns(columns, centre, price, 2)
    assert fewest.shape == (2, size)
    np.testing.assert_allclose(fewest.sum(axis=0), 1.0, rtol=1e-12)
