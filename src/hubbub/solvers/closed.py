"""Maxima that need no iteration."""

from __future__ import annotations

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
    column = likelihood.channel.dense()[:, 0]
    best = column >= column.max() * (1 - 1e-12)  # equal up to rounding in a product of many factors
    theta = start * best
    return likelihood.at(theta / theta.sum())
