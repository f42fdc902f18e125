"""Outputs about one of a few public hashes: likelihoods depend on a value's bucket under that hash alone.

A table has the bucket of each value under each hash. Weights of values are first added up by buckets, for each hash
that was sent, so that one pattern needs the buckets of one hash instead of all values; and back.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from hubbub.channels.bit_sets import PATTERN_PARTS, BitSetChannel, SetChannel
from hubbub.channels.hadamard_sums import parities, signed_sums
from hubbub.core.arrays import Floats, Positions


class SketchChannel(SetChannel):
    """Sets of the values whose buckets under the pattern's hash are in a set of buckets.

    `table` has the buckets by hashes and values, `hash_of` has the place of each pattern's hash in it, and `width` is
    the number of buckets.
    """

    def __init__(
        self,
        hash_of: Positions,
        table: NDArray[np.integer],
        width: int,
        *,
        low: float,
        log_scale: Floats,
        among: Positions | None = None,
    ) -> None:
        super().__init__(table.shape[1], log_scale, low, among)
        self._hash_of, self._hashes = hash_of, len(table)
        self._buckets = table if among is None else table[:, among]
        self._width = width

    @abstractmethod
    def _members(self, sums: Floats) -> Floats:
        """Return for each pattern the sum over its set, of sums for each hash and bucket."""

    @abstractmethod
    def _holders(self, weights: Floats) -> Floats:
        """Return for each hash and bucket the weight of the patterns whose set holds it."""

    @abstractmethod
    def _held(self, buckets: Positions) -> NDArray[np.bool_]:
        """Return whether patterns (columns) hold buckets under their hashes, for values (rows)."""

    def rows(self, positions: Positions) -> Floats:
        """Return rows of the matrix."""
        buckets = self._buckets[:, positions][self._hash_of].T.astype(np.int64)
        chosen: Floats = np.where(self._held(buckets), 1.0, self._low)
        return chosen

    def members(self, weights: Floats) -> Floats:
        """Return for each pattern the total weight of the values in its set."""
        sums = np.empty((self._hashes, self._width))
        for row, buckets in zip(sums, self._buckets, strict=True):
            row[:] = np.bincount(buckets, weights=weights, minlength=self._width)
        return self._members(sums)

    def holders(self, weights: Floats) -> Floats:
        """Return for each value the total weight of the patterns whose set holds it."""
        held = np.zeros(self.values)
        for row, buckets in zip(self._holders(weights), self._buckets, strict=True):
            held += row[buckets]
        return held


class BitSketchChannel(SketchChannel):
    """A pattern's set of buckets are the ones of a row of bits."""

    def __init__(
        self,
        hash_of: Positions,
        bits: NDArray[np.uint8],
        table: NDArray[np.integer],
        width: int,
        *,
        low: float,
        log_scale: Floats,
        among: Positions | None = None,
    ) -> None:
        super().__init__(hash_of, table, width, low=low, log_scale=log_scale, among=among)
        self._bits = bits
        order = np.argsort(hash_of, kind="stable")
        self._places = np.split(order, np.searchsorted(hash_of[order], np.arange(1, self._hashes)))
        self._parts = [
            BitSetChannel(np.ascontiguousarray(bits[places]), width, low=0.0, log_scale=np.zeros(places.size))
            for places in self._places
        ]

    def _members(self, sums: Floats) -> Floats:
        chosen = np.empty(self.patterns)
        for row, places, part in zip(sums, self._places, self._parts, strict=True):
            chosen[places] = part.members(row)
        return chosen

    def _holders(self, weights: Floats) -> Floats:
        held = [part.holders(weights[at]) for part, at in zip(self._parts, self._places, strict=True)]
        return np.asarray(np.stack(held), dtype=np.float64)

    def _held(self, buckets: Positions) -> NDArray[np.bool_]:
        columns = np.arange(self.patterns)
        bits = self._bits[columns, buckets // 8] >> (7 - buckets % 8).astype(np.uint8)
        return np.asarray(bits & 1, dtype=np.bool_)

    @property
    def member_additions(self) -> float:
        """All values of a bucket, then those of packed rows."""
        return self.values + 16.0 + -(-self._width // 8)

    @property
    def holder_additions(self) -> float:
        """Those of packed rows, then one for each hash."""
        return -(-self.patterns // PATTERN_PARTS) + PATTERN_PARTS + 256.0 + self._hashes


class SignSketchChannel(SketchChannel):
    """A pattern's set of buckets are the columns in which a row of a Hadamard matrix has a sign: 0 for +1, 1 for -1."""

    def __init__(
        self,
        hash_of: Positions,
        rows: Positions,
        signs: Positions,
        table: NDArray[np.integer],
        width: int,
        *,
        low: float,
        log_scale: Floats,
        among: Positions | None = None,
    ) -> None:
        super().__init__(hash_of, table, width, low=low, log_scale=log_scale, among=among)
        self._rows, self._signs = rows, signs
        self._cells = self._hash_of * width + rows

    def _members(self, sums: Floats) -> Floats:
        plus, minus = signed_sums(sums, np.zeros_like(sums))
        chosen: Floats = np.where(self._signs == 0, plus.ravel()[self._cells], minus.ravel()[self._cells])
        return chosen

    def _holders(self, weights: Floats) -> Floats:
        shape = (self._hashes, self._width)
        plus, minus = (
            np.bincount(self._cells, np.where(self._signs == sign, weights, 0.0), math.prod(shape)).astype(np.float64)
            for sign in (0, 1)
        )
        return signed_sums(plus.reshape(shape), minus.reshape(shape))[0]

    def _held(self, buckets: Positions) -> NDArray[np.bool_]:
        return np.asarray(parities(self._rows, buckets) == self._signs)

    @property
    def member_additions(self) -> float:
        """All values of a bucket, then one for each bit of a row."""
        return self.values + math.log2(self._width)

    @property
    def holder_additions(self) -> float:
        """All patterns of a cell, one for each bit of a column, and one for each hash."""
        return self.patterns + math.log2(self._width) + self._hashes
