"""The path of EM on many weightings of the same patterns: stopped early, EM is smooth.

With u = log theta and D = G (w / f), an update of EM is u + log(D / n): a step of length 1 of Euler's method for the
flow u' = log(D / n). At every u, the derivative of log D in u is minus a stochastic matrix with eigenvalues in [0, 1].
So the flow is never stiffer than that, and between stops that are far apart it can be followed by a method of Runge and
Kutta whose stages are Chebyshev polynomials: s products with the channel go as far as about 2/3 s^2 updates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence

import numpy as np

from hubbub.channels import Channel, DenseChannel
from hubbub.core.arrays import Floats, Positions
from hubbub.likelihood import MIN_PLAIN_PROBABILITY

MAX_DENSE_ENTRIES = 4_000_000  # of a channel that is multiplied out with its smoothing
MIN_FLOW_UPDATES = 30  # that are made one by one at first, while the flow is not yet close to them...
MIN_FLOW_STEP = 5  # ...and between stops this close
MAX_STOP_RATIO = 1.3  # of the updates at a stop to those at the one before: with more, steps of the flow lose digits
MIN_PATH_MOVE = 1e-4  # in total variation
DAMPING = 2.0 / 13.0  # of the Chebyshev polynomials, as in RKC (Sommeijer, Shampine and Verwer, 1998)

MIN_KERNEL_ENTRY = 1e-17  # of a kernel's rows, which sum to 1: smaller ones change no digit
MAX_KERNEL_DENSITY = 0.1  # share of a kernel's entries up to which it is multiplied by them alone

Smoothing = Callable[[Floats], Floats]  # of rows of distributions
MStep = Callable[[Floats, Floats], Floats]  # distributions of a model, and expected shares of users: the next ones


class SmoothedChannel(Channel):
    """A channel after a smoothing of the domain: theta = smooth(phi), and EM is over phi."""

    def __init__(self, channel: Channel, smooth: Smoothing, adjoint: Smoothing, knots: int | None = None) -> None:
        """Keep the parts; phi is over all values, or over fewer `knots` from which these are smoothed."""
        self.values = channel.values if knots is None else knots
        self.patterns, self.log_scale = channel.patterns, channel.log_scale
        self._channel, self._smooth, self._adjoint = channel, smooth, adjoint

    def forward(self, theta: Floats) -> Floats:
        """Return smooth(theta) @ stored."""
        return self._channel.forward(self._smooth(theta))

    def backward(self, ratio: Floats) -> Floats:
        """Return the adjoint smoothing of stored @ ratio."""
        return self._adjoint(self._channel.backward(ratio))

    def squares(self, weights: Floats) -> Floats:
        """Return (smoothed and squared) @ weights."""
        return np.asarray(np.einsum("xi,xi,i->x", self.dense(), self.dense(), weights))

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the smoothed matrix."""
        return self.forward(np.eye(self.values)[positions])


def smoothed_by(channel: Channel, kernel: Floats) -> Channel:
    """Return the channel after theta = phi @ kernel, by the kernel's entries if few matter, else multiplied out."""
    if not isinstance(channel, DenseChannel):
        from scipy import sparse

        entries = sparse.csr_array(np.where(kernel > MIN_KERNEL_ENTRY, kernel, 0.0))
        if entries.nnz <= MAX_KERNEL_DENSITY * kernel.size:
            across = entries.T.tocsr()
            return SmoothedChannel(
                channel, lambda rows: (across @ rows.T).T, lambda rows: (entries @ rows.T).T, len(kernel)
            )
    if channel.entries <= MAX_DENSE_ENTRIES:
        return DenseChannel(kernel @ channel.dense(), channel.log_scale)
    return SmoothedChannel(channel, lambda rows: rows @ kernel, lambda rows: rows @ kernel.T, len(kernel))


