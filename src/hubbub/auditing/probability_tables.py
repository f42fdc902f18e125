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
from hubbub.domains import Domain
from hubbub.sampling import Law, LineNoiseLaw, PlanarTableLaw, TableLaw

MAX_COMPARISONS = 30_000_000_000  # pairs of values times outputs: about a minute
MAX_EXACT_COMPARISONS = 1_000_000  # that floats leave undecided
MAX_KNOWN_LOGS = 200_000  # logarithms kept at a time: enough for tables of few distinct numbers
CACHED_ROWS = 64
PROGRESS_BATCHES = 16  # rows, or batches of comparisons, between two steps of progress
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
        if position % PROGRESS_BATCHES == 0:
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


def largest_metric_ratios(table: ProbabilityTable, domain: Domain) -> Generator[Progress, None, list[OutputRatio]]:
    """Return the ratios that may have the largest rate; floats with bounded errors prove all others smaller.

    Each value is compared with all others in all outputs; on a line with its neighbours, which is enough (see
    `closed_form_ratios`).
    """
    logs = yield from log_probabilities(table)
    possible = np.isfinite(logs)
    mixed = possible.any(axis=0) & ~possible.all(axis=0)
    if mixed.any():
        output = int(np.argmax(mixed))
        can_send = possible[:, output]
        value, other = int(np.argmax(can_send)), int(np.argmin(can_send))
        return [OutputRatio(value, other, table.output_text(output), 1, 0, domain.squared_distance(value, other))]
    used = np.flatnonzero(possible.all(axis=0))
    logs = np.ascontiguousarray(logs[:, used])

    def others(value: int) -> Positions:
        if domain.places is None:
            return np.delete(np.arange(table.values), value)
        return np.array([other for other in (value - 1, value + 1) if 0 <= other < table.values])

    undecided = yield from undecided_comparisons(
        table.values,
        lambda value: domain.distances_between(np.array([value]), others(value))[0],
        lambda value, chosen: logs[value] - logs[others(value)[chosen]],
        largest_log=float(np.abs(logs).max()),
    )
    row = lru_cache(CACHED_ROWS)(table.row)
    ratios: dict[tuple[int, int, Fraction], OutputRatio] = {}  # each ratio at each distance once
    for value, index, outputs in undecided:
        other = int(others(value)[index])
        squared, first, second = domain.squared_distance(value, other), row(value), row(other)
        for output in used[outputs].tolist():
            key = first[output], second[output], squared
            if key not in ratios:
                ratios[key] = OutputRatio(value, other, table.output_text(output), *key)
    return list(ratios.values())


def log_probabilities(table: ProbabilityTable) -> Generator[Progress, None, Floats]:
    """Return the logarithms of all probabilities, each within `LOG_ERROR` of the nearest float."""
    from flint import arb, ctx

    logs = np.empty((table.values, table.outputs))
    known: dict[int, float] = {0: -np.inf}
    for position in range(table.values):
        if position % PROGRESS_BATCHES == 0:
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


def undecided_comparisons(
    batches: int,
    distances: Callable[[int], Floats],
    log_ratios: Callable[[int, Positions | slice], Floats],
    *,
    largest_log: float,
) -> Generator[Progress, None, list[tuple[int, int, Positions]]]:
    """Return the comparisons (batch, pair of values, outputs) whose rate may be the largest.

    A batch compares several pairs of values: `distances` returns those of its pairs, and `log_ratios` the differences
    of float logarithms, at most `largest_log` in size, of some of its pairs (rows) in all outputs (columns).
    """
    error = 2 * LOG_ERROR * (1 + largest_log)
    largest_rate = 0.0
    bounds: list[tuple[Floats, Floats]] = []  # for each batch: distances, and upper bounds of the rates
    for batch in range(batches):
        if batch % PROGRESS_BATCHES == 0:
            yield Progress(batch, batches, "comparing all pairs")
        apart = distances(batch)
        largest = log_ratios(batch, slice(None)).max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            high = np.where(apart > 0, (largest + error) / apart * (1 + DISTANCE_ERROR), np.inf)
            low = np.where(apart > 0, (largest - error) / apart * (1 - DISTANCE_ERROR), -np.inf)
        largest_rate = max(largest_rate, float(low.max(initial=0.0)))
        bounds.append((apart, high))
    undecided, count = [], 0
    for batch, (apart, high) in enumerate(bounds):
        for pair in np.flatnonzero(high >= largest_rate).tolist():
            least = largest_rate * apart[pair] * (1 - DISTANCE_ERROR) - error
            outputs = np.flatnonzero(log_ratios(batch, np.array([pair]))[0] >= least)
            count += outputs.size
            if outputs.size:
                undecided.append((batch, pair, outputs))
            if count > MAX_EXACT_COMPARISONS:
                raise MechanismError(
                    "too many ratios are almost equal",
                    where="audit(mechanism)",
                    got=f"at least {count:,} comparisons that floats cannot decide",
                    expected="ratios that differ in their first 15 digits",
                    remedy="audit a domain with fewer values, or a larger epsilon",
                )
    return undecided


def probability_table(law: Law, output_text: Callable[[int], str]) -> ProbabilityTable | None:
    """Return a law's probabilities as rows of whole numbers; None if it has none, or infinitely many outputs."""
    if isinstance(law, TableLaw):
        return ProbabilityTable(law.values, law.outputs, law.width, law.row, output_text)
    if isinstance(law, PlanarTableLaw):
        return _clipped_table(law, output_text)
    return _clamped_table(law, output_text) if isinstance(law, LineNoiseLaw) and law.clamped else None


def _clamped_table(law: LineNoiseLaw, output_text: Callable[[int], str]) -> ProbabilityTable:
    """Return the probabilities of noise on a line whose ends collect all noise that goes at least as far."""
    noise, last = law.noise, law.values - 1
    width = noise.width * (last // len(noise.steps) + 3)  # at which all probabilities are whole numbers

    def row(position: int) -> list[int]:
        probabilities = [noise.probability(abs(output - position)) for output in range(law.values)]
        probabilities[0] = noise.beyond(position) if position else 1 - noise.beyond(1)
        probabilities[last] = noise.beyond(last - position) if position < last else 1 - noise.beyond(1)
        return [int(probability * (1 << width)) for probability in probabilities]

    return ProbabilityTable(law.values, law.values, width, row, output_text)


def _clipped_table(law: PlanarTableLaw, output_text: Callable[[int], str]) -> ProbabilityTable:
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
