"""Whether any distribution explains the reports.

**Shares of outputs.** All tables (`evidence`) have one common theta. With whitened residuals Z and design M, near a
distribution theta the least chi-square over all distributions is, in the limit of many users,

    T = min |Z - M h|^2   over  h_x >= -sqrt(n) theta_x,  sum_x h_x = 0,     Z standard normal.

Its part outside the range of M is a chi-square of `degrees` degrees of freedom; the rest, B >= 0, is what signs add:
an estimate without signs would fit it. T of the data and B of simulated scores are minima of the same program
(`solvers/cone.py`), and p = mean over simulations of P(chi-square >= T - B). A square invertible channel has no degrees
left, and B is all that can be tested: whether the outputs lie in the mechanism's image.

**Which theta.** T is largest where theta has most zeros, and which zeros are true is unknown. Values are set to 0 one
after the other, those that cost least first, as long as one of n samples would have a chi-square as large as that of
all of them together. This is moment selection (Andrews and Soares, 2010): true zeros are found with probability tending
to 1, and doubtful values count as zeros, which errs to the side of no alarm.

**Small p-values without degrees left.** sqrt(B) is the distance of a standard normal vector from a convex set:
it changes by no more than the vector does. By the Gaussian isoperimetric inequality, P(sqrt(B) <= b) >= Phi(a)
implies P(sqrt(B) > b + t) <= Phi(-a - t): beyond the simulations' largest values, this bound is the p-value.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hubbub.arrays import Floats, as_real
from hubbub.channels.dense import Stored
from hubbub.errors import EstimateError, SettingError, shorten
from hubbub.likelihood import Likelihood
from hubbub.reports import Reports
from hubbub.sampling import Randomness
from hubbub.solvers import finish, maximise
from hubbub.solvers.cone import cone_minima
from hubbub.threads import threads_for
from hubbub.trust.evidence import Evidence, Law, Repeats, Table, collect, pools
from hubbub.trust.stages import Stage

SEED = 0  # of the simulations, unless the caller brings a generator
LEVEL = 0.01
SHOWN = 5  # outputs in `worst`
RUNS = 1_000  # simulations...
WORK = 1.2e10  # ...or as many as keep runs x values^3 below this, but at least FEWEST
FEWEST = 100
BATCH = 50  # simulations between two reports of progress
CLEAR = 20  # simulations beyond T after which p is known well enough (Besag and Clifford, 1991)
TAIL = 10  # the simulation, from the largest down, from which the isoperimetric bound takes over
NEGLIGIBLE = 1e-6  # p-values below which the bound with all values at 0 is sharp enough
NOTHING = 1e-4  # a chi-square that is rounding of the program's solution
FLAT = 1e-11  # eigenvalues, relative to the largest, of directions that no output sees
TINY = float(np.finfo(np.float64).tiny)  # keeps what is 0 from being divided by
TOL = 1e-9  # gap of the estimate, in nats per user


class Misfit(NamedTuple):
    """One output, number or pair that fits badly."""

    part: str
    text: str
    observed: float
    expected: float
    residual: float  # observed less expected, in standard deviations


@dataclass(frozen=True)
class FitPart:
    """One of several tests."""

    name: str
    statistic: float
    degrees: int
    p_value: float
    sentence: str


@dataclass(frozen=True)
class FitTest:
    """Whether any distribution explains the reports; what cannot be seen is in `reason`."""

    testable: bool
    p_value: float | None  # over all parts: the smallest, times their number (Bonferroni)
    level: float
    rejected: bool
    reason: str
    parts: tuple[FitPart, ...]
    worst: tuple[Misfit, ...]
    seed: int | str

    @property
    def statistic(self) -> float | None:
        """The statistic of the part with the smallest p-value."""
        return self._decisive.statistic if self.parts else None

    @property
    def degrees(self) -> int | None:
        """The degrees of freedom of that part; 0 where only inequalities are tested."""
        return self._decisive.degrees if self.parts else None

    @property
    def _decisive(self) -> FitPart:
        return min(self.parts, key=lambda part: part.p_value)

    def explain(self) -> str:
        """Return the result in words."""
        if self.p_value is None:
            return f"Not testable: {self.reason}."
        if self.rejected:
            head = f"No distribution explains these reports (p = {self.p_value:.2g}, level {self.level:g})."
        else:
            head = f"Nothing against the fit was found (p = {self.p_value:.2g}, level {self.level:g})."
        lines = [head] + [f"- {part.name}: {part.sentence}" for part in self.parts]
        if self.rejected:
            lines += [
                f"  worst: {each.text}: {each.observed:,.0f} observed, {each.expected:,.1f} expected"
                f" ({each.residual:+.1f} standard deviations)"
                for each in self.worst
            ]
        return "\n".join([*lines, f"{self.reason[0].upper()}{self.reason[1:]}."])


def fit_test(reports: Reports, level: float = LEVEL, *, rng: Randomness = None) -> FitTest:
    """Test whether any distribution over the domain explains the reports, under the mechanisms they name.

    A small p-value says that the model is wrong: another epsilon or mechanism than the study's, made-up reports,
    reports counted twice, or users of one mechanism who differ from those of another. A large one does not say that it
    is right: what an honest population could have sent cannot be told from one (`reason` says what remains unseen).

    The parts: the shares of all outputs (of pairs of outputs where users sent several), the number of ones of unary
    reports and the size of hashed reports' sets, whose laws are the same for all values, and reports or seeds that
    repeat. `p_value` is the smallest of theirs, times their number. With ``rng=None`` the same reports give the same
    answer.

    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> fit_test(hb.Reports.from_counts(coin, {"yes": 950, "no": 50})).rejected  # at most 73% can say yes
    True
    """
    return finish(fit_testing(reports, level, rng=rng))


def fit_testing(reports: Reports, level: float = LEVEL, *, rng: Randomness = None) -> Generator[Stage, None, FitTest]:
    """Do what `fit_test` does, yielding stages on the way."""
    if not isinstance(reports, Reports):
        raise EstimateError(
            "not reports",
            where="fit_test(reports)",
            got=shorten(reports),
            expected="a hubbub.Reports",
            remedy="build them with hubbub.Reports.from_outputs(mechanism, outputs)",
        )
    share = as_real(level)
    if not 0.0 < share < 1.0:
        raise SettingError(
            "level is not between 0 and 1",
            where="fit_test(level=)",
            got=shorten(level),
            expected="the share of false alarms to accept: 0.01, say",
            remedy=f"leave level out for {LEVEL:g}",
        )
    generator, seed = _generator(rng)
    return _test(reports, share, generator, seed)


def _generator(rng: Randomness) -> tuple[np.random.Generator, int | str]:
    """Return a generator, and what is to be recorded of it."""
    if isinstance(rng, np.random.Generator):
        return rng, "a generator"
    if rng is None or (isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0):
        seed = SEED if rng is None else int(rng)
        return np.random.default_rng(seed), seed
    raise SettingError(
        "not a source of randomness",
        where="fit_test(rng=)",
        got=shorten(rng),
        expected="a numpy.random.Generator, or a seed that is at least 0",
        remedy="leave rng out: the same reports then give the same answer",
    )


def _test(reports: Reports, level: float, rng: np.random.Generator, seed: int | str) -> Generator[Stage, None, FitTest]:
    yield Stage(0, RUNS, "counting outputs")
    evidence = collect(reports, rng)
    found: list[tuple[FitPart, list[Misfit]]] = []
    for law in evidence.laws:
        found += _law_part(law)
    found += [_repeats_part(repeats) for repeats in evidence.repeats]
    anything = len(evidence.tables) == 1 and evidence.tables[0].explains_anything
    if evidence.tables and not anything:
        found += yield from _shares_part(evidence.tables, rng)
    parts = tuple(part for part, _ in found)
    worst = sorted((each for _, some in found for each in some), key=lambda each: -abs(each.residual))[:SHOWN]
    if not parts:
        reason = _nothing_to_test(evidence, anything=anything)
        return FitTest(False, None, level, False, reason, (), (), seed)
    p_value = min(1.0, len(parts) * min(part.p_value for part in parts))
    return FitTest(True, p_value, level, p_value <= level, _unseen(evidence), parts, tuple(worst), seed)


# -- single parts --------------------------------------------------------------------------------------------


def _law_part(law: Law) -> list[tuple[FitPart, list[Misfit]]]:
    """Hold counts against a law that is known, by Pearson's chi-square; nothing where all is one cell."""
    from scipy.special import chdtrc

    users = float(law.counts.sum())
    pool = pools(users * law.chances)
    observed, expected = (np.bincount(pool, weights=numbers) for numbers in (law.counts, users * law.chances))
    if observed.size < 2:
        return []
    statistic, degrees = float(((observed - expected) ** 2 / expected).sum()), observed.size - 1
    residual = (observed - expected) / np.sqrt(expected * (1.0 - expected / users))
    p_value = float(chdtrc(degrees, statistic))
    sentence = f"chi-square {statistic:.1f} with {degrees} degrees of freedom against the known law, p = {p_value:.2g}"
    misfits = []
    for cell in np.argsort(-np.abs(residual))[:SHOWN]:
        members = np.flatnonzero(pool == cell)
        which = str(members[0]) if members.size == 1 else f"{members[0]} to {members[-1]}"
        misfits.append(
            Misfit(law.name, f"{which} {law.noun}", float(observed[cell]), float(expected[cell]), float(residual[cell]))
        )
    return [(FitPart(law.name, statistic, degrees, p_value, sentence), misfits)]


