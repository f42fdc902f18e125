"""`error_probability`: how often the maximum likelihood guess of one user's value is wrong.

One user with value x sends k outputs of one mechanism, all drawn from its row a_x. With q the shares of the
outputs, the maximum likelihood guess is the value x' that minimises KL(q || a_x') (the paper's eq. ml-kl); among
several minimisers it is drawn uniformly. Two upper bounds on the probability that the guess is not x follow.

**The coefficient of two rows.** For 0 < s < 1 let M_s(x, x') = sum_z a_xz^(1-s) a_x'z^s and M = inf_s M_s; then
C = -log2 M is the Chernoff information, in bits. M = 0 means rows without a common output, M = 1 equal rows.
M_s is log-convex in s, and every s gives a valid bound: using a grid of s can only loosen it.

**Union bound.** The guess misses x only if some x' of another row has prod_j a_x'z_j / a_xz_j >= 1. The mean of the
s-th power of that product is M_s^k, so that by Markov's inequality this happens with probability at most M^k::

    P(missed) <= sum over the other rows of M(x, x')^k.

**Method of types.** If KL(q || a_x') <= KL(q || a_x), then q stays within the outputs of both rows (KL(q || a_x) is
finite, since x sent them), and for every s, by the inequality of Gibbs::

    KL(q || a_x) >= (1-s) KL(q || a_x) + s KL(q || a_x') >= -log2 M_s(x, x'),   hence   KL(q || a_x) >= C.

The paper's eq. conv_rate bounds P(KL(q || a_x) > delta) by (1+k)^|Z| 2^(-k delta) for every delta; as delta rises
to the smallest C among the other rows, P(missed) <= (1+k)^|Z| 2^(-k min C).

**Equal rows.** If m values, x among them, share x's row, they are equally likely whatever was sent: the guess is right
at most once in m, and ``P(error) <= (m-1)/m + P(missed)/m``, which tends to (m-1)/m. Other rows count once each,
however many values share them.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from hubbub.auditing.sketch_similarity import sketch_similarity
from hubbub.core import validation
from hubbub.core.arrays import Array, Floats, Positions, as_array, as_integers
from hubbub.core.errors import DomainError, MechanismError, SettingError, shorten
from hubbub.core.progress import Progress, stepwise
from hubbub.core.threads import threads_for
from hubbub.mechanisms import (
    DBitFlip,
    Geometric,
    LocalHashing,
    LongitudinalHashing,
    LongitudinalResponse,
    Mechanism,
    PlanarGeometric,
    RandomizedResponse,
    Staircase,
    SubsetSelection,
    TruncatedGeometric,
)
from hubbub.mechanisms.base import check_rows
from hubbub.mechanisms.longitudinal_response import ResponseStages
from hubbub.mechanisms.longitudinal_unary import LongitudinalBits
from hubbub.mechanisms.sketches import Sketch
from hubbub.mechanisms.unary_encoding import UnaryEncoding

BOUNDS = ("best", "types", "union")
EXPONENT_STEPS = 16  # s in sixteenths: with M_s close to a parabola, C loses less than 4 / (2 * 16)^2 = 0.4%
MAX_ROW_DIFFERENCE = 1e-12  # between the logarithms of equal rows: tables of mechanisms are no more exact than that
TAIL_ROUNDING = 1e-13  # error of a sum of up to 100,000 probabilities, from which the omitted part is computed
POWER_ROUNDING = 1000  # units of the last place: the error of exp(s log a) if log a is as low as -700
SMALLEST_BOUND = 1e-300  # no coefficient and no bound is rounded to 0: what is possible is not called impossible
MAX_LOG_OUTPUTS = 700.0  # of a number of outputs: exp of it is still a float
MAX_TABLE_ENTRIES = 50_000_000  # of probabilities (400 MB)
MAX_MULTIPLICATIONS = 8_000_000_000  # for one s (2,000 values and outputs); nine of them take 20 s or less
MAX_REMEMBERED_REPORTS = 1_000_000  # from one permanent response: further ones add little, and are left out
MAX_COUNTED_REPORTS = 1_000  # the same where they are counted by two values
GOLDEN_RATIO = 0.6180339887498949  # its multiples are spread evenly over [0, 1)


@stepwise
def error_probability(
    mechanism: Mechanism,
    reports_per_user: int | Sequence[int] | Array,
    *,
    value: object = None,
    bound: str = "best",
) -> Generator[Progress, None, float | Floats]:
    r"""Return an upper bound on how often the likeliest value, given one user's reports, is not the user's own.

    It answers what several reports of one person give away: all `reports_per_user` outputs of one mechanism are known
    to come from the same user. With :math:`a_{xz}` the probability that value x sends output z, let
    :math:`M(x, y) = \min_s \sum_z a_{xz}^{1-s} a_{yz}^s`. After k reports of a user with value x the union bound is
    :math:`\sum_{y \ne x} M(x, y)^k`; the paper's bound by types is :math:`(1 + k)^{|Z|} \max_{y \ne x} M(x, y)^k`, with
    :math:`|Z|` the number of outputs, and far looser while reports are few.

    Values with equal rows cannot be distinguished: among m of them the bound tends to (m-1)/m. Reports of
    mechanisms with memory share one permanent response, and the bound does not tend to 0. For `LocalHashing` the hash
    is taken to be random: two values share a bucket for one in `buckets` seeds.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism that the user runs.
    reports_per_user : int or list of int
        How many outputs the user sends.
    value : label, optional
        The true value; by default the bound is for the worst one.
    bound : {"best", "union", "types"}, default "best"
        Which bound to return; ``"best"`` is the smaller of both, at most 1.

    Returns
    -------
    float or array
        A float for one number of reports, an array for a list of them.

    Raises
    ------
    SettingError
        If an argument is not what it should be: a mechanism, whole numbers from 1, a value of the domain.
    MechanismError
        If the mechanism's outputs cannot be listed, or its table is too large to compare all rows; or for several
        reports of `BloomRappor`.

    Examples
    --------
    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> hb.error_probability(coin, [1, 10, 50]).round(4)
    array([0.8868, 0.3008, 0.0025])
    """
    if not isinstance(mechanism, Mechanism):
        raise SettingError(
            "not a mechanism",
            where="error_probability(mechanism)",
            got=shorten(mechanism),
            expected="a hubbub mechanism",
            remedy="pass the mechanism that the user runs, for example hubbub.RandomizedResponse(domain, epsilon)",
        )
    bound = validation.one_of(bound, BOUNDS, "bound", "error_probability", default="the best one")
    counts = _counts(reports_per_user)
    position = None if value is None else _position(mechanism, value)
    if isinstance(mechanism, DBitFlip):  # of equal reports, only the first one tells anything
        errors = np.full(counts.size, _asked_similarity(mechanism, position).worst(1.0, bound))
    elif mechanism.remembers and counts.max(initial=1) > 1:
        errors = _remembered_errors(mechanism, counts.ravel(), bound)
    else:
        similarity = _symmetric_similarity(mechanism)
        if isinstance(mechanism, Sketch):
            logs, sharing = sketch_similarity(mechanism, position)
            similarity = RowSimilarity(logs, np.ones(logs.shape[1]), sharing, math.inf)
        if similarity is None:
            similarity = yield from _compare_rows(mechanism, position)
        errors = np.array([similarity.worst(float(count), bound) for count in counts.ravel()])
    return float(errors[0]) if counts.ndim == 0 else errors.reshape(counts.shape)


def _counts(reports_per_user: object) -> Positions:
    parts = {
        "where": "error_probability(reports_per_user)",
        "expected": "a whole number from 1, or a list of them",
        "remedy": "pass how many outputs one user sends, 1 or more",
    }
    counts = as_integers(reports_per_user, SettingError, **parts)
    if counts.size and counts.min() < 1:
        raise SettingError("a guess needs at least one report", got=int(counts.min()), **parts)
    return counts


def _position(mechanism: Mechanism, value: object) -> int:
    parts = {
        "where": "error_probability(value=)",
        "got": shorten(value),
        "remedy": "pass one label of the domain, or leave value out for the worst one",
    }
    try:
        position = np.asarray(mechanism.domain.index(as_array(value)))
    except DomainError as error:
        raise SettingError("not a value of the mechanism's domain", expected=error.expected, **parts) from None
    if position.size != 1 or position.ndim:
        raise SettingError("not a single value", expected=mechanism.domain.describe(), **parts)
    return int(position)


@dataclass(frozen=True)
class RowSimilarity:
    """How similar the rows of some values (rows here) are to all other rows (columns)."""

    logs: Floats  # log M; -inf if the two are never confused
    multiplicity: Floats  # how many rows each column stands for
    sharing: Floats  # how many values share the row, itself included
    outputs: float  # |Z|

    def worst(self, count: float, bound: str) -> float:
        """Return the bound after `count` reports, for the worst of the values."""
        missed = np.ones(self.logs.shape[0])
        if bound != "types":
            missed = np.minimum(missed, self._powers(count * self.logs) @ self.multiplicity)
        if bound != "union":
            nearest = self.logs.max(axis=1)
            possible = nearest > -math.inf  # otherwise C is infinite, and delta may rise without end
            exponent = np.full(nearest.size, -math.inf)
            exponent[possible] = self.outputs * math.log1p(count) + count * nearest[possible]
            missed = np.minimum(missed, self._powers(np.minimum(exponent, 0.0)))
        return float(((self.sharing - 1.0 + missed) / self.sharing).max())

    @staticmethod
    def _powers(exponents: Floats) -> Floats:
        """Return exp, rounded up rather than to 0."""
        return np.where(exponents > -math.inf, np.maximum(np.exp(exponents), SMALLEST_BOUND), 0.0)


def _symmetric_similarity(mechanism: Mechanism) -> RowSimilarity | None:
    """Return the closed form if all pairs of values are alike; None otherwise.

    Exchanging the two values and relabelling the outputs accordingly changes nothing, so that M_s = M_(1-s), and the
    log-convex M_s is least at s = 1/2.
    """
    size = len(mechanism.domain)
    if isinstance(mechanism, RandomizedResponse):
        log, outputs = _log_of_subsets(mechanism.log_ratio, size, 1), float(size)
    elif isinstance(mechanism, SubsetSelection):
        chosen = int(mechanism.size or 1)
        log, outputs = _log_of_subsets(mechanism.epsilon, size, chosen), _subsets(size, chosen)
    elif isinstance(mechanism, LocalHashing):
        buckets = int(mechanism.buckets or 2)
        log, outputs = _log_over_seeds(_log_of_subsets(mechanism.log_ratio, buckets, 1), buckets), math.inf
    elif isinstance(mechanism, UnaryEncoding):
        # Two bits differ, one each way; at s = 1/2 both have the same coefficient.
        bits = mechanism.log_bits
        ones, zeros = (bits.own_one + bits.other_one) / 2, (bits.own_zero + bits.other_zero) / 2
        log, outputs = 2.0 * min(0.0, float(np.logaddexp(ones, zeros))), _power_of_two(size)
    else:
        return None
    return RowSimilarity(np.array([[log]]), np.array([size - 1.0]), np.ones(1), outputs)


def _log_over_seeds(log: float, buckets: int) -> float:
    """Return log M of hashed outputs, from that of outputs among the buckets themselves.

    For one seed in g two values share a bucket and nothing is learned. M is the mean over seeds, which are part of the
    output and have the same probability for all values.
    """
    return math.log1p(math.expm1(log) * (1.0 - 1.0 / buckets))


def _asked_similarity(mechanism: DBitFlip, position: int | None) -> RowSimilarity:
    """Return how similar values in different buckets are: both buckets are asked, or one of them, or none.

    Values in one bucket have equal rows; the worst is one in the largest bucket.
    """
    buckets, asked = int(mechanism.buckets or 2), int(mechanism.bits or 1)
    of_one = 2.0 * math.exp(-mechanism.nats / 2) / (1.0 + math.exp(-mechanism.nats))
    pairs = buckets * (buckets - 1.0)
    both, one = asked * (asked - 1) / pairs, 2 * asked * (buckets - asked) / pairs
    log = math.log(both * of_one**2 + one * of_one + max(0.0, 1.0 - both - one))
    sizes = np.bincount(mechanism.bucket_of(np.arange(len(mechanism.domain))), minlength=buckets)
    sharing = sizes.max() if position is None else sizes[mechanism.bucket_of(np.array([position]))[0]]
    outputs = _subsets(buckets, asked) * _power_of_two(asked)
    return RowSimilarity(np.array([[log]]), np.array([buckets - 1.0]), np.array([float(sharing)]), outputs)


def _remembered_errors(mechanism: Mechanism, counts: Positions, bound: str) -> Floats:
    """Return the bound if a user's reports share a permanent response: all of them are one output of one run.

    The permanent response is never revealed: the bound tends to that of one report of the first stage alone.
    """
    size, errors = len(mechanism.domain), []
    for count in counts.tolist():
        if isinstance(mechanism, LongitudinalBits):
            log, outputs = _log_of_bits(mechanism, min(count, MAX_REMEMBERED_REPORTS)), _power_of_two(size * count)
        elif isinstance(mechanism, LongitudinalHashing):
            inside = _log_of_responses(mechanism.stages, min(count, MAX_COUNTED_REPORTS))
            log, outputs = _log_over_seeds(inside, int(mechanism.buckets or 2)), math.inf
        elif isinstance(mechanism, LongitudinalResponse):
            log = _log_of_responses(mechanism.stages, min(count, MAX_COUNTED_REPORTS))
            outputs = float(size) ** count if count * math.log(size) < MAX_LOG_OUTPUTS else math.inf
        else:
            raise MechanismError(
                "the reports of a user are not independent given the value",
                where="error_probability(mechanism)",
                got=type(mechanism).__name__,
                expected="a mechanism without memory, LongitudinalRappor, LongitudinalUnary, LongitudinalResponse, "
                "LongitudinalHashing, or reports_per_user=1",
                remedy="pass reports_per_user=1",
            )
        together = RowSimilarity(np.array([[log]]), np.array([size - 1.0]), np.ones(1), outputs)
        errors.append(together.worst(1.0, bound))
    return np.array(errors)


def _log_of_bits(mechanism: LongitudinalBits, count: int) -> float:
    """Return log M of so many reports of bits, of which two differ, one each way, as for other unary mechanisms.

    The number n of ones among m reports is sufficient for a bit, so that each bit's coefficient is the sum over n of
    C(m, n) sqrt(P(n | own) P(n | other)).
    """
    from scipy.special import gammaln, logsumexp

    other, gain = mechanism.log_ones(count)
    ones = np.arange(count + 1.0)
    ways = gammaln(count + 1.0) - gammaln(ones + 1.0) - gammaln(count - ones + 1.0)
    return 2.0 * min(0.0, float(logsumexp(ways + other + gain / 2)))


def _log_of_responses(stages: ResponseStages, count: int) -> float:
    """Return an upper bound of log M of so many responses: that of how many of them are either of the two values.

    What is forgotten of the reports can only make two values more similar. Of m reports i are the one value, j the
    other, and the rest one of the k - 2 others; the permanent response is the one value, the other, or one of those.
    """
    from scipy.special import gammaln, logsumexp, xlogy

    first, second = np.indices((count + 1, count + 1)).reshape(2, -1).astype(np.float64)
    others = stages.outputs - 2
    possible = first + second <= count if others else first + second == count
    first, second = first[possible], second[possible]
    rest = count - first - second
    ways = gammaln(count + 1.0) - gammaln(first + 1.0) - gammaln(second + 1.0) - gammaln(rest + 1.0)
    elsewhere = xlogy(rest, others)  # relative to the probability of one output that is not the permanent response
    kept = [stages.evidence * first + elsewhere, stages.evidence * second + elsewhere]
    if others:
        found = np.logaddexp(stages.evidence, math.log(others - 1)) if others > 1 else stages.evidence
        kept.append(math.log(others) + rest * found)
    own, other = (
        logsumexp(
            np.stack([kept[place] + stages.epsilon, *(part for at, part in enumerate(kept) if at != place)]), axis=0
        )
        for place in (0, 1)
    )
    total = count * stages.log_other + stages.log_first_other
    return min(0.0, float(logsumexp(ways + (own + other) / 2)) + total)


def _log_of_subsets(epsilon: float, values: int, chosen: int) -> float:
    """Return log M of subset selection, which is k-RR if one value is chosen.

    Of the C(k, d) subsets a share d(d-1) / k(k-1) holds both values, 2 d(k-d) / k(k-1) one of them, and the rest
    neither. With these weights, and e^epsilon d/k + (k-d)/k for the sum of a row, ::

        1 - M = (e^(epsilon/2) - 1)^2 d(k-d) / (k(k-1)) / (e^epsilon d/k + (k-d)/k).
    """
    k, d, faded = float(values), float(chosen), math.exp(-epsilon / 2)  # divided by e^epsilon, so that nothing is large
    total = (d + faded**2 * (k - d)) * (k - 1)
    distinct = math.expm1(-epsilon / 2) ** 2 * d * (k - d) / total
    if distinct < 0.5:
        return math.log1p(-distinct)  # exact if the two are almost the same...
    both = d * (d - 1) + 2.0 * faded * d * (k - d) + faded**2 * (k - d) * (k - d - 1)
    return math.log(max(both / total, SMALLEST_BOUND))  # ...and if they are almost certainly distinguished


def _subsets(values: int, chosen: int) -> float:
    """Return C(values, chosen), infinite if no float holds it (which is decided before multiplying it out)."""
    log = math.lgamma(values + 1) - math.lgamma(chosen + 1) - math.lgamma(values - chosen + 1)
    return float(math.comb(values, chosen)) if log < MAX_LOG_OUTPUTS else math.inf


def _power_of_two(bits: int) -> float:
    return 2.0**bits if bits * math.log(2.0) < MAX_LOG_OUTPUTS else math.inf


def _compare_rows(mechanism: Mechanism, position: int | None) -> Generator[Progress, None, RowSimilarity]:
    """Return the coefficients of one value's row, or of all rows, with all others."""
    logs, omitted = _log_rows(mechanism, position)
    groups, first = _group_equal_rows(logs)
    sharing = np.bincount(groups).astype(np.float64)
    chosen = np.arange(first.size) if position is None else groups[[position]]
    logs = logs[first]
    sent = np.isfinite(logs)
    own = np.zeros((chosen.size, first.size), dtype=bool)
    own[np.arange(chosen.size), chosen] = True
    least = np.ones((chosen.size, first.size))
    shares = (
        np.arange(0 if not sent.all() else 1, EXPONENT_STEPS // 2 + 1) / EXPONENT_STEPS
    )  # at s = 0, M is 1 without zeros
    for done, share in enumerate(shares.tolist()):
        yield Progress(done, shares.size, "comparing the rows of the values")
        with threads_for(logs.size):
            low = np.exp(share * logs) if share else sent.astype(np.float64)  # the limit: 0^0 is 0 here
            high = np.exp((1.0 - share) * logs)
            there = high[chosen] @ low.T
            back = there.T if position is None else low[chosen] @ high.T  # M_s(x, x') = M_(1-s)(x', x)
            np.minimum(least, np.minimum(there, back), out=least)
    # Rounding is compensated: a bound may be a little larger, never smaller.
    least *= 1.0 + (logs.shape[1] + POWER_ROUNDING) * np.finfo(np.float64).eps
    least = np.minimum(least + omitted, 1.0)
    together = ~own if sent.all() else ~own & ((sent[chosen].astype(np.float64) @ sent.T.astype(np.float64)) > 0)
    coefficients = np.full(least.shape, -math.inf)
    coefficients[together] = np.log(np.maximum(least[together], SMALLEST_BOUND))
    outputs = math.inf if omitted else float(logs.shape[1])
    return RowSimilarity(coefficients, np.ones(first.size), sharing[chosen], outputs)


def _log_rows(mechanism: Mechanism, position: int | None) -> tuple[Floats, float]:
    """Return the log-probabilities, values by outputs, and how much omitted outputs may add to an M."""
    if isinstance(mechanism, Geometric):
        # All outputs from an end on have the same ratio r = a_x'z / a_xz, so that the likeliest value depends only on
        # how many there were, and sum a^(1-s) a'^s = r^s sum a = (sum a)^(1-s) (sum a')^s: clamping loses nothing.
        mechanism = TruncatedGeometric(mechanism.domain, mechanism.epsilon)
    stairs = mechanism.folded_outputs() if isinstance(mechanism, Staircase) else None  # nothing is lost here, either
    outputs = mechanism.outputs if stairs is None else stairs[0]
    is_unbounded = isinstance(mechanism, PlanarGeometric) and not mechanism.truncated
    if outputs is None:
        raise MechanismError(
            "the rows cannot be compared: the outputs are too many",
            where="error_probability(mechanism)",
            got=type(mechanism).__name__,
            expected="a mechanism whose outputs can be listed",
            remedy="use truncated=True: outputs are then cells of the grid" if is_unbounded else "merge outputs",
        )
    values, columns = len(mechanism.domain), len(outputs)
    products = values * columns * (values if position is None else 1)
    if products > MAX_MULTIPLICATIONS or values * columns > MAX_TABLE_ENTRIES:
        raise MechanismError(
            "comparing all rows would take too long"
            if products > MAX_MULTIPLICATIONS
            else "the table would be too large",
            where="error_probability(mechanism)",
            got=f"{values:,} values x {columns:,} outputs",
            expected=f"at most {MAX_MULTIPLICATIONS:,} products and {MAX_TABLE_ENTRIES:,} entries",
            remedy="name the value you ask about (value=), or use a coarser domain",
        )
    logs = mechanism.log_columns(mechanism.output_space.encode(outputs)) + (0.0 if stairs is None else stairs[1])
    rows = np.exp(logs)
    check_rows(rows, f"{type(mechanism).__name__}.matrix()")
    sums = rows.sum(axis=1, keepdims=True)
    if not is_unbounded:
        return logs - np.log(sums), 0.0
    # By Hölder's inequality, omitted outputs add at most (1 - sum a)^(1-s) (1 - sum a')^s.
    return logs, max(0.0, 1.0 - float(sums.min())) + TAIL_ROUNDING


def _group_equal_rows(logs: Floats) -> tuple[Positions, Positions]:
    """Return the group of each row, equal rows being in one group, and the first row of each group."""
    # Rows that differ get different marks.
    marks = np.exp(logs) @ (1.0 + np.arange(logs.shape[1]) * GOLDEN_RATIO % 1.0)
    groups = np.full(logs.shape[0], -1, dtype=np.int64)
    first: list[int] = []
    for row in range(logs.shape[0]):
        if groups[row] >= 0:
            continue
        # Marks only save time: equal rows have marks that agree to the difference allowed and the rounding of sums.
        near = np.flatnonzero((groups < 0) & (np.abs(marks - marks[row]) <= 4 * MAX_ROW_DIFFERENCE * marks[row]))
        with np.errstate(invalid="ignore"):  # of two zeros, -inf and -inf, the difference is no number
            same = (logs[near] == logs[row]) | (np.abs(logs[near] - logs[row]) <= MAX_ROW_DIFFERENCE)
        groups[near[same.all(axis=1)]] = len(first)
        first.append(row)
    return groups, np.array(first)
