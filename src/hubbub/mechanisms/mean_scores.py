"""Scores of outputs whose expectation is the value: what an unbiased mean is the average of.

A score s has E(s(output) | value) = the place of the value, for every value. Averages of scores are then unbiased for
the mean of the values, whatever their distribution.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hubbub.core.arrays import Codes, Floats

Score = Callable[[Codes], Floats]

MAX_SOLVED_ENTRIES = 2_000_000  # of a matrix whose scores are solved for
MAX_RESIDUAL = 1e-9  # of the solved equations, relative to the length of the line


def solved_score(matrix: Floats, places: Floats) -> Score | None:
    """Return the score that solves the equations of a matrix; None if none does.

    Of several solutions it is the one with the least variance if all values are equally frequent. The scores of
    outputs are counted from the middle of the line, so that no digits are lost on lines far from 0.
    """
    middle = float(places[0] + places[-1]) / 2
    weights = np.sqrt(matrix.mean(axis=0))
    sent = weights > 0.0
    scaled, away = matrix[:, sent] / weights[sent], places - middle
    scores = np.zeros(matrix.shape[1])
    scores[sent] = np.linalg.lstsq(scaled, away, rcond=None)[0] / weights[sent]
    if np.abs(matrix @ scores - away).max() > MAX_RESIDUAL * float(places[-1] - places[0]):
        return None
    return lambda codes: middle + scores[codes]


def support_score(places: Floats, true: float, other: float, sums: Callable[[Codes, Floats], Floats]) -> Score:
    """Return the score of outputs that stand for sets of values.

    `true` and `other` are the probabilities that a set holds the value, and any other value; ``sums(codes, numbers)``
    adds up the numbers of the values in each set. Counted from the average place c, the score is::

        c + sum over the values x in the set of (x - c) / (true - other)
    """
    centre = float(places.mean())
    numbers = (places - centre) / (true - other)
    return lambda codes: centre + sums(codes, numbers)
