"""The enumeration of a mechanism's outputs and their probabilities; those far away from the domain share one cell."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.mechanisms import Geometric, Mechanism, PlanarGeometric, Staircase, SubsetSelection
from hubbub.mechanisms.frequency_oracle import SetValuedOracle
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.mechanisms.unary_encoding import UnaryEncoding

CellText = Callable[[int], str]  # of an output, by its place among all

MAX_TABLE_ENTRIES = 10_000_000  # of probabilities (80 MB)
MAX_LISTED_SETS = 1_000  # outputs up to which unary and subset reports have a cell each
MAX_PAIR_GROUPS = 100  # groups of outputs on each side of a table of pairs


class OutputEnumeration(NamedTuple):
    """All outputs of a mechanism: their probabilities, the position of a code, and its text."""

    probabilities: Floats  # values by outputs
    position_of: Callable[[Codes], Positions]
    text: CellText


def can_list_pairs(mechanism: Mechanism) -> bool:
    """Whether pairs of the mechanism's outputs can be listed, with products as probabilities (sets are too many)."""
    return not isinstance(mechanism, SetValuedOracle) and not mechanism.remembers and can_list(mechanism)


def can_list(mechanism: Mechanism, max_entries: int = MAX_TABLE_ENTRIES) -> bool:
    """Whether the outputs, except those far away, are few enough for a table of so many entries."""
    if isinstance(mechanism, UnaryEncoding):
        return len(mechanism.domain) <= math.log2(MAX_LISTED_SETS)
    if isinstance(mechanism, SubsetSelection):
        return math.comb(len(mechanism.domain), int(mechanism.size or 1)) <= MAX_LISTED_SETS
    if isinstance(mechanism, Geometric) or (isinstance(mechanism, PlanarGeometric) and not mechanism.truncated):
        return True
    if isinstance(mechanism, Staircase):
        return len(mechanism.folded_outputs()[0]) * len(mechanism.domain) <= max_entries
    if isinstance(mechanism, SeveralAttributes) and not all(can_list(part) for part in mechanism.parts.values()):
        return False
    outputs = mechanism.outputs
    return outputs is not None and len(outputs) * len(mechanism.domain) <= max_entries


def enumerate_outputs(
    mechanism: Mechanism, users: float, among: Positions | None, max_entries: int = MAX_TABLE_ENTRIES
) -> OutputEnumeration | None:
    """Return all outputs that a mechanism draws; None if their table would have more than `max_entries`.

    Reports may lack attributes all the same: `sent_outputs` enumerates what could have been sent in their place.
    """
    space = mechanism.output_space
    values = len(mechanism.domain) if among is None else among.size

    def text(codes: Codes) -> CellText:
        return lambda position: space.title(codes[position : position + 1])

    if not can_list(mechanism, max_entries):
        return None
    if isinstance(mechanism, Geometric):
        # Beyond this reach fewer than one user is expected; outputs there are clamped, with an exact probability.
        reach = math.ceil(math.log(users + 1.0) / mechanism.epsilon)
        low, high = mechanism.domain.low - reach, mechanism.domain.high + reach
        if (high - low + 1) * values > max_entries:
            return None
        codes = np.arange(low, high + 1)
        logs = mechanism.log_columns(codes, among)
        logs[:, [0, -1]] -= math.log(-math.expm1(-mechanism.epsilon))
        return OutputEnumeration(np.exp(logs), lambda outputs: np.clip(outputs, low, high) - low, text(codes))
    if isinstance(mechanism, PlanarGeometric) and not mechanism.truncated:
        return _enumerate_lattice(mechanism, users, among, text, max_entries)
    if isinstance(mechanism, Staircase):
        # Outputs further out say the same as those that stand for them, whose probabilities they are added to.
        folded, factors = mechanism.folded_outputs()
        logs = mechanism.log_columns(folded, among) + factors
        return OutputEnumeration(np.exp(logs), lambda outputs: mechanism.fold(outputs) - folded[0], text(folded))
    codes = space.encode(mechanism.outputs)

    def position_of(sent: Codes) -> Positions:
        distinct, back = index_codes(np.concatenate([codes, sent]))
        positions = np.full(len(distinct), -1, dtype=np.int64)  # of an output that is not listed: no count takes it
        positions[back[: len(codes)]] = np.arange(len(codes))
        return positions[back[len(codes) :]]

    return OutputEnumeration(np.exp(mechanism.log_columns(codes, among)), position_of, text(codes))


def _enumerate_lattice(
    mechanism: PlanarGeometric,
    users: float,
    among: Positions | None,
    text: Callable[[Codes], CellText],
    max_entries: int,
) -> OutputEnumeration | None:
    """Return the lattice around a grid, and one cell for everything farther away."""
    grid = mechanism.domain
    falling = math.log(users + 1.0)
    reach = [math.ceil((falling + math.log1p(falling)) / (mechanism.epsilon * side)) for side in grid.sides]
    shape = (grid.columns + 2 * reach[0], grid.rows + 2 * reach[1])
    if shape[0] * shape[1] * (len(grid) if among is None else among.size) > max_entries:
        return None
    codes = np.indices(shape).reshape(2, -1).T - np.array(reach)
    near = np.exp(mechanism.log_columns(codes, among))
    beyond = np.maximum(1.0 - near.sum(axis=1, keepdims=True), 0.0)
    near_text = text(codes)

    def position_of(sent: Codes) -> Positions:
        steps = sent + np.array(reach)
        inside = ((steps >= 0) & (steps < np.array(shape))).all(axis=1)
        return np.where(inside, steps[:, 0] * shape[1] + steps[:, 1], len(codes))

    return OutputEnumeration(
        np.concatenate([near, beyond], axis=1),
        position_of,
        lambda cell: near_text(cell) if cell < len(codes) else "far away",
    )


def coarsen(outputs: OutputEnumeration) -> OutputEnumeration:
    """Return the outputs with neighbours joined into groups of about equal weight, if they are many."""
    probabilities, position_of, text = outputs
    size = probabilities.shape[1]
    if size <= MAX_PAIR_GROUPS:
        return outputs
    weight = np.cumsum(probabilities.mean(axis=0))
    _, group = np.unique(
        np.minimum((MAX_PAIR_GROUPS * weight / weight[-1]).astype(np.int64), MAX_PAIR_GROUPS - 1), return_inverse=True
    )
    starts = np.append(np.flatnonzero(np.diff(group, prepend=-1)), size)
    joined = np.add.reduceat(probabilities, starts[:-1], axis=1)

    def group_text(cell: int) -> str:
        start, end = int(starts[cell]), int(starts[cell + 1]) - 1
        return text(start) if start == end else f"{text(start)} to {text(end)}"

    return OutputEnumeration(joined, lambda codes: group[position_of(codes)], group_text)
