"""The exact epsilon of a mechanism: the largest ratio over all pairs of values and all outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from hubbub.auditing import symmetric_laws
from hubbub.auditing.exact_ratios import (
    EnclosedRate,
    OutputRatio,
    enclose_largest_rate,
    largest_ratio,
)
from hubbub.auditing.line_laws import clamped_row, clamped_width, neighbour_ratios
from hubbub.auditing.planar_laws import enclose_planar_rate
from hubbub.auditing.probability_tables import (
    MAX_COMPARISONS,
    ProbabilityTable,
    clipped_table,
    largest_metric_ratios,
    largest_plain_ratio,
)
from hubbub.client import even_step
from hubbub.core.arrays import Floats, Positions, plain
from hubbub.core.errors import MechanismError
from hubbub.core.progress import Progress, stepwise
from hubbub.mechanisms import Mechanism
from hubbub.mechanisms.local_hashing import HashedResponseLaw
from hubbub.sampling import (
    BitFlipLaw,
    FixedLaw,
    LineNoiseLaw,
    PlanarGeometricLaw,
    PlanarTableLaw,
    ResponseLaw,
    SubsetLaw,
    TableLaw,
    TwoStageFlipLaw,
)


@dataclass(frozen=True)
class ExactEpsilon:
    """The largest ratio P(output | value) / P(output | other), and whether it is within the claim.

    `low` and `high` enclose the realised epsilon, log(ratio) (over the distance, where epsilon is per unit of
    distance). They are rounded outward to 17 digits; `holds` is decided before that. `ratio` is None if it is
    infinite: the output is possible for one value and not for the other. `compared` is the number of ordered pairs of
    values times the number of outputs, or None if the outputs are infinitely many.
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


@stepwise
def prove_epsilon(mechanism: Mechanism) -> Generator[Progress, None, ExactEpsilon]:
    """Return the exact epsilon of a mechanism; if it cannot be proven, a MechanismError says why."""
    enclosed, outputs = yield from _enclose_rate(mechanism)
    return _exact_epsilon(mechanism, enclosed, outputs)


def prove_one_report_epsilon(mechanism: Mechanism) -> ExactEpsilon | None:
    """Return the exact epsilon of a single report, if several reports of one user spend less than their sum."""
    law = mechanism.law
    if not isinstance(law, TwoStageFlipLaw):
        return None
    enclosed = enclose_largest_rate([symmetric_laws.flips_ratio(law.once)], mechanism.spent(1))
    return _exact_epsilon(mechanism, enclosed, 1 << len(mechanism.domain))


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
    law, domain, claim = mechanism.law, mechanism.domain, mechanism.epsilon
    output_text = _output_text(mechanism)
    if isinstance(law, FixedLaw):
        outputs = [output_text(code) for code in range(int(law.codes.max()) + 1)]
        return enclose_largest_rate([symmetric_laws.deterministic_ratio(law, outputs)], claim), len(outputs)
    if isinstance(law, PlanarGeometricLaw) and domain.grid is not None and mechanism.metric:
        enclosed = yield from enclose_planar_rate(law, domain.grid, claim)
        remapped_outputs = mechanism.output_space.size
        if remapped_outputs is not None:
            before_remapping = f"{enclosed.worst.output}, before it is remapped"
            enclosed = replace(enclosed, worst=replace(enclosed.worst, output=before_remapping))
        return enclosed, remapped_outputs
    if isinstance(law, LineNoiseLaw) and mechanism.metric and _is_evenly_spaced(mechanism):
        ratios = list(neighbour_ratios(law, domain.squared_distance(0, 1), output_text))
        return enclose_largest_rate([largest_ratio(ratios)], claim), law.values if law.clamped else None
    symmetric = None if mechanism.metric else _symmetric_ratio(mechanism)
    if symmetric is not None:
        ratio, output_count = symmetric
        return enclose_largest_rate([ratio], claim), output_count
    table = _probability_table(mechanism)
    if table is None:
        raise MechanismError(
            "this kind of law cannot be proven",
            where=f"audit({type(mechanism).__name__})",
            got=f"{type(law).__name__}, epsilon {'per unit of distance' if mechanism.metric else 'plain'}",
            expected="one of the laws of hubbub.sampling, over a domain that it fits",
            remedy="leave `law` to hubbub, which takes it from matrix(); the draws are tested all the same",
        )
    return (yield from _enclose_table_rate(mechanism, table)), table.outputs