def em_path(
    channel: Channel,
    weights: Floats,
    stops: Sequence[int],
    start: Floats | None = None,
    m_step: MStep | None = None,
) -> Generator[tuple[int, Floats], None, None]:
    """Yield the number of updates and the distributions (weightings by values) at each of the increasing `stops`.

    EM starts at the uniform distribution, or at `start` (weightings by values). With `m_step` it stays in a model whose
    logarithms are a linear space, or has a prior: then each update goes to what that makes of the expected shares. The
    derivatives of such updates have eigenvalues in [0, 1], too.

    The path ends where EM has come to rest: at its pace it would not move by MIN_PATH_MOVE up to the last stop.
    """
    theta = np.full((len(weights), channel.values), 1.0 / channel.values) if start is None else start
    shares = weights / weights.sum(axis=1, keepdims=True)

    def factors(theta: Floats) -> Floats:
        """Return D / n, or what the model makes of it."""
        ratio = np.maximum(channel.forward(theta), MIN_PLAIN_PROBABILITY)
        own = channel.backward(np.divide(shares, ratio, out=ratio))
        return own if m_step is None else m_step(theta, theta * own) / np.maximum(theta, MIN_PLAIN_PROBABILITY)

    updates = 0
    for stop in stops:
        before, start = updates, theta
        if updates >= MIN_FLOW_UPDATES and stop - updates >= MIN_FLOW_STEP:
            theta = flowed(factors, theta, stop - updates)
            updates = stop
        while updates < stop:
            theta = theta * factors(theta)
            updates += 1
        # Negative entries and a sum other than 1 are rounding errors, which would build up.
        np.maximum(theta, 0.0, out=theta)
        theta /= theta.sum(axis=1, keepdims=True)
        yield updates, theta
        move = 0.5 * float(np.abs(theta - start).sum(axis=1).max())
        if move * (stops[-1] - stop) < MIN_PATH_MOVE * (stop - before):
            return


def spaced_stops(last: int) -> tuple[int, ...]:
    """Return increasing stops up to the last, so close together that the flow from one to the next is precise."""
    count = 2 + math.ceil(math.log(max(last, 2)) / math.log(MAX_STOP_RATIO))
    return tuple(int(stop) for stop in np.unique(np.geomspace(1, last, count).round()))


def flowed(factors: Callable[[Floats], Floats], theta: Floats, time: float) -> Floats:
    """Return theta after a step of the flow that is as long as `time` updates: RKC, of second order."""
    stages = max(2, math.ceil(math.sqrt(1.0 + 1.54 * time)))
    w0 = 1.0 + DAMPING / stages**2
    chebyshev = np.zeros((3, stages + 1))  # the polynomials at w0, their first and their second derivatives
    chebyshev[:2, 1], chebyshev[0, 0] = (w0, 1.0), 1.0
    for j in range(2, stages + 1):
        chebyshev[:, j] = 2.0 * w0 * chebyshev[:, j - 1] - chebyshev[:, j - 2]
        chebyshev[1, j] += 2.0 * chebyshev[0, j - 1]
        chebyshev[2, j] += 4.0 * chebyshev[1, j - 1]
    w1 = chebyshev[1, -1] / chebyshev[2, -1]
    b = np.empty(stages + 1)
    b[2:] = chebyshev[2, 2:] / chebyshev[1, 2:] ** 2
    b[:2] = b[2]

    def slope(logs: Floats) -> Floats:
        return np.asarray(time * w1 * np.log(np.maximum(factors(np.exp(logs)), MIN_PLAIN_PROBABILITY)))

    start = np.log(np.maximum(theta, MIN_PLAIN_PROBABILITY))
    first = slope(start)
    before, logs = np.zeros_like(start), b[1] * first  # changes since the start
    for j in range(2, stages + 1):
        here = 2.0 * b[j] / b[j - 1]
        pull = slope(start + logs) - (1.0 - b[j - 1] * chebyshev[0, j - 1]) * first
        before, logs = logs, here * (w0 * logs + pull) - b[j] / b[j - 2] * before
    return np.asarray(np.exp(start + logs))
