"""Projective response: values and outputs are points of a projective space, and sets are hyperplanes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hubbub.channels import Channel, HyperplaneChannel, prefers_matrix
from hubbub.channels.projective_sums import are_orthogonal, point_coordinates, point_numbers
from hubbub.client import MAX_OUTPUTS, default_prime, is_prime, points, space_dimensions
from hubbub.core.arrays import Codes, Floats, Positions, as_integer
from hubbub.core.errors import MechanismError
from hubbub.domains import Domain
from hubbub.mechanisms.frequency_oracle import Support
from hubbub.mechanisms.hadamard_response import ListedSets

MAX_CELLS = 1 << 27  # of a Fourier transform (1 GB)
BITS_PER_CELL = 500  # of packed sets whose sums take as long as one cell of a transform


@dataclass(frozen=True)
class ProjectiveResponse(ListedSets):
    """Projective geometry response: values and outputs are points, and the set of a value is a hyperplane.

    For a prime q, the points of the space with t coordinates are the K = (q^t - 1) / (q - 1) directions of vectors of
    remainders modulo q; t is the least number, from 2, with K >= k. The set of a value are the
    s = (q^(t-1) - 1) / (q - 1) points whose inner product with it is 0::

        P(z | x) = e^epsilon / W  if <z, x> = 0 (mod q),   1 / W  otherwise,   W = s e^epsilon + K - s

    Any two sets have as many points in common, as any two bits of `Rappor` are alike: the errors are as small as those
    of `SubsetSelection`, and an output is a whole number of about log2(q k) bits. For a k of up to q + 1, sets have one
    point, and it is randomized response among q + 1 outputs.

    By default q is the published one, nearest to e^epsilon + 1, and at most the first prime from k - 1.

    Guarantee: epsilon-local differential privacy.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon, positive: smaller is more private.
    prime
        The prime; None for the best one.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, epsilon is not between 1e-12 and 500, `prime` is not a prime number, or
        there would be more than 2^31 outputs.

    Examples
    --------
    >>> import hubbub as hb
    >>> projective = hb.ProjectiveResponse(hb.Integers(0, 99), epsilon=1.0)
    >>> projective.prime, projective.dimensions, projective.output_count, projective.set_size
    (3, 5, 121, 40)
    >>> projective.privatize([7, 7, 50], rng=1)
    array([14, 96,  4])
    """

    domain: Domain
    epsilon: float
    prime: int | None = None

    def __post_init__(self) -> None:
        self._check()
        values, where = len(self.domain), "ProjectiveResponse(prime=)"
        number = default_prime(values, self.epsilon) if self.prime is None else self.prime
        prime = as_integer(number, MechanismError, where=where, expected="a prime number")
        if not 2 <= prime < MAX_OUTPUTS or not is_prime(prime):
            what, expected = "not a prime number", f"a prime number below {MAX_OUTPUTS}"
            remedy = f"leave prime out for the best one here ({default_prime(values, self.epsilon)})"
            raise MechanismError(what, where=where, got=prime, expected=expected, remedy=remedy)
        outputs = points(prime, space_dimensions(values, prime))
        if outputs > MAX_OUTPUTS:
            what, got = "there would be too many outputs", f"prime {prime} for {values:,} values: {outputs:,} outputs"
            remedy = "choose another prime, or HadamardResponse, which has at most 6 outputs for each value"
            raise MechanismError(what, where=where, got=got, expected=f"at most {MAX_OUTPUTS:,}", remedy=remedy)
        object.__setattr__(self, "prime", prime)

    @property
    def _q(self) -> int:
        return int(self.prime or 2)

    @property
    def dimensions(self) -> int:
        """The number of coordinates."""
        return space_dimensions(len(self.domain), self._q)

    @property
    def output_count(self) -> int:
        """The number of points."""
        return points(self._q, self.dimensions)

    @property
    def set_size(self) -> int:
        """The number of points of a hyperplane."""
        return points(self._q, self.dimensions - 1)

    def members(self, positions: Positions, places: Positions) -> Positions:
        """Return the points at places of the values' hyperplanes, as `hubbub.client.point_member` explains."""
        prime, dimensions = self._q, self.dimensions
        own = point_coordinates(positions, prime, dimensions)[::-1]
        free = point_coordinates(places, prime, dimensions - 1)
        first = np.argmax(own != 0, axis=0)  # where the value has its 1
        members = np.zeros((dimensions, positions.size), dtype=np.int64)
        product = np.zeros(positions.size, dtype=np.int64)
        for place in range(dimensions):
            taken = np.where(place < first, free[min(place, dimensions - 2)], free[max(place - 1, 0)])
            members[place] = np.where(place == first, 0, taken)
            product = (product + own[place] * members[place]) % prime
        members[first, np.arange(positions.size)] = -product % prime
        return point_numbers(members, prime)

    def holds(self, codes: Codes, positions: Positions) -> NDArray[np.bool_]:
        """Return whether points are orthogonal to values."""
        return np.asarray(are_orthogonal(codes, positions, self._q, self.dimensions), dtype=np.bool_)

    @property
    def support(self) -> Support:
        """The chances that an output is in the set of the value, and in that of any other one."""
        chance = math.exp(self._log_member)
        common = points(self._q, self.dimensions - 2) if self.dimensions > 2 else 0
        rest = math.exp(-self.epsilon) * (self.set_size - common)
        return Support(self.member_chance, (common + rest) * chance)

    def support_counts(self, codes: Codes, counts: Floats) -> Floats:
        """Add up packed sets, or all hyperplanes at once where that takes longer."""
        if not self._prefers_transform(len(self.domain), len(codes)):
            return super().support_counts(codes, counts)
        return self._hyperplanes(codes, None, 0.0, np.zeros(len(codes))).holders(counts)

    def _prefers_transform(self, values: int, patterns: int) -> bool:
        cells = self._q**self.dimensions
        return cells <= MAX_CELLS and not prefers_matrix(values * patterns, BITS_PER_CELL * cells)

    def _hyperplanes(self, codes: Codes, among: Positions | None, low: float, log_scale: Floats) -> HyperplaneChannel:
        return HyperplaneChannel(
            codes,
            len(self.domain),
            prime=self._q,
            dimensions=self.dimensions,
            low=low,
            log_scale=log_scale,
            among=among,
        )

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return packed sets, or sums over all hyperplanes where these would take longer."""
        values = len(self.domain) if among is None else among.size
        if not self.is_large(codes, among) or not self._prefers_transform(values, len(codes)):
            return super().encoded_channel(codes, among)
        return self._hyperplanes(codes, among, math.exp(-self.epsilon), self.log_high(codes))
