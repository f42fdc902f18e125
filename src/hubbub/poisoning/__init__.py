"""Poisoning: how far a few fake users could move the estimate."""

from hubbub.poisoning.api import worst_case_shift
from hubbub.poisoning.result import Shift

__all__ = ["Shift", "worst_case_shift"]
