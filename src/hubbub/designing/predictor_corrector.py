"""One iteration of the interior point for mechanisms: Mehrotra's predictor and corrector, and Gondzio's corrections.

The affine direction aims at products of 0. How far it can be followed says how much the products can shrink now: the
target. The corrector aims at the target, less what the affine direction changes in second order. Corrections then
bring back the products that would be far from the target; they cost two solves for each output, a fraction of a
factorisation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError

from hubbub.core.arrays import Floats
from hubbub.designing.output_system import Aims, OutputStep, OutputSystem

BORDER_FRACTION = 0.995  # of the way to the border that a step may go
LONGEST_STEP = 0.9995
MIN_CENTRING = 0.1  # times the mean product: smaller targets spoil the dual equations before the gap is closed
MAX_CORRECTIONS = 3
LONG_STEP = 0.95  # a step this long needs no correction
CORRECTION_REACH = 0.3  # how much farther a correction aims
MIN_GAIN = 0.03  # of both steps together, for a correction to be taken
MAX_PRODUCT_FACTOR = 10.0  # products within this factor of the target are left alone

Steps = list[OutputStep]


class NewtonSystem(NamedTuple):
    """The systems of all outputs, what the row sums lack, and the factor of the sum of the systems' inverses."""

    outputs: list[OutputSystem]
    missing: Floats
    factor: Floats

    def direction(self, aims: list[Aims] | None, *, with_residual: bool = True) -> tuple[Floats, Steps]:
        """Return the change of the prices and the steps of the outputs; without `aims`, towards products of 0."""
        from scipy.linalg.lapack import dpotrs

        each = aims if aims is not None else [None] * len(self.outputs)
        right = self.missing.copy() if with_residual else np.zeros_like(self.missing)
        for output, aim in zip(self.outputs, each, strict=True):
            right -= output.begin_step(aim, with_residual=with_residual)
        change = np.asarray(dpotrs(self.factor, right, lower=1)[0])
        return change, [output.end_step(aim, change) for output, aim in zip(self.outputs, each, strict=True)]


def iterate_outputs(outputs: list[OutputSystem], prices: Floats, missing: Floats) -> Floats:
    """Move the outputs by one iteration, and return the new prices; `missing` is what the row sums lack to 1."""
    system = _newton_system(outputs, prices, missing)
    entries = sum(output.slacks.size + output.column.size for output in outputs)
    mean = sum(output.products() for output in outputs) / entries

    _, steps = system.direction(None)
    after = _products_after(outputs, steps, *_lengths(outputs, steps)) / entries
    target = max((after / mean) ** 3, MIN_CENTRING) * mean
    aims = [_mehrotra(output, step, target) for output, step in zip(outputs, steps, strict=True)]
    change, steps = system.direction(aims)
    change, steps = _corrected(system, change, steps, target)
    if not np.isfinite(change).all():
        raise LinAlgError("a direction is not finite")

    primal, dual = (min(BORDER_FRACTION * length, LONGEST_STEP) for length in _lengths(outputs, steps))
    primal = min(primal, *(output.watched_step(step.column) for output, step in zip(outputs, steps, strict=True)))
    for output, step in zip(outputs, steps, strict=True):
        output.move(step, primal, dual, target)
    return prices + dual * change


def _newton_system(outputs: list[OutputSystem], prices: Floats, missing: Floats) -> NewtonSystem:
    """Factorise the systems of all outputs, and the one of the row sums."""
    from scipy.linalg.lapack import dpotrf

    total = np.zeros((prices.size, prices.size), order="F")
    for output in outputs:
        total += output.prepare(prices)
    factor, failed = dpotrf(total, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise LinAlgError("the system of the row sums is not positive definite")
    return NewtonSystem(outputs, missing, np.asarray(factor))


def _corrected(system: NewtonSystem, change: Floats, steps: Steps, target: float) -> tuple[Floats, Steps]:
    """Return the direction with corrections, as long as they lengthen its steps."""
    outputs = system.outputs
    primal, dual = _lengths(outputs, steps)
    for _ in range(MAX_CORRECTIONS):
        if min(primal, dual) > LONG_STEP:
            break
        reach = min(1.0, primal + CORRECTION_REACH), min(1.0, dual + CORRECTION_REACH)
        aims = [_gondzio(output, step, target, *reach) for output, step in zip(outputs, steps, strict=True)]
        extra_change, extra = system.direction(aims, with_residual=False)
        longer = [step.plus(more) for step, more in zip(steps, extra, strict=True)]
        new_primal, new_dual = _lengths(outputs, longer)
        if not new_primal + new_dual > primal + dual + MIN_GAIN:
            break
        change, steps, primal, dual = change + extra_change, longer, new_primal, new_dual
    return change, steps


def _mehrotra(output: OutputSystem, step: OutputStep, target: float) -> Aims:
    """Return what brings all products to the target, less what the affine direction changes in second order."""
    return Aims(
        target - output.multipliers * output.slacks - step.slacks * step.multipliers,
        target - output.column * output.reduced_costs - step.column * step.reduced_costs,
    )


def _gondzio(output: OutputSystem, step: OutputStep, target: float, primal: float, dual: float) -> Aims:
    """Return what brings products that would be far from the target back into its range."""

    def correction(first: Floats, first_step: Floats, second: Floats, second_step: Floats) -> Floats:
        products = (first + primal * first_step) * (second + dual * second_step)
        low, high = target / MAX_PRODUCT_FACTOR, target * MAX_PRODUCT_FACTOR
        return np.maximum(np.minimum(np.maximum(products, low), high) - products, -high)

    return Aims(
        correction(output.slacks, step.slacks, output.multipliers, step.multipliers),
        correction(output.column, step.column, output.reduced_costs, step.reduced_costs),
    )


def _lengths(outputs: list[OutputSystem], steps: Steps) -> tuple[float, float]:
    """Return how far the primal and the dual unknowns can follow a direction without becoming negative, at most 1."""
    primal = dual = -1.0
    for output, step in zip(outputs, steps, strict=True):
        primal = min(primal, _steepest(step.slacks, output.slacks), _steepest(step.column, output.column))
        dual = min(
            dual,
            _steepest(step.multipliers, output.multipliers),
            _steepest(step.reduced_costs, output.reduced_costs),
        )
    return -1.0 / primal, -1.0 / dual


def _steepest(step: Floats, value: Floats) -> float:
    """Return the lowest relative change."""
    return float((step / value).min(initial=0.0))


def _products_after(outputs: list[OutputSystem], steps: Steps, primal: float, dual: float) -> float:
    """Return the sum of all products after a step."""
    total = 0.0
    for output, step in zip(outputs, steps, strict=True):
        total += float(np.vdot(output.slacks + primal * step.slacks, output.multipliers + dual * step.multipliers))
        total += float(np.vdot(output.column + primal * step.column, output.reduced_costs + dual * step.reduced_costs))
    return total
