"""From reports to an estimate: one module for each method, behind `estimate`."""

from hubbub.estimators.api import estimate, log_likelihood, optimality_gap
from hubbub.estimators.reestimation import reestimate
from hubbub.estimators.result import Estimate, History

__all__ = ["Estimate", "History", "estimate", "log_likelihood", "optimality_gap", "reestimate"]
