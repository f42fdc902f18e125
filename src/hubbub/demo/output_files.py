"""The files the demo leaves behind."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from hubbub.core.errors import IntakeError
from hubbub.core.files import write_file
from hubbub.demo.demo_study import EPSILON, STUDY
from hubbub.demo.pipeline import Result
from hubbub.rendering import draw_distribution, picture_bytes
from hubbub.reporting import write_page


def prepare(folder: Path) -> dict[str, Path]:
    """Make the folder and return the paths in it; files of another study are never overwritten."""
    paths = {
        "study": folder / "study.toml",
        "reports": folder / "reports.csv",
        "estimates": folder / "estimates.csv",
        "picture": folder / "city.png",
        "report": folder / "report.html",
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        theirs = paths["study"].read_text(encoding="utf-8") != STUDY if paths["study"].exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise IntakeError(
            "the demo's folder cannot be used",
            where=str(folder),
            got=str(error),
            expected="a folder, or a path where one can be made",
            remedy="name another folder with -o",
        ) from None
    taken = [path.name for path in paths.values() if path.exists()]
    if theirs or (theirs is None and taken):
        raise IntakeError(
            "the demo would overwrite files that are not its own",
            where=str(folder),
            got=", ".join(taken),
            expected="a new folder, or one of an earlier demo",
            remedy="name another folder with -o",
        )
    return paths


def write(result: Result, folder: Path) -> dict[str, Path]:
    """Write study, reports, estimates, picture and report; return the paths by what they are."""
    paths = prepare(folder)
    write_file(paths["study"], STUDY.encode())
    _write_csv(paths["reports"], ["output"], ([output] for output in result.outputs.tolist()))
    columns = [result.city.shares.tolist(), *(row.probabilities.tolist() for row in result.rows)]
    header = ["cell", "column", "row", "true", *(row.name for row in result.rows)]
    places = zip(result.city.grid.labels.tolist(), result.city.grid.steps.tolist(), strict=True)
    lines = ([cell, *step, *shares] for (cell, step), shares in zip(places, zip(*columns, strict=True), strict=True))
    _write_csv(paths["estimates"], header, lines)
    draw(result, paths["picture"])
    write_page(result.page, paths["report"])
    return paths


def _write_csv(path: Path, header: list[str], lines: Iterable[Sequence[object]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    write_file(path, text.getvalue().encode())


def draw(result: Result, path: Path) -> None:
    """Draw the truth, the noisy reports and what the methods made of them, on one colour scale."""
    from matplotlib.figure import Figure

    shown = [row for row in result.rows if row.name != "inv-n"]  # there is room for six; it looks like inv-p
    top = float(result.city.shares.max())
    figure = Figure(figsize=(12, 6.2), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    draw_distribution(result.city.grid, result.city.shares, panels[0], top=top)
    panels[0].set_title("the truth, which nobody knows", fontsize=11)
    for panel, row in zip(panels[1:], shown, strict=True):
        draw_distribution(result.city.grid, row.probabilities, panel, top=top)
        panel.set_title(f"{row.name}: total variation {row.total_variation:.3f}", fontsize=11)
    for panel in panels:
        panel.label_outer()
    figure.suptitle(
        f"{result.outputs.size:,} people, planar geometric noise of {EPSILON:g} per km on their own devices",
        fontsize=13,
    )
    write_file(path, picture_bytes(figure, path.suffix, dpi=90))