def _symmetric_ratio(mechanism: Mechanism) -> tuple[OutputRatio, int] | None:
    """Return the largest ratio of a law that treats all values alike, and the number of its outputs."""
    law, size = mechanism.law, len(mechanism.domain)
    if isinstance(law, ResponseLaw):
        return symmetric_laws.response_ratio(law, _output_text(mechanism)(0)), size
    if isinstance(law, HashedResponseLaw):
        return symmetric_laws.hashed_response_ratio(law), law.response.values << 64
    if isinstance(law, BitFlipLaw):
        return symmetric_laws.flips_ratio(law), 1 << size
    if isinstance(law, TwoStageFlipLaw):
        # Every report about a value is made from one permanent row, without looking at the value again.
        return symmetric_laws.flips_ratio(law.permanent), 1 << size
    if isinstance(law, SubsetLaw):
        return symmetric_laws.subsets_ratio(law), math.comb(size, law.size)
    return None


def _output_text(mechanism: Mechanism) -> Callable[[int], str]:
    """Return a function from an output's code to the text that files hold."""
    space = mechanism.output_space
    return lambda code: space.write(plain(space.decode(np.array([code]))[0]))


def _is_evenly_spaced(mechanism: Mechanism) -> bool:
    places = mechanism.domain.places
    return places is not None and even_step(places.tolist()) is not None


def _probability_table(mechanism: Mechanism) -> ProbabilityTable | None:
    """Return a law's probabilities as rows of whole numbers; None if it has none, or infinitely many outputs."""
    law, output_text = mechanism.law, _output_text(mechanism)
    if isinstance(law, TableLaw):
        return ProbabilityTable(law.values, law.outputs, law.width, law.row, output_text)
    if isinstance(law, PlanarTableLaw):
        return clipped_table(law, output_text)
    if isinstance(law, LineNoiseLaw) and law.clamped:
        width = clamped_width(law)
        return ProbabilityTable(law.values, law.values, width, lambda at: clamped_row(law, at, width), output_text)
    return None


def _enclose_table_rate(mechanism: Mechanism, table: ProbabilityTable) -> Generator[Progress, None, EnclosedRate]:
    domain, size = mechanism.domain, table.values
    if not mechanism.metric or domain.is_equidistant:
        return enclose_largest_rate([(yield from largest_plain_ratio(table))], mechanism.epsilon)
    on_line = domain.places is not None
    if size * size * table.outputs > MAX_COMPARISONS and not on_line:
        raise MechanismError(
            "too many pairs of values to compare them all",
            where=f"audit({type(mechanism).__name__})",
            got=f"{size:,} values, {table.outputs:,} outputs",
            expected=f"at most {MAX_COMPARISONS:,} comparisons",
            remedy="audit a smaller domain with the same epsilon; the draws are tested all the same",
        )
    positions = np.arange(size)

    def others(value: int) -> Positions:
        # On a line neighbours suffice (see line_laws); elsewhere any two values may be the worst.
        near = (positions >= value - 1) & (positions <= value + 1) if on_line else positions >= 0
        return np.flatnonzero(near & (positions != value))

    def distances(value: int, against: Positions) -> Floats:
        row: Floats = domain.distances_between(np.array([value]), against)[0]
        return row

    def squared(value: int, other: int) -> Fraction:
        return domain.squared_distance(value, other)

    ratios = yield from largest_metric_ratios(table, others, distances, squared)
    return enclose_largest_rate(ratios, mechanism.epsilon)
