"""The files that the demo writes: study, reports, estimates, picture and report page."""

from __future__ import annotations

from pathlib import Path

from hubbub.core.errors import IntakeError
from hubbub.core.files import write_file
from hubbub.demo.city import EPSILON_PER_KM, STUDY_TEXT
from hubbub.demo.pipeline import DemoResult
from hubbub.rendering import csv_bytes, draw_distribution, picture_bytes
from hubbub.reporting import write_page

FILE_NAMES = {
    "study": "study.toml",
    "reports": "reports.csv",
    "estimates": "estimates.csv",
    "picture": "city.png",
    "report": "report.html",
}


def prepare_folder(folder: Path) -> dict[str, Path]:
    """Create the folder and return the paths in it; only files of an earlier demo may be overwritten."""
    paths = {what: folder / name for what, name in FILE_NAMES.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_earlier_demo = paths["study"].exists() and paths["study"].read_text(encoding="utf-8") == STUDY_TEXT
    except (OSError, UnicodeDecodeError) as error:
        expected = "a folder, or a path where one can be created"
        raise _refused(folder, "the demo cannot use this folder", str(error), expected) from None
    existing = [path.name for path in paths.values() if path.exists()]
    if existing and not is_earlier_demo:
        what = "the demo would overwrite files that are not its own"
        raise _refused(folder, what, ", ".join(existing), "a new folder, or one of an earlier demo")
    return paths


def _refused(folder: Path, what: str, got: str, expected: str) -> IntakeError:
    return IntakeError(what, where=str(folder), got=got, expected=expected, remedy="name another folder with -o")


def write_demo(result: DemoResult, folder: Path) -> dict[str, Path]:
    """Write all files of the demo, and return their paths by what they hold."""
    paths = prepare_folder(folder)
    write_file(paths["study"], STUDY_TEXT.encode())
    write_file(paths["reports"], "\n".join(["output", *map(str, result.outputs.tolist()), ""]).encode())
    grid = result.city.grid
    columns = [result.city.shares.tolist(), *(method.probabilities.tolist() for method in result.methods)]
    header = ["cell", "column", "row", "true", *(method.name for method in result.methods)]
    rows = zip(grid.labels.tolist(), grid.steps.tolist(), zip(*columns, strict=True), strict=True)
    write_file(paths["estimates"], csv_bytes(header, ([cell, *step, *shares] for cell, step, shares in rows)))
    _draw_maps(result, paths["picture"])
    write_page(result.page, paths["report"])
    return paths


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
    noise = f"planar geometric noise of epsilon {EPSILON_PER_KM:g} per km"
    figure.suptitle(f"{result.outputs.size:,} people, each with {noise}", fontsize=13)
    write_file(path, picture_bytes(figure, path.suffix, dpi=90))
