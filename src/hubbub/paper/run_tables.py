"""CSV of every run: one table for each figure, one for the answers that it draws."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from hubbub.core.arrays import Floats
from hubbub.domains import Grid
from hubbub.estimators import estimate
from hubbub.paper.figure_specs import Figure
from hubbub.paper.likelihood_surfaces import surfaces_of
from hubbub.paper.results import ROW_COLUMNS, Results
from hubbub.paper.settings import Setting

SETTING_COLUMNS = ("truth", "users", "mechanism", "epsilon")
SMALL_EXAMPLE_DELTA = 1e-9  # of EM on the paper's small examples: to its end, nearly


def tables(figure: Figure, results: Results) -> dict[str, bytes]:
    """Return all tables behind a figure, by the names of their files."""
    makers = (_table, _answers)[: len(figure.tables)]
    return {file: make(figure, results) for (_, file), make in zip(figure.tables, makers, strict=True)}


def _table(figure: Figure, results: Results) -> bytes:
    """Return everything measured for a figure: a row for each run and method (or update, or number of reports)."""
    if figure.kind == "place":
        return _csv(("x", "y", "count"), _cells(results))
    if figure.kind == "surfaces":
        return _csv(("surface", "start", "end", "log_likelihood", "gap"), _ends(figure))
    if figure.kind == "guesses":
        header = ("mechanism", "epsilon", "people", "reports", "wrong", "union_bound", "types_bound")
        return _csv(header, _guessed(figure, results))
    if figure.kind == "paths":
        return _csv((*SETTING_COLUMNS, "run", "updates", "method", "tv"), _paths(figure, results))
    rows = (
        (*_setting_cells(setting, results), *(row[name] for name in ROW_COLUMNS))
        for setting in figure.settings
        for row in results.rows(figure, setting)
    )
    return _csv((*SETTING_COLUMNS, *ROW_COLUMNS), rows)


def _answers(figure: Figure, results: Results) -> bytes:
    """Return the distributions that a figure draws, value by value."""
    methods = ("truth", *figure.show)
    rows: list[Sequence[object]] = []
    for setting in figure.settings:
        columns = [results.shape(figure, setting, method) for method in methods]
        labels = setting.truth.domain(results.place).labels.tolist()
        rows += [
            (*_setting_cells(setting, results), label, *shares)
            for label, shares in zip(labels, _across(columns), strict=True)
        ]
    return _csv((*SETTING_COLUMNS, "value", "true", *figure.show), rows)


def _across(columns: Sequence[Floats]) -> Iterable[tuple[float, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)


def _setting_cells(setting: Setting, results: Results) -> tuple[object, ...]:
    return setting.truth.name, setting.users or results.place.users, setting.mechanism, setting.epsilon


def _cells(results: Results) -> Iterable[Sequence[object]]:
    grid: Grid = results.place.grid
    return ((*step, count) for step, count in zip(grid.steps.tolist(), results.place.counts.tolist(), strict=True))


def _ends(figure: Figure) -> Iterable[Sequence[object]]:
    for surface in surfaces_of(figure):
        for start in surface.starts:
            answer = estimate(surface.reports, "ibu", start=list(start), delta=SMALL_EXAMPLE_DELTA)
            end = " ".join(f"{share:.6f}" for share in answer.probabilities)
            yield surface.name, " ".join(map(str, start)), end, answer.log_likelihood, answer.gap


def _guessed(figure: Figure, results: Results) -> Iterable[Sequence[object]]:
    for guesses in results.guesses(figure):
        for place, reports in enumerate(guesses["reports"]):
            numbers = (guesses[name][place] for name in ("wrong", "union", "types"))
            yield guesses["name"], guesses["epsilon"], guesses["people"], reports, *numbers


def _paths(figure: Figure, results: Results) -> Iterable[Sequence[object]]:
    for setting in figure.settings:
        cells, path = _setting_cells(setting, results), results.path(figure, setting)
        for run, errors in enumerate(path["tv"]):
            yield from (
                (*cells, run, updates, None, error) for updates, error in zip(path["updates"], errors, strict=True)
            )
            for method, stop in path["stops"].items():
                yield *cells, run, stop["iterations"][run], method, stop["tv"][run]
        for row in results.rows(figure, setting):  # the lines that are drawn across: no updates of EM
            yield *cells, row["run"], None, row["method"], row["tv"]


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()
