"""Local hashing: report a noisy hash of the value under a random seed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel, HashedSetChannel, prefers_matrix
from hubbub.channels.bit_sets import GOLDEN
from hubbub.client import MAX_BUCKETS, default_buckets, response_parameters
from hubbub.core.arrays import Codes, Floats, Positions, as_integer
from hubbub.core.errors import MechanismError
from hubbub.domains import Domain
from hubbub.mechanisms.frequency_oracle import SetValuedOracle, Support
from hubbub.mechanisms.output_spaces import OutputSpace
from hubbub.mechanisms.packed_outputs import HashedOutputs
from hubbub.sampling import Law, RandomSource, ResponseLaw

MAX_SET_BITS = 8_000_000_000  # 1 GB: larger sets are not kept, but hashed again each time


def mix_words(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit words: the finalizer of SplitMix64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def hash_v1(seeds: NDArray[np.uint64], positions: Positions, buckets: int) -> NDArray[np.uint64]:
    """Return the bucket of each position under each seed: version 1 of the hash, which never changes.

    With all arithmetic modulo 2^64 and G = 0x9E3779B97F4A7C15::

        h = mix(mix(seed + G) + (position + 1) G),   bucket = ((h >> 32) * buckets) >> 32

    where mix is the finalizer of SplitMix64. Positions count the domain's values from 0. Seeds and
    positions broadcast against each other.
    """
    golden = np.uint64(GOLDEN)
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is meant; NumPy warns of it for single numbers
        keys = mix_words(np.asarray(seeds, dtype=np.uint64) + golden)
        steps = (np.asarray(positions).astype(np.uint64) + np.uint64(1)) * golden
        return ((mix_words(keys + steps) >> np.uint64(32)) * np.uint64(buckets)) >> np.uint64(32)


@dataclass(frozen=True)
class HashedResponseLaw(Law):
    """A random seed, and randomized response on the bucket that the value hashes to."""

    response: ResponseLaw

    def draw(self, positions: Positions, source: RandomSource) -> NDArray[np.uint64]:
        """Draw a seed, hash, and randomize the bucket."""
        seeds = source.words(positions.size)
        own = hash_v1(seeds, positions, self.response.values).astype(np.int64)
        return np.stack([seeds, self.response.draw(own, source).astype(np.uint64)], axis=1)


@dataclass(frozen=True)
class LocalHashing(SetValuedOracle):
    """Local hashing: hash the value into a few buckets with a random seed, and randomize the bucket by g-RR.

    With g buckets and h the hash under the user's seed (`hash_v1`)::

        P(b | x, seed) = e^epsilon / (e^epsilon + g - 1)   if b = h(x)
                         1 / (e^epsilon + g - 1)           otherwise

    The seed is independent of the value, so that likelihoods are conditional on it. By default
    g = round(e^epsilon) + 1 (OLH); ``buckets=2`` is BLH. Outputs are a structured array (seed, bucket).

    Guarantee: epsilon-local differential privacy.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon, positive: smaller is more private.
    buckets
        The number of buckets, from 2; None for round(e^epsilon) + 1.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, epsilon is not between 1e-12 and 500, or `buckets` is not from 2 to 2^31.

    Examples
    --------
    >>> import hubbub as hb
    >>> hashed = hb.LocalHashing(hb.Integers(0, 99), epsilon=1.0)
    >>> hashed.buckets
    4
    >>> hashed.privatize([7], rng=0)
    array([(11749869230777074271, 0)], dtype=[('seed', '<u8'), ('bucket', '<u4')])
    """

    domain: Domain
    epsilon: float
    buckets: int | None = None
    best_name: ClassVar[str] = "OLH"  # in the literature, with the default number of buckets
    binary_name: ClassVar[str] = "BLH"  # with two

    def __post_init__(self) -> None:
        self._check()
        self._check_buckets(default_buckets(self.epsilon) if self.buckets is None else self.buckets)

    def _check_buckets(self, buckets: object) -> None:
        where = f"{type(self).__name__}(buckets=)"
        number = as_integer(buckets, MechanismError, where=where, expected="a whole number from 2")
        if not 2 <= number <= MAX_BUCKETS:
            what, expected = "the number of buckets is out of range", f"from 2 to {MAX_BUCKETS}"
            remedy = f"leave buckets out for the best number ({self.best_name}), or use 2 ({self.binary_name})"
            raise MechanismError(what, where=where, got=number, expected=expected, remedy=remedy)
        object.__setattr__(self, "buckets", number)

    @property
    def _g(self) -> int:
        return int(self.buckets or 2)

    @property
    def _keep(self) -> float:
        """P(b = h(x))."""
        return 1 / (1 + (self._g - 1) * math.exp(-self.log_ratio))

    @property
    def support(self) -> Support:
        """The true value's bucket, and 1/g for another value under a random seed."""
        return Support(self._keep, 1 / self._g)

    @property
    def outputs(self) -> None:
        """There are 2^64 seeds: outputs are not listed."""
        return

    @cached_property
    def output_space(self) -> OutputSpace:
        """Seed and bucket."""
        return HashedOutputs(self._g, type(self).__name__)

    def matrix(self, seed: int = 0) -> Floats:
        """Return P(bucket | value) for one seed.

        Parameters
        ----------
        seed
            The seed of the hash, below 2^64.

        Returns
        -------
        numpy.ndarray
            A row for each value, a column for each bucket.
        """
        own = hash_v1(np.array([seed], dtype=np.uint64), np.arange(len(self.domain)), self._g)
        other = self._keep * math.exp(-self.log_ratio)
        return np.where(own[:, None] == np.arange(self._g, dtype=np.uint64)[None, :], self._keep, other)

    def log_high(self, codes: Codes) -> Floats:
        """Return log P(b = h(x))."""
        return np.full(len(codes), math.log(self._keep))

    def sets(self, codes: Codes) -> NDArray[np.uint8]:
        """Return the values that hash into each reported bucket."""
        size = len(self.domain)
        if prefers_matrix(size * len(codes)):
            hashed = hash_v1(codes[:, :1], np.arange(size)[None, :], self._g)
            return np.packbits(hashed == codes[:, 1:], axis=1)
        from hubbub.channels.compiled_loops import pack_hashed

        seeds, buckets = np.ascontiguousarray(codes[:, 0]), np.ascontiguousarray(codes[:, 1])
        return np.asarray(pack_hashed(size * len(codes), seeds, buckets, size, self._g))

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return the sets as packed bits where these fit; otherwise an operator that hashes as it goes."""
        if len(self.domain) * len(codes) <= MAX_SET_BITS:
            return super().encoded_channel(codes, among)
        low, size = math.exp(-self.log_ratio), len(self.domain)
        return HashedSetChannel(codes, size, buckets=self._g, low=low, log_scale=self.log_high(codes), among=among)

    @cached_property
    def law(self) -> HashedResponseLaw:
        """Randomized response on buckets, by whole numbers."""
        return HashedResponseLaw(ResponseLaw(self._g, *response_parameters(self._g, Fraction(self.epsilon))))

    def draw(self, positions: Positions, source: RandomSource) -> NDArray[np.uint64]:
        """Draw a seed, hash, and randomize the bucket."""
        seeds = source.words(positions.size)
        own = hash_v1(seeds, positions, self._g)
        kept = source.uniforms(positions.size) < self._keep * -math.expm1(-self.epsilon)
        any_bucket = source.integers(self._g, positions.size).astype(np.uint64)
        return np.stack([seeds, np.where(kept, own, any_bucket)], axis=1)
