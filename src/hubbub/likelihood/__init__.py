"""The log-likelihood, its gradient and the certificate of optimality."""

from hubbub.likelihood.likelihood import SMALLEST, Likelihood, Point

__all__ = ["SMALLEST", "Likelihood", "Point"]
