"""One noisy bit for each value: basic RAPPOR and optimized unary encoding."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hubbub.client import flip_parameters
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.domains import Domain
from hubbub.mechanisms.base import matrix_too_wide
from hubbub.mechanisms.frequency_oracle import SetValuedOracle, Support
from hubbub.mechanisms.output_spaces import OutputSpace
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.sampling import BitFlipLaw, RandomSource

MAX_LISTED_VALUES = 16  # up to which all 2^k outputs are listed
CHUNK_BITS = 2_000_000  # drawn at a time


class BitLogs(NamedTuple):
    """Logarithms of the probabilities of a bit: one or zero, the value's own or another's."""

    own_one: float
    own_zero: float
    other_one: float
    other_zero: float


class UnaryEncoding(SetValuedOracle):
    """Base of the unary encodings: the value's bit is 1 with one probability, all other bits with another.

    With p = P(1 | own bit), q = P(1 | another's bit) and z the bits sent::

        P(z | x) = prod_j q^z_j (1 - q)^(1 - z_j)  *  (p/q if z_x = 1, (1 - p)/(1 - q) otherwise)

    so that the likelihood of a report takes two values over the domain, in ratio exp(`log_ratio`).
    """

    @property
    def outputs(self) -> Array | None:
        """All rows of bits, packed, for at most 16 values; None otherwise."""
        size = len(self.domain)
        if size > MAX_LISTED_VALUES:
            return None
        every = np.arange(2**size, dtype=np.uint32)[:, None] >> np.arange(size - 1, -1, -1, dtype=np.uint32)
        return np.packbits((every & 1).astype(bool), axis=1)

    @cached_property
    def output_space(self) -> OutputSpace:
        """Rows of bits."""
        return BitRowOutputs(len(self.domain), type(self).__name__)

    def matrix(self) -> Floats:
        """Return P(z | x) for `outputs`, for at most 16 values.

        Returns
        -------
        numpy.ndarray
            A row for each value of the domain, a column for each output.

        Raises
        ------
        MechanismError
            If there are more values.
        """
        outputs = self.outputs
        if outputs is None:
            raise matrix_too_wide(type(self).__name__, f"2^{len(self.domain)}")
        return np.exp(self.encoded_channel(outputs).log_dense())

    def sets(self, codes: Codes) -> NDArray[np.uint8]:
        """Return the rows themselves."""
        return codes

    @property
    @abstractmethod
    def log_bits(self) -> BitLogs:
        """The logarithms of the four probabilities of a bit, exact also where floats would round them to 0 or 1."""

    @property
    def support(self) -> Support:
        """The probabilities of a one, in the value's own bit and in another's."""
        return Support(math.exp(self.log_bits.own_one), math.exp(self.log_bits.other_one))

    def log_high(self, codes: Codes) -> Floats:
        """Return the product over all bits, with the value's own bit a one."""
        own_one, _, other_one, other_zero = self.log_bits
        ones = np.bitwise_count(codes).sum(axis=1, dtype=np.int64)
        flat: Floats = ones * other_one + (len(self.domain) - ones) * other_zero
        return flat + (own_one - other_one)

    def draw(self, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Draw every bit independently."""
        return draw_bit_rows(positions, len(self.domain), self.support, source)


def draw_bit_rows(positions: Positions, size: int, support: Support, source: RandomSource) -> NDArray[np.uint8]:
    """Return packed rows of independent bits, drawn for some users at a time."""
    true, other = support
    packed = np.empty((positions.size, (size + 7) // 8), dtype=np.uint8)
    step = max(1, CHUNK_BITS // size)
    for first in range(0, positions.size, step):
        mine = positions[first : first + step]
        uniforms = source.uniforms(mine.size * size).reshape(mine.size, size)
        bits = uniforms < other
        users = np.arange(mine.size)
        bits[users, mine] = uniforms[users, mine] < true
        packed[first : first + step] = np.packbits(bits, axis=1)
    return packed


@dataclass(frozen=True)
class Rappor(UnaryEncoding):
    """Basic one-time RAPPOR: each of the k bits is kept or flipped on its own.

    The value's bit is 1, all others 0; each is sent as it is with probability
    e^(epsilon/2) / (1 + e^(epsilon/2)) and flipped otherwise. Outputs are packed rows of bits.

    Guarantee: epsilon-local differential privacy (two values differ in two bits, each worth epsilon/2).

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon, positive: smaller is more private.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, or epsilon is not between 1e-12 and 500.

    Examples
    --------
    >>> import hubbub as hb
    >>> bits = hb.Rappor(hb.Categories(["a", "b", "c"]), epsilon=2.0)
    >>> sent = bits.privatize(["a", "b"], rng=3)  # packed: eight bits in a byte
    >>> sent.shape, bits.outputs.shape, bits.matrix().shape
    ((2, 1), (8, 1), (3, 8))
    """

    domain: Domain
    epsilon: float

    def __post_init__(self) -> None:
        self._check()

    @property
    def log_bits(self) -> BitLogs:
        """A bit is kept with probability e^(eps/2) / (1 + e^(eps/2)), and flipped otherwise."""
        kept = -math.log1p(math.exp(-self.epsilon / 2))
        flipped = kept - self.epsilon / 2
        return BitLogs(own_one=kept, own_zero=flipped, other_one=flipped, other_zero=kept)

    @cached_property
    def law(self) -> BitFlipLaw:
        """The chance to be flipped is rounded up."""
        width, flipped = flip_parameters(Fraction(self.epsilon) / 2)
        return BitFlipLaw(len(self.domain), width, own=(1 << width) - flipped, other=flipped)


@dataclass(frozen=True)
class OptimizedUnary(UnaryEncoding):
    """Optimized unary encoding (OUE): a fair coin for the value's bit, few ones elsewhere.

    P(1 | own bit) = 1/2 and P(1 | another's bit) = 1 / (1 + e^epsilon): of all unary encodings with the
    same epsilon, the one whose bit-wise estimates vary least for rare values. Outputs are packed rows of bits.

    Guarantee: epsilon-local differential privacy.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon, positive: smaller is more private.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, or epsilon is not between 1e-12 and 500.

    Examples
    --------
    >>> import hubbub as hb
    >>> bits = hb.OptimizedUnary(hb.Categories(["a", "b", "c"]), epsilon=1.0)
    >>> bits.matrix().shape  # all rows of three bits
    (3, 8)
    """

    domain: Domain
    epsilon: float

    def __post_init__(self) -> None:
        self._check()

    @property
    def log_bits(self) -> BitLogs:
        """A one with probability 1/2 for the value's own bit, 1 / (1 + e^eps) for another's."""
        other_zero = -math.log1p(math.exp(-self.epsilon))
        half = math.log(0.5)
        return BitLogs(own_one=half, own_zero=half, other_one=other_zero - self.epsilon, other_zero=other_zero)

    @cached_property
    def law(self) -> BitFlipLaw:
        """A fair coin, and the chance of another's one rounded up."""
        width, other = flip_parameters(Fraction(self.epsilon))
        return BitFlipLaw(len(self.domain), width, own=1 << (width - 1), other=other)
