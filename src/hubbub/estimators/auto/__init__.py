"""The estimate closest to the truth, chosen by the data: `method="auto"` (`api.auto`)."""

from hubbub.estimators.auto.result import Selection

__all__ = ["Selection"]
