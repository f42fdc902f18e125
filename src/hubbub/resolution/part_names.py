"""What parts are called: ranges by their ends, areas by their cells, groups by their members."""

from __future__ import annotations

from hubbub.core.arrays import Positions
from hubbub.domains import Domain
from hubbub.intervals.linear_statistic import name_values


def part_title(domain: Domain, positions: Positions, *, told: bool) -> str:
    """Return the part in a few words.

    >>> import numpy as np
    >>> from hubbub.domains import Categories, Grid, Integers
    >>> part_title(Integers(0, 9), np.arange(2, 5), told=True)
    '2 to 4'
    >>> part_title(Grid(4, 3), np.array([1, 2, 5, 6]), told=True)
    '4 cells: columns 1 to 2, rows 0 to 1'
    >>> part_title(Categories(["tea", "coffee"]), np.array([1]), told=False)
    'rest: coffee'
    """
    before = "" if told else "rest: "
    if domain.chart == "line":
        first, last = domain.title(int(positions[0])), domain.title(int(positions[-1]))
        return before + (first if positions.size == 1 else f"{first} to {last}")
    if domain.chart == "map":
        return before + (domain.title(int(positions[0])) if positions.size == 1 else domain.area_title(positions))
    return before + name_values(domain, positions.tolist())
