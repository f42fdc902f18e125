"""Largest probability ratios of reports about several attributes, from those of each attribute's mechanism.

Where every attribute is reported, ratios multiply. Where one is reported and named, the largest of them decides. Where
one is true among fakes, a report's probability is a weighted sum of ratios to the fakes' own probabilities:

    P(z | x) / Q(z) = sum over a of  p_a R_a(z_a, x_a),    R_a(z, x) = P_a(z | x) / Q_a(z)

and the largest quotient of two such sums is found by Dinkelbach's iteration, in fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

import numpy as np

from hubbub.auditing.closed_form_ratios import closed_form_ratio, farthest_ratio, output_text_of, response_weights
from hubbub.auditing.exact_ratios import EnclosedRate, OutputRatio, enclose_largest_rate, largest_ratio, to_decimal
from hubbub.auditing.planar_ratios import enclose_planar_rate
from hubbub.auditing.probability_tables import ProbabilityTable, largest_plain_ratio, probability_table
from hubbub.core.errors import MechanismError
from hubbub.core.progress import Progress
from hubbub.domains import Product
from hubbub.mechanisms import Mechanism, SampleOne, SampleOneWithFakes, Split
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.sampling import FractionResponseLaw, LineNoiseLaw, PlanarGeometricLaw, ResponseLaw

MAX_TABLE_ENTRIES = 4_000_000  # values times outputs of an attribute whose ratios to fakes are written out


@dataclass(frozen=True)
class PlainRatio:
    """A ratio that two values of one attribute have, and a bound of the logarithm of all: None where it is the largest.

    `holds` says whether all ratios are within the mechanism's own claim.
    """

    ratio: OutputRatio
    bound: Fraction | None = None
    holds: bool = True


@dataclass(frozen=True)
class AttributesRate:
    """Bounds of epsilon over all pairs of combinations, and over those that differ in one attribute alone."""

    enclosed: EnclosedRate
    of_one: dict[str, tuple[Decimal, Decimal]]


def enclose_attributes_rate(mechanism: SeveralAttributes) -> Generator[Progress, None, AttributesRate]:
    """Return bounds of the epsilon of a mechanism over several attributes."""
    if isinstance(mechanism, SampleOneWithFakes):
        return (yield from _enclose_with_fakes(mechanism))
    if not isinstance(mechanism, Split | SampleOne):
        raise _unproven(mechanism, type(mechanism).__name__, "a way to report that the audit knows")
    ratios = {}
    for name, part in mechanism.parts.items():
        ratios[name] = yield from plain_ratio(part)
    of_one = {name: _bounds(own) for name, own in ratios.items()}
    return AttributesRate(_enclose_apart(mechanism, ratios), of_one)


def _bounds(own: PlainRatio) -> tuple[Decimal, Decimal]:
    """Return bounds of the largest logarithm of an attribute's ratios."""
    rate = enclose_largest_rate([own.ratio], math.inf)
    return rate.low, rate.high if own.bound is None else to_decimal(own.bound, ROUND_CEILING)


def _enclose_apart(mechanism: Split | SampleOne, ratios: dict[str, PlainRatio]) -> EnclosedRate:
    """Return bounds where every attribute's output depends on its own value alone."""
    sides, infinite = mechanism.domain.sides, [own for own in ratios.values() if own.ratio.denominator == 0]
    if isinstance(mechanism, Split) and not infinite:
        joint = [own.ratio for own in ratios.values()]
        output = _joined_text(dict(zip(ratios, (own.output for own in joint), strict=True)))
        first = int(np.ravel_multi_index([own.value for own in joint], sides))
        second = int(np.ravel_multi_index([own.other for own in joint], sides))
        numerator, denominator = (
            math.prod(own.numerator for own in joint),
            math.prod(own.denominator for own in joint),
        )
    else:
        name = next((name for name, own in ratios.items() if own.ratio.denominator == 0), None)
        if name is None:
            best = largest_ratio([own.ratio for own in ratios.values()])
            name = next(name for name, own in ratios.items() if own.ratio is best)
        worst, place = ratios[name].ratio, list(ratios).index(name)
        output = _joined_text({name: worst.output})
        first, second = (
            int(np.ravel_multi_index([at if place == other else 0 for other in range(len(sides))], sides))
            for at in (worst.value, worst.other)
        )
        numerator, denominator = worst.numerator, worst.denominator
    first, second, realised = _possible(mechanism.domain, first, second)
    rate = enclose_largest_rate([OutputRatio(first, second, output, numerator, denominator)], mechanism.epsilon)
    if realised and all(own.bound is None for own in ratios.values()):
        return rate
    highs = [Fraction(_bounds(own)[1]) for own in ratios.values()]
    high = to_decimal(sum(highs, Fraction(0)) if isinstance(mechanism, Split) else max(highs), ROUND_CEILING)
    holds = rate.holds if all(own.bound is None for own in ratios.values()) else all(o.holds for o in ratios.values())
    return EnclosedRate(rate.worst, rate.low if realised else Decimal(0), high, holds)


def _possible(domain: Product, first: int, second: int) -> tuple[int, int, bool]:
    """Return the positions of two cells, and whether both are possible: if not, their ratio bounds the others."""
    if domain.cells is None:
        return first, second, True
    places = {int(cell): place for place, cell in enumerate(domain.cells.tolist())}
    return places.get(first, 0), places.get(second, 1), first in places and second in places


def _joined_text(outputs: dict[str, str]) -> str:
    return ", ".join(f"{name} {output}" for name, output in outputs.items())


