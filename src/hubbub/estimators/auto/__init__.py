"""The method "auto": an average of candidates, weighted by how well they predict reports that they have not seen."""

from hubbub.estimators.auto.result import Selection

__all__ = ["Selection"]
