"""Largest probability ratios of reports about several attributes, from those of each attribute's mechanism.

Where every attribute is reported, ratios multiply. Where one is reported and named, the largest of them decides. Pairs
of values that lie in impossible combinations do not count.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction

import numpy as np

from hubbub.auditing.exact_ratios import (
    EnclosedRate,
    OutputRatio,
    enclose_largest_rate,
    enclose_part,
    largest_ratio,
    to_decimal,
    unproven,
)
from hubbub.auditing.fake_ratios import enclose_fakes_rate
from hubbub.auditing.possible_pairs import LargestSum, groups_without, largest_sum
from hubbub.auditing.value_ratios import PlainRatio, ValueRatios, plain_ratio, value_ratios
from hubbub.core.arrays import Positions
from hubbub.core.progress import Progress
from hubbub.mechanisms import SampleOne, SampleOneWithFakes, Split
from hubbub.mechanisms.several_attributes import SeveralAttributes

Bounds = tuple[Decimal, Decimal]
SUM_ERROR = 2.0**-52  # relative, of each sum of two floats
NO_RATIO = OutputRatio(0, 1, "any", 1, 1)  # where no two combinations differ


@dataclass(frozen=True)
class AttributesRate:
    """Bounds of epsilon over all pairs of combinations, and over those that differ in one attribute alone."""

    enclosed: EnclosedRate
    of_one: dict[str, Bounds]


def enclose_attributes_rate(mechanism: SeveralAttributes) -> Generator[Progress, None, AttributesRate]:
    """Return bounds of the epsilon of a mechanism over several attributes."""
    if isinstance(mechanism, SampleOneWithFakes):
        rate, of_one = yield from enclose_fakes_rate(mechanism)
        return AttributesRate(rate, dict(zip(mechanism.parts, of_one, strict=True)))
    if not isinstance(mechanism, Split | SampleOne):
        kind = type(mechanism).__name__
        raise unproven(kind, kind, "a way to report that the audit knows")
    ratios = {}
    for name, part in mechanism.parts.items():
        ratios[name] = yield from plain_ratio(part)
    everywhere = AttributesRate(_enclose_apart(mechanism, ratios), {name: _bounds(own) for name, own in ratios.items()})
    if mechanism.domain.cells is None:
        return everywhere
    return (yield from _enclose_possible(mechanism, everywhere))


def _bounds(own: PlainRatio) -> Bounds:
    """Return bounds of the largest logarithm of an attribute's ratios."""
    rate = enclose_largest_rate([own.ratio], math.inf)
    return rate.low, rate.high if own.bound is None else to_decimal(own.bound, ROUND_CEILING)


def _enclose_apart(mechanism: Split | SampleOne, ratios: dict[str, PlainRatio]) -> EnclosedRate:
    """Return bounds over all combinations, the impossible ones included: the worst two are positions among all."""
    sides, infinite = mechanism.domain.sides, [name for name, own in ratios.items() if own.ratio.denominator == 0]
    if isinstance(mechanism, Split) and not infinite:
        worst = _joint_ratio({name: own.ratio for name, own in ratios.items()}, sides)
    else:
        best = ratios[infinite[0]].ratio if infinite else largest_ratio([own.ratio for own in ratios.values()])
        place, name = next((at, name) for at, (name, own) in enumerate(ratios.items()) if own.ratio is best)
        first, second = (
            int(np.ravel_multi_index([at if place == other else 0 for other in range(len(sides))], sides))
            for at in (best.value, best.other)
        )
        worst = replace(best, value=first, other=second, output=_joined_text({name: best.output}))
    rate = enclose_largest_rate([worst], mechanism.epsilon)
    if all(own.bound is None for own in ratios.values()):
        return rate
    highs = [Fraction(_bounds(own)[1]) for own in ratios.values()]
    high = to_decimal(sum(highs, Fraction(0)) if isinstance(mechanism, Split) else max(highs), ROUND_CEILING)
    return EnclosedRate(rate.worst, rate.low, high, all(own.holds for own in ratios.values()))


def _joint_ratio(ratios: Mapping[str, OutputRatio], sides: Sequence[int]) -> OutputRatio:
    """Return the ratio of outputs of all attributes, for two combinations as positions among all."""
    each = list(ratios.values())
    return OutputRatio(
        int(np.ravel_multi_index([own.value for own in each], sides)),
        int(np.ravel_multi_index([own.other for own in each], sides)),
        _joined_text({name: own.output for name, own in ratios.items()}),
        math.prod(own.numerator for own in each),
        math.prod(own.denominator for own in each),
    )


