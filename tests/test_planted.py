"""Planted faults, each caught by one of the checks that the real samplers pass.

exact     ratios of the law's fractions against exp(epsilon d), by certain bounds (exactly.violations)
draws     chi-square of real draws against the matrix (counting.worst_p_value)
pairs     chi-square of neighbours' outputs against independence (counting.pair_p_value)
repeats   two calls must not give the same outputs
forks     children of one process must not draw the same words

| fault                                             | caught by |
|---------------------------------------------------|-----------|
| epsilon 10% too large                             | exact, draws |
| no shrink of epsilon, on a line and on a map      | exact     |
| chances rounded down: response, bits, sets, ends  | exact     |
| another lowest stair, stairs too short            | exact, draws |
| a table of floats, of float sums, of 64 bits      | exact     |
| half of epsilon forgotten (exponential, RAPPOR)   | exact     |
| a subset that always holds the truth              | exact     |
| degrees for kilometres                            | exact, draws |
| p and q swapped, a lie for the truth              | draws     |
| redrawn instead of remapped, line and map         | draws     |
| off by one: position, clamp, hash, window         | draws     |
| bits reversed in a byte                           | draws     |
| noise to one side, 0 counted twice, cut off       | draws     |
| a remainder instead of a uniform number           | draws     |
| one seed for all users                            | draws     |
| columns and rows swapped, ties to the wrong cell  | draws     |
| nothing rejected on a map                         | draws     |
| one word for two users                            | pairs     |
| a seeded generator                                | repeats   |
| a buffer that survives a fork                     | forks     |
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

import hubbub as hb
from counting import LEVEL, Outputs, Sampler, drawing, forked, pair_p_value, worst_p_value
from exactly import violations
from hubbub import client
from hubbub.mechanisms.local_hashing import hash_v1
from hubbub.sampling import (
    Law,
    LineNoiseLaw,
    PlanarGeometricLaw,
    RandomSource,
    ResponseLaw,
    SeededSource,
    StaircaseLaw,
    SystemSource,
    TableLaw,
)
from hubbub.sampling.weight_tables import table_of_floats

DRAWS = 300_000
COLOURS = hb.Categories(["red", "green", "blue", "white", "black"])
LINE = hb.Integers(0, 9)
UNEVEN = hb.Bins([0.0, 0.5, 2.0, 2.25, 6.0, 7.0])
MAP = hb.Grid(4, 3, cell=(1.0, 0.6))
CITY = hb.Grid.over(south=37.7228, west=-122.5153, north=37.7946, east=-122.3789, columns=4, rows=3)
TIED = hb.Grid(3, 1, cell=1.0, cells=[0, 2])

RESPONSE = hb.RandomizedResponse(COLOURS, 1.0)
RAPPOR = hb.Rappor(COLOURS, 2.0)
UNARY = hb.OptimizedUnary(COLOURS, 1.0)
SUBSETS = hb.SubsetSelection(COLOURS, 1.0, size=2)
WAVE = hb.SquareWave(hb.Integers(0, 8), 1.0, reach=2)
STAIRS = hb.Staircase(hb.Integers(0, 8), 1.0)
ENDS = hb.Duchi(LINE, 1.0)
CHANCES = hb.Unary(COLOURS, "2/3", "1/6")
ENDS_KEEP = ENDS.law.response.keep
HASHING = hb.LocalHashing(LINE, 1.2, 3)
HADAMARD = hb.HadamardResponse(LINE, 1.2, blocks=2)
PROJECTIVE = hb.ProjectiveResponse(LINE, 1.2, prime=3)
SKETCH = hb.CountMeanSketch(COLOURS, 1.5, hashes=3, width=4)
SIGNS = hb.HadamardCountMeanSketch(LINE, 1.5, hashes=3, width=8)
TRUNCATED = hb.TruncatedGeometric(LINE, 0.4)
LONG = hb.TruncatedGeometric(hb.Integers(0, 99), 1.0)
LAPLACE = hb.Laplace(LINE, 0.4)
EXPONENTIAL = hb.Exponential(UNEVEN, 1.0)
PLANAR = hb.PlanarGeometric(MAP, 1.0)


# -- laws that promise too much ---------------------------------------------------------------------------


def table(rows: Sequence[Sequence[int]], width: int) -> TableLaw:
    """Return a law of rows; what each lacks goes to its largest entry."""

    def row(own: int) -> list[int]:
        weights = list(rows[own])
        weights[weights.index(max(weights))] += (1 << width) - sum(weights)
        return weights

    return TableLaw(len(rows), len(rows[0]), width, row)


def float_sums(mechanism: hb.Mechanism) -> TableLaw:
    """Return what a search in running sums of floats realises, with uniform numbers of 53 bits."""
    sums = np.minimum(np.cumsum(mechanism.matrix(), axis=1), 1.0)
    borders = [[0, *(int(total * 2**53) for total in row[:-1]), 2**53] for row in sums.tolist()]
    return table([np.diff(row).tolist() for row in borders], 53)


def short_table(mechanism: hb.Mechanism) -> TableLaw:
    """Return a table of 64 bits."""
    return table([[int(chance * 2**64) for chance in row] for row in mechanism.matrix().tolist()], 64)


def degrees(grid: hb.Grid) -> tuple[float, float]:
    """Return a cell's sides in degrees."""
    box = grid.box
    assert box is not None
    return (box.east - box.west) / grid.columns, (box.north - box.south) / grid.rows


