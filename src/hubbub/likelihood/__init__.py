"""The log-likelihood, its gradient and the certificate of optimality."""

from hubbub.likelihood.likelihood import Likelihood, Point

__all__ = ["Likelihood", "Point"]
