"""The log-likelihood, its gradient and the certificate of optimality."""

from hubbub.likelihood.evaluation import Evaluation
from hubbub.likelihood.likelihood import SMALLEST, Likelihood, Point
from hubbub.likelihood.partial_sums import Sums
from hubbub.likelihood.pooled import PooledLikelihood, PooledPoint
from hubbub.likelihood.scattered import ReportsInParts, ScatteredReports, check_parts

__all__ = [
    "SMALLEST",
    "Evaluation",
    "Likelihood",
    "Point",
    "PooledLikelihood",
    "PooledPoint",
    "ReportsInParts",
    "ScatteredReports",
    "Sums",
    "check_parts",
]
