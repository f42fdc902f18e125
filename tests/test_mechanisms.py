"""Mechanisms: their matrices against formulas written here, their channels against their matrices."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, special, stats

import hubbub as hb
import strategies as own
from hubbub.channels import Channel, ConcatenatedChannel
from hubbub.mechanisms.local_hashing import hash_v1

Floats = NDArray[np.float64]
Outputs = NDArray[Any]

LEVEL = 1e-8  # of each chi-square test of the hash: eight of them, with fixed seeds
REFERENCE = json.loads((Path(__file__).parent / "reference" / "planar_laplace.json").read_text(encoding="utf-8"))


def listed(mechanism: hb.Mechanism, seed: int = 12345) -> tuple[Outputs, Floats]:
    """Return all outputs and the matrix (of hashed outputs: those under one seed)."""
    if isinstance(mechanism, hb.LocalHashing):
        assert mechanism.buckets is not None
        outputs = np.empty(mechanism.buckets, dtype=[("seed", np.uint64), ("bucket", np.uint32)])
        outputs["seed"], outputs["bucket"] = seed, np.arange(mechanism.buckets)
        return outputs, mechanism.matrix(seed)
    every = mechanism.outputs
    assert every is not None
    return every, mechanism.matrix()


def stored(channel: Channel, matrix: Floats) -> Floats:
    """Return what the channel must hold: its own factor of each pattern taken out of the matrix."""
    scaled: Floats = matrix / np.exp(channel.log_scale)
    return scaled


# -- what holds for every mechanism -----------------------------------------------------------------------


@own.examples(250)
@given(own.mechanisms())
def test_rows_are_distributions(mechanism: hb.Mechanism) -> None:
    outputs, matrix = listed(mechanism)
    assert matrix.shape == (len(mechanism.domain), len(outputs))
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@own.examples(200)
@given(own.mechanisms(), st.randoms(use_true_random=False))
def test_channels_hold_the_columns_of_the_matrix(mechanism: hb.Mechanism, random: Any) -> None:
    outputs, matrix = listed(mechanism)
    chosen = np.array([random.randrange(len(outputs)) for _ in range(7)])  # any order, some of them twice
    held = np.exp(mechanism.channel(outputs[chosen]).log_dense())
    np.testing.assert_allclose(held, matrix[:, chosen], rtol=0, atol=1e-12)


@own.examples(200)
@given(own.mechanisms(), st.data())
def test_channels_multiply_like_the_matrix(mechanism: hb.Mechanism, data: st.DataObject) -> None:
    outputs, matrix = listed(mechanism)
    channel = mechanism.channel(outputs)
    held = stored(channel, matrix)
    assert (channel.values, channel.patterns) == held.shape
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    theta = rng.dirichlet(np.ones(channel.values), size=(2, 3))
    ratio = rng.uniform(0, 3, size=(2, 3, channel.patterns))
    for forwards, backwards in ((theta, ratio), (theta[0], ratio[0]), (theta[1, 2], ratio[1, 2])):
        scale = np.abs(backwards).sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(channel.forward(forwards), forwards @ held, rtol=0, atol=1e-12)
        np.testing.assert_allclose(channel.backward(backwards) / scale, backwards @ held.T / scale, rtol=0, atol=1e-12)


@own.examples(150)
@given(own.mechanisms(), st.data())
def test_restricted_channels_hold_some_rows(mechanism: hb.Mechanism, data: st.DataObject) -> None:
    outputs, matrix = listed(mechanism)
    kept = data.draw(st.sets(st.integers(0, len(mechanism.domain) - 1), min_size=1))
    among = np.array(sorted(kept))
    channel = mechanism.encoded_channel(mechanism.output_space.encode(outputs), among)
    assert channel.values == among.size
    np.testing.assert_allclose(np.exp(channel.log_dense()), matrix[among], rtol=0, atol=1e-12)
    held = stored(channel, matrix[among])
    theta = np.random.default_rng(0).dirichlet(np.ones(among.size), size=2)
    np.testing.assert_allclose(channel.forward(theta), theta @ held, rtol=0, atol=1e-12)
    ratio = np.random.default_rng(1).dirichlet(np.ones(channel.patterns), size=2)
    np.testing.assert_allclose(channel.backward(ratio), ratio @ held.T, rtol=0, atol=1e-12)


@own.examples(40)
@given(own.integers(), own.epsilons(0.2), st.integers(0, 99))
def test_channels_side_by_side(domain: hb.Integers, epsilon: float, seed: int) -> None:
    parts: list[hb.Mechanism] = [
        hb.RandomizedResponse(domain, epsilon),
        hb.OptimizedUnary(domain, epsilon),
        hb.TruncatedGeometric(domain, epsilon),
    ]
    channel = ConcatenatedChannel([part.channel(part.outputs) for part in parts])
    held = stored(channel, np.concatenate([part.matrix() for part in parts], axis=1))
    rng = np.random.default_rng(seed)
    theta, ratio = rng.dirichlet(np.ones(len(domain)), size=3), rng.dirichlet(np.ones(channel.patterns), size=3)
    np.testing.assert_allclose(channel.forward(theta), theta @ held, rtol=0, atol=1e-12)
    np.testing.assert_allclose(channel.backward(ratio), ratio @ held.T, rtol=0, atol=1e-12)
    np.testing.assert_allclose(channel.forward(theta[0]), theta[0] @ held, rtol=0, atol=1e-12)


@own.examples(60)
@given(own.mechanisms())
def test_outputs_survive_being_encoded_and_written(mechanism: hb.Mechanism) -> None:
    outputs, _ = listed(mechanism)
    space = mechanism.output_space
    np.testing.assert_array_equal(space.decode(space.encode(outputs)), outputs)
    texts = [space.write(output) for output in outputs[:20]]
    assert len(set(texts)) == len(texts)
    np.testing.assert_array_equal(space.encode([space.parse(text) for text in texts]), space.encode(outputs[:20]))


# -- privacy ----------------------------------------------------------------------------------------------


def realised_epsilon(mechanism: hb.Mechanism) -> float:
    """Return the largest log-ratio within a column, for metric mechanisms divided by the distance."""
    outputs, _ = listed(mechanism)
    logs = mechanism.channel(outputs).log_dense()  # not the matrix: exp would lose small probabilities
    distances = mechanism.domain.distances()
    worst = 0.0
    for first, second in combinations(range(len(logs)), 2):
        apart = float(np.abs(logs[first] - logs[second]).max())
        worst = max(worst, apart / (distances[first, second] if mechanism.metric else 1.0))
    return worst


@own.examples(250)
@given(own.mechanisms())
def test_epsilon_is_kept(mechanism: hb.Mechanism) -> None:
    if math.isfinite(mechanism.epsilon):  # cloaking, and matrices with zeros, promise nothing
        assert realised_epsilon(mechanism) <= mechanism.epsilon * (1 + 1e-9)


@own.examples(60)
@given(own.pointing_mechanisms())
def test_plain_epsilon_is_used_up(mechanism: hb.Mechanism) -> None:
    if isinstance(mechanism, hb.LocalHashing):
        return  # under one seed all values may share a bucket
    assert realised_epsilon(mechanism) == pytest.approx(mechanism.spent(1), rel=1e-9)


def test_which_epsilons_are_per_unit_of_distance() -> None:
    metric: list[type[hb.Mechanism]] = [hb.Geometric, hb.TruncatedGeometric, hb.Laplace, hb.Exponential]
    metric += [hb.PlanarGeometric, hb.PlanarLaplace]
    plain: list[type[hb.Mechanism]] = [hb.RandomizedResponse, hb.Rappor, hb.OptimizedUnary, hb.LocalHashing]
    plain += [hb.SubsetSelection, hb.LongitudinalRappor, hb.Cloaking, hb.Matrix]
    assert all(kind.metric for kind in metric)
    assert not any(kind.metric for kind in plain)


@pytest.mark.parametrize(
    ("columns", "rows", "cell", "epsilon"), [(24, 16, 0.5, 4.0), (24, 1, 1.0, 2.0), (100, 1, 1.0, 0.5)]
)
@pytest.mark.parametrize("kind", [hb.PlanarGeometric, hb.PlanarLaplace])
def test_epsilon_is_kept_on_grids_wider_than_the_noise(
    kind: type[hb.PlanarGeometric | hb.PlanarLaplace], columns: int, rows: int, cell: float, epsilon: float
) -> None:
    mechanism = kind(hb.Grid(columns, rows, cell=cell), epsilon)
    logs = mechanism.channel(mechanism.outputs).log_dense()
    # Between neighbours: that is where a tail that was cut short shows.
    numbers = np.arange(columns * rows).reshape(rows, columns)
    for first, second in ((numbers[:, :-1], numbers[:, 1:]), (numbers[:-1], numbers[1:])):
        apart = np.abs(logs[first.ravel()] - logs[second.ravel()])
        assert apart.size == 0 or apart.max() <= epsilon * cell * (1 + 1e-9)


# -- formulas: values without a place ---------------------------------------------------------------------


@own.examples(60)
@given(own.categories() | own.grids(3), own.epsilons())
def test_randomized_response(domain: hb.Domain, epsilon: float) -> None:
    size = len(domain)
    expected = np.ones((size, size))
    np.fill_diagonal(expected, math.exp(epsilon))
    expected /= size - 1 + math.exp(epsilon)
    np.testing.assert_allclose(hb.RandomizedResponse(domain, epsilon).matrix(), expected, rtol=1e-12)


@own.examples(80)
@given(own.whole_domains(), own.epsilons())
def test_exponential(domain: hb.Domain, epsilon: float) -> None:
    distances = domain.distances()
    expected = np.array([[math.exp(-epsilon * apart / 2) for apart in row] for row in distances.tolist()])
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(hb.Exponential(domain, epsilon).matrix(), expected, rtol=1e-11)


def unpacked(outputs: Outputs, size: int) -> list[tuple[int, ...]]:
    return [tuple(row) for row in np.unpackbits(outputs, axis=1, count=size).tolist()]


def unary_row(bits: tuple[int, ...], size: int, true: float, other: float) -> list[float]:
    """Return P(bits | x) for every x, bit by bit."""
    chances = [[true if bit == value else other for bit in range(size)] for value in range(size)]
    return [math.prod(c if bit else 1 - c for bit, c in zip(bits, row, strict=True)) for row in chances]


@own.examples(40)
@given(own.categories() | own.integers(), own.epsilons())
def test_unary_encodings(domain: hb.Domain, epsilon: float) -> None:
    size = len(domain)
    half = math.exp(epsilon / 2)
    for mechanism, true, other in (
        (hb.Rappor(domain, epsilon), half / (1 + half), 1 / (1 + half)),
        (hb.OptimizedUnary(domain, epsilon), 0.5, 1 / (1 + math.exp(epsilon))),
    ):
        outputs = mechanism.outputs
        assert outputs is not None
        bits = unpacked(outputs, size)
        assert sorted(bits) == sorted(product((0, 1), repeat=size))
        expected = np.array([unary_row(row, size, true, other) for row in bits]).T
        np.testing.assert_allclose(mechanism.matrix(), expected, rtol=1e-11)
        # A row of bits is taken whether packed or not.
        plain = mechanism.channel(np.array(bits)).log_dense()
        np.testing.assert_array_equal(plain, mechanism.channel(outputs).log_dense())


@own.examples(60)
@given(own.subset_selections())
def test_subset_selection(mechanism: hb.SubsetSelection) -> None:
    size, chosen = len(mechanism.domain), mechanism.size
    assert chosen is not None
    outputs = mechanism.outputs
    assert outputs is not None
    bits = unpacked(outputs, size)
    expected_sets = {
        tuple(int(place in subset) for place in range(size)) for subset in combinations(range(size), chosen)
    }
    assert set(bits) == expected_sets
    assert len(bits) == len(expected_sets)
    raw = np.where(np.array(bits).T == 1, math.exp(mechanism.epsilon), 1.0)
    np.testing.assert_allclose(mechanism.matrix(), raw / raw.sum(axis=1, keepdims=True), rtol=1e-11)


@pytest.mark.parametrize(("size", "epsilon"), [(10, 1.0), (10, 0.01), (10, 8.0), (3, 0.5), (2, 0.1), (40, 2.0)])
def test_subset_selection_chooses_the_usual_size(size: int, epsilon: float) -> None:
    chosen = hb.SubsetSelection(hb.Integers(1, size), epsilon).size
    assert chosen is not None
    # Ye and Barg: the size next to k / (e^epsilon + 1), and at least 1.
    assert abs(chosen - size / (math.exp(epsilon) + 1)) <= 0.5 or chosen == 1


def test_packed_bytes_are_outputs_too() -> None:
    mechanism = hb.Rappor(hb.Integers(0, 9), 1.0)
    packed = np.packbits(np.eye(10, dtype=bool), axis=1)
    np.testing.assert_array_equal(mechanism.output_space.encode([row.tobytes() for row in packed]), packed)


@own.examples(40)
@given(own.cloakings())
def test_cloaking(mechanism: hb.Cloaking) -> None:
    expected = [[float(region == output) for output in mechanism.outputs] for region in mechanism.regions]
    np.testing.assert_array_equal(mechanism.matrix(), expected)
    assert mechanism.epsilon == math.inf
    named = dict(zip(mechanism.domain.labels.tolist(), mechanism.regions, strict=True))
    assert hb.Cloaking(mechanism.domain, named) == mechanism


@own.examples(40)
@given(own.matrices())
def test_a_matrix_tells_its_epsilon(mechanism: hb.Matrix) -> None:
    ratios = [max(column) / min(column) if min(column) > 0 else math.inf for column in mechanism.matrix().T.tolist()]
    assert mechanism.epsilon == pytest.approx(math.log(max(ratios)))


# -- formulas: values on a line ---------------------------------------------------------------------------


@own.examples(60)
@given(own.integers(), own.epsilons(0.2), st.lists(st.integers(-300, 300), min_size=1, max_size=5))
def test_geometric(domain: hb.Integers, epsilon: float, outputs: list[int]) -> None:
    mechanism = hb.Geometric(domain, epsilon)
    factor = (1 - math.exp(-epsilon)) / (1 + math.exp(-epsilon))
    logs = [[math.log(factor) - epsilon * abs(z - y) for z in outputs] for y in domain.labels.tolist()]
    np.testing.assert_allclose(mechanism.channel(outputs).log_dense(), logs, rtol=1e-12)
    every, matrix = listed(mechanism)
    near = [[factor * math.exp(-epsilon * abs(z - y)) for z in every.tolist()] for y in domain.labels.tolist()]
    np.testing.assert_allclose(matrix, near, rtol=1e-11)


@own.examples(60)
@given(own.integers(), own.epsilons())
def test_truncated_geometric_clamps_the_geometric(domain: hb.Integers, epsilon: float) -> None:
    size = len(domain)
    factor = (1 - math.exp(-epsilon)) / (1 + math.exp(-epsilon))
    expected = np.zeros((size, size))
    for value in range(size):
        for output in range(size):
            expected[value, output] = factor * math.exp(-epsilon * abs(output - value))
        # All that lies beyond an end is a geometric series.
        expected[value, 0] = math.exp(-epsilon * value) / (1 + math.exp(-epsilon))
        expected[value, -1] = math.exp(-epsilon * (size - 1 - value)) / (1 + math.exp(-epsilon))
    np.testing.assert_allclose(hb.TruncatedGeometric(domain, epsilon).matrix(), expected, rtol=1e-11)


@own.examples(80)
@given(own.integers() | own.bins(), own.epsilons())
def test_laplace_is_a_difference_of_distribution_functions(domain: hb.Integers | hb.Bins, epsilon: float) -> None:
    if isinstance(domain, hb.Bins):
        edges = np.array(domain.edges)
        places = (edges[1:] + edges[:-1]) / 2
    else:
        places = domain.labels.astype(np.float64)
    between = (places[1:] + places[:-1]) / 2
    borders = np.concatenate([[-np.inf], between, [np.inf]])
    law = [stats.laplace(loc=place, scale=1 / epsilon) for place in places]
    expected = np.array([np.diff(each.cdf(borders)) for each in law])
    np.testing.assert_allclose(hb.Laplace(domain, epsilon).matrix(), expected, rtol=0, atol=1e-12)


# -- formulas: planar geometric ---------------------------------------------------------------------------


def lattice_masses(grid: hb.Grid, epsilon: float, value: int) -> tuple[Any, Any, Floats]:
    """Return columns, rows and unnormalised masses of all lattice cells that matter around one value."""
    column, row = value % grid.columns, value // grid.columns
    reach = [math.ceil(45 / (epsilon * side)) + 2 for side in (grid.width, grid.height)]
    columns = np.arange(column - reach[0] - grid.columns, column + reach[0] + grid.columns + 1)
    rows = np.arange(row - reach[1] - grid.rows, row + reach[1] + grid.rows + 1)
    away = np.sqrt(((columns - column) * grid.width)[:, None] ** 2 + ((rows - row) * grid.height)[None, :] ** 2)
    return columns, rows, np.exp(-epsilon * away)


def direct_row(grid: hb.Grid, epsilon: float, value: int) -> tuple[float, Floats]:
    """Return 1 / lambda and P(z | x), summing over the lattice cell by cell."""
    columns, rows, masses = lattice_masses(grid, epsilon, value)
    total = float(masses.sum())
    if grid.cells is None:
        column, row = np.clip(columns, 0, grid.columns - 1), np.clip(rows, 0, grid.rows - 1)
        nearest = row[None, :] * grid.columns + column[:, None]
    else:
        # In whole numbers (sides are multiples of 1/4), so that ties are exact; argmin takes the lowest.
        wide, high = round(4 * grid.width), round(4 * grid.height)
        squares = [
            ((columns - kept % grid.columns) * wide)[:, None] ** 2
            + ((rows - kept // grid.columns) * high)[None, :] ** 2
            for kept in grid.labels.tolist()
        ]
        nearest = np.argmin(squares, axis=0)
    # One sum for each output, which adds pairwise and loses no digits over millions of cells.
    return total, np.array([masses[nearest == place].sum() for place in range(len(grid))]) / total


PLANAR_CASES = [
    (hb.Grid(3, 2, cell=1.0), 2.0, [0, 4]),
    (hb.Grid(4, 3, cell=0.5), 0.7, [0, 5, 11]),
    (hb.Grid(3, 3, cell=(0.75, 0.25)), 1.0, [0, 4, 5]),
    (hb.Grid(3, 2, cell=1.0), 0.05, [0, 4]),
    (hb.Grid(1, 3, cell=(0.5, 1.0)), 0.4, [1, 2]),
    (hb.Grid(5, 1, cell=1.0), 1.3, [0, 2]),
]


@pytest.mark.parametrize(("grid", "epsilon", "values"), PLANAR_CASES)
def test_planar_geometric_against_a_direct_sum(grid: hb.Grid, epsilon: float, values: list[int]) -> None:
    mechanism = hb.PlanarGeometric(grid, epsilon)
    matrix = mechanism.matrix()
    for value in values:
        total, expected = direct_row(grid, epsilon, value)
        assert mechanism.log_lambda == pytest.approx(-math.log(total), abs=1e-12)
        np.testing.assert_allclose(matrix[value], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("grid", "epsilon"),
    [
        (hb.Grid(4, 3, cell=1.0, cells=[0, 1, 5, 10]), 1.0),
        (hb.Grid(3, 3, cell=1.0, cells=[1, 3, 5, 7]), 0.3),  # the middle is missing: ties all over
        (hb.Grid(4, 3, cell=(0.5, 0.75), cells=[0, 3, 6, 8, 9]), 1.5),
        (hb.Grid(3, 2, cell=1.0, cells=range(6)), 0.8),  # all kept: as without cells=
    ],
)
def test_planar_geometric_with_missing_cells(grid: hb.Grid, epsilon: float) -> None:
    matrix = hb.PlanarGeometric(grid, epsilon).matrix()
    for position, value in enumerate(grid.labels.tolist()):
        np.testing.assert_allclose(matrix[position], direct_row(grid, epsilon, value)[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("cell", "epsilon"), [((1.0, 1.0), 0.6), ((0.5, 0.75), 1.0)])
def test_planar_geometric_untruncated(cell: tuple[float, float], epsilon: float) -> None:
    grid = hb.Grid(3, 2, cell=cell)
    mechanism = hb.PlanarGeometric(grid, epsilon, truncated=False)
    pairs = [(0, 0), (2, 1), (-7, 3), (40, -25), (1000, 0)]
    for value in range(6):
        total = lattice_masses(grid, epsilon, value)[2].sum()
        column, row = value % 3, value // 3
        away = [math.hypot((c - column) * cell[0], (r - row) * cell[1]) for c, r in pairs]
        expected = [-math.log(total) - epsilon * distance for distance in away]
        np.testing.assert_allclose(mechanism.channel(pairs).log_dense()[value], expected, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [0.001, 0.01])
def test_lambda_of_a_tiny_epsilon_by_poisson_summation(epsilon: float) -> None:
    # The Fourier transform of exp(-e r) is 2 pi e / (e^2 + w^2)^(3/2); summed over the dual lattice 2 pi k,
    #   1 / lambda = 2 pi / e^2 + e / (4 pi^2) sum' |k|^-3 + O(e^3),   sum' |k|^-3 = 4 zeta(3/2) beta(3/2).
    beta = (special.zeta(1.5, 0.25) - special.zeta(1.5, 0.75)) / 4**1.5
    inverse = 2 * math.pi / epsilon**2 + epsilon / (4 * math.pi**2) * 4 * special.zeta(1.5, 1) * beta
    mechanism = hb.PlanarGeometric(hb.Grid(2, 2, cell=1.0), epsilon)
    assert math.exp(-mechanism.log_lambda) == pytest.approx(inverse, rel=1e-12)


@pytest.mark.parametrize("kind", [hb.PlanarGeometric, hb.PlanarLaplace])
@pytest.mark.parametrize("cell", [1.0, (0.5, 0.8)])
def test_tiny_epsilon_on_a_map(
    kind: type[hb.PlanarGeometric | hb.PlanarLaplace], cell: float | tuple[float, float]
) -> None:
    grid = hb.Grid(5, 4, cell=cell)
    matrix = kind(grid, 0.001).matrix()
    assert (matrix > 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    corners = [0, 4, 15, 19]
    inner = [grid.cell(column, row) for column in (1, 2, 3) for row in (1, 2)]
    edges = [cell for cell in range(20) if cell not in corners + inner]
    # Nearly all noise leaves the grid: a quarter to each corner, little to the edges, next to nothing inside.
    np.testing.assert_allclose(matrix[:, corners], 0.25, atol=0.01)
    assert matrix[:, edges].max() < 0.01
    assert matrix[:, inner].max() < 1e-6
    # Still, each output is most likely from its own cell.
    assert (matrix.max(axis=0) == np.diag(matrix)).all()


# -- formulas: planar Laplace -----------------------------------------------------------------------------


@pytest.mark.parametrize("case", REFERENCE["cases"])
def test_planar_laplace_against_reference_integrals(case: dict[str, Any]) -> None:
    grid = hb.Grid(case["columns"], case["rows"], cell=(case["width"], case["height"]))
    matrix = hb.PlanarLaplace(grid, case["epsilon"]).matrix()
    row = matrix[grid.cell(case["column"], case["row"])]
    np.testing.assert_allclose(row, case["probabilities"], rtol=0, atol=1e-9)


def test_the_reference_covers_all_kinds_of_cells() -> None:
    shapes = {(case["columns"], case["rows"], case["column"], case["row"]) for case in REFERENCE["cases"]}
    assert (3, 3, 1, 1) in shapes  # own cell, neighbours and corners told apart
    assert (3, 3, 0, 0) in shapes  # the own cell takes a quadrant
    assert any(case["width"] != case["height"] for case in REFERENCE["cases"])


def test_planar_laplace_with_missing_cells_adds_up_the_cells_of_a_larger_grid() -> None:
    # Far from its edges, a larger whole grid gives the mass of each lattice cell; these are then sent to the
    # nearest kept one.
    small, margin, epsilon = hb.Grid(3, 3, cell=1.0, cells=[1, 3, 8]), 20, 1.5
    size = 3 + 2 * margin
    large = hb.Grid(size, size, cell=1.0)
    masses = hb.PlanarLaplace(large, epsilon).matrix()
    steps = np.arange(-margin, 3 + margin)
    squares = [(steps[None, :] - kept % 3) ** 2 + (steps[:, None] - kept // 3) ** 2 for kept in small.labels.tolist()]
    nearest = np.argmin(squares, axis=0).ravel()
    matrix = hb.PlanarLaplace(small, epsilon).matrix()
    for position, kept in enumerate(small.labels.tolist()):
        own_cell = large.cell(kept % 3 + margin, kept // 3 + margin)
        expected = [masses[own_cell][nearest == place].sum() for place in range(3)]
        np.testing.assert_allclose(matrix[position], expected, rtol=0, atol=1e-9)


def test_planar_laplace_keeps_its_far_tail() -> None:
    # On a single row the rows integrate out: exp(-r) becomes 2 x K1(x), with x in units of 1 / epsilon.
    mechanism = hb.PlanarLaplace(hb.Grid(24, 1, cell=1.0), 2.0)
    logs = mechanism.channel([23]).log_dense()[:, 0]
    for value in (0, 1, 12):
        start = 2.0 * (23 - value - 0.5)
        scaled, _ = integrate.quad(lambda u, s=start: (u + s) * special.k1e(u + s) * math.exp(-u), 0, 60, epsrel=1e-12)
        assert logs[value] == pytest.approx(math.log(scaled / math.pi) - start, abs=1e-9)


def test_planar_geometric_keeps_its_far_tail() -> None:
    mechanism = hb.PlanarGeometric(hb.Grid(100, 1, cell=1.0), 0.5)
    logs = mechanism.channel([99]).log_dense()[:, 0]
    columns, rows = np.arange(400), np.arange(-300, 301)
    masses = np.exp(-0.5 * np.hypot(columns[:, None], rows[None, :])).sum(axis=1)
    total = masses[0] + 2 * masses[1:].sum()
    for value in (0, 1, 50):
        assert logs[value] == pytest.approx(math.log(masses[99 - value :].sum() / total), abs=1e-9)


# -- hashing ----------------------------------------------------------------------------------------------


def plain_hash(seed: int, position: int, buckets: int) -> int:
    """Return the hash as its documentation states it, in plain integers."""
    golden, modulus = 0x9E3779B97F4A7C15, 2**64

    def mix(word: int) -> int:
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % modulus
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % modulus
        return word ^ (word >> 31)

    hashed = mix((mix((seed + golden) % modulus) + (position + 1) * golden) % modulus)
    return ((hashed >> 32) * buckets) >> 32


@own.examples(200)
@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5),
    st.lists(st.integers(0, 10**9), min_size=1, max_size=5),
    st.integers(2, 2**31),
)
def test_the_hash_is_the_documented_one(seeds: list[int], positions: list[int], buckets: int) -> None:
    hashed = hash_v1(np.array(seeds, dtype=np.uint64)[:, None], np.array(positions)[None, :], buckets)
    assert hashed.tolist() == [[plain_hash(seed, position, buckets) for position in positions] for seed in seeds]


def test_the_hash_never_changes() -> None:
    # Version 1, written down from `plain_hash`: reports that were already collected depend on these numbers.
    seeds = np.array([0, 1, 2**64 - 1], dtype=np.uint64)
    hashed = hash_v1(seeds[:, None], np.array([0, 7, 999])[None, :], 1000)
    assert hashed.tolist() == [[652, 265, 567], [368, 246, 442], [366, 723, 768]]


@pytest.mark.parametrize("buckets", [2, 4, 9])
@pytest.mark.parametrize("consecutive", [True, False])
def test_the_hash_is_pairwise_independent_over_seeds(buckets: int, consecutive: bool) -> None:
    # Seeds 0, 1, 2, ... are the hard case: a weak hash would carry their order over.
    seeds = np.arange(200_000, dtype=np.uint64)
    if not consecutive:
        seeds = np.random.default_rng(1).integers(0, 2**64, size=seeds.size, dtype=np.uint64)
    hashed = hash_v1(seeds[:, None], np.array([0, 1, 1000])[None, :], buckets)
    for first, second in combinations(range(3), 2):
        pairs = np.bincount((hashed[:, first] * buckets + hashed[:, second]).astype(np.int64), minlength=buckets**2)
        assert stats.chisquare(pairs).pvalue > LEVEL / 3


@pytest.mark.parametrize("buckets", [5, 64])
def test_the_hash_is_uniform_over_positions(buckets: int) -> None:
    hashed = hash_v1(np.array([42], dtype=np.uint64), np.arange(200_000), buckets)
    assert stats.chisquare(np.bincount(hashed.astype(np.int64), minlength=buckets)).pvalue > LEVEL


@own.examples(80)
@given(own.integers(), own.epsilons(), st.none() | st.integers(2, 9), st.integers(0, 2**64 - 1))
def test_local_hashing(domain: hb.Integers, epsilon: float, buckets: int | None, seed: int) -> None:
    mechanism = hb.LocalHashing(domain, epsilon, buckets)
    count = round(math.exp(epsilon)) + 1 if buckets is None else buckets
    assert mechanism.buckets == count
    expected = np.ones((len(domain), count))
    for position in range(len(domain)):
        expected[position, plain_hash(seed, position, count)] = math.exp(epsilon)
    expected /= math.exp(epsilon) + count - 1
    np.testing.assert_allclose(mechanism.matrix(seed), expected, rtol=1e-11)
    outputs = [(seed, bucket) for bucket in range(count)]
    np.testing.assert_allclose(np.exp(mechanism.channel(outputs).log_dense()), expected, rtol=1e-11)


@pytest.mark.parametrize("seed", [0, 2**53 + 1, 2**63 - 1, 2**63 + 5, 2**64 - 1])
def test_seeds_are_written_to_the_last_digit(seed: int) -> None:
    space = hb.LocalHashing(hb.Integers(0, 3), 1.0).output_space
    text = f"{seed}:1"
    assert space.parse(text) == (seed, 1)
    assert space.write(space.parse(text)) == text
    assert space.write(space.decode(space.encode([(seed, 1)]))[0]) == text


# -- large domains ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [hb.Rappor, hb.OptimizedUnary, hb.LocalHashing, hb.SubsetSelection])
def test_large_domains_build_channels_of_the_observed_outputs_only(
    kind: type[hb.Rappor | hb.OptimizedUnary | hb.LocalHashing | hb.SubsetSelection],
) -> None:
    mechanism = kind(hb.Integers(1, 1000), 1.0)
    assert mechanism.outputs is None
    values = np.arange(1, 1001, 50)
    outputs = mechanism.privatize(values, rng=3)
    channel = mechanism.channel(outputs)
    assert (channel.values, channel.patterns) == (1000, values.size)
    logs = channel.log_dense()
    assert np.isfinite(logs).all()
    # Two likelihoods only, in ratio e^epsilon.
    apart = logs - logs.min(axis=0)
    assert (np.isclose(apart, 0, atol=1e-9) | np.isclose(apart, 1.0, atol=1e-9)).all()
    if not isinstance(mechanism, hb.LocalHashing):  # whose matrix is for one seed
        with pytest.raises(hb.MechanismError, match="too large"):
            mechanism.matrix()


def test_likelihoods_of_a_thousand_bits_are_exact() -> None:
    size, epsilon = 1000, 2.0
    mechanism = hb.Rappor(hb.Integers(1, size), epsilon)
    bits = np.random.default_rng(5).integers(0, 2, size=(3, size)).astype(bool)
    keep = 1 / (1 + math.exp(-epsilon / 2))
    for row, logs in zip(bits, mechanism.channel(bits).log_dense().T, strict=True):
        flat = sum(math.log(1 - keep if bit else keep) for bit in row.tolist())
        own_bit = np.where(row, math.log(keep / (1 - keep)), math.log((1 - keep) / keep))
        np.testing.assert_allclose(logs, flat + own_bit, rtol=1e-12)


def test_fractions_confirm_a_small_subset_selection() -> None:
    # With epsilon = log 2 every probability is a fraction: W = 2 C(3, 1) + C(3, 2) = 9 for 2 of 4 values.
    matrix = hb.SubsetSelection(hb.Integers(0, 3), math.log(2), size=2).matrix()
    assert {Fraction(entry).limit_denominator(1000) for entry in matrix.ravel()} == {Fraction(2, 9), Fraction(1, 9)}


def test_outputs_of_an_own_mechanism_may_be_a_list() -> None:
    @dataclass(frozen=True)
    class Declining(hb.Mechanism):
        domain: hb.Domain
        epsilon: float = math.log(3)

        @property
        def outputs(self) -> Any:
            return [*self.domain.labels.tolist(), "declined"]

        def matrix(self) -> Any:
            return [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2]]

    declining = Declining(hb.Categories(["yes", "no"]))
    listed = hb.Matrix(declining.domain, declining.outputs, declining.matrix())
    by_class, by_matrix = (hb.Reports.from_counts(mechanism, [60, 30, 10]) for mechanism in (declining, listed))
    assert hb.interval(by_class, "yes").low == hb.interval(by_matrix, "yes").low
    assert hb.fit_test(by_class).p_value == hb.fit_test(by_matrix).p_value
