"""Domains: labels and positions, order, distances, places on the line and on the map."""

from __future__ import annotations

import math
from bisect import bisect_right
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hubbub as hb
import strategies as own
from hubbub.domains import Subset
from hubbub.mechanisms.planar import planar_laplace
from hubbub.sampling import SeededSource

SOUTH, WEST, NORTH, EAST = 37.7228, -122.5153, 37.7946, -122.3789  # San Francisco


def city(columns: int, rows: int, cells: list[int] | None = None) -> hb.Grid:
    return hb.Grid.over(south=SOUTH, west=WEST, north=NORTH, east=EAST, columns=columns, rows=rows, cells=cells)


def test_integers_at_the_ends_of_64_bits_are_outside_of_small_domains() -> None:
    """Their distance to the lowest value does not fit into 64 bits."""
    far = np.array([-(2**63), 2**63 - 1, -6, 10, -5, 9])
    assert hb.Integers(-5, 9).find(far).tolist() == [-1, -1, -1, -1, 0, 14]
    assert [int(hb.Integers(-5, 9).find(number)) for number in far[:2]] == [-1, -1]
    assert hb.Integers(-5, 9).find(np.array([250, 9], dtype=np.uint8)).tolist() == [-1, 14]


# -- what holds for every domain --------------------------------------------------------------------------


@own.examples(150)
@given(own.domains())
def test_index_turns_labels_into_positions(domain: hb.Domain) -> None:
    labels = domain.labels
    assert len(domain) == len(labels)
    assert len(set(labels.tolist())) == len(domain)
    np.testing.assert_array_equal(domain.index(labels), np.arange(len(domain)))
    np.testing.assert_array_equal(domain.index(labels.tolist()), np.arange(len(domain)))
    backwards = np.arange(len(domain))[::-1]
    np.testing.assert_array_equal(domain.index(labels[backwards]), backwards)
    for position, label in enumerate(labels.tolist()):
        assert domain.index(label) == position


@own.examples(60)
@given(own.domains())
def test_labels_cannot_be_written_to(domain: hb.Domain) -> None:
    with pytest.raises(ValueError, match="read-only"):
        domain.labels[0] = domain.labels[-1]


@own.examples(60)
@given(own.domains())
def test_find_marks_what_is_outside_and_index_refuses_it(domain: hb.Domain) -> None:
    outside = 10**6  # no strategy draws a label this large
    mixed = [domain.labels.tolist()[0], outside, domain.labels.tolist()[-1]]
    np.testing.assert_array_equal(domain.find(mixed), [0, -1, len(domain) - 1])
    with pytest.raises(hb.DomainError, match="not in the domain") as caught:
        domain.index(mixed)
    assert "position 1" in caught.value.where
    assert str(outside) in caught.value.got


@own.examples(150)
@given(own.domains())
def test_distances_are_a_metric(domain: hb.Domain) -> None:
    distances = domain.distances()
    size = len(domain)
    assert distances.shape == (size, size)
    np.testing.assert_array_equal(distances, distances.T)
    np.testing.assert_array_equal(np.diag(distances), 0.0)
    assert (distances[~np.eye(size, dtype=bool)] > 0).all()
    through = (distances[:, :, None] + distances[None, :, :]).min(axis=1)
    assert (distances <= through * (1 + 1e-12)).all()


@own.examples(150)
@given(own.domains())
def test_diameter_is_the_largest_distance(domain: hb.Domain) -> None:
    if isinstance(domain, hb.Categories):
        assert domain.diameter == 1.0
    else:
        assert domain.diameter == pytest.approx(domain.distances().max(), rel=1e-12, abs=0)


@own.examples(60)
@given(own.domains(), st.data())
def test_distances_between_is_a_part_of_the_matrix(domain: hb.Domain, data: st.DataObject) -> None:
    positions = st.lists(st.integers(0, len(domain) - 1), min_size=1, max_size=6).map(np.array)
    rows, columns = data.draw(positions), data.draw(positions)
    np.testing.assert_array_equal(domain.distances_between(rows, columns), domain.distances()[np.ix_(rows, columns)])


# -- each kind --------------------------------------------------------------------------------------------


def test_categories_keep_their_order_and_their_types() -> None:
    domain = hb.Categories(["pear", "apple", 7, "8"])
    assert domain.labels.tolist() == ["pear", "apple", 7, "8"]
    assert domain.index(["8", 7]).tolist() == [3, 2]
    assert domain.find(["7", 8]).tolist() == [-1, -1]
    np.testing.assert_array_equal(domain.distances(), 1 - np.eye(4))


