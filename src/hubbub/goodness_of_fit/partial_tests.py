"""The partial tests of goodness of fit: against known laws, for repeated reports, and for the shares of outputs."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from hubbub.channels.dense import DenseChannel
from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress
from hubbub.core.text import plural
from hubbub.core.threads import threads_for
from hubbub.goodness_of_fit.ancillary_statistics import KnownLaw, Repeats
from hubbub.goodness_of_fit.count_tables import BitMoments, CountTable, pools, sum_by_position
from hubbub.goodness_of_fit.reference_distribution import (
    SMALLEST_DIVISOR,
    LocalModel,
    plausible_distribution,
    reference_p_value,
)
from hubbub.goodness_of_fit.result import FitPart, Misfit
from hubbub.likelihood import Likelihood
from hubbub.outputs.output_enumeration import CellText
from hubbub.solvers import likeliest_point
from hubbub.solvers.boundary_deviance import cone_minima

MAX_SHOWN_MISFITS = 5
MAX_GAP = 1e-9  # of the estimate, in nats per user


class PartialTest(NamedTuple):
    """A partial test, and what fits worst in it."""

    part: FitPart
    misfits: list[Misfit]


def law_test(law: KnownLaw) -> PartialTest | None:
    """Compare counts with a known law by Pearson's chi-square; None if pooling leaves a single cell."""
    from scipy.special import chdtrc

    users = float(law.counts.sum())
    pool = pools(users * law.probabilities)
    observed, expected = (sum_by_position(pool, numbers, 0) for numbers in (law.counts, users * law.probabilities))
    if observed.size < 2:
        return None
    statistic, degrees = float(((observed - expected) ** 2 / expected).sum()), observed.size - 1
    residual = (observed - expected) / np.sqrt(expected * (1.0 - expected / users))
    p_value = float(chdtrc(degrees, statistic))
    sentence = f"chi-square {statistic:.1f} with {_freedom(degrees)} against the known law, p = {p_value:.2g}"

    def text(cell: int) -> str:
        members = np.flatnonzero(pool == cell)
        if law.names:
            return f"{law.noun} about {', '.join(law.names[member] for member in members)}"
        span = str(members[0]) if members.size == 1 else f"{members[0]} to {members[-1]}"
        return f"{span} {law.noun}"

    misfits = _worst_misfits(law.name, text, observed, expected, residual)
    return PartialTest(FitPart(law.name, statistic, degrees, p_value, sentence), misfits)


def repeats_test(repeats: Repeats) -> PartialTest:
    """Compare pairs of equal reports with the most that is possible, by Cantelli's inequality: exact for any n.

    With K pairs, for all theta, E K <= C(n,2) P(two equal) and var K <= C(n,2) P(two equal) + n^3 P(three equal).
    """
    n = float(repeats.users)
    mean = n * (n - 1) / 2 * repeats.two
    variance = mean + n**3 * repeats.three + SMALLEST_DIVISOR  # long reports never repeat
    excess = max(0.0, repeats.pairs - mean)
    p_value = variance / (variance + excess**2) if excess > 0 else 1.0
    residual = (repeats.pairs - mean) / math.sqrt(variance)
    sentence = f"{repeats.pairs:,.0f} pairs are equal, at most {mean:.3g} are expected, p <= {p_value:.2g}"
    misfits = []
    if excess > 0:
        text = f"pairs of equal reports; the most frequent, {repeats.text}, came {repeats.most:,} times"
        misfits.append(Misfit(repeats.name, text, repeats.pairs, mean, residual))
    return PartialTest(FitPart(repeats.name, repeats.pairs, 0, p_value, sentence), misfits)


def shares_test(
    tables: Sequence[CountTable], rng: np.random.Generator
) -> Generator[Progress, None, PartialTest | None]:
    """Test all tables together, with one theta; None if pooling leaves nothing to compare."""
    entries = sum(table.probabilities.size for table in tables)
    with threads_for(entries):
        theta, kept = _maximum(tables), list(tables)
        if any(table.has_small_cells(theta) for table in tables):
            kept = _pooled(tables, rng)
        else:
            kept = [table for table in kept if table.pooled(theta) is not None]
        if not kept:
            return None
        if kept != list(tables):
            theta = _maximum(kept)
        users = float(sum(table.users for table in kept))
        local = LocalModel.at(kept, theta, users)
        total = np.ones(theta.size)
        least = cone_minima(local.information, local.score[None], -math.sqrt(users) * theta, total)[0]
        statistic = max(0.0, local.chi_square + 2.0 * float(least))
        null = plausible_distribution(theta, local.information, users)
    p_value, degrees = yield from reference_p_value(statistic, local, null, users, entries, rng)
    sentence = f"least chi-square {statistic:.1f} over all distributions, p = {p_value:.2g}; " + (
        f"{_freedom(degrees)} and the signs of the shares are tested"
        if degrees
        else "only the signs of the shares are tested"
    )
    name = "shares of outputs"
    misfits: list[Misfit] = []
    for table in kept:
        expected = table.expected(theta)
        residual = (table.counts - expected) / np.sqrt(np.maximum(table.variance(theta), SMALLEST_DIVISOR))
        misfits += _worst_misfits(name, table.cell_text, table.counts, expected, residual)
    return PartialTest(FitPart(name, statistic, degrees, p_value, sentence), misfits)


def _worst_misfits(part: str, text: CellText, observed: Floats, expected: Floats, residual: Floats) -> list[Misfit]:
    worst = np.argsort(-np.abs(residual))[:MAX_SHOWN_MISFITS].tolist()
    return [
        Misfit(part, text(cell), float(observed[cell]), float(expected[cell]), float(residual[cell])) for cell in worst
    ]


def _pooled(tables: Sequence[CountTable], rng: np.random.Generator) -> list[CountTable]:
    """Return tables whose small cells are pooled: a pilot sample of the users decides which, the others are tested.

    If the counts themselves decided, cells that happen to be low would be pooled, and their sum would be low: false
    alarms.
    """
    samples = [(table, table) if isinstance(table, BitMoments) else table.split(rng) for table in tables]
    pilots = [pilot for pilot, _ in samples if pilot.users > 0]
    if not pilots:
        return []
    theta = _maximum(pilots)
    return [pooled for _, rest in samples if (pooled := rest.pooled(theta)) is not None]


def _maximum(tables: Sequence[CountTable]) -> Floats:
    """Return the most likely theta; sums of bits count as if bits were independent."""
    columns, weights = zip(*(table.likelihood() for table in tables), strict=True)
    matrix, counts = np.concatenate(columns, axis=1), np.concatenate(weights)
    channel = DenseChannel(matrix, np.zeros(counts.size))
    return likeliest_point(Likelihood(channel, counts, int(counts.sum())), MAX_GAP).theta


def _freedom(degrees: int) -> str:
    return plural(degrees, "degree of freedom", "degrees of freedom")
