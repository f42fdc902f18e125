"""Draw any figure, by its kind, and write it down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure as Page

from hubbub.core.files import atomic_write
from hubbub.experiments.drawing.boxes import draw_boxes
from hubbub.experiments.drawing.guesses import draw_guesses
from hubbub.experiments.drawing.maps import draw_maps
from hubbub.experiments.drawing.paths import draw_paths
from hubbub.experiments.drawing.place import draw_place
from hubbub.experiments.drawing.shapes import draw_shapes
from hubbub.experiments.drawing.style import styled
from hubbub.experiments.drawing.surfaces import draw_surfaces
from hubbub.experiments.results import Results
from hubbub.experiments.spec import Figure
from hubbub.render import picture_bytes

KINDS: Mapping[str, Callable[[Figure, Results], Page]] = {
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
        return KINDS[figure.kind](figure, results)


def save(drawn: Page, folder: Path, name: str) -> tuple[Path, Path]:
    """Write NAME.png and NAME.svg: the same bytes for the same picture, without date or version. Return their paths.

    Each is written whole, or not at all: a gallery made before may show it.
    """
    bitmap, vector = folder / f"{name}.png", folder / f"{name}.svg"
    with styled():
        for path, metadata in ((bitmap, {"Software": None}), (vector, {"Date": None, "Creator": None})):
            content = picture_bytes(drawn, path.suffix, metadata=metadata)
            with atomic_write(path) as file:
                file.write(content)
    return bitmap, vector
