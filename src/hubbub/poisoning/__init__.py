"""How far fake users could move the estimate."""

from hubbub.poisoning.api import Shift, worst_case_shift

__all__ = ["Shift", "worst_case_shift"]
