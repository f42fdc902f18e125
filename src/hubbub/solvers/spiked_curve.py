"""A smooth curve with spikes: penalised likelihood of a smooth distribution plus point masses at single values.

    theta = (1 - sum_j m_j) p + sum_j m_j delta(x_j),     p = softmax(z B),

with a Gaussian penalty on the coordinates z of the curve and none on the masses m: a spike is added only where it
raises the penalised log-likelihood by more than a given number of nats, besides the logarithm of by how much it
multiplies the ways to choose values for the spikes (of 100 values, log 100 for the first and log 96/5 for the fifth),
and removed where it has become worth less than half of that. A spike that is not worth several times as much must also
have a clear place: where it might as well be at another value, it stands for a steep part of the truth rather than for
a single value. Several spikes close together would be a narrow bump, which a curve describes better: spikes keep a
distance. A few rows of B describe the curve, so that all linear systems are small.

With f = theta G and weights n_i, mass at x in place of mass of the curve changes the fitted f, relative to itself, by
a_x = (g_x - p G) / f. Let J be the same changes for z and m, H = J diag(n) J' plus the penalty's precision (Gauss and
Newton's matrix), c_x = J diag(n) a_x and r_x = H^-1 c_x. While all else reacts, a new spike of mass t at x gains

    S_x t - E_x t^2 / 2,     S_x = sum_i n_i a_xi,     E_x = sum_i n_i a_xi^2 - c_x' r_x:

at most S_x^2 / (2 E_x). What the curve can explain by itself is not worth a spike. With h the entry of H^-1 of the mass
m_j, giving that spike up loses m_j^2 / (2 h), and putting one at x in its place gains

    (S_x + r_xj m_j / h)^2 / (2 (E_x + r_xj^2 / h)) - m_j^2 / (2 h).

These formulas only propose: what counts is the penalised log-likelihood after the proposal was fitted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel
from hubbub.core.arrays import Floats
from hubbub.likelihood import MIN_PLAIN_PROBABILITY

MAX_ROUNDS = 100  # of adding, moving or removing a spike
MAX_STEPS = 30  # of Newton's method
MIN_STEP_GAIN_NATS = 3e-3  # below which a step is not worth making
MIN_RISE, SHRINK_FACTOR, MAX_SHRINKS = 1e-4, 0.4, 20  # of the line search
MAX_LOG_CHANGE = 4.0  # of the curve, in one step
MAX_MASS_CHANGE = 0.9  # of a spike's or the curve's mass, that one step may take away
MIN_SEPARATION = 5.0  # spacings between spikes: ages are rounded to multiples of 5
MIN_MOVE_GAIN_NATS = 0.1  # by which a spike must be better at another value to be moved
MIN_LOSS_ELSEWHERE_NATS = 2.0  # of a spike at any other value, for its place to be clear
# Relative to the gain that a new spike must have:
PROPOSED_FROM, REMOVED_BELOW = 0.5, 0.5  # the gain from which it is tried, the worth below which it goes
STRONG_FROM = 3.0  # the worth from which a spike stays even if its place is not clear
MAX_NEW_MASS = 0.5  # of the curve's, with which a spike starts
RELATIVE_RIDGE = 1e-10  # of the diagonal
START_PENALTY = 1e-4  # of the squared distances to where the search starts
MIN_EFFECT = 1e-6  # of a spike's information, that the curve must leave for it to be proposed


@dataclass(frozen=True, eq=False)
class CurveBasis:
    """The curves u = z B on a line: `rows` (coordinates by values), and the penalty's precision of each coordinate."""

    rows: Floats
    precision: Floats
    along: Floats  # the places of the values on the line, in spacings

    def coordinates(self, u: Floats, weights: Floats) -> Floats:
        """Return z of the curve nearest to u up to a constant, where values count by `weights` (they sum to 1).

        A little of the penalty makes it unique.
        """
        rows = self.rows - (self.rows @ weights)[:, None]
        weighted = rows * weights
        matrix = weighted @ rows.T + np.diag(RELATIVE_RIDGE + START_PENALTY * self.precision)
        return np.asarray(np.linalg.solve(matrix, weighted @ (u - u @ weights)))


@dataclass(frozen=True, eq=False)
class SpikedCurve:
    """A curve with spikes, and what follows from it for one weighting."""

    z: Floats
    places: tuple[int, ...]  # positions of the spikes
    masses: Floats
    curve: Floats  # p
    fitted_curve: Floats  # p G
    fitted: Floats  # f
    value: float  # the penalised log-likelihood

    @property
    def theta(self) -> Floats:
        """The distribution."""
        theta = (1.0 - self.masses.sum()) * self.curve
        theta[list(self.places)] += self.masses  # places are distinct
        return np.asarray(theta / theta.sum())


@dataclass(frozen=True, eq=False)
class _Surroundings:
    """What changes of z and of the masses do at a point, to second order."""

    relative_changes: Floats  # J
    slope: Floats
    inverse: Floats  # H^-1


