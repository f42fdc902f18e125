"""What the reports can resolve: the finest division of the values into parts whose shares they tell."""

from hubbub.resolution.api import resolve
from hubbub.resolution.result import Part, Resolution, suggestion

__all__ = ["Part", "Resolution", "resolve", "suggestion"]
