"""RAPPOR with memory: a permanent response kept on the device, and a fresh one for each report.

**Two stages.** Call 2p - 1 the contrast of a bit that is kept with probability p: the contrasts of two stages multiply.
A bit kept with probability e^(c/2) / (1 + e^(c/2)) has contrast tanh(c/4), so that the second stage needs

    2b - 1 = tanh(first/4) / tanh(epsilon/4),    b / (1 - b) = sinh(epsilon/4 + first/4) / sinh(epsilon/4 - first/4).

**Several reports of one user** about one value come from one permanent row, and are not independent given the value.
Bits still are. With n ones among m reports of a bit, L = log(b / (1 - b)) and A = epsilon/2 the log-odds of a bit in
either stage, the sum over the permanent bit gives

    log P(n | the value's own bit) - log P(n | another's) = 2 artanh(tanh(A/2) tanh((2n - m) L/2)):

an odd function that grows from 0 to A, and is concave from 0 on. Two values differ in two bits: all reports together
are worth at most 2A = epsilon, and m of them at most m times what one is worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hubbub.client import longitudinal_parameters
from hubbub.core.arrays import Array, Codes, Floats, Positions
from hubbub.core.errors import MechanismError
from hubbub.domains import Domain
from hubbub.mechanisms.frequency_oracle import Support
from hubbub.mechanisms.parameters import check_epsilon
from hubbub.mechanisms.unary_encoding import CHUNK_BITS, BitLogs, UnaryEncoding, draw_bit_rows
from hubbub.sampling import BitFlipLaw, Randomness, RandomSource, TwoStageFlipLaw, source_of

MIN_STEEP_CONTRAST = 0.5  # products of contrasts above which logarithms are exact and artanh is not


@dataclass(frozen=True)
class LongitudinalRappor(UnaryEncoding):
    """Basic RAPPOR with memory, for users who report about one value again and again.

    The value's bit is 1, all others 0. The **permanent response** keeps each bit with probability
    a = e^(epsilon/2) / (1 + e^(epsilon/2)); it is drawn once for a person and a value, and never leaves the device. The
    **instantaneous response**, drawn anew for each report, keeps each permanent bit with the probability b for which
    a bit of a single report is right with probability a b + (1-a)(1-b) = e^(first/2) / (1 + e^(first/2)). Outputs are
    packed rows of bits.

    Guarantee: `first`-local differential privacy for one report, and `epsilon` for all reports about one value
    together, however many they are: m of them spend min(m first, epsilon). It holds while the value does not
    change, and the device keeps the permanent response. A new value needs a new permanent response and spends anew;
    a device that draws it anew for each report spends `first` every time.

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
    >>> [daily.spent(reports) for reports in (1, 2, 100)]
    [0.5, 1.0, 2.0]
    """

    domain: Domain
    epsilon: float
    first: float

    def __post_init__(self) -> None:
        self._check()
        object.__setattr__(self, "first", check_epsilon(self.first, "LongitudinalRappor", "first"))
        if self.first >= self.epsilon:
            what, where = (
                "first must be below epsilon, which is that of all reports together",
                "LongitudinalRappor(first=)",
            )
            got, expected = f"first {self.first:g}, epsilon {self.epsilon:g}", "first below epsilon"
            remedy = "choose a smaller first, such as half of epsilon; for a single report of each user use Rappor"
            raise MechanismError(what, where=where, got=got, expected=expected, remedy=remedy)

    # -- one report ----------------------------------------------------------------------------------

    @property
    def log_bits(self) -> BitLogs:
        """A bit passes both stages unchanged with probability e^(first/2) / (1 + e^(first/2))."""
        kept, flipped = _log_kept(self.first / 2)
        return BitLogs(own_one=kept, own_zero=flipped, other_one=flipped, other_zero=kept)

    @property
    def log_ratio(self) -> float:
        """`first`, for a single report."""
        return self.first

    # -- several reports -----------------------------------------------------------------------------

    @property
    def log_odds(self) -> float:
        """log(b / (1 - b)): of the instantaneous response."""
        long, short = self.epsilon / 4, self.first / 4
        contrast = math.tanh(short) / math.tanh(long)
        if contrast < MIN_STEEP_CONTRAST:
            return 2.0 * math.atanh(contrast)
        return 2.0 * short + math.log(math.expm1(-2.0 * (long + short)) / math.expm1(-2.0 * (long - short)))

    def log_ones(self, reports: int) -> tuple[Floats, Floats]:
        """Return two logarithms for each number n of ones, 0 to `reports`, that a bit may have in `reports` reports.

        The first is log P(n ones | the bit is another value's), the second how much larger it is for the value's own
        bit.
        """
        ones, even = np.arange(reports + 1.0), self.epsilon / 2
        (kept, flipped), (same, turned) = _log_kept(even), _log_kept(self.log_odds)
        of_one = flipped + ones * same + (reports - ones) * turned
        of_zero = kept + ones * turned + (reports - ones) * same
        odds = np.abs(2.0 * ones - reports) * self.log_odds  # for a permanent one, or for a permanent zero
        contrast = math.tanh(even / 2) * np.tanh(odds / 2)
        flat = 2.0 * np.arctanh(np.minimum(contrast, MIN_STEEP_CONTRAST))
        steep = np.minimum(odds, even) + np.log1p(np.exp(-(odds + even))) - np.log1p(np.exp(-np.abs(odds - even)))
        gain = np.where(contrast < MIN_STEEP_CONTRAST, flat, steep)
        return np.asarray(np.logaddexp(of_one, of_zero)), np.copysign(gain, 2.0 * ones - reports)

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

    @property
    def shared_noise(self) -> float:
        """The noise of the permanent bits, as far as reports show it, over that of a single report."""
        (kept, flipped), contrast = _log_kept(self.epsilon / 2), math.tanh(self.first / 4) / math.tanh(self.epsilon / 4)
        other = self.support.other
        return contrast**2 * math.exp(kept + flipped) / (other * (1.0 - other)) if 0.0 < other < 1.0 else 1.0

    def spent(self, reports: int) -> float:
        """Return min(reports * first, epsilon): about one value, all reports together never spend more.

        Parameters
        ----------
        reports
            The number of reports about one value.

        Returns
        -------
        float
            Plain epsilon.
        """
        return min(reports * self.first, self.epsilon)

    # -- drawing -------------------------------------------------------------------------------------

    def permanent(self, values: object, *, rng: Randomness = None) -> Array:
        """Return the permanent response of each user: packed rows.

        Keep them on the device; they must never be sent.

        Parameters
        ----------
        values
            Labels of the domain, one for each user.
        rng
            None for real reports; a NumPy generator or a seed to simulate.

        Returns
        -------
        numpy.ndarray
            One packed row of bits for each user.

        Raises
        ------
        DomainError
            If a value is not in the domain.
        MechanismError
            If `rng` is not a source of randomness.
        """
        positions, words = self._positions(values, "permanent"), source_of(rng)
        return self.law.permanent.draw(positions, words) if words.secure else self.draw_permanent(positions, words)

    def instantaneous(self, rows: object, *, rng: Randomness = None) -> Array:
        """Return one report for each permanent response, to be sent.

        Parameters
        ----------
        rows
            Permanent responses, as `permanent` returns them.
        rng
            None for real reports; a NumPy generator or a seed to simulate.

        Returns
        -------
        numpy.ndarray
            One packed row of bits for each user.

        Raises
        ------
        OutputError
            If a row is not a permanent response of this mechanism.
        MechanismError
            If `rng` is not a source of randomness.
        """
        codes, words = self.output_space.encode(rows), source_of(rng)
        sent = self.law.report(codes, words) if words.secure else self.draw_instantaneous(codes, words)
        return self.output_space.decode(sent)

    @cached_property
    def law(self) -> TwoStageFlipLaw:
        """Both chances to be flipped are rounded up."""
        width, one, turned = longitudinal_parameters(Fraction(self.epsilon), Fraction(self.first))
        return TwoStageFlipLaw(BitFlipLaw(len(self.domain), width, own=(1 << width) - one, other=one), turned)

    def draw(self, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Draw the first report of people who have no permanent response yet."""
        return self.draw_instantaneous(self.draw_permanent(positions, source), source)

    def draw_permanent(self, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Keep each bit of the value's row with probability a."""
        kept, flipped = _log_kept(self.epsilon / 2)
        return draw_bit_rows(positions, len(self.domain), Support(math.exp(kept), math.exp(flipped)), source)

    def draw_instantaneous(self, codes: Codes, source: RandomSource) -> NDArray[np.uint8]:
        """Turn each permanent bit with probability 1 - b."""
        size, turned = len(self.domain), math.exp(_log_kept(self.log_odds)[1])
        rows: NDArray[np.uint8] = codes.copy()
        step = max(1, CHUNK_BITS // size)
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            some ^= np.packbits(source.uniforms(len(some) * size).reshape(-1, size) < turned, axis=1)
        return rows


def _log_kept(log_odds: float) -> tuple[float, float]:
    """Return the logarithms of the probabilities that a bit is kept, and flipped."""
    kept = -math.log1p(math.exp(-log_odds))
    return kept, kept - log_odds


def _ones(codes: Codes, repeats: sparse.csr_array, size: int) -> Positions:
    """Return how many ones each pattern has in each bit."""
    used, items = np.unique(repeats.indices, return_inverse=True)
    own = sparse.csr_array((repeats.data, items, repeats.indptr), shape=(repeats.shape[0], used.size))
    ones: Positions = np.asarray(own @ np.unpackbits(codes[used], axis=1, count=size).astype(np.int64))
    return ones
