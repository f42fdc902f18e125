"""CSV of every run: one table for each figure, one for the answers that it draws."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence

from hubbub.estimators import estimate
from hubbub.paper.figure_specs import Figure
from hubbub.paper.likelihood_surfaces import surfaces_of
from hubbub.paper.results import ROW_COLUMNS, Results
from hubbub.paper.settings import Setting

Rows = Iterable[Sequence[object]]

SETTING_COLUMNS = ("truth", "users", "mechanism", "epsilon")
SMALL_EXAMPLE_DELTA = 1e-9  # of EM on the paper's small examples: to its end, nearly


def tables(figure: Figure, results: Results) -> dict[str, bytes]:
    """Return all tables behind a figure, by the names of their files.

    The first has everything measured: a row for each run and method (or update, or number of reports).
    """
    header, rows = KINDS_OF_TABLES.get(figure.kind, ((*SETTING_COLUMNS, *ROW_COLUMNS), _runs))
    contents = [_csv(header, rows(figure, results))]
    if len(figure.tables) > 1:
        contents.append(_csv((*SETTING_COLUMNS, "value", "true", *figure.show), _answers(figure, results)))
    return {file: content for (_, file), content in zip(figure.tables, contents, strict=True)}


def _runs(figure: Figure, results: Results) -> Rows:
    for setting in figure.settings:
        for row in results.rows(figure, setting):
            yield *_setting_cells(setting, results), *(row[name] for name in ROW_COLUMNS)


def _answers(figure: Figure, results: Results) -> Rows:
    """Yield the distributions that a figure draws, value by value."""
    for setting in figure.settings:
        columns = [results.shape(figure, setting, method).tolist() for method in ("truth", *figure.show)]
        labels = setting.truth.domain(results.place).labels.tolist()
        for label, *shares in zip(labels, *columns, strict=True):
            yield *_setting_cells(setting, results), label, *shares


def _setting_cells(setting: Setting, results: Results) -> tuple[object, ...]:
    return setting.truth.name, setting.users or results.place.users, setting.mechanism, setting.epsilon


def _cells(figure: Figure, results: Results) -> Rows:  # noqa: ARG001  # all tables are made alike
    place = results.place
    return ((*step, count) for step, count in zip(place.grid.steps.tolist(), place.counts.tolist(), strict=True))


def _ends(figure: Figure, results: Results) -> Rows:  # noqa: ARG001  # all tables are made alike
    for surface in surfaces_of(figure):
        for start in surface.starts:
            answer = estimate(surface.reports, "ibu", start=list(start), delta=SMALL_EXAMPLE_DELTA)
            end = " ".join(f"{share:.6f}" for share in answer.probabilities)
            yield surface.name, " ".join(map(str, start)), end, answer.log_likelihood, answer.gap


def _guessed(figure: Figure, results: Results) -> Rows:
    for guesses in results.guesses(figure):
        for place, reports in enumerate(guesses["reports"]):
            numbers = (guesses[name][place] for name in ("wrong", "union", "types"))
            yield guesses["name"], guesses["epsilon"], guesses["people"], reports, *numbers


def _paths(figure: Figure, results: Results) -> Rows:
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


KINDS_OF_TABLES: Mapping[str, tuple[tuple[str, ...], Callable[[Figure, Results], Rows]]] = {
    "place": (("x", "y", "count"), _cells),
    "surfaces": (("surface", "start", "end", "log_likelihood", "gap"), _ends),
    "guesses": (("mechanism", "epsilon", "people", "reports", "wrong", "union_bound", "types_bound"), _guessed),
    "paths": ((*SETTING_COLUMNS, "run", "updates", "method", "tv"), _paths),
}


def _csv(header: Sequence[str], rows: Rows) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()
