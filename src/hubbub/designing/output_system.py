"""Newton's equations for mechanisms, output by output.

The program is min sum_z c_z' v_z over columns v_z >= 0 with slacks s_z = G v_z >= 0 (`privacy_edges`) and sum_z v_z =
1. Its dual has a price lambda_x for each row, multipliers f_z >= 0 for the edges and reduced costs t_z >= 0 for the
entries:

    max sum_x lambda_x     where     c_z - lambda - G' f_z = t_z >= 0,  f_z >= 0.

A step of an interior point that changes the products f s and v t by aims, linearised, is for each output

    H_z dv_z = dlambda + h_z,    H_z = G' diag(f_z / s_z) G + diag(t_z / v_z),
    h_z = G' (aim_s / s_z) + aim_v / v_z - r_z,

r_z = c_z - lambda - G' f_z - t_z being what the dual equation lacks. Only the row sums couple the outputs:

    (sum_z H_z^-1) dlambda = (1 - sum_z v_z) - sum_z H_z^-1 h_z.

So an iteration factorises one k x k matrix for each output and one for all, instead of a system of km unknowns. Each
H_z is a symmetric M-matrix (a graph's Laplacian, weighted and rescaled), for which Cholesky's method is accurate.

**Chosen edges.** At a vertex of the program k - 1 edges with equality, a forest, determine an output's column; on a
map they are short ones and some that lead away from the output's best place. All others would shorten steps and cost
time. So each output has multipliers for its own choice of edges: the shortest, those of its best place, and every
edge whose slack has come near to 0. The other edges limit the steps, so all iterates keep all bounds; that their
multipliers are 0 leaves the dual feasible. The choice only grows, and the optimum is the one of all edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from hubbub.core.arrays import Floats
from hubbub.designing.privacy_edges import PrivacyEdges

RELATIVE_RIDGES = (1e-14, 1e-13, 1e-12, 1e-10, 1e-8)  # of the diagonal, tried in turn if rounding spoils it
Choice = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

NEAR_SLACK = 0.3  # of e^(b/2) v_y: edges with less slack are chosen
ENTERING_SHARE = 0.5  # of a reduced cost, that multipliers of newly chosen edges may take
WATCHED_STEP = 0.8  # of the way to the border of an edge that is not chosen: it must not get there before it is


class OutputStep(NamedTuple):
    """A direction in the unknowns of an output."""

    column: Floats
    slacks: Floats
    multipliers: Floats
    reduced_costs: Floats

    def plus(self, other: OutputStep) -> OutputStep:
        """Return the sum of two directions."""
        return OutputStep(*(own + others for own, others in zip(self, other, strict=True)))


class Aims(NamedTuple):
    """By how much the products f s and v t of an output should change."""

    slacks: Floats
    column: Floats


class OutputSystem:
    """The unknowns of an output, and the Newton system at them."""

    def __init__(self, edges: PrivacyEdges, chosen: Choice, costs: Floats, column: Floats, product: float) -> None:
        """Start at `column`, strictly inside K, with all products f s and v t equal to `product`."""
        self._all = edges
        self._chosen = chosen | _near(edges, edges.slacks(column), column)
        self.costs = costs
        self.column = column
        self._choose()
        self.multipliers: Floats = product / self.slacks
        self.reduced_costs: Floats = product / column
        self._weights: Floats
        self._barriers: Floats
        self._lacking: Floats
        self._partial: Floats
        self._factor: Floats

    def used(self) -> Floats:
        """Return c - G' f: what lambda and t share."""
        return self.costs - self.edges.gather(self.multipliers)

    def products(self) -> float:
        """Return the sum of f s and v t."""
        return float(np.vdot(self.multipliers, self.slacks) + np.vdot(self.column, self.reduced_costs))

    def prepare(self, prices: Floats) -> Floats:
        """Factorise H at the present unknowns, and return the lower triangle of its inverse."""
        from scipy.linalg.lapack import dpotri

        self._lacking = self.used() - prices - self.reduced_costs
        self._weights = self.multipliers / self.slacks
        self._barriers = self.reduced_costs / self.column
        self._factor = self._factorised(self.edges.gather_squares(self._weights) + self._barriers)
        return np.asarray(dpotri(self._factor, lower=1)[0])

    def begin_step(self, aims: Aims | None, *, with_residual: bool) -> Floats:
        """Return H^-1 h; without `aims`, those are minus the products themselves: the affine direction."""
        if aims is None:
            right = -self.edges.gather(self.multipliers) - self.reduced_costs
        else:
            right = self.edges.gather(aims.slacks / self.slacks) + aims.column / self.column
        self._partial = self._solve(right - self._lacking if with_residual else right)
        return self._partial

    def end_step(self, aims: Aims | None, change: Floats) -> OutputStep:
        """Return the direction that belongs to a change of the prices."""
        column = self._partial + self._solve(change)
        slacks = self.edges.slacks(column)
        if aims is None:
            multipliers = -self.multipliers - self._weights * slacks
            reduced = -self.reduced_costs - self._barriers * column
        else:
            multipliers = aims.slacks / self.slacks - self._weights * slacks
            reduced = aims.column / self.column - self._barriers * column
        return OutputStep(column, slacks, multipliers, reduced)

    def watched_step(self, column_step: Floats) -> float:
        """Return how far the column may go for the edges that are not chosen, at most 1."""
        slacks, changes = self._all.slacks(self.column), self._all.slacks(column_step)
        shares = np.where(self._chosen, 0.0, changes / slacks)
        steepest = float(shares.min(initial=-WATCHED_STEP))
        return -WATCHED_STEP / steepest

    def move(self, step: OutputStep, primal: float, dual: float, product: float) -> None:
        """Follow a direction; edges that have come near are chosen, with `product` for f s."""
        self.column = self.column + primal * step.column
        multipliers = np.zeros(self._chosen.size)
        multipliers[self._chosen] = self.multipliers + dual * step.multipliers
        self.reduced_costs = self.reduced_costs + dual * step.reduced_costs
        slacks = self._all.slacks(self.column)
        near = ~self._chosen & _near(self._all, slacks, self.column)
        if near.any():
            multipliers[near] = self._enter(self._all.part(np.flatnonzero(near)), slacks[near], product)
            self._chosen |= near
            self._choose()
        else:
            self.slacks = slacks[self._chosen]
        self.multipliers = multipliers[self._chosen]

    def _enter(self, edges: PrivacyEdges, slacks: Floats, product: float) -> Floats:
        """Return multipliers of newly chosen edges, and change t so that the dual equation lacks no more than before.

        A multiplier takes e^(b/2) f from t at the edge's end: together not more than a share of what is there.
        """
        sharing = np.bincount(edges.seconds, minlength=edges.places)
        available = ENTERING_SHARE * self.reduced_costs / np.maximum(sharing, 1)
        multipliers = np.minimum(product / slacks, available[edges.seconds] / edges.high)
        self.reduced_costs = self.reduced_costs - edges.gather(multipliers)
        return multipliers

    def _choose(self) -> None:
        """Take up the chosen edges: their operator, and their cells in a matrix stored by columns."""
        edges = self._all.part(np.flatnonzero(self._chosen))
        self.edges = edges
        self.slacks = edges.slacks(self.column)
        self._down = np.flatnonzero(edges.firsts > edges.seconds)
        self._up = np.flatnonzero(edges.firsts < edges.seconds)
        self._down_cells = edges.seconds[self._down] * edges.places + edges.firsts[self._down]
        self._up_cells = edges.firsts[self._up] * edges.places + edges.seconds[self._up]

    def _factorised(self, diagonal: Floats) -> Floats:
        from scipy.linalg.lapack import dpotrf

        size = diagonal.size
        for ridge in RELATIVE_RIDGES:
            matrix = np.zeros(size * size)
            matrix[self._down_cells] = -self._weights[self._down]
            matrix[self._up_cells] -= self._weights[self._up]
            matrix[:: size + 1] = diagonal * (1.0 + ridge)
            factor, failed = dpotrf(matrix.reshape((size, size), order="F"), lower=1, clean=0, overwrite_a=1)
            if not failed:
                return np.asarray(factor)
        raise LinAlgError("the system of an output is not positive definite")

    def _solve(self, right: Floats) -> Floats:
        from scipy.linalg.lapack import dpotrs

        return np.asarray(dpotrs(self._factor, right, lower=1)[0])


def _near(edges: PrivacyEdges, slacks: Floats, column: Floats) -> Choice:
    """Return the edges with little slack, compared with the side of the bound that is larger."""
    return np.asarray(slacks < NEAR_SLACK * edges.high * column[edges.seconds])
