"""The drawing of one small chart, as numbers and texts: the templates make elements of them, and escape every text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Floats, Positions
from hubbub.domains import Domain, Grid
from hubbub.rendering.palette import BLUE, VERMILLION
from hubbub.reporting.chart_scale import ChartScale

COLOUR_STEPS = 32


class PanelNumbers(NamedTuple):
    """What one small chart shows of each value: a number, its interval, and whether it is marked."""

    centre: Floats
    low: Floats  # NaN: not computed
    high: Floats
    marked: NDArray[np.bool_]


class Strip(NamedTuple):
    """A value and its number: texts, and a bar with its interval in percent of the scale."""

    title: str
    text: str
    number: float
    interval: str
    start: float
    end: float
    low: float | None
    high: float | None
    is_marked: bool


class Curve(NamedTuple):
    """Numbers along a line as paths in a square of 100 x 100: the line, its band, and the places that are marked."""

    line: str
    band: str
    marks: str
    zero: float


class CellColour(NamedTuple):
    """A colour, and the path of the cells that have it, in units of cells."""

    fill: str
    opacity: float
    path: str = ""


class CellMap(NamedTuple):
    """Cells of a map by colour, and dots in those that are marked."""

    columns: int
    rows: int
    aspect: float  # width by height
    colours: list[CellColour]
    marks: str


Texts = Callable[[float, float, float], tuple[str, str]]  # from a number and its interval
Colours = Callable[[float], CellColour]  # from 0, the start of the scale, to 1


def strips(domain: Domain, positions: Positions, numbers: PanelNumbers, scale: ChartScale, texts: Texts) -> list[Strip]:
    """Return a row for each of some values; its bar starts at 0."""
    zero = scale.at(0.0)
    places = [scale.place(each[positions]) for each in (numbers.centre, numbers.low, numbers.high)]
    made = []
    for row, position in enumerate(positions.tolist()):
        own, low, high = (float(each[position]) for each in (numbers.centre, numbers.low, numbers.high))
        text, interval = texts(own, low, high)
        centre, *ends = (float(each[row]) for each in places)
        is_known = np.isfinite(ends).all()
        made.append(
            Strip(
                domain.title(position),
                text,
                own,
                interval,
                min(zero, centre),
                max(zero, centre),
                ends[0] if is_known else None,
                ends[1] if is_known else None,
                bool(numbers.marked[position]),
            )
        )
    return made


def curve(domain: Domain, numbers: PanelNumbers, scale: ChartScale) -> Curve:
    """Return numbers as a curve over the places of their values, with the band of their intervals."""
    places = domain.places
    assert places is not None  # noqa: S101  # values along a line
    x = np.round(100.0 * (places - places[0]) / (places[-1] - places[0]), 2)
    centre, low, high = (100.0 - scale.place(each) for each in (numbers.centre, numbers.low, numbers.high))
    band = ""
    for run in _runs(np.isfinite(low) & np.isfinite(high)):
        ends = np.concatenate([run, run[::-1]])
        band += _polyline(x[ends], np.concatenate([high[run], low[run][::-1]])) + "z"
    marks = "".join(f"M{_text(x[place])} {_text(centre[place])}h0" for place in np.flatnonzero(numbers.marked))
    return Curve(_polyline(x, centre), band, marks, 100.0 - scale.at(0.0))


def cell_map(domain: Domain, grid: Grid, numbers: PanelNumbers, fractions: Floats, colours: Colours) -> CellMap:
    """Return the cells of a map, coloured by how far along the scale their numbers are."""
    steps = np.rint(np.clip(fractions, 0.0, 1.0) * (COLOUR_STEPS - 1)).astype(np.int64)
    cells = domain.labels.astype(np.int64)
    columns, rows = cells % grid.columns, grid.rows - 1 - cells // grid.columns  # the first row is in the south
    made = []
    for step in np.unique(steps).tolist():
        own = steps == step
        path = "".join(
            f"M{column} {row}h1v1h-1z" for column, row in zip(columns[own].tolist(), rows[own].tolist(), strict=True)
        )
        made.append(colours(step / (COLOUR_STEPS - 1))._replace(path=path))
    places = np.flatnonzero(numbers.marked).tolist()
    marks = "".join(f"M{columns[place]}.5 {rows[place]}.5h0" for place in places)
    aspect = grid.columns * grid.width / (grid.rows * grid.height)
    return CellMap(grid.columns, grid.rows, round(aspect, 4), made, marks)


def share_colour(fraction: float) -> CellColour:
    """Return a colour of the heat map, the same as on the page of one group."""
    red, green, blue = (round(255 * each) for each in _cividis()(fraction)[:3])
    return CellColour(f"#{red:02x}{green:02x}{blue:02x}", 1.0)


def difference_colour(fraction: float) -> CellColour:
    """Return blue for more and vermillion for less: the fainter, the smaller the difference, on any background."""
    return CellColour(BLUE if fraction >= 0.5 else VERMILLION, round(abs(2.0 * fraction - 1.0), 3))


@cache
def _cividis() -> Callable[[float], tuple[float, float, float, float]]:
    from matplotlib import colormaps  # takes a while to load

    return colormaps["cividis"]


def _runs(known: NDArray[np.bool_]) -> Iterator[Positions]:
    """Yield the positions of consecutive values that are known."""
    places = np.flatnonzero(known)
    if places.size:
        yield from np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)


def _polyline(x: Floats, y: Floats) -> str:
    points = [f"{_text(across)} {_text(down)}" for across, down in zip(x, y, strict=True)]
    return f"M{'L'.join(points)}"


def _text(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
