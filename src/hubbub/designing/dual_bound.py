"""A lower bound of the least service loss that holds whatever a solver did, rounding included.

Let c_xz be the costs (prior times loss), lambda_x any prices of the rows and f any non-negative multipliers of the
edges x -> y, v_x <= e^(b_xy) v_y. For every mechanism A with columns v_z in K and rows that sum to 1,

    sum_xz c_xz A_xz = sum_x lambda_x + sum_z (c_z - lambda)' v_z
                     = sum_x lambda_x + sum_z (c_z - lambda - G' f_z)' v_z + sum_z f_z' G v_z,

and G v_z >= 0, v_z >= 0. So sum_x lambda_x is a lower bound as soon as t_z = c_z - lambda - G' f_z >= 0 for all
outputs z: the f_z prove that no column of K has a negative price. Where a t_xz is negative, lambda_x is lowered by as
much, which changes t at place x alone. The bound that remains is

    sum_x (lambda_x + min(0, min_z t_xz)).

Edges that were left out of G only make K larger and the bound lower; each output may leave out others. Each t is
lowered by what rounding can have added: at most (number of terms + 8 + longest log-bound) units times the sum of the
terms' magnitudes, the longest log-bound because the relative error of e^(b/2) grows with b.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.designing.privacy_edges import PrivacyEdges

UNIT = float(np.finfo(np.float64).eps)  # twice the rounding of one operation


class OutputMultipliers(NamedTuple):
    """The costs of an output, the edges that its proof uses, and their multipliers, which are not negative."""

    costs: Floats
    edges: PrivacyEdges
    multipliers: Floats


def certified_bound(prices: Floats, outputs: Iterable[OutputMultipliers]) -> float:
    """Return a lower bound of the loss from prices of the rows and the multipliers of all outputs."""
    lowest = np.zeros_like(prices)
    for costs, edges, multipliers in outputs:
        most = np.bincount(edges.firsts, minlength=1).max() + np.bincount(edges.seconds, minlength=1).max()
        terms = float(most) + 8.0 + float(edges.lengths.max(initial=0.0))
        magnitudes = np.abs(costs) + np.abs(prices) + edges.gather_magnitudes(multipliers)
        certain = costs - prices - edges.gather(multipliers) - UNIT * terms * magnitudes
        lowest = np.minimum(lowest, certain)
    lowered = prices + lowest
    return float(lowered.sum() - UNIT * lowered.size * np.abs(lowered).sum())
