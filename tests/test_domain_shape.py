"""Places, neighbours, smoothing and trends of domains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hubbub as hb
import strategies as own
from auto_studies import (
    ABC,
    HOLED,
    LINE,
    MAP,
    bump,
    sent,
)
from hubbub.domains import Subset
from hubbub.domains.domain_shape import DomainShape
from hubbub.estimators.auto.candidate_families import families_for, widths
from hubbub.estimators.auto.candidate_fits import (
    PenalisedFamily,
)

# -- shapes ----------------------------------------------------------------------------------------------


def pairs_of(shape: DomainShape) -> set[tuple[int, int]]:
    first, second = shape.neighbours
    pairs = [tuple(sorted(pair)) for pair in zip(first.tolist(), second.tolist(), strict=True)]
    assert len(set(pairs)) == len(pairs)
    return {(one, other) for one, other in pairs}


@given(own.domains())
@own.examples(80)
def test_neighbours_are_those_with_a_common_side(domain: hb.Domain) -> None:
    shape = DomainShape.of(domain)
    whole = domain.whole if isinstance(domain, Subset) else domain
    kept = domain.positions if isinstance(domain, Subset) else np.arange(len(domain))
    expected: set[tuple[int, int]] = set()
    if isinstance(whole, hb.Grid) and len(domain) > 1:
        for one, a in enumerate(whole.labels[kept].tolist()):
            for other, b in enumerate(whole.labels[kept].tolist()):
                (row, column), (below, beside) = divmod(a, whole.columns), divmod(b, whole.columns)
                if one < other and abs(row - below) + abs(column - beside) == 1:
                    expected.add((one, other))
    elif isinstance(whole, hb.Integers | hb.Bins) and len(domain) > 1:
        expected = {(place, place + 1) for place in range(len(domain) - 1)}  # also over a gap
    assert pairs_of(shape) == expected


def test_lattices_are_full_even_and_in_order() -> None:
    assert DomainShape.of(LINE).lattice == (8,)
    assert DomainShape.of(MAP).lattice == (2, 3)
    assert DomainShape.of(hb.Grid(1, 5)).lattice == (5, 1)
    assert DomainShape.of(hb.Bins([0, 2, 4, 6])).lattice == (3,)
    assert DomainShape.of(hb.Bins([0, 2, 4, 7])).lattice is None
    assert DomainShape.of(HOLED).lattice is None
    assert DomainShape.of(ABC).lattice is None
    assert DomainShape.of(Subset(LINE, (2, 3, 4))).lattice == (3,)
    assert DomainShape.of(Subset(LINE, (2, 3, 5))).lattice is None
    assert DomainShape.of(Subset(LINE, (0, 2, 4))).lattice is None
    assert DomainShape.of(Subset(MAP, (1, 2, 4, 5))).lattice == (2, 2)
    assert DomainShape.of(Subset(MAP, (0, 1, 5))).lattice is None


def test_restricted_reports_have_the_shape_of_what_is_left() -> None:
    reports = sent(hb.Geometric(LINE, 0.5), bump(8, 50)).restrict([1, 2, 5, 6])
    shape = DomainShape.of(reports.domain)
    assert shape.places is not None
    assert shape.places.tolist() == [[1.0], [2.0], [5.0], [6.0]]
    assert pairs_of(shape) == {(0, 1), (1, 2), (2, 3)}
    assert shape.spacing == 1.0
    corner = DomainShape.of(sent(hb.PlanarGeometric(MAP, 1.0), bump(6, 50)).restrict([1, 2, 4]).domain)
    assert pairs_of(corner) == {(0, 1), (0, 2)}


def test_spacings_and_extents() -> None:
    assert DomainShape.of(hb.Bins([0, 10, 20, 30])).spacing == 10.0
    assert DomainShape.of(hb.Grid(4, 4, cell=(3.0, 3.0))).spacing == 3.0
    assert DomainShape.of(hb.Integers(0, 100)).extent == 100.0
    assert DomainShape.of(hb.Grid(4, 5, cell=2.0)).extent == 5.0
    assert widths(DomainShape.of(hb.Integers(0, 100))) == pytest.approx([1.0, 2.0, 4.0])
    assert widths(DomainShape.of(hb.Integers(0, 5))) == pytest.approx([1.0, 2.0])
    assert len(widths(DomainShape.of(hb.Integers(0, 399)))) == 4
    assert len(widths(DomainShape.of(hb.Integers(0, 10_000)))) == 3  # where each takes long


@given(own.bins() | own.grids() | own.integers(), st.floats(0.3, 5.0))
@own.examples(40)
def test_kernels_keep_mass_and_fall_with_distance(domain: hb.Domain, width: float) -> None:
    shape = DomainShape.of(domain)
    kernel = shape.kernel(width)
    np.testing.assert_allclose(kernel.sum(axis=1), 1.0, rtol=1e-12)
    assert (kernel >= 0).all()
    unit = shape.spacing * width
    with np.errstate(divide="ignore"):
        logs = np.log(kernel / np.diag(kernel)[:, None])
    seen = kernel > 1e-200
    np.testing.assert_allclose(logs[seen], (-0.5 * (domain.distances() / unit) ** 2)[seen], rtol=1e-6, atol=1e-9)


THIRDS = np.array([[4, 2, 0], [1.5, 3, 1.5], [0, 2, 4]]) / 6


def test_averages_by_hand_on_a_line() -> None:
    by_hand = np.array(
        [
            [2 / 3, 1 / 3, 0, 0, 0],
            [1 / 4, 1 / 2, 1 / 4, 0, 0],
            [0, 1 / 4, 1 / 2, 1 / 4, 0],
            [0, 0, 1 / 4, 1 / 2, 1 / 4],
            [0, 0, 0, 1 / 3, 2 / 3],
        ]
    )
    theta = np.array([0.5, 0.1, 0.05, 0.05, 0.3])
    expected = by_hand @ theta
    for domain in (hb.Integers(3, 7), hb.Bins([0, 1, 5, 6, 8, 20]), hb.Grid(5, 1), hb.Grid(1, 5)):
        np.testing.assert_allclose(DomainShape.of(domain).averaged(theta), expected / expected.sum(), rtol=1e-12)


def test_averages_by_hand_on_a_map() -> None:
    theta = np.array([[0.4, 0.1, 0.05], [0.05, 0.1, 0.3]])
    halves = np.array([[2, 1], [1, 2]]) / 3
    expected = halves @ theta @ THIRDS.T
    found = DomainShape.of(MAP).averaged(theta.ravel())
    np.testing.assert_allclose(found, (expected / expected.sum()).ravel(), rtol=1e-12)


@given(own.domains(), st.data())
@own.examples(60)
def test_averages_are_distributions(domain: hb.Domain, data: st.DataObject) -> None:
    theta = data.draw(own.distributions(len(domain)))
    kept = theta.copy()
    shape = DomainShape.of(domain)
    found = shape.averaged(theta)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1.0)
    assert theta.tolist() == kept.tolist()
    even = np.full(len(domain), 1.0 / len(domain))
    np.testing.assert_allclose(shape.averaged(even), even, rtol=1e-12)
    if shape.steps is None:
        np.testing.assert_allclose(found, theta, rtol=1e-12)


@given(st.sampled_from([LINE, MAP, hb.Grid(1, 9), hb.Grid(5, 4), hb.Bins([0, 2, 4, 6])]), st.floats(0.4, 9.0))
@own.examples(25)
def test_filters_are_their_own_adjoints_and_keep_mass(domain: hb.Domain, width: float) -> None:
    shape = DomainShape.of(domain)
    matrix = shape.smoothed(np.eye(len(domain)), width)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-12)
    assert (matrix >= 0).all()
    assert width > 1.0 or matrix[0, 0] > matrix[0, -1]


def check_trends(domain: hb.Domain, planes: int, parabolas: int) -> None:
    shape = DomainShape.of(domain)
    assert shape.places is not None
    axes = [*shape.places.T]
    wanted = [np.ones(len(domain)), *axes]
    for degree, count in ((1, planes), (2, parabolas)):
        basis = shape.trends(degree)
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-10)
        assert basis.shape[1] == count
        for trend in wanted:
            np.testing.assert_allclose(basis @ (basis.T @ trend), trend, atol=1e-8)
        wanted += [one * other for one in axes for other in axes]


def test_trends_are_the_parabolas() -> None:
    check_trends(LINE, 2, 3)
    check_trends(hb.Bins([0, 1, 4, 9, 20, 21]), 2, 3)
    check_trends(hb.Grid(4, 5), 3, 6)
    check_trends(hb.Integers(0, 1), 2, 2)
    check_trends(Subset(LINE, (0, 1, 5, 7)), 2, 3)


@pytest.mark.parametrize(
    ("domain", "planes", "parabolas"),
    [(hb.Grid(1, 7), 2, 3), (hb.Grid(7, 1), 2, 3), (hb.Grid(2, 7), 3, 5), (hb.Grid(2, 2), 3, 4)],
    ids=["one column", "one row", "two columns", "four cells"],
)
def test_trends_of_narrow_maps_are_the_parabolas(domain: hb.Domain, planes: int, parabolas: int) -> None:
    check_trends(domain, planes, parabolas)


def test_a_column_of_cells_is_a_line() -> None:
    """k-RR knows no distances: only the smoothing does."""
    counts = np.bincount(bump(12, 900), minlength=12)
    line, column = (
        hb.estimate(hb.Reports.from_counts(hb.RandomizedResponse(domain, 1.5), counts)).settings["selection"]
        for domain in (hb.Integers(0, 11), hb.Grid(1, 12))
    )
    np.testing.assert_allclose(column.scores, line.scores, atol=1e-3)


def test_smooth_fields_cost_nothing_for_parabolas_and_much_for_noise() -> None:
    shape = DomainShape.of(hb.Integers(0, 19))
    assert shape.places is not None
    place = shape.places[:, 0]
    noise = np.random.default_rng(0).normal(size=20)
    smooth = [
        family
        for family in families_for(shape, uses_newton=True, max_updates=10)
        if isinstance(family, PenalisedFamily)
    ]
    curves = [family for family in smooth if family.name.startswith("a smooth curve")]
    assert curves
    for family in curves:
        costs = [penalty.value(0.3 * place - 0.05 * place**2) for _, penalty in family.penalties]
        assert np.abs(costs).max() < 1e-4
        rough = [float(penalty.value(noise)) for _, penalty in family.penalties]
        assert min(rough) > 1.0
        assert rough == sorted(rough, reverse=True)  # from stiff to supple
