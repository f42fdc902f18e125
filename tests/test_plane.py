"""Cell masses of planar Laplace noise, as whole numbers, against references computed another way.

The table itself comes from flows through edges, in one dimension and with balls. Here the density is integrated in two
dimensions (mpmath), columns are compared with the known marginal law, and the older floating-point code is asked too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from flint import arb, ctx, fmpq

import hubbub as hb
from hubbub.core.errors import MechanismError
from hubbub.sampling import planar_laplace_law as plane
from hubbub.sampling.planar_laplace_law import QuarterPlane, planar_laplace_quarter

Sides = tuple[Fraction, Fraction]
SQUARE: Sides = (Fraction(1, 2), Fraction(1, 2))
OBLONG: Sides = (Fraction(3, 2), Fraction(2, 3))
CLAIMED = 2.0**-99  # twice what is promised: the references are rounded, too


def quarter(columns: int, rows: int, sides: Sides, epsilon: Fraction) -> QuarterPlane:
    return planar_laplace_quarter(columns, rows, sides, epsilon)


def copies(column: int, row: int) -> int:
    return (2 if column else 1) * (2 if row else 1)


# -- the density, integrated in two dimensions -------------------------------------------------------------


def rule(start: Any, end: Any) -> list[tuple[Any, Any]]:
    """Return nodes and weights from `start` to `end`, or until exp(-75) is left; with 48 to a panel that is enough."""
    steps = (4, 14, 34, 75)
    marks = [start, end] if end is not None else [start, *(start + step for step in steps)]
    family = mpmath.calculus.quadrature.GaussLegendre(mpmath.mp)
    return [
        node
        for pair in pairwise(marks)
        for node in family.get_nodes(*pair, degree=5, prec=mpmath.mp.prec, verbose=False)
    ]


def integrated(across: tuple[Any, Any], along: tuple[Any, Any]) -> Any:
    """Return the integral of exp(-r) / (2 pi) over a rectangle that does not hold the centre."""
    columns, rows = ([(node * node, weight) for node, weight in rule(*ends)] for ends in (across, along))
    total = mpmath.mpf(0)
    for x, weight in columns:
        total += weight * mpmath.fsum(part * mpmath.exp(-mpmath.sqrt(x + y)) for y, part in rows)
    return total / (2 * mpmath.pi)


def around_centre(half_width: Any, half_height: Any) -> Any:
    """Return the mass of the centre's cell: eight triangles, with y = x s, on which the integrand is smooth."""
    total = mpmath.mpf(0)
    for side, other in ((half_width, half_height), (half_height, half_width)):
        slopes = [(mpmath.sqrt(1 + slope * slope), weight) for slope, weight in rule(mpmath.mpf(0), other / side)]
        for x, weight in rule(mpmath.mpf(0), side):
            total += weight * x * mpmath.fsum(part * mpmath.exp(-x * stretch) for stretch, part in slopes)
    return 4 * total / (2 * mpmath.pi)


def reach(index: int, count: int, side: Any) -> tuple[Any, Any]:
    """Return where cells begin and end; of those on an axis the half, since the density comes close to its kink."""
    return max(2 * index - 1, 0) * side / 2, None if index == count else (2 * index + 1) * side / 2


# The centre, its neighbours, a far cell; then a strip on an axis, one beside it, and the corner beyond.
NEAR = [(0, 0), (1, 0), (0, 1), (1, 1), (3, 2)]
BEYOND = [(4, 0), (1, 3), (4, 3)]


@pytest.mark.slow
@pytest.mark.parametrize(("sides", "places"), [(SQUARE, NEAR), (OBLONG, NEAR + BEYOND)])
def test_masses_are_integrals_of_the_density(sides: Sides, places: list[tuple[int, int]]) -> None:
    epsilon, columns, rows = Fraction(7, 5), 4, 3
    table = quarter(columns, rows, sides, epsilon)
    with mpmath.workdps(50):
        width, height = (mpmath.mpf((epsilon * side).numerator) / (epsilon * side).denominator for side in sides)
        for column, row in places:
            if column == row == 0:
                expected = around_centre(width / 2, height / 2)
            else:
                expected = integrated(reach(column, columns, width), reach(row, rows, height))
                expected *= (1 if column else 2) * (1 if row else 2)
            given = mpmath.mpf(table.masses[column][row]) / mpmath.mpf(2) ** table.width
            assert abs(given / expected - 1) < CLAIMED, (column, row)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("sides", "epsilon"), [(SQUARE, Fraction(7, 5)), (OBLONG, Fraction(1, 50)), (OBLONG, Fraction(6))]
)
def test_columns_and_rows_follow_the_marginal_law(sides: Sides, epsilon: Fraction) -> None:
    """Along one direction the density is x K_1(x) / pi, whose integral is known.

    From a on it is a K_0(a) + integral of K_0, and that up to a is pi a / 2 (K_0 L_-1 + K_1 L_0)(a) (DLMF 10.43.2).
    """
    columns, rows = 5, 3
    table = quarter(columns, rows, sides, epsilon)
    across = [sum((2 if row else 1) * mass for row, mass in enumerate(column)) for column in table.masses]
    along = [sum((2 if c else 1) * table.masses[c][row] for c in range(columns + 1)) for row in range(rows + 1)]
    for sums, side in ((across, epsilon * sides[0]), (along, epsilon * sides[1])):
        start = side * Fraction(2 * len(sums) - 3, 2)
        with mpmath.workdps(50 + int(start)):  # exp(-start) is left of a difference
            at = mpmath.mpf(start.numerator) / start.denominator
            nought, first = mpmath.besselk(0, at), mpmath.besselk(1, at)
            within = mpmath.pi * at / 2 * (nought * mpmath.struvel(-1, at) + first * mpmath.struvel(0, at))
            beyond = (at * nought + mpmath.pi / 2 - within) / mpmath.pi
            assert abs(mpmath.mpf(sums[-1]) / mpmath.mpf(2) ** table.width / beyond - 1) < CLAIMED


