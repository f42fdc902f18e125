"""Maxima that need no iteration."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hubbub.channels import DiagonalPlusConstantChannel
from hubbub.core.arrays import Floats
from hubbub.likelihood import Likelihood, Point

MAX_CANCELLATION = 1e4  # ratio of the terms of a difference to the difference


class ClosedForm(NamedTuple):
    """A maximum, and whether there are others."""

    point: Point
    several: bool


def closed_form(likelihood: Likelihood, start: Floats) -> ClosedForm | None:
    """Return the maximum if a formula gives it, None otherwise."""
    return single_pattern_maximum(likelihood, start) or randomized_response_maximum(likelihood, start)


def single_pattern_maximum(likelihood: Likelihood, start: Floats) -> ClosedForm | None:
    """Return the maximum when all users sent the same pattern, None otherwise.

    This is the paper's single input (Theorem single_inp): a distribution is a maximum exactly if all its mass
    is on the values that make the pattern most likely. Among these, EM from `start` converges to the one that keeps
    `start`'s proportions, which is returned.
    """
    if likelihood.channel.patterns != 1:
        return None
    column = likelihood.channel.backward(np.ones(1))
    # A product of thousands of factors is a sum of logarithms: equal ones agree up to the rounding of that sum.
    slack = 64 * np.finfo(np.float64).eps * (1.0 + abs(float(likelihood.channel.log_scale[0])))
    best = column >= column.max() * math.exp(-slack)
    theta = start * best
    return ClosedForm(likelihood.at(theta / theta.sum()), int(np.count_nonzero(best)) > 1)


def randomized_response_maximum(likelihood: Likelihood, start: Floats) -> ClosedForm | None:
    """Return the maximum for k-ary randomized response, None for other channels.

    With likelihood a at a pattern's own value and b < a at all others, f_i = b + (a - b) theta_i. The conditions for a
    maximum are f_i = max(b, w_i / c) for some c: values that were reported often share their excess over b in
    proportion to their counts, all others have 0. The scan goes from the largest count down: c follows from the sum so
    far, and the scan ends with the last count that exceeds b.
    """
    channel = likelihood.channel
    if (
        not isinstance(channel, DiagonalPlusConstantChannel)
        or not channel.at > channel.elsewhere
        or not channel.distinct
    ):
        return None
    counts = likelihood.weights
    if channel.inside is not None:  # a report of a value that is not kept has the same likelihood everywhere
        counts = np.where(channel.inside, counts, 0.0)
        if not counts.any():  # nobody reported a kept value: all distributions are equally likely
            return ClosedForm(likelihood.at(start), channel.values > 1)
    # If K values exceed b, with total count W: theta_i = w_i / W + b (K w_i - W) / (W (a - b)).
    # Counts are whole numbers, so that K w_i - W is exact.
    excess, b = channel.excess, channel.elsewhere
    sizes, times = _distinct_descending(counts)
    number, total = np.cumsum(times), np.cumsum(sizes * times)
    last = int(np.flatnonzero(sizes * excess + b * (number * sizes - total) > 0)[-1])
    count, weight = float(number[last]), float(total[last])
    if (
        count * b < MAX_CANCELLATION * excess
    ):  # the same formula with fewer passes, where its difference loses few digits
        theta = counts * ((1.0 + count * b / excess) / weight)
        theta -= b / excess
    else:
        theta = counts * count
        theta -= weight
        theta *= b / (weight * excess)
        theta += counts / weight
    np.maximum(theta, 0.0, out=theta)
    return ClosedForm(likelihood.at(channel.scattered(theta / theta.sum())), several=False)  # f determines theta


def _distinct_descending(counts: Floats) -> tuple[Floats, Floats]:
    """Return the distinct counts, largest first, and how often each occurs."""
    if float(counts.max()) <= 10 * counts.size:  # counting is quicker than sorting
        times = np.bincount(counts.astype(np.int64))
        sizes = np.flatnonzero(times)[::-1]
        if float(sizes @ times[sizes]) == float(counts.sum()):  # all of them are whole numbers
            return sizes.astype(np.float64), times[sizes].astype(np.float64)
    ascending, repeats = np.unique(counts, return_counts=True)
    return ascending[::-1], repeats[::-1].astype(np.float64)
