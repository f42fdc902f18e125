"""The estimate closest to the truth, chosen by the data: `method="auto"` (`api.auto`)."""

from hubbub.estimators.auto.selection import Selection

__all__ = ["Selection"]
