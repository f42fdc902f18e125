"""What differs between groups of users, and how far apart they are."""

from hubbub.comparison.api import compare
from hubbub.comparison.group_comparison import GroupComparison
from hubbub.comparison.many_groups import compare_groups
from hubbub.comparison.result import Comparison

__all__ = ["Comparison", "GroupComparison", "compare", "compare_groups"]
