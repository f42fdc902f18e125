"""The estimate closest to the truth, chosen by the data: `method="auto"`."""

from hubbub.selection.extremes import Extreme, extreme
from hubbub.selection.select import again, selecting
from hubbub.selection.selection import Selection
from hubbub.selection.shape import Shape

__all__ = ["Extreme", "Selection", "Shape", "again", "extreme", "selecting"]
