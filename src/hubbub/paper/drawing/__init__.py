"""The figures as pictures: PNG and SVG in one style, the same bytes each time."""

from hubbub.paper.drawing.figure_files import draw, save

__all__ = ["draw", "save"]