def _repeats_part(repeats: Repeats) -> tuple[FitPart, list[Misfit]]:
    """Hold pairs of equal reports against what is possible at most, by Cantelli's inequality: exact for any n.

    With K pairs, for all theta, E K <= C(n,2) P(two equal) and var K <= C(n,2) P(two equal) + n^3 P(three equal).
    """
    n = float(repeats.users)
    mean = n * (n - 1) / 2 * repeats.two
    variance = mean + n**3 * repeats.three + TINY  # long reports never repeat
    excess = max(0.0, repeats.pairs - mean)
    p_value = variance / (variance + excess**2) if excess > 0 else 1.0
    residual = (repeats.pairs - mean) / math.sqrt(variance)
    sentence = f"{repeats.pairs:,.0f} pairs are equal, at most {mean:.3g} are to be expected, p <= {p_value:.2g}"
    misfits = []
    if excess > 0:
        text = f"pairs of equal reports; the most frequent, {repeats.text}, came {repeats.most:,} times"
        misfits.append(Misfit(repeats.name, text, repeats.pairs, mean, residual))
    return FitPart(repeats.name, repeats.pairs, 0, p_value, sentence), misfits


# -- shares of outputs ---------------------------------------------------------------------------------------


class Local(NamedTuple):
    """The least chi-square as a quadratic in h = sqrt(n) (theta' - theta)."""

    information: Floats
    score: Floats
    chi_square: float  # at h = 0
    dimensions: int

    @classmethod
    def at(cls, tables: Sequence[Table], theta: Floats, users: float) -> Local:
        """Return the sum over tables, each by its share of users."""
        information, score = np.zeros((theta.size, theta.size)), np.zeros(theta.size)
        chi_square, dimensions = 0.0, 0
        for table in tables:
            design, residual, size = table.whitened(theta)
            share = table.users / users
            information += share * (design @ design.T)
            score += math.sqrt(share) * (design @ residual)
            chi_square += float(residual @ residual)
            dimensions += size
        return cls(information, score, chi_square, dimensions)


