"""One noisy bit for each value: basic RAPPOR, optimized unary encoding, and any two probabilities."""

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
from hubbub.core.errors import MechanismError
from hubbub.core.packed_bits import ones_in_rows
from hubbub.domains import Domain
from hubbub.mechanisms.base import matrix_too_wide
from hubbub.mechanisms.frequency_oracle import SetValuedOracle, Support
from hubbub.mechanisms.output_spaces import OutputSpace
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.mechanisms.parameters import DOMAIN_REMEDY, Probability, check_domain, check_probability, check_ratio
from hubbub.sampling import BitFlipLaw, FractionFlipLaw, RandomSource

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
        ones = ones_in_rows(codes)
        flat: Floats = ones * other_one + (len(self.domain) - ones) * other_zero
        return flat + (own_one - other_one)

    def bit_counts(self, outputs: object) -> Positions:
        """Return how many outputs have a one for each value: all that `Reports.from_bit_counts` needs of them.

        Parameters
        ----------
        outputs : array or list
            One row of bits for each user, as `privatize` returns them.

        Returns
        -------
        numpy.ndarray of int
            A sum for each value, in the order of ``domain.labels``.

        Examples
        --------
        >>> import hubbub as hb
        >>> bits = hb.Rappor(hb.Categories(["a", "b", "c"]), epsilon=2.0)
        >>> bits.bit_counts(["110", "010", "011"]).tolist()
        [1, 3, 1]
        """
        codes = self.output_space.encode(outputs)
        return self.support_counts(codes, np.ones(len(codes))).astype(np.int64)

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


@dataclass(frozen=True)
class Unary(UnaryEncoding):
    """Unary encoding with any two probabilities: one for a one in the value's own bit, one for all other bits.

    P(1 | own bit) = p and P(1 | another's bit) = q, and all bits are independent. `Rappor` (symmetric unary encoding)
    is the case q = 1 - p, `OptimizedUnary` the case p = 1/2. Outputs are packed rows of bits.

    Guarantee: epsilon = log(p (1 - q) / (q (1 - p))), plain.

    Parameters
    ----------
    domain
        The values: any domain.
    p, q
        The probability of a one in the value's own bit, and in another's: 0 < q < p < 1. They are taken as they are
        written: 0.7 is 7/10, and Fraction(1, 6) or "1/6" is a sixth.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, p or q is not a probability, q is not below p, or their epsilon is not
        between 1e-12 and 500.

    Examples
    --------
    >>> import hubbub as hb
    >>> bits = hb.Unary(hb.Categories(["a", "b", "c"]), p=0.5, q=0.2)
    >>> bits.epsilon
    1.3862943611198908
    >>> bits.matrix()[0].round(2)  # the own bit is the first
    array([0.32, 0.08, 0.08, 0.02, 0.32, 0.08, 0.08, 0.02])
    """

    domain: Domain
    p: Fraction
    q: Fraction

    def __init__(self, domain: Domain, p: Probability, q: Probability) -> None:
        check_domain(domain, Domain, "Unary", DOMAIN_REMEDY)
        object.__setattr__(self, "domain", domain)
        for name, given in (("p", p), ("q", q)):
            object.__setattr__(self, name, check_probability(given, "Unary", name))
        if not 0 < self.q < self.p < 1:
            raise MechanismError(
                "p and q leave nothing to learn, or nothing to hide",
                where="Unary(p=, q=)",
                got=f"p = {self.p}, q = {self.q}",
                expected="0 < q < p < 1",
                remedy="state as p the probability of a one in the value's own bit, as q that in another's",
            )
        check_ratio(self._ratio, "Unary(p=, q=)")

    @property
    def _ratio(self) -> Fraction:
        return self.p * (1 - self.q) / (self.q * (1 - self.p))

    @cached_property
    def epsilon(self) -> float:  # type: ignore[override]  # follows from the probabilities
        """The logarithm of p (1 - q) / (q (1 - p)), rounded up."""
        return check_ratio(self._ratio, "Unary(p=, q=)")

    @property
    def log_bits(self) -> BitLogs:
        """The logarithms of p, 1 - p, q and 1 - q, from the exact fractions."""
        return BitLogs(*(_log(chance) for chance in (self.p, 1 - self.p, self.q, 1 - self.q)))

    @cached_property
    def law(self) -> FractionFlipLaw:
        """A bit for each value, with probabilities exactly as they are written."""
        return FractionFlipLaw(len(self.domain), self.p, self.q)


def _log(chance: Fraction) -> float:
    """Return the logarithm of a fraction, accurate also near 1."""
    if 2 * chance > 1:
        return math.log1p(-float(1 - chance))
    return math.log(chance.numerator) - math.log(chance.denominator)
