"""Unary encoding with memory: a permanent row of noisy bits on the device, and a noisy copy of it for each report.

**Several reports of one user** about one value come from one permanent row, and are not independent given the value.
Bits still are. Let the permanent bit be 1 with probability p for the value's own bit and q for another's, and let a
report send a permanent one as 0 with probability l (lost), and a permanent zero as 1 with probability r (raised). Of m
reports of a bit, n of them ones, both permanent bits together make

    P(n | own) / P(n | another's) = (p e^D + 1 - p) / (q e^D + 1 - q),    D = n log((1-l)/r) - (m-n) log((1-r)/l):

D is what the reports tell about the permanent bit. Two values differ in two bits, so that m reports spend the logarithm
of this ratio for m ones, less that for m zeros.

**Symmetric stages.** Call 2p - 1 the contrast of a bit that is kept with probability p: the contrasts of two stages
multiply. A bit kept with probability e^(c/2) / (1 + e^(c/2)) has contrast tanh(c/4), so that the second stage of RAPPOR
has contrast tanh(first/4) / tanh(epsilon/4), and m reports spend 4 artanh(tanh(epsilon/4) tanh(m L/2)), L the log-odds
of the second stage: at most m times `first`, because artanh(c tanh) is concave. So it is where a fair coin comes first.
Where it comes second, a one is stronger evidence than a zero, and two reports can spend more than twice what one does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hubbub.client import UNARY_STAGES, largest_first, longitudinal_parameters, two_stage_unary_parameters
from hubbub.core.arrays import Codes, Floats, Positions
from hubbub.core.errors import MechanismError, shorten
from hubbub.domains import Domain
from hubbub.mechanisms.frequency_oracle import Support
from hubbub.mechanisms.longitudinal import Longitudinal
from hubbub.mechanisms.unary_encoding import CHUNK_BITS, BitLogs, UnaryEncoding, draw_bit_rows
from hubbub.sampling import BitFlipLaw, RandomSource, TwoStageFlipLaw


class BitStages(NamedTuple):
    """The probabilities of both stages, from the whole numbers of the law."""

    own: Fraction  # of a permanent one, in the value's own bit
    other: Fraction  # in another's
    lost: Fraction  # of a zero in a report, for a permanent one
    raised: Fraction  # of a one in a report, for a permanent zero


class LongitudinalBits(Longitudinal, UnaryEncoding):
    """Base of unary encodings in two stages. Outputs are packed rows of bits, and so are permanent responses."""

    law: TwoStageFlipLaw

    @property
    def log_ratio(self) -> float:
        """`first`, for a single report."""
        return self.first

    @cached_property
    def stages(self) -> BitStages:
        """The probabilities of both stages."""
        permanent, whole = self.law.permanent, 1 << self.law.permanent.width
        numbers = (permanent.own, permanent.other, self.law.lost, self.law.raised)
        return BitStages(*(Fraction(number, whole) for number in numbers))

    @cached_property
    def _evidence(self) -> tuple[float, float]:
        """What a one tells for a permanent one, and a zero for a permanent zero, in nats."""
        _, _, lost, raised = self.stages
        return math.log1p((1 - lost - raised) / raised), math.log1p((1 - lost - raised) / lost)

    @property
    def log_odds(self) -> float:
        """What a one in a report tells about the permanent bit, in nats."""
        return self._evidence[0]

    def _gain(self, told: Floats) -> Floats:
        """Return log P(reports | the value's own bit) - log P(reports | another's), for what they tell in nats."""
        own, other, _, _ = self.stages
        rise, faded = float(own - other), np.exp(-np.abs(told))
        favoured = float(other) + float(1 - other) * faded, float(own) * faded + float(1 - own)
        apart = -np.expm1(-np.abs(told)) * rise
        return np.where(told >= 0, np.log1p(apart / favoured[0]), -np.log1p(apart / favoured[1]))

    def log_ones(self, reports: int) -> tuple[Floats, Floats]:
        """Return two logarithms for each number n of ones, 0 to `reports`, that a bit may have in `reports` reports.

        The first is log P(n ones | the bit is another value's), the second how much larger it is for the value's own
        bit.
        """
        ones = np.arange(reports + 1.0)
        _, other, lost, raised = self.stages
        of_one = _log(other) + ones * _log(1 - lost) + (reports - ones) * _log(lost)
        of_zero = _log(1 - other) + ones * _log(raised) + (reports - ones) * _log(1 - raised)
        for_one, for_zero = self._evidence
        gain = self._gain(ones * for_one - (reports - ones) * for_zero)
        return np.asarray(np.logaddexp(of_one, of_zero)), gain

    def joint_log_columns(self, codes: Codes, repeats: sparse.csr_array, among: Positions | None = None) -> Floats:
        """Return log P(all outputs of a user | value): bit by bit, over both possible permanent bits."""
        size = len(self.domain)
        kept = np.arange(size) if among is None else among
        sent = np.asarray(repeats.sum(axis=1)).ravel().astype(np.int64)
        logs = np.empty((kept.size, sent.size))
        for reports in np.unique(sent).tolist():
            other, gain = self.log_ones(reports)
            members = np.flatnonzero(sent == reports)
            step = max(1, CHUNK_BITS // (size * max(1, reports)))
            for first in range(0, members.size, step):
                some = members[first : first + step]
                ones = _ones(codes, sparse.csr_array(repeats[some]), size)
                logs[:, some] = gain[ones[:, kept]].T + other[ones].sum(axis=1)
        return logs

    def _told(self, reports: int) -> float:
        """Return the largest log-ratio: all ones in one value's bit, all zeros in the other's."""
        for_one, for_zero = self._evidence
        most, least = self._gain(np.array([reports * for_one, -reports * for_zero])).tolist()
        return float(most - least)

    @property
    def shared_noise(self) -> float:
        """The noise of the permanent bits, as far as reports show it, over that of a single report."""
        _, other, lost, raised = self.stages
        one = other * (1 - lost) + (1 - other) * raised
        return float((1 - lost - raised) ** 2 * other * (1 - other) / (one * (1 - one))) if 0 < one < 1 else 1.0

    def agreement(self) -> Support:
        """Return how likely two reports of a user agree in a bit: the value's own, and another's."""
        own, other, lost, raised = self.stages
        of_one, of_zero = (chance**2 + (1 - chance) ** 2 for chance in (lost, raised))
        return Support(*(float(one * of_one + (1 - one) * of_zero) for one in (own, other)))

    # -- drawing -------------------------------------------------------------------------------------

    def draw_permanent(self, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Draw a permanent row for each value."""
        own, other, _, _ = self.stages
        return draw_bit_rows(positions, len(self.domain), Support(float(own), float(other)), source)

    def draw_instantaneous(self, codes: Codes, source: RandomSource) -> NDArray[np.uint8]:
        """Lose and raise bits of permanent rows."""
        size, lost, raised = len(self.domain), float(self.stages.lost), float(self.stages.raised)
        rows: NDArray[np.uint8] = codes.copy()
        step = max(1, CHUNK_BITS // size)
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            uniforms = source.uniforms(len(some) * size).reshape(-1, size)
            chances = raised if lost == raised else np.where(np.unpackbits(some, axis=1, count=size), lost, raised)
            some ^= np.packbits(uniforms < chances, axis=1)
        return rows


@dataclass(frozen=True)
class LongitudinalRappor(LongitudinalBits):
    """Basic RAPPOR with memory, for users who report about one value again and again.

    The value's bit is 1, all others 0. The **permanent response** keeps each bit with probability
    a = e^(epsilon/2) / (1 + e^(epsilon/2)); it is drawn once for a person and a value, and never leaves the device. The
    **instantaneous response**, drawn anew for each report, keeps each permanent bit with the probability b for which
    a bit of a single report is right with probability a b + (1-a)(1-b) = e^(first/2) / (1 + e^(first/2)). Outputs are
    packed rows of bits.

    Guarantee: `first`-local differential privacy for one report, and `epsilon` for all reports about one value
    together, however many they are: m of them spend 4 artanh(tanh(epsilon/4) tanh(m L/2)), L = log(b / (1 - b)), which
    is at most m times `first`. It holds while the value does not change, and the device keeps the permanent response. A
    new value needs a new permanent response and spends anew; a device that draws it anew for each report spends `first`
    every time.

    All reports of a user share one permanent response; their likelihood takes this into account.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon of all reports about one value together.
    first
        Plain epsilon of a single report, less than `epsilon`.

    Raises
    ------
    MechanismError
        If the first argument is not a domain, epsilon is not between 1e-12 and 500, or `first` is not below it.

    Examples
    --------
    >>> import hubbub as hb
    >>> daily = hb.LongitudinalRappor(hb.Integers(0, 9), epsilon=2.0, first=0.5)
    >>> kept = daily.permanent([3, 3, 7], rng=0)
    >>> monday = daily.instantaneous(kept, rng=1)
    >>> tuesday = daily.instantaneous(kept, rng=2)
    >>> [round(daily.spent(reports), 3) for reports in (1, 2, 100)]
    [0.5, 0.945, 2.0]
    """

    domain: Domain
    epsilon: float
    first: float
    without_memory: ClassVar[str] = "Rappor"

    def __post_init__(self) -> None:
        self._check()
        self._check_first()

    @property
    def log_bits(self) -> BitLogs:
        """A bit passes both stages unchanged with probability e^(first/2) / (1 + e^(first/2))."""
        kept = -math.log1p(math.exp(-self.first / 2))
        flipped = kept - self.first / 2
        return BitLogs(own_one=kept, own_zero=flipped, other_one=flipped, other_zero=kept)

    @cached_property
    def law(self) -> TwoStageFlipLaw:  # type: ignore[override]
        """Both chances to be flipped are rounded up."""
        width, one, turned = longitudinal_parameters(Fraction(self.epsilon), Fraction(self.first))
        permanent = BitFlipLaw(len(self.domain), width, own=(1 << width) - one, other=one)
        return TwoStageFlipLaw(permanent, lost=turned, raised=turned)


@dataclass(frozen=True)
class LongitudinalUnary(LongitudinalBits):
    """Unary encoding with memory: symmetric or optimized bits in each of two stages (L-SUE, L-OSUE, L-SOUE, L-OUE).

    The **permanent response** is a row of bits, drawn once for a person and a value: as by `Rappor` ("sue", each bit
    right with probability e^(epsilon/2) / (1 + e^(epsilon/2))) or by `OptimizedUnary` ("oue", P(1 | own bit) = 1/2 and
    P(1 | another's) = 1 / (1 + e^epsilon)). The **instantaneous response**, drawn anew for each report, flips each
    permanent bit with probability r ("sue"), or sends a permanent one as 1 with probability 1/2 and a permanent zero
    with probability r ("oue"). r is the solution of ::

        log(p (1 - q) / (q (1 - p))) = first

    where p and q are the probabilities of a one after both stages, in the value's own bit and in another's. Optimized
    bits first and symmetric ones second, the default, is L-OSUE, published as the most accurate of the four for a
    single report of each user. With "sue" twice it is `LongitudinalRappor`. Outputs are packed rows of bits.

    Guarantee: `first`-local differential privacy for one report, and `epsilon` for all reports about one value
    together. With "oue" in the second stage a few reports can spend more than `first` each (`spent`), and `first` has a
    limit below epsilon.

    All reports of a user share one permanent response; their likelihood takes this into account.

    Parameters
    ----------
    domain
        The values: any domain.
    epsilon
        Plain epsilon of all reports about one value together.
    first
        Plain epsilon of a single report, less than `epsilon`.
    permanent_bits
        How the permanent bits are drawn: "oue" or "sue".
    instantaneous_bits
        How reports are made from them: "sue" or "oue".

    Raises
    ------
    MechanismError
        If the first argument is not a domain, epsilon is not between 1e-12 and 500, `first` is not below it or too
        large for the second stage, or a stage is neither "oue" nor "sue".

    Examples
    --------
    >>> import hubbub as hb
    >>> daily = hb.LongitudinalUnary(hb.Integers(0, 9), epsilon=2.0, first=0.5)
    >>> kept = daily.permanent([3, 3, 7], rng=0)
    >>> monday = daily.instantaneous(kept, rng=1)
    >>> [round(daily.spent(reports), 3) for reports in (1, 2, 100)]
    [0.5, 0.954, 2.0]
    """

    domain: Domain
    epsilon: float
    first: float
    permanent_bits: str = "oue"
    instantaneous_bits: str = "sue"
    without_memory: ClassVar[str] = "OptimizedUnary"

    def __post_init__(self) -> None:
        self._check()
        self._check_first()
        for name in ("permanent_bits", "instantaneous_bits"):
            stage = getattr(self, name)
            if not isinstance(stage, str) or stage not in UNARY_STAGES:
                raise MechanismError(
                    "no such kind of bits",
                    where=f"LongitudinalUnary({name}=)",
                    got=shorten(stage),
                    expected=" or ".join(repr(known) for known in UNARY_STAGES),
                    remedy="'oue' for optimized bits, 'sue' for symmetric ones as in RAPPOR",
                )
        if self.law.raised == 0:
            raise MechanismError(
                "first is too close to epsilon for reports of optimized bits",
                where="LongitudinalUnary(first=)",
                got=f"first {self.first:g}, epsilon {self.epsilon:g}",
                expected=f"first below {largest_first(self.epsilon, self.permanent_bits)}: a fair coin for every "
                "permanent one already hides so much",
                remedy='choose a smaller first, or instantaneous_bits="sue", which can hide as little as you like',
            )

    @cached_property
    def log_bits(self) -> BitLogs:
        """The probabilities of both stages together."""
        own, other, lost, raised = self.stages
        true, false = (one * (1 - lost) + (1 - one) * raised for one in (own, other))
        return BitLogs(_log(true), _log(1 - true), _log(false), _log(1 - false))

    @cached_property
    def law(self) -> TwoStageFlipLaw:  # type: ignore[override]
        """The chance that a permanent zero is raised is rounded up."""
        width, own, other, lost, raised = two_stage_unary_parameters(
            Fraction(self.epsilon), Fraction(self.first), self.permanent_bits, self.instantaneous_bits
        )
        return TwoStageFlipLaw(BitFlipLaw(len(self.domain), width, own, other), lost, raised)


def _log(chance: Fraction) -> float:
    """Return the logarithm of a fraction, to the last digits where it is almost 1, too."""
    return math.log(chance) if 2 * chance < 1 else math.log1p(-float(1 - chance))


def _ones(codes: Codes, repeats: sparse.csr_array, size: int) -> Positions:
    """Return how many ones each pattern has in each bit."""
    used, items = np.unique(repeats.indices, return_inverse=True)
    own = sparse.csr_array((repeats.data, items, repeats.indptr), shape=(repeats.shape[0], used.size))
    ones: Positions = np.asarray(own @ np.unpackbits(codes[used], axis=1, count=size).astype(np.int64))
    return ones
