"""The demo's fictional city, 120,000 people on 24 x 16 cells (made by scripts/make_city.py), and its study."""

from __future__ import annotations

import csv
import tomllib
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.domains import Grid
from hubbub.intake.study import Study, parse_study

COLUMNS, ROWS, CELL_KM = 24, 16, 0.5
EPSILON_PER_KM = 1.0

STUDY_TEXT = f"""# The study of hubbub's demo: what client, collector and analyst share.
version = 1
name = "demo city"

[domain]
kind = "grid"
columns = {COLUMNS}
rows = {ROWS}
cell = {CELL_KM}   # km

[mechanisms.planar]
kind = "planar-geometric"
epsilon = {EPSILON_PER_KM}   # per km
"""


@dataclass(frozen=True)
class City:
    """Where the people of the city really are, which only the demo knows."""

    grid: Grid
    people: Positions  # in each cell, in the order of grid.labels

    @property
    def shares(self) -> Floats:
        """The true distribution."""
        shares: Floats = self.people / self.people.sum()
        return shares

    @property
    def values(self) -> Positions:
        """The cell number of each person."""
        return np.repeat(self.grid.labels, self.people)


def load_city() -> City:
    """Return the city that ships with hubbub."""
    grid = Grid(COLUMNS, ROWS, cell=CELL_KM)
    people = np.zeros(len(grid), dtype=np.int64)
    with files("hubbub.demo").joinpath("city.csv").open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            people[grid.cell(int(line["column"]), int(line["row"]))] = int(line["people"])
    return City(grid, people)


def demo_study() -> Study:
    """Return the study of the demo."""
    return parse_study(tomllib.loads(STUDY_TEXT), "the demo's study")
