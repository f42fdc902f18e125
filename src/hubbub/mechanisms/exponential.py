"""The exponential mechanism over a metric domain."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from hubbub.arrays import Codes, Floats, Positions
from hubbub.domains import Domain
from hubbub.mechanisms.base import InDomain
from hubbub.mechanisms.checks import ANY_DOMAIN, check_domain, check_epsilon


@dataclass(frozen=True)
class Exponential(InDomain):
    """Outputs in the domain, less likely the further they are.

    With d the distance of the domain::

        P(z | x) = exp(-epsilon d(x, z) / 2) / sum over z' of exp(-epsilon d(x, z') / 2)

    The halved exponent pays for the normalisation, which depends on x. Guarantee: epsilon times the
    distance d(x, x') for any two values.

    >>> from hubbub.domains import Grid
    >>> Exponential(Grid(3, 2, cell=1.0), epsilon=2.0).matrix()[0].round(3)
    array([0.45 , 0.166, 0.061, 0.166, 0.109, 0.048])
    """

    domain: Domain
    epsilon: float
    metric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_domain(self.domain, Domain, "Exponential", ANY_DOMAIN)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon, "Exponential"))

    @cached_property
    def _log_norms(self) -> Floats:
        from scipy.special import logsumexp

        return np.asarray(logsumexp(-self.epsilon / 2 * self.domain.distances(), axis=1))

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """-epsilon d / 2 less the log of the row's normalisation."""
        values = np.arange(len(self.domain)) if among is None else among
        return -self.epsilon / 2 * self.domain.distances_between(values, codes) - self._log_norms[values][:, None]
