"""Places on the map in words: degrees with their hemisphere, in as few digits as tell neighbouring cells apart."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hubbub.domains.geometry import Box

MAX_DECIMALS = 12  # of degrees: a tenth of a micrometre
ROUNDING_MARGIN = 0.9  # of a cell's side, for one unit of the last digit: a rounded centre stays in its cell


def decimals_for(side: float) -> int:
    """Return the fewest decimals with which the centres of cells of that side, in degrees, can be told apart.

    Rounding moves a centre by half a unit of the last digit at most, which is less than half of the side: the rounded
    centre lies in its own cell.

    >>> decimals_for(0.0045), decimals_for(0.001), decimals_for(2.0)
    (3, 4, 0)
    """
    return min(MAX_DECIMALS, max(0, math.ceil(-math.log10(ROUNDING_MARGIN * side))))


def latitude_text(degrees: float, decimals: int) -> str:
    """Return a latitude as people read it.

    >>> latitude_text(37.7641, 3), latitude_text(-0.5, 1)
    ('37.764° N', '0.5° S')
    """
    return _degrees_text(degrees, decimals, "NS")


def longitude_text(degrees: float, decimals: int) -> str:
    """Return a longitude as people read it.

    >>> longitude_text(-122.4312, 3), longitude_text(-0.0001, 2)
    ('122.431° W', '0.00° E')
    """
    return _degrees_text(degrees, decimals, "EW")


def range_text(first: str, last: str) -> str:
    """Return a range of latitudes or longitudes; their hemisphere is said once if it is the same.

    >>> range_text("37.72° N", "37.75° N"), range_text("0.2° W", "0.1° E")
    ('37.72 to 37.75° N', '0.2° W to 0.1° E')
    """
    degrees, _, hemisphere = first.partition("°")
    return f"{degrees if last.endswith(f'°{hemisphere}') else first} to {last}"


class PlaceTexts(NamedTuple):
    """Where the rows and columns of a map are: their middles, and their edges, one more than there are of them."""

    decimals: int
    latitudes: tuple[str, ...]
    longitudes: tuple[str, ...]
    latitude_edges: tuple[str, ...]
    longitude_edges: tuple[str, ...]

    @classmethod
    def of(cls, box: Box, columns: int, rows: int) -> PlaceTexts:
        """Return the texts of a box that is divided into cells."""
        height, width = (box.north - box.south) / rows, (box.east - box.west) / columns
        decimals = decimals_for(min(height, width))
        latitudes, longitudes = box.south + height * np.arange(rows + 1), box.west + width * np.arange(columns + 1)
        return cls(
            decimals,
            tuple(latitude_text(degrees, decimals) for degrees in (latitudes[:-1] + height / 2).tolist()),
            tuple(longitude_text(degrees, decimals) for degrees in (longitudes[:-1] + width / 2).tolist()),
            tuple(latitude_text(degrees, decimals) for degrees in latitudes.tolist()),
            tuple(longitude_text(degrees, decimals) for degrees in longitudes.tolist()),
        )


def _degrees_text(degrees: float, decimals: int, hemispheres: str) -> str:
    rounded = f"{abs(degrees):.{decimals}f}"
    is_negative = degrees < 0 and float(rounded) > 0  # what rounds to 0 has no side
    return f"{rounded}° {hemispheres[is_negative]}"
