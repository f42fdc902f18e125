"""Tables of medians: what each method reached in each setting of a figure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.paper.figure_specs import Figure
from hubbub.paper.gallery.figure_text import setting_name
from hubbub.paper.method_names import method_name
from hubbub.paper.results import Results
from hubbub.paper.settings import Setting

MAX_COLUMNS = 8  # that fit beside the names of settings on a laptop
DISTANCE_NAMES = {"tv": "Total variation", "emd": "Earth mover's distance"}


class Heading(NamedTuple):
    """The heading of a row or column: a setting, or a method and its number of runs."""

    name: str
    runs: int = 0


class Cell(NamedTuple):
    """The median over the runs, and the range from the 5% to the 95% quantile if there are several runs."""

    median: str
    range: str


class MediansTable(NamedTuple):
    """One distance of a figure; a cell is None where nothing was measured."""

    caption: str
    corner: str
    columns: list[Heading]
    rows: list[tuple[Heading, list[Cell | None]]]


def medians_tables(figure: Figure, results: Results) -> list[MediansTable]:
    """Return one table for each distance; none for figures without settings."""
    return [_table(figure, results, distance) for distance in figure.distances] if figure.settings else []


def _table(figure: Figure, results: Results, distance: str) -> MediansTable:
    """Return settings by methods; transposed, to stay narrow, if there are many methods and few settings."""
    methods: dict[str, None] = {}
    for setting in figure.settings:
        methods |= dict.fromkeys(_stops(figure, setting, results) + results.methods(figure, setting))
    measured = {
        method: [_measured(figure, setting, results, method, distance) for setting in figure.settings]
        for method in methods
    }
    measured = {method: by_setting for method, by_setting in measured.items() if any(map(len, by_setting))}
    columns = [Heading(method_name(method), max(map(len, by_setting))) for method, by_setting in measured.items()]
    rows = [Heading(setting_name(setting)) for setting in figure.settings]
    cells = [[_cell(by_setting[number]) for by_setting in measured.values()] for number in range(len(rows))]
    corner = "Setting"
    if len(columns) > MAX_COLUMNS and len(rows) < MAX_COLUMNS / 2:
        rows, columns, cells, corner = columns, rows, [list(line) for line in zip(*cells, strict=True)], "Method"
    caption = f"{DISTANCE_NAMES[distance]}{_unit(figure, results, distance)} from the truth"
    return MediansTable(caption, corner, columns, list(zip(rows, cells, strict=True)))


def _measured(figure: Figure, setting: Setting, results: Results, method: str, distance: str) -> Floats:
    """Return one number for each run that measured this distance; EM's paths have theirs where each rule stops."""
    if method in _stops(figure, setting, results):
        stop = results.path(figure, setting)["stops"][method]
        numbers = np.array(stop.get(distance, ()), dtype=np.float64)
    else:
        numbers = results.column(figure, setting, method, distance)
    finite: Floats = numbers[np.isfinite(numbers)]
    return finite


def _stops(figure: Figure, setting: Setting, results: Results) -> tuple[str, ...]:
    return tuple(results.path(figure, setting)["stops"]) if figure.kind == "paths" else ()


def _cell(numbers: Floats) -> Cell | None:
    if not len(numbers):
        return None
    low, high = np.percentile(numbers, (5, 95))
    spread = f"{_number(float(low))} to {_number(float(high))}" if len(numbers) > 1 else ""
    return Cell(_number(float(np.median(numbers))), spread)


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}"


def _unit(figure: Figure, results: Results, distance: str) -> str:
    """Return the unit of an earth mover's distance; total variation has none."""
    if distance != "emd":
        return ""
    places = sum(setting.truth.kind == "place" for setting in figure.settings)
    unit = results.place.grid.unit
    if places == len(figure.settings):
        return f", in {unit},"
    return f", in {unit} on the map and in steps of the line elsewhere," if places else ", in steps of the line,"