@own.examples(60)
@given(own.integers())
def test_integers_increase_and_distances_are_differences(domain: hb.Integers) -> None:
    values = list(range(domain.low, domain.high + 1))
    assert domain.labels.tolist() == values
    expected = [[abs(a - b) for b in values] for a in values]
    np.testing.assert_array_equal(domain.distances(), expected)


@own.examples(100)
@given(own.bins(), st.data())
def test_bins_locate_like_bisection(domain: hb.Bins, data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.floats(domain.edges[0], domain.edges[-1]), min_size=1, max_size=20))
    # A bin includes its left edge; only the last one also includes its right edge.
    expected = [min(bisect_right(domain.edges, number) - 1, len(domain) - 1) for number in numbers]
    assert domain.locate(numbers).tolist() == expected


@own.examples(60)
@given(own.bins())
def test_bins_locate_edges_and_their_neighbours(domain: hb.Bins) -> None:
    edges = np.array(domain.edges)
    last = len(domain) - 1
    assert domain.locate(edges).tolist() == [*range(last + 1), last]
    assert domain.locate(np.nextafter(edges[1:], -np.inf)).tolist() == list(range(last + 1))
    assert domain.locate(domain.places).tolist() == list(range(last + 1))
    for outside in (np.nextafter(edges[0], -np.inf), np.nextafter(edges[-1], np.inf)):
        with pytest.raises(hb.DomainError, match="outside all bins"):
            domain.locate([edges[0], outside])


@own.examples(60)
@given(own.bins())
def test_bin_distances_are_between_centres(domain: hb.Bins) -> None:
    centres = [(low + high) / 2 for low, high in zip(domain.edges, domain.edges[1:], strict=False)]
    expected = [[abs(a - b) for b in centres] for a in centres]
    np.testing.assert_allclose(domain.distances(), expected, rtol=1e-14)


# -- grids ------------------------------------------------------------------------------------------------


def test_grid_cells_are_numbered_row_by_row_from_the_south_west() -> None:
    grid = hb.Grid(4, 3, cell=(2.0, 1.0))
    assert grid.labels.tolist() == list(range(12))
    assert [grid.cell(column, 0) for column in range(4)] == [0, 1, 2, 3]
    assert [grid.cell(0, row) for row in range(3)] == [0, 4, 8]
    assert grid.cell(column=3, row=2) == 11
    # East is the direction of columns and north that of rows: the sides tell them apart.
    assert grid.distances()[0, 1] == 2.0
    assert grid.distances()[0, 4] == 1.0


def test_grid_numbering_on_the_map() -> None:
    grid = city(24, 16)
    near = 1e-6
    assert grid.locate(SOUTH + near, WEST + near) == 0
    assert grid.locate(SOUTH + near, EAST - near) == 23
    assert grid.locate(NORTH - near, WEST + near) == 24 * 15
    assert grid.locate(NORTH, EAST) == 24 * 16 - 1  # the outer edges belong to the last cells


