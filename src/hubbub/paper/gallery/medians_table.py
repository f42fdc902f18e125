"""Tables of medians: what each method reached in each setting of a figure."""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.paper.figure_specs import Figure
from hubbub.paper.gallery.gallery_text import DISTANCES, runs_in_words, setting_name, text
from hubbub.paper.method_names import method_name
from hubbub.paper.results import Results
from hubbub.paper.settings import Setting

MANY = 8  # columns that fit beside the names of settings on a laptop


def medians(figure: Figure, results: Results) -> str:
    """Return one table for each distance, folded; nothing for figures without settings."""
    if not figure.settings:
        return ""
    tables = "\n".join(_table(figure, results, distance) for distance in figure.distances)
    return f"""<details class="medians"><summary>Medians and ranges, as a table</summary>
<p>Each cell has the median over the runs, and below it the range from 5% to 95% of them.</p>
{tables}
</details>"""


def values(figure: Figure, setting: Setting, results: Results, method: str, distance: str) -> Floats:
    """Return one number for each run that measured this distance; EM's paths have theirs where each rule stops."""
    if method in _stops(figure, setting, results):
        stop = results.path(figure, setting)["stops"][method]
        found = np.array(stop.get(distance, ()), dtype=np.float64)
    else:
        found = results.column(figure, setting, method, distance)
    kept: Floats = found[np.isfinite(found)]
    return kept


def _table(figure: Figure, results: Results, distance: str) -> str:
    """Return settings by methods; turned around where there are many methods and few settings, to stay narrow."""
    methods: dict[str, None] = {}
    for setting in figure.settings:
        methods |= dict.fromkeys(_stops(figure, setting, results) + results.methods(figure, setting))
    measured = {
        method: [values(figure, setting, results, method, distance) for setting in figure.settings]
        for method in methods
    }
    measured = {method: found for method, found in measured.items() if any(map(len, found))}
    columns = [_head(method, found) for method, found in measured.items()]
    rows = [text(setting_name(setting)) for setting in figure.settings]
    cells = [[_cell(found[number]) for found in measured.values()] for number in range(len(rows))]
    corner = "Setting"
    if len(columns) > MANY and len(rows) < MANY / 2:
        rows, columns, cells, corner = columns, rows, [list(line) for line in zip(*cells, strict=True)], "Method"
    heads = "".join(f'<th scope="col">{head}</th>' for head in (corner, *columns))
    body = "\n".join(
        f'<tr><th scope="row">{row}</th>' + "".join(f"<td>{cell}</td>" for cell in line) + "</tr>"
        for row, line in zip(rows, cells, strict=True)
    )
    name = f"{DISTANCES[distance]}{_unit(figure, results, distance)} from the truth"
    return f"""<div class="scroll" role="region" aria-label="{text(figure.title)}: {text(name)}" tabindex="0"><table>
<caption>{text(name)}</caption>
<thead><tr>{heads}</tr></thead>
<tbody>
{body}
</tbody>
</table></div>"""


def _stops(figure: Figure, setting: Setting, results: Results) -> tuple[str, ...]:
    return tuple(results.path(figure, setting)["stops"]) if figure.kind == "paths" else ()


def _head(method: str, column: list[Floats]) -> str:
    longest = max(len(numbers) for numbers in column)
    return f"{text(method_name(method))} <small>{runs_in_words(longest)}</small>"


def _cell(numbers: Floats) -> str:
    if not len(numbers):
        return '<span title="not measured">–</span>'
    shown = _number(float(np.median(numbers)))
    if len(numbers) > 1:
        low, high = np.percentile(numbers, (5, 95))
        shown += f" <small>{_number(float(low))} to {_number(float(high))}</small>"
    return shown


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.2f}"


def _unit(figure: Figure, results: Results, distance: str) -> str:
    """Return what an earth mover's distance is measured in; total variation has no unit."""
    if distance != "emd":
        return ""
    places = sum(setting.truth.kind == "place" for setting in figure.settings)
    unit = results.place.grid.unit
    if places == len(figure.settings):
        return f", in {unit},"
    return f", in {unit} on the map and in steps of the line elsewhere," if places else ", in steps of the line,"
