"""The epsilon that a mechanism really has: the largest ratio over all pairs of values and all outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from hubbub.auditing import symmetric_laws as closed
from hubbub.auditing.exact_ratios import Pair, Worst, largest, worst
from hubbub.auditing.line_laws import of_line, row_of_line, width_of_line
from hubbub.auditing.planar_laws import of_rejected
from hubbub.auditing.probability_tables import MOST_COMPARED, ProbabilityTable, of_clipped, of_columns, of_pairs
from hubbub.client import even_step
from hubbub.core.arrays import Floats, Positions, plain
from hubbub.core.errors import MechanismError
from hubbub.core.progress import Progress
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
class Exact:
    """The largest ratio P(output | value) / P(output | other), and what it makes of the claim.

    `low` and `high` enclose the realised epsilon, log(ratio) (over the distance, where epsilon is per unit of it); they
    are rounded outward to 17 digits, and `holds` is decided before that.
    `ratio` is None where it is infinite: the output is possible for one value and not for the other. `compared` counts
    ordered pairs of values times outputs, None where these have no end.
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


def proving(mechanism: Mechanism) -> Generator[Progress, None, Exact]:
    """Look for the largest ratio of all; what cannot be proven is a MechanismError that says why."""
    found, outputs = yield from _searching(mechanism)
    return _exact(mechanism, found, outputs)


def of_one_report(mechanism: Mechanism) -> Exact | None:
    """Return the largest ratio for a single report, where several of one user promise less than their sum."""
    law = mechanism.law
    if not isinstance(law, TwoStageFlipLaw):
        return None
    found = worst([closed.of_flips(law.once)], mechanism.spent(1))
    return _exact(mechanism, found, 1 << len(mechanism.domain))


def _exact(mechanism: Mechanism, found: Worst, outputs: int | None) -> Exact:
    pair, labels = found.pair, mechanism.domain.labels
    return Exact(
        ratio=pair.ratio,
        value=plain(labels[pair.value]),
        other=plain(labels[pair.other]),
        output=pair.output,
        distance=math.sqrt(pair.squared) if mechanism.metric else None,
        low=found.low,
        high=found.high,
        holds=found.holds,
        compared=None if outputs is None else closed.pairs_of(mechanism.domain) * outputs,
    )


Searching = Generator[Progress, None, tuple[Worst, int | None]]


def _searching(mechanism: Mechanism) -> Searching:
    """Return the worst pair, and how many outputs there are."""
    law, domain, claim = mechanism.law, mechanism.domain, mechanism.epsilon
    if isinstance(law, FixedLaw):
        outputs = [_name(mechanism)(code) for code in range(int(law.codes.max()) + 1)]
        return worst([closed.of_fixed(law, outputs)], claim), len(outputs)
    if isinstance(law, PlanarGeometricLaw) and domain.grid is not None and mechanism.metric:
        found, remapped = (yield from of_rejected(law, domain.grid, claim)), mechanism.output_space.size
        if remapped is not None:
            found = replace(found, pair=replace(found.pair, output=f"{found.pair.output}, before it is remapped"))
        return found, remapped
    if isinstance(law, LineNoiseLaw) and mechanism.metric and _evenly_spaced(mechanism):
        pairs = list(of_line(law, domain.squared_distance(0, 1), _name(mechanism)))
        return worst([largest(pairs)], claim), law.values if law.clamped else None
    if not mechanism.metric:
        alike = _all_pairs_alike(mechanism)
        if alike is not None:
            return worst([alike[0]], claim), alike[1]
    table = _table(mechanism)
    if table is None:
        raise MechanismError(
            "the law is of a kind that cannot be proven",
            where=f"audit({type(mechanism).__name__})",
            got=f"{type(law).__name__}, epsilon {'per unit of distance' if mechanism.metric else 'plain'}",
            expected="one of the laws of hubbub.sampling, over a domain that it fits",
            remedy="leave `law` to hubbub, which takes it from matrix(); the draws are tested all the same",
        )
    return (yield from _tabled(mechanism, table)), table.outputs


def _all_pairs_alike(mechanism: Mechanism) -> tuple[Pair, int] | None:
    """Return the worst pair of a law that treats all values alike, and the number of its outputs."""
    law, size = mechanism.law, len(mechanism.domain)
    if isinstance(law, ResponseLaw):
        return closed.of_response(law, _name(mechanism)(0)), size
    if isinstance(law, HashedResponseLaw):
        return closed.of_hashed(law), law.response.values << 64
    if isinstance(law, BitFlipLaw):
        return closed.of_flips(law), 1 << size
    if isinstance(law, TwoStageFlipLaw):
        # All that is ever reported of a value is made from one permanent row, without looking at the value again.
        return closed.of_flips(law.permanent), 1 << size
    if isinstance(law, SubsetLaw):
        return closed.of_subsets(law), math.comb(size, law.size)
    return None


def _name(mechanism: Mechanism) -> Callable[[int], str]:
    """Return a function from an output's code to how files write it."""
    space = mechanism.output_space
    return lambda code: space.write(plain(space.decode(np.array([code]))[0]))


def _evenly_spaced(mechanism: Mechanism) -> bool:
    places = mechanism.domain.places
    return places is not None and even_step(places.tolist()) is not None


def _table(mechanism: Mechanism) -> ProbabilityTable | None:
    """Return a law's probabilities as rows of whole numbers, None where they are none or have no end."""
    law, name = mechanism.law, _name(mechanism)
    if isinstance(law, TableLaw):
        return ProbabilityTable(law.values, law.outputs, law.width, law.row, name)
    if isinstance(law, PlanarTableLaw):
        return of_clipped(law, name)
    if isinstance(law, LineNoiseLaw) and law.clamped:
        width = width_of_line(law)
        return ProbabilityTable(law.values, law.values, width, lambda position: row_of_line(law, position, width), name)
    return None


def _tabled(mechanism: Mechanism, table: ProbabilityTable) -> Generator[Progress, None, Worst]:
    domain, size = mechanism.domain, table.values
    if not mechanism.metric or domain.is_equidistant:  # whose values are all at distance 1
        return worst((yield from of_columns(table)), mechanism.epsilon)
    on_line = domain.places is not None
    if size * size * table.outputs > MOST_COMPARED and not on_line:
        raise MechanismError(
            "too many pairs of values to compare them all",
            where=f"audit({type(mechanism).__name__})",
            got=f"{size:,} values, {table.outputs:,} outputs",
            expected=f"at most {MOST_COMPARED:,} comparisons",
            remedy="audit a smaller domain with the same epsilon; the draws are tested all the same",
        )
    everything = np.arange(size)

    def others(value: int) -> Positions:
        # On a line neighbours tell all (auditing/line.py says why); elsewhere any two values may be the worst.
        near = (everything >= value - 1) & (everything <= value + 1) if on_line else everything >= 0
        return np.flatnonzero(near & (everything != value))

    def distances(value: int, against: Positions) -> Floats:
        row: Floats = domain.distances_between(np.array([value]), against)[0]
        return row

    def squared(value: int, other: int) -> Fraction:
        return domain.squared_distance(value, other)

    return worst((yield from of_pairs(table, others, distances, squared)), mechanism.epsilon)
