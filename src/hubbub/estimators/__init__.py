"""The one front door: from reports to an estimate."""

from hubbub.estimators.api import estimate, log_likelihood, optimality_gap
from hubbub.estimators.repeated import estimate_many
from hubbub.estimators.result import Estimate, History

__all__ = ["Estimate", "History", "estimate", "estimate_many", "log_likelihood", "optimality_gap"]
