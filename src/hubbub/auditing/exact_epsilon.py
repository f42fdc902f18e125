"""The exact epsilon of a mechanism: the largest ratio over all pairs of values and all outputs."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from hubbub.auditing.attribute_ratios import enclose_attributes_rate
from hubbub.auditing.closed_form_ratios import alike_ratio, closed_form_ratio, output_text_of
from hubbub.auditing.exact_ratios import EnclosedRate, enclose_largest_rate
from hubbub.auditing.planar_ratios import enclose_planar_rate
from hubbub.auditing.probability_tables import (
    MAX_COMPARISONS,
    largest_metric_ratios,
    largest_plain_ratio,
    probability_table,
)
from hubbub.core.arrays import plain
from hubbub.core.errors import MechanismError
from hubbub.core.progress import Progress, stepwise
from hubbub.core.text import listed
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.several_attributes import SeveralAttributes
from hubbub.sampling import AskedBitsLaw, PlanarGeometricLaw, TwoStageLaw

LOOSE_SHARE = 0.95  # of a claim: whoever realises less claims clearly too much
MAX_QUICK_ENTRIES = 4_096  # values times values or outputs that are compared in some tenths of a second at most


@dataclass(frozen=True)
class ExactEpsilon:
    """The largest ratio P(output | value) / P(output | other), and whether it is within the claim.

    `low` and `high` enclose the realised epsilon, log(ratio) (over the distance, where epsilon is per unit of
    distance). They are rounded outward to 17 digits; `holds` is decided before that. `ratio` is None if it is
    infinite: the output is possible for one value and not for the other. `value` and `other` are one label where it
    stands for many texts, and two of them are compared. `compared` is the number of ordered pairs of values times the
    number of outputs, or None if the outputs, or the texts, are infinitely many.
    """

    ratio: Fraction | None
    value: object
    other: object
    output: str
    distance: float | None
    low: Decimal
    high: Decimal
    holds: bool
    compared: int | None

    def share_of(self, claim: float) -> float | None:
        """Return the realised epsilon as a share of the claimed one; None if nothing, or no bound, is claimed."""
        return float(self.high) / claim if 0.0 < claim < math.inf else None


@dataclass(frozen=True)
class AttributeEpsilons:
    """Bounds of epsilon for combinations that differ in one attribute alone, by the name of the attribute."""

    bounds: Mapping[str, tuple[Decimal, Decimal]]

    def text(self) -> str:
        """Return a sentence."""
        parts = [f"{float(high):.4g} ({name})" for name, (_, high) in self.bounds.items()]
        return f"Between combinations that differ in one attribute alone, epsilon is at most {listed(parts)}."


@stepwise
def prove_attribute_epsilons(mechanism: Mechanism) -> Generator[Progress, None, AttributeEpsilons | None]:
    """Return the exact epsilons of single attributes; None where values have no attributes, or nothing is proven."""
    if not isinstance(mechanism, SeveralAttributes):
        return None
    rate = yield from enclose_attributes_rate(mechanism)
    return AttributeEpsilons(rate.of_one)


@stepwise
def prove_epsilon(mechanism: Mechanism) -> Generator[Progress, None, ExactEpsilon]:
    """Return the exact epsilon of a mechanism; if it cannot be proven, a MechanismError says why."""
    enclosed, outputs = yield from _enclose_rate(mechanism)
    return _exact_epsilon(mechanism, enclosed, outputs)


def realised_share(mechanism: Mechanism) -> float | None:
    """Return the share of its claimed epsilon that a mechanism realises; None where that is not known in a moment."""
    values = len(mechanism.domain)
    if values * max(values, mechanism.output_space.size or 0) > MAX_QUICK_ENTRIES:
        return None
    try:
        return prove_epsilon(mechanism).share_of(mechanism.epsilon)
    except MechanismError:
        return None


def prove_one_report_epsilon(mechanism: Mechanism) -> ExactEpsilon | None:
    """Return the exact epsilon of a single report, if several reports of one user spend less than their sum."""
    law = mechanism.law
    if not isinstance(law, TwoStageLaw):
        return None
    outputs = output_text_of(mechanism)
    closed, last = closed_form_ratio(mechanism, outputs), len(mechanism.domain) - 1
    ratio = alike_ratio(law.once, outputs, *((0, last) if isinstance(law, AskedBitsLaw) else (0, 1)))
    if closed is None or ratio is None:
        return None
    return _exact_epsilon(mechanism, enclose_largest_rate([ratio], mechanism.spent(1)), closed[1])


def _exact_epsilon(mechanism: Mechanism, enclosed: EnclosedRate, outputs: int | None) -> ExactEpsilon:
    worst, labels = enclosed.worst, mechanism.domain.labels
    return ExactEpsilon(
        ratio=worst.ratio,
        value=plain(labels[worst.value]),
        other=plain(labels[worst.other]),
        output=worst.output,
        distance=math.sqrt(worst.squared_distance) if mechanism.metric else None,
        low=enclosed.low,
        high=enclosed.high,
        holds=enclosed.holds,
        compared=None if outputs is None else len(labels) * (len(labels) - 1) * outputs,
    )


def _enclose_rate(mechanism: Mechanism) -> Generator[Progress, None, tuple[EnclosedRate, int | None]]:
    """Return bounds of the largest rate, and the number of outputs."""
    if isinstance(mechanism, SeveralAttributes):
        return (yield from enclose_attributes_rate(mechanism)).enclosed, None
    law, domain, claim = mechanism.law, mechanism.domain, mechanism.epsilon
    output_text = output_text_of(mechanism)
    closed_form = closed_form_ratio(mechanism, output_text)
    if closed_form is not None:
        ratio, outputs = closed_form
        return enclose_largest_rate([ratio], claim), outputs
    if isinstance(law, PlanarGeometricLaw) and domain.grid is not None and mechanism.metric:
        enclosed = yield from enclose_planar_rate(law, domain.grid, claim)
        remapped_outputs = mechanism.output_space.size
        if remapped_outputs is not None:
            before_remapping = f"{enclosed.worst.output}, before it is remapped"
            enclosed = replace(enclosed, worst=replace(enclosed.worst, output=before_remapping))
        return enclosed, remapped_outputs
    table = probability_table(law, output_text)
    if table is None:
        raise MechanismError(
            "the epsilon of this kind of law cannot be proven",
            where=f"audit({type(mechanism).__name__})",
            got=f"{type(law).__name__}, epsilon {'per unit of distance' if mechanism.metric else 'plain'}",
            expected="one of the laws of hubbub.sampling, over a domain that it fits",
            remedy="leave `law` to hubbub, which takes it from matrix(); the draws are tested all the same",
        )
    if not mechanism.metric or domain.is_equidistant:
        ratios = [(yield from largest_plain_ratio(table))]
    elif domain.places is None and table.values**2 * table.outputs > MAX_COMPARISONS:
        raise MechanismError(
            "too many pairs of values to compare them all",
            where=f"audit({type(mechanism).__name__})",
            got=f"{table.values:,} values, {table.outputs:,} outputs",
            expected=f"at most {MAX_COMPARISONS:,} comparisons",
            remedy="audit a smaller domain with the same epsilon; the draws are tested all the same",
        )
    else:
        ratios = yield from largest_metric_ratios(table, domain)
    return enclose_largest_rate(ratios, claim), table.outputs
