"""What differs between groups of users, and how far apart they are."""

from hubbub.comparison.api import compare
from hubbub.comparison.result import Comparison

__all__ = ["Comparison", "compare"]
