"""The estimate closest to the truth, chosen by the data: `method="auto"`."""

from hubbub.estimators.auto.domain_shape import Shape
from hubbub.estimators.auto.fold_scores import again, selecting
from hubbub.estimators.auto.selection import Selection
from hubbub.estimators.auto.trivial_cases import Extreme, extreme

__all__ = ["Extreme", "Selection", "Shape", "again", "extreme", "selecting"]
