"""Make the demo's city: src/hubbub/demo/city.csv. Run from the repository's root; the result never changes.

A fictional city on 24 x 16 cells of half a kilometre: sea in the west, a bay cutting in from the north-east, a
park, a dense centre, two smaller quarters, a road between them, and a few places where nobody is.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

COLUMNS, ROWS, PEOPLE = 24, 16, 120_000
TARGET = Path("src/hubbub/demo/city.csv")


def city() -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return the number of people in each cell, rows by columns, row 0 in the south."""
    rng = np.random.default_rng(20190418)
    row, column = np.mgrid[0:ROWS, 0:COLUMNS].astype(float)

    def hill(x: float, y: float, spread: float) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        height: np.ndarray[tuple[int, int], np.dtype[np.float64]]
        height = np.exp(-((column - x) ** 2 + (row - y) ** 2) / (2 * spread**2))
        return height

    density = 60 * hill(16.5, 11, 1.3) + 14 * hill(16, 9, 3.2) + 12 * hill(8, 5, 1.6) + 9 * hill(19, 3.5, 1.2) + 0.6
    density += 5 * np.exp(-((row - (3 + 0.5 * column)) ** 2) / 1.2) * (column > 4) * (column < 18)  # the road
    density *= rng.gamma(2.0, 0.5, size=density.shape)  # blocks differ from one to the next
    sea = column < 2.2 + 0.8 * np.sin(row / 2.5)
    bay = (column > 18.5) & (row > 11.5 - 0.7 * (column - 19))
    park = (np.abs(column - 5.5) < 3) & (np.abs(row - 9.5) < 1.2)
    density[sea | bay | park] = 0.0
    return rng.multinomial(PEOPLE, (density / density.sum()).ravel()).reshape(ROWS, COLUMNS)


def main() -> None:
    """Write the table: one line for each cell, empty ones too."""
    people = city()
    with TARGET.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["column", "row", "people"])
        for row in range(ROWS):
            for column in range(COLUMNS):
                writer.writerow([column, row, int(people[row, column])])
    print(f"{TARGET}: {people.sum():,} people, {(people == 0).sum()} empty cells of {people.size}")


if __name__ == "__main__":
    main()