# -- the floating-point code -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism",
    [
        hb.PlanarLaplace(hb.Grid(6, 4, cell=0.5), 0.7),
        hb.PlanarLaplace(hb.Grid(1, 5, cell=1.0), 2.0),
        hb.PlanarLaplace(hb.Grid(3, 1, cell=0.25), 0.1),
        hb.PlanarLaplace(hb.Grid.over(south=37.7, west=-122.5, north=37.8, east=-122.4, columns=7, rows=5), 1.3),
        hb.PlanarLaplace(hb.Grid.over(south=60.0, west=10.0, north=61.0, east=11.0, columns=6, rows=3), 0.05),
    ],
)
def test_agrees_with_the_matrix_of_estimation(mechanism: hb.PlanarLaplace) -> None:
    grid = mechanism.domain
    width, height = grid.sides
    table = quarter(grid.columns, grid.rows, (Fraction(width), Fraction(height)), Fraction(mechanism.epsilon))
    cells = np.exp(mechanism._log_cells(grid.columns, grid.rows))
    numbers = np.array([[mass / 2**table.width for mass in column] for column in table.masses])
    np.testing.assert_allclose(numbers, cells, rtol=1e-13)
    matrix = np.zeros((len(grid), len(grid)))
    for (value, output), mass in clamped(table, grid.columns, grid.rows).items():
        matrix[grid.cell(*value), grid.cell(*output)] = mass / 2**table.width
    np.testing.assert_allclose(matrix, mechanism.matrix(), rtol=1e-13)


def clamped(table: QuarterPlane, columns: int, rows: int) -> dict[tuple[tuple[int, int], tuple[int, int]], int]:
    """Return P(z | x) in units of 2^-width: each displacement's mass goes to the nearest cell of the grid."""
    chances: dict[tuple[tuple[int, int], tuple[int, int]], int] = {}
    for value in product(range(columns), range(rows)):
        for across, along in product(range(-columns, columns + 1), range(-rows, rows + 1)):
            column, row = (min(max(value[0] + across, 0), columns - 1), min(max(value[1] + along, 0), rows - 1))
            key = (value, (column, row))
            chances[key] = chances.get(key, 0) + table.masses[abs(across)][abs(along)]
    return chances


# -- sums, order and extremes ------------------------------------------------------------------------------

GRIDS = [
    (1, 1, SQUARE, Fraction(1)),
    (5, 2, SQUARE, Fraction(1, 100)),
    (3, 6, OBLONG, Fraction(20)),
    (8, 8, SQUARE, Fraction(7, 10)),
    (4, 3, (Fraction(1, 10**6), Fraction(100)), Fraction(1)),
    (2, 3, (Fraction(1, 10**30), Fraction(1, 10**30)), Fraction(1)),
]


@pytest.mark.parametrize(("columns", "rows", "sides", "epsilon"), GRIDS)
def test_all_masses_add_up_to_one_exactly_and_fall_with_distance(
    columns: int, rows: int, sides: Sides, epsilon: Fraction
) -> None:
    table = quarter(columns, rows, sides, epsilon)
    assert table.width >= 256
    assert table.width % 64 == 0
    assert [len(column) for column in table.masses] == [rows + 1] * (columns + 1)
    entries = [(c, r, table.masses[c][r]) for c, r in product(range(columns + 1), range(rows + 1))]
    assert sum(copies(c, r) * mass for c, r, mass in entries) == 2**table.width
    assert min(mass for _, _, mass in entries) >= 2**100
    for column, row, mass in entries:  # strips hold many cells and may outweigh the last one
        if row < rows and column < columns - 1:
            assert mass > table.masses[column + 1][row]
        if column < columns and row < rows - 1:
            assert mass > table.masses[column][row + 1]


