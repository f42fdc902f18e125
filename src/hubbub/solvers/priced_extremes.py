"""Extremes of a statistic over a large domain: solve on few values, price all of them, add those that matter.

Likely distributions of a large domain have most values at 0. A round finds the extreme over the values that are chosen
(`profile_extremes`), and computes the certificate over all values from the distribution and the price it ended with. If
the limit is as good as over the chosen values, it holds for all; otherwise the values that spoil it join.
"""

from __future__ import annotations

import math

import numpy as np

from hubbub.core.arrays import Floats, Positions
from hubbub.likelihood import Likelihood, Point
from hubbub.solvers.groups import ONE_GROUP, Groups
from hubbub.solvers.newton_systems import system_for
from hubbub.solvers.profile_extremes import MAX_EXPONENT, MAX_RELATIVE_SLACK, ROUNDING, Extreme, Proof, Region, height

MIN_CHOSEN_SHARE = 1e-3  # of an even share, from which on a value takes part from the start
MAX_ROUNDS = 8  # of adding values; then all take part
MAX_FIRST_SHARE = 0.5  # of all values that take part from the start: with more, all do
MAX_CHOSEN_SHARE = 0.7  # of all values, after some have joined
MAX_MISSING_OF_SLACK = (
    1e-3  # of the log-likelihood that the chosen values may lack at the maximum, relative to the slack
)


def region_around(top: Point, groups: Groups = ONE_GROUP) -> Region | PricedRegion:
    """Return the solver that suits the structure of the channel and the number of values with mass."""
    system, priced = system_for(top.likelihood.channel), PricedRegion(top, groups)
    return priced if system.is_dense and priced.pays else Region(top, system, groups)


class PricedRegion:
    """All distributions that are close to the maximum, of which few values have mass."""

    def __init__(self, top: Point, groups: Groups = ONE_GROUP) -> None:
        self.top, self._groups = top, groups
        self._few = np.flatnonzero(top.theta > MIN_CHOSEN_SHARE / top.theta.size)
        self._whole: Region | None = None

    @property
    def pays(self) -> bool:
        """Whether few values have mass at the maximum."""
        return self._few.size <= MAX_FIRST_SHARE * self.top.theta.size

    def least(self, weights: Floats, slack: float) -> Extreme:
        """Return the smallest `weights` @ theta where the mean log-likelihood is at most `slack` below the maximum."""
        lowest, own = float(self._groups.least(weights).sum()), float(weights @ self.top.theta)
        chosen = self._first_chosen(weights)
        for _ in range(MAX_ROUNDS):
            if chosen.size > MAX_CHOSEN_SHARE * weights.size:
                break
            part = _Part(self.top, chosen, self._groups.among(chosen))
            if part.missing > MAX_MISSING_OF_SLACK * slack:
                break
            found = part.region.least(weights[chosen], slack - part.missing)
            theta = part.spread(found.theta)
            if found.proof is None:  # the end of the chosen values' range: of all values' range, too, or no proof
                if float(part.groups.least(weights[chosen]).sum()) == lowest:
                    return found._replace(theta=theta)
                break
            proof = found.proof._replace(theta=part.spread(found.proof.theta))
            limit, prices = self._certificate(weights, proof, slack)
            found = Extreme(max(lowest, limit), found.attained, theta, found.iterations, proof)
            is_tight = found.attained - found.limit <= 2.0 * MAX_RELATIVE_SLACK * (own - found.limit)
            violating = np.flatnonzero(prices < self._groups.spread(part.groups.least(prices[chosen]), prices.size))
            if is_tight or violating.size == 0:
                return found
            chosen = np.union1d(chosen, violating)
        return self._over_all_values().least(weights, slack)

    def _first_chosen(self, weights: Floats) -> Positions:
        """Return the values with mass, and those with the smallest weight of a group unless they are many."""
        is_least = weights == self._groups.spread(self._groups.least(weights), weights.size)
        has_mass = np.zeros(weights.size, dtype=bool)
        has_mass[self._few] = True
        least, massive = (self._groups.sums(which.astype(np.int64)) for which in (is_least, has_mass))
        few_are_least = self._groups.spread((least <= massive).astype(np.float64), weights.size) > 0.0
        return np.flatnonzero(has_mass | (is_least & few_are_least))

    def _certificate(self, weights: Floats, proof: Proof, slack: float) -> tuple[float, Floats]:
        """Return the limit that the proof gives over all values, and what each value contributes to it."""
        point = self.top.likelihood.at(proof.theta)
        prices = weights - proof.price * point.gradient
        rho = math.exp(min(-slack - height(point, self.top), MAX_EXPONENT))
        return float(self._groups.least(prices).sum()) + proof.price * (rho - ROUNDING), prices

    def _over_all_values(self) -> Region:
        if self._whole is None:
            self._whole = Region(self.top, system_for(self.top.likelihood.channel), self._groups)
        return self._whole


class _Part:
    """The likelihood over some values, around the maximum over all of them."""

    def __init__(self, top: Point, chosen: Positions, groups: Groups) -> None:
        likelihood, self.groups = top.likelihood, groups
        channel = likelihood.channel.part(chosen)
        theta = groups.normalised(top.theta[chosen])
        own_top = Likelihood(channel, likelihood.weights, likelihood.users).at(theta)
        self._chosen, self._size = chosen, top.theta.size
        with np.errstate(divide="ignore"):  # inf if some report needs one of the other values
            self.missing = -height(own_top, top)  # of the mean log-likelihood
        self.region = Region(own_top, system_for(channel), groups)

    def spread(self, theta: Floats) -> Floats:
        """Return a distribution over the chosen values as one over all."""
        whole = np.zeros(self._size)
        whole[self._chosen] = theta
        return whole
