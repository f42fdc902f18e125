"""Latent classes: everybody belongs to one of a few classes, within which attributes are independent.

    theta = sum over r of  pi_r  phi_r1 (x) ... (x) phi_rd

a table of low rank. Classes and shares are found by EM. Its updates are steps of length 1 of a flow as in `em_path`,
here of the logarithms of pi and phi. There are several maxima: EM starts several times, at random, and each weighting
keeps its best. Where combinations are impossible, the model is that of the others, and EM expects users there as if
they had been left out of the reports (Dempster, Laird and Rubin, 1977, section 4.2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.channels import Channel
from hubbub.core.arrays import Floats
from hubbub.domains.product_shape import ProductShape
from hubbub.likelihood import MIN_PLAIN_PROBABILITY
from hubbub.solvers.em_path import MAX_STOP_RATIO, MIN_FLOW_UPDATES, flowed

START_DEVIATION = 0.5  # of the logarithms at the random starts
MIN_FACTOR = 1e-30  # of a class or of one of its shares, below which it is as good as none
LOST = 1e-9  # nats per user: a step that makes reports less likely by more has overshot


@dataclass(frozen=True, eq=False)
class LatentClasses:
    """So many classes over a product; a state is a row: the sizes of the classes, then their shares by attribute."""

    shape: ProductShape
    classes: int

    @property
    def parameters(self) -> int:
        """The number of free parameters."""
        return self.classes * (sum(self.shape.sides) - len(self.shape.sides) + 1) - 1

    def starts(self, count: int, rng: np.random.Generator) -> Floats:
        """Return random states near independent, even attributes."""
        sizes = [self.classes, *(self.classes * side for side in self.shape.sides)]
        return self._normal(np.exp(START_DEVIATION * rng.standard_normal((count, sum(sizes)))))

    def path(
        self, channel: Channel, weights: Floats, starts: Floats, stops: Sequence[int]
    ) -> Iterator[tuple[int, Floats]]:
        """Yield the number of updates and, for each row of `weights`, the likeliest distribution of all starts."""
        count = len(starts)
        shares = np.repeat(weights / weights.sum(axis=1, keepdims=True), count, axis=0)
        states = np.tile(starts, (len(weights), 1))

        def factors(states: Floats) -> Floats:
            return self._updated(channel, shares, states) / np.maximum(states, MIN_PLAIN_PROBABILITY)

        def values(states: Floats) -> Floats:
            """Return the mean log-likelihood of each state."""
            fitted = np.log(np.maximum(channel.forward(self.distributions(states)), MIN_PLAIN_PROBABILITY))
            return np.asarray(np.einsum("bi,bi->b", shares, fitted))

        def advanced(states: Floats, updates: int) -> Floats:
            """Return states after as many updates: by the flow, or where that is lost, one by one.

            The flow may overshoot: with several classes the likelihood is not concave.
            """
            with np.errstate(over="ignore", invalid="ignore"):
                further = self._normal(flowed(factors, states, updates))
                lost = ~(values(further) >= values(states) - LOST)  # also what is not a number
            if lost.any():
                further[lost] = states[lost]
                for _ in range(updates):
                    further[lost] = self._updated(channel, shares[lost], further[lost])
            return further

        updates = 0
        for stop in stops:
            while updates < min(stop, MIN_FLOW_UPDATES):
                states = self._updated(channel, shares, states)
                updates += 1
            while updates < stop:
                further = min(stop - updates, math.ceil((MAX_STOP_RATIO - 1.0) * updates))
                states = advanced(states, further)
                updates += further
            thetas = self.distributions(states)
            found = values(states).reshape(len(weights), count)
            best = np.arange(len(weights)) * count + found.argmax(axis=1)
            yield updates, thetas[best]

    def distributions(self, states: Floats) -> Floats:
        """Return the distributions of some states (rows by values)."""
        rows = self.shape.unboxed(self._by_class(states).sum(axis=1))
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))

    def _updated(self, channel: Channel, shares: Floats, states: Floats) -> Floats:
        """Return states after one update of EM."""
        by_class = self._by_class(states)
        theta = self.shape.unboxed(by_class.sum(axis=1))
        theta = theta / theta.sum(axis=1, keepdims=True)
        ratio = channel.backward(shares / np.maximum(channel.forward(theta), MIN_PLAIN_PROBABILITY))
        expected = by_class * self.shape.boxed(ratio, empty=1.0)[:, None]
        parts = [expected.reshape(len(states), self.classes, -1).sum(axis=2)]
        axes = range(2, expected.ndim)
        for axis in axes:
            own = expected.sum(axis=tuple(other for other in axes if other != axis))
            parts.append(own.reshape(len(states), -1))
        return self._normal(np.concatenate(parts, axis=1))

    def _by_class(self, states: Floats) -> Floats:
        """Return the share of each cell of the box that belongs to each class (rows by classes by sides)."""
        sizes, *factors = self._parts(states)
        product = sizes.reshape(len(states), self.classes, 1)
        for factor in factors:
            product = (product[..., None] * factor[:, :, None, :]).reshape(len(states), self.classes, -1)
        return product.reshape(len(states), self.classes, *self.shape.sides)

    def _parts(self, states: Floats) -> list[Floats]:
        """Return the sizes of the classes, and for each attribute the shares in each class."""
        sizes = [self.classes, *(self.classes * side for side in self.shape.sides)]
        first, *others = np.split(states, np.cumsum(sizes)[:-1], axis=1)
        sides = self.shape.sides
        return [first, *(own.reshape(-1, self.classes, side) for own, side in zip(others, sides, strict=True))]

    def _normal(self, states: Floats) -> Floats:
        """Return states with sums of 1: of the sizes, and of each class's shares."""
        parts = [np.maximum(part, MIN_FACTOR) for part in self._parts(states)]
        return np.concatenate(
            [(part / part.sum(axis=-1, keepdims=True)).reshape(len(states), -1) for part in parts], axis=1
        )
