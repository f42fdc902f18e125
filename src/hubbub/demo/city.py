"""A fictional city: 120,000 people on 24 x 16 cells (made by scripts/make_city.py)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.domains import Grid

COLUMNS, ROWS, CELL_KM = 24, 16, 0.5


@dataclass(frozen=True)
class City:
    """Where everybody really is: what nobody but the demo knows."""

    grid: Grid
    people: Positions  # in the order of grid.labels

    @property
    def shares(self) -> Floats:
        """The true distribution."""
        shares: Floats = self.people / self.people.sum()
        return shares

    @property
    def values(self) -> Positions:
        """One cell number for each person."""
        return np.repeat(self.grid.labels, self.people)


def load_city() -> City:
    """Read the city that ships with hubbub."""
    grid = Grid(COLUMNS, ROWS, cell=CELL_KM)
    people = np.zeros(len(grid), dtype=np.int64)
    with files("hubbub.demo").joinpath("city.csv").open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            people[grid.cell(int(line["column"]), int(line["row"]))] = int(line["people"])
    return City(grid, people)
