"""Duchi, Jordan and Wainwright's two answers about a number: made for means."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from hubbub.client import response_parameters
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.domains import LineDomain
from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.mean_scores import Score
from hubbub.mechanisms.parameters import check_epsilon, check_even_line
from hubbub.sampling import EndResponseLaw, RandomSource, ResponseLaw

LOW_END, HIGH_END = -1, 1  # the outputs


@dataclass(frozen=True)
class Duchi(Mechanism):
    """Two answers about a number, -1 and +1, whose probabilities are straight lines in it: made for means.

    With t from -1 to 1 along an evenly spaced line, from its first to its last value::

        P(+1 | t) = 1/2 + t (e^epsilon - 1) / (2 (e^epsilon + 1))

    It is as if the value were rounded to one end of the line at random, so that the mean stays, and the end sent by
    randomized response. The average of outputs, stretched by (e^epsilon + 1) / (e^epsilon - 1), is an unbiased mean of
    t (`hubbub.mean`). For an epsilon up to about 1 it is as precise as `Piecewise`; for a larger one two answers cannot
    say enough, and `Piecewise` is more precise.

    Outputs say nothing but the mean: any two distributions with one mean give the same outputs, so that an estimated
    distribution is one of many.

    Guarantee: epsilon-local differential privacy.

    Parameters
    ----------
    domain
        The values: `Integers`, or `Bins` of one width.
    epsilon
        Plain epsilon, positive: smaller is more private.

    Raises
    ------
    MechanismError
        If the domain is not `Integers` or `Bins` of one width, or epsilon is not between 1e-12 and 500.

    Examples
    --------
    >>> import math
    >>> import hubbub as hb
    >>> answer = hb.Duchi(hb.Integers(0, 2), epsilon=math.log(3))
    >>> answer.matrix()
    array([[0.75, 0.25],
           [0.5 , 0.5 ],
           [0.25, 0.75]])
    >>> answer.privatize([0, 1, 2], rng=1)
    array([-1, -1,  1])
    """

    domain: LineDomain
    epsilon: float
    full_support: ClassVar[bool] = True
    means_only: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_even_line(self.domain, "Duchi")
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon, "Duchi"))

    @property
    def outputs(self) -> Array:
        """The two ends of the line, as -1 and +1."""
        return np.array([LOW_END, HIGH_END])

    def matrix(self) -> Floats:
        """Return P(-1 | value) and P(+1 | value).

        Returns
        -------
        numpy.ndarray
            A row for each value of the domain, a column for each of the two outputs.
        """
        return np.exp(self.log_columns(np.arange(2)))

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return the logarithms of both probabilities, each as a sum of positive numbers."""
        values = np.arange(len(self.domain)) if among is None else among
        far = (values / (len(self.domain) - 1))[:, None]
        nearness = np.where(codes[None, :] == 1, far, 1.0 - far)
        decay = math.exp(-self.epsilon)
        return np.asarray(np.log(nearness + (1.0 - nearness) * decay) - math.log1p(decay))

    @cached_property
    def law(self) -> EndResponseLaw:
        """An end of the line, or any of the two."""
        return EndResponseLaw(len(self.domain), ResponseLaw(2, *response_parameters(2, Fraction(self.epsilon))))

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Draw the answer by its probability."""
        chances = np.exp(self.log_columns(np.array([1])))[:, 0]
        return (source.uniforms(positions.size) < chances[positions]).astype(np.int64)

    def mean_score(self) -> Score:
        """Return the answers, stretched to the line."""
        first, last = float(self.domain.places[0]), float(self.domain.places[-1])
        stretched = (last - first) / 2 / math.tanh(self.epsilon / 2)
        return lambda codes: (first + last) / 2 + stretched * (2.0 * codes - 1.0)
