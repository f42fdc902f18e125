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

Where few reports come from the blanket, each with an atom of e^20, the sum is wide and its details are small: the noise
grows until MAX_PLACES will do. Two quick bounds leave few such sums. Chernoff's, M(theta)^n / (e theta n), says that D
is small enough; any event T, by P(T | x) - e^epsilon P(T | y), that it is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.amplification.pair_laws import PairLaw
from hubbub.core.arrays import Floats

Complexes = NDArray[np.complex128]

NOISE_SHARE = 1e-5  # of the variance: epsilon grows by half of it
NOISE_REACH = 8.5  # standard deviations of the noise's transform that are summed
WIDENINGS = 4096.0, 64.0  # of the noise, at first: a 64th and an eighth of the places, for pairs that are not the worst
MIN_PLACES_LIMIT, MAX_PLACES = 32_768, 131_072  # of the transform: ordinary sums need some 12,000
MAX_TRANSFORM_ENTRIES = 8_388_608  # atoms times places, down to MIN_PLACES_LIMIT of these
MAX_SHORT_PLACES = 4_096
MAX_COARSENINGS = 4
UNIT = float(np.finfo(np.float64).eps)
MAX_LOG_TILT, TILT_STEPS = 60.0, 200
MAX_LOG_SCALE = 600.0  # of floats; a bound that large says nothing
EVENT_ENDS = 48  # of how many likely, and unlikely, outputs an event is about


def stays_within(delta: float, law: PairLaw, users: int, epsilon: float, local: float) -> bool:
    """Whether the divergence is at most delta: as `divergence_bound` says, which is asked where it is not plain.

    The quick bounds fall with users and epsilon, too, and one from below never contradicts one from above.
    """
    total = ReportSum.of(law, users, epsilon, local)
    if total is None or min(total.of_one_report(), total.chernoff_bound()) <= delta:
        return True
    quick = any(total.by_short_transform(widening) <= delta for widening in WIDENINGS)
    return quick or (total.best_event() <= delta and total.by_transform() <= delta)


def divergence_bound(law: PairLaw, users: int, epsilon: float, local: float) -> float:
    """Return an upper bound on the divergence e^epsilon of one person's two values among the reports of `users`.

    `local` is the epsilon of a single report. The bound falls as `users` or `epsilon` rise: both only scale and shrink
    the atoms, since the noise is in proportion to the largest.
    """
    total = ReportSum.of(law, users, epsilon, local)
    return 0.0 if total is None else min(total.by_transform(), total.chernoff_bound(), total.of_one_report())


