"""The log-likelihood, its gradient and the certificate of optimality."""

from hubbub.likelihood.evaluation import Evaluation
from hubbub.likelihood.likelihood import SMALLEST, Likelihood, Point
from hubbub.likelihood.pooled import PooledLikelihood, PooledPoint
from hubbub.likelihood.scattered import ReportsInParts, ScatteredReports, check_parts
from hubbub.likelihood.sums import Sums

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
