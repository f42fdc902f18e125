"""Ratios of the values of one attribute, whatever their distance: the largest of all, and that of any two."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hubbub.auditing.closed_form_ratios import (
    alike_ratio,
    closed_form_ratio,
    different_values,
    output_text_of,
    unclamped_ratio,
)
from hubbub.auditing.exact_ratios import OutputRatio, enclose_largest_rate, to_arb, unproven
from hubbub.auditing.planar_ratios import enclose_planar_rate, own_cell_ratio
from hubbub.auditing.possible_pairs import PairScores, table_scores
from hubbub.auditing.probability_tables import (
    LOG_ERROR,
    ProbabilityTable,
    largest_plain_ratio,
    log_probabilities,
    probability_table,
)
from hubbub.core.arrays import Floats
from hubbub.core.progress import Progress
from hubbub.mechanisms import Mechanism
from hubbub.sampling import EndResponseLaw, FixedLaw, LineNoiseLaw, PlanarGeometricLaw, TwoAnswerLaw

MAX_TABLE_ENTRIES = 4_000_000  # values times outputs of an attribute whose ratios are written out
SCORE_ERROR = 2.0**-46  # relative: more than a float logarithm, a distance and a product of them lose


@dataclass(frozen=True)
class PlainRatio:
    """A ratio that two values of one attribute have, and a bound of the logarithm of all: None where it is the largest.

    `holds` says whether all ratios are within the mechanism's own claim.
    """

    ratio: OutputRatio
    bound: Fraction | None = None
    holds: bool = True


@dataclass(frozen=True)
class ValueRatios:
    """The ratios of any two values: upper bounds of the logarithm of the largest, within `error` where it is known.

    `of` returns a ratio that two values have: the largest, if it is known.
    """

    scores: PairScores
    error: float
    of: Callable[[int, int], OutputRatio]


def plain_ratio(part: Mechanism) -> Generator[Progress, None, PlainRatio]:
    """Return the largest ratio over all pairs of one attribute's values, whatever their distance."""
    law, text = part.law, output_text_of(part)
    if not part.metric:
        closed = closed_form_ratio(part, text)
        if closed is not None:
            return PlainRatio(closed[0])
    elif isinstance(law, LineNoiseLaw) and not law.clamped:
        return PlainRatio(unclamped_ratio(law, text, 0, law.values - 1))  # log-ratios add up from end to end
    elif isinstance(law, PlanarGeometricLaw) and part.domain.grid is not None:
        rate = yield from enclose_planar_rate(law, part.domain.grid, part.epsilon)
        bound = Fraction(rate.high) * Fraction(math.nextafter(part.domain.diameter, math.inf))
        return PlainRatio(rate.worst, bound, rate.holds)
    table = probability_table(law, text)
    if table is None:
        raise unproven(type(part).__name__, type(law).__name__, "one of the laws of hubbub.sampling")
    return PlainRatio((yield from largest_plain_ratio(table)))


def value_ratios(part: Mechanism) -> Generator[Progress, None, ValueRatios]:
    """Return the ratios of any two values of one attribute, whatever their distance."""
    law, text, size = part.law, output_text_of(part), len(part.domain)
    if isinstance(law, FixedLaw):
        return _fixed_ratios(law, text)
    alike = alike_ratio(law, text, *different_values(law, size))
    if alike is not None:
        return _alike_ratios(lambda value, other: alike_ratio(law, text, value, other) or alike, alike, size)
    if isinstance(law, LineNoiseLaw) and not law.clamped:
        return _unclamped_ratios(law, text)
    if isinstance(law, PlanarGeometricLaw) and part.domain.grid is not None:
        return (yield from _planar_ratios(part, law))
    table = two_answers(law, text) if isinstance(law, TwoAnswerLaw | EndResponseLaw) else probability_table(law, text)
    if table is None:
        raise unproven(type(part).__name__, type(law).__name__, "one of the laws of hubbub.sampling")
    if table.values * table.outputs > MAX_TABLE_ENTRIES:
        got = f"{table.values:,} values, {table.outputs:,} outputs, and combinations that are impossible"
        raise unproven(
            type(part).__name__, got, f"at most {MAX_TABLE_ENTRIES:,} probabilities, or a domain without `impossible`"
        )
    return (yield from _table_ratios(table))