@dataclass(frozen=True, eq=False)
class _Proposals:
    """What spikes would gain, to second order: arrays over values, and over values by spikes."""

    scores: Floats  # S
    left: Floats  # E: the information about a spike that the reactions of all else leave
    reactions: Floats  # r, of the masses of the spikes there are (values by spikes)
    variances: Floats  # h, of the masses
    masses: Floats
    is_near: NDArray[np.bool_]  # whether a value is too near to a spike for another one (values by spikes)
    is_own: NDArray[np.bool_]  # whether a value is that of a spike (values by spikes)

    @property
    def gains(self) -> Floats:
        """The gain of one more spike at each value; 0 near other spikes."""
        gains = np.maximum(self.scores, 0.0) ** 2 / (2.0 * self.left)
        return np.asarray(np.where(self.is_near.any(axis=1), 0.0, gains))

    @property
    def losses(self) -> Floats:
        """The loss of giving up each spike."""
        return np.asarray(self.masses**2 / (2.0 * self.variances))

    @property
    def gains_of_moves(self) -> Floats:
        """The gain of moving each spike to each value (values by spikes); that of giving it up near the others."""
        scores = self.scores[:, None] + self.reactions * (self.masses / self.variances)
        left = self.left[:, None] + self.reactions**2 / self.variances
        is_near_others = self.is_near.sum(axis=1)[:, None] > self.is_near
        gains = np.where(is_near_others | self.is_own, 0.0, np.maximum(scores, 0.0) ** 2 / (2.0 * left))
        return np.asarray(gains - self.losses)


_Fit = tuple[SpikedCurve, _Surroundings]