def _joined_text(outputs: dict[str, str]) -> str:
    return ", ".join(f"{name} {output}" for name, output in outputs.items())


# -- impossible combinations -----------------------------------------------------------------------------


def _enclose_possible(
    mechanism: Split | SampleOne, everywhere: AttributesRate
) -> Generator[Progress, None, AttributesRate]:
    """Return bounds over pairs of possible combinations, given those over all combinations."""
    domain, parts = mechanism.domain, mechanism.parts
    places, pairs = domain.coordinates_of(np.arange(len(domain))), {}
    for name, part in parts.items():
        pairs[name] = yield from value_ratios(part)
    of_one = {}
    for attribute, (name, own) in enumerate(pairs.items()):
        groups = groups_without(places, domain.sides, attribute)
        found = yield from largest_sum([own.scores], [places[attribute]], groups=groups)
        alone = _ratio_of(found, own, places[attribute])
        enclosed = enclose_largest_rate([alone], math.inf)
        of_one[name] = enclosed.low, _bound_of(found, [own], everywhere.of_one[name][1])
    first, second = domain.at_coordinates(
        np.unravel_index([everywhere.enclosed.worst.value, everywhere.enclosed.worst.other], domain.sides)
    ).tolist()
    if min(first, second) >= 0:
        worst = replace(everywhere.enclosed.worst, value=first, other=second)
        return AttributesRate(replace(everywhere.enclosed, worst=worst), of_one)
    if isinstance(mechanism, Split):
        found = yield from largest_sum([own.scores for own in pairs.values()], places)
        ratio = _possible_joint_ratio(mechanism, pairs, found, places)
        high = _bound_of(found, list(pairs.values()), everywhere.enclosed.high)
    else:
        ratio, high = yield from _largest_of_any(pairs, places, everywhere.enclosed.high)
    name, claim = type(mechanism).__name__, mechanism.epsilon
    return AttributesRate(enclose_part(ratio, high, everywhere.enclosed, name, claim), of_one)


def _ratio_of(found: LargestSum, own: ValueRatios, places: Positions) -> OutputRatio:
    """Return the ratio of the pair that was found, for one attribute."""
    return NO_RATIO if found.pair is None else own.of(*(int(places[at]) for at in found.pair))


def _bound_of(found: LargestSum, attributes: Sequence[ValueRatios], most: Decimal) -> Decimal:
    """Return a bound of the logarithms of all ratios; `most` is one that is known."""
    if math.isinf(found.bound):
        return most if found.bound > 0 else Decimal(0)
    error = sum(own.error for own in attributes) + SUM_ERROR * len(attributes) * found.bound
    return min(most, to_decimal(Fraction(found.bound) + Fraction(error), ROUND_CEILING))


def _possible_joint_ratio(
    mechanism: Split, pairs: Mapping[str, ValueRatios], found: LargestSum, places: Sequence[Positions]
) -> OutputRatio:
    if found.pair is None:
        return NO_RATIO
    ratios = {name: _ratio_of(found, own, at) for (name, own), at in zip(pairs.items(), places, strict=True)}
    joint, (first, second) = _joint_ratio(ratios, mechanism.domain.sides), found.pair
    return replace(joint, value=first, other=second)


def _largest_of_any(
    pairs: Mapping[str, ValueRatios], places: Sequence[Positions], most: Decimal
) -> Generator[Progress, None, tuple[OutputRatio, Decimal]]:
    """Return the largest ratio of any attribute over the values that are possible, and a bound of all.

    Two values of one attribute are those of two combinations, whatever else these have.
    """
    ratios, highs = [NO_RATIO], [Decimal(0)]
    for (name, own), at in zip(pairs.items(), places, strict=True):
        values, first_at = np.unique(at, return_index=True)
        found = yield from largest_sum([own.scores], [values])
        highs.append(_bound_of(found, [own], most))
        if found.pair is not None:
            first, second = (int(first_at[place]) for place in found.pair)
            ratio = _ratio_of(found, own, values)
            ratios.append(replace(ratio, value=first, other=second, output=_joined_text({name: ratio.output})))
    infinite = [ratio for ratio in ratios if ratio.denominator == 0]
    return infinite[0] if infinite else largest_ratio(ratios), max(highs)
