"""Draw any figure, by its kind, and write it down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure as Page

from hubbub.paper.drawing.box_plots import draw_boxes
from hubbub.paper.drawing.em_path_plots import draw_paths
from hubbub.paper.drawing.guess_plots import draw_guesses
from hubbub.paper.drawing.heat_maps import draw_maps, draw_place
from hubbub.paper.drawing.line_plots import draw_shapes
from hubbub.paper.drawing.plot_style import styled
from hubbub.paper.drawing.surface_plots import draw_surfaces
from hubbub.paper.figure_specs import Figure
from hubbub.paper.reproduction_folder import write_whole
from hubbub.paper.results import Results
from hubbub.rendering import picture_bytes

DRAWERS: Mapping[str, Callable[[Figure, Results], Page]] = {
    "place": draw_place,
    "shapes": draw_shapes,
    "surfaces": draw_surfaces,
    "maps": draw_maps,
    "boxes": draw_boxes,
    "guesses": draw_guesses,
    "paths": draw_paths,
}


def draw(figure: Figure, results: Results) -> Page:
    """Return the picture of a figure. It belongs to no window, and matplotlib's settings are left as they are."""
    with styled():
        return DRAWERS[figure.kind](figure, results)


def save(drawn: Page, folder: Path, name: str) -> tuple[Path, Path]:
    """Write NAME.png and NAME.svg: the same bytes for the same picture, without date or version. Return their paths.

    Each is written whole, or not at all: a gallery made before may show it.
    """
    bitmap, vector = folder / f"{name}.png", folder / f"{name}.svg"
    with styled():
        for path, metadata in ((bitmap, {"Software": None}), (vector, {"Date": None, "Creator": None})):
            write_whole(path, picture_bytes(drawn, path.suffix, metadata=metadata))
    return bitmap, vector