def test_far_cells_fall_as_the_density_does() -> None:
    """The diagonal measures 450 / epsilon: 256 bits would have lost its end."""
    side, count = Fraction(10), 32
    table = quarter(count, count, (side, side), Fraction(1))
    assert table.width > 256 + 64
    for column, row in ((31, 31), (20, 31), (3, 31), (31, 0)):
        # A cell's mass is about that of a quadrant that begins in its near corner, r away, and opens outwards.
        x, y = (10 * max(index - 0.5, 0) for index in (column, row))
        mass = Fraction(table.masses[column][row], 2**table.width)
        log = math.log(mass.numerator) - math.log(mass.denominator)
        assert -math.hypot(x, y) - 12 < log < -math.hypot(x, y) + 2


def test_nothing_is_lost_where_a_cell_is_thousands_of_nats_away() -> None:
    table = quarter(2, 2, (Fraction(2000), Fraction(3000)), Fraction(1))
    assert min(min(column) for column in table.masses) >= 2**100
    log = math.log(table.masses[2][2]) - table.width * math.log(2)
    assert log == pytest.approx(-1.5 * math.hypot(2000, 3000), abs=12)


# -- the guarantee -----------------------------------------------------------------------------------------


def holds(table: QuarterPlane, columns: int, rows: int, sides: Sides, claim: Fraction) -> bool:
    """Say whether P(z | x) <= exp(claim d(x, x')) P(z | x') for all values and outputs, by bounds that hold."""
    chances = clamped(table, columns, rows)
    cells = list(product(range(columns), range(rows)))
    with ctx.workprec(table.width + 64):
        for value, other in product(cells, cells):
            squared = sum(((a - b) * side) ** 2 for a, b, side in zip(value, other, sides, strict=True))
            bound = (ball(claim) * ball(Fraction(squared)).sqrt()).exp()
            for output in cells:
                if value != other and not chances[value, output] <= bound * chances[other, output]:
                    return False
    return True


def ball(number: Fraction) -> arb:
    return arb(fmpq(number.numerator, number.denominator))


@pytest.mark.parametrize("scale", [Fraction(1, 20), Fraction(1), Fraction(40)])
def test_the_realised_epsilon_is_at_most_the_claim(scale: Fraction) -> None:
    """Cells blur the noise a little: at most 0.9995 of the claim is realised on these grids, so 1% more must fail."""
    sides = (scale, scale * Fraction(3, 4))
    claim = Fraction(1)
    assert holds(quarter(4, 3, sides, claim * (1 - Fraction(1, 2**50))), 4, 3, sides, claim)
    assert not holds(quarter(4, 3, sides, claim * Fraction(101, 100)), 4, 3, sides, claim)


# -- precision and progress --------------------------------------------------------------------------------


def test_wide_balls_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = quarter(3, 2, OBLONG, Fraction(1))
    monkeypatch.setattr(plane, "_first_precision", lambda reach, side: 60)
    heard: list[tuple[int, int]] = []
    table = planar_laplace_quarter(
        3, 2, OBLONG, Fraction(1), on_progress=lambda done, total: heard.append((done, total))
    )
    for mine, others in zip(table.masses, expected.masses, strict=True):
        for one, another in zip(mine, others, strict=True):
            assert abs(one - another) * 2**99 <= another
    edges = 3 * 3 + 2 * 4
    assert heard == [(done, edges * (1 + (done - 1) // edges)) for done in range(1, 2 * edges + 1)]


@pytest.mark.parametrize("start", [Fraction(1, 100), Fraction(3), Fraction(50)])
def test_what_lies_beyond_the_last_mark_stays_within_its_bound(start: Fraction) -> None:
    """Cut after 15 nats, where much more is left than what rounding hides, and after 288."""
    away = Fraction(5, 2)
    with ctx.workprec(300):
        early, late = (plane._Flows(bits, 0, 1, None)._beyond(away, start) for bits in (10, 400))
        assert early.contains(late)
        assert not late.contains(early)
        assert not early.mid() - late.mid() >= 0  # something is missing: that the bound does its work is no accident


def test_what_cannot_be_bounded_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plane, "_first_precision", lambda reach, side: 2)
    monkeypatch.setattr(plane, "MAX_ATTEMPTS", 3)
    with pytest.raises(MechanismError, match="could not be bounded"):
        quarter(2, 2, SQUARE, Fraction(1))


def test_the_precision_of_others_is_left_alone() -> None:
    before = ctx.prec
    quarter(1, 1, SQUARE, Fraction(1))
    assert ctx.prec == before


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ((0, 1, SQUARE, Fraction(1)), "columns="),
        ((1, True, SQUARE, Fraction(1)), "rows="),
        ((1, 1, (Fraction(1), Fraction(0)), Fraction(1)), "sides="),
        ((1, 1, (Fraction(1),), Fraction(1)), "sides="),
        ((1, 1, SQUARE, 0.7), "epsilon="),
        ((1, 1, SQUARE, Fraction(-1)), "epsilon="),
    ],
)
def test_bad_parameters_are_refused(given: Any, where: str) -> None:
    with pytest.raises(MechanismError, match="Fraction") as caught:
        planar_laplace_quarter(*given)
    assert where in caught.value.where