def _shares_part(
    tables: Sequence[Table], rng: np.random.Generator
) -> Generator[Stage, None, list[tuple[FitPart, list[Misfit]]]]:
    """Test all tables together, with one theta."""
    entries = sum(table.chances.size for table in tables)
    with threads_for(entries):
        theta = _estimate(tables)
        kept = [small for table in tables if (small := table.pooled(theta)) is not None]
        if not kept:
            return []
        if kept != list(tables):  # small cells were pooled
            theta = _estimate(kept)
        users = float(sum(table.users for table in kept))
        local = Local.at(kept, theta, users)
        total = np.ones((1, theta.size))
        least = cone_minima(local.information, local.score[None], -math.sqrt(users) * theta, total)[0]
        statistic = max(0.0, local.chi_square + 2.0 * float(least))
        base = plausible(theta, local.information, users)
    p_value, degrees = yield from _reference(statistic, local, base, users, entries, rng)
    sentence = f"least chi-square {statistic:.1f} over all distributions, p = {p_value:.2g}; " + (
        f"{degrees} degrees of freedom and the signs of the shares are tested"
        if degrees
        else "only the signs of the shares are tested"
    )
    name = "shares of outputs"
    misfits = []
    for table in kept:
        expected = table.expected(theta)
        residual = (table.counts - expected) / np.sqrt(np.maximum(table.variance(theta), TINY))
        misfits += [
            Misfit(
                name, table.words(int(cell)), float(table.counts[cell]), float(expected[cell]), float(residual[cell])
            )
            for cell in np.argsort(-np.abs(residual))[:SHOWN]
        ]
    return [(FitPart(name, statistic, degrees, p_value, sentence), misfits)]


def _estimate(tables: Sequence[Table]) -> Floats:
    """Return the most likely theta, with sums of bits as if bits were independent."""
    columns, weights = zip(*(table.likelihood() for table in tables), strict=True)
    matrix, counts = np.concatenate(columns, axis=1), np.concatenate(weights)
    channel = Stored(matrix, np.zeros(counts.size))
    start = np.full(matrix.shape[0], 1.0 / matrix.shape[0])
    likelihood = Likelihood(channel, counts, int(counts.sum()))
    return finish(maximise(likelihood, start, TOL, solver=None, max_iter=None)).outcome.point.theta


