"""From columns with weights to those of a mechanism: no more than it needs, and within bounds after rounding."""

from __future__ import annotations

import numpy as np

from hubbub.core.arrays import Floats, frozen
from hubbub.designing.column_generation import OptimalColumns
from hubbub.designing.design_question import DesignQuestion
from hubbub.designing.few_outputs import eliminated_columns, exact_weights, fewest_columns, merged_columns
from hubbub.designing.information_goals import InformationGoal
from hubbub.designing.master_program import best_weights
from hubbub.designing.symmetries import mirrored

POLISHED = 1e-8  # relative: how near the weights of the last columns come to their best
POLISH_START = 1e-3
AS_GOOD = 1e-4  # relative: a built-in mechanism whose value is so near takes the place of a design
IDLE = 1e-4  # of the largest weight: what the path's last barrier leaves to columns that have no place in the optimum


def whole_columns(question: DesignQuestion, found: OptimalColumns, generator: np.random.Generator) -> Floats:
    """Return the columns of the mechanism with their weights, images included: rows that sum to 1."""
    goal, columns, weights = question.information, found.columns, found.weights
    if goal is not None:
        if question.budget_cost is None:
            columns, weights = _polished(goal, columns, weights)
            columns, weights = fewest_columns(goal, columns, weights, generator)
        columns, weights = mirrored(columns, weights, goal.permutations)
    whole = columns * weights[:, None]
    if question.outputs is not None and len(whole) > question.outputs:
        whole = _few_columns(question, whole, found, question.outputs)
    if goal is not None and question.budget_cost is None:
        whole = _simplest(question, whole)
    scale = whole.mean(axis=1)
    flatter = question.policy.with_room(whole / scale[:, None])
    repaired = exact_weights(flatter, scale)
    if repaired is None:  # fewer columns than values: their sums cannot be repaired one by one
        return frozen(whole)
    return frozen(flatter * repaired[:, None])


def _simplest(question: DesignQuestion, whole: Floats) -> Floats:
    """Return the columns of a built-in mechanism where one is as good and has no more outputs: people know it."""
    limit = question.value_of(whole) * (1 + AS_GOOD)
    as_good = [
        listed
        for listed in question.built_ins.values()
        if len(listed) <= len(whole) and question.value_of(listed) <= limit and question.policy.contains(listed)
    ]
    return min(as_good, key=len, default=whole)


def _polished(goal: InformationGoal, columns: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weights to the last digits, without columns that have no place in the optimum."""
    solved = best_weights(goal, columns, weights, tolerance=POLISHED, barrier=POLISH_START)
    kept = solved.weights > IDLE * solved.weights.max()
    shared = goal.images(columns).mean(axis=0)
    repaired = exact_weights(shared[kept], solved.weights[kept])
    if repaired is None:
        return columns, weights
    before = goal.value(goal.information(goal.features(columns), weights))
    after = goal.value(goal.information(goal.features(columns[kept]), repaired))
    return (columns[kept], repaired) if after <= before else (columns, weights)


def _few_columns(question: DesignQuestion, columns: Floats, found: OptimalColumns, outputs: int) -> Floats:
    """Return at most so many whole columns: the best that leaving out, merging, and built-in mechanisms give."""
    goal, price = question.information, found.price
    assert goal is not None and price is not None  # noqa: S101, PT018  # only goals of information take `outputs`
    scale = columns.mean(axis=1)
    stages = [columns, *eliminated_columns(goal, columns / scale[:, None], scale, outputs)]
    candidates = [merged_columns(stage, question.centre, price, outputs) for stage in stages]
    candidates += [listed for listed in question.built_ins.values() if len(listed) <= outputs]
    return min(candidates, key=question.value_of)
