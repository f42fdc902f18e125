"""Largest probability ratios of reports in which one attribute is true among fakes of the others.

A report's probability is a weighted sum of ratios to the fakes' own probabilities:

    P(z | x) / Q(z) = f + sum over a of  p_a R_a(z_a, x_a),    R_a(z, x) = P_a(z | x) / Q_a(z)

where f is the probability that all attributes are fake. The largest quotient of two such sums is found by Dinkelbach's
iteration, in fractions. Where combinations are impossible, floats look for the pair: a quotient that is raised by more
than floats lose, and that no pair exceeds by floats, is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

from hubbub.auditing.closed_form_ratios import alike_ratio, bit_weights, output_text_of, response_weights
from hubbub.auditing.exact_ratios import (
    EnclosedRate,
    OutputRatio,
    enclose_largest_rate,
    enclose_part,
    largest_ratio,
    unproven,
)
from hubbub.auditing.possible_pairs import equal_scores, groups_without, largest_sum, table_scores
from hubbub.auditing.probability_tables import ProbabilityTable, probability_table
from hubbub.auditing.value_ratios import MAX_TABLE_ENTRIES, two_answers
from hubbub.core.arrays import Floats, Positions
from hubbub.core.progress import Progress
from hubbub.domains import Domain
from hubbub.mechanisms import Mechanism, SampleOneWithFakes, Staircase
from hubbub.sampling import (
    BitFlipLaw,
    EndResponseLaw,
    FractionFlipLaw,
    FractionResponseLaw,
    ResponseLaw,
    StaircaseLaw,
)

Bounds = tuple[Decimal, Decimal]
SUM_ERROR = Fraction(1, 1 << 50)  # relative: eight times what the nearest float of a sum loses
SPARE_SUMS = 4  # besides those over attributes: a product, two floats of fractions, and a difference


@dataclass(frozen=True)
class FakedAttribute:
    """Probabilities of one attribute's outputs: a list for each output, and the factor that makes them p R."""

    columns: Sequence[Sequence[int]]
    factors: Sequence[Fraction]
    text: Callable[[int], str]

    @property
    def outputs(self) -> range:
        """The outputs that can happen."""
        return range(len(self.columns))

    def weight(self, output: int, value: int) -> Fraction:
        """Return R, times the chance to be true."""
        return self.columns[output][value] * self.factors[output]

    @cached_property
    def high_at(self) -> list[int]:
        """The value for which each output is most likely."""
        return [column.index(max(column)) for column in self.columns]

    @cached_property
    def low_at(self) -> list[int]:
        """The value for which each output is least likely."""
        return [column.index(min(column)) for column in self.columns]

    @cached_property
    def high(self) -> list[Fraction]:
        """The largest weight of each output."""
        return [self.weight(output, value) for output, value in enumerate(self.high_at)]

    @cached_property
    def low(self) -> list[Fraction]:
        """The least weight of each output."""
        return [self.weight(output, value) for output, value in enumerate(self.low_at)]

    @cached_property
    def table(self) -> Floats:
        """The weights as floats, values by outputs."""
        columns = zip(self.columns, self.factors, strict=True)
        return np.array([[float(entry * factor) for entry in column] for column, factor in columns]).T


@dataclass(frozen=True)
class _Reports:
    """The attributes of a report, and how likely all of them are fake."""

    attributes: Sequence[FakedAttribute]
    all_fake: Fraction

    def quotient(self, outputs: Sequence[int], first: Sequence[int], second: Sequence[int]) -> tuple[int, int]:
        """Return numerator and denominator of the ratio of two combinations; the latter is 0 where it is infinite."""
        above, below = (
            self.all_fake
            + sum(own.weight(at, value) for own, at, value in zip(self.attributes, outputs, combination, strict=True))
            for combination in (first, second)
        )
        return _quotient(Fraction(above), Fraction(below))


def enclose_fakes_rate(mechanism: SampleOneWithFakes) -> Generator[Progress, None, tuple[EnclosedRate, list[Bounds]]]:
    """Return bounds of epsilon over all pairs of combinations, and over those that differ in each attribute alone."""
    attributes = []
    for place, part in enumerate(mechanism.parts.values()):
        yield Progress(place, len(mechanism.parts), "comparing all values")
        attributes.append(_faked(mechanism, place, part))
    reports = _Reports(attributes, 1 - sum(mechanism.probabilities_, Fraction(0)))
    chosen = _largest_quotient(reports)
    pairs = list(zip(attributes, chosen, strict=True))
    first, second = [own.high_at[at] for own, at in pairs], [own.low_at[at] for own, at in pairs]
    worst = _output_ratio(mechanism, reports, chosen, (first, second))
    rate, of_one = enclose_largest_rate([worst], mechanism.epsilon), _of_one(reports)
    if mechanism.domain.cells is None:
        return rate, of_one
    return (yield from _enclose_possible(mechanism, reports, rate, of_one))


