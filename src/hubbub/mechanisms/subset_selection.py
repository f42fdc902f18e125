"""Subset selection: report a set of values that is likely to contain the true one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hubbub.client import default_size, subset_parameters
from hubbub.core.arrays import Array, Codes, Floats, Positions, as_integer
from hubbub.core.errors import MechanismError
from hubbub.domains import Domain
from hubbub.mechanisms.base import matrix_too_wide
from hubbub.mechanisms.frequency_oracle import SetValuedOracle, Support
from hubbub.mechanisms.output_spaces import OutputSpace
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.sampling import RandomSource, SubsetLaw

MAX_LISTED_SUBSETS = 100_000  # subsets
CHUNK_KEYS = 4_000_000  # random keys at a time


@dataclass(frozen=True)
class SubsetSelection(SetValuedOracle):
    """Report a subset of d of the k values; those with the true value are e^epsilon times as likely.

    With C(n, m) the binomial coefficients::

        P(z | x) = e^epsilon / W  if x in z,  1 / W  otherwise,   W = e^epsilon C(k-1, d-1) + C(k-1, d)

    The default d is close to the size that loses least. Outputs are packed rows of bits.

    Guarantee: epsilon-local differential privacy.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon, positive: smaller is more private.
    size
        How many values a subset has; None for round(k / (e^epsilon + 1)), at least 1.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, epsilon is not between 1e-12 and 500, or a subset would be empty or hold
        every value.

    Examples
    --------
    >>> import hubbub as hb
    >>> hb.SubsetSelection(hb.Integers(0, 9), epsilon=1.0).size
    3
    """

    domain: Domain
    epsilon: float
    size: int | None = None

    def __post_init__(self) -> None:
        self._check()
        values, where = len(self.domain), "SubsetSelection(size=)"
        best = default_size(values, self.epsilon)
        number = best if self.size is None else self.size
        size = as_integer(number, MechanismError, where=where, expected="a whole number")
        if not 1 <= size < values:
            what, expected = "the subset must be smaller than the domain and not empty", f"from 1 to {values - 1}"
            remedy = f"leave size out for the best one here ({best})"
            raise MechanismError(what, where=where, got=size, expected=expected, remedy=remedy)
        object.__setattr__(self, "size", size)

    @property
    def _d(self) -> int:
        return int(self.size or 1)

    @property
    def support(self) -> Support:
        """P(x in z) for the true value and for another one."""
        values, chosen = len(self.domain), self._d
        true = 1 / (1 + (values - chosen) / chosen * math.exp(-self.epsilon))
        return Support(true, (chosen - true) / (values - 1))

    @property
    def outputs(self) -> Array | None:
        """All subsets as packed rows, where there are at most 100,000; None otherwise."""
        size = len(self.domain)
        if math.comb(size, self._d) > MAX_LISTED_SUBSETS:
            return None
        subsets = np.array(list(combinations(range(size), self._d)))
        rows = np.zeros((len(subsets), size), dtype=bool)
        np.put_along_axis(rows, subsets, True, axis=1)
        return np.packbits(rows, axis=1)

    @cached_property
    def output_space(self) -> OutputSpace:
        """Rows of bits with exactly `size` ones."""
        return BitRowOutputs(len(self.domain), "SubsetSelection", ones=self._d)

    def matrix(self) -> Floats:
        """Return P(z | x) for `outputs`.

        Returns
        -------
        numpy.ndarray
            A row for each value of the domain, a column for each output.

        Raises
        ------
        MechanismError
            If there are more than 100,000 subsets.
        """
        outputs = self.outputs
        if outputs is None:
            raise matrix_too_wide("SubsetSelection", f"C({len(self.domain)}, {self._d})")
        return np.exp(self.encoded_channel(outputs).log_dense())

    def sets(self, codes: Codes) -> NDArray[np.uint8]:
        """Return the rows themselves."""
        return codes

    def log_high(self, codes: Codes) -> Floats:
        """Return log P(x in z | x), shared by all subsets that hold x."""
        subsets = math.comb(len(self.domain) - 1, self._d - 1)
        return np.full(len(codes), math.log(self.support.true) - math.log(subsets))

    @cached_property
    def law(self) -> SubsetLaw:
        """The chance to leave the true value out is rounded up."""
        values = len(self.domain)
        return SubsetLaw(values, self._d, *subset_parameters(values, self._d, Fraction(self.epsilon)))

    def draw(self, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Take the true value or not, then fill up with the others of smallest random key."""
        values = len(self.domain)
        packed = np.empty((positions.size, (values + 7) // 8), dtype=np.uint8)
        step = max(1, CHUNK_KEYS // values)
        for first in range(0, positions.size, step):
            mine = positions[first : first + step]
            users = np.arange(mine.size)
            keys = source.words(mine.size * values).reshape(mine.size, values)
            taken = source.uniforms(mine.size) < self.support.true
            keys[users, mine] = np.where(taken, np.uint64(0), np.uint64(2**64 - 1))
            chosen = np.argpartition(keys, self._d - 1, axis=1)[:, : self._d]
            rows = np.zeros((mine.size, values), dtype=bool)
            np.put_along_axis(rows, chosen, True, axis=1)
            packed[first : first + step] = np.packbits(rows, axis=1)
        return packed
