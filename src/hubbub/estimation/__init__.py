"""The one front door: from reports to an estimate."""

from hubbub.estimation.front import estimate, estimating, log_likelihood, optimality_gap
from hubbub.estimation.many import estimate_many
from hubbub.estimation.result import Estimate, History

__all__ = ["Estimate", "History", "estimate", "estimate_many", "estimating", "log_likelihood", "optimality_gap"]
