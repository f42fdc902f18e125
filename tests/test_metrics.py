"""Distances between distributions, against SciPy, POT on the full mass, and shifts whose distance is known."""

from __future__ import annotations

import math

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import hubbub as hb
import strategies as own
from hubbub.domains import Subset

Floats = NDArray[np.float64]


@st.composite
def pairs(draw: st.DrawFn, domains: st.SearchStrategy[hb.Domain]) -> tuple[hb.Domain, Floats, Floats]:
    """A domain and two distributions over it."""
    domain = draw(domains)
    return domain, draw(own.distributions(len(domain))), draw(own.distributions(len(domain)))


def full_transport(p: Floats, q: Floats, distances: Floats) -> float:
    """Move the whole mass, common parts too, over distances written out in full."""
    return float(ot.emd2(p, q, np.ascontiguousarray(distances)))


# -- total variation and Kullback-Leibler -----------------------------------------------------------------


@own.examples(80)
@given(pairs(own.whole_domains()))
def test_total_variation_is_the_largest_difference_of_an_event(drawn: tuple[hb.Domain, Floats, Floats]) -> None:
    _, p, q = drawn
    gained = p > q
    assert hb.total_variation(p, q) == pytest.approx(p[gained].sum() - q[gained].sum(), abs=1e-12)
    assert hb.total_variation(p, q) == hb.total_variation(q, p)
    assert hb.total_variation(p, p) == 0.0
    assert 0 <= hb.total_variation(p, q) <= 1 + 1e-12


@own.examples(80)
@given(st.integers(2, 7), st.data())
def test_kl_divergence_against_scipy(size: int, data: st.DataObject) -> None:
    p, q = data.draw(own.distributions(size)), data.draw(own.distributions(size))
    expected = float(stats.entropy(p, q))
    assert hb.kl_divergence(p, q) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert hb.kl_divergence(p, q) >= 0
    assert hb.kl_divergence(p, p) == 0
    # Pinsker's inequality ties the two distances together.
    assert hb.total_variation(p, q) <= math.sqrt(hb.kl_divergence(p, q) / 2) + 1e-12


def test_kl_divergence_is_not_symmetric_and_may_be_infinite() -> None:
    assert hb.kl_divergence([1, 0], [0.5, 0.5]) == pytest.approx(math.log(2))
    assert hb.kl_divergence([0.5, 0.5], [1, 0]) == math.inf


# -- earth mover's distance -------------------------------------------------------------------------------


@own.examples(80)
@given(pairs(own.integers() | own.bins()))
def test_on_a_line_against_scipy(drawn: tuple[hb.Domain, Floats, Floats]) -> None:
    domain, p, q = drawn
    places = np.array(domain.edges) if isinstance(domain, hb.Bins) else domain.labels
    places = (places[1:] + places[:-1]) / 2 if isinstance(domain, hb.Bins) else places
    expected = stats.wasserstein_distance(places, places, p, q)
    assert hb.earth_mover_distance(p, q, domain) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@own.examples(80)
