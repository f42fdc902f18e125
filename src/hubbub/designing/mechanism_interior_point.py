"""The interior point for the least service loss: where it starts, and when it stops.

The start is a mechanism strictly inside all bounds, A_xz ~ exp(-share b(x, a_z)) with a_z the place that output z
suits best, whose rows sum to 1; all products of slacks and multipliers are equal there, and only the dual equations
fail. Row sums stay 1 and all bounds are kept from then on, so the loss of every iterate is that of a mechanism, and
`dual_bound` turns its prices into a bound that holds. The difference between the two stops the loop, not change.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import Progress
from hubbub.designing.dual_bound import OutputMultipliers, certified_bound
from hubbub.designing.output_system import OutputSystem
from hubbub.designing.predictor_corrector import iterate_outputs
from hubbub.designing.privacy_edges import PrivacyEdges

START_SHARE = 0.4  # of the bounds that the start uses; from 0.5 on it could touch them
START_SPREAD = 1e-3  # of the start, even over all outputs: no entry is 0
SHORT_EDGES = 4  # of a place, that every output has multipliers for from the start
STALLED_ITERATIONS = 12  # without a better gap, after which rounding allows no more
STALLED_PRODUCTS = 0.1  # of the gap, for the sum of all products: more explains the gap without rounding
MIN_REFERENCE_SHARE = 1e-4  # of the loss of random outputs: the least that gaps are relative to
STEPS = 100  # of progress


class InteriorOutcome(NamedTuple):
    """The last mechanism, and the best lower bound."""

    matrix: Floats
    lower_bound: float
    iterations: int


def interior_point(
    edges: PrivacyEdges, costs: Floats, start: Floats, best_places: Positions, *, tolerance: float, max_iterations: int
) -> Generator[Progress, None, InteriorOutcome]:
    """Yield progress; return a mechanism that keeps the edges' bounds, and a lower bound in the units of `costs`."""
    lowest = costs.min(axis=1)
    scale = float((costs - lowest[:, None]).max()) or 1.0
    outputs, prices = _start(edges, (costs - lowest[:, None]) / scale, start, best_places)
    bound, smallest, first, waited, iteration, done = -math.inf, math.inf, 0.0, 0, 0, 0
    while True:
        matrix = np.stack([output.column for output in outputs], axis=1)
        loss = float(np.vdot(costs, matrix))
        proofs = (
            OutputMultipliers(cost, output.edges, output.multipliers * scale)
            for cost, output in zip(costs.T, outputs, strict=True)
        )
        bound = max(bound, certified_bound(prices * scale + lowest, proofs))
        gap = relative_gap(loss, bound, costs)
        explained = scale * sum(output.products() for output in outputs) > STALLED_PRODUCTS * (loss - bound)
        waited = 0 if explained or loss - bound < 0.9 * smallest else waited + 1
        smallest, first = min(smallest, loss - bound), first or gap
        done = max(done, _progress(first, gap, tolerance))
        yield Progress(done, STEPS, f"optimal mechanism: the loss is within {gap:.1g} of the least")
        if gap <= tolerance or waited >= STALLED_ITERATIONS or iteration >= max_iterations:
            break
        try:
            with np.errstate(all="ignore"):  # a step that overflows is not taken
                prices = iterate_outputs(outputs, prices, 1.0 - matrix.sum(axis=1))
        except (LinAlgError, ValueError):  # rounding has spoiled the system
            break
        iteration += 1
    return InteriorOutcome(matrix, bound, iteration)


def relative_gap(loss: float, lower_bound: float, costs: Floats) -> float:
    """Return the gap as a share of the loss, or of a small part of the loss of random outputs where that is more.

    With large epsilons the least loss is so much smaller than that of random outputs (1e-20 of it, say) that digits
    of its own are lost in rounding, and would not matter.
    """
    random = float(costs.mean(axis=1).sum())
    reference = max(abs(loss), MIN_REFERENCE_SHARE * abs(random))
    return max(loss - lower_bound, 0.0) / reference if reference else 0.0


def starting_mechanism(bounds: Floats, best_places: Positions) -> Floats:
    """Return a mechanism strictly inside the bounds; output z is most likely at place `best_places[z]`."""
    weights = np.exp(-START_SHARE * bounds[:, best_places])
    shares = weights / weights.sum(axis=1, keepdims=True)
    start: Floats = (1.0 - START_SPREAD) * shares + START_SPREAD / best_places.size
    return start


def _start(
    edges: PrivacyEdges, costs: Floats, start: Floats, best_places: Positions
) -> tuple[list[OutputSystem], Floats]:
    """Return the outputs with equal products, as large as the loss has to be distributed, and prices that fit best."""
    short = _short_edges(edges)
    entries = (np.count_nonzero(short) + edges.places) * start.shape[1]
    product = float(np.vdot(costs, start)) / entries
    outputs = []
    for output, place in enumerate(best_places):
        chosen = short | (edges.firsts == place) | (edges.seconds == place)
        outputs.append(OutputSystem(edges, chosen, costs[:, output].copy(), start[:, output].copy(), product))
    prices = np.mean([output.used() - output.reduced_costs for output in outputs], axis=0)
    return outputs, prices


def _short_edges(edges: PrivacyEdges) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return which edges are among the shortest of the place where they begin."""
    order = np.lexsort((edges.lengths, edges.firsts))
    begins = np.searchsorted(edges.firsts[order], np.arange(edges.places))
    short = np.zeros(edges.firsts.size, dtype=bool)
    short[order] = np.arange(order.size) - begins[edges.firsts[order]] < SHORT_EDGES
    return short


def _progress(first: float, gap: float, tolerance: float) -> int:
    """Return how many of the steps are done: digits of the gap are closed at an even pace."""
    if gap <= tolerance:
        return STEPS
    if not first > gap > 0.0 or first <= tolerance:
        return 0
    return int(STEPS * math.log(first / gap) / math.log(first / max(tolerance, 1e-16)))
