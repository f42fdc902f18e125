"""The part of the map that is studied."""

from __future__ import annotations

from typing import NamedTuple

from hubbub.core.errors import DomainError, SettingError, restated, shorten
from hubbub.domains import Grid

COLUMNS, ROWS, CELL_KM = 24, 16, 0.5  # of the paper's zone


class Zone(NamedTuple):
    """A box on the map in degrees, cut into equal columns and rows.

    All four edges belong to it, as they do for `Grid.locate`; a point on a line between two cells belongs to the cell
    in the east or north of it (as far as floating point can tell).
    """

    south: float
    west: float
    north: float
    east: float
    columns: int = COLUMNS
    rows: int = ROWS

    def over(self) -> Grid:
        """Return the grid on the map, which tells in which cell a point lies."""
        return Grid.over(**self._asdict())

    def grid(self) -> Grid:
        """Return the grid of the experiments.

        The cells of the paper's zone are within 0.3% of 0.5 km; the paper says 0.5 km, and so are counts read, which
        have no place on the map. Cells of any other zone have the sides that they have.
        """
        return Grid(self.columns, self.rows, cell=CELL_KM) if self == PAPER_ZONE else self.over()

    def __str__(self) -> str:
        return f"latitude {self.south:.10g} to {self.north:.10g}, longitude {self.west:.10g} to {self.east:.10g}"


PAPER_USERS = 123_273  # check-ins in that zone (sec:Gowalla); other copies of the data differ by a few hundred
PAPER_ZONE = Zone(south=37.7228, west=-122.5153, north=37.7946, east=-122.3789)


def parse_zone(text: str) -> Zone:
    """Return the zone that "SOUTH,WEST,NORTH,EAST" names, cut into 24 columns and 16 rows.

    >>> parse_zone("37.7,-122.5,37.8,-122.3")
    Zone(south=37.7, west=-122.5, north=37.8, east=-122.3, columns=24, rows=16)
    """
    try:
        south, west, north, east = (float(side) for side in text.split(","))
    except ValueError:
        raise SettingError(
            "the zone is not four numbers",
            where="--zone",
            got=shorten(text),
            expected="SOUTH,WEST,NORTH,EAST in decimal degrees",
            remedy="write it like the paper's: 37.7228,-122.5153,37.7946,-122.3789",
        ) from None
    zone = Zone(south, west, north, east)
    try:
        zone.over()
    except DomainError as error:
        expected = f"SOUTH,WEST,NORTH,EAST: {error.expected}"
        raise restated(error, SettingError, where="--zone", got=shorten(text), expected=expected) from None
    return zone
