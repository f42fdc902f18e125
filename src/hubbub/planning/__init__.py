"""Plan a study before collecting: which mechanism, which epsilon, how many users."""

from hubbub.planning.api import plan
from hubbub.planning.attribute_plan import AttributesPlan, plan_attributes
from hubbub.planning.result import Plan

__all__ = ["AttributesPlan", "Plan", "plan", "plan_attributes"]
