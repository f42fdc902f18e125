"""Probability tables of whole numbers, one row for each value, and their largest ratios.

If epsilon is plain, the largest and the smallest entry of each column decide. If it is per unit of distance, every pair
of rows is compared in every column: first by floats with bounded errors and then, where floats cannot decide which rate
is the largest, by the whole numbers themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.auditing.exact_ratios import OutputRatio, largest_ratio
from hubbub.core.arrays import Floats, Positions
from hubbub.core.errors import MechanismError
from hubbub.core.progress import Progress
from hubbub.sampling import PlanarTableLaw

MAX_COMPARISONS = 30_000_000_000  # pairs of values times outputs: about a minute
MAX_EXACT_COMPARISONS = 1_000_000  # that floats leave undecided
MAX_KNOWN_LOGS = 200_000  # logarithms kept at a time: enough for tables of few distinct numbers
CACHED_ROWS = 64
PROGRESS_ROWS = 16  # rows between two steps of progress
LOG_ERROR = 2.0**-50  # relative to 1 and the logarithm: more than Arb's nearest floats and one subtraction lose
DISTANCE_ERROR = 2.0**-46  # relative: more than a float distance and a division lose


@dataclass(frozen=True)
class ProbabilityTable:
    """Rows of whole numbers: row(position) / 2^width has the probabilities of all outputs of one value."""

    values: int
    outputs: int
    width: int
    row: Callable[[int], Sequence[int]]
    output_text: Callable[[int], str]


def largest_plain_ratio(table: ProbabilityTable) -> Generator[Progress, None, OutputRatio]:
    """Return the largest ratio within a column, or the first output that only some values can have."""
    lows, highs = list(table.row(0)), list(table.row(0))
    low_at, high_at = [0] * table.outputs, [0] * table.outputs
    for position in range(1, table.values):
        if position % PROGRESS_ROWS == 0:
            yield Progress(position, table.values, "comparing all values")
        for output, weight in enumerate(table.row(position)):
            if weight < lows[output]:
                lows[output], low_at[output] = weight, position
            if weight > highs[output]:
                highs[output], high_at[output] = weight, position
    ratios = []
    for output, (low, high) in enumerate(zip(lows, highs, strict=True)):
        if high and not low:
            return OutputRatio(high_at[output], low_at[output], table.output_text(output), 1, 0)
        if high:
            other = low_at[output] if low != high else 1
            ratios.append(OutputRatio(high_at[output], other, table.output_text(output), high, low))
    return largest_ratio(ratios)


def largest_metric_ratios(
    table: ProbabilityTable,
    others: Callable[[int], Positions],
    distances: Callable[[int, Positions], Floats],
    squared_distance: Callable[[int, int], Fraction],
) -> Generator[Progress, None, list[OutputRatio]]:
    """Return the ratios that may have the largest rate; floats with bounded errors prove all others smaller.

    Each value is compared with those at positions `others(value)`, in all outputs. `distances` gives floats,
    `squared_distance` the exact squares.
    """
    logs = yield from _log_probabilities(table)
    possible = np.isfinite(logs)
    mixed = possible.any(axis=0) & ~possible.all(axis=0)
    if mixed.any():
        output = int(np.argmax(mixed))
        can_send = possible[:, output]
        value, other = int(np.argmax(can_send)), int(np.argmin(can_send))
        return [OutputRatio(value, other, table.output_text(output), 1, 0, squared_distance(value, other))]
    used = np.flatnonzero(possible.all(axis=0))
    logs = np.ascontiguousarray(logs[:, used])
    error = 2 * LOG_ERROR * (1 + float(np.abs(logs).max()))
    undecided = yield from _undecided_comparisons(logs, error, others, distances)
    return _exact_ratios(table, undecided, used, squared_distance)


def _log_probabilities(table: ProbabilityTable) -> Generator[Progress, None, Floats]:
    """Return the logarithms of all probabilities, each within `LOG_ERROR` of the nearest float."""
    from flint import arb, ctx

    logs = np.empty((table.values, table.outputs))
    known: dict[int, float] = {0: -np.inf}
    for position in range(table.values):
        if position % PROGRESS_ROWS == 0:
            yield Progress(position, table.values, "taking logarithms")
        with ctx.workprec(128):
            scale = arb(1 << table.width)
            row = table.row(position)
            for weight in row:
                if weight not in known:
                    known[weight] = float((arb(weight) / scale).log().mid())
            logs[position] = [known[weight] for weight in row]
        if len(known) > MAX_KNOWN_LOGS:
            known = {0: -np.inf}
    return logs


def _undecided_comparisons(
    logs: Floats, error: float, others: Callable[[int], Positions], distances: Callable[[int, Positions], Floats]
) -> Generator[Progress, None, list[tuple[int, int, Positions]]]:
    """Return the comparisons (value, other, outputs) whose rate may be the largest."""
    values = logs.shape[0]
    best = 0.0
    bounds: list[tuple[Positions, Floats, Floats]] = []  # other values, their distances, upper bounds of their rates
    for value in range(values):
        if value % PROGRESS_ROWS == 0:
            yield Progress(value, values, "comparing all pairs")
        against = others(value)
        if against.size == 0:
            bounds.append((against, np.empty(0), np.empty(0)))
            continue
        apart = distances(value, against)
        largest = (logs[value] - logs[against]).max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            high = np.where(apart > 0, (largest + error) / apart * (1 + DISTANCE_ERROR), np.inf)
            low = np.where(apart > 0, (largest - error) / apart * (1 - DISTANCE_ERROR), -np.inf)
        best = max(best, float(low.max()))
        bounds.append((against, apart, high))
    undecided, count = [], 0
    for value, (against, apart, high) in enumerate(bounds):
        for index in np.flatnonzero(high >= best):
            other = int(against[index])
            least = best * apart[index] * (1 - DISTANCE_ERROR) - error
            outputs = np.flatnonzero(logs[value] - logs[other] >= least)
            count += outputs.size
            if outputs.size:
                undecided.append((value, other, outputs))
            check_undecided(count)
    return undecided


def check_undecided(count: int) -> None:
    """Refuse to compare so many ratios exactly that it would take too long."""
    if count > MAX_EXACT_COMPARISONS:
        raise MechanismError(
            "too many ratios are almost equal",
            where="audit(mechanism)",
            got=f"at least {count:,} comparisons that floats cannot decide",
            expected="ratios that differ in their first 15 digits",
            remedy="audit a domain with fewer values, or a larger epsilon",
        )


def _exact_ratios(
    table: ProbabilityTable,
    undecided: list[tuple[int, int, Positions]],
    used: Positions,
    squared_distance: Callable[[int, int], Fraction],
) -> list[OutputRatio]:
    """Return the exact ratios of these comparisons, each ratio at each distance once."""
    row = lru_cache(CACHED_ROWS)(table.row)
    ratios: dict[tuple[int, int, Fraction], OutputRatio] = {}
    for value, other, outputs in undecided:
        squared, first, second = squared_distance(value, other), row(value), row(other)
        for output in used[outputs].tolist():
            key = first[output], second[output], squared
            if key not in ratios:
                ratios[key] = OutputRatio(value, other, table.output_text(output), *key)
    return list(ratios.values())


def clipped_table(law: PlanarTableLaw, output_text: Callable[[int], str]) -> ProbabilityTable:
    """Return the probabilities of noise on a map that is clipped and remapped."""
    columns, rows = law.shape
    across, along = np.arange(-columns, columns + 1), np.arange(-rows, rows + 1)
    displacements = np.stack(np.meshgrid(across, along, indexing="ij"), axis=-1).reshape(-1, 2)
    quarter = np.array(law.quarter, dtype=object)
    weights = quarter[np.abs(displacements[:, 0]), np.abs(displacements[:, 1])]
    values = len(law.steps)

    @lru_cache(2 * CACHED_ROWS)
    def row(position: int) -> list[int]:
        codes = np.asarray(law.remap(np.clip(law.steps[position] + displacements, *law.window)))
        order = np.argsort(codes, kind="stable")
        distinct, starts = np.unique(codes[order], return_index=True)
        sums = [0] * values
        for code, total in zip(distinct.tolist(), np.add.reduceat(weights[order], starts).tolist(), strict=True):
            sums[code] = total
        return sums

    return ProbabilityTable(values, values, law.width, row, output_text)
