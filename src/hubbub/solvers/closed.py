"""Maxima that need no iteration."""

from __future__ import annotations

import math

import numpy as np

from hubbub.arrays import Floats
from hubbub.likelihood import Likelihood, Point


def single_pattern(likelihood: Likelihood, start: Floats) -> Point | None:
    """Return the maximum when all users sent the same pattern, None otherwise.

    This is the paper's single input (Theorem single_inp): a distribution is a maximum exactly if all its mass
    lies on the values that make the pattern most likely. Of these, EM from `start` tends to the one that keeps
    `start`'s proportions; that one is returned.
    """
    if likelihood.channel.patterns != 1:
        return None
    column = likelihood.channel.backward(np.ones(1))
    # A product of thousands of factors is a sum of logs: equal ones agree up to the rounding of that sum.
    slack = 64 * np.finfo(np.float64).eps * (1.0 + abs(float(likelihood.channel.log_scale[0])))
    best = column >= column.max() * math.exp(-slack)
    theta = start * best
    return likelihood.at(theta / theta.sum())
