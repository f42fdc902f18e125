"""Sketches: one of a few public hashes of the value into buckets, as noisy bits or as one noisy sign."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import BitSketchChannel, Channel, SignSketchChannel, prefers_matrix
from hubbub.channels.hadamard_sums import parities
from hubbub.channels.sketch_sums import SketchChannel
from hubbub.client import (
    DEFAULT_HASHES,
    DEFAULT_SKETCH_BITS,
    MAX_SKETCH_BITS,
    MAX_SKETCH_HASHES,
    flip_parameters,
    response_parameters,
)
from hubbub.core.arrays import Array, Codes, Floats, Positions, as_integer
from hubbub.core.errors import EstimateError, MechanismError
from hubbub.core.packed_bits import ones_in_rows
from hubbub.domains import Domain
from hubbub.mechanisms.base import matrix_too_wide
from hubbub.mechanisms.frequency_oracle import SetValuedOracle, Support
from hubbub.mechanisms.local_hashing import hash_v1
from hubbub.mechanisms.mean_scores import Score
from hubbub.mechanisms.numbered_row_outputs import NumberedRowOutputs
from hubbub.mechanisms.output_spaces import OutputSpace, RangeOutputs
from hubbub.sampling import NUMBER_BYTES, BitFlipLaw, Law, RandomSource, ResponseLaw, row_numbers, with_numbers

CHUNK_BITS = 80_000_000  # of sets, worked on at a time
MAX_TABLE_BUCKETS = 500_000_000  # of all hashes and values (1 GB): more are hashed again each time
BUCKETS_AT_ONCE = 1 << 18  # that are added up together
MAX_LISTED_OUTPUTS = 1 << 16
COST_OF_HASH = 100_000  # bits of sets whose sums take as long as those of one more hash
PRODUCTS_OF_SETS = 8  # that take as long as packing the sets
MAX_SOLVER_STEPS = 500
MAX_COVARIANCE_VALUES = 1_024  # of which the covariance is written out
TRACE_PROBES = 4
SOLVED = 1e-12  # of the right side: what is left of it...
SPARE = 1e6  # ...squared, or so many times as much where rounding prevents more


class Sketch(SetValuedOracle):
    """Base of mechanisms that report about the value's bucket under one of `hashes` public hashes, chosen at random.

    The hashes are version 1 of the hash of `LocalHashing`, with the seeds 0, 1, 2, ... Two values that share a bucket
    under a part c of the hashes are in one set more often than others: an output's set holds y with probability

        a + b sum_x theta_x C_xy,

    with C_xx = 1 and C_xy that part. Unbiased shares are therefore solutions of equations with C.
    """

    hashes: int
    width: int
    width_form: ClassVar[str] = ""  # beyond a whole number

    @property
    @abstractmethod
    def _base(self) -> float:
        """The chance that an output's set holds a value that shares no bucket with the user's: a."""

    @property
    @abstractmethod
    def _gain(self) -> float:
        """What the chance is higher for the user's own value: b."""

    def _check_sizes(self) -> None:
        self._check()
        name = type(self).__name__
        for field, least, most in (("hashes", 1, MAX_SKETCH_HASHES), ("width", 2, MAX_SKETCH_BITS)):
            where, expected = f"{name}({field}=)", f"a whole number from {least} to {most}"
            if field == "width" and self.width_form:
                expected = f"{self.width_form} from {least} to {most}"
            number = as_integer(getattr(self, field), MechanismError, where=where, expected=expected)
            fits = least <= number <= most and not (field == "width" and self.width_form and number & (number - 1))
            if not fits:
                what = f"{field} is out of range" if not least <= number <= most else f"{field} is not a power of two"
                remedy = f"leave {field} out for {DEFAULT_HASHES if field == 'hashes' else DEFAULT_SKETCH_BITS}"
                raise MechanismError(what, where=where, got=number, expected=expected, remedy=remedy)
            object.__setattr__(self, field, number)

    @property
    def answers_in_domain(self) -> bool:
        """Outputs are no values, even if their numbers are."""
        return False

    @abstractmethod
    def hashes_of(self, outputs: object) -> Positions:
        """Return the hashes that outputs are about."""

    @abstractmethod
    def holds(self, codes: Codes, positions: Positions) -> NDArray[np.bool_]:
        """Return for each output whether its set holds a value, one for each output.

        Parameters
        ----------
        codes
            Encoded outputs.
        positions
            A position in the domain for each, or one for all.

        Returns
        -------
        numpy.ndarray
            Booleans.
        """

    def bucket_of(self, hashes: Positions, positions: Positions) -> Positions:
        """Return the buckets of values under hashes; both broadcast against each other.

        Parameters
        ----------
        hashes
            Numbers of hashes, from 0.
        positions
            Positions in the domain, from 0.

        Returns
        -------
        numpy.ndarray
            Numbers of buckets, from 0.
        """
        return bucket_numbers(hashes, positions, self.width)

    @cached_property
    def _table(self) -> NDArray[np.uint16]:
        return self._hashed(np.arange(self.hashes))

    def _hashed(self, hashes: Positions) -> NDArray[np.uint16]:
        table = np.empty((hashes.size, len(self.domain)), dtype=np.uint16)
        positions = np.arange(len(self.domain))
        for row, number in zip(table, hashes, strict=True):
            row[:] = self.bucket_of(number, positions)
        return table

    def buckets(self, hashes: Positions) -> NDArray[np.uint16]:
        """Return the bucket of each value (columns) under hashes (rows).

        Parameters
        ----------
        hashes
            Numbers of hashes, from 0.

        Returns
        -------
        numpy.ndarray
            Numbers of buckets, from 0.
        """
        return self._table[hashes] if self._keeps_table else self._hashed(hashes)

    @property
    def _keeps_table(self) -> bool:
        return self.hashes * len(self.domain) <= MAX_TABLE_BUCKETS

    @abstractmethod
    def _bits_of_sums(self, patterns: int) -> int:
        """Return about how many packed bits take as long as sums by hashes and buckets."""

    @abstractmethod
    def _sums(self, codes: Codes, low: float, log_scale: Floats, among: Positions | None) -> SketchChannel:
        """Return sums by hashes and buckets."""

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return packed sets, or sums by hashes and buckets where these would take longer."""
        bits = len(self.domain) * len(codes)
        if not self.is_large(codes, among) or prefers_matrix(bits, self._bits_of_sums(len(codes))):
            return super().encoded_channel(codes, among)
        return self._sums(codes, math.exp(-self.epsilon), self.log_high(codes), among)

    def support_counts(self, codes: Codes, counts: Floats) -> Floats:
        """Add up packed sets, or sums by hashes and buckets where these would take longer."""
        if prefers_matrix(PRODUCTS_OF_SETS * len(self.domain) * len(codes), self._bits_of_sums(len(codes))):
            return super().support_counts(codes, counts)
        return self._sums(codes, 0.0, np.zeros(len(codes)), None).holders(counts)

    @property
    def support(self) -> Support:
        """The chances for the true value, and for another one under random hashes."""
        return Support(self._base + self._gain, self._base + self._gain / self.width)

    def _shared(self, shares: Floats) -> Floats:
        """Return C @ shares."""
        total = np.zeros(shares.size)
        step = max(1, BUCKETS_AT_ONCE // shares.size)
        for first in range(0, self.hashes, step):
            table = self.buckets(np.arange(first, min(first + step, self.hashes)))
            rows = table + self.width * np.arange(len(table))[:, None]
            held = np.bincount(rows.ravel(), np.broadcast_to(shares, rows.shape).ravel(), self.width * len(table))
            total += held[rows].sum(axis=0)
        return total / self.hashes

    def unbiased_shares(self, held: Floats, total: float) -> Floats:
        """Solve the equations with C by conjugate gradients; no two values need have different buckets in all hashes.

        Parameters
        ----------
        held
            What `support_counts` returns.
        total
            The number of outputs.

        Returns
        -------
        numpy.ndarray
            Shares, which may be negative.

        Raises
        ------
        EstimateError
            If the hashes cannot tell all values apart.
        """
        solution = self._solution((held / total - self._base) / self._gain)
        if solution is not None and self._tells_values_apart:
            return solution
        raise EstimateError(
            "these reports have no inverse: the hashes cannot tell all values apart",
            where=type(self).__name__,
            got=f"{self.hashes} hashes into {self.width} buckets, for {len(self.domain):,} values",
            expected="hashes (width - 1) far above the number of values",
            remedy='use more hashes, or method="ibu" or "mle"; several distributions may fit equally well',
        )

    def null_variance(self, shares: Floats) -> Floats:
        """Return the variances, with the noise that solving for the collisions adds.

        An output's set holds x or not: a = 1 or 0. Over hashes and noise, the second moments of (a - base) / gain are

            M = base (1 - base) / gain^2 C + (1 - 2 base) / gain C',

        where C'(x, y) is the mean over hashes of the share of the bucket that x and y are in, 0 if they are in two. So
        the variance is the diagonal of C^-1 M C^-1. Of very many values it is taken to be the same for all, with shares
        of buckets of 1 / width: then M is a multiple of C, and C^-1 M C^-1 one of C^-1.
        """
        size, flip = shares.size, self._base * (1.0 - self._base) / self._gain**2
        own = (1.0 - 2.0 * self._base) / self._gain
        if size > MAX_COVARIANCE_VALUES:
            return np.full(size, (flip + own / self.width) * self._mean_of_inverse)
        from scipy import sparse

        together, beside = np.zeros((size, size)), np.zeros((size, size))
        step = max(1, BUCKETS_AT_ONCE // size)
        for first in range(0, self.hashes, step):
            table = self.buckets(np.arange(first, min(first + step, self.hashes))).astype(np.int64)
            rows = (table + self.width * np.arange(len(table))[:, None]).ravel()
            columns = np.tile(np.arange(size), len(table))
            held = np.maximum(np.bincount(rows, np.tile(shares, len(table)), self.width * len(table)), 0.0)
            holders = sparse.csr_array((np.ones(rows.size), (rows, columns)), shape=(held.size, size))
            together += (holders.T @ holders).toarray()
            beside += (holders.T @ (holders * held[:, None])).toarray()
        inverse = np.linalg.pinv(together, hermitian=True)
        moments = flip * together + own * beside
        return np.asarray(self.hashes * ((inverse @ moments) * inverse).sum(axis=1))

    @cached_property
    def _mean_of_inverse(self) -> float:
        """The mean of the diagonal of C^-1, from its products with signs that look random: hashes that are not sent."""
        probes = np.arange(self.hashes, self.hashes + TRACE_PROBES)[:, None]
        signs = 2.0 * bucket_numbers(probes, np.arange(len(self.domain)), 2) - 1.0
        solved = [self._solution(row) for row in signs]
        return float(np.mean([row @ own / row.size for row, own in zip(signs, solved, strict=True) if own is not None]))

    @cached_property
    def _tells_values_apart(self) -> bool:
        """Whether C has an inverse: then equations with any right side have a solution, also with an irregular one."""
        if self.hashes * (self.width - 1) + 1 < len(self.domain):
            return False
        return self._solution(np.sin(np.arange(1.0, len(self.domain) + 1.0) ** 2)) is not None

    def mean_score(self) -> Score | None:
        """Return the score that the equations with C make unbiased; None if the hashes join values too often."""
        places = self.domain.places
        if places is None:
            return None
        centre = float(places.mean())
        numbers = self._solution((places - centre) / self._gain)
        if numbers is None:
            return None
        start = centre - self._base * float(numbers.sum())
        return lambda codes: start + self._set_sums(codes, numbers)

    def _solution(self, right: Floats) -> Floats | None:
        """Return the solution of C v = right by conjugate gradients, None if there is none or it takes too long."""
        solution, rest = np.zeros(right.size), right.copy()
        direction, size = rest.copy(), float(rest @ rest)
        goal = SOLVED**2 * size
        for _ in range(MAX_SOLVER_STEPS):
            if size <= goal:
                break
            turned = self._shared(direction)
            told = float(direction @ turned)
            if told <= 0.0:
                return None
            solution += size / told * direction
            rest -= size / told * turned
            before, size = size, float(rest @ rest)
            direction = rest + size / before * direction
        return solution if size <= goal * SPARE else None


def bucket_numbers(hashes: Positions, positions: Positions, width: int) -> Positions:
    """Return the buckets of values under hashes, whose numbers are the seeds; both broadcast against each other."""
    return np.asarray(hash_v1(hashes.astype(np.uint64), positions, width).astype(np.int64))


@dataclass(frozen=True)
class SketchLaw(Law):
    """A random hash, and noisy bits for its buckets."""

    hashes: int
    bits: BitFlipLaw

    def draw(self, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Draw a hash, then a bit for every bucket."""
        numbers = source.integers(self.hashes, positions.size)
        own = bucket_numbers(numbers, positions, self.bits.values)
        return with_numbers(numbers, self.bits.draw(own, source))