@dataclass(frozen=True)
class ReportSum:
    """X_1 + ... + X_n: the atoms of X, their probabilities, and the variance of the noise that each X gets."""

    atoms: Floats
    weights: Floats
    users: int
    noise: float

    @classmethod
    def of(cls, law: PairLaw, users: int, epsilon: float, local: float) -> ReportSum | None:
        """Return the sum of a pair of values; None where no output is likelier by e^epsilon."""
        outward = law.rounded_outward()
        atoms = (outward.own - math.exp(epsilon) * outward.other) / outward.blanket
        if epsilon >= local or atoms.max() <= 0.0:
            return None
        largest = math.exp(epsilon) * math.expm1(local - epsilon)
        spread = float(np.sqrt(((law.own - law.other) ** 2 / law.blanket).sum())) / math.expm1(local)
        return cls(atoms, outward.blanket, users, NOISE_SHARE * (spread * largest) ** 2)

    def of_one_report(self) -> float:
        """Return E[X_+], the divergence of a report alone."""
        return float((self.weights * np.maximum(self.atoms, 0.0)).sum()) * (1.0 + 64.0 * UNIT)

    def chernoff_bound(self) -> float:
        """Return the least M(theta)^n / (e theta n): s_+ <= e^(theta s - 1) / theta."""
        tilt = self.tilt
        rises = self.weights * np.expm1(tilt * self.atoms)
        log_scale = self.users * math.log1p(float(rises.sum()))
        lost = 64.0 * UNIT * (abs(log_scale) + self.users * float(np.abs(rises).sum()) + 64.0)
        return math.exp(min(log_scale + lost - 1.0 - math.log(tilt * self.users), 0.0))

    @cached_property
    def tilt(self) -> float:
        """The theta that is best for `chernoff_bound`."""
        return _saddle(self.atoms, self.weights, 0.0, self.users, order=1)

    def best_event(self) -> float:
        """Return the most that an event tells: some report is among the likeliest for x, none among those for y.

        With the outputs A and B of an event, the chance that the others send none of B is (1 - w_B)^(n - 1).
        """
        order = np.argsort(-self.atoms, kind="stable")
        gains, masses = ((self.weights * part)[order] for part in (self.atoms, np.ones_like(self.atoms)))
        positive = int((self.atoms > 0.0).sum())
        likely, unlikely = (_ends(size) for size in (positive, self.atoms.size - positive))
        from_above, from_below = ((_sums(gains), _sums(masses)), (_sums(gains[::-1]), _sums(masses[::-1])))
        gain, mass = (part[likely][:, None] for part in from_above)
        loss, foes = (part[unlikely] for part in from_below)
        without, neither = self._others_avoid(foes), self._others_avoid(mass + foes)
        return float((gain * without + (gains.sum() - gain - loss) * (without - neither)).max())

    def _others_avoid(self, mass: Floats) -> Floats:
        return np.asarray(np.exp((self.users - 1) * np.log1p(-np.minimum(mass, 1.0 - UNIT))))

    def by_short_transform(self, widening: float) -> float:
        """Return the expectation with more noise, where that is quick; 1 elsewhere."""
        lattice = TransformGrid.of(self.atoms, self.weights, self.noise * widening, self.users, self.tilt)
        return lattice.positive_part() / self.users if lattice.places <= MAX_SHORT_PLACES else 1.0

    def by_transform(self) -> float:
        """Return the expectation with noise; 1 where no noise makes it short enough."""
        noise, limit = self.noise, most_places(self.atoms.size)
        for _ in range(MAX_COARSENINGS):
            tilt = _saddle(self.atoms, self.weights, noise, self.users, order=2)
            lattice = TransformGrid.of(self.atoms, self.weights, noise, self.users, tilt)
            if lattice.places <= limit:
                return lattice.positive_part() / self.users
            noise *= 1.1 * (lattice.places / limit) ** 2
        return 1.0


