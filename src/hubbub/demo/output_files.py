"""The files that the demo writes: study, reports, estimates, picture and report page."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from hubbub.core.errors import IntakeError
from hubbub.core.files import write_file
from hubbub.demo.city import EPSILON_PER_KM, STUDY_TEXT
from hubbub.demo.pipeline import DemoResult
from hubbub.rendering import draw_distribution, picture_bytes
from hubbub.reporting import write_page


def prepare_folder(folder: Path) -> dict[str, Path]:
    """Create the folder and return the paths in it; only files of an earlier demo may be overwritten."""
    paths = {
        "study": folder / "study.toml",
        "reports": folder / "reports.csv",
        "estimates": folder / "estimates.csv",
        "picture": folder / "city.png",
        "report": folder / "report.html",
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_earlier_demo = paths["study"].exists() and paths["study"].read_text(encoding="utf-8") == STUDY_TEXT
    except (OSError, UnicodeDecodeError) as error:
        raise IntakeError(
            "the demo cannot use this folder",
            where=str(folder),
            got=str(error),
            expected="a folder, or a path where one can be created",
            remedy="name another folder with -o",
        ) from None
    existing = [path.name for path in paths.values() if path.exists()]
    if existing and not is_earlier_demo:
        raise IntakeError(
            "the demo would overwrite files that are not its own",
            where=str(folder),
            got=", ".join(existing),
            expected="a new folder, or one of an earlier demo",
            remedy="name another folder with -o",
        )
    return paths


def write_demo(result: DemoResult, folder: Path) -> dict[str, Path]:
    """Write all files of the demo, and return their paths by what they hold."""
    paths = prepare_folder(folder)
    write_file(paths["study"], STUDY_TEXT.encode())
    _write_csv(paths["reports"], ["output"], ([output] for output in result.outputs.tolist()))
    grid = result.city.grid
    columns = [result.city.shares.tolist(), *(method.probabilities.tolist() for method in result.methods)]
    header = ["cell", "column", "row", "true", *(method.name for method in result.methods)]
    rows = zip(grid.labels.tolist(), grid.steps.tolist(), zip(*columns, strict=True), strict=True)
    _write_csv(paths["estimates"], header, ([cell, *step, *shares] for cell, step, shares in rows))
    _draw_maps(result, paths["picture"])
    write_page(result.page, paths["report"])
    return paths


def _write_csv(path: Path, header: list[str], lines: Iterable[Sequence[object]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(lines)
    write_file(path, text.getvalue().encode())


def _draw_maps(result: DemoResult, path: Path) -> None:
    """Draw the truth, the noisy reports and the estimates of the methods, on one colour scale."""
    from matplotlib.figure import Figure

    shown = [method for method in result.methods if method.name != "inv-n"]  # six maps fit; inv-n looks like inv-p
    top = float(result.city.shares.max())
    figure = Figure(figsize=(12, 6.2), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    draw_distribution(result.city.grid, result.city.shares, panels[0], top=top)
    panels[0].set_title("the truth, which nobody knows", fontsize=11)
    for panel, method in zip(panels[1:], shown, strict=True):
        draw_distribution(result.city.grid, method.probabilities, panel, top=top)
        panel.set_title(f"{method.name}: total variation {method.total_variation:.3f}", fontsize=11)
    for panel in panels:
        panel.label_outer()
    figure.suptitle(
        f"{result.outputs.size:,} people, each with planar geometric noise of epsilon {EPSILON_PER_KM:g} per km",
        fontsize=13,
    )
    write_file(path, picture_bytes(figure, path.suffix, dpi=90))