@dataclass(frozen=True)
class SignSketchLaw(Law):
    """A random hash, a random row of a Hadamard matrix, and whether its entry for the bucket is -1, randomized."""

    hashes: int
    width: int
    response: ResponseLaw  # of two answers

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Draw a hash and a row, then the sign."""
        numbers, rows = source.integers(self.hashes, positions.size), source.integers(self.width, positions.size)
        own = bucket_numbers(numbers, positions, self.width)
        return 2 * (numbers * self.width + rows) + self.response.draw(parities(rows, own), source)


@dataclass(frozen=True)
class CountMeanSketch(Sketch):
    """Count mean sketch: a noisy bit for each bucket of one of a few public hashes.

    With a hash h out of `hashes`, any of them equally likely, and a bit for each of `width` buckets that is 1 for the
    bucket h(x) of the value alone, the report is h and the bits, each of which is wrong with probability
    1 / (1 + e^(epsilon/2)). Values that share a bucket are told apart by other hashes.

    Reports have `width` bits however many values there are. Under `Rappor`, which it is with as many buckets as values
    and no collisions, they would have one for each value.

    Guarantee: epsilon-local differential privacy. Two values differ in two bits, or in none where they share a bucket.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon, positive: smaller is more private.
    hashes
        How many hashes there are, up to 65,536; more of them leave less of the error that collisions cause.
    width
        The number of buckets of a hash, from 2 to 65,536.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, epsilon is not between 1e-12 and 500, or `hashes` or `width` are out of
        range.

    Examples
    --------
    >>> import hubbub as hb
    >>> sketch = hb.CountMeanSketch(hb.Integers(0, 999), epsilon=2.0, hashes=64, width=16)
    >>> sent = sketch.privatize([7, 500], rng=1)
    >>> sketch.hashes_of(sent)
    array([63, 38])
    >>> sketch.output_space.write(sent[0])
    '63:0x8100'
    """

    domain: Domain
    epsilon: float
    hashes: int = DEFAULT_HASHES
    width: int = DEFAULT_SKETCH_BITS

    def __post_init__(self) -> None:
        self._check_sizes()

    @property
    def _base(self) -> float:
        """The chance that a bit is wrong."""
        return 1 / (1 + math.exp(self.epsilon / 2))

    @property
    def _gain(self) -> float:
        return 1 - 2 * self._base

    @property
    def outputs(self) -> Array | None:
        """All rows of bits of all hashes, where there are at most 65,536; None otherwise."""
        if self.hashes << self.width > MAX_LISTED_OUTPUTS:
            return None
        bits = (np.arange(1 << self.width)[:, None] >> np.arange(self.width)) & 1
        rows = np.packbits(bits.astype(bool), axis=1)
        codes = with_numbers(np.repeat(np.arange(self.hashes), len(rows)), np.tile(rows, (self.hashes, 1)))
        return self.output_space.decode(codes)

    @cached_property
    def output_space(self) -> NumberedRowOutputs:
        """The hash and its bits."""
        return NumberedRowOutputs("hash", self.hashes, self.width, "CountMeanSketch")

    def hashes_of(self, outputs: object) -> Positions:
        """Return the hashes that outputs are about.

        Parameters
        ----------
        outputs
            Outputs of this mechanism, as `privatize` returns them.

        Returns
        -------
        numpy.ndarray
            Numbers of hashes, from 0.

        Raises
        ------
        OutputError
            If the mechanism can never send one of them.
        """
        return np.asarray(row_numbers(self.output_space.encode(outputs)))

    def matrix(self) -> Floats:
        """Return P(z | x) for `outputs`.

        Returns
        -------
        numpy.ndarray
            A row for each value of the domain, a column for each output.

        Raises
        ------
        MechanismError
            If there are more than 65,536 outputs.
        """
        outputs = self.outputs
        if outputs is None:
            raise matrix_too_wide("CountMeanSketch", f"{self.hashes} x 2^{self.width}")
        return np.exp(self.log_columns(self.output_space.encode(outputs)))

    def holds(self, codes: Codes, positions: Positions) -> NDArray[np.bool_]:
        """Return for each output whether the bit of a value's bucket is 1."""
        buckets = self.bucket_of(row_numbers(codes), positions)
        bits = codes[np.arange(len(codes)), NUMBER_BYTES + buckets // 8] >> (7 - buckets % 8).astype(np.uint8)
        return np.asarray(bits & 1, dtype=np.bool_)

    def log_high(self, codes: Codes) -> Floats:
        """Return the log-likelihood of the bits for values whose bucket has a one."""
        ones = ones_in_rows(codes[:, NUMBER_BYTES:])
        right, wrong = -math.log1p(math.exp(-self.epsilon / 2)), math.log(self._base)
        return np.asarray((ones - 1) * wrong + (self.width + 1 - ones) * right - math.log(self.hashes))

    def sets(self, codes: Codes) -> NDArray[np.uint8]:
        """Return the values whose buckets have a one."""
        from hubbub.channels.compiled_loops import pack_buckets

        size, numbers, bits = len(self.domain), row_numbers(codes), np.ascontiguousarray(codes[:, NUMBER_BYTES:])
        if self._keeps_table:
            return np.asarray(pack_buckets(size * len(codes), bits, numbers, self._table), dtype=np.uint8)
        packed = np.empty((len(codes), (size + 7) // 8), dtype=np.uint8)
        step = max(1, CHUNK_BITS // (16 * size))
        for first in range(0, len(codes), step):
            part = slice(first, first + step)
            sent, hash_of = np.unique(numbers[part], return_inverse=True)
            packed[part] = pack_buckets(size * len(hash_of), bits[part], hash_of, self._hashed(sent))
        return packed

    def _bits_of_sums(self, patterns: int) -> int:
        used = min(patterns, self.hashes)
        return used * (8 * len(self.domain) + COST_OF_HASH) + self.width * patterns

    def _sums(self, codes: Codes, low: float, log_scale: Floats, among: Positions | None) -> BitSketchChannel:
        sent, hash_of = np.unique(row_numbers(codes), return_inverse=True)
        bits, table = np.ascontiguousarray(codes[:, NUMBER_BYTES:]), self.buckets(sent)
        return BitSketchChannel(hash_of, bits, table, self.width, low=low, log_scale=log_scale, among=among)

    @cached_property
    def law(self) -> SketchLaw:
        """The chance that a bit is wrong is rounded up."""
        width, one = flip_parameters(Fraction(self.epsilon) / 2)
        return SketchLaw(self.hashes, BitFlipLaw(self.width, width, (1 << width) - one, one))

    def draw(self, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Draw a hash, then a bit for every bucket."""
        numbers = source.integers(self.hashes, positions.size)
        own = self.bucket_of(numbers, positions)
        rows = np.empty((positions.size, (self.width + 7) // 8), dtype=np.uint8)
        step = max(1, CHUNK_BITS // (64 * self.width))
        for first in range(0, positions.size, step):
            mine = own[first : first + step]
            wrong = source.uniforms(mine.size * self.width).reshape(mine.size, -1) < self._base
            wrong[np.arange(mine.size), mine] ^= True
            rows[first : first + step] = np.packbits(wrong, axis=1)
        return with_numbers(numbers, rows)


@dataclass(frozen=True)
class HadamardCountMeanSketch(Sketch):
    """Count mean sketch in one bit: a noisy entry of a Hadamard matrix, for the value's bucket under a public hash.

    With a hash h out of `hashes` and a row l of a Hadamard matrix of size `width`, any of them equally likely, the sign
    of the matrix in row l and column h(x) is sent as it is with probability e^epsilon / (1 + e^epsilon), and otherwise
    the other one. An output is a whole number: 2 (h width + l), and 1 more for the sign -1.

    Only the sign depends on the value; hash and row may be public. Errors are those of `CountMeanSketch`, or larger
    where epsilon is.

    Guarantee: epsilon-local differential privacy.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon, positive: smaller is more private.
    hashes
        How many hashes there are, up to 65,536; more of them leave less of the error that collisions cause.
    width
        The number of buckets of a hash: a power of two up to 65,536.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, epsilon is not between 1e-12 and 500, or `hashes` or `width` are out of
        range.

    Examples
    --------
    >>> import hubbub as hb
    >>> sketch = hb.HadamardCountMeanSketch(hb.Integers(0, 999), epsilon=2.0)
    >>> sent = sketch.privatize([7, 500], rng=1)
    >>> sent
    array([130970,  52645])
    >>> sketch.hashes_of(sent)
    array([255, 102])
    """

    domain: Domain
    epsilon: float
    hashes: int = DEFAULT_HASHES
    width: int = DEFAULT_SKETCH_BITS
    width_form: ClassVar[str] = "a power of two"

    def __post_init__(self) -> None:
        self._check_sizes()

    @property
    def _kept(self) -> float:
        """The chance that the sign is right."""
        return 1 / (1 + math.exp(-self.epsilon))

    @property
    def _base(self) -> float:
        """Columns of different buckets have the same sign in half of the rows."""
        return 0.5

    @property
    def _gain(self) -> float:
        return self._kept - 0.5

    def hashes_of(self, outputs: object) -> Positions:
        """Return the hashes that outputs are about.

        Parameters
        ----------
        outputs
            Outputs of this mechanism, as `privatize` returns them.

        Returns
        -------
        numpy.ndarray
            Numbers of hashes, from 0.

        Raises
        ------
        OutputError
            If the mechanism can never send one of them.
        """
        return np.asarray(self.output_space.encode(outputs) // (2 * self.width))

    @property
    def output_count(self) -> int:
        """The number of outputs: two for each hash and row."""
        return 2 * self.hashes * self.width

    @property
    def outputs(self) -> Array | None:
        """Whole numbers from 0, where there are at most 65,536; None otherwise."""
        return np.arange(self.output_count) if self.output_count <= MAX_LISTED_OUTPUTS else None

    @cached_property
    def output_space(self) -> OutputSpace:
        """Whole numbers from 0."""
        return RangeOutputs(0, self.output_count - 1, "HadamardCountMeanSketch")

    def matrix(self) -> Floats:
        """Return P(z | x).

        Returns
        -------
        numpy.ndarray
            A row for each value of the domain, a column for each output.

        Raises
        ------
        MechanismError
            If there are more than 65,536 outputs.
        """
        outputs = self.outputs
        if outputs is None:
            raise matrix_too_wide("HadamardCountMeanSketch", f"{self.output_count:,}")
        return np.exp(self.log_columns(self.output_space.encode(outputs)))

    def holds(self, codes: Codes, positions: Positions) -> NDArray[np.bool_]:
        """Return for each output whether a value's bucket has the sign."""
        numbers, rows, signs = self.parts_of(codes)
        return np.asarray(parities(rows, self.bucket_of(numbers, positions)) == signs)

    def log_high(self, codes: Codes) -> Floats:
        """Return the log-likelihood for values whose bucket has the sign."""
        return np.full(len(codes), math.log(self._kept) - math.log(self.hashes) - math.log(self.width))

    def parts_of(self, codes: Codes) -> tuple[Positions, Positions, Positions]:
        """Return the hash, the row, and the sign (0 for +1, 1 for -1) of encoded outputs.

        Parameters
        ----------
        codes
            Encoded outputs.

        Returns
        -------
        tuple
            Three arrays.
        """
        return codes // (2 * self.width), codes // 2 % self.width, codes % 2

    def sets(self, codes: Codes) -> NDArray[np.uint8]:
        """Return the values whose buckets have the sign."""
        size = len(self.domain)
        numbers, rows, signs = self.parts_of(codes)
        step = max(1, CHUNK_BITS // (64 * size))
        packed = np.empty((len(codes), (size + 7) // 8), dtype=np.uint8)
        for first in range(0, len(codes), step):
            part = slice(first, first + step)
            buckets = self.buckets(numbers[part]).astype(np.int64)
            packed[part] = np.packbits(parities(rows[part, None], buckets) == signs[part, None], axis=1)
        return packed

    def _bits_of_sums(self, patterns: int) -> int:
        return 8 * min(patterns, self.hashes) * (len(self.domain) + 4 * self.width)

    def _sums(self, codes: Codes, low: float, log_scale: Floats, among: Positions | None) -> SignSketchChannel:
        numbers, rows, signs = self.parts_of(codes)
        sent, hash_of = np.unique(numbers, return_inverse=True)
        table = self.buckets(sent)
        return SignSketchChannel(hash_of, rows, signs, table, self.width, low=low, log_scale=log_scale, among=among)

    @cached_property
    def law(self) -> SignSketchLaw:
        """The chance of the wrong sign is rounded up."""
        parameters = response_parameters(2, Fraction(self.epsilon))
        return SignSketchLaw(self.hashes, self.width, ResponseLaw(2, *parameters))

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Draw a hash and a row, then the sign."""
        numbers, rows = source.integers(self.hashes, positions.size), source.integers(self.width, positions.size)
        wrong = source.uniforms(positions.size) >= self._kept
        signs = parities(rows, self.bucket_of(numbers, positions)) ^ wrong
        return 2 * (numbers * self.width + rows) + signs
