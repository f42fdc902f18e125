"""RAPPOR with Bloom filters and cohorts, for texts: the form in which google/rappor collects them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import xlogy

from hubbub.channels import BloomChannel, Channel
from hubbub.client import (
    MAX_COHORTS,
    MAX_FILTER_BITS,
    MAX_HASHES,
    bloom_chances,
    bloom_parameters,
    bloom_ratio,
)
from hubbub.core.arrays import Array, Codes, Floats, Positions, as_integer
from hubbub.core.errors import MechanismError, shorten
from hubbub.domains import Categories
from hubbub.mechanisms.base import matrix_too_wide
from hubbub.mechanisms.longitudinal import Longitudinal
from hubbub.mechanisms.numbered_row_outputs import NumberedRowOutputs
from hubbub.mechanisms.parameters import (
    Probability,
    check_domain,
    check_epsilon,
    check_probability,
    check_ratio,
)
from hubbub.mechanisms.text_filters import (
    Differences,
    any_differences,
    differences,
    log_mean_over_filters,
    text_filters,
    unpacked,
)
from hubbub.sampling import (
    NUMBER_BYTES,
    BloomFilters,
    BloomLaw,
    NoisyFilterLaw,
    RandomSource,
    row_numbers,
    with_numbers,
)

MAX_LISTED_OUTPUTS = 65_536
CHUNK_BITS = 4_000_000  # drawn or counted at a time
BITS_OF_BYTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float64)


class BitChances(NamedTuple):
    """How likely a bit of a report is 1, for a zero of the filter and for a one."""

    zero: Fraction
    one: Fraction


class FilterLogs(NamedTuple):
    """Log-likelihoods of a bit for a zero of the filter, and how much larger they are for a one; rows by bits."""

    zero: Floats
    gain: Floats


@dataclass(frozen=True)
class BloomRappor(Longitudinal):
    """RAPPOR for texts: noisy Bloom filters in cohorts, as google/rappor's clients send them.

    A person is in one of `cohorts` cohorts, for good, and sends its number along. Her text sets `hashes` bits of a
    Bloom filter of `bits` bits: the first bytes of the MD5 of the cohort (four bytes, the highest first) and the text,
    modulo `bits`. The **permanent response** sets each bit to 1 with probability f/2, to 0 with f/2, and keeps it
    otherwise; it is drawn once for a person and a text, and never leaves the device. The **instantaneous response**,
    drawn anew for each report, sends a permanent zero as 1 with probability `p`, a permanent one with `q`::

        P(1 | 0 in the filter) = p + f/2 (q - p)        P(1 | 1 in the filter) = q - f/2 (q - p)

    Outputs are pairs of the cohort and a packed row of bits. The domain lists the texts that the estimate is about, the
    candidates. With `rest`, one of its labels stands for all other texts: devices then send any text, and its share is
    that of people whose text is not on the list, to which h random bits are the likelihood.

    Guarantee: the logarithm of the largest ratio, which two filters have that differ in most bits: of those of the
    candidates in each cohort; with `rest`, of any two texts, min(2 hashes, bits) bits. It is `first` for one report and
    `epsilon` for all reports about one text, at most 2 hashes log((1 - f/2) / (f/2)). Because the permanent coin is
    fair, m reports spend at most m times `first`. With f = 0 nothing is permanent, and m reports spend m times `first`.

    All reports of a user share one permanent response; their likelihood takes this into account.

    Parameters
    ----------
    domain
        The candidates: `Categories`.
    cohorts
        The number of cohorts, from 1 to 65,536.
    bits
        The bits of a filter, from 2 to 256.
    hashes
        How many of them a text sets, from 1 to 16; two may be the same.
    f, p, q
        The probabilities above, exactly as they are written: 0.75 is 3/4, and "1/3" is a third. f is below 1, p below
        q.
    epsilon
        Instead of these: plain epsilon of all reports about one text together, whatever the texts. f, p and q = 1 - p
        follow.
    first
        Plain epsilon of a single report; by default epsilon, and reports repeat the permanent response.
    rest
        The label that stands for texts that are not listed; None if nobody can have one.

    Raises
    ------
    MechanismError
        If the first argument is not `Categories`, a number is out of range, both or neither of f, p, q and epsilon are
        given, `rest` is not a label, or all texts have the same filters.

    Examples
    --------
    >>> import hubbub as hb
    >>> pages = hb.Categories(["example.org", "example.com", "example.net"])
    >>> start = hb.BloomRappor(pages, cohorts=8, bits=16, hashes=2, f=0.5, p=0.5, q=0.75)
    >>> kept = start.permanent(["example.org"], rng=1)
    >>> start.instantaneous(kept, rng=2)
    array([(7, [211, 219])], dtype=[('cohort', '<u4'), ('bits', 'u1', (2,))])
    >>> [round(start.spent(reports), 3) for reports in (1, 2, 100)]
    [1.074, 2.017, 4.394]
    """

    domain: Categories
    cohorts: int
    bits: int
    hashes: int
    f: Fraction | None
    p: Fraction | None
    q: Fraction | None
    epsilon: float
    first: float
    rest: str | int | None
    without_memory: ClassVar[str] = "first=epsilon"

    def __init__(
        self,
        domain: Categories,
        cohorts: int,
        bits: int,
        hashes: int,
        *,
        f: Probability | None = None,
        p: Probability | None = None,
        q: Probability | None = None,
        epsilon: float | None = None,
        first: float | None = None,
        rest: str | int | None = None,
    ) -> None:
        remedy = "list the texts: hubbub.Categories([...])"
        check_domain(domain, Categories, "BloomRappor", remedy)
        self._set(domain=domain)
        sizes = {"cohorts": (cohorts, 1, MAX_COHORTS), "bits": (bits, 2, MAX_FILTER_BITS)}
        for name, (number, low, high) in {**sizes, "hashes": (hashes, 1, MAX_HASHES)}.items():
            self._set(**{name: _checked_size(number, name, low, high)})
        if rest is not None and not (isinstance(rest, str | int) and domain.find([rest])[0] >= 0):
            raise MechanismError(
                "rest is not one of the labels",
                where="BloomRappor(rest=)",
                got=shorten(rest),
                expected="a label of the domain, which stands for all texts that are not listed",
                remedy="add such a label to the domain, or leave rest out",
            )
        self._set(rest=rest)
        missing = [stated is None for stated in (f, p, q)]
        if all(missing) and epsilon is not None:
            self._set_epsilons(epsilon, first)
        elif epsilon is None and first is None and not any(missing):
            self._set_probabilities(f, p, q)
        else:
            given = {"f": f, "p": p, "q": q, "epsilon": epsilon, "first": first}
            raise MechanismError(
                "RAPPOR takes either f, p and q, or epsilon",
                where="BloomRappor(f=, p=, q=, epsilon=, first=)",
                got=", ".join(name for name, value in given.items() if value is not None) or "none of them",
                expected="all of f, p and q, or epsilon with or without first",
                remedy="state f, p and q as in params.csv, or what reports may spend",
            )

    def _set(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _set_epsilons(self, epsilon: float, first: float | None) -> None:
        checked = check_epsilon(epsilon, "BloomRappor")
        own = checked if first is None else check_epsilon(first, "BloomRappor", "first")
        if own > checked:
            raise MechanismError(
                "first must be at most epsilon, which is that of all reports together",
                where="BloomRappor(first=)",
                got=f"first {own:g}, epsilon {checked:g}",
                expected="first up to epsilon",
                remedy="choose a smaller first, such as half of epsilon",
            )
        self._set(f=None, p=None, q=None, epsilon=checked, first=own)
        self._check_filters()

    def _set_probabilities(self, f: object, p: object, q: object) -> None:
        given = {"f": f, "p": p, "q": q}
        exact = {name: check_probability(value, "BloomRappor", name) for name, value in given.items()}
        if exact["f"] == 1 or exact["p"] >= exact["q"]:
            raise MechanismError(
                "the bits tell nothing about the text",
                where="BloomRappor(f=, p=, q=)",
                got=", ".join(f"{name} {value}" for name, value in exact.items()),
                expected="f below 1, and p below q",
                remedy="f is how often a bit is replaced by a fair coin, p and q how often a permanent 0 and 1 is sent "
                "as 1",
            )
        if exact["f"] == 0 and (exact["p"] == 0 or exact["q"] == 1):
            raise MechanismError(
                "a bit gives the filter away",
                where="BloomRappor(f=, p=, q=)",
                got=", ".join(f"{name} {value}" for name, value in exact.items()),
                expected="f above 0, or p above 0 and q below 1",
                remedy="choose a positive f",
            )
        self._set(**exact)
        half = exact["f"] / 2
        chances = {"single report": bloom_chances(**exact), "permanent response": (half, 1 - half)}
        for what, (zero, one) in chances.items():  # the worst two texts, listed or not
            check_ratio(bloom_ratio(zero, one, self.bits, self.hashes), f"BloomRappor(f=, p=, q=), {what}")
        self._check_filters()
        claims = [self._claim(zero, one) for zero, one in chances.values()]
        self._set(first=claims[0], epsilon=claims[1])

    def _check_filters(self) -> None:
        if self.differing == frozenset({(0, 0)}):
            raise MechanismError(
                "all texts have the same filters",
                where="BloomRappor(bits=)",
                got=f"{self.bits} bits, {self.cohorts} cohorts, {len(self.domain)} texts",
                expected="two texts that differ in a bit in some cohort",
                remedy="use more bits, or more cohorts",
            )

    def _claim(self, zero: Fraction, one: Fraction) -> float:
        """Return the epsilon of the largest ratio of two filters, rounded up."""
        if zero == 0:
            return math.inf
        ones, zeros = one / zero, (1 - zero) / (1 - one)
        ratio = max(ones**only * zeros**lacking for only, lacking in self.differing)
        return check_ratio(ratio, "BloomRappor(f=, p=, q=)")

    def __repr__(self) -> str:
        names = ("epsilon", "first") if self.f is None else ("f", "p", "q")
        fields = ["domain", "cohorts", "bits", "hashes", *names, *(["rest"] if self.rest is not None else [])]
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in fields)})"

    # -- probabilities -------------------------------------------------------------------------------

    @cached_property
    def probabilities(self) -> tuple[Fraction, Fraction, Fraction]:
        """f, p and q, exactly as reports are drawn."""
        if self.f is not None and self.p is not None and self.q is not None:
            return self.f, self.p, self.q
        return bloom_parameters(self.bits, self.hashes, Fraction(self.epsilon), Fraction(self.first))

    @cached_property
    def chances(self) -> BitChances:
        """How likely a bit of one report is 1."""
        return BitChances(*bloom_chances(*self.probabilities))

    @property
    def full_support(self) -> bool:  # type: ignore[override]
        """Whether any texts can send any reports: where these repeat the permanent response, they are all alike."""
        _, p, q = self.probabilities
        return p > 0 and q < 1

    @cached_property
    def rest_position(self) -> int:
        """The position of the label that stands for texts that are not listed; -1 for none."""
        return -1 if self.rest is None else self.domain.labels.tolist().index(self.rest)

    @cached_property
    def filters(self) -> NDArray[np.uint8]:
        """The packed filters of all labels: cohorts by labels by bytes; no bit for the label of the rest."""
        packed = text_filters([str(label) for label in self.domain.labels], self.cohorts, self.bits, self.hashes)
        if self.rest is not None:
            packed[:, self.rest_position] = 0
        return packed

    @cached_property
    def differing(self) -> Differences:
        """In how many bits two filters differ, in each direction: the largest pairs of the candidates."""
        if self.rest is not None:
            return any_differences(self.bits, self.hashes)
        return differences(self.filters, self.bits, min(self.hashes, self.bits))

    def mean_filters(self, among: Positions | None = None) -> Floats:
        """Return how likely each bit of the filter is set: 0 or 1 for candidates, the same for all bits of the rest.

        Parameters
        ----------
        among
            The positions of the values to keep; None for all.

        Returns
        -------
        numpy.ndarray
            Cohorts by values by bits.
        """
        kept = np.arange(len(self.domain)) if among is None else among
        means = unpacked(self.filters[:, kept], self.bits)
        means[:, kept == self.rest_position] = 1.0 - (1.0 - 1.0 / self.bits) ** self.hashes
        return means

    def with_rest(self, label: str) -> BloomRappor:
        """Return this mechanism with one more label, which stands for all texts that are not listed.

        Parameters
        ----------
        label
            The new label.

        Returns
        -------
        BloomRappor
            With the same outputs.
        """
        names = ("epsilon", "first") if self.f is None else ("f", "p", "q")
        domain = Categories([*self.domain.labels.tolist(), label])
        stated = {name: getattr(self, name) for name in names}
        return BloomRappor(domain, self.cohorts, self.bits, self.hashes, rest=label, **stated)

    # -- what reports spend --------------------------------------------------------------------------

    def _told(self, reports: int) -> float:
        """Return the largest log-ratio: ones where one filter alone has them, zeros where the other alone has them."""
        f, p, q = self.probabilities
        for_one = reports * math.log(q / p) if p else math.inf
        for_zero = reports * math.log((1 - p) / (1 - q)) if q < 1 else math.inf
        ones, zeros = self._gain(for_one, f / 2), self._gain(for_zero, f / 2)
        return max(only * ones + lacking * zeros for only, lacking in self.differing)

    @staticmethod
    def _gain(told: float, half: Fraction) -> float:
        """Return what reports tell about a bit of the filter that tell so much about the permanent one.

        The coin is fair, so that zeros tell about a zero what ones tell about a one.
        """
        faded = math.exp(-told)
        if half == 0:
            return told
        return math.log1p(float(1 - 2 * half) * -math.expm1(-told) / (float(half) + float(1 - half) * faded))

    @property
    def shared_noise(self) -> float:
        """The noise of the permanent bits, as far as reports show it, over that of a single report."""
        f, p, q = self.probabilities
        zero = self.chances.zero
        return float((q - p) ** 2 * (f / 2) * (1 - f / 2) / (zero * (1 - zero)))

    # -- likelihoods ---------------------------------------------------------------------------------

    def bits_of(self, codes: Codes) -> tuple[Positions, NDArray[np.bool_]]:
        """Return the cohorts of encoded outputs, and their bits.

        Parameters
        ----------
        codes
            Encoded outputs.

        Returns
        -------
        tuple
            A number for each output; a row for each, with a column for each bit.
        """
        return row_numbers(codes), np.unpackbits(codes[:, NUMBER_BYTES:], axis=1, count=self.bits).astype(bool)

    def bit_logs(self, ones: Positions, reports: int) -> FilterLogs:
        """Return the log-likelihoods of numbers of ones that bits have in so many reports.

        Parameters
        ----------
        ones
            The numbers of ones, from 0 to `reports`.
        reports
            The number of reports.

        Returns
        -------
        FilterLogs
            In the form of `ones`.
        """
        f, p, q = self.probabilities
        numbers = np.arange(reports + 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            of_zero, of_one = (
                xlogy(numbers, float(chance)) + xlogy(reports - numbers, float(1 - chance)) for chance in (p, q)
            )
            turned, kept = np.log(float(f / 2)), math.log1p(-float(f / 2))
            zero, one = np.logaddexp(kept + of_zero, turned + of_one), np.logaddexp(turned + of_zero, kept + of_one)
            if reports == 1:  # in closed form, which is exact to the last digits
                zero, one = (np.log([float(1 - chance), float(chance)]) for chance in self.chances)
            gain = np.where(np.isneginf(zero) & np.isneginf(one), 0.0, one - zero)
        return FilterLogs(zero[ones], gain[ones])

    def _log_rows(self, cohorts: Positions, logs: FilterLogs, kept: Positions) -> Floats:
        """Return the log-likelihoods of rows of bits for some values: gathered over the bits of their filters."""
        table = np.empty((kept.size, cohorts.size))
        for cohort in np.unique(cohorts).tolist():
            own = np.flatnonzero(cohorts == cohort)
            table[:, own] = unpacked(self.filters[cohort, kept], self.bits) @ logs.gain[own].T
        unlisted = np.flatnonzero(kept == self.rest_position)
        if unlisted.size:
            table[unlisted] = log_mean_over_filters(logs.gain, self.hashes)
        return np.asarray(table + logs.zero.sum(axis=1))

    @property
    def outputs(self) -> Array | None:
        """All cohorts with all rows of bits, where there are at most 65,536; None otherwise."""
        if self.cohorts << self.bits > MAX_LISTED_OUTPUTS:
            return None
        rows = (np.arange(1 << self.bits)[:, None] >> np.arange(self.bits)) & 1
        packed = np.packbits(rows.astype(bool), axis=1)
        codes = with_numbers(np.repeat(np.arange(self.cohorts), len(packed)), np.tile(packed, (self.cohorts, 1)))
        return self.output_space.decode(codes)

    def _listed(self) -> Array:
        outputs = self.outputs
        if outputs is None:
            raise matrix_too_wide(type(self).__name__, f"{self.cohorts} x 2^{self.bits}")
        return outputs

    @cached_property
    def output_space(self) -> NumberedRowOutputs:
        """The cohort, and packed bits."""
        return NumberedRowOutputs("cohort", self.cohorts, self.bits, type(self).__name__)

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
        return np.exp(self.log_columns(self.output_space.encode(self._listed())))

    def log_columns(self, codes: Codes, among: Positions | None = None) -> Floats:
        """Return the log-likelihoods: what the bits of a value's filter tell, and that of no bits."""
        cohorts, rows = self.bits_of(codes)
        kept = np.arange(len(self.domain)) if among is None else among
        return self._log_rows(cohorts, self.bit_logs(rows.astype(np.int64), 1), kept) - math.log(self.cohorts)

    def encoded_channel(self, codes: Codes, among: Positions | None = None) -> Channel:
        """Return products over the bits of filters, computed as they are needed, where a matrix would be large."""
        if not self.is_large(codes, among):
            return super().encoded_channel(codes, among)
        cohorts, rows = self.bits_of(codes)
        kept = np.arange(len(self.domain)) if among is None else among
        logs = self.bit_logs(np.array([0, 1]), 1)
        none = logs.zero[rows.astype(np.int64)].sum(axis=1)
        unlisted = np.flatnonzero(kept == self.rest_position)
        return BloomChannel(
            codes[:, NUMBER_BYTES:],
            cohorts,
            self.filters[:, kept],
            gains=(float(logs.gain[0]), float(logs.gain[1])),
            most=self.hashes,
            log_scale=none - math.log(self.cohorts),
            unlisted=int(unlisted[0]) if unlisted.size else -1,
            log_unlisted=log_mean_over_filters(logs.gain[rows.astype(np.int64)], self.hashes)
            if unlisted.size
            else np.zeros(len(codes)),
        )

    def device_marks(self, codes: Codes) -> Positions:
        """Return the cohorts."""
        return self.bits_of(codes)[0]

    def joint_log_columns(self, codes: Codes, repeats: sparse.csr_array, among: Positions | None = None) -> Floats:
        """Return log P(all outputs of a user | value): bit by bit, over both possible permanent bits.

        Reports of the same user from another cohort are from another device, and have a permanent response of their
        own.
        """
        kept = np.arange(len(self.domain)) if among is None else among
        cohorts, rows = self.bits_of(codes)
        entries = repeats.tocoo()
        times = entries.data.astype(np.int64)
        pairs, back = np.unique(np.stack([entries.row, cohorts[entries.col]]), axis=1, return_inverse=True)
        users, own = pairs
        sent = np.bincount(back.ravel(), weights=times, minlength=users.size).astype(np.int64)
        gather = sparse.csr_array((times, (back.ravel(), entries.col)), shape=(users.size, len(codes)))
        ones = np.asarray(gather @ rows.astype(np.int64))
        table = np.zeros((kept.size, users.size))
        for reports in np.unique(sent).tolist():
            some = np.flatnonzero(sent == reports)
            table[:, some] = self._log_rows(own[some], self.bit_logs(ones[some], reports), kept)
        table -= math.log(self.cohorts)
        together = sparse.csr_array(
            (np.ones(users.size), (users, np.arange(users.size))), shape=(repeats.shape[0], users.size)
        )
        if np.isfinite(table).all():
            return np.asarray(together @ table.T).T
        logs = np.zeros((kept.size, repeats.shape[0]))
        for place, user in enumerate(users.tolist()):
            logs[:, user] += table[:, place]
        return logs

    # -- sums ----------------------------------------------------------------------------------------

    def bit_counts(self, outputs: object) -> tuple[Positions, Positions]:
        """Return how many outputs have a one in each bit of each cohort, and how many there are of each cohort.

        That is all that `Reports.from_bit_counts` needs of them.

        Parameters
        ----------
        outputs : array or list
            A cohort and a row of bits for each user, as `privatize` returns them.

        Returns
        -------
        ones : numpy.ndarray of int
            Cohorts by bits.
        users : numpy.ndarray of int
            A number for each cohort.

        Examples
        --------
        >>> import hubbub as hb
        >>> pages = hb.Categories(["example.org", "example.com"])
        >>> start = hb.BloomRappor(pages, cohorts=2, bits=4, hashes=1, f=0.5, p=0.25, q=0.75)
        >>> ones, users = start.bit_counts(["0:0110", "1:0001", "0:0100"])
        >>> ones.tolist(), users.tolist()
        ([[0, 2, 1, 0], [0, 0, 0, 1]], [2, 1])
        >>> hb.Reports.from_bit_counts(start, ones, users).users
        3
        """
        codes = self.output_space.encode(outputs)
        ones, users = self.ones_by_cohort(codes, np.ones(len(codes)))
        return ones.astype(np.int64), users.astype(np.int64)

    def ones_by_cohort(self, codes: Codes, counts: Floats) -> tuple[Floats, Floats]:
        """Return how many users sent a one in each bit of each cohort, and how many there are in each cohort.

        Parameters
        ----------
        codes
            Encoded outputs.
        counts
            How many users sent each.

        Returns
        -------
        tuple
            Cohorts by bits; a number for each cohort.
        """
        cohorts = row_numbers(codes)
        some = np.flatnonzero(np.bincount(cohorts, minlength=self.cohorts))
        places = np.searchsorted(some, cohorts) if some.size < self.cohorts else cohorts
        ones = np.zeros((self.cohorts, 8 * (codes.shape[1] - NUMBER_BYTES)))
        for number, column in enumerate(codes.T[NUMBER_BYTES:]):  # how often each byte was sent says how often each bit
            sent = np.bincount(256 * places + column, weights=counts, minlength=256 * some.size).reshape(some.size, 256)
            ones[some, 8 * number : 8 * number + 8] = sent @ BITS_OF_BYTES
        users = np.bincount(cohorts, weights=counts, minlength=self.cohorts)
        return ones[:, : self.bits], users.astype(np.float64, copy=False)

    # -- drawing -------------------------------------------------------------------------------------

    @cached_property
    def law(self) -> BloomLaw:  # type: ignore[override]
        """Bits with fractions for probabilities."""
        f, p, q = self.probabilities
        filters = BloomFilters(self.filters, self.bits, self.hashes, self.rest_position)
        return BloomLaw(NoisyFilterLaw(filters, f / 2, 1 - f / 2), p, q)

    def draw_permanent(self, positions: Positions, source: RandomSource) -> NDArray[np.uint8]:
        """Draw a cohort and permanent bits for each value."""
        filters, half = self.law.permanent.filters, float(self.probabilities[0] / 2)
        cohorts = source.integers(self.cohorts, positions.size)
        packed = [np.empty((0, self.filters.shape[2]), dtype=np.uint8)]
        step = max(1, CHUNK_BITS // self.bits)
        for first in range(0, positions.size, step):
            part = slice(first, first + step)
            rows = filters.of(cohorts[part], positions[part], source)
            turned = source.uniforms(len(rows) * self.bits).reshape(len(rows), self.bits) < half
            packed.append(rows ^ np.packbits(turned, axis=1))
        return with_numbers(cohorts, np.concatenate(packed))

    def draw_instantaneous(self, codes: Codes, source: RandomSource) -> NDArray[np.uint8]:
        """Draw the bits of a report from permanent ones."""
        _, p, q = (float(chance) for chance in self.probabilities)
        drawn: NDArray[np.uint8] = codes.copy()
        step = max(1, CHUNK_BITS // self.bits)
        for first in range(0, len(codes), step):
            part = slice(first, first + step)
            rows = self.bits_of(codes[part])[1]
            chances = np.where(rows, q, p)
            drawn[part, NUMBER_BYTES:] = np.packbits(source.uniforms(rows.size).reshape(rows.shape) < chances, axis=1)
        return drawn


def _checked_size(value: object, name: str, low: int, high: int) -> int:
    where = f"BloomRappor({name}=)"
    number = as_integer(value, MechanismError, where=where, expected=f"a whole number from {low}")
    if low <= number <= high:
        return number
    raise MechanismError(
        f"{name} is out of range",
        where=where,
        got=number,
        expected=f"from {low} to {high}",
        remedy="google/rappor's own parameters are 64 cohorts of 16 bits with 2 hashes",
    )
