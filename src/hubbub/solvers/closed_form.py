"""Maxima that need no iteration."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hubbub.channels import SpikeChannel
from hubbub.core.arrays import Floats
from hubbub.likelihood import Likelihood, Point

HARMLESS = 1e4  # how many times larger the parts of a difference may be than the difference


class Closed(NamedTuple):
    """A maximum, and whether there are others."""

    point: Point
    several: bool


def closed_form(likelihood: Likelihood, start: Floats) -> Closed | None:
    """Return the maximum where a formula gives it, None where none does."""
    return single_pattern(likelihood, start) or one_spike(likelihood, start)


def single_pattern(likelihood: Likelihood, start: Floats) -> Closed | None:
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
    return Closed(likelihood.at(theta / theta.sum()), int(np.count_nonzero(best)) > 1)


def one_spike(likelihood: Likelihood, start: Floats) -> Closed | None:
    """Return the maximum for k-ary randomized response, None for other channels.

    With likelihood a at a pattern's own value and b < a at all others, f_i = b + (a - b) theta_i. The conditions for a
    maximum make f_i = max(b, w_i / c) for one c: values that were reported often share their excess over b in
    proportion to their counts, all others have 0. From the largest count down, c follows from the sum so far, and
    the last count that exceeds b ends the scan.
    """
    channel = likelihood.channel
    if not isinstance(channel, SpikeChannel) or not channel.at > channel.elsewhere or not channel.distinct:
        return None
    counts = likelihood.weights
    if channel.inside is not None:  # what points outside is flat, and says nothing
        counts = np.where(channel.inside, counts, 0.0)
        if not counts.any():  # nobody reported a value that is kept: every distribution explains the rest alike
            return Closed(likelihood.at(start), channel.values > 1)
    # With the values that exceed b, K of them with counts W in all: theta_i = w_i / W + b (K w_i - W) / (W (a - b)).
    # Counts are whole numbers, so that K w_i - W is exact.
    excess, b = channel.excess, channel.elsewhere
    sizes, times = _falling(counts)
    many, total = np.cumsum(times), np.cumsum(sizes * times)
    chosen = int(np.flatnonzero(sizes * excess + b * (many * sizes - total) > 0)[-1])
    count, weight = float(many[chosen]), float(total[chosen])
    if count * b < HARMLESS * excess:  # the same with fewer passes, where its difference loses few digits
        theta = counts * ((1.0 + count * b / excess) / weight)
        theta -= b / excess
    else:
        theta = counts * count
        theta -= weight
        theta *= b / (weight * excess)
        theta += counts / weight
    np.maximum(theta, 0.0, out=theta)
    return Closed(likelihood.at(channel.scattered(theta / theta.sum())), several=False)  # f determines theta


def _falling(counts: Floats) -> tuple[Floats, Floats]:
    """Return the distinct counts, largest first, and how often each occurs."""
    if float(counts.max()) <= 10 * counts.size:  # counting is quicker than sorting
        times = np.bincount(counts.astype(np.int64))
        sizes = np.flatnonzero(times)[::-1]
        if float(sizes @ times[sizes]) == float(counts.sum()):  # all of them are whole numbers
            return sizes.astype(np.float64), times[sizes].astype(np.float64)
    rising, often = np.unique(counts, return_counts=True)
    return rising[::-1], often[::-1].astype(np.float64)
