"""The log-likelihood, its gradient and the certificate of optimality."""

from hubbub.likelihood.distributed_likelihood import PooledLikelihood, PooledPoint
from hubbub.likelihood.likelihood import MAX_GAP_OF_WAY, MIN_PLAIN_PROBABILITY, Likelihood, Passed, Point
from hubbub.likelihood.partial_sums import Sums
from hubbub.likelihood.scattered_reports import ReportsInParts, ScatteredReports, check_parts
from hubbub.likelihood.update_and_gap import Evaluation

__all__ = [
    "MAX_GAP_OF_WAY",
    "MIN_PLAIN_PROBABILITY",
    "Evaluation",
    "Likelihood",
    "Passed",
    "Point",
    "PooledLikelihood",
    "PooledPoint",
    "ReportsInParts",
    "ScatteredReports",
    "Sums",
    "check_parts",
]
