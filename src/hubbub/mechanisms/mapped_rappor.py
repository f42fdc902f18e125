"""Bloom-filter RAPPOR whose filters come from a map file instead of the hash."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.domains import Categories
from hubbub.mechanisms.bloom_rappor import BloomRappor


@dataclass(frozen=True, repr=False)
class MappedRappor(BloomRappor):
    """`BloomRappor` with the filters of a map file, for clients with another hash.

    `mapped` are the packed filters, cohort after cohort and label after label; that of the rest has no bits.
    """

    mapped: bytes

    def __init__(
        self,
        domain: Categories,
        cohorts: int,
        bits: int,
        hashes: int,
        mapped: bytes,
        *,
        f: Fraction,
        p: Fraction,
        q: Fraction,
        rest: str | int | None = None,
    ) -> None:
        object.__setattr__(self, "mapped", mapped)
        super().__init__(domain, cohorts, bits, hashes, f=f, p=p, q=q, rest=rest)

    @cached_property
    def filters(self) -> NDArray[np.uint8]:
        """The packed filters of all labels: cohorts by labels by bytes."""
        shape = self.cohorts, len(self.domain), -(-self.bits // 8)
        return np.frombuffer(self.mapped, dtype=np.uint8).reshape(shape)

    def with_rest(self, label: str) -> MappedRappor:
        """Return this mechanism with one more label, which stands for all texts that are not listed."""
        f, p, q = self.probabilities
        packed = np.pad(self.filters, ((0, 0), (0, 1), (0, 0)))
        domain = Categories([*self.domain.labels.tolist(), label])
        return MappedRappor(domain, self.cohorts, self.bits, self.hashes, packed.tobytes(), f=f, p=p, q=q, rest=label)
