r"""An upper bound on what shuffled reports tell: the hockey-stick divergence of a pair law under a blanket.

Each of n people sends a report. Whatever the others' values are, each of their reports comes with probability w_z from
the blanket, and otherwise from a law of its own. An observer who is even told which ones do not come from the blanket
sees the one person's report among those that do. With :math:`X = (P(z|x) - e^\varepsilon P(z|y)) / w_z` with
probability w_z, and X = 0 otherwise, independent for all n, the divergence of x from y is (Balle et al. 2019) ::

    D = E[(X_1 + ... + X_n)_+] / n,

and the reports are (epsilon, delta)-private if D <= delta for all pairs. The expectation is of a convex function of a
sum. So whatever spreads X without changing its mean makes D larger: a thinner blanket, atoms that are moved apart, and
noise Z of mean 0. Adding a little normal noise to each X therefore gives an upper bound, whose transform fades away::

    E[(S + Z)_+] = 1/(2 pi) * integral over t of M(s)^n e^(n v s^2 / 2) / s^2,   s = theta + i t,  M(s) = E[e^(s X)],

for any theta > 0, v being the variance of the noise. A sum over a lattice of t is the integral plus
e^(theta c) E[(S + Z - c)_+] at multiples c of the period, which are positive: it is an upper bound, too. What is left
out beyond the last t, and what floats may have lost, is added. Nothing depends on n but the width of the sum, so any
number of users will do.
"""

from __future__ import annotations

import math

import numpy as np

from hubbub.amplification.pair_laws import PairLaw
from hubbub.core.arrays import Floats

NOISE_SHARE = 1e-5  # of the variance: epsilon grows by half of it
NOISE_REACH = 8.5  # standard deviations of the noise's transform that are summed
MAX_CHUNK_ENTRIES = 2_000_000  # atoms times places of the transform
UNIT = float(np.finfo(np.float64).eps)
MAX_LOG_TILT, TILT_STEPS = 60.0, 200


def divergence_bound(law: PairLaw, users: int, epsilon: float, local: float) -> float:
    """Return an upper bound on the divergence e^epsilon of one person's two values among the reports of `users`.

    `local` is the epsilon of a single report. The bound falls as `users` or `epsilon` rise: both only scale and shrink
    the atoms, since the noise is in proportion to the largest.
    """
    outward = law.rounded_outward()
    odds, most = math.exp(epsilon), math.exp(local)
    atoms = (outward.own - odds * outward.other) / outward.blanket
    largest = most - odds
    if largest <= 0.0 or atoms.max() <= 0.0:
        return 0.0
    spread = float(np.sqrt(((law.own - law.other) ** 2 / law.blanket).sum())) / (most - 1.0)
    noise = NOISE_SHARE * (spread * largest) ** 2
    return _positive_part(atoms, outward.blanket, noise, users)


def _positive_part(atoms: Floats, weights: Floats, noise: float, users: int) -> float:
    tilt = _saddle(atoms, weights, noise, users)
    powers = weights * np.exp(tilt * atoms)
    rise = float((weights * np.expm1(tilt * atoms)).sum())
    mean = float((powers * atoms).sum()) / (1.0 + rise)
    variance = float((powers * (atoms - mean) ** 2).sum()) / (1.0 + rise)
    variance += max(0.0, 1.0 - float(weights.sum())) * mean**2 / (1.0 + rise) + noise
    width = math.sqrt(users * variance)
    reach = tilt * width
    period = width * max(17.0, reach / 2.0 + 38.0 / reach)
    step = 2.0 * math.pi / period
    places = math.ceil(NOISE_REACH / math.sqrt(users * noise) / step)
    log_scale = users * math.log1p(rise) + users * noise * tilt**2 / 2.0
    total = 0.0
    chunk = max(1, MAX_CHUNK_ENTRIES // atoms.size)
    for first in range(0, places + 1, chunk):
        frequencies = step * np.arange(first, min(first + chunk, places + 1), dtype=np.float64)
        values, errors = _transform(atoms, powers, rise, tilt, frequencies, noise, users, log_scale)
        values = values + errors
        total += 2.0 * float(values.sum()) - (float(values[0]) if first == 0 else 0.0)
    last = step * places
    total *= step / (2.0 * math.pi)
    total += math.exp(-users * noise * last**2 / 2.0) / (math.pi * last)  # beyond the last place, |M| is at most M
    lost = 64.0 * UNIT * (abs(log_scale) + users * float((weights * np.abs(np.expm1(tilt * atoms))).sum()) + 64.0)
    return math.exp(log_scale - math.log(users)) * total * (1.0 + lost) if total > 0.0 else 1.0


def _saddle(atoms: Floats, weights: Floats, noise: float, users: int) -> float:
    """Return the theta at which the integrand at t = 0 is least; any other would be valid, but less exact."""

    def slope(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        powers = weights * np.exp(np.minimum(tilt * atoms, 600.0))
        rate = float((powers * atoms).sum()) / (1.0 + float((powers - weights).sum()))
        return users * (rate + noise * tilt) - 2.0 / tilt

    low, high = -MAX_LOG_TILT, math.log(600.0 / float(atoms.max()))
    if slope(high) < 0.0:
        return math.exp(high)
    for _ in range(TILT_STEPS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if slope(middle) > 0.0 else (middle, high)
        if high - low < 1e-6:
            break
    return math.exp(low)


def _transform(
    atoms: Floats,
    powers: Floats,
    rise: float,
    tilt: float,
    frequencies: Floats,
    noise: float,
    users: int,
    log_scale: float,
) -> tuple[Floats, Floats]:
    """Return the real part of the integrand, over its value at t = 0 times theta^2, and bounds of its errors."""
    angles = np.multiply.outer(frequencies, atoms)
    sines, cosines = np.sin(angles / 2.0), np.cos(angles / 2.0)
    real = rise - 2.0 * (sines**2 @ powers)  # of M - 1
    imaginary = 2.0 * ((sines * cosines) @ powers)
    log_size = 0.5 * np.log1p(np.maximum(2.0 * real + real**2 + imaginary**2, -1.0 + 1e-300))
    turn = np.arctan2(imaginary, 1.0 + real)
    exponent = users * log_size + users * noise * (tilt**2 - frequencies**2) / 2.0 - log_scale
    squares = tilt**2 + frequencies**2
    # 1 / (theta + i t)^2 turns by minus twice the angle of theta + i t; the noise by n v theta t
    phase = users * turn + users * noise * tilt * frequencies - 2.0 * np.arctan2(frequencies, tilt)
    sizes = np.exp(exponent) / squares
    # of M each term loses some units, and its n-th power n times as much
    size = float((powers * np.abs(atoms)).sum())
    lost = 16.0 * UNIT * (abs(rise) + np.minimum(np.hypot(tilt, frequencies) * size, 2.0 * float(powers.sum())) + UNIT)
    fading = users * noise * (tilt**2 - frequencies**2) / 2.0 - log_scale
    of_power = np.exp((users - 1) * np.logaddexp(log_size, np.log(lost)) + np.log(users * lost) + fading) / squares
    of_rest = 64.0 * UNIT * (np.abs(users * log_size) + np.abs(phase) + abs(log_scale) + 8.0) * sizes
    return sizes * np.cos(phase), of_power + of_rest