def unshrunk_map() -> Law:
    """Return planar noise for so much more that the shrink is undone."""
    law = PLANAR.law
    return PlanarGeometricLaw(law.epsilon * (1 + 2.0**-49), law.sides, law.steps, law.remap)


def rounded_response() -> Law:
    law = RESPONSE.law
    assert isinstance(law, ResponseLaw)
    return replace(law, keep=law.keep + 5)


def flips(epsilon: float, *, down: bool = False) -> Law:
    width, one = client.flip_parameters(Fraction(epsilon))
    return replace(RAPPOR.law, width=width, own=(1 << width) - one + down, other=one - down)


OSUE = hb.LongitudinalUnary(hb.Integers(0, 4), 3.0, 1.2)
AGAIN = hb.LongitudinalResponse(hb.Integers(0, 4), 3.0, 1.2)
ASKED = hb.DBitFlip(hb.Integers(0, 4), 2.0, 4, 2)
EXACT: dict[str, tuple[hb.Mechanism, Callable[[], Law]]] = {
    "epsilon 10% too large, response": (RESPONSE, lambda: hb.RandomizedResponse(COLOURS, 1.1).law),
    "epsilon 10% too large, line": (TRUNCATED, lambda: hb.TruncatedGeometric(LINE, 0.44).law),
    "epsilon 10% too large, map": (PLANAR, lambda: hb.PlanarGeometric(MAP, 1.1).law),
    "no shrink, line": (TRUNCATED, lambda: LineNoiseLaw(client.line_noise(Fraction(0.4)), 10, 0, clamped=True)),
    "no shrink, laplace": (
        LAPLACE,
        lambda: LineNoiseLaw(client.line_noise(Fraction(0.4), rounded=True), 10, 0, clamped=True),
    ),
    "no shrink, map": (PLANAR, unshrunk_map),
    "rounded down, response": (RESPONSE, rounded_response),
    "rounded down, bits": (RAPPOR, lambda: flips(1.0, down=True)),
    "rounded down, other bits": (UNARY, lambda: replace(UNARY.law, other=UNARY.law.other - 1)),
    "rounded down, the second stage of bits": (OSUE, lambda: replace(OSUE.law, raised=OSUE.law.raised - 1)),
    "rounded up, the second response": (AGAIN, lambda: replace(AGAIN.law, kept=AGAIN.law.kept + 9)),
    "the first response alone, twice": (AGAIN, lambda: replace(AGAIN.law, kept=AGAIN.law.permanent.keep)),
    "rounded down, answers": (
        ASKED,
        lambda: replace(
            ASKED.law, bits=replace(ASKED.law.bits, own=ASKED.law.bits.own + 1, other=ASKED.law.bits.other - 1)
        ),
    ),
    "rounded down, subsets": (SUBSETS, lambda: replace(SUBSETS.law, out=SUBSETS.law.out - 1)),
    "rounded down, ends": (ENDS, lambda: replace(ENDS.law, response=replace(ENDS.law.response, keep=ENDS_KEEP + 2))),
    "no shrink, stairs": (
        STAIRS,
        lambda: StaircaseLaw(
            client.stair_noise(Fraction(1.0) * (1 + Fraction(1, 2**60)), STAIRS.reach, 8), STAIRS.reach, 9, 0
        ),
    ),
    "stairs of another lowest one": (STAIRS, lambda: StaircaseLaw(STAIRS.law.stairs, STAIRS.reach - 1, 9, 0)),
    "a chance of another bit too small": (
        CHANCES,
        lambda: replace(CHANCES.law, other=Fraction(1, 6) - Fraction(1, 10**15)),
    ),
    "rounded down, windows": (WAVE, lambda: replace(WAVE.law, keep=WAVE.law.keep + WAVE.law.outputs)),
    "a table of floats": (TRUNCATED, lambda: table_of_floats(TRUNCATED.matrix())),
    "a table of floats, laplace": (LAPLACE, lambda: table_of_floats(LAPLACE.matrix())),
    "sums of floats": (LONG, lambda: float_sums(LONG)),
    "64 bits": (LONG, lambda: short_table(LONG)),
    "half of epsilon forgotten, exponential": (EXPONENTIAL, lambda: hb.Exponential(UNEVEN, 2.0).law),
    "half of epsilon forgotten, rappor": (RAPPOR, lambda: flips(2.0)),
    "always the truth": (SUBSETS, lambda: replace(SUBSETS.law, out=0)),
    "degrees for kilometres": (
        hb.PlanarGeometric(CITY, 1.0),
        lambda: PlanarGeometricLaw(1.0 * CITY.width / degrees(CITY)[0], CITY.sides, CITY.steps, np.asarray),
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("fault", EXACT)
def test_laws_that_promise_too_much_are_found(fault: str) -> None:
    mechanism, law = EXACT[fault]
    assert violations(mechanism, law()) != []
    assert violations(mechanism) == []


# -- draws of something else ------------------------------------------------------------------------------


def redrawn_line(values: Outputs) -> Outputs:
    """Draw again until the noise stays on the line."""
    outputs = np.full(len(values), -1)
    endless = hb.Geometric(LINE, 0.4)
    while (missing := np.flatnonzero((outputs < 0) | (outputs > 9))).size:
        outputs[missing] = endless.privatize(values[missing])
    return outputs


def redrawn_map(values: Outputs) -> Outputs:
    """Draw again until the noise stays on the map."""
    endless = hb.PlanarGeometric(MAP, 1.0, truncated=False)
    outputs = np.full((len(values), 2), -1)
    while (missing := np.flatnonzero(((outputs < 0) | (outputs >= (4, 3))).any(axis=1))).size:
        outputs[missing] = endless.privatize(values[missing])
    cells: Outputs = outputs[:, 1] * 4 + outputs[:, 0]
    return cells


def line_noise(values: Outputs) -> NDArray[np.int64]:
    """Return noise alone."""
    noise: NDArray[np.int64] = hb.Geometric(LINE, 0.4).privatize(values) - values
    return noise


def doubled_zero(values: Outputs) -> Outputs:
    """Draw a size from 0 on, and a sign: 0 comes twice as often."""
    uniforms = SystemSource().positive_uniforms(len(values))
    sizes = np.floor(np.log(uniforms) / -0.4).astype(np.int64)
    signs = 1 - 2 * SystemSource().integers(2, len(values))
    moved: Outputs = np.clip(values + sizes * signs, 0, 9)
    return moved


def remainder(values: Outputs) -> Outputs:
    """Randomize by the remainder of a byte: 100 does not divide 256."""
    honest = hb.RandomizedResponse(hb.Integers(0, 99), 1.0)
    kept = honest.support.true - honest.support.other
    any_value = SystemSource().bytes(len(values)).astype(np.int64) % 100
    return np.where(SystemSource().uniforms(len(values)) < kept, values, any_value)


def moved_on_map(values: Outputs, sides: tuple[float, float], *, swapped: bool = False) -> Outputs:
    """Draw planar noise for cells of other sides, or with columns and rows the wrong way round."""
    nowhere = np.zeros((1, 2), dtype=np.int64)
    noise = PlanarGeometricLaw(1.0, sides, nowhere, np.asarray).draw(
        np.zeros(len(values), dtype=np.int64), SystemSource()
    )
    moved = MAP.steps[values] + (noise[:, ::-1] if swapped else noise)
    return MAP.nearest(moved[:, 0], moved[:, 1])


def in_degrees(values: Outputs) -> Outputs:
    """Take degrees for kilometres."""
    noise = PlanarGeometricLaw(1.0, degrees(CITY), CITY.steps, np.asarray).draw(values, SystemSource())
    return CITY.nearest(noise[:, 0], noise[:, 1])


def last_of_tied(values: Outputs) -> Outputs:
    """Send the cell between two kept ones to the last instead of the first."""
    column = hb.PlanarGeometric(TIED, 1.0, truncated=False).privatize(values)[:, 0]
    return np.where(column >= 1, 2, 0)


def nothing_rejected(values: Outputs) -> Outputs:
    """Take every displacement of the two axes."""

    class Taken(PlanarGeometricLaw):
        def _take(self, proposed: NDArray[np.int64], source: RandomSource) -> NDArray[np.bool_]:
            return np.ones(len(proposed), dtype=bool)

    return Taken(1.0, MAP.sides, MAP.steps, PLANAR._remap).draw(values, SystemSource())


def one_seed(values: Outputs) -> Outputs:
    """Hash for everybody with the same seed."""

    class Same(SystemSource):
        first = True

        def words(self, count: int) -> NDArray[np.uint64]:
            words = super().words(count)
            if self.first:
                words[:] = words[:1]
            self.first = False
            return words

    return drawing(HASHING, HASHING.law, Same())(values)


def wrong_hash(values: Outputs) -> Outputs:
    """Hash the next position."""
    seeds = SystemSource().words(len(values))
    own = hash_v1(seeds, LINE.index(values) + 1, 3).astype(np.int64)
    buckets = HASHING.law.response.draw(own, SystemSource()).astype(np.uint64)
    return HASHING.output_space.decode(np.stack([seeds, buckets], axis=1))


def reversed_bits(values: Outputs) -> Outputs:
    rows = np.unpackbits(RAPPOR.privatize(values), axis=1, count=5)
    return np.packbits(rows[:, ::-1], axis=1)


def towards_zero(values: Outputs) -> Outputs:
    """Cut Laplace noise off instead of rounding it."""
    sizes = -np.log(SystemSource().positive_uniforms(len(values))) / 0.4
    signs = 1 - 2 * SystemSource().integers(2, len(values))
    cut: Outputs = np.clip(values + np.trunc(sizes * signs).astype(np.int64), 0, 9)
    return cut


def short_stairs(values: Outputs) -> Outputs:
    """Draw places of a stair as if it were one step shorter."""
    law, source = STAIRS.law, SystemSource()
    levels = law._stairs.draw(len(values), source)
    places = source.integers(law.stair - 1, len(values))
    away = np.sign(levels) * (law.reach + 1 + (np.abs(levels) - 1) * law.stair + places)
    near = source.integers(2 * law.reach + 1, len(values)) - law.reach
    return np.asarray(values + np.where(levels == 0, near, away))


def nearer_end(values: Outputs) -> Outputs:
    """Send the nearer end, and not one at random."""
    ends = (LINE.index(values) > 4).astype(np.int64)
    return ENDS.output_space.decode(ENDS.law.response.draw(ends, SystemSource()))


def off_by_one(values: Outputs) -> Outputs:
    shifted: Outputs = np.minimum(TRUNCATED.privatize(values) + 1, 9)
    return shifted


def clamped_too_far(values: Outputs) -> Outputs:
    clamped: Outputs = np.clip(values + line_noise(values), 0, 8)
    return clamped


def one_sided(values: Outputs) -> Outputs:
    moved: Outputs = np.clip(values + np.abs(line_noise(values)), 0, 9)
    return moved


def lie(values: Outputs) -> Outputs:
    """Report anything but the truth as often as the truth should be."""
    positions = COLOURS.index(values)
    kept = RESPONSE.law.draw(positions, SystemSource()) == positions
    others = (positions + 1 + SystemSource().integers(4, len(values))) % 5
    return COLOURS.labels[np.where(kept, others, positions)]


def tenth_more(mechanism: hb.Mechanism) -> Sampler:
    return drawing(mechanism, type(mechanism)(mechanism.domain, mechanism.epsilon * 1.1).law)  # type: ignore[call-arg]


def row_before(positions: Outputs, places: Outputs) -> Outputs:
    """Return members with the row of the value that is dealt before: the first one gets the row of all ones."""
    rows = positions // 2
    columns = HADAMARD.size // 2 + places  # where the row of all ones is +1, too
    return np.where(rows == 0, positions % 2 * HADAMARD.size + columns, HADAMARD.members(positions - 2, places))


def half_of_the_rows(values: Outputs) -> Outputs:
    """Send the second half of the rows as those of the first one."""
    hashes, rows, signs = SIGNS.parts_of(SIGNS.privatize(values))
    return 2 * (hashes * SIGNS.width + rows % 4) + signs


def asking_the_first(mechanism: hb.DBitFlip, values: Outputs) -> Outputs:
    """Ask about the first two buckets more often than about others."""
    sent = mechanism.privatize(values)
    often = mechanism.privatize(values)
    first = mechanism.answers(often)[:, :2].min(axis=1) >= 0
    return np.where(first[:, None], often, sent)


OPTIMIZED = hb.OptimizedUnary(hb.Integers(0, 4), 1.0)
BLURRED = hb.Laplace(hb.Bins([0.0, 0.5, 2.0, 2.25, 6.0]), 0.8)
ENDLESS = hb.Geometric(LINE, 0.4)
CLIPPED = hb.PlanarLaplace(MAP, 1.0)
MEMORY = hb.LongitudinalRappor(hb.Integers(0, 4), 3.0, 1.2)
SWAPPED = replace(RAPPOR.law, own=RAPPOR.law.other, other=RAPPOR.law.own)
DRAWN: dict[str, tuple[hb.Mechanism, Sampler]] = {
    "epsilon 10% too large, response": (RESPONSE, tenth_more(RESPONSE)),
    "epsilon 10% too large, line": (TRUNCATED, tenth_more(TRUNCATED)),
    "epsilon 10% too large, bits": (RAPPOR, tenth_more(RAPPOR)),
    "epsilon 10% too large, exponential": (EXPONENTIAL, tenth_more(EXPONENTIAL)),
    "epsilon 10% too large, map": (PLANAR, tenth_more(PLANAR)),
    "epsilon 10% too small, map": (PLANAR, drawing(PLANAR, hb.PlanarGeometric(MAP, 0.9).law)),
    "epsilon 10% too large, hashing": (HASHING, drawing(HASHING, hb.LocalHashing(LINE, 1.32, 3).law)),
    "epsilon 10% too large, windows": (WAVE, drawing(WAVE, hb.SquareWave(hb.Integers(0, 8), 1.1, reach=2).law)),
    "epsilon 10% too large, stairs": (STAIRS, drawing(STAIRS, hb.Staircase(STAIRS.domain, 1.1, STAIRS.gamma).law)),
    "another lowest stair": (
        STAIRS,
        drawing(STAIRS, hb.Staircase(STAIRS.domain, 1.0, Fraction(STAIRS.reach + 2, 8)).law),
    ),
    "stairs one step too short": (STAIRS, short_stairs),
    "epsilon 10% too large, ends": (ENDS, tenth_more(ENDS)),
    "always the nearer end": (ENDS, nearer_end),
    "chances of bits swapped": (
        CHANCES,
        drawing(CHANCES, replace(CHANCES.law, own=CHANCES.law.other, other=CHANCES.law.own)),
    ),
    "a hundredth more for other bits": (
        CHANCES,
        drawing(CHANCES, replace(CHANCES.law, other=CHANCES.law.other + Fraction(1, 100))),
    ),
    "a window one output too far": (
        WAVE,
        drawing(WAVE, replace(WAVE.law, member=lambda positions, places: np.minimum(positions + places + 1, 12))),
    ),
    "epsilon 10% too large, Hadamard": (HADAMARD, drawing(HADAMARD, replace(HADAMARD, epsilon=1.32).law)),
    "the row before": (HADAMARD, drawing(HADAMARD, replace(HADAMARD.law, member=row_before))),
    "the block after": (
        HADAMARD,
        drawing(HADAMARD, replace(HADAMARD.law, member=lambda own, at: HADAMARD.members((own + 1) % 10, at))),
    ),
    "epsilon 10% too large, hyperplanes": (PROJECTIVE, drawing(PROJECTIVE, replace(PROJECTIVE, epsilon=1.32).law)),
    "one point of a hyperplane never": (
        PROJECTIVE,
        drawing(PROJECTIVE, replace(PROJECTIVE.law, member=lambda own, at: PROJECTIVE.members(own, np.maximum(at, 1)))),
    ),
    "epsilon 10% too large, sketch": (SKETCH, drawing(SKETCH, replace(SKETCH, epsilon=1.65).law)),
    "the first hash alone": (SKETCH, drawing(SKETCH, replace(SKETCH.law, hashes=1))),
    "epsilon 10% too large, signs": (SIGNS, drawing(SIGNS, replace(SIGNS, epsilon=1.65).law)),
    "half of the rows": (SIGNS, half_of_the_rows),
    "epsilon 10% too large, subsets": (SUBSETS, drawing(SUBSETS, hb.SubsetSelection(COLOURS, 1.1, size=2).law)),
    "epsilon 10% too large, optimized bits": (OPTIMIZED, tenth_more(OPTIMIZED)),
    "epsilon 10% too large, Laplace": (LAPLACE, tenth_more(LAPLACE)),
    "epsilon 10% too large, uneven bins": (BLURRED, tenth_more(BLURRED)),
    "epsilon 10% too large, endless": (ENDLESS, tenth_more(ENDLESS)),
    "epsilon 10% too large, planar Laplace": (CLIPPED, tenth_more(CLIPPED)),
    "first 10% too large, memory": (MEMORY, drawing(MEMORY, hb.LongitudinalRappor(MEMORY.domain, 3.0, 1.32).law)),
    "first 10% too large, unary": (OSUE, drawing(OSUE, hb.LongitudinalUnary(OSUE.domain, 3.0, 1.32).law)),
    "lost and raised swapped": (
        (SOUE := hb.LongitudinalUnary(hb.Integers(0, 4), 3.0, 1.2, "sue", "oue")),
        drawing(SOUE, replace(SOUE.law, lost=SOUE.law.raised, raised=SOUE.law.lost)),
    ),
    "first 10% too large, response": (AGAIN, drawing(AGAIN, hb.LongitudinalResponse(AGAIN.domain, 3.0, 1.32).law)),
    "the permanent response itself": (AGAIN, drawing(AGAIN, AGAIN.law.permanent)),
    "epsilon 10% too large, dBitFlip": (ASKED, drawing(ASKED, hb.DBitFlip(ASKED.domain, 2.2, 4, 2).law)),
    "f 10% too small": (
        (BLOOM := hb.BloomRappor(COLOURS, 2, 6, 2, f=0.5, p=0.25, q=0.75)),
        drawing(BLOOM, hb.BloomRappor(COLOURS, 2, 6, 2, f=0.45, p=0.25, q=0.75).law),
    ),
    "another hash": (BLOOM, lambda values: BLOOM.privatize(np.roll(COLOURS.labels, 1)[COLOURS.index(values)])),
    "one bucket less is asked": (ASKED, lambda values: asking_the_first(ASKED, values)),
    "p and q swapped": (RAPPOR, drawing(RAPPOR, SWAPPED)),
    "a lie for the truth": (RESPONSE, lie),
    "redrawn, line": (TRUNCATED, redrawn_line),
    "redrawn, map": (PLANAR, redrawn_map),
    "off by one": (TRUNCATED, off_by_one),
    "clamped too far": (TRUNCATED, clamped_too_far),
    "bits reversed": (RAPPOR, reversed_bits),
    "one side": (TRUNCATED, one_sided),
    "0 twice": (TRUNCATED, doubled_zero),
    "cut off": (LAPLACE, towards_zero),
    "a remainder": (hb.RandomizedResponse(hb.Integers(0, 99), 1.0), remainder),
    "one seed": (HASHING, one_seed),
    "the wrong hash": (HASHING, wrong_hash),
    "columns and rows swapped": (PLANAR, lambda values: moved_on_map(values, MAP.sides, swapped=True)),
    "sides swapped": (PLANAR, lambda values: moved_on_map(values, (0.6, 1.0))),
    "degrees for kilometres": (hb.PlanarGeometric(CITY, 1.0), in_degrees),
    "ties to the last": (hb.PlanarGeometric(TIED, 1.0), last_of_tied),
    "nothing rejected": (PLANAR, nothing_rejected),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("fault", DRAWN)
def test_draws_of_something_else_are_found(fault: str) -> None:
    mechanism, sampler = DRAWN[fault]
    assert worst_p_value(mechanism, sampler, draws=DRAWS) < LEVEL


def test_the_same_draws_without_a_fault_pass() -> None:
    """The parts that the faults above are made of are correct: only the fault is found."""
    assert worst_p_value(PLANAR, lambda values: moved_on_map(values, MAP.sides), draws=DRAWS) > LEVEL
    tied = hb.PlanarGeometric(TIED, 1.0)
    assert worst_p_value(tied, draws=DRAWS) > LEVEL
    right = hb.PlanarGeometric(TIED, 1.0, truncated=False)
    assert worst_p_value(tied, lambda values: np.where(right.privatize(values)[:, 0] > 1, 2, 0), draws=DRAWS) > LEVEL
    assert worst_p_value(TRUNCATED, lambda values: np.clip(values + line_noise(values), 0, 9), draws=DRAWS) > LEVEL


# -- randomness that is not fresh -------------------------------------------------------------------------


class Shared(SystemSource):
    """Gives two users the same word."""

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.repeat(super().words(-(-count // 2)), 2)[:count]

    def half_words(self, count: int) -> NDArray[np.uint32]:
        return np.repeat(super().half_words(-(-count // 2)), 2)[:count]


class Buffered(RandomSource):
    """Keeps words back, also across a fork."""

    secure = True

    def __init__(self) -> None:
        self._kept = SystemSource().words(1000)

    def words(self, count: int) -> NDArray[np.uint64]:
        taken, self._kept = self._kept[:count], self._kept[count:]
        return taken


@pytest.mark.parametrize("mechanism", [RESPONSE, TRUNCATED, EXPONENTIAL], ids=lambda each: type(each).__name__)
def test_one_word_for_two_users_is_found(mechanism: hb.Mechanism) -> None:
    assert pair_p_value(mechanism, drawing(mechanism, mechanism.law, Shared())) < LEVEL
    assert pair_p_value(mechanism) > LEVEL


@pytest.mark.parametrize("mechanism", [RAPPOR, SUBSETS, PLANAR, LAPLACE], ids=lambda each: type(each).__name__)
def test_users_share_no_randomness(mechanism: hb.Mechanism) -> None:
    assert pair_p_value(mechanism) > LEVEL


def test_a_seeded_generator_is_found() -> None:
    values = np.resize(LINE.labels, 1000)

    def repeats(sampler: Sampler) -> bool:
        return bool((sampler(values) == sampler(values)).all())

    assert repeats(lambda these: TRUNCATED.privatize(these, rng=0))
    assert repeats(lambda these: drawing(TRUNCATED, TRUNCATED.law, SeededSource(np.random.default_rng(0)))(these))
    assert not repeats(TRUNCATED.privatize)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_buffer_that_survives_a_fork_is_found() -> None:
    stale = Buffered()
    assert len(set(forked(lambda: stale.words(4).tobytes(), 5))) == 1
    fresh = SystemSource()
    assert len(set(forked(lambda: fresh.words(4).tobytes(), 5))) == 5


def test_there_are_enough_faults() -> None:
    assert len(EXACT) + len(DRAWN) + 3 >= 20
    assert math.isclose(1e-9, LEVEL)