def plausible(theta: Floats, information: Floats, users: float) -> Floats:
    """Return the distribution with the fewest values that these users do not rule out, found value by value.

    In the quadratic model without signs, with V the covariance of sqrt(n) theta on vectors with sum 0, setting value x
    to 0 costs n theta_x^2 / V_xx and moves the others along column x of V.
    """
    from scipy.special import chdtri

    values = np.flatnonzero(theta > 0.0)
    shares, scale = theta[values], 1.0 / values.size
    inner = information[np.ix_(values, values)]
    sums = np.eye(values.size) - scale  # projects on vectors with sum 0
    spread = np.linalg.pinv(sums @ inner @ sums, rcond=FLAT, hermitian=True)
    best, cost, removed = theta, 0.0, 0
    alive = np.ones(values.size, dtype=bool)
    while alive.sum() > 1:
        freedom = np.where(alive, np.diag(spread), 0.0)
        movable = alive & (freedom > FLAT * max(float(freedom.max()), TINY))
        if not movable.any():
            break
        prices = np.full(values.size, np.inf)
        prices[movable] = users * shares[movable] ** 2 / freedom[movable]
        prices[movable & (shares < 0.0)] *= -1.0  # a negative share has to go first
        x = int(np.argmin(prices))
        cost += abs(float(prices[x]))
        removed += 1
        if cost > float(chdtri(removed, 1.0 / users)):
            break
        column = spread[:, x] / spread[x, x]
        shares = shares - column * shares[x]
        spread = spread - np.outer(column, spread[x])
        shares[x], alive[x] = 0.0, False
        spread[x], spread[:, x] = 0.0, 0.0
        if shares.min() >= 0.0:
            best = np.zeros_like(theta)
            best[values] = shares / shares.sum()
    return best


def _reference(
    statistic: float, local: Local, base: Floats, users: float, entries: int, rng: np.random.Generator
) -> Generator[Stage, None, tuple[float, int]]:
    """Return P(T >= statistic) for users who follow `base`, and the degrees of freedom."""
    from scipy.special import chdtrc

    size = base.size
    with threads_for(entries):
        centred = local.information - local.information.mean(axis=0)
        centred = centred - centred.mean(axis=1, keepdims=True)
        lengths, axes = np.linalg.eigh((centred + centred.T) / 2)
    seen = lengths > FLAT * max(float(lengths[-1]), TINY)
    roots = axes[:, seen] * np.sqrt(lengths[seen])
    degrees = max(0, local.dimensions - int(seen.sum()))
    if statistic < NOTHING:
        return 1.0, degrees
    bound = float(chdtrc(local.dimensions, statistic))  # B is at most the squared length of its part of Z
    if bound < NEGLIGIBLE:
        return bound, degrees
    lower, total = -math.sqrt(users) * base, np.ones((1, size))
    runs = int(np.clip(WORK / size**3, FEWEST, RUNS))
    signs = np.empty(0)
    while signs.size < runs:
        normal = rng.standard_normal((min(BATCH, runs - signs.size), roots.shape[1]))
        with threads_for(entries):
            least = cone_minima(local.information, normal @ roots.T, lower, total)
        signs = np.append(signs, np.maximum(0.0, (normal**2).sum(axis=1) + 2.0 * least))
        if _tail(statistic, signs, degrees)[1] >= CLEAR:
            break
        yield Stage(signs.size, runs, "simulating the test")
    return min(bound, _tail(statistic, signs, degrees)[0]), degrees


def _tail(statistic: float, signs: Floats, degrees: int) -> tuple[float, float]:
    """Return P(chi-square + B >= statistic), and how many simulations it rests on."""
    from scipy.special import chdtrc, ndtr, ndtri

    if degrees:
        chances = chdtrc(degrees, np.maximum(statistic - signs, 0.0))
        return float(chances.mean()), float(chances.sum())
    beyond = int(np.count_nonzero(signs >= statistic))
    plain = (1 + beyond) / (1 + signs.size)
    if beyond >= TAIL or signs.size <= TAIL:
        return plain, float(beyond)
    largest = math.sqrt(float(np.sort(signs)[-TAIL]))
    known = float(ndtri(1.0 - TAIL / (1 + signs.size)))
    return min(plain, float(ndtr(largest - math.sqrt(statistic) - known))), float(beyond)


# -- in words ------------------------------------------------------------------------------------------------


def _unseen(evidence: Evidence) -> str:
    """Return what no test of these reports could see."""
    said = [
        "what cannot be seen: any distribution of outputs inside the mechanism's image, also of users who lie to it"
    ]
    if any(law.noun == "ones" for law in evidence.laws):
        said.append("made-up reports whose number of ones follows the law")
    if any(law.noun != "ones" for law in evidence.laws):
        said.append("almost all made-up reports with fresh seeds and one value's bucket")
    return "; ".join([*said, *evidence.unseen])


def _nothing_to_test(evidence: Evidence, *, anything: bool) -> str:
    if anything:
        return "; ".join(["the channel can explain anything that could be observed", *evidence.unseen])
    few = "there are too few users: no two cells would hold five of them"
    return "; ".join([*([few] if evidence.tables else []), *evidence.unseen])