@own.examples(80)
@given(own.grids())
def test_grid_distances_are_euclidean_between_centres(grid: hb.Grid) -> None:
    centres = [(number % grid.columns * grid.width, number // grid.columns * grid.height) for number in grid.labels]
    expected = [[math.dist(a, b) for b in centres] for a in centres]
    np.testing.assert_allclose(grid.distances(), expected, rtol=1e-13)


@own.examples(80)
@given(own.map_grids())
def test_map_cells_have_equirectangular_sizes(grid: hb.Grid) -> None:
    box = grid.box
    assert box is not None
    kilometres = 6371.0088 * math.pi / 180  # of one degree on a great circle
    middle = math.radians((box.south + box.north) / 2)
    assert grid.height == pytest.approx((box.north - box.south) * kilometres / grid.rows, rel=1e-12)
    assert grid.width == pytest.approx((box.east - box.west) * kilometres * math.cos(middle) / grid.columns, rel=1e-12)
    assert grid.unit == "km"


@own.examples(80)
@given(own.map_grids())
def test_locate_finds_the_cell_of_its_centre(grid: hb.Grid) -> None:
    box = grid.box
    assert box is not None
    columns, rows = grid.labels % grid.columns, grid.labels // grid.columns
    latitude = box.south + (rows + 0.5) / grid.rows * (box.north - box.south)
    longitude = box.west + (columns + 0.5) / grid.columns * (box.east - box.west)
    np.testing.assert_array_equal(grid.locate(latitude, longitude), grid.labels)


def test_locate_refuses_points_outside_and_cells_that_are_not_kept() -> None:
    grid = city(2, 2, cells=[0, 3])
    with pytest.raises(hb.DomainError, match="outside the box"):
        grid.locate(NORTH + 1e-9, WEST)
    assert grid.locate(SOUTH, WEST) == 0
    with pytest.raises(hb.DomainError):
        grid.locate(SOUTH, EAST)


def on_the_map(grid: hb.Grid, columns: NDArray[np.float64], rows: NDArray[np.float64]) -> tuple[Any, Any]:
    """Latitudes and longitudes of points counted in cells from the south-west corner."""
    box = grid.box
    assert box is not None
    latitude = box.south + rows / grid.rows * (box.north - box.south)
    return latitude, box.west + columns / grid.columns * (box.east - box.west)


@pytest.mark.parametrize(
    "cells", [None, [0, 1, 4, 5, 9, 14, 17, 23], [3, 11]], ids=["all cells", "some cells", "two cells"]
)
@pytest.mark.parametrize("kind", [hb.PlanarLaplace, hb.PlanarGeometric])
def test_noisy_points_outside_belong_to_the_cell_that_the_mechanism_reports(
    kind: type[hb.PlanarLaplace] | type[hb.PlanarGeometric], cells: list[int] | None
) -> None:
    """The noise is drawn twice from one seed: once remapped by the mechanism, once as points on the map."""
    grid = city(6, 4, cells)
    mechanism = kind(grid, epsilon=0.3)  # half of the points leave the box
    positions = np.random.default_rng(5).integers(0, len(grid), 4_000)
    reported = grid.labels[mechanism.draw(positions, SeededSource(np.random.default_rng(6)))]
    source = SeededSource(np.random.default_rng(6))
    if kind is hb.PlanarLaplace:
        noise = planar_laplace(mechanism.epsilon, positions.size, source) / np.array(grid.sides)
    else:
        noise = mechanism._noise(positions.size, source).astype(np.float64)
    places = grid.steps[positions] + 0.5 + noise
    inside = ((places >= 0) & (places <= [grid.columns, grid.rows])).all(axis=1)
    assert 0.3 < inside.mean() < 0.9
    latitude, longitude = on_the_map(grid, places[:, 0], places[:, 1])
    np.testing.assert_array_equal(grid.locate(latitude, longitude, outside="nearest"), reported)


@own.examples(60)
@given(own.map_grids(), st.integers(0, 2**32 - 1))
def test_locating_the_nearest_cell_changes_nothing_inside_the_box(grid: hb.Grid, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = np.concatenate([rng.random((20, 2)), [[0, 0], [0, 1], [1, 0], [1, 1]]])
    box = grid.box
    assert box is not None
    latitude = np.clip(box.south + shares[:, 1] * (box.north - box.south), box.south, box.north)
    longitude = np.clip(box.west + shares[:, 0] * (box.east - box.west), box.west, box.east)
    expected = grid.locate(latitude, longitude)
    np.testing.assert_array_equal(grid.locate(latitude, longitude, outside="nearest"), expected)


def test_the_nearest_cell_of_one_point_is_one_number() -> None:
    assert city(24, 16).locate(NORTH + 1, WEST - 1, outside="nearest") == 24 * 15
    assert np.ndim(city(2, 2, cells=[0, 2]).locate(NORTH + 1, EAST + 1, outside="nearest")) == 0
    points = city(24, 16).locate([[SOUTH - 1, NORTH + 1]], [[WEST, EAST]], outside="nearest")
    assert points.tolist() == [[0, 24 * 16 - 1]]


def test_noisy_longitudes_beyond_the_180th_meridian_come_back_on_the_near_side() -> None:
    islands = hb.Grid.over(south=-18, west=178, north=-16, east=180, columns=4, rows=4)
    assert islands.locate(-17.9, [180.3, -179.7], outside="nearest").tolist() == [3, 3]
    west = hb.Grid.over(south=-18, west=-180, north=-16, east=-178, columns=4, rows=4)
    assert west.locate(-17.9, [179.7, -180.3], outside="nearest").tolist() == [0, 0]


def test_points_that_are_no_places_are_refused_with_the_nearest_cell_too() -> None:
    grid = city(4, 3)
    for latitude, longitude in ((math.nan, WEST), (SOUTH, math.inf), (-122.45, 37.75), (SOUTH, 400.0)):
        with pytest.raises(hb.DomainError, match="not a place on the map"):
            grid.locate([SOUTH, latitude], [WEST, longitude], outside="nearest")


def test_a_grid_keeps_some_cells() -> None:
    grid = hb.Grid(3, 3, cells=[8, 0, 4, 4])
    assert grid.labels.tolist() == [0, 4, 8]
    assert grid.index([8, 0]).tolist() == [2, 0]
    assert grid.find([1, 4]).tolist() == [-1, 1]
    assert grid.cell(1, 1) == 4
    with pytest.raises(hb.DomainError):
        grid.cell(1, 0)


def brute_nearest(grid: hb.Grid, columns: NDArray[np.int64], rows: NDArray[np.int64]) -> list[int]:
    """Compare with every kept cell; whole numbers, so that ties are exact (all sides are multiples of 1/4)."""
    width, height = round(grid.width * 4), round(grid.height * 4)
    found = []
    for column, row in zip(columns.tolist(), rows.tolist(), strict=True):
        squares = [
            ((number % grid.columns - column) * width) ** 2 + ((number // grid.columns - row) * height) ** 2
            for number in grid.labels.tolist()
        ]
        found.append(squares.index(min(squares)))  # the first, hence the lowest cell number
    return found


@own.examples(120)
@given(own.grids(5))
def test_nearest_cell_with_ties_to_the_lowest_number(grid: hb.Grid) -> None:
    columns, rows = (part.ravel() for part in np.meshgrid(np.arange(-4, 10), np.arange(-4, 10)))
    assert grid.nearest(columns, rows).tolist() == brute_nearest(grid, columns, rows)


def test_nearest_cell_of_a_tie() -> None:
    ring = hb.Grid(3, 3, cell=1.0, cells=[1, 3, 5, 7])  # all at distance 1 from the middle
    assert ring.nearest(np.array([1]), np.array([1])).tolist() == [0]
    assert ring.labels[0] == 1


# -- equality ---------------------------------------------------------------------------------------------


@own.examples(80)
@given(own.domains())
def test_domains_built_alike_are_equal(domain: hb.Domain) -> None:
    twin: hb.Domain
    if isinstance(domain, hb.Categories):
        twin = hb.Categories(domain.labels.tolist())
    elif isinstance(domain, hb.Integers):
        twin = hb.Integers(domain.low, domain.high)
    elif isinstance(domain, hb.Bins):
        twin = hb.Bins(domain.edges)
    elif isinstance(domain, hb.Grid):
        twin = hb.Grid(domain.columns, domain.rows, domain.sides, domain.unit, domain.cells, box=domain.box)
    else:
        assert isinstance(domain, Subset)
        twin = Subset(domain.whole, domain.kept)
    domain.distances()  # whatever was computed and kept must not matter
    assert twin == domain
    assert hash(twin) == hash(domain)
    assert len({twin, domain}) == 1


def test_domains_that_differ_are_not_equal() -> None:
    different: list[hb.Domain] = [
        hb.Categories(["a", "b", "c"]),
        hb.Categories(["b", "a", "c"]),
        hb.Integers(0, 2),
        hb.Integers(0, 3),
        hb.Integers(1, 3),
        hb.Bins([0, 1, 2, 3]),
        hb.Bins([0, 1, 2, 4]),
        hb.Grid(3, 2),
        hb.Grid(2, 3),
        hb.Grid(3, 2, cell=0.6),
        hb.Grid(3, 2, unit="mile"),
        hb.Grid(3, 2, cells=[0, 1]),
        hb.Grid(3, 2, cells=[0, 2]),
        Subset(hb.Integers(0, 3), (0, 1)),
        Subset(hb.Integers(0, 3), (0, 2)),
    ]
    assert len(set(different)) == len(different)
    for place, first in enumerate(different):
        assert [first == other for other in different] == [other == place for other in range(len(different))]


def test_a_subset_speaks_of_its_whole() -> None:
    part = Subset(hb.Grid(3, 2, cell=1.0), (1, 3, 5))
    assert part.labels.tolist() == [1, 3, 5]
    assert part.index([5, 1]).tolist() == [2, 0]
    assert part.find([0, 3]).tolist() == [-1, 1]
    assert part.distances()[0, 1] == pytest.approx(math.sqrt(2))
    assert part.unit == "km"


def test_labels_that_end_in_nul_are_told_apart() -> None:
    """NumPy cuts zeros off the end of texts: "a" and "a\\0" were one label."""
    words = hb.Categories(["a", "a\0", "b"])
    assert words.index(["a\0", "a", "b"]).tolist() == [1, 0, 2]
    assert hb.Categories(["a", "b"]).find(["a\0"]).tolist() == [-1]
    assert hb.Cloaking(words, ["x\0", "x", "y"]).privatize(["a", "a\0"]).tolist() == ["x\0", "x"]


def test_whole_numbers_beyond_int64_are_not_rounded() -> None:
    """Beside small ones NumPy turns them into floats: 2^63 + 1 was found at the place of 2^63."""
    numbers = hb.Categories([2**63, 2**63 + 1, 1])
    assert numbers.index([2**63 + 1, 1, 2**63]).tolist() == [1, 2, 0]
    assert hb.Cloaking(numbers, [2**63, 2**63 + 1, 1]).regions == (2**63, 2**63 + 1, 1)


def test_truth_values_are_no_places_on_a_map() -> None:
    box = hb.Grid.over(south=-1, west=-1, north=2, east=2, columns=2, rows=2)
    with pytest.raises(hb.DomainError, match="do not match"):
        box.locate(True, 1.0)


def test_decimals_and_fractions_are_numbers_for_bins_and_maps() -> None:
    bins = hb.Bins([0, 1, 2])
    assert bins.locate([Decimal("1.5"), Decimal(0)]).tolist() == [1, 0]
    assert bins.locate([Fraction(3, 2)]).tolist() == [1]
    with pytest.raises(hb.DomainError, match="not a number"):
        bins.locate([Decimal(1), "1"])
    box = hb.Grid.over(south=-1, west=-1, north=2, east=2, columns=2, rows=2)
    assert box.locate(Decimal("1.5"), Fraction(3, 2)) == 3


# -- what callers ask instead of the class ----------------------------------------------------------------


@own.examples(100)
@given(own.domains())
def test_places_coordinates_and_exact_distances_agree_with_the_distances(domain: hb.Domain) -> None:
    distances = domain.distances()
    apart = distances[~np.eye(len(domain), dtype=bool)]
    kind = type(domain.unrestricted)
    assert domain.least_distance <= apart.min(initial=math.inf)
    assert domain.is_equidistant == (kind is hb.Categories)
    assert domain.chart == {hb.Categories: "bars", hb.Integers: "line", hb.Bins: "line", hb.Grid: "map"}[kind]
    exact = [[domain.squared_distance(a, b) for b in range(len(domain))] for a in range(len(domain))]
    np.testing.assert_allclose(np.array(exact, dtype=np.float64), distances**2, rtol=1e-12)
    if domain.coordinates is None or domain.steps is None:
        assert domain.is_equidistant
        return
    across = domain.coordinates[:, None, :] - domain.coordinates[None, :, :]
    np.testing.assert_allclose(np.hypot.reduce(across, axis=2, initial=0.0), distances, rtol=1e-9, atol=1e-12)
    assert domain.steps.shape == domain.coordinates.shape
    if domain.intervals is not None:
        np.testing.assert_array_equal(domain.intervals.mean(axis=1), domain.places)


@own.examples(100)
@given(own.domains(), st.data())
def test_a_subset_answers_for_its_values(whole: hb.Domain, data: st.DataObject) -> None:
    domain = whole.unrestricted
    kept = sorted(data.draw(st.sets(st.integers(0, len(domain) - 1), min_size=1)))
    part = Subset(domain, tuple(kept))
    assert part.unrestricted is domain
    assert domain.among is None
    np.testing.assert_array_equal(part.among, kept)
    np.testing.assert_array_equal(part.labels, domain.labels[part.positions])
    np.testing.assert_array_equal(domain.positions, np.arange(len(domain)))
    for name in ("places", "intervals", "coordinates", "steps"):
        every, some = getattr(domain, name), getattr(part, name)
        assert (some is None) == (every is None)
        if every is not None:
            np.testing.assert_array_equal(some, every[kept])
    for name in ("chart", "grid", "is_equidistant", "is_on_map", "unit"):
        assert getattr(part, name) == getattr(domain, name)
    assert part.squared_distance(0, len(part) - 1) == domain.squared_distance(kept[0], kept[-1])


@own.examples(100)
@given(own.domains())
def test_the_fields_of_a_study_file_build_the_same_domain(drawn: hb.Domain) -> None:
    domain = drawn.unrestricted
    fields = {name: tuple(value) if name == "cell" else value for name, value in domain.fields().items()}
    assert type(domain).constructor(fields)(**fields) == domain
    with pytest.raises(hb.DomainError, match="study file"):
        Subset(domain, (0,)).fields()
