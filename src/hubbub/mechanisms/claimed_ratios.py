"""The epsilon that a table of floats has, rounded up in its last digits: a claim that real reports keep.

Real reports are drawn from whole numbers that equal the floats but for the largest entry of each row
(`sampling.weight_tables`). Logarithms of float quotients are near the true ones; what may be missing is added.
"""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.domains import Domain

COMPARED_ENTRIES = 1 << 15  # of which quotients are computed at a time: they stay in the processor's cache
# Entries, quotient and logarithm are each off by at most one unit in the last place, 2^-52 of themselves. Where the
# quotient is beyond floats, logarithms are above 700, and so much larger than their own rounding.
LOG_ROUNDING = 2.0**-50  # relative to 1 and the logarithm
RATE_ROUNDING = 2.0**-49  # relative: more than a float distance, and what divides by it, lose


def claimed_epsilon(probabilities: Floats, domain: Domain, *, metric: bool) -> float:
    """Return the largest log-ratio within a column, for any two values or, if `metric`, per unit of their distance.

    It is infinite where some values alone can give an output, or values at distance 0 differ. Any two values are
    compared per unit of distance, which takes values^2 x outputs divisions, in blocks of limited memory. On a line
    neighbours are enough: between two values log-ratios add up from neighbour to neighbour, and so do distances.
    """
    if (probabilities == probabilities[0]).all():
        return 0.0
    drawn = _drawn(probabilities)
    drawn = np.ascontiguousarray(drawn[:, drawn.max(axis=0) > 0])
    if not drawn.all():
        return math.inf
    if not metric or domain.is_equidistant:
        return _with_rounding(float(_logs(drawn.max(axis=0), drawn.min(axis=0)).max()))
    return _largest_rate(drawn, domain)


def _drawn(probabilities: Floats) -> Floats:
    """Return the table as its law has it: the largest entry of a row takes what its sum lacks."""
    drawn = probabilities.copy()
    # Summed with the 1: the difference 1 - fsum(row) would be rounded while it is still large.
    lacking = [math.fsum([1.0, *row]) for row in (-drawn).tolist()]
    drawn[np.arange(len(drawn)), np.argmax(drawn, axis=1)] += lacking
    return drawn


def _logs(high: Floats, low: Floats) -> Floats:
    """Return log(high / low)."""
    with np.errstate(over="ignore"):
        logs = np.log(high / low)
    return np.where(np.isinf(logs), np.log(high) - np.log(low), logs)


def _with_rounding(log: float) -> float:
    return log + LOG_ROUNDING * (1 + log)


def _largest_rate(drawn: Floats, domain: Domain) -> float:
    """Return the largest rate of any two values, rounded up; of neighbours, where these are enough."""
    size, largest = len(drawn), 0.0
    block = max(1, COMPARED_ENTRIES // drawn.shape[1])
    quotients = np.empty((block, drawn.shape[1]))
    for value in range(size - 1):
        last = size if domain.places is None else value + 2
        for start in range(value + 1, last, block):
            others = np.arange(start, min(start + block, last))
            apart = domain.distances_between(np.array([value]), others)[0]
            logs = _largest_logs(drawn[value], drawn[start : start + others.size], quotients[: others.size])
            largest = max(largest, _rate(logs, apart))
    return largest


def _largest_logs(own: Floats, rest: Floats, quotients: Floats) -> Floats:
    """Return the largest log-ratio of one row with each of some others, in both directions; 0 for equal rows."""
    with np.errstate(over="ignore", under="ignore"):
        np.divide(own, rest, out=quotients)
    high, low = quotients.max(axis=1), quotients.min(axis=1)
    in_range = np.isfinite(high) & (low >= np.finfo(np.float64).tiny)  # below, quotients lose digits
    if in_range.all():
        return np.asarray(np.maximum(np.log(high), -np.log(low)))
    return np.asarray(np.abs(np.log(own) - np.log(rest)).max(axis=1))


def _rate(logs: Floats, apart: Floats) -> float:
    """Return the largest rate of some pairs, rounded up."""
    together = apart == 0
    if together.any():
        if logs[together].any():
            return math.inf
        logs, apart = logs[~together], apart[~together]
    with np.errstate(over="ignore"):
        rates = (logs + LOG_ROUNDING * (1 + logs)) / apart * (1 + RATE_ROUNDING)
    return float(rates.max(initial=0.0))
