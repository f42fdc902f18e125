"""Whether any distribution explains the reports: `fit_test`, its parts and its result."""

from __future__ import annotations

import math
import zlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hubbub.channels.dense import DenseChannel
from hubbub.core import validation
from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress, finish
from hubbub.core.threads import threads_for
from hubbub.estimators.validation import check_reports
from hubbub.goodness_of_fit.count_tables import CountTable, Moments, pools
from hubbub.goodness_of_fit.evidence import Evidence, collect
from hubbub.goodness_of_fit.known_laws import KnownLaw, Repeats
from hubbub.goodness_of_fit.reference_distribution import RUNS, Local, plausible, reference
from hubbub.likelihood import Likelihood
from hubbub.rendering import Fact, facts_html
from hubbub.reports import Reports
from hubbub.sampling import Randomness
from hubbub.solvers import maximise
from hubbub.solvers.cone_programs import cone_minima

LEVEL = 0.01
SHOWN = 5  # outputs in `worst`
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

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return facts_html([Fact("does it fit?", self.explain())])


def fit_test(reports: Reports, level: float = LEVEL, *, rng: Randomness = None) -> FitTest:
    """Test whether any distribution over the domain explains the reports, under the mechanisms they name.

    A small p-value says that the model is wrong: another epsilon or mechanism than the study's, made-up reports,
    reports counted twice, or users of one mechanism who differ from those of another. A large one does not say that it
    is right: what an honest population could have sent cannot be told from one (`reason` says what remains unseen).

    The parts: the shares of all outputs (of pairs of outputs where users sent several), the number of ones of unary
    reports and the size of hashed reports' sets, whose laws are the same for all values, the bits that two reports of a
    user share where devices keep a permanent response, and reports or seeds that repeat. `p_value` is the smallest of
    theirs, times their number. With ``rng=None`` the same reports give the same answer.

    >>> import hubbub as hb
    >>> coin = hb.RandomizedResponse(hb.Categories(["yes", "no"]), epsilon=1.0)
    >>> fit_test(hb.Reports.from_counts(coin, {"yes": 950, "no": 50})).rejected  # at most 73% can say yes
    True
    """
    return finish(fit_testing(reports, level, rng=rng))


def fit_testing(
    reports: Reports, level: float = LEVEL, *, rng: Randomness = None
) -> Generator[Progress, None, FitTest]:
    """Do what `fit_test` does, yielding stages on the way."""
    check_reports(reports, "fit_test")
    share = validation.share(level, "level", "fit_test")
    generator, seed = validation.generator(rng, "fit_test")
    if isinstance(seed, int):  # with one seed for all reports, the same users would be drawn from every study
        generator = np.random.default_rng([seed, zlib.crc32(reports.weights.tobytes())])
    return _test(reports, share, generator, seed)


def _test(
    reports: Reports, level: float, rng: np.random.Generator, seed: int | str
) -> Generator[Progress, None, FitTest]:
    yield Progress(0, RUNS, "counting outputs")
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


def _law_part(law: KnownLaw) -> list[tuple[FitPart, list[Misfit]]]:
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


def _shares_part(
    tables: Sequence[CountTable], rng: np.random.Generator
) -> Generator[Progress, None, list[tuple[FitPart, list[Misfit]]]]:
    """Test all tables together, with one theta."""
    entries = sum(table.chances.size for table in tables)
    with threads_for(entries):
        theta, kept = _estimate(tables), list(tables)
        if any(table.has_small_cells(theta) for table in tables):
            kept = _pooled(tables, rng)
        else:
            kept = [table for table in kept if table.pooled(theta) is not None]
        if not kept:
            return []
        if kept != list(tables):
            theta = _estimate(kept)
        users = float(sum(table.users for table in kept))
        local = Local.at(kept, theta, users)
        total = np.ones((1, theta.size))
        least = cone_minima(local.information, local.score[None], -math.sqrt(users) * theta, total)[0]
        statistic = max(0.0, local.chi_square + 2.0 * float(least))
        base = plausible(theta, local.information, users)
    p_value, degrees = yield from reference(statistic, local, base, users, entries, rng)
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


def _pooled(tables: Sequence[CountTable], rng: np.random.Generator) -> list[CountTable]:
    """Return tables whose small cells are pooled, for the other users, by what a few of them let expect.

    If the counts themselves decided, cells that happen to be low would be joined, and their sum would be low: false
    alarms.
    """
    parts = [(table, table) if isinstance(table, Moments) else table.split(rng) for table in tables]
    pilots = [pilot for pilot, _ in parts if pilot.users > 0]
    if not pilots:
        return []
    theta = _estimate(pilots)
    return [small for _, rest in parts if (small := rest.pooled(theta)) is not None]


def _estimate(tables: Sequence[CountTable]) -> Floats:
    """Return the most likely theta, with sums of bits as if bits were independent."""
    columns, weights = zip(*(table.likelihood() for table in tables), strict=True)
    matrix, counts = np.concatenate(columns, axis=1), np.concatenate(weights)
    channel = DenseChannel(matrix, np.zeros(counts.size))
    start = np.full(matrix.shape[0], 1.0 / matrix.shape[0])
    likelihood = Likelihood(channel, counts, int(counts.sum()))
    return finish(maximise(likelihood, start, TOL, solver=None, max_iter=None)).outcome.point.theta


def _unseen(evidence: Evidence) -> str:
    """Return what no test of these reports could see."""
    said = [
        "what cannot be seen: any distribution of outputs inside the mechanism's image, also of users who lie to it"
    ]
    if any(law.noun == "ones" for law in evidence.laws):
        said.append("made-up reports whose number of ones follows the law")
    if any(law.noun == "values in the set" for law in evidence.laws):
        said.append("almost all made-up reports with fresh seeds and one value's bucket")
    return "; ".join([*said, *evidence.unseen])


def _nothing_to_test(evidence: Evidence, *, anything: bool) -> str:
    if anything:
        return "; ".join(["the channel can explain anything that could be observed", *evidence.unseen])
    few = "there are too few users: no two cells would hold five of them"
    return "; ".join([*([few] if evidence.tables else []), *evidence.unseen])
