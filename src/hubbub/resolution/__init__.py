"""What the reports can resolve: the finest division of the values into parts whose shares they tell."""

from hubbub.resolution.api import MAX_RESOLVED_VALUES, resolve
from hubbub.resolution.result import Part, Resolution, is_mostly_unknown, renamed, suggestion

__all__ = ["MAX_RESOLVED_VALUES", "Part", "Resolution", "is_mostly_unknown", "renamed", "resolve", "suggestion"]
