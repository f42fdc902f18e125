"""The one front door: from reports to an estimate."""

from hubbub.estimation.estimate import Estimate, History
from hubbub.estimation.front import estimate, estimating, log_likelihood, optimality_gap
from hubbub.estimation.many import estimate_many

__all__ = ["Estimate", "History", "estimate", "estimate_many", "estimating", "log_likelihood", "optimality_gap"]
