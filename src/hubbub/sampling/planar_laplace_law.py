"""Planar Laplace noise on the cells of an infinite lattice, as whole numbers that are proven to be right.

In units of 1 / epsilon the noise has density exp(-r) / (2 pi) at distance r. Picture it as a stream that leaves the
centre evenly in all directions and settles on its way: (1 + r) exp(-r) of it passes the distance r. What settles in a
cell is its mass: what flows in through the edges that face the centre, less what flows out through the others. Through
the piece of the line x = a from y = b to y = c flows, with y = a sinh u and r = a cosh u::

    1 / (2 pi) integral of a (1 + r) exp(-r) / r^2 dy  =  a / (2 pi) integral of (1 + 1 / r) exp(-r) du

Strips "from here on" have no far edge, and their sides have no end. The cell around the centre is what the others
leave. Every mass is thus a sum of at most four flows of about its own size: few digits are lost, however far away the
cell lies, and neighbours share their edges.

Integrals are computed with Arb's balls: a centre and a radius within which the true number provably lies. The
integrand is meromorphic and infinite at its poles, which is what Arb's integration asks for. Where a ball turns out
too wide, all is computed again with more bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from hubbub.core.errors import MechanismError, shorten

if TYPE_CHECKING:
    from flint import acb, arb

ACCURACY_BITS = 100  # to which every mass is right, relative to itself
GUARD_BITS = 40  # beyond these to begin with
MIN_TABLE_BITS = 256  # of a table
WORD_BITS = 64
MAX_ATTEMPTS = 4  # the precision doubles each time; the first is expected to suffice

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class QuarterPlane:
    """Masses of symmetric noise on the cells of one quarter of the plane, in units of 2^-width.

    ``masses[c][r]`` is the mass of one cell c columns and r rows away in given directions. The last column stands for
    all cells that many columns away or more, likewise the last row. With the cells of the other quarters, two for
    each with c > 0 = r or r > 0 = c and four where both are positive, the masses add up to 2^width exactly.
    """

    width: int
    masses: list[list[int]]


def planar_laplace_quarter(
    columns: int,
    rows: int,
    sides: tuple[Fraction, Fraction],
    epsilon: Fraction,
    *,
    on_progress: OnProgress | None = None,
) -> QuarterPlane:
    """Return the masses of noise with density epsilon^2 / (2 pi) exp(-epsilon d) around the centre of a cell.

    Cells c < `columns` columns and r < `rows` rows away are kept apart; entries `columns` and `rows` hold what lies
    beyond. Every entry is within 2^-100 of the true mass, relative to it; this is checked for each of them, by bounds
    that hold. `on_progress` receives how many edges are done, of how many; these are more if the bits did not suffice.

    >>> quarter = planar_laplace_quarter(2, 2, (Fraction(1), Fraction(1)), Fraction(1))
    >>> [[round(mass / 2**quarter.width, 4) for mass in column] for column in quarter.masses]
    [[0.1097, 0.0583, 0.0349], [0.0583, 0.0392, 0.0286], [0.0349, 0.0286, 0.0331]]
    """
    from flint import ctx

    _check(columns, rows, sides, epsilon)
    across, along = epsilon * sides[0], epsilon * sides[1]
    precision = _first_precision(columns * across + rows * along, min(across, along))
    edges = columns * (rows + 1) + rows * (columns + 1)
    for attempt in range(MAX_ATTEMPTS):
        # Another thread that sets this precision, which is global, could make balls wider but not wrong.
        with ctx.workprec(precision):
            flows = _Flows(precision, attempt * edges, (attempt + 1) * edges, on_progress)
            balls = _cells(flows, _marks(columns, across), _marks(rows, along))
        quarter = _whole(balls)
        if quarter is not None:
            return quarter
        precision *= 2
    raise MechanismError(
        "masses of planar noise could not be bounded",
        where="planar_laplace_quarter",
        got=f"epsilon times the cell's sides {float(across):g} and {float(along):g}, {columns} columns, {rows} rows",
        expected=f"balls that are narrow enough with {precision // 2} bits",
        remedy="choose cells whose sides are closer to each other and to 1 / epsilon",
    )


def _check(columns: int, rows: int, sides: tuple[Fraction, Fraction], epsilon: Fraction) -> None:
    for name, count in (("columns", columns), ("rows", rows)):
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise _refused(name, count, "a whole number of at least 1")
    if not isinstance(sides, tuple) or len(sides) != 2:
        raise _refused("sides", sides, "a pair: width and height of a cell")
    numbers: list[tuple[str, object]] = [("sides", sides[0]), ("sides", sides[1]), ("epsilon", epsilon)]
    for name, number in numbers:
        if not isinstance(number, Fraction | int) or isinstance(number, bool) or number <= 0:
            raise _refused(name, number, "an exact fraction above 0")


def _refused(name: str, got: object, expected: str) -> MechanismError:
    return MechanismError(
        "planar noise has no masses for these parameters",
        where=f"planar_laplace_quarter({name}=)",
        got=shorten(got),
        expected=expected,
        remedy="pass counts as whole numbers, and sides and epsilon as Fractions: Fraction(0.7) is exactly that float",
    )


def _first_precision(reach: Fraction, side: Fraction) -> int:
    """Return bits that should do: small cells are small differences of flows, far ones exponentials of large numbers.

    A flow through an edge is up to 1 / side^2 times the mass of a cell.
    """
    small = max(0, side.denominator.bit_length() - side.numerator.bit_length() + 1)
    large = max(0, reach.numerator.bit_length() - reach.denominator.bit_length() + 1)
    return ACCURACY_BITS + GUARD_BITS + 2 * small + 2 * large


def _marks(cells: int, side: Fraction) -> list[Fraction]:
    """Return where cells end in one direction, from the centre outwards; 0 is the middle of the first."""
    return [Fraction(0), *(side * (2 * cell + 1) / 2 for cell in range(cells))]


class _Flows:
    """What flows through edges: the pieces of lines at some distance from the centre."""

    def __init__(self, precision: int, done: int, total: int, on_progress: OnProgress | None) -> None:
        self._precision = precision
        self._done = done
        self._total = total
        self._on_progress = on_progress
        # Square cells see the same edges in both directions.
        self._known: dict[tuple[Fraction, Fraction, Fraction | None], arb] = {}

    def line(self, away: Fraction, marks: Sequence[Fraction]) -> list[arb]:
        """Return the flow between consecutive marks of a line `away` from the centre, and beyond the last."""
        flows: list[arb] = []
        for start, end in zip(marks, (*marks[1:], None), strict=True):
            key = (away, start, end)
            if key not in self._known:
                self._known[key] = self._between(away, start, end) if end is not None else self._beyond(away, start)
            flows.append(self._known[key])
            self._done += 1
            if self._on_progress is not None:
                self._on_progress(self._done, self._total)
        return flows

    def _between(self, away: Fraction, start: Fraction, end: Fraction) -> arb:
        line = _ball(away)
        return _flow(line, (_ball(start) / line).asinh(), (_ball(end) / line).asinh())

    def _beyond(self, away: Fraction, start: Fraction) -> arb:
        """Return the flow from `start` on without end.

        It is integrated until exp(-r) has fallen by as much as the precision resolves. In terms of r the integral is
        that of a (1 + r) / (r y) exp(-r), with y growing in r, so that at most a (1 + r) / (r y) exp(-r) lies beyond.
        """
        from flint import arb

        line = _ball(away)
        last = (line * line + _ball(start) ** 2).sqrt() + self._precision * 7 // 10 + 8  # log 2 is below 7 / 10
        beyond = line * (1 + last) / (last * (last * last - line * line).sqrt()) * (-last).exp() / (2 * arb.pi())
        return _flow(line, (_ball(start) / line).asinh(), (last / line).acosh()) + arb(0, beyond)


def _ball(number: Fraction) -> arb:
    from flint import arb, fmpq

    return arb(fmpq(number.numerator, number.denominator))


def _flow(away: arb, start: arb, end: arb) -> arb:
    """Return a / (2 pi) times the integral of (1 + 1 / r) exp(-r) over u, r = a cosh u."""
    from flint import acb, arb, ctx

    def integrand(place: acb, _analytic: bool) -> acb:
        distance = place.cosh() * away
        return (1 / distance + 1) * (-distance).exp()

    # Only the relative error counts: far edges are as exact as near ones. The default would stop at an absolute one.
    integral = acb.integral(integrand, start, end, rel_tol=arb(2) ** (8 - ctx.prec), abs_tol=0)
    return integral.real * away / (2 * arb.pi())


def _cells(flows: _Flows, across: Sequence[Fraction], along: Sequence[Fraction]) -> list[list[arb]]:
    """Return the masses of cells, columns by rows, from what flows through their edges.

    `outward[c][r]` flows from column c to the next in row r, `upward[c][r]` from row r to the next in column c. The
    axes run through the middle of the first row and column: their edges are twice the half that was integrated, and
    cells there lose on both sides.
    """
    from flint import arb

    outward = [flows.line(mark, along) for mark in across[1:]]
    upward = [list(row) for row in zip(*(flows.line(mark, across) for mark in along[1:]), strict=True)]
    for edges in outward:
        edges[0] = 2 * edges[0]
    upward[0] = [2 * edge for edge in upward[0]]
    columns, rows = len(outward), len(upward[0])
    balls = [[arb(0)] * (rows + 1) for _ in range(columns + 1)]
    for column in range(columns + 1):
        for row in range(rows + 1):
            mass = arb(1) if column == row == 0 else arb(0)
            if column > 0:
                mass += outward[column - 1][row]
            if column < columns:
                mass -= outward[column][row] * (1 if column > 0 else 2)
            if row > 0:
                mass += upward[column][row - 1]
            if row < rows:
                mass -= upward[column][row] * (1 if row > 0 else 2)
            balls[column][row] = mass
    return balls


def _whole(balls: list[list[arb]]) -> QuarterPlane | None:
    """Return the masses as whole numbers, or nothing if some ball is too wide to tell that they are right."""
    bounds = [[_exact(ball) for ball in column] for column in balls]
    if any(middle <= radius for column in bounds for middle, radius in column):
        return None
    # Each entry is half a unit off at most. The centre's takes what the others left, at most four of each.
    needed = [_bits_below_one(*entry) for column in bounds for entry in column]
    spare = (4 * len(needed)).bit_length()
    needed[0] += spare
    width = max(MIN_TABLE_BITS, -(-(max(needed) + ACCURACY_BITS + 2) // WORD_BITS) * WORD_BITS)
    masses = [[round(middle * 2**width) for middle, _ in column] for column in bounds]
    counted = sum(_copies(column, row) * mass for column, row, mass in _entries(masses))
    masses[0][0] += 2**width - counted
    for column, row, mass in _entries(masses):
        middle, radius = (part * 2**width for part in bounds[column][row])
        if (abs(mass - middle) + radius) * 2**ACCURACY_BITS > middle - radius:
            return None
    return QuarterPlane(width, masses)


def _exact(ball: arb) -> tuple[Fraction, Fraction]:
    """Return a ball's centre and radius as the fractions that they are; a ball without bounds has a radius above it."""
    if not ball.is_finite():
        return Fraction(0), Fraction(1)
    return _dyadic(ball.mid()), _dyadic(ball.rad())


def _dyadic(number: arb) -> Fraction:
    mantissa, exponent = number.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _bits_below_one(middle: Fraction, radius: Fraction) -> int:
    """Return the least k at which 2^-k is surely below the mass."""
    low = middle - radius
    return max(0, low.denominator.bit_length() - low.numerator.bit_length() + 1)


def _copies(column: int, row: int) -> int:
    """Return how many cells lie that many columns and rows away, in any direction."""
    return (2 if column > 0 else 1) * (2 if row > 0 else 1)


def _entries(masses: list[list[int]]) -> Iterator[tuple[int, int, int]]:
    for column, across in enumerate(masses):
        for row, mass in enumerate(across):
            yield column, row, mass
