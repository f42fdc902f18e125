"""Tables of whole numbers: a row for each value, all rows over the same power of two.

Where epsilon is plain, the largest and the smallest entry of each column tell all. Where it is per unit of distance,
every pair of rows is compared in every column: first by floats whose errors are bounded, then, where these cannot
tell which rate is the largest, by the whole numbers themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.auditing.exact_ratios import Pair, largest
from hubbub.core.arrays import Floats, Positions
from hubbub.core.errors import MechanismError
from hubbub.core.progress import Progress
from hubbub.sampling import PlanarTableLaw

MOST_COMPARED = 30_000_000_000  # pairs times outputs, about a minute
MOST_CLOSE = 1_000_000  # comparisons that floats leave open
KEPT_ROWS = 64
ROUNDING = 2.0**-50  # relative to 1 and the logarithm: more than Arb's nearest floats and one subtraction lose
DISTANCE = 2.0**-46  # relative: more than a float distance and a division lose


@dataclass(frozen=True)
class ProbabilityTable:
    """Rows of whole numbers: `row(position)` over 2^width."""

    values: int
    outputs: int
    width: int
    row: Callable[[int], Sequence[int]]
    name: Callable[[int], str]  # of an output


def of_columns(table: ProbabilityTable) -> Generator[Progress, None, list[Pair]]:
    """Return the worst pair of each column, or the first output that only some values can give."""
    lows, highs = list(table.row(0)), list(table.row(0))
    low_at, high_at = [0] * table.outputs, [0] * table.outputs
    for position in range(1, table.values):
        if position % 16 == 0:
            yield Progress(position, table.values, "comparing all values")
        for output, weight in enumerate(table.row(position)):
            if weight < lows[output]:
                lows[output], low_at[output] = weight, position
            if weight > highs[output]:
                highs[output], high_at[output] = weight, position
    pairs = []
    for output, (low, high) in enumerate(zip(lows, highs, strict=True)):
        if high and not low:
            return [Pair(high_at[output], low_at[output], table.name(output), 1, 0)]
        if high:
            other = low_at[output] if low != high else 1
            pairs.append(Pair(high_at[output], other, table.name(output), high, low))
    return [largest(pairs)]


def of_pairs(
    table: ProbabilityTable,
    others: Callable[[int], Positions],
    distances: Callable[[int, Positions], Floats],
    squared: Callable[[int, int], Fraction],
) -> Generator[Progress, None, list[Pair]]:
    """Return the pairs among which the largest rate is: all others have a smaller one, proven by bounded floats.

    Each value is compared with those at positions `others(value)`, in all outputs; `distances` are floats, and
    `squared` their exact squares.
    """
    logs = yield from _logs(table)
    possible = np.isfinite(logs)
    mixed = possible.any(axis=0) & ~possible.all(axis=0)
    if mixed.any():
        output = int(np.argmax(mixed))
        reached = possible[:, output]
        value, other = int(np.argmax(reached)), int(np.argmin(reached))
        return [Pair(value, other, table.name(output), 1, 0, squared(value, other))]
    used = np.flatnonzero(possible.all(axis=0))
    logs = np.ascontiguousarray(logs[:, used])
    error = 2 * ROUNDING * (1 + float(np.abs(logs).max()))
    close = yield from _close(logs, error, others, distances)
    return _exactly(table, close, used, squared)


def _logs(table: ProbabilityTable) -> Generator[Progress, None, Floats]:
    """Return the logarithms of all probabilities, each the nearest float but for less than `ROUNDING`."""
    from flint import arb, ctx

    logs = np.empty((table.values, table.outputs))
    known: dict[int, float] = {0: -np.inf}
    for position in range(table.values):
        if position % 16 == 0:
            yield Progress(position, table.values, "taking logarithms")
        with ctx.workprec(128):
            scale = arb(1 << table.width)
            row = table.row(position)
            for weight in row:
                if weight not in known:
                    known[weight] = float((arb(weight) / scale).log().mid())
            logs[position] = [known[weight] for weight in row]
        if len(known) > 200_000:  # enough for tables of few distinct numbers
            known = {0: -np.inf}
    return logs


def _close(
    logs: Floats, error: float, others: Callable[[int], Positions], distances: Callable[[int, Positions], Floats]
) -> Generator[Progress, None, list[tuple[int, int, Positions]]]:
    """Return the comparisons (value, other, outputs) whose rate may be the largest."""
    values = logs.shape[0]
    best = 0.0
    tops: list[tuple[Positions, Floats, Floats]] = []  # others, their distances, and upper bounds of their rates
    for value in range(values):
        if value % 16 == 0:
            yield Progress(value, values, "comparing all pairs")
        against = others(value)
        if against.size == 0:
            tops.append((against, np.empty(0), np.empty(0)))
            continue
        apart = distances(value, against)
        most = (logs[value] - logs[against]).max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            high = np.where(apart > 0, (most + error) / apart * (1 + DISTANCE), np.inf)
            low = np.where(apart > 0, (most - error) / apart * (1 - DISTANCE), -np.inf)
        best = max(best, float(low.max()))
        tops.append((against, apart, high))
    found, count = [], 0
    for value, (against, apart, high) in enumerate(tops):
        for place in np.flatnonzero(high >= best):
            other = int(against[place])
            differences = logs[value] - logs[other]
            least = best * apart[place] * (1 - DISTANCE) - error
            outputs = np.flatnonzero(differences >= least)
            count += outputs.size
            if outputs.size:
                found.append((value, other, outputs))
            if count > MOST_CLOSE:
                raise too_close(count)
    return found


def too_close(count: int) -> MechanismError:
    """Return the error for ratios that would take too long to tell apart."""
    return MechanismError(
        "too many ratios are too close to each other",
        where="audit(mechanism)",
        got=f"more than {count - 1:,} comparisons that floats cannot decide",
        expected="ratios that differ in their first 15 digits",
        remedy="audit a domain with fewer values, or a larger epsilon",
    )


def _exactly(
    table: ProbabilityTable,
    close: list[tuple[int, int, Positions]],
    used: Positions,
    squared: Callable[[int, int], Fraction],
) -> list[Pair]:
    """Return these comparisons with their exact ratios, each ratio at each distance once."""
    row = lru_cache(KEPT_ROWS)(table.row)
    found: dict[tuple[int, int, Fraction], Pair] = {}
    for value, other, outputs in close:
        apart, first, second = squared(value, other), row(value), row(other)
        for output in used[outputs].tolist():
            key = first[output], second[output], apart
            if key not in found:
                found[key] = Pair(value, other, table.name(output), *key)
    return list(found.values())


def of_clipped(law: PlanarTableLaw, name: Callable[[int], str]) -> ProbabilityTable:
    """Return the probabilities of noise on a map that is clipped and remapped."""
    columns, rows = law.shape
    across, along = np.arange(-columns, columns + 1), np.arange(-rows, rows + 1)
    away = np.stack(np.meshgrid(across, along, indexing="ij"), axis=-1).reshape(-1, 2)
    quarter = np.array(law.quarter, dtype=object)
    weights = quarter[np.abs(away[:, 0]), np.abs(away[:, 1])]
    values = len(law.steps)

    @lru_cache(2 * KEPT_ROWS)
    def row(position: int) -> list[int]:
        codes = np.asarray(law.remap(np.clip(law.steps[position] + away, *law.window)))
        order = np.argsort(codes, kind="stable")
        distinct, starts = np.unique(codes[order], return_index=True)
        shares = [0] * values
        for code, share in zip(distinct.tolist(), np.add.reduceat(weights[order], starts).tolist(), strict=True):
            shares[code] = share
        return shares

    return ProbabilityTable(values, values, law.width, row, name)
