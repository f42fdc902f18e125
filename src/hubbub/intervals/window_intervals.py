"""Intervals of single values among tens of thousands on a line or a map, each from the outputs around it.

As in `local_shares`, rows w of W~ are computed in a window around some values. One row alone gives an estimate of its
value's share, w c / n, whose mean is theta_x plus the sum over values of B_xx' theta_x'. That is at least the smallest
and at most the largest entry of the row of B, which one product with the channel gives, whatever the true shares are:
the interval is moved out by as much. No maximum of the likelihood is needed, and nothing grows with the domain.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import Progress
from hubbub.estimators import Estimate
from hubbub.intervals.local_shares import grouped, has_neighbours, solved_rows
from hubbub.intervals.result import Band
from hubbub.intervals.set_intervals import ADDED_USERS, EVEN_PART, normal_quantile
from hubbub.intervals.standard_errors import TOO_MANY_VALUES, StandardErrors
from hubbub.reports import Reports, Singles

FROM_WINDOWS = "unbiased linear estimates, each from the outputs around its value"
WINDOWS_NOTE = f"From {FROM_WINDOWS}."


class WindowIntervals(NamedTuple):
    """The ends of the intervals, of the values at some positions."""

    low: Floats
    high: Floats


def windows_apply(reports: Reports) -> bool:
    """Whether all users sent one output, a value of the domain, and values have neighbours."""
    domain, block = reports.domain, reports.blocks[0]
    return (
        len(reports.blocks) == 1
        and reports.survey is None
        and isinstance(block, Singles)
        and block.mechanism.answers_in_domain
        and domain.among is None
        and has_neighbours(domain)
    )


def window_band(
    reports: Reports, positions: Positions, level: float, shown: Estimate
) -> Generator[Progress, None, Band | None]:
    """Return the intervals of some values around an estimate; None if windows do not apply."""
    shares, size = shown.probabilities, len(reports.domain)
    base = (1.0 - EVEN_PART) * shares + EVEN_PART / size
    found = yield from window_intervals(reports, positions, base, ADDED_USERS, normal_quantile(level))
    if found is None:
        return None
    low, high, unknown = (np.full(size, np.nan) for _ in range(3))
    low[positions], high[positions] = found
    band = Band.around(
        reports.domain,
        shares,
        (low, high),
        level=level,
        simultaneous=False,
        note=WINDOWS_NOTE,
        likeliest=unknown,
        errors=StandardErrors.missing(positions.size, TOO_MANY_VALUES),
    )
    band.leave_with(shown)
    return band


def window_intervals(
    reports: Reports, positions: Positions, reference: Floats, added_users: float, deviations: float
) -> Generator[Progress, None, WindowIntervals | None]:
    """Return intervals of so many standard deviations; None if windows do not apply, or do not determine a value."""
    domain, block = reports.domain, reports.blocks[0]
    if not windows_apply(reports) or not isinstance(block, Singles):
        return None
    users, mechanism = float(reports.users), block.mechanism
    every = np.arange(len(domain))  # the codes of the outputs are positions of values
    channel = mechanism.encoded_channel(every, None)
    scale = np.exp(channel.log_scale)
    counts = np.bincount(block.codes, block.weights, minlength=every.size)
    noise = (counts + added_users * channel.forward(reference) * scale) / users**2
    low, high = np.empty(positions.size), np.empty(positions.size)
    done = 0
    for places, window in grouped(domain, positions):
        yield Progress(done, positions.size, "intervals of the largest shares")
        own = positions[places]
        chances = np.exp(mechanism.log_columns(window, window)).T
        rows = solved_rows(chances, np.searchsorted(window, own))
        if rows is None:
            return None
        for place, value, row in zip(places.tolist(), own.tolist(), rows, strict=True):
            spread = np.zeros(every.size)
            spread[window] = row
            bias = channel.backward(spread * scale)
            bias[value] -= 1.0
            share = float(row @ counts[window]) / users
            variance = float(row**2 @ noise[window]) - share**2 / users
            reach = deviations * np.sqrt(max(0.0, variance))
            middle = min(1.0, max(0.0, share))
            low[place] = max(0.0, middle - reach - max(0.0, float(bias.max())))
            high[place] = min(1.0, middle + reach - min(0.0, float(bias.min())))
        done += places.size
    return WindowIntervals(low, high)
