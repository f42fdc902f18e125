"""The exponential mechanism over a metric domain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from hubbub.channels import (
    Channel,
    ConvolutionChannel,
    DecayChannel,
    DecayLine,
    LatticeWindow,
    prefers_matrix,
    reindexed,
)
from hubbub.channels.convolution import shift_invariant_channel
from hubbub.client import EPSILON_SHRINK, probability_width
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.domains import Domain, Grid
from hubbub.mechanisms.base import InDomainMechanism, check_table
from hubbub.mechanisms.exact_decay import decays_between
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.mechanisms.parameters import DOMAIN_REMEDY, check_domain, check_epsilon, check_exact
from hubbub.sampling import TableLaw


@dataclass(frozen=True)
class Exponential(InDomainMechanism):
    """Outputs in the domain, less likely the further they are.

    With d the distance of the domain::

        P(z | x) = exp(-epsilon d(x, z) / 2) / sum over z' of exp(-epsilon d(x, z') / 2)

    The halved exponent pays for the normalisation, which depends on x. Guarantee: epsilon times the
    distance d(x, x') for any two values.

    Parameters
    ----------
    domain
        The values, which are also the outputs: any domain; between categories the distance is 1.
    epsilon
        Epsilon per unit of distance, positive: smaller is more private.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, or epsilon is not between 1e-12 and 500.

    Examples
    --------
    >>> import hubbub as hb
    >>> hb.Exponential(hb.Grid(3, 2, cell=1.0), epsilon=2.0).matrix()[0].round(3)
    array([0.45 , 0.166, 0.061, 0.166, 0.109, 0.048])
    """

    domain: Domain
    epsilon: float
    metric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_domain(self.domain, Domain, "Exponential", DOMAIN_REMEDY)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon, "Exponential"))

    @cached_property
    def _log_norms(self) -> Floats:
        """The log of each value's sum; by structure where the distances would be too many."""
        from scipy.special import logsumexp

        domain, rate, places, grid = self.domain, self.epsilon / 2, self.domain.places, self.domain.grid
        if places is not None and not prefers_matrix(len(domain) ** 2):
            from hubbub.channels.compiled_loops import decayed_sums

            up, on = decayed_sums(np.ones((1, len(domain))), np.exp(-rate * np.diff(places)))
            return np.asarray(np.log(up[0] + on[0] - 1.0))
        if grid is not None and not prefers_matrix(len(domain) ** 2):
            every = np.arange(len(domain))
            alike = ConvolutionChannel(self._lattice(grid, every, every, None), np.zeros(every.size), self._no_columns)
            return np.log(alike.forward(np.ones(every.size)))
        return np.asarray(logsumexp(-rate * domain.distances(), axis=1))

    @cached_property
    def law(self) -> TableLaw:
        """A row of whole numbers for each value; its own output takes what rounding leaves."""
        size = len(self.domain)
        check_table(self, size, size)
        nearest, farthest = self.domain.least_distance, self.domain.diameter
        check_exact(self.epsilon * nearest, self.epsilon / 2 * farthest, "Exponential")
        width = probability_width(self.epsilon / 2 * self.domain.diameter + math.log(size))
        decays = decays_between(self.domain, Fraction(self.epsilon) * EPSILON_SHRINK / 2, width + 64)

        def row(own: int) -> list[int]:
            weights = decays(own)
            inverse = (1 << (width + 64 + 320)) // sum(
                weights
            )  # 320 digits of it: a product is far quicker than dividing
            shares = [weight * inverse >> (64 + 320) for weight in weights]
            shares[own] += (1 << width) - sum(shares)
            return shares

        return TableLaw(size, size, width, row)

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """-epsilon d / 2 less the log of the row's normalisation."""
        values = np.arange(len(self.domain)) if among is None else among
        return -self.epsilon / 2 * self.domain.distances_between(values, codes) - self._log_norms[values][:, None]

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return a decay along a line, or a convolution on a grid, where a matrix would be large."""
        places, grid = self.domain.places, self.domain.grid
        if not self.is_large(codes, among) or (places is None and grid is None):
            return super().encoded_channel(codes, among)
        values = np.arange(len(self.domain)) if among is None else among
        log_rows = -self._log_norms[values]
        if grid is not None:
            return self._convolution(grid, codes, values, log_rows)

        def log_columns(patterns: Positions) -> Floats:
            return self.log_columns(codes[patterns], among)

        assert places is not None  # noqa: S101  # as was just checked
        flat = np.zeros(codes.size)
        line = DecayLine(places[values], places[codes], self.epsilon / 2, flat, flat, flat, log_rows)
        return DecayChannel(line, log_columns)

    def _convolution(self, grid: Grid, codes: Codes, values: Positions, log_rows: Floats) -> Channel:
        from scipy.spatial import cKDTree

        distinct, back = index_codes(codes)
        distance, nearest = cKDTree(grid.coordinates[values]).query(grid.coordinates[distinct])
        channel = shift_invariant_channel(
            values.size,
            -self.epsilon / 2 * distance + log_rows[nearest],
            lambda _: float(grid.columns) * grid.rows,
            lambda some: self._lattice(grid, values, distinct[some], log_rows),
            lambda some: self.log_columns(distinct[some], values),
        )
        return reindexed(channel, back)

    @staticmethod
    def _no_columns(patterns: Positions) -> Floats:  # noqa: ARG004
        raise AssertionError("a sum over all values is never too small for floats")

    def _lattice(self, grid: Grid, values: Positions, codes: Codes, log_rows: Floats | None) -> LatticeWindow:
        width, height = grid.sides
        apart = np.hypot(np.arange(grid.columns)[:, None] * width, np.arange(grid.rows)[None, :] * height)
        return LatticeWindow(
            columns=grid.columns,
            rows=grid.rows,
            log_table=-self.epsilon / 2 * apart,
            edges=False,
            values=grid.labels[values],
            cells=grid.labels[codes],
            owners=None,
            patterns=codes.size,
            log_rows=log_rows,
        )
