"""The best mechanism under a policy: columns are added as long as one improves the goal.

Each round solves for the weights of the columns at hand, which gives prices, and looks for columns that gain at these
prices. What the best of all columns could gain is the certificate (see `column_pricing`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress, map_steps
from hubbub.designing.column_costs import ColumnCost
from hubbub.designing.column_pricing import ColumnPrices, distinct_columns, price_columns
from hubbub.designing.few_outputs import exact_weights
from hubbub.designing.gain_bound import bound_gain
from hubbub.designing.information_goals import InformationGoal
from hubbub.designing.master_program import Weights, best_linear_weights, best_weights, start_weights
from hubbub.designing.privacy_policy import PrivacyPolicy
from hubbub.designing.ray_families import MAX_LOG_RATIO, rays_of

MAX_ROUNDS = 60
TOLERANCE = 1e-3  # relative: what is left to gain when the search ends
BOUND_ACCURACY = 1e-4  # relative to the value: of the bound on what columns gain that were not compared
DROPPED = 1e-5  # of the largest weight: columns that are left out of the next round
STARTS, STARTS_OF_POLYTOPE = 200, 30  # random directions that a search begins with
JOINING = 1e-3  # of the largest weight, with which a new column joins
START_GAIN = 0.1  # relative: what is left to gain before anything is known
CONFIRMING = 3  # times as many starts in the search that confirms that nothing gains
TELLS = 100  # steps of progress

Result = TypeVar("Result")
Kept = Callable[[Floats, Floats], None]  # told of columns and weights after each round


@dataclass(frozen=True, eq=False)
class OptimalColumns:
    """Columns with weights, the goal's value, and a bound of the optimum from below.

    `bound` is minus infinity where nothing is proven; `complete` if all columns were compared.
    """

    columns: Floats
    weights: Floats
    value: float
    bound: float
    complete: bool
    rounds: int
    price: Floats | None = None


@dataclass(frozen=True, eq=False)
class DesignProgram:
    """What is asked for: a convex goal, or costs that add up, with a budget for a second cost."""

    policy: PrivacyPolicy
    centre: Floats
    goal: InformationGoal | None = None
    cost: ColumnCost | None = None  # the goal where `goal` is None, else what the budget limits
    budget: float = np.inf


def optimal_columns(
    program: DesignProgram, start: Floats, generator: np.random.Generator, *, kept: Kept = lambda *_: None
) -> Generator[Progress, None, OptimalColumns]:
    """Return the best columns that are found, starting with those given (in the cone, with sums of 1 possible)."""
    rays = rays_of(program.policy)
    starts = STARTS_OF_POLYTOPE if rays.count is None else STARTS
    # Raised to a level, columns stay in the cone, and have logarithms.
    start = np.maximum(start, np.exp(-MAX_LOG_RATIO) * start.max(axis=1, keepdims=True))
    columns = _representatives(program, start / start.mean(axis=1, keepdims=True))
    weights = _start(program, columns)
    found, gained, first_gain, confirmed = None, START_GAIN, START_GAIN, False

    def told(steps: Generator[Progress, None, Result]) -> Generator[Progress, None, Result]:
        """Tell how far the whole search is, by the logarithm of what is left to gain."""
        left = np.log(max(gained, TOLERANCE) / TOLERANCE) / np.log(first_gain / TOLERANCE)
        done = min(int(TELLS * (1 - left)), TELLS - 1)
        return map_steps(steps, lambda step: Progress(done, TELLS, step.what))

    for number in range(MAX_ROUNDS):
        yield from told(_one_step("weighing the columns" if found is None else _gap_text(found)))
        solved = _solve(program, columns, weights, gained)
        pool = columns
        columns, weights = _heavy(program, columns, solved.weights)
        if program.goal is not None:
            # A linear program's prices depend on columns that have no weight: without them, rounds could repeat.
            pool = columns
        value, slope, prices = _prices(program, columns, weights, solved)
        priced = yield from told(price_columns(rays, prices, columns, generator, starts=starts))
        spent = solved.budget * program.budget if solved.budget else 0.0
        # What the goal is at least, where no column gains: the tangent at the weights, with the multipliers.
        base = value - (slope - float(solved.sums.sum()) + spent)
        largest = max(priced.largest_gain, 0.0)
        bound = base - largest if priced.complete else -np.inf
        found = OptimalColumns(columns, weights, value, bound, priced.complete, number + 1, prices.information)
        kept(columns, weights)
        gained = max(value - base + largest, largest) / abs(value)
        first_gain = max(first_gain, gained)
        if gained <= TOLERANCE and not priced.complete and not confirmed and number < MAX_ROUNDS - 1:
            confirmed, starts = True, CONFIRMING * starts  # a search that finds nothing may have had no luck
        elif gained <= TOLERANCE or number == MAX_ROUNDS - 1:
            if not priced.complete:
                most = yield from told(bound_gain(program.policy, prices, BOUND_ACCURACY * abs(value)))
                found = replace(found, bound=base - max(most, largest))
            break
        fresh = priced.columns[prices.gains(priced.columns) > 0]
        joined = distinct_columns(np.vstack([pool, _representatives(program, fresh)]))
        weights = np.append(weights, np.full(len(joined) - len(columns), JOINING * weights.max()))
        columns = joined
    assert found is not None  # noqa: S101  # the loop runs at least once
    return found


def _start(program: DesignProgram, columns: Floats) -> Floats:
    limited = program.goal is not None and program.cost is not None
    costs = program.cost.costs(columns) if limited and program.cost is not None else None
    shared = columns if program.goal is None else program.goal.images(columns).mean(axis=0)
    weights = start_weights(shared, costs, program.budget)
    if weights is None:
        raise ArithmeticError("the first columns cannot be a mechanism within the budget")
    return weights


def _representatives(program: DesignProgram, columns: Floats) -> Floats:
    """Return one column for each set of images: the last of them in the order of their entries."""
    if program.goal is None or len(program.goal.permutations) == 1:
        return distinct_columns(columns)
    images = np.round(np.log(program.goal.images(columns)), 7)
    last = [max(range(len(images)), key=lambda image: tuple(images[image, place])) for place in range(len(columns))]
    return distinct_columns(program.goal.images(columns)[last, np.arange(len(columns))])


def _solve(program: DesignProgram, columns: Floats, weights: Floats, gained: float) -> Weights:
    costs = None if program.cost is None else program.cost.costs(columns)
    if program.goal is None:
        assert costs is not None  # noqa: S101  # one of the two is given
        return best_linear_weights(columns, costs)
    # While much is left to gain elsewhere, these columns need not be weighed to the last digit.
    tolerance = max(TOLERANCE / 5, 0.1 * min(gained, 0.1))
    barrier, budget = min(0.1, gained), program.budget
    return best_weights(
        program.goal, columns, weights, tolerance=tolerance, barrier=barrier, costs=costs, budget=budget
    )


def _prices(
    program: DesignProgram, columns: Floats, weights: Floats, solved: Weights
) -> tuple[float, float, ColumnPrices]:
    """Return the goal's value, its slope along the weights, and the prices of columns."""
    if program.goal is None:
        assert program.cost is not None  # noqa: S101  # one of the two is given
        value = float(program.cost.costs(columns) @ weights)
        return value, value, ColumnPrices(solved.sums, None, program.centre, 1.0, program.cost)
    here = program.goal.derivatives(program.goal.features(columns), weights)
    cost = program.cost if solved.budget else None
    prices = ColumnPrices(solved.sums, here.price, program.centre, solved.budget, cost)
    return here.value, float(here.gradient @ weights), prices


def _heavy(program: DesignProgram, columns: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the columns with weight, repaired so that their sums are 1 again; light ones, too, if these need them."""
    shared = columns if program.goal is None else program.goal.images(columns).mean(axis=0)
    for dropped in (DROPPED, 0.0):
        kept = weights > dropped * weights.max()
        repaired = exact_weights(shared[kept], weights[kept])
        if repaired is not None:
            return columns[kept], repaired
    raise ArithmeticError("no weights of the columns have sums of 1")


def _one_step(what: str) -> Generator[Progress, None, None]:
    yield Progress(0, TELLS, what)


def _gap_text(found: OptimalColumns) -> str:
    if not np.isfinite(found.bound):
        return f"{len(found.weights)} columns, value {found.value:.4g}"
    return f"{len(found.weights)} columns, within {found.value / max(found.bound, 1e-300) - 1:.2%} of the optimum"
