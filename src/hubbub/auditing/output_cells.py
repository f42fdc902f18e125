"""Outputs as numbered cells, with the probability of each cell for each value.

Outputs that can be listed have a cell each, and all others one together. Noise that is the same for all values has a
cell for each displacement from the value, or for a range of them where these are many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hubbub.auditing.distinguishing_events import sortable_keys
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.mechanisms import Geometric, Mechanism, PlanarGeometric, Staircase

MAX_NOISE_CELLS = 2_000
MAX_STAIRS = 200
LEAST_TAIL = 1e-9  # beyond the stairs that have cells of their own
MAX_LISTED_OUTPUTS = 2_000_000
MAX_TESTED_PROBABILITIES = 50_000_000  # of values times cells: the most frequent values are tested


@dataclass(frozen=True)
class OutputCells:
    """What was sent, as cells. The arrays `kept`, `value_of` and `cell_of` have an entry for each tested output."""

    values: Positions  # that are tested
    kept: Positions  # the numbers of their outputs, in the order in which they were drawn
    value_of: Positions  # the place of each output's value among `values`
    cell_of: Positions
    cells: int
    rows: Callable[[Positions], Floats]  # the probabilities of all cells, for some of `values` by their place
    displacements: Callable[[Positions], Positions] | None  # a number for how far each cell is from such values
    is_noise: bool  # are cells displacements themselves?
    is_complete: bool = True  # are all outputs tested, and not those of the most frequent values alone?


def output_cells(mechanism: Mechanism, positions: Positions, codes: Codes) -> OutputCells | None:
    """Return outputs as cells; None where they cannot be listed."""
    if isinstance(mechanism, Geometric):
        return _line_noise_cells(mechanism, positions, codes)
    if isinstance(mechanism, Staircase):
        return _stair_cells(mechanism, positions, codes)
    outputs = mechanism.outputs
    if outputs is None or len(outputs) > MAX_LISTED_OUTPUTS:
        return None
    if isinstance(mechanism, PlanarGeometric) and not mechanism.truncated:
        return _planar_noise_cells(mechanism, outputs, positions, codes)
    return _listed_cells(mechanism, outputs, positions, codes)


def _listed_cells(mechanism: Mechanism, outputs: Array, positions: Positions, codes: Codes) -> OutputCells:
    """Return a cell for each listed output, and one for all others."""
    space, size = mechanism.output_space, len(outputs)
    listed: Codes = np.arange(size) if space.size is not None else space.encode(outputs)
    values, kept, value_of = _tested(positions, size + 1)
    sent = codes[kept]
    if space.size is not None:
        cell_of: Positions = sent.astype(np.int64)
    else:
        keys, own = sortable_keys(listed), sortable_keys(sent.astype(listed.dtype))
        order = np.argsort(keys)
        found = order[np.minimum(np.searchsorted(keys, own, sorter=order), size - 1)]
        cell_of = np.where(keys[found] == own, found, size)

    def rows(places: Positions) -> Floats:
        inside = np.exp(mechanism.log_columns(listed, values[places]))
        outside = np.maximum(0.0, 1 - inside.sum(axis=1, keepdims=True))
        return np.hstack([inside, np.where(outside > 1e-12, outside, 0.0)])

    displacements = None
    steps = mechanism.domain.steps
    if steps is not None and mechanism.answers_in_domain:
        spans = np.ptp(steps, axis=0) + 1

        def displacements(places: Positions) -> Positions:
            apart = steps[None, :, :] - steps[values[places], None, :] + spans - 1
            numbers = np.ravel_multi_index(tuple(np.moveaxis(apart, -1, 0)), tuple(2 * spans - 1))
            elsewhere = np.full((len(places), 1), int((2 * spans - 1).prod()))
            return np.hstack([numbers, elsewhere])

    complete = kept.size == positions.size
    return OutputCells(
        values, kept, value_of, cell_of, size + 1, rows, displacements, is_noise=False, is_complete=complete
    )


def _line_noise_cells(mechanism: Geometric, positions: Positions, codes: Codes) -> OutputCells:
    """Return a cell for each displacement on the line, or for ranges of them that are about equally likely."""
    ratio = np.exp(-mechanism.epsilon)
    values, kept, value_of = _tested(positions, 1)
    noise = codes[kept] - mechanism.domain.labels[positions[kept]]

    def at_most(number: Floats) -> Floats:
        far = np.exp(-mechanism.epsilon * np.abs(number))
        return np.asarray(np.where(number < 0, far, 1 + ratio - far * ratio) / (1 + ratio))

    shares = np.arange(1, MAX_NOISE_CELLS // 2 + 1) / MAX_NOISE_CELLS
    below = np.unique(np.floor(np.log(shares * (1 + ratio)) / mechanism.epsilon))  # where so much lies below
    ends = np.unique(np.concatenate([below, [-1.0, 0.0], -below - 1]))
    row = np.diff(at_most(ends), prepend=0.0, append=1.0)
    cell_of = np.searchsorted(ends, noise)
    return OutputCells(values, kept, value_of, cell_of, row.size, _same_row(row), None, is_noise=True)


def _stair_cells(mechanism: Staircase, positions: Positions, codes: Codes) -> OutputCells:
    """Return a cell for each displacement on the line, or for parts of a stair; the furthest stairs have one cell."""
    values, kept, value_of = _tested(positions, 1)
    noise = codes[kept] - mechanism.domain.labels[positions[kept]]
    stair, reach = len(mechanism.domain) - 1, mechanism.reach
    stairs = min(MAX_STAIRS, math.ceil(-math.log(LEAST_TAIL) / mechanism.epsilon))
    step = max(1, math.ceil(2 * (stairs + 1) * stair / MAX_NOISE_CELLS))
    borders = [np.arange(0, reach + 1, step), np.array([reach + 1])]  # where a cell begins, to one side
    borders += [reach + 1 + np.arange(place, place + stair, step) for place in range(0, stairs * stair, stair)]
    starts = np.unique(np.concatenate([*borders, [reach + 1 + stairs * stair]]))
    ends = np.unique(np.concatenate([-starts, starts - 1]))  # the last displacement of each cell but the last
    sizes, first = np.diff(ends), ends[:-1] + 1
    falling = mechanism.stairs_down(first)
    top = float(mechanism.log_columns(mechanism.domain.labels[:1], np.array([0]))[0, 0])
    inner = sizes * np.exp(top - mechanism.epsilon * falling)
    tail = (1.0 - inner.sum()) / 2
    row = np.concatenate([[tail], inner, [tail]])
    cell_of = np.searchsorted(ends, noise)
    return OutputCells(values, kept, value_of, cell_of, row.size, _same_row(row), None, is_noise=True)


def _planar_noise_cells(mechanism: PlanarGeometric, outputs: Array, positions: Positions, codes: Codes) -> OutputCells:
    """Return a cell for each displacement on the lattice; the rarest are left to the tests to count together."""
    steps, values_tested = mechanism.domain.steps, _tested(positions, 1)
    assert steps is not None  # noqa: S101  # a grid has steps
    values, kept, value_of = values_tested
    reach = outputs.max(axis=0) - steps.max(axis=0)  # the list reaches as far beyond the grid on all sides
    axes = [np.arange(-far, far + 1) for far in reach.tolist()]
    lattice = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    inside = np.exp(mechanism.log_columns(lattice + steps[0], np.array([0])))[0]
    kept_cells = np.argsort(-inside, kind="stable")[:MAX_NOISE_CELLS]
    number = np.full(lattice.shape[0], kept_cells.size)
    number[kept_cells] = np.arange(kept_cells.size)
    noise = codes[kept] - steps[positions[kept]] + reach
    shape = 2 * reach + 1
    within = ((noise >= 0) & (noise < shape)).all(axis=1)
    cell_of = np.full(kept.size, kept_cells.size)
    cell_of[within] = number[np.ravel_multi_index(tuple(noise[within].T), tuple(shape))]
    row = np.append(inside[kept_cells], max(0.0, 1 - inside[kept_cells].sum()))
    return OutputCells(values, kept, value_of, cell_of, row.size, _same_row(row), None, is_noise=True)


def _same_row(row: Floats) -> Callable[[Positions], Floats]:
    return lambda places: np.broadcast_to(row, (len(places), row.size))


def _tested(positions: Positions, cells: int) -> tuple[Positions, Positions, Positions]:
    """Return the values that are tested, the numbers of their outputs, and the place of each output's value."""
    values, value_of, counts = np.unique(positions, return_inverse=True, return_counts=True)
    most = max(2, MAX_TESTED_PROBABILITIES // cells)
    if values.size <= most:
        return values, np.arange(positions.size), value_of.ravel()
    chosen = np.sort(np.argsort(-counts, kind="stable")[:most])
    place = np.full(values.size, -1)
    place[chosen] = np.arange(most)
    own = place[value_of.ravel()]
    kept = np.flatnonzero(own >= 0)
    return values[chosen], kept, own[kept]