def _output_ratio(
    mechanism: SampleOneWithFakes, reports: _Reports, outputs: Sequence[int], pair: tuple[Sequence[int], Sequence[int]]
) -> OutputRatio:
    """Return the ratio of two combinations, with their positions in the domain: -1 for those that are impossible."""
    first, second = mechanism.domain.at_coordinates([np.array(own) for own in zip(*pair, strict=True)]).tolist()
    named = zip(mechanism.parts, reports.attributes, outputs, strict=True)
    text = ", ".join(f"{name} {own.text(at)}" for name, own, at in named)
    return OutputRatio(first, second, text, *reports.quotient(outputs, *pair))


def _faked(mechanism: SampleOneWithFakes, place: int, part: Mechanism) -> FakedAttribute:
    table, kind = _table(part), type(part).__name__
    if table is None or table.values * table.outputs > MAX_TABLE_ENTRIES:
        raise unproven(kind, f"{kind} among fakes", "a mechanism with few outputs, such as k-RR, or rows of bits")
    fakes, chance = mechanism.fake_weights[place], mechanism.probabilities_[place]
    rows = [table.row(position) for position in range(table.values)]
    columns, factors, kept = [], [], []
    for output in range(table.outputs):
        column = [row[output] for row in rows]
        faked = sum(weight * entry for weight, entry in zip(fakes, column, strict=True))
        if not any(column):
            continue
        if faked == 0:  # some values can have this output, and no fake does: nothing hides them
            raise unproven(kind, f"an output that no fake has: {table.output_text(output)}", "fakes like true values")
        kept.append(output)
        columns.append(column)
        factors.append(chance * Fraction(sum(fakes), faked))
    return FakedAttribute(columns, factors, lambda at: table.output_text(kept[at]))


def _table(part: Mechanism) -> ProbabilityTable | None:
    """Return rows of whole numbers of which each column is proportional to the probabilities of an output.

    Outputs that are never extreme may be left out.
    """
    law, text = part.law, output_text_of(part)
    if isinstance(law, ResponseLaw | FractionResponseLaw):
        own, other = response_weights(law)

        def row(position: int) -> list[int]:
            return [own if output == position else other for output in range(law.values)]

        return ProbabilityTable(law.values, law.values, 0, row, text)
    if isinstance(law, BitFlipLaw | FractionFlipLaw):
        return _bit_rows(law, part.domain)
    if isinstance(law, EndResponseLaw):
        return two_answers(law, text)
    if isinstance(law, StaircaseLaw) and isinstance(part, Staircase):
        return _stair_columns(law, part, text)
    return probability_table(law, text)


def _stair_columns(law: StaircaseLaw, part: Staircase, text: Callable[[int], str]) -> ProbabilityTable:
    """Return weights of the outputs that stand for all of staircase noise, each as likely as the ratios allow.

    An output is as likely for the values on its nearer stair as the largest ratio says; with a smaller one, which some
    stairs may have by rounding, it tells less.
    """
    worst = alike_ratio(law, text)
    assert worst is not None  # noqa: S101  # staircase noise has one
    codes = part.folded_outputs()[0]
    steps = codes - law.low
    nearest = part.stairs_down(np.maximum(np.maximum(-steps, steps - law.stair), 0))

    def row(position: int) -> list[int]:
        near = part.stairs_down(steps - position) == nearest
        return [worst.numerator if each else worst.denominator for each in near.tolist()]

    return ProbabilityTable(law.values, len(codes), 0, row, lambda at: text(int(codes[at])))


def _bit_rows(law: BitFlipLaw | FractionFlipLaw, domain: Domain) -> ProbabilityTable:
    """Return weights of the rows of bits that can be extreme: those with the bit of one value alone, or all but one.

    A row is r times as likely for the values whose bit is 1 as for the others, so that R is r / D or 1 / D, where D is
    the mean over fakes. Of all rows that tell two values apart, D is least where one bit is 1, and largest where one is
    0; a row that does not is at best one with all bits but that of the value.
    """
    (own_zero, own_one), (other_zero, other_one) = bit_weights(law)
    size, inside, outside = law.values, own_one * other_zero, other_one * own_zero

    def row(position: int) -> list[int]:
        alone, others = [outside] * size, [inside] * size
        alone[position], others[position] = inside, outside
        return alone + others

    def text(output: int) -> str:
        title = domain.title(output % size)
        return f"with the bit of {title} alone" if output < size else f"with all bits but that of {title}"

    return ProbabilityTable(size, 2 * size, 0, row, text)