def plain_ratio(part: Mechanism) -> Generator[Progress, None, PlainRatio]:
    """Return the largest ratio over all pairs of one attribute's values, whatever their distance."""
    law, text = part.law, output_text_of(part)
    if not part.metric:
        closed = closed_form_ratio(part, text)
        if closed is not None:
            return PlainRatio(closed[0])
    elif isinstance(law, LineNoiseLaw) and not law.clamped:
        return PlainRatio(farthest_ratio(law, text))
    elif isinstance(law, PlanarGeometricLaw) and part.domain.grid is not None:
        rate = yield from enclose_planar_rate(law, part.domain.grid, part.epsilon)
        bound = Fraction(rate.high) * Fraction(math.nextafter(part.domain.diameter, math.inf))
        return PlainRatio(rate.worst, bound, rate.holds)
    table = probability_table(law, text)
    if table is None:
        raise _unproven(part, type(law).__name__, "one of the laws of hubbub.sampling")
    return PlainRatio((yield from largest_plain_ratio(table)))


def _unproven(mechanism: Mechanism, got: str, expected: str) -> MechanismError:
    return MechanismError(
        "the epsilon of this kind of law cannot be proven",
        where=f"audit({type(mechanism).__name__})",
        got=got,
        expected=expected,
        remedy="the draws are tested all the same",
    )


# -- fakes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FakedAttribute:
    """For each output of an attribute, the values with the largest and the least R, times the chance to be true."""

    chance: Fraction
    high: Sequence[Fraction]
    low: Sequence[Fraction]
    high_at: Sequence[int]
    low_at: Sequence[int]
    text: Callable[[int], str]

    @property
    def outputs(self) -> range:
        """The outputs that can happen."""
        return range(len(self.high))


def _enclose_with_fakes(mechanism: SampleOneWithFakes) -> Generator[Progress, None, AttributesRate]:
    attributes = []
    for place, part in enumerate(mechanism.parts.values()):
        yield Progress(place, len(mechanism.parts), "comparing all values")
        attributes.append(_faked(mechanism, place, part))
    chosen = _largest_quotient(attributes)
    pairs = list(zip(attributes, chosen, strict=True))
    above, below = sum(own.high[at] for own, at in pairs), sum(own.low[at] for own, at in pairs)
    sides = mechanism.domain.sides
    first = int(np.ravel_multi_index([own.high_at[at] for own, at in pairs], sides))
    second = int(np.ravel_multi_index([own.low_at[at] for own, at in pairs], sides))
    output = _joined_text({name: own.text(at) for name, (own, at) in zip(mechanism.parts, pairs, strict=True)})
    first, second, realised = _possible(mechanism.domain, first, second)
    worst = OutputRatio(first, second, output, *_quotient(Fraction(above), Fraction(below)))
    rate = enclose_largest_rate([worst], mechanism.epsilon)
    if not realised:
        rate = EnclosedRate(rate.worst, Decimal(0), rate.high, rate.holds)
    return AttributesRate(rate, dict(zip(mechanism.parts, _of_one(attributes), strict=True)))


def _faked(mechanism: SampleOneWithFakes, place: int, part: Mechanism) -> FakedAttribute:
    table = _table(part)
    if table is None or table.values * table.outputs > MAX_TABLE_ENTRIES:
        raise _unproven(part, f"{type(part).__name__} among fakes", "a mechanism with few outputs, such as k-RR")
    fakes, chance = mechanism.fake_weights[place], mechanism.probabilities_[place]
    rows = [table.row(position) for position in range(table.values)]
    high, low, high_at, low_at, kept = [], [], [], [], []
    for output in range(table.outputs):
        column = [row[output] for row in rows]
        faked = sum(weight * entry for weight, entry in zip(fakes, column, strict=True))
        if not any(column):
            continue
        most, least = max(column), min(column)
        if faked == 0:  # some values can have this output, and no fake does: nothing hides them
            raise _unproven(part, f"an output that no fake has: {table.output_text(output)}", "fakes like true values")
        kept.append(output)
        high_at.append(column.index(most))
        low_at.append(column.index(least))
        high.append(chance * Fraction(most * sum(fakes), faked))
        low.append(chance * Fraction(least * sum(fakes), faked))
    return FakedAttribute(chance, high, low, high_at, low_at, lambda at: table.output_text(kept[at]))


def _table(part: Mechanism) -> ProbabilityTable | None:
    """Return rows of whole numbers that are proportional to the probabilities of outputs."""
    law, text = part.law, output_text_of(part)
    if isinstance(law, ResponseLaw | FractionResponseLaw):
        own, other = response_weights(law)

        def row(position: int) -> list[int]:
            return [own if output == position else other for output in range(law.values)]

        return ProbabilityTable(law.values, law.values, 0, row, text)
    return probability_table(law, text)


def _largest_quotient(attributes: Sequence[FakedAttribute]) -> list[int]:
    """Return the output of each attribute for which the quotient of the sums of high and low is largest."""
    chosen, quotient = [0] * len(attributes), Fraction(0)
    while True:
        best = [max(own.outputs, key=lambda at: own.high[at] - quotient * own.low[at]) for own in attributes]
        above = sum((own.high[at] for own, at in zip(attributes, best, strict=True)), Fraction(0))
        below = sum((own.low[at] for own, at in zip(attributes, best, strict=True)), Fraction(0))
        if below == 0:
            return best
        if above / below <= quotient:
            return chosen
        chosen, quotient = best, above / below


def _of_one(attributes: Sequence[FakedAttribute]) -> list[tuple[Decimal, Decimal]]:
    """Return bounds of epsilon where one attribute differs: the others help least where they are least likely."""
    least = [min(own.low) for own in attributes]
    bounds = []
    for own, mine in zip(attributes, least, strict=True):
        others = sum(least, Fraction(0)) - mine
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
