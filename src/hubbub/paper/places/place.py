"""How many people are in each cell of a grid, and the source of that; the synthetic city for those without data."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from hubbub.core.arrays import Floats, Positions, frozen
from hubbub.core.serialization import Portable
from hubbub.demo import load_city
from hubbub.domains import Grid


@dataclass(frozen=True, eq=False)  # arrays have no single answer to ==; `fingerprint` says what is the same
class Place(Portable):
    """People in the cells of a grid: the true distribution of the experiments on the plane.

    `name` is for titles; `source` is one sentence on the file (its name, not its path) and how much of it is used;
    `sha256` is that of the file's bytes as they lie on the disk.
    """

    grid: Grid
    counts: Positions  # in the order of grid.labels
    name: str
    source: str
    synthetic: bool
    sha256: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", frozen(np.array(self.counts, dtype=np.int64)))

    @property
    def shares(self) -> Floats:
        """The true distribution."""
        shares: Floats = self.counts / self.users
        return shares

    @property
    def users(self) -> int:
        """How many people there are."""
        return int(self.counts.sum())

    @property
    def holes(self) -> int:
        """How many cells are empty."""
        return int(np.count_nonzero(self.counts == 0))

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of what decides results: the grid's size, its cells' sides, and the counts.

        It does not depend on the file that the counts came from, nor on where on the map they lie.
        """
        grid = self.grid
        size = f"{grid.columns} x {grid.rows} cells of {grid.width!r} x {grid.height!r} {grid.unit}\n"
        return hashlib.sha256(size.encode() + counts_bytes(self.counts)).hexdigest()


def counts_bytes(counts: Positions) -> bytes:
    """Return counts as bytes that are the same on every machine."""
    return counts.astype("<i8").tobytes()


def synthetic_place() -> Place:
    """Return the fictional city: 120,000 people, of similar size and concentration as the paper's zone.

    >>> city = synthetic_place()
    >>> city.users, city.holes
    (120000, 80)
    """
    city = load_city()
    source = (
        f"synthetic: the fictional city that ships with hubbub, {city.people.sum():,} people, all of them in the zone"
    )
    sha256 = hashlib.sha256(counts_bytes(city.people)).hexdigest()
    return Place(city.grid, city.people, "synthetic city", source, synthetic=True, sha256=sha256)