class SpikedLikelihood:
    """The penalised log-likelihood of one weighting of the patterns."""

    def __init__(self, channel: Channel, weights: Floats, basis: CurveBasis) -> None:
        self._channel, self._weights, self._basis = channel, weights, basis
        self._spike_rows: dict[int, Floats] = {}  # of the channel

    def fit(self, start: Floats, min_gain: float) -> SpikedCurve:
        """Return the curve with spikes near the curve `start` (its z); a spike must gain `min_gain` nats and more.

        Spikes are added one at a time, the best first; after each, those that it made useless or that are better
        elsewhere are removed or moved. In the end, spikes that might as well be elsewhere are given up.
        """
        point, around = self._climb(self._at(start, (), np.zeros(0)))
        adds = True
        for _ in range(MAX_ROUNDS):
            needed = min_gain + self._choice_nats(len(point.places))
            proposals = self._proposals(point, around)
            changed = self._without_useless(point, proposals, needed) or self._moved(point, proposals)
            if changed is None and adds:
                changed = self._with_spike(point, proposals, needed)
            if changed is None:
                adds = False
                changed = self._without_unclear(point, proposals, needed)
            if changed is None:
                break
            point, around = changed
        return point

    def _choice_nats(self, count: int) -> float:
        """Return the logarithm of by how much one more spike multiplies the ways to choose their values."""
        return max(0.0, math.log((self._channel.values - count) / (count + 1.0)))

    def _at(self, z: Floats, places: tuple[int, ...], masses: Floats) -> SpikedCurve:
        u = z @ self._basis.rows
        curve = np.exp(u - u.max())
        curve /= curve.sum()
        fitted_curve = self._channel.forward(curve)
        fitted = (1.0 - masses.sum()) * fitted_curve
        for place, mass in zip(places, masses, strict=True):
            fitted += mass * self._row(place)
        np.maximum(fitted, MIN_PLAIN_PROBABILITY, out=fitted)
        value = float(self._weights @ np.log(fitted) - 0.5 * self._basis.precision @ z**2)
        return SpikedCurve(z, places, masses, curve, fitted_curve, fitted, value)

    def _row(self, place: int) -> Floats:
        if place not in self._spike_rows:
            self._spike_rows[place] = self._channel.rows(np.array([place]))[0]
        return self._spike_rows[place]

    def _around(self, point: SpikedCurve) -> _Surroundings:
        rows, precision = self._basis.rows, self._basis.precision
        directions = (1.0 - point.masses.sum()) * point.curve * (rows - (rows @ point.curve)[:, None])
        spikes = [self._row(place) - point.fitted_curve for place in point.places]
        changes = np.concatenate([self._channel.forward(directions), *(row[None] for row in spikes)]) / point.fitted
        penalty = np.concatenate([precision, np.zeros(len(spikes))])
        matrix = (changes * self._weights) @ changes.T
        diagonal = np.diag_indices_from(matrix)
        matrix[diagonal] += penalty + RELATIVE_RIDGE * (1.0 + matrix[diagonal])
        slope = changes @ self._weights
        slope[: point.z.size] -= precision * point.z
        return _Surroundings(changes, slope, np.asarray(np.linalg.inv(matrix), dtype=np.float64))

    def _climb(self, point: SpikedCurve) -> tuple[SpikedCurve, _Surroundings]:
        """Make Newton's steps for the curve and the masses; the spikes stay where they are."""
        around = self._around(point)
        for _ in range(MAX_STEPS):
            step = around.inverse @ around.slope
            gain = float(around.slope @ step)
            higher = self._along(point, step, gain) if gain > MIN_STEP_GAIN_NATS else None
            if higher is None:
                break
            point, around = higher, self._around(higher)
        return point, around

    def _along(self, point: SpikedCurve, step: Floats, gain: float) -> SpikedCurve | None:
        """Return a higher point along a step, or None."""
        of_curve, of_masses = step[: point.z.size], step[point.z.size :]
        moved = of_curve @ self._basis.rows
        length = min(1.0, MAX_LOG_CHANGE / max(float(np.ptp(moved)), MIN_PLAIN_PROBABILITY))
        shares = np.append(point.masses, 1.0 - point.masses.sum())
        losses = np.append(-of_masses, of_masses.sum())
        losing = losses > 0.0
        length = min(length, float((MAX_MASS_CHANGE * shares[losing] / losses[losing]).min(initial=1.0)))
        for _ in range(MAX_SHRINKS):
            trial = self._at(point.z + length * of_curve, point.places, point.masses + length * of_masses)
            if trial.value >= point.value + MIN_RISE * length * gain:
                return trial
            length *= SHRINK_FACTOR
        return None

    def _proposals(self, point: SpikedCurve, around: _Surroundings) -> _Proposals:
        relative = self._weights / point.fitted
        of_curve = relative * point.fitted_curve
        scores = self._channel.backward(relative) - of_curve.sum()
        squares = self._channel.squares(relative / point.fitted) - 2.0 * self._channel.backward(of_curve / point.fitted)
        squares += float(of_curve @ (point.fitted_curve / point.fitted))
        shared = self._channel.backward(around.relative_changes * relative).T  # c, values by coordinates
        shared -= around.relative_changes @ of_curve
        reactions = shared @ around.inverse
        left = squares - np.einsum("xk,xk->x", shared, reactions)
        left = np.where(left > MIN_EFFECT * squares, left, np.inf)
        count, along, places = point.z.size, self._basis.along, np.array(point.places, dtype=np.int64)
        return _Proposals(
            scores,
            left,
            reactions[:, count:],
            around.inverse.diagonal()[count:],
            point.masses,
            is_near=np.abs(along[:, None] - along[places]) < MIN_SEPARATION,
            is_own=np.arange(along.size)[:, None] == places,
        )

    def _with_spike(self, point: SpikedCurve, proposals: _Proposals, min_gain: float) -> _Fit | None:
        """Return the fit with one more spike where it gains most, or None if it does not gain enough."""
        gains = proposals.gains
        place = int(np.argmax(gains))
        if gains[place] < PROPOSED_FROM * min_gain:
            return None
        mass = min(proposals.scores[place] / proposals.left[place], MAX_NEW_MASS * (1.0 - point.masses.sum()))
        more = self._climb(self._at(point.z, (*point.places, place), np.append(point.masses, mass)))
        return more if more[0].value > point.value + min_gain else None

    def _moved(self, point: SpikedCurve, proposals: _Proposals) -> _Fit | None:
        """Return the fit after the best move of a spike to another value, or None if none is better elsewhere."""
        gains = proposals.gains_of_moves
        if gains.max(initial=-np.inf) <= MIN_MOVE_GAIN_NATS:
            return None
        place, spike = (int(number) for number in np.unravel_index(int(np.argmax(gains)), gains.shape))
        places = (*point.places[:spike], place, *point.places[spike + 1 :])
        moved = self._climb(self._at(point.z, places, point.masses))
        return moved if moved[0].value > point.value + MIN_MOVE_GAIN_NATS else None

    def _without_useless(self, point: SpikedCurve, proposals: _Proposals, min_gain: float) -> _Fit | None:
        """Return the fit without the spike of least use if that is little, or None."""
        if not point.places:
            return None
        spike = int(np.argmin(proposals.losses))
        if proposals.losses[spike] >= REMOVED_BELOW * min_gain:
            return None
        fewer = self._without(point, spike)
        return fewer if fewer[0].value > point.value - REMOVED_BELOW * min_gain else None

    def _without_unclear(self, point: SpikedCurve, proposals: _Proposals, min_gain: float) -> _Fit | None:
        """Return the fit without the spike that might most easily be elsewhere, or None if all are clear or strong."""
        elsewhere = proposals.gains_of_moves.max(axis=0, initial=-np.inf)
        elsewhere[proposals.losses >= STRONG_FROM * min_gain] = -np.inf
        if elsewhere.max(initial=-np.inf) < -MIN_LOSS_ELSEWHERE_NATS:
            return None
        return self._without(point, int(np.argmax(elsewhere)))

    def _without(self, point: SpikedCurve, spike: int) -> _Fit:
        left = point.places[:spike] + point.places[spike + 1 :]
        return self._climb(self._at(point.z, left, np.delete(point.masses, spike)))
