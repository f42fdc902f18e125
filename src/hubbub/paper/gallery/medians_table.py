"""Tables of medians: what each method reached in each setting of a figure."""

from __future__ import annotations

from typing import NamedTuple

from hubbub.paper.figure_specs import Figure
from hubbub.paper.results import Results
from hubbub.paper.results_json import Spread, spreads
from hubbub.paper.settings import Setting
from hubbub.paper.wording import method_name

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
    if not figure.settings:
        return []
    measured = [spreads(figure, setting, results) for setting in figure.settings]
    order = dict.fromkeys(method for setting in figure.settings for method in (*setting.methods, *setting.beyond))
    tables = []
    for distance in figure.distances:
        by_method = {method: [methods.get(method, {}).get(distance) for methods in measured] for method in order}
        by_method = {method: cells for method, cells in by_method.items() if any(cells)}
        caption = f"{DISTANCE_NAMES[distance]}{_unit(figure, results, distance)} from the truth"
        tables.append(_table(figure, by_method, caption))
    return tables


def _table(figure: Figure, by_method: dict[str, list[Spread | None]], caption: str) -> MediansTable:
    """Return settings by methods; transposed, to stay narrow, if there are many methods and few settings."""
    columns = [
        Heading(method_name(method), max(int(spread["runs"]) for spread in spreads if spread))
        for method, spreads in by_method.items()
    ]
    rows = [Heading(_setting_name(setting)) for setting in figure.settings]
    by_column = [[_cell(spread) for spread in spreads] for spreads in by_method.values()]
    by_row = [[cells[number] for cells in by_column] for number in range(len(rows))]
    if len(columns) > MAX_COLUMNS and len(rows) < MAX_COLUMNS / 2:
        return MediansTable(caption, "Method", rows, list(zip(columns, by_column, strict=True)))
    return MediansTable(caption, "Setting", columns, list(zip(rows, by_row, strict=True)))


def _cell(spread: Spread | None) -> Cell | None:
    if spread is None:
        return None
    low_to_high = f"{_number(spread['5%'])} to {_number(spread['95%'])}" if spread["runs"] > 1 else ""
    return Cell(_number(spread["median"]), low_to_high)


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


def _setting_name(setting: Setting) -> str:
    """Return a setting in one line."""
    truth = setting.truth
    if truth.kind == "place":
        values = "the map"
    elif truth.kind == "binomial":
        values = f"binomial on 0..{truth.values - 1}"
    else:
        values = f"uniform on {truth.low}..{truth.high} of 0..{truth.values - 1}"
    mechanism = f"{setting.mechanism}, epsilon {setting.epsilon:g}" if setting.plain else setting.mechanism
    return f"{values}: {mechanism}" + (f", {setting.users:,} users" if setting.users else "")