@given(pairs(own.grids()))
def test_on_a_grid_against_transport_of_the_full_mass(drawn: tuple[hb.Domain, Floats, Floats]) -> None:
    domain, p, q = drawn
    assert isinstance(domain, hb.Grid)
    places = [(cell % domain.columns * domain.width, cell // domain.columns * domain.height) for cell in domain.labels]
    distances = np.array([[math.dist(a, b) for b in places] for a in places])
    expected = full_transport(p, q, distances)
    assert hb.earth_mover_distance(p, q, domain) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@own.examples(60)
@given(pairs(own.categories()))
def test_over_categories_it_is_the_total_variation(drawn: tuple[hb.Domain, Floats, Floats]) -> None:
    domain, p, q = drawn
    distance = hb.earth_mover_distance(p, q, domain)
    assert distance == pytest.approx(hb.total_variation(p, q), abs=1e-12)
    assert distance == pytest.approx(full_transport(p, q, 1.0 - np.eye(len(domain))), abs=1e-9)


@own.examples(80)
@given(pairs(own.subsets()))
def test_on_part_of_a_domain(drawn: tuple[hb.Domain, Floats, Floats]) -> None:
    part, p, q = drawn
    assert isinstance(part, Subset)
    wide_p, wide_q = np.zeros(len(part.whole)), np.zeros(len(part.whole))
    wide_p[list(part.kept)], wide_q[list(part.kept)] = p, q
    # Mass never travels through a place: the values left out make no difference.
    expected = hb.earth_mover_distance(wide_p, wide_q, part.whole)
    assert hb.earth_mover_distance(p, q, part) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "whole", [hb.Integers(-2, 9), hb.Bins(np.cumsum(np.arange(1.0, 14.0))), hb.Grid(4, 3, cell=2.0)]
)
def test_on_values_far_apart(whole: hb.Domain) -> None:
    part = Subset(whole, (0, 3, 4, 11))
    p, q = np.array([0.5, 0.1, 0.0, 0.4]), np.array([0.0, 0.3, 0.6, 0.1])
    expected = full_transport(p, q, whole.distances()[np.ix_(part.kept, part.kept)])
    assert hb.earth_mover_distance(p, q, part) == pytest.approx(expected, rel=1e-9)


@own.examples(60)
@given(own.domains(), st.data())
def test_it_is_a_metric(domain: hb.Domain, data: st.DataObject) -> None:
    p, q, r = (data.draw(own.distributions(len(domain))) for _ in range(3))
    direct = hb.earth_mover_distance(p, q, domain)
    assert direct >= 0
    assert hb.earth_mover_distance(p, p, domain) == 0
    assert direct == pytest.approx(hb.earth_mover_distance(q, p, domain), rel=1e-9, abs=1e-12)
    through = hb.earth_mover_distance(p, r, domain) + hb.earth_mover_distance(r, q, domain)
    assert direct <= through + 1e-9
    assert direct <= hb.total_variation(p, q) * domain.diameter * (1 + 1e-9) + 1e-12
    if not np.array_equal(p, q):
        assert direct > 0


@own.examples(60)
@given(own.domains(), st.data())
def test_between_two_points_it_is_their_distance(domain: hb.Domain, data: st.DataObject) -> None:
    first, second = (data.draw(st.integers(0, len(domain) - 1)) for _ in range(2))
    unit = np.eye(len(domain))
    expected = domain.distances()[first, second]
    assert hb.earth_mover_distance(unit[first], unit[second], domain) == pytest.approx(expected, rel=1e-12)


def test_the_papers_grid_in_full() -> None:
    grid = hb.Grid(24, 16, cell=0.5)
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.full(384, 0.3)), rng.dirichlet(np.full(384, 0.3))
    column, row = np.arange(384) % 24, np.arange(384) // 24
    distances = 0.5 * np.hypot(column[:, None] - column, row[:, None] - row)
    assert hb.earth_mover_distance(p, q, grid) == pytest.approx(full_transport(p, q, distances), rel=1e-9)


def test_a_shift_on_a_large_grid_has_its_length() -> None:
    # All mass moves by the same vector: no plan is shorter, since the means differ by that much.
    grid = hb.Grid(512, 512, cell=0.25)
    rng = np.random.default_rng(1)
    cells = rng.choice(400 * 400, size=1000, replace=False)
    column, row = cells % 400, cells // 400
    shares = rng.dirichlet(np.ones(1000))
    p, q = np.zeros(len(grid)), np.zeros(len(grid))
    p[row * 512 + column] = shares
    q[(row + 40) * 512 + column + 30] = shares
    assert np.count_nonzero(p != q) > 1900
    assert hb.earth_mover_distance(p, q, grid) == pytest.approx(50 * 0.25, rel=1e-9)


def test_cells_that_agree_cost_nothing() -> None:
    # 262,144 cells hold mass, two differ: only these two take part.
    grid = hb.Grid(512, 512, cell=1.0)
    p = np.full(len(grid), 1 / len(grid))
    q = p.copy()
    q[grid.cell(0, 0)] -= p[0] / 2
    q[grid.cell(3, 4)] += p[0] / 2
    assert hb.earth_mover_distance(p, q, grid) == pytest.approx(5 * p[0] / 2, rel=1e-6)


def test_too_many_cells_are_refused_with_a_message() -> None:
    grid = hb.Grid(200, 200)
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(len(grid))), rng.dirichlet(np.ones(len(grid)))
    with pytest.raises(hb.DistanceError, match="too many cells") as caught:
        hb.earth_mover_distance(p, q, grid)
    assert caught.value.remedy


# -- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [[0.5, 0.6, 0.2], [0.5, 0.5], [-0.1, 0.6, 0.5], [math.nan, 0.5, 0.5], [math.inf, 0, 0], [], "abc", [[1, 0, 0]]],
    ids=str,
)
def test_what_is_no_distribution_is_refused(bad: object) -> None:
    good = [0.2, 0.3, 0.5]
    for first, second in ((bad, good), (good, bad)):
        with pytest.raises(hb.DistanceError):
            hb.total_variation(first, second)
        with pytest.raises(hb.DistanceError):
            hb.kl_divergence(first, second)
        with pytest.raises(hb.DistanceError):
            hb.earth_mover_distance(first, second, hb.Integers(0, 2))


def test_the_distance_needs_a_domain_of_the_right_size() -> None:
    with pytest.raises(hb.DistanceError):
        hb.earth_mover_distance([0.5, 0.5], [0.5, 0.5], hb.Integers(0, 2))
    with pytest.raises(hb.DistanceError, match="domain"):
        hb.earth_mover_distance([0.5, 0.5], [0.5, 0.5], [0, 1])  # type: ignore[arg-type]