def _fixed_ratios(law: FixedLaw, text: Callable[[int], str]) -> ValueRatios:
    codes = law.codes

    def of(value: int, other: int) -> OutputRatio:
        return OutputRatio(value, other, text(int(codes[value])), 1, int(codes[value] == codes[other]))

    highest = np.full(codes.size, math.inf if np.ptp(codes) else 0.0)
    return ValueRatios(PairScores(lambda value: np.where(codes == codes[value], 0.0, math.inf), highest), 0.0, of)


def _alike_ratios(largest: Callable[[int, int], OutputRatio], alike: OutputRatio, size: int) -> ValueRatios:
    """Return the ratios of values of which any two have the same, or none more than `alike`."""
    score = _log_bound(alike)

    def row(value: int) -> Floats:
        scores = np.full(size, score)
        scores[value] = 0.0
        return scores

    def of(value: int, other: int) -> OutputRatio:
        return OutputRatio(value, other, "any", 1, 1) if value == other else largest(value, other)

    return ValueRatios(PairScores(row, np.full(size, score)), 0.0, of)


def _unclamped_ratios(law: LineNoiseLaw, text: Callable[[int], str]) -> ValueRatios:
    """Return the ratios of noise on a line, which depend on how far two values are apart."""
    block, size = len(law.noise.steps) + 1, law.values
    logs = np.array([_log(law.noise.probability(steps)) for steps in range(block + size - 1)])
    apart = np.array([(logs[:block] - logs[steps : steps + block]).max() for steps in range(size)])
    places = np.arange(size)
    highest = np.maximum.accumulate(apart)[np.maximum(places, size - 1 - places)]
    return ValueRatios(
        PairScores(lambda value: apart[np.abs(places - value)], highest),
        2 * LOG_ERROR * (1 + float(np.abs(logs).max())),
        lambda value, other: unclamped_ratio(law, text, value, other),
    )


def _planar_ratios(part: Mechanism, law: PlanarGeometricLaw) -> Generator[Progress, None, ValueRatios]:
    """Return bounds of the ratios of noise on a map, by the distances of its values."""
    grid = part.domain.grid
    assert grid is not None  # noqa: S101  # asked before
    rate = yield from enclose_planar_rate(law, grid, part.epsilon)
    bound, everywhere = float(rate.high) * (1 + SCORE_ERROR), np.arange(len(grid))

    def row(value: int) -> Floats:
        return np.asarray(bound * grid.distances_between(np.array([value]), everywhere)[0])

    highest = np.full(len(grid), bound * math.nextafter(grid.diameter, math.inf) * (1 + SCORE_ERROR))
    return ValueRatios(PairScores(row, highest), 0.0, lambda value, other: own_cell_ratio(law, grid, value, other))


def _table_ratios(table: ProbabilityTable) -> Generator[Progress, None, ValueRatios]:
    logs = yield from log_probabilities(table)

    def of(value: int, other: int) -> OutputRatio:
        pairs = [(own, its, at) for at, (own, its) in enumerate(zip(table.row(value), table.row(other), strict=True))]
        infinite = [pair for pair in pairs if pair[0] and not pair[1]]
        own, its, at = infinite[0] if infinite else max(pairs, key=lambda pair: Fraction(pair[0], pair[1] or 1))
        return OutputRatio(value, other, table.output_text(at), own, its)

    largest = float(np.abs(logs[np.isfinite(logs)]).max())
    return ValueRatios(table_scores(logs, logs), 2 * LOG_ERROR * (1 + largest), of)


def two_answers(law: TwoAnswerLaw | EndResponseLaw, text: Callable[[int], str]) -> ProbabilityTable:
    """Return the probabilities of two answers as whole numbers, up to a factor that ratios do not have."""
    chances = [1 - chance for chance in law.chances] if isinstance(law, EndResponseLaw) else law.chances
    common = math.lcm(*(chance.denominator for chance in chances))
    firsts = [int(chance * common) for chance in chances]
    width = common.bit_length() - 1
    return ProbabilityTable(len(firsts), 2, width, lambda value: [firsts[value], common - firsts[value]], text)


def _log_bound(ratio: OutputRatio) -> float:
    """Return a float that is not below the logarithm of a ratio."""
    high = float(enclose_largest_rate([ratio], math.inf).high)
    return math.nextafter(high, math.inf)


def _log(probability: Fraction) -> float:
    from flint import ctx

    with ctx.workprec(128):
        return float(to_arb(probability).log().mid()) if probability else -math.inf
