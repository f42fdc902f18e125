"""Two invented towns on 20 x 15 cells: water, where nobody is, parks, where few are, and stations, where many are.

Both are formulas, with a seed for how much neighbouring blocks differ; no data of a real town went into them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import hubbub as hb

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

COLUMNS, ROWS, CELL_KM = 20, 15, 0.5
TOWN = hb.Grid(COLUMNS, ROWS, cell=CELL_KM)
PARK_SHARE = 0.03  # of the people who would be there if the park were built on


def river_town() -> Floats:
    """Return a town on both banks of a river, with a ring road, two parks and five stations."""
    x, y = _cells()
    centre = np.exp(-np.hypot((x - 8.0) / 4.5, (y - 8.0) / 3.5))
    suburb = 0.35 * np.exp(-0.5 * (((x - 15.5) / 2.0) ** 2 + ((y - 3.0) / 1.6) ** 2))
    ring = 0.15 * (np.abs(np.hypot(x - 8.0, 1.2 * (y - 8.0)) - 6.0) < 0.6)
    river = np.abs(y - (4.5 + 0.22 * x + 1.4 * np.sin(0.45 * x))) < 0.6
    parks = (np.hypot(x - 5.0, y - 10.5) < 1.7) | ((x >= 11) & (x <= 13) & (y >= 2) & (y <= 4))
    people = (0.02 + centre + suburb + ring) * _blocks(11)
    return _built(people, river, parks, stations=((8, 8), (9, 10), (3, 4), (15, 3), (13, 12)), factor=3.0)


def harbour_town() -> Floats:
    """Return a town around a bay, with an island, a railway along the shore, a hill without houses and six stations."""
    x, y = _cells()
    shore = np.hypot(x - 21.0, 1.1 * (y - 6.0))  # the distance from the middle of the bay, in cells
    old_town = np.exp(-0.5 * (((x - 10.0) / 2.2) ** 2 + ((y - 5.0) / 2.8) ** 2))
    along_the_shore = 0.5 * np.exp(-0.5 * ((shore - 10.5) / 1.5) ** 2)
    villages = 0.08 * np.exp(-0.5 * ((x - 2.0) ** 2 + (y - 12.0) ** 2) / 1.5)
    island = np.hypot(x - 17.0, y - 6.0) < 1.2
    bay = (shore < 9.0) & ~island
    hill = np.hypot(x - 6.0, 1.3 * (y - 9.0)) < 2.4
    people = (0.01 + old_town + along_the_shore + villages + 0.4 * island) * _blocks(12)
    return _built(people, bay, hill, stations=((10, 5), (11, 9), (10, 1), (4, 4), (2, 12), (13, 13)), factor=4.0)


def _cells() -> tuple[Floats, Floats]:
    """Return the column and the row of each cell."""
    place = np.arange(COLUMNS * ROWS)
    return (place % COLUMNS).astype(np.float64), (place // COLUMNS).astype(np.float64)


def _blocks(seed: int) -> Floats:
    """Return how many more people live in some blocks than in others, by chance."""
    return np.exp(0.45 * np.random.default_rng(seed).standard_normal(COLUMNS * ROWS))


def _built(
    people: Floats, water: Flags, parks: Flags, *, stations: tuple[tuple[int, int], ...], factor: float
) -> Floats:
    """Return the people after parks, stations and water: a station beside water is on land only."""
    there = np.where(parks, PARK_SHARE * people, people)
    typical = float(np.quantile(there, 0.9))
    for column, row in stations:
        there[column + COLUMNS * row] += factor * typical
    there[water] = 0.0
    shares: Floats = there / there.sum()
    return shares
