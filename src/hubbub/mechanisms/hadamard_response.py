"""Hadamard response: outputs in blocks, and for each value the half of its block where a Hadamard matrix is +1."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel, HadamardBlocksChannel, check_entries
from hubbub.channels.hadamard_sums import parities, signed_sums
from hubbub.client import block_size, default_blocks, response_parameters
from hubbub.core.arrays import Array, Codes, Floats, Positions, as_integer
from hubbub.core.errors import MechanismError
from hubbub.domains import Domain
from hubbub.mechanisms.frequency_oracle import SetValuedOracle, Support
from hubbub.mechanisms.output_spaces import OutputSpace, RangeOutputs
from hubbub.sampling import RandomSource, SetResponseLaw

MIN_GROUP_VALUES = 2  # within a block, for shares to be told apart from its total


class ListedSets(SetValuedOracle):
    """Base of oracles whose outputs are numbered from 0, and any of whose values has a set of `set_size` outputs.

    Outputs in the value's set are e^epsilon times as likely as all others. With s outputs in a set, of K::

        P(z | x) = e^epsilon / W  if z is in the set of x,   1 / W  otherwise,   W = s e^epsilon + K - s
    """

    @property
    @abstractmethod
    def output_count(self) -> int:
        """The number of outputs."""

    @property
    @abstractmethod
    def set_size(self) -> int:
        """The number of outputs in a value's set."""

    @abstractmethod
    def members(self, positions: Positions, places: Positions) -> Positions:
        """Return the outputs at places (from 0) in the sets of values."""

    @abstractmethod
    def holds(self, codes: Codes, positions: Positions) -> NDArray[np.bool_]:
        """Return whether outputs are in the sets of values; both broadcast against each other."""

    @property
    def outputs(self) -> Array:
        """Whole numbers from 0."""
        return np.arange(self.output_count)

    @cached_property
    def output_space(self) -> OutputSpace:
        """Whole numbers from 0."""
        return RangeOutputs(0, self.output_count - 1, type(self).__name__)

    def matrix(self) -> Floats:
        """Return P(z | x).

        Returns
        -------
        numpy.ndarray
            A row for each value of the domain, a column for each output.

        Raises
        ------
        ReportsError
            If the matrix does not fit in memory.
        """
        check_entries(len(self.domain), self.output_count)
        return np.exp(self.log_columns(np.arange(self.output_count)))

    @property
    def _log_member(self) -> float:
        """The log-probability of an output in the value's set."""
        return -math.log(self.set_size + (self.output_count - self.set_size) * math.exp(-self.epsilon))

    @property
    def member_chance(self) -> float:
        """The chance that an output is in the value's set."""
        return self.set_size * math.exp(self._log_member)

    @property
    def answers_in_domain(self) -> bool:
        """Outputs are no values, even if their numbers are."""
        return False

    def log_high(self, codes: Codes) -> Floats:
        """Return the log-probability of an output in the value's set."""
        return np.full(len(codes), self._log_member)

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return the log-probability of outputs in each value's set, and epsilon less of all others."""
        values = np.arange(len(self.domain)) if among is None else among
        return np.where(self.holds(codes[None, :], values[:, None]), 0.0, -self.epsilon) + self._log_member

    def sets(self, codes: Codes) -> NDArray[np.uint8]:
        """Return the values whose sets hold each output."""
        size, step = len(self.domain), max(1, 4_000_000 // len(self.domain))
        packed = np.empty((len(codes), (size + 7) // 8), dtype=np.uint8)
        for first in range(0, len(codes), step):
            part = codes[first : first + step]
            packed[first : first + step] = np.packbits(self.holds(part[:, None], np.arange(size)[None, :]), axis=1)
        return packed

    @cached_property
    def law(self) -> SetResponseLaw:
        """Any output of the value's set, or any at all."""
        outputs, size = self.output_count, self.set_size
        parameters = response_parameters(outputs, Fraction(self.epsilon), size)
        return SetResponseLaw(outputs, size, *parameters, member=self.members)

    def draw(self, positions: Positions, source: RandomSource) -> Codes:
        """Take any output of the value's set, or any at all."""
        kept = -math.expm1(-self.epsilon) * self.member_chance
        member = self.members(positions, source.integers(self.set_size, positions.size))
        any_output = source.integers(self.output_count, positions.size)
        return np.where(source.uniforms(positions.size) < kept, member, any_output)


@dataclass(frozen=True)
class HadamardResponse(ListedSets):
    """Hadamard response: outputs are columns of Hadamard matrices, one matrix for each block of values.

    The values are dealt to B blocks in turn, and each has a row of its own, not the first, in its block's Hadamard
    matrix of size b, the least power of two with enough rows. There are K = B b outputs; the set of a value are the b/2
    columns of its block in which its row is +1::

        P(z | x) = e^epsilon / W  if z is in the set of x,   1 / W  otherwise,   W = (e^epsilon - 1 + 2 B) b / 2

    An output is a whole number below 6k, for k values: a few bits, however many values there are. Counts of outputs
    become counts of values by a fast Walsh-Hadamard transform.

    By default B is the published one, the largest power of two below e^epsilon and 2k.

    Guarantee: epsilon-local differential privacy.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon, positive: smaller is more private.
    blocks
        The number of blocks, a power of two below 2k; None for the best one.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, epsilon is not between 1e-12 and 500, or `blocks` is not a power of two
        from 1 to below twice the number of values.

    Examples
    --------
    >>> import hubbub as hb
    >>> hadamard = hb.HadamardResponse(hb.Integers(0, 99), epsilon=2.0)
    >>> hadamard.blocks, hadamard.output_count, hadamard.set_size
    (4, 128, 16)
    >>> hadamard.privatize([7, 7, 50], rng=1)
    array([ 82, 108,  72])
    """

    domain: Domain
    epsilon: float
    blocks: int | None = None

    def __post_init__(self) -> None:
        self._check()
        values, where = len(self.domain), "HadamardResponse(blocks=)"
        number = default_blocks(values, self.epsilon) if self.blocks is None else self.blocks
        blocks = as_integer(number, MechanismError, where=where, expected="a power of two")
        if not 1 <= blocks < 2 * values or blocks & (blocks - 1):
            most = 1 << ((2 * values - 1).bit_length() - 1)
            what, expected = "the number of blocks is not one of those possible", f"a power of two from 1 to {most}"
            remedy = f"leave blocks out for the best one here ({default_blocks(values, self.epsilon)})"
            raise MechanismError(what, where=where, got=blocks, expected=expected, remedy=remedy)
        object.__setattr__(self, "blocks", blocks)

    @property
    def _b(self) -> int:
        return int(self.blocks or 1)

    @property
    def size(self) -> int:
        """The number of outputs in each block: the size of its Hadamard matrix."""
        return block_size(len(self.domain), self._b)

    @property
    def output_count(self) -> int:
        """The number of outputs: blocks times their size."""
        return self._b * self.size

    @property
    def set_size(self) -> int:
        """Half of a block."""
        return self.size // 2

    def members(self, positions: Positions, places: Positions) -> Positions:
        """Return the columns at places among those where the values' rows are +1."""
        rows = positions // self._b + 1
        bits = rows & -rows
        columns = places + (places & -bits)  # a zero where the row has its lowest one, which makes the parity even
        columns += bits * parities(rows, columns)
        return np.asarray(positions % self._b * self.size + columns)

    def holds(self, codes: Codes, positions: Positions) -> NDArray[np.bool_]:
        """Return whether outputs are in the block of a value, where its row is +1."""
        odd = parities(positions // self._b + 1, codes % self.size)
        return np.asarray((codes // self.size == positions % self._b) & (odd == 0))

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return sums over Hadamard matrices where a matrix would be large."""
        if not self.is_large(codes, among):
            channel = super().encoded_channel(codes, among)
        else:
            channel = self._transform(codes, among, math.exp(-self.epsilon), self.log_high(codes))
        channel.value_groups = self._value_groups(among)
        return channel

    def _transform(self, codes: Codes, among: Positions | None, low: float, log_scale: Floats) -> HadamardBlocksChannel:
        return HadamardBlocksChannel(
            codes, len(self.domain), blocks=self._b, size=self.size, low=low, log_scale=log_scale, among=among
        )

    def _value_groups(self, among: Positions | None) -> Positions | None:
        """Return the blocks of values, numbered; None where some have one value, or there is but one block."""
        blocks = (np.arange(len(self.domain)) if among is None else among) % self._b
        _, group, sizes = np.unique(blocks, return_inverse=True, return_counts=True)
        return None if sizes.size == 1 or sizes.min() < MIN_GROUP_VALUES else group

    # -- shares of values --------------------------------------------------------------------------

    @property
    def support(self) -> Support:
        """The chances that an output votes for the value, and for another one: outputs of other blocks toss a coin.

        Outputs outside a value's block say nothing about it, and count half: so an output of any other value votes for
        it with 1/2, whether in its block or not.
        """
        kept = -math.expm1(-self.epsilon) * self.member_chance
        return Support(0.5 + kept / 2, 0.5)

    def support_counts(self, codes: Codes, counts: Floats) -> Floats:
        """Return for each value the outputs in its set, and half of those outside its block."""
        sent = np.zeros((self._b, self.size))
        sent += np.bincount(codes, weights=counts, minlength=self.output_count).reshape(sent.shape)
        held, _ = signed_sums(sent, np.zeros_like(sent))
        positions = np.arange(len(self.domain))
        blocks = positions % self._b
        outside = float(np.sum(counts)) - sent.sum(axis=1)[blocks]
        return np.asarray(held[blocks, positions // self._b + 1] + outside / 2)

    def share_variance(self, shares: Floats) -> Floats:
        """Return the variances: an output says as much about a value as it is likely to be in the value's block.

        Of all values, the blocks' shares are known; of some, they are taken to be equal.
        """
        kept = 2.0 * (self.support.true - 0.5)  # an output is otherwise anywhere
        inside = np.full(shares.shape, 1.0 / self._b)
        if shares.size == len(self.domain):
            blocks = np.arange(shares.size) % self._b
            inside = np.bincount(blocks, weights=shares, minlength=self._b)[blocks]
        return np.asarray((kept * inside + (1.0 - kept) / self._b) / kept**2 - shares**2)

    def null_variance(self, shares: Floats) -> Floats:
        """Return the variances: values of frequent blocks get more of the outputs, and of their noise."""
        return np.asarray(self.share_variance(shares) + shares**2)

    def _set_sums(self, codes: Codes, numbers: Floats) -> Floats:
        """Return the sums over each output's set, and half of those over all other blocks, for the same votes."""
        of_blocks = np.bincount(np.arange(numbers.size) % self._b, weights=numbers, minlength=self._b)
        outside = (numbers.sum() - of_blocks[codes // self.size]) / 2
        inside = self._transform(codes, None, 0.0, np.zeros(len(codes))).members(numbers)
        return np.asarray(inside + outside)
