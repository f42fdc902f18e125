"""dBitFlip: answers about a few buckets of values, drawn once and repeated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hubbub.channels import AskedBitsChannel, Channel
from hubbub.client import asked_parameters
from hubbub.core.arrays import Array, Codes, Floats, Positions, as_integer
from hubbub.core.errors import MechanismError, OutputError, shorten
from hubbub.core.packed_bits import ones_in_rows
from hubbub.domains import Domain
from hubbub.mechanisms.base import matrix_too_wide
from hubbub.mechanisms.longitudinal import Longitudinal
from hubbub.mechanisms.mean_scores import Score, support_score
from hubbub.mechanisms.output_spaces import OutputSpace
from hubbub.mechanisms.packed_outputs import BitRowOutputs
from hubbub.mechanisms.parameters import DOMAIN_REMEDY, check_domain, check_epsilon
from hubbub.sampling import AskedBitsLaw, BitFlipLaw

MAX_LISTED_OUTPUTS = 65_536
UNPACKED_BITS = 40_000_000  # of answers, worked on at a time


class AskedBitsOutputs(OutputSpace):
    """Two packed rows of bits, one behind the other: which buckets were asked, and the ones among them."""

    def __init__(self, buckets: int, asked: int, mechanism: str) -> None:
        self._buckets, self._asked, self._mechanism = buckets, asked, mechanism
        self._width = (buckets + 7) // 8
        self._rows = BitRowOutputs(16 * self._width, mechanism)

    def encode(self, outputs: object) -> NDArray[np.uint8]:
        """Pack, and check that as many buckets were asked as everywhere, and that no other has a one."""
        rows = self._rows.encode(outputs)
        asked, ones = rows[:, : self._width], rows[:, self._width :]
        padding = np.packbits(np.ones(self._buckets, dtype=bool))
        odd = (ones_in_rows(asked) != self._asked) | (ones & ~asked).any(axis=1)
        odd |= (asked & ~padding).any(axis=1)
        if odd.any():
            place = int(np.argmax(odd))
            raise OutputError(
                "not answers about as many buckets as the study says",
                where=f"{self._mechanism}, outputs, position {place}",
                got=shorten(self.write(rows[place])),
                expected=f"{self._asked} of {self._buckets} bits for what was asked, and ones among these alone",
                remedy="check buckets and bits of the study; send what was asked, then the answers",
                code="wrong-bits",
            )
        return rows

    @property
    def code_type(self) -> np.dtype[Any]:
        """Bytes."""
        return self._rows.code_type

    @property
    def code_width(self) -> int:
        """The number of bytes."""
        return 2 * self._width

    def decode(self, codes: Codes) -> Array:
        """Return the packed rows."""
        return codes

    def parse(self, text: str) -> object:
        """Return packed rows from hexadecimal digits (0x may come first)."""
        return self._rows.parse(text)

    def read(self, entry: object) -> object:
        """Return packed rows from a text or bytes."""
        return self._rows.read(entry)

    def write(self, output: object) -> str:
        """Return hexadecimal digits."""
        return "0x" + np.asarray(output, dtype=np.uint8).tobytes().hex()


@dataclass(frozen=True)
class DBitFlip(Longitudinal):
    """dBitFlip with memory (dBitFlipPM): noisy answers about a few buckets of values, drawn once and repeated.

    Values fall into `buckets` buckets in their order, as many into each as possible: value number x of k, counted from
    0, into bucket floor(x buckets / k). The device draws which `bits` of the buckets it answers about, any of them with
    the same probability, and keeps that for good. For each it draws a bit once: whether the value is in that bucket,
    right with probability e^(epsilon/2) / (1 + e^(epsilon/2)). With one bit alone, in which two values differ, it is
    e^epsilon / (1 + e^epsilon): the published e^(epsilon/2) spends half of what it says there. Every report repeats the
    same answers. Outputs are packed rows (`answers` unpacks them).

    Guarantee: `epsilon`-local differential privacy for any number of reports about one value, because only the first
    one tells anything. **If the value changes**, answers stay while it is in the same bucket, and all values whose
    bucket was not asked share their answers, so that all reports spend at most min(bits + 1, buckets) times epsilon
    (`spent_over_values`). That the bucket changed, and when, shows wherever the answers do.

    Values in one bucket cannot be told apart, whatever the number of users; `identify` says so.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon of all reports about one value together.
    buckets
        The number of buckets, from 2; None for one for each value.
    bits
        About how many of them each person answers, from 1; None for all. Fewer make reports less accurate, and
        changing values less costly.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, epsilon is not between 1e-12 and 500, or `buckets` or `bits` are out of
        range.

    Examples
    --------
    >>> import hubbub as hb
    >>> usage = hb.DBitFlip(hb.Integers(0, 23), epsilon=2.0, buckets=8, bits=3)
    >>> sent = usage.privatize([7], rng=3)
    >>> usage.answers(sent)  # -1 where nothing was asked
    array([[ 0,  0,  0, -1, -1, -1, -1, -1]], dtype=int8)
    >>> usage.spent(1000), usage.spent_over_values(24)
    (2.0, 8.0)
    """

    domain: Domain
    epsilon: float
    buckets: int | None = None
    bits: int | None = None
    full_support: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_domain(self.domain, Domain, "DBitFlip", DOMAIN_REMEDY)
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon, "DBitFlip"))
        self._check_count("buckets", 2, len(self.domain), "values", "one for each value")
        self._check_count("bits", 1, self._b, "buckets", "all of them")

    def _check_count(self, name: str, low: int, high: int, of: str, default: str) -> None:
        where, given = f"DBitFlip({name}=)", getattr(self, name)
        count = high if given is None else as_integer(given, MechanismError, where=where, expected="a whole number")
        if not low <= count <= high:
            raise MechanismError(
                f"{name} is out of range",
                where=where,
                got=count,
                expected=f"from {low} to {high}, the number of {of}",
                remedy=f"leave {name} out for {default}",
            )
        object.__setattr__(self, name, count)

    @property
    def _b(self) -> int:
        return int(self.buckets or 2)

    @property
    def _d(self) -> int:
        return int(self.bits or 1)

    @property
    def first(self) -> float:  # type: ignore[override]
        """The epsilon of one report: that of all."""
        return self.epsilon

    def _told(self, reports: int) -> float:  # noqa: ARG002
        """Return epsilon: further reports repeat the first one."""
        return self.epsilon

    @property
    def _most_responses(self) -> int:
        """One for each bucket that was asked, and one for all others."""
        return min(self._d + 1, self._b)

    # -- likelihoods ---------------------------------------------------------------------------------

    @property
    def nats(self) -> float:
        """What one answer tells: half of epsilon, or all of it where there is but one."""
        return self.epsilon / min(2, self._d)

    def bucket_of(self, positions: Positions) -> Positions:
        """Return the buckets of values, by their positions in the domain.

        Parameters
        ----------
        positions
            Positions in the domain, from 0.

        Returns
        -------
        numpy.ndarray
            Numbers of buckets, from 0.
        """
        return positions * self._b // len(self.domain)

    def answers(self, outputs: object) -> NDArray[np.int8]:
        """Return the answers in some outputs.

        Parameters
        ----------
        outputs
            Outputs of this mechanism, as `privatize` returns them.

        Returns
        -------
        numpy.ndarray
            A row for each output, a column for each bucket: 1 or 0 where it was asked, -1 elsewhere.

        Raises
        ------
        OutputError
            If the mechanism can never send one of them.
        """
        asked, ones = self.answered(self.output_space.encode(outputs))
        return np.where(asked, ones.astype(np.int8), np.int8(-1))

    def answered(self, codes: Codes) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return for encoded outputs which buckets were asked, and which have a one.

        Parameters
        ----------
        codes
            Encoded outputs.

        Returns
        -------
        tuple
            Two arrays with a row for each output, and a column for each bucket.
        """
        asked, ones = (np.unpackbits(rows, axis=1, count=self._b).astype(bool) for rows in np.split(codes, 2, axis=1))
        return asked, ones

    def counts_by_bucket(self, codes: Codes, counts: Floats) -> tuple[Floats, Floats]:
        """Return how many outputs answer about each bucket, and how many of these have a one there.

        Parameters
        ----------
        codes
            Encoded outputs.
        counts
            How often each of them was sent.

        Returns
        -------
        tuple
            Two arrays with a number for each bucket.
        """
        about, with_one = np.zeros(self._b), np.zeros(self._b)
        step = max(1, UNPACKED_BITS // self._b)
        for first in range(0, len(codes), step):
            part = slice(first, first + step)
            asked, ones = self.answered(codes[part])
            about += counts[part] @ asked
            with_one += counts[part] @ ones
        return about, with_one

    @property
    def outputs(self) -> Array | None:
        """All answers about all choices of buckets, where there are at most 65,536; None otherwise."""
        if math.comb(self._b, self._d) << self._d > MAX_LISTED_OUTPUTS:
            return None
        places = np.array(list(combinations(range(self._b), self._d)))
        bits = (np.arange(1 << self._d)[:, None] >> np.arange(self._d)) & 1
        rows = np.zeros((len(places), len(bits), 2, self._b), dtype=bool)
        which = np.arange(len(places))[:, None, None], np.arange(len(bits))[:, None]
        rows[*which, 0, places[:, None, :]] = True
        rows[*which, 1, places[:, None, :]] = bits.astype(bool)
        return np.packbits(rows, axis=-1).reshape(len(places) * len(bits), -1)

    @cached_property
    def output_space(self) -> OutputSpace:
        """Which buckets were asked, and the ones."""
        return AskedBitsOutputs(self._b, self._d, "DBitFlip")

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
            raise matrix_too_wide("DBitFlip", f"C({self._b}, {self._d}) 2^{self._d}")
        return np.exp(self.log_columns(outputs))

    def _log_of_others(self, codes: Codes) -> Floats:
        """Return the log-likelihood for values whose bucket was not asked."""
        right = -math.log1p(math.exp(-self.nats))
        ones: Positions = ones_in_rows(codes[:, codes.shape[1] // 2 :])
        choices = math.lgamma(self._b + 1) - math.lgamma(self._d + 1) - math.lgamma(self._b - self._d + 1)
        return np.asarray(self._d * right - ones * self.nats - choices, dtype=np.float64)

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return the log-likelihoods: an answer about the value's own bucket is worth `nats`, for or against it."""
        asked, ones = self.answered(codes)
        told = np.where(asked, np.where(ones, self.nats, -self.nats), 0.0).T
        own = self.bucket_of(np.arange(len(self.domain)) if among is None else among)
        return np.asarray(told[own] + self._log_of_others(codes), dtype=np.float64)

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return sums over packed rows of buckets where a matrix would be large."""
        if not self.is_large(codes, among):
            return super().encoded_channel(codes, among)
        asked, ones = np.split(codes, 2, axis=1)
        return AskedBitsChannel(
            asked,
            ones,
            buckets=self._b,
            bucket_of=self.bucket_of(np.arange(len(self.domain)) if among is None else among),
            nats=self.nats,
            log_scale=self._log_of_others(codes) + self.nats,
        )

    def device_marks(self, codes: Codes) -> Positions:
        """Return numbers that only equal outputs share: a device repeats its answers."""
        return np.unique(codes, axis=0, return_inverse=True)[1].ravel()

    def joint_log_columns(self, codes: Codes, repeats: sparse.csr_array, among: Positions | None = None) -> Floats:
        """Return log P(all outputs of a user | value): equal ones count once.

        Other answers of the same user come from a device that lost its memory, or from another one.
        """
        once = sparse.csr_array((np.ones(repeats.nnz), repeats.indices, repeats.indptr), shape=repeats.shape)
        return np.asarray(once @ self.log_columns(codes, among).T).T

    def mean_score(self) -> Score | None:
        """Return the score that the answers make unbiased; None where several values share a bucket."""
        places = self.domain.places
        if places is None or self._b < len(places):
            return None
        right = 1.0 / (1.0 + math.exp(-self.nats))

        def sums(codes: Codes, numbers: Floats) -> Floats:
            asked, ones = self.answered(codes)
            return np.asarray((ones - (1.0 - right) * asked) @ numbers * (self._b / self._d))

        return support_score(places, right, 1.0 - right, sums)

    @cached_property
    def law(self) -> AskedBitsLaw:  # type: ignore[override]
        """The chance of a wrong answer is rounded up."""
        numbers = asked_parameters(Fraction(self.epsilon), self._d)
        return AskedBitsLaw(len(self.domain), self._d, BitFlipLaw(self._b, **numbers))