def most_places(atoms: int) -> int:
    """Return how many places of a transform are summed: fewer, if there are many atoms."""
    return min(MAX_PLACES, max(MIN_PLACES_LIMIT, MAX_TRANSFORM_ENTRIES // atoms))


def _ends(size: int) -> list[int]:
    """Return up to EVENT_ENDS numbers from 0 to `size`, with both ends."""
    return sorted({size * place // (EVENT_ENDS - 1) for place in range(EVENT_ENDS)})


def _sums(parts: Floats) -> Floats:
    """Return the sums of the first 0, 1, 2, ... of them."""
    return np.concatenate([[0.0], np.cumsum(parts)])


@dataclass(frozen=True)
class TransformGrid:
    """Where the transform of a sum is added up: 0, step, 2 step, ... places step, along the line at theta = `tilt`."""

    atoms: Floats
    weights: Floats
    noise: float
    users: int
    tilt: float
    step: float
    places: float  # a whole number, or infinite

    @classmethod
    def of(cls, atoms: Floats, weights: Floats, noise: float, users: int, tilt: float) -> TransformGrid:
        """Return the lattice whose period holds the sum, and whose end is where the noise has faded."""
        powers = weights * np.exp(tilt * atoms)
        rise = float((weights * np.expm1(tilt * atoms)).sum())
        mean = float((powers * atoms).sum()) / (1.0 + rise)
        variance = float((powers * (atoms - mean) ** 2).sum()) / (1.0 + rise)
        variance += max(0.0, 1.0 - float(weights.sum())) * mean**2 / (1.0 + rise) + noise
        width = math.sqrt(users * variance)
        reach = tilt * width
        period = width * max(17.0, reach / 2.0 + 38.0 / reach)
        step = 2.0 * math.pi / period
        places = float(np.ceil(NOISE_REACH / math.sqrt(users * noise) / step))
        return cls(atoms, weights, noise, users, tilt, step, places)

    def positive_part(self) -> float:
        """Return an upper bound on E[(S + Z)_+]; as many as there are users where floats lose it."""
        atoms, weights, noise, users, tilt = self.atoms, self.weights, self.noise, self.users, self.tilt
        rises = weights * np.expm1(tilt * atoms)
        rise = float(rises.sum())
        log_scale = users * math.log1p(rise) + users * noise * tilt**2 / 2.0
        if log_scale > MAX_LOG_SCALE:
            return float(users)
        values, errors = self._integrand(rise, log_scale)
        values = values + errors
        total = (2.0 * float(values.sum()) - float(values[0])) * self.step / (2.0 * math.pi)
        last = self.step * self.places
        total += math.exp(-users * noise * last**2 / 2.0) / (math.pi * last)  # beyond the last place, |M| is at most M
        lost = 64.0 * UNIT * (abs(log_scale) + users * float(np.abs(rises).sum()) + 64.0)
        return math.exp(log_scale) * total * (1.0 + lost) if total > 0.0 else float(users)

    def _integrand(self, rise: float, log_scale: float) -> tuple[Floats, Floats]:
        """Return the real part of the integrand, over its value at t = 0 times theta^2, and bounds of its errors."""
        atoms, noise, users, tilt = self.atoms, self.noise, self.users, self.tilt
        powers = self.weights * np.exp(tilt * atoms)
        frequencies = self.step * np.arange(int(self.places) + 1, dtype=np.float64)
        turned = _turned(atoms, powers, self.step, frequencies.size)
        real, imaginary = rise + turned.real, turned.imag  # of M - 1
        log_size = 0.5 * np.log1p(np.maximum(2.0 * real + real**2 + imaginary**2, -1.0 + 1e-300))
        turn = np.arctan2(imaginary, 1.0 + real)
        exponent = users * log_size + users * noise * (tilt**2 - frequencies**2) / 2.0 - log_scale
        squares = tilt**2 + frequencies**2
        # 1 / (theta + i t)^2 turns by minus twice the angle of theta + i t; the noise by n v theta t
        phase = users * turn + users * noise * tilt * frequencies - 2.0 * np.arctan2(frequencies, tilt)
        sizes = np.exp(exponent) / squares
        # of M each term, and its angle, loses some units, and the n-th power n times as much
        size = float((powers * np.abs(atoms)).sum())
        lost = 64.0 * UNIT * (abs(rise) + np.hypot(tilt, frequencies) * size + UNIT)
        fading = users * noise * (tilt**2 - frequencies**2) / 2.0 - log_scale
        of_power = np.exp((users - 1) * np.logaddexp(log_size, np.log(lost)) + np.log(users * lost) + fading) / squares
        of_rest = 64.0 * UNIT * (np.abs(users * log_size) + np.abs(phase) + abs(log_scale) + 8.0) * sizes
        return sizes * np.cos(phase), of_power + of_rest


def _turned(atoms: Floats, powers: Floats, step: float, places: int) -> Complexes:
    """Return the sum of powers times e^(i t atom) - 1 for t = 0, step, ...: a product of few columns and few rows.

    With a the multiples of many steps and b those of few, e^(a + b) - 1 = (e^a - 1)(e^b - 1) + (e^a - 1) + (e^b - 1):
    near t = 0 every term is as small as the sum, and as exact.
    """
    few = math.ceil(math.sqrt(places))
    many = math.ceil(places / few)
    rows = _turns(step * few, many, atoms) * powers
    columns = _turns(step, few, atoms).T
    table = rows @ columns + rows.sum(axis=1)[:, None] + powers @ columns
    return np.asarray(table.ravel()[:places])


def _turns(step: float, count: int, atoms: Floats) -> Complexes:
    """Return e^(i t atom) - 1 for t = 0, step, ..., a row each."""
    halves = np.multiply.outer(step * np.arange(count, dtype=np.float64), atoms / 2.0)
    sines = np.sin(halves)
    return np.asarray(2.0 * sines * (1j * np.cos(halves) - sines))


def _saddle(atoms: Floats, weights: Floats, noise: float, users: int, *, order: int) -> float:
    """Return the theta at which M^n / theta^order is least; any other would be valid, but less exact."""

    def slope(log_tilt: float) -> float:
        tilt = math.exp(log_tilt)
        powers = weights * np.exp(np.minimum(tilt * atoms, 600.0))
        rate = float((powers * atoms).sum()) / (1.0 + float((powers - weights).sum()))
        return users * (rate + noise * tilt) - order / tilt

    low, high = -MAX_LOG_TILT, math.log(600.0 / float(atoms.max()))
    if slope(high) < 0.0:
        return math.exp(high)
    for _ in range(TILT_STEPS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if slope(middle) > 0.0 else (middle, high)
        if high - low < 1e-6:
            break
    return math.exp(low)
