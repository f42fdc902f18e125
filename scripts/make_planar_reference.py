"""Write tests/reference/planar_laplace.json: reference probabilities of the planar Laplace mechanism.

Every number is a double integral of the density epsilon^2 / (2 pi) exp(-epsilon sqrt(x^2 + y^2)) over the points
that are remapped to one cell, by mpmath's tanh-sinh rule in 30 digits, cut along the axes so that the kink of the
density lies in a corner (where that rule does not mind it). Nothing of hubbub is used. The numbers of one true
value must sum to 1, which checks the integrals against each other before they are written.

    python scripts/make_planar_reference.py

takes some minutes on one core.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from mpmath import exp, hypot, inf, mp, mpf, pi, quad  # type: ignore[import-untyped]

TARGET = Path(__file__).parents[1] / "tests" / "reference" / "planar_laplace.json"


class Case(NamedTuple):
    """A grid, an epsilon and a true value; numbers are texts so that mpmath reads them exactly."""

    columns: int
    rows: int
    width: str
    height: str
    epsilon: str
    column: int
    row: int


CASES = (
    Case(3, 3, "1", "1", "1", 1, 1),  # own cell, neighbours, edges and corners around the middle
    Case(3, 3, "1", "1", "1", 0, 0),  # the own cell takes a corner quadrant
    Case(3, 2, "0.5", "0.75", "1.4", 2, 0),
    Case(3, 2, "0.5", "0.75", "0.1", 0, 1),  # noise much wider than the grid
    Case(2, 3, "0.5", "0.5", "9", 0, 1),  # noise narrower than a cell
)


def borders(own: int, size: int, side: mpf) -> list[mpf]:
    """Return where cells begin and end along one direction, seen from the true value's centre."""
    return [-inf, *(side * (mpf(place) - mpf(own) - mpf("0.5")) for place in range(1, size)), inf]


def pieces(start: mpf, end: mpf) -> list[mpf]:
    """Cut an interval at the true value, and where exp(-epsilon d) has fallen for a while."""
    cuts = [mpf(cut) for cut in (-40, -10, -2, 0, 2, 10, 40)]
    return [start, *(cut for cut in cuts if start < cut < end), end]


def mass(epsilon: mpf, across: tuple[mpf, mpf], along: tuple[mpf, mpf]) -> mpf:
    """Return the noise's mass on a rectangle, in units where epsilon is 1."""
    columns, rows = ([end * epsilon for end in ends] for ends in (across, along))
    total = quad(lambda x, y: exp(-hypot(x, y)), pieces(*columns), pieces(*rows))
    return total / (2 * pi)


def row_of(case: Case) -> list[mpf]:
    """Return P(z | x) for all cells z, in the order of cell numbers."""
    epsilon = mpf(case.epsilon)
    across = borders(case.column, case.columns, mpf(case.width))
    along = borders(case.row, case.rows, mpf(case.height))
    return [mass(epsilon, column, row) for row in pairwise(along) for column in pairwise(across)]


def main() -> None:
    """Compute, check the sums, and write."""
    mp.dps = 30
    documents = []
    for case in CASES:
        probabilities = row_of(case)
        missing = abs(sum(probabilities) - 1)
        print(f"{case}: sum is 1 within {float(missing):.1e}")
        if missing > mpf("1e-14"):
            raise SystemExit("the integrals are not accurate enough")
        document = {name: float(part) if isinstance(part, str) else part for name, part in case._asdict().items()}
        documents.append({**document, "probabilities": [float(number) for number in probabilities]})
    text = json.dumps({"made_by": "scripts/make_planar_reference.py", "cases": documents}, indent=1)
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
