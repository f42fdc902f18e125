"""From reports to an estimate: one module for each method, behind `estimate`."""

from hubbub.estimators.api import estimate, log_likelihood, optimality_gap, register_estimator
from hubbub.estimators.reestimation import reestimate
from hubbub.estimators.result import Estimate, History
from hubbub.estimators.two_sample_prevalence import UnrelatedPrevalence, unrelated_prevalence

__all__ = [
    "Estimate",
    "History",
    "UnrelatedPrevalence",
    "estimate",
    "log_likelihood",
    "optimality_gap",
    "reestimate",
    "register_estimator",
    "unrelated_prevalence",
]
