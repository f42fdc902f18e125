"""All outputs of a mechanism in a row, with their chances; far ones in one, neighbours joined where they are many."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.goodness_of_fit.count_tables import Text
from hubbub.mechanisms import Geometric, Mechanism, PlanarGeometric, SubsetSelection
from hubbub.mechanisms.frequency_oracle import SetValuedOracle
from hubbub.mechanisms.output_spaces import index_codes
from hubbub.mechanisms.unary import UnaryEncoding

MOST_ENTRIES = 10_000_000  # of a table's chances (80 MB)
MOST_SETS = 1_000  # outputs up to which unary and subset reports are told apart one by one
MOST_SIDE = 100  # groups of outputs on each side of a table of pairs


class OutputEnumeration(NamedTuple):
    """All outputs of a mechanism in a row: their chances, where a code stands, and what it is called."""

    chances: Floats  # values by outputs
    place: Callable[[Codes], Positions]
    text: Text


def in_pairs(mechanism: Mechanism) -> bool:
    """Whether pairs of this mechanism's outputs can be listed, their chances being products (sets are too many)."""
    return not isinstance(mechanism, SetValuedOracle) and not mechanism.remembers and can_list(mechanism)


def can_list(mechanism: Mechanism) -> bool:
    """Whether all outputs, but for those far away, are few enough for a table."""
    if isinstance(mechanism, UnaryEncoding):
        return len(mechanism.domain) <= math.log2(MOST_SETS)
    if isinstance(mechanism, SubsetSelection):
        return math.comb(len(mechanism.domain), int(mechanism.size or 1)) <= MOST_SETS
    if isinstance(mechanism, Geometric) or (isinstance(mechanism, PlanarGeometric) and not mechanism.truncated):
        return True
    outputs = mechanism.outputs
    return outputs is not None and int(outputs.shape[0]) * len(mechanism.domain) <= MOST_ENTRIES


def listing(mechanism: Mechanism, users: float, among: Positions | None) -> OutputEnumeration | None:
    """Return all outputs; None where they are too many."""
    space = mechanism.output_space
    values = len(mechanism.domain) if among is None else among.size

    def text(codes: Codes) -> Text:
        return lambda place: space.write(space.decode(codes[place : place + 1])[0])

    if not can_list(mechanism):
        return None
    if isinstance(mechanism, Geometric):
        # Beyond this reach fewer than one user is expected; outputs there are clamped, which has an exact chance.
        reach = math.ceil(math.log(users + 1.0) / mechanism.epsilon)
        low, high = mechanism.domain.low - reach, mechanism.domain.high + reach
        if (high - low + 1) * values > MOST_ENTRIES:
            return None
        codes = np.arange(low, high + 1)
        logs = mechanism.log_columns(codes, among)
        logs[:, [0, -1]] -= math.log(-math.expm1(-mechanism.epsilon))
        return OutputEnumeration(np.exp(logs), lambda asked: np.clip(asked, low, high) - low, text(codes))
    if isinstance(mechanism, PlanarGeometric) and not mechanism.truncated:
        return _around(mechanism, users, among, text)
    codes = space.encode(mechanism.outputs)

    def place(asked: Codes) -> Positions:
        distinct, back = index_codes(np.concatenate([codes, asked]))
        places = np.empty(len(distinct), dtype=np.int64)
        places[back[: len(codes)]] = np.arange(len(codes))
        return places[back[len(codes) :]]

    return OutputEnumeration(np.exp(mechanism.log_columns(codes, among)), place, text(codes))


def _around(
    mechanism: PlanarGeometric, users: float, among: Positions | None, text: Callable[[Codes], Text]
) -> OutputEnumeration | None:
    """Return the lattice around a grid, and all that is farther away in one."""
    grid = mechanism.domain
    falling = math.log(users + 1.0)
    reach = [math.ceil((falling + math.log1p(falling)) / (mechanism.epsilon * side)) for side in grid.sides]
    shape = (grid.columns + 2 * reach[0], grid.rows + 2 * reach[1])
    if shape[0] * shape[1] * (len(grid) if among is None else among.size) > MOST_ENTRIES:
        return None
    codes = np.indices(shape).reshape(2, -1).T - np.array(reach)
    near = np.exp(mechanism.log_columns(codes, among))
    beyond = np.maximum(1.0 - near.sum(axis=1, keepdims=True), 0.0)
    names = text(codes)

    def place(asked: Codes) -> Positions:
        steps = asked + np.array(reach)
        inside = ((steps >= 0) & (steps < np.array(shape))).all(axis=1)
        return np.where(inside, steps[:, 0] * shape[1] + steps[:, 1], len(codes))

    return OutputEnumeration(
        np.concatenate([near, beyond], axis=1), place, lambda cell: names(cell) if cell < len(codes) else "far away"
    )


def coarse(listing: OutputEnumeration) -> OutputEnumeration:
    """Return a listing with neighbouring outputs joined to groups of about equal weight, where they are many."""
    chances, place, text = listing
    size = chances.shape[1]
    if size <= MOST_SIDE:
        return listing
    weight = np.cumsum(chances.mean(axis=0))
    _, group = np.unique(
        np.minimum((MOST_SIDE * weight / weight[-1]).astype(np.int64), MOST_SIDE - 1), return_inverse=True
    )
    starts = np.append(np.flatnonzero(np.diff(group, prepend=-1)), size)
    joined = np.add.reduceat(chances, starts[:-1], axis=1)

    def words(place: int) -> str:
        start, end = int(starts[place]), int(starts[place + 1]) - 1
        return text(start) if start == end else f"{text(start)} to {text(end)}"

    return OutputEnumeration(joined, lambda asked: group[place(asked)], words)