def _largest_quotient(reports: _Reports) -> list[int]:
    """Return the output of each attribute for which the quotient of the sums of high and low is largest."""
    attributes = reports.attributes
    chosen, quotient = [0] * len(attributes), Fraction(0)
    while True:
        best = [max(own.outputs, key=lambda at: own.high[at] - quotient * own.low[at]) for own in attributes]
        above = sum((own.high[at] for own, at in zip(attributes, best, strict=True)), reports.all_fake)
        below = sum((own.low[at] for own, at in zip(attributes, best, strict=True)), reports.all_fake)
        if below == 0:
            return best
        if above / below <= quotient:
            return chosen
        chosen, quotient = best, above / below


def _of_one(reports: _Reports) -> list[Bounds]:
    """Return bounds of epsilon where one attribute differs: the others help least where they are least likely."""
    least = [min(own.low) for own in reports.attributes]
    bounds = []
    for own, mine in zip(reports.attributes, least, strict=True):
        others = sum(least, reports.all_fake) - mine
        ratios = [
            OutputRatio(0, 1, "", *_quotient(high + others, low + others))
            for high, low in zip(own.high, own.low, strict=True)
        ]
        infinite = [ratio for ratio in ratios if ratio.denominator == 0]
        rate = enclose_largest_rate([infinite[0] if infinite else largest_ratio(ratios)], math.inf)
        bounds.append((rate.low, rate.high))
    return bounds


def _quotient(above: Fraction, below: Fraction) -> tuple[int, int]:
    return (above / below).as_integer_ratio() if below else (1, 0)


# -- impossible combinations -----------------------------------------------------------------------------


def _enclose_possible(
    mechanism: SampleOneWithFakes, reports: _Reports, everywhere: EnclosedRate, of_one: Sequence[Bounds]
) -> Generator[Progress, None, tuple[EnclosedRate, list[Bounds]]]:
    """Return the same over pairs of possible combinations, given the bounds over all."""
    domain = mechanism.domain
    places = domain.coordinates_of(np.arange(len(domain)))
    bounds = []
    for attribute, (_, most) in enumerate(of_one):
        found = yield from _largest_possible(mechanism, reports, places, attribute)
        bounds.append((enclose_largest_rate([found.ratio], math.inf).low, found.bound(most)))
    if min(everywhere.worst.value, everywhere.worst.other) >= 0:
        return everywhere, bounds
    found = yield from _largest_possible(mechanism, reports, places)
    high, name = found.bound(everywhere.high), type(mechanism).__name__
    return enclose_part(found.ratio, high, everywhere, name, mechanism.epsilon), bounds


@dataclass(frozen=True)
class _Found:
    """The largest ratio that was found, and by how much another may exceed it; None where not all were compared."""

    ratio: OutputRatio
    slack: Fraction | None

    def bound(self, most: Decimal) -> Decimal:
        """Return a bound of the logarithms of all ratios; `most` is one that is known."""
        if self.slack is None or self.ratio.denominator == 0:
            return most
        numerator, denominator = (1 + self.slack).as_integer_ratio()
        raised = OutputRatio(0, 1, "", self.ratio.numerator * numerator, self.ratio.denominator * denominator)
        return min(most, enclose_largest_rate([raised], math.inf).high)


def _largest_possible(
    mechanism: SampleOneWithFakes, reports: _Reports, places: Sequence[Positions], attribute: int | None = None
) -> Generator[Progress, None, _Found]:
    """Return the largest ratio of pairs of possible combinations: of all, or of those that differ in one attribute."""
    groups = None if attribute is None else groups_without(places, mechanism.domain.sides, attribute)
    best, slack = OutputRatio(0, 1, "any", 1, 1), (len(places) + SPARE_SUMS) * SUM_ERROR
    while True:
        raised = best.numerator * (1 + slack) / best.denominator
        tables = [(own.table, float(raised) * np.nextafter(own.table, 0.0)) for own in reports.attributes]
        scores = [
            table_scores(*table) if attribute in {None, own} else equal_scores(*table)
            for own, table in enumerate(tables)
        ]
        least = float(reports.all_fake * (raised - 1))
        found = yield from largest_sum(scores, places, least=least, groups=groups)
        if found.pair is None:
            complete = 2 * slack if found.bound > -math.inf else Fraction(0)
            return _Found(best, complete if found.bound <= least else None)
        first, second = ([int(own[at]) for own in places] for at in found.pair)
        outputs = [int(np.argmax(own[x] - other[y])) for (own, other), x, y in zip(tables, first, second, strict=True)]
        best = _output_ratio(mechanism, reports, outputs, (first, second))
        if best.denominator == 0:
            return _Found(best, Fraction(0))
