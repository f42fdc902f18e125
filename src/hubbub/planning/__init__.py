"""Before collecting: which mechanism, which epsilon, how many users."""

from hubbub.planning.api import Plan, plan, planning_for

__all__ = ["Plan", "plan", "planning_for"]
