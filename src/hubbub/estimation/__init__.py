"""The one front door: from reports to an estimate."""

from hubbub.estimation.estimate import Estimate, History
from hubbub.estimation.front import estimate, estimating, log_likelihood, optimality_gap

__all__ = ["Estimate", "History", "estimate", "estimating", "log_likelihood", "optimality_gap"]
