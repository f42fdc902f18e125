"""All outputs that users could have sent, given which attributes their reports have.

A report about several attributes may leave some out. Which ones depends on no value, and a mechanism such as `Split`
does not say how often it happens: what reports say about values is their law among reports with the same attributes. So
there is one enumeration for each set of attributes that was sent, and its probabilities add up to 1. Reports that are
not about several attributes have a single one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.outputs.output_enumeration import MAX_TABLE_ENTRIES, OutputEnumeration, enumerate_outputs


class AttributeSets(NamedTuple):
    """The sets of attributes that outputs have, and which of these each output has."""

    distinct: NDArray[np.bool_]  # sets by attributes; no columns where outputs are not of attributes
    which: Positions

    @classmethod
    def of(cls, mechanism: Mechanism, codes: Codes) -> AttributeSets:
        """Find the sets of attributes of encoded outputs."""
        distinct, which = np.unique(mechanism.output_space.present(codes), axis=0, return_inverse=True)
        return cls(distinct, which.ravel())


class SentOutputs(NamedTuple):
    """All outputs with some set of attributes, and the places of the outputs that were sent with it."""

    outputs: OutputEnumeration
    rows: Positions

    @property
    def cells(self) -> int:
        """The number of all outputs."""
        return int(self.outputs.probabilities.shape[1])

    def tally(self, codes: Codes, counts: Floats) -> Floats:
        """Return how many users sent each of all outputs, given the codes that were sent with any set of attributes."""
        positions = self.outputs.position_of(codes[self.rows])
        return np.bincount(positions, weights=counts[self.rows], minlength=self.cells).astype(np.float64)


def enumerate_sent(
    mechanism: Mechanism,
    codes: Codes,
    users: float,
    among: Positions | None,
    max_entries: int = MAX_TABLE_ENTRIES,
) -> list[SentOutputs] | None:
    """Return all outputs for each set of attributes that users sent; None if these are more than `max_entries`."""
    sets = AttributeSets.of(mechanism, codes)
    rows = [np.flatnonzero(sets.which == number) for number in range(len(sets.distinct))]
    if not isinstance(mechanism, SeveralAttributes):
        whole = enumerate_outputs(mechanism, users, among, max_entries)
        return None if whole is None else [SentOutputs(whole, own) for own in rows]
    parts: list[OutputEnumeration | None] = []
    for part, has in zip(mechanism.parts.values(), sets.distinct.T, strict=True):
        parts.append(enumerate_outputs(part, users, None, max_entries) if has.any() else None)
        if has.any() and parts[-1] is None:
            return None
    given = [[part if has else None for part, has in zip(parts, own, strict=True)] for own in sets.distinct]
    if math.prod(mechanism.domain.sides) * sum(math.prod(_sizes(own)) for own in given) > max_entries:
        return None
    return [SentOutputs(_of_attributes(mechanism, own, among), places) for own, places in zip(given, rows, strict=True)]


def _sizes(parts: Sequence[OutputEnumeration | None]) -> list[int]:
    """Return how many outputs each attribute that was sent has."""
    return [part.probabilities.shape[1] for part in parts if part is not None]


def _of_attributes(
    mechanism: SeveralAttributes, parts: Sequence[OutputEnumeration | None], among: Positions | None
) -> OutputEnumeration:
    """Return all combinations of outputs of the attributes that were sent; the others are None."""
    space, sizes = mechanism.output_space, _sizes(parts)
    sent = [(place, name, part) for place, (name, part) in enumerate(zip(mechanism.parts, parts, strict=True)) if part]
    joint = mechanism.joint_probabilities([None if part is None else part.probabilities for part in parts])
    kept = mechanism.places_among(among)

    def position_of(codes: Codes) -> Positions:
        places = tuple(part.position_of(space.entries(codes, place)[0]) for place, _, part in sent)
        return np.ravel_multi_index(places, sizes)

    def text(cell: int) -> str:
        places = np.unravel_index(cell, sizes)
        entries = {name: part.text(int(own)) for own, (_, name, part) in zip(places, sent, strict=True)}
        return json.dumps(entries, ensure_ascii=False)  # as files hold an output

    return OutputEnumeration(joint if kept is None else joint[kept], position_of, text)
